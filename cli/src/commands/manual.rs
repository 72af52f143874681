//! `lapscope manual`: pages for `man` and completions for shells, made of the same description as the command line.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result};
use clap::Command;
use clap_complete::Shell;

use crate::args::{described, ManualArgs};
use lapscope_show::output;

/// Where shells look for completions of theirs, below `share`.
const COMPLETIONS: [(Shell, &str); 3] = [
    (Shell::Bash, "bash-completion/completions/lapscope"),
    (Shell::Zsh, "zsh/site-functions/_lapscope"),
    (Shell::Fish, "fish/vendor_completions.d/lapscope.fish"),
];

/// Writes all, and prints what it has written, relative to the directory.
///
/// # Errors
/// A file cannot be written.
pub fn run(args: &ManualArgs) -> Result<ExitCode> {
    let mut root = described();
    root.build();
    let mut files = Vec::new();
    pages(&root, &mut files)?;
    for (shell, name) in COMPLETIONS {
        let mut text = Vec::new();
        clap_complete::generate(shell, &mut root, "lapscope", &mut text);
        files.push((name.to_owned(), text));
    }
    for (name, text) in &files {
        write(&args.share.join(name), text)?;
    }
    output::print(|out| files.iter().try_for_each(|(name, _)| writeln!(out, "{name}")))?;
    Ok(ExitCode::SUCCESS)
}

/// A page for the command and each of those below it.
fn pages(command: &Command, files: &mut Vec<(String, Vec<u8>)>) -> Result<()> {
    let title = command.get_display_name().unwrap_or_else(|| command.get_name()).to_owned();
    let mut text = Vec::new();
    clap_mangen::Man::new(command.clone()).title(title.to_uppercase()).render(&mut text)?;
    files.push((format!("man/man1/{title}.1"), text));
    command.get_subcommands().filter(|it| !it.is_hide_set()).try_for_each(|it| pages(it, files))
}

fn write(path: &Path, text: &[u8]) -> Result<()> {
    let name = || path.display().to_string();
    if let Some(directory) = path.parent() {
        fs::create_dir_all(directory).with_context(name)?;
    }
    fs::write(path, text).with_context(name)
}
