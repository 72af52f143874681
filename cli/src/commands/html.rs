//! `lapscope html`: the report with pictures, as a page.

mod compare;

use std::fs::File;
use std::io::{Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode, Stdio};

use anyhow::{bail, Context, Result};

use super::{open_run, scaling};
use crate::args::{HtmlArgs, LISTED_SITES};
use lapscope_data::files::cannot_write;
use lapscope_data::say;
use lapscope_data::text::shell;
use lapscope_data::text::units::bytes;
use lapscope_report::pipeline::pictures::TimelineChoice;
use lapscope_report::pipeline::OpenRun;
use lapscope_show::format::warn_of_data;
use lapscope_show::html::{self, PageChoice, Sources};

/// Writes the page, says where, and shows it where that is asked for.
///
/// # Errors
/// There is no run here, no file of it can be read, or the page cannot be written.
pub fn run(args: &HtmlArgs) -> Result<ExitCode> {
    if let Some(first) = args.run.as_deref().filter(|_| !args.further.is_empty()) {
        return write_scaling(args, first);
    }
    if let Some((a, b)) = args.run.as_deref().zip(args.run_b.as_deref()) {
        return compare::run(args, a, b);
    }
    let mut open = open_run(args.run.as_deref(), &args.times, &args.wrappers, &args.resources)?;
    let path = args.output.clone().unwrap_or_else(|| default_path(&open.files.root));
    check(&path)?;
    let asked = PageChoice {
        top: args.top.into(),
        ranks: args.ranks.chosen(),
        sources: Sources::within(&args.sources)?,
        shown: TimelineChoice { stretch: args.stretch.wanted(), ranks: args.shown_ranks.clone() },
    };
    make(&mut open, &path, asked)?;
    if args.open {
        show(&path)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The page of more than two runs.
fn write_scaling(args: &HtmlArgs, first: &Path) -> Result<ExitCode> {
    let path = args.output.clone().unwrap_or_else(|| "scaling.html".into());
    check(&path)?;
    let runs = args.run_b.iter().chain(&args.further).map(PathBuf::as_path);
    let how = (&args.times, &args.wrappers, &args.resources);
    let scaling = scaling::read(std::iter::once(first).chain(runs), args.scaling.into(), how)?;
    write(&path, &html::scaling::page(&scaling)?)?;
    if args.open {
        show(&path)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// The page of a run that this process has just recorded: whose sources are shown wherever they are.
///
/// # Errors
/// As [`run`].
pub fn write_of(run: &Path) -> Result<()> {
    let mut open = OpenRun::open(Some(run))?;
    open.find_wrappers(&[])?;
    let path = default_path(&open.files.root);
    check(&path)?;
    let asked = PageChoice {
        top: LISTED_SITES.into(),
        ranks: Vec::new(),
        sources: Sources::within(&["/".into()])?,
        shown: TimelineChoice::default(),
    };
    make(&mut open, &path, asked)
}

/// What the page says of problems is said here, too, and which files it has lines of.
fn make(open: &mut OpenRun, path: &Path, asked: PageChoice) -> Result<()> {
    let mut contents = html::collect(open, asked)?;
    warn_of_data(&contents.report.problems);
    write(path, &html::page(&mut contents)?)?;
    let shown = contents.sources.shown();
    match shown[..] {
        [] => {}
        [only] => say!("{} has lines of {only}", path.display()),
        [first, ..] => {
            let count = shown.len();
            say!("{} has lines of {count} source files, the first of them {first}", path.display());
        }
    }
    Ok(())
}

/// In the current directory, by the name of the run.
fn default_path(root: &Path) -> PathBuf {
    let whole = std::path::absolute(root).unwrap_or_else(|_| root.to_owned());
    let whole = whole.canonicalize().unwrap_or(whole);
    let name = whole.file_name().map_or_else(|| "lapscope".into(), |name| name.to_os_string());
    let mut name = PathBuf::from(name);
    if name.extension().is_some_and(|end| end == "db") {
        name.set_extension("");
    }
    let mut name = name.into_os_string();
    name.push(".html");
    name.into()
}

/// Nothing else than such a page is replaced.
pub(super) fn check(path: &Path) -> Result<()> {
    let shown = path.display();
    let Ok(facts) = std::fs::metadata(path) else { return Ok(()) };
    if !facts.is_file() {
        bail!("{shown} is there and no file: name another one");
    }
    let mut begin = vec![0; 256];
    let mut file = File::open(path).with_context(|| format!("{shown}"))?;
    let read = file.read(&mut begin).with_context(|| format!("{shown}"))?;
    if read > 0 && !html::is_page(&begin[..read]) {
        bail!("{shown} is there and no page of lapscope: it is left alone: name another one");
    }
    Ok(())
}

/// Writes a page, and says so.
pub(super) fn write(path: &Path, page: &str) -> Result<()> {
    replace(path, page)?;
    say!("{}: {}", path.display(), bytes(page.len() as u64));
    Ok(())
}

/// All of it or nothing: written beside, then renamed.
pub(super) fn replace(path: &Path, text: &str) -> Result<()> {
    let directory = path.parent().filter(|parent| !parent.as_os_str().is_empty());
    let directory = directory.unwrap_or(Path::new("."));
    let mut beside = tempfile::Builder::new()
        .prefix(".lapscope-")
        .permissions(std::fs::Permissions::from_mode(0o666)) // less what the user's mask takes away
        .tempfile_in(directory)
        .map_err(|error| cannot_write(path, error))?;
    let written = beside.write_all(text.as_bytes()).and_then(|()| beside.flush());
    written.map_err(|error| cannot_write(path, error))?;
    beside.persist(path).map_err(|error| cannot_write(path, error.error))?;
    Ok(())
}

/// Opens a browser where there is a screen; else says how to get the page to one.
fn show(path: &Path) -> Result<()> {
    let whole = path.canonicalize().with_context(|| format!("{}", path.display()))?;
    let has_screen = ["DISPLAY", "WAYLAND_DISPLAY"].iter().any(|name| is_set(name));
    let named = std::env::var_os("BROWSER").filter(|name| !name.is_empty());
    let browser = named.unwrap_or_else(|| "xdg-open".into());
    if has_screen {
        let mut command = Command::new(&browser);
        command.arg(&whole).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        match command.spawn() {
            Ok(_) => return Ok(()),
            Err(error) => say!("{}: {error}", browser.to_string_lossy()),
        }
    } else {
        say!("no browser is opened: there is no screen here (DISPLAY is not set)");
    }
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    let from = format!("{}:{}", host.trim(), whole.display());
    say!("the page is one file: scp {} . copies it to where there is one", shell::quote(from));
    Ok(())
}

fn is_set(name: &str) -> bool {
    std::env::var_os(name).is_some_and(|value| !value.is_empty())
}
