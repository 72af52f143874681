//! Stacks of programs that people run, frame by frame as gdb has them.

use std::fs::{self, File};
use std::io::Write;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Stdio};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use lapscope_fixture::is_left_out;
use lapscope_tests::launch::place;
use lapscope_tests::mpi::find_program;
use lapscope_tests::{child, paths, say};

/// Programs, and shell lines that run each for longer than the test looks at it.
const PROGRAMS: [(&str, &str); 12] = [
    ("lmp", "sed 's/^run .*/run 1000000/' MELT > melt; exec lmp -in melt -log none"),
    ("hpcc", "cp HPCC hpccinf.txt; while :; do hpcc; done"),
    ("ld1.x", "while :; do ld1.x < LD1 > /dev/null; done"),
    ("sqlite3", "exec sqlite3 :memory: 'WITH RECURSIVE c(x) AS (SELECT 1 UNION ALL SELECT x+1 FROM c) SELECT sum(x*x) FROM c'"),
    ("perl", "exec perl -e 'while (1) { $x{$i++ % 1000} = join(\",\", sort map { $_ * 7 % 13 } 1..20) }'"),
    ("bash", "exec bash -c 'f() { while :; do ((i++)); s=${s:0:9}$i; done; }; f'"),
    ("xz", "exec xz -9 -T1 < /dev/urandom > /dev/null"),
    ("openssl", "exec openssl speed -seconds 100 rsa4096"),
    ("mawk", "exec mawk 'BEGIN { while (1) { s = s i++; if (length(s) > 99) s = \"\" } }'"),
    ("bc", "echo 'while (1) { x = 2 ^ 5000 / 3 }' | exec bc"),
    ("bzip2", "exec bzip2 -9 < /dev/urandom > /dev/null"),
    ("git", "exec git hash-object --stdin < /dev/zero"),
];

/// A program that has a processor, in a group of its own, which is killed when this goes out of scope.
struct Program(Child);

impl Program {
    fn start(line: &str, place: &Path) -> Program {
        let named = |word: &str, file: &str| -> (String, String) {
            (word.to_owned(), paths::apps().join(file).display().to_string())
        };
        let files =
            [named("MELT", "melt.in"), named("HPCC", "hpccinf.txt"), named("LD1", "hydrogen.ld1")];
        let line =
            files.iter().fold(line.to_owned(), |line, (word, file)| line.replace(word, file));
        let nothing =
            || File::options().read(true).write(true).open("/dev/null").expect("/dev/null");
        let mut command = child::command("sh");
        command.args(["-c", &line]).current_dir(place).process_group(0);
        command.env("OMPI_ALLOW_RUN_AS_ROOT", "1").env("OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1");
        let streams = command.stdin(nothing()).stdout(nothing()).stderr(nothing());
        Program(streams.spawn().expect("a shell"))
    }

    fn signal(&self, signal: libc::c_int) {
        let group = libc::pid_t::try_from(self.0.id()).expect("a process id");
        // SAFETY: signals only the group that this child leads, which has not been waited for
        unsafe { libc::kill(-group, signal) };
    }

    /// The process of the group that runs the program.
    fn process(&self, name: &str) -> Option<u32> {
        let group = self.0.id().to_string();
        let output = child::command("pgrep").args(["-g", &group, "-f", name]).output().ok()?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        text.lines().last()?.parse().ok()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        self.signal(libc::SIGKILL);
        let _ = self.0.wait();
    }
}

/// A frame of machine code: the file that has it, its place in a page, its function where that is known.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Frame {
    file: String,
    within_page: u64,
    function: Option<String>,
}

fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// Without parameters, template arguments, versions and what compilers add.
fn plain(function: &str) -> String {
    let end = function.find(['(', '<', '@', '.']).unwrap_or(function.len());
    function[..end].rsplit("::").next().unwrap_or_default().trim_matches('_').to_owned()
}

fn as_gdb_has_them(pid: u32) -> Vec<Frame> {
    let script = paths::root().join("tests/tests/stacks/frames.py");
    let mut command = child::command("gdb");
    command.args([
        "-nx",
        "-batch",
        "-iex",
        "set debuginfod enabled off",
        "-iex",
        "set auto-load off",
    ]);
    command.args(["-p", &pid.to_string(), "-x"]).arg(script).stderr(Stdio::null());
    let output = command.output().expect("gdb runs");
    let text = String::from_utf8_lossy(&output.stdout).into_owned();
    let executable = fs::read_link(format!("/proc/{pid}/exe")).unwrap_or_default();
    let executable = executable.to_string_lossy().into_owned();
    let mut frames = Vec::new();
    for line in text.lines().filter_map(|line| line.strip_prefix("frame 0x")) {
        let words: Vec<&str> = line.splitn(3, ' ').collect();
        let address = u64::from_str_radix(words[0], 16).expect("an address");
        // the first is where it is, the others where their calls return to
        let address = if frames.is_empty() { address + 1 } else { address };
        let file = if words[1] == "?" { executable.as_str() } else { words[1] };
        let function = Some(plain(words[2])).filter(|name| name != "?");
        let file = fs::canonicalize(file).unwrap_or_else(|_| file.into());
        let file = base_name(&file.to_string_lossy()).to_owned();
        frames.push(Frame { file, within_page: address % 4096, function });
    }
    frames
}

/// What lapscope says of a process.
struct Said {
    frames: Vec<Frame>,
    /// Without the frames within MPI.
    is_in_mpi: bool,
    /// It says itself that there are further callers.
    is_cut: bool,
}

fn as_lapscope_has_them(pid: u32) -> Said {
    let mut command = child::command(paths::lapscope());
    command.args(["hang", "--format", "json", "--interval", "0.1", "--pid", &pid.to_string()]);
    let output = command.output().expect("lapscope runs");
    let answer: Value = serde_json::from_slice(&output.stdout).expect("an answer");
    let rank = &answer["ranks"][0];
    let frames = rank["frames"].as_array().expect("frames").iter();
    let physical = frames.filter(|frame| frame["inlined"] == false);
    let frame = |frame: &Value| Frame {
        file: base_name(frame["module"].as_str().unwrap_or("?")).to_owned(),
        within_page: frame["address"].as_u64().expect("an address") % 4096,
        function: frame["function"].as_str().map(plain),
    };
    Said {
        frames: physical.map(frame).collect(),
        is_in_mpi: !rank["call"].is_null(),
        is_cut: rank["problem"] == "the outermost callers are not known",
    }
}

/// What is compared: stacks, those of which lapscope says that it has not the whole, frames, those that have names by both, and
/// the same.
#[derive(Debug, Default)]
struct Compared {
    stacks: usize,
    cut: usize,
    frames: usize,
    named: usize,
    alike: usize,
}

/// A stack must be the same, but for what only says how it was started, and for what is within MPI.
fn compare(name: &str, pid: u32, sum: &mut Compared) -> Result<(), String> {
    const STARTS: usize = 3; // _start, __libc_start_main, __libc_start_call_main
    let (own, theirs) = (as_lapscope_has_them(pid), as_gdb_has_them(pid));
    let same =
        |own: &Frame, other: &Frame| own.file == other.file && own.within_page == other.within_page;
    let first = own.frames.first().ok_or_else(|| format!("{name}: no frames"))?;
    let begin = theirs.iter().position(|frame| same(first, frame)).unwrap_or(theirs.len());
    let (within, others) = theirs.split_at(begin);
    let pairs = || own.frames.iter().zip(others);
    let further = others.len().checked_sub(own.frames.len());
    let is_same = (within.is_empty() || own.is_in_mpi)
        && further.is_some_and(|count| own.is_cut || count <= STARTS)
        && pairs().all(|(own, other)| same(own, other));
    if !is_same {
        return Err(format!("{name}: lapscope has\n{:#?}\nand gdb\n{theirs:#?}", own.frames));
    }
    sum.stacks += 1;
    sum.cut += usize::from(own.is_cut);
    sum.frames += own.frames.len();
    let names =
        pairs().filter_map(|(own, other)| Some((own.function.as_ref()?, other.function.as_ref()?)));
    for (own, other) in names {
        sum.named += 1;
        sum.alike += usize::from(own == other);
        if own != other {
            println!("{name}: {own} is {other} to gdb");
        }
    }
    Ok(())
}

#[test]
fn frames_as_gdb_has_them() {
    if is_left_out!() {
        return;
    }
    if find_program("gdb").is_none() {
        return say!("NOT TESTED: stacks::gdb: no gdb");
    }
    let (mut sum, mut programs, mut wrong) = (Compared::default(), 0, Vec::new());
    for (name, line) in PROGRAMS {
        if find_program(name).is_none() {
            say!("NOT TESTED: stacks::gdb: no {name}");
            continue;
        }
        programs += 1;
        let place = place();
        let program = Program::start(line, place.path());
        for _ in 0..3 {
            program.signal(libc::SIGCONT);
            thread::sleep(Duration::from_millis(700));
            program.signal(libc::SIGSTOP);
            let Some(pid) = program.process(name) else {
                wrong.push(format!("{name} does not run"));
                break;
            };
            wrong.extend(compare(name, pid, &mut sum).err());
        }
    }
    writeln!(std::io::stderr(), "{programs} programs, {sum:?}").expect("standard error");
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
    assert!(programs >= 10 && sum.frames >= 100, "{programs} programs, {sum:?}");
    assert!(10 * sum.cut <= sum.stacks && 10 * sum.alike >= 9 * sum.named, "{sum:?}");
}
