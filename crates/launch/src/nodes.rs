//! A process on each node looks at a job from outside: which nodes these are, what starts a process there, and what it prints.
//!
//! It prints short lines with a mark in front. srun passes lines of less than 1,024 bytes on as a whole, so that one launcher may reach
//! several nodes; and what a login shell prints besides is told from them. A node that does not answer in time is named, and so is one
//! that answers otherwise.

use std::collections::{BTreeMap, HashMap};
use std::ffi::OsString;
use std::io::{self, Write};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::Mutex;
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{bail, Context, Result};

use crate::bounded;
use crate::gather::command_by;
use lapscope_data::store::host_name;
use lapscope_data::text::shell;
use lapscope_data::text::style::Style;

/// What each line begins with.
const MARK: &str = "lapscope-part ";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// Bytes of an answer in one line.
const LONGEST_LINE: usize = 700;
/// Columns of what is no answer that are shown.
const LONGEST_SHOWN: usize = 80;
/// Bytes of all lines of a launcher.
const LONGEST_ANSWER: u64 = 1 << 30;
/// Nodes that are asked side by side.
const SIDE_BY_SIDE: usize = 64;
/// No node is asked any more when so many times the patience is over.
const ROUNDS: u32 = 3;
/// Variables of Slurm that are not those of the step that asks.
const OF_CLUSTER: [&str; 3] = ["SLURM_CONF", "SLURM_JWT", "SLURM_CLUSTERS"];

/// Where is to be looked from, and what may start a process there.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reach {
    /// For people.
    pub host: String,
    /// One after the other, until one answers.
    launchers: Vec<String>,
    /// What the process is asked for: options of `lapscope hang`.
    words: Vec<OsString>,
    /// Whether what this process knows of its own step would mislead srun.
    is_of_slurm: bool,
}

impl Reach {
    /// The nodes of a running job of Slurm: of an array or a job of several components with the numbers of its parts.
    ///
    /// # Errors
    /// Slurm does not tell; why, as the end of a sentence.
    pub fn of_job(job: &str) -> Result<Vec<Reach>, String> {
        let told =
            asked(Command::new("squeue").args(["--noheader", "--format=%A %N", "--jobs", job]))
                .map_err(|why| without_slurm(job, &why))?;
        let mut reaches = Vec::new();
        for line in told.lines() {
            let Some((number, nodes)) = line.trim().split_once(' ') else { continue };
            let names = asked(Command::new("scontrol").args(["show", "hostnames", nodes.trim()]))?;
            reaches.extend(names.lines().map(|host| Reach::by_slurm(host, number)));
        }
        match reaches.is_empty() {
            true => Err(format!("Slurm knows no job {job} that runs")),
            false => Ok(reaches),
        }
    }

    /// A node of a job of Slurm: by a step beside the others, or else by ssh.
    pub fn by_slurm(host: &str, job: &str) -> Reach {
        let (quoted, number) = (shell::quote(host), shell::quote(job));
        let srun = format!(
            "srun --overlap --jobid {number} --nodelist {quoted} --nodes 1 --ntasks 1 --mpi none --quiet"
        );
        Reach {
            host: host.to_owned(),
            launchers: vec![srun, by_ssh(host)],
            words: ["--job", job].map(OsString::from).to_vec(),
            is_of_slurm: true,
        }
    }

    /// A host where ranks run this program; this one is not left.
    pub fn by_name(host: &str, program: &str) -> Reach {
        let is_here = host == "localhost" || host == host_name();
        let launcher = if is_here { "env".to_owned() } else { by_ssh(host) };
        Reach { host: host.to_owned(), ..Reach::by_launcher(&launcher, &["--command", program]) }
    }

    /// What a launcher reaches.
    pub fn by_launcher(launcher: &str, words: &[&str]) -> Reach {
        Reach {
            host: launcher.to_owned(),
            launchers: vec![launcher.to_owned()],
            words: words.iter().map(OsString::from).collect(),
            is_of_slurm: false,
        }
    }

    /// What somebody who can get there may type there.
    pub fn line_to_paste(&self) -> String {
        format!("lapscope hang {}", shell::join(&self.words))
    }

    /// What the first launcher prints that works.
    fn ask(&self, further: &[OsString], patience: Duration) -> NodeAnswer {
        let mut complaints = Vec::new();
        for launcher in &self.launchers {
            let mut answer = self
                .ask_by(launcher, further, patience)
                .unwrap_or_else(|error| NodeAnswer::none(format!("{error:#}")));
            if *launcher != self.host {
                answer.problem = answer.problem.map(|problem| format!("{launcher}: {problem}"));
            }
            if !answer.parts.is_empty() {
                return answer;
            }
            complaints.extend(answer.problem);
        }
        NodeAnswer::none(complaints.join("; "))
    }

    fn ask_by(
        &self,
        launcher: &str,
        further: &[OsString],
        patience: Duration,
    ) -> Result<NodeAnswer> {
        let own = std::env::current_exe().context("where this lapscope is cannot be found out")?;
        let words = [own.into_os_string(), "hang".into()].into_iter();
        let words = words.chain(self.words.iter().cloned()).chain(further.iter().cloned());
        let mut command = command_by(launcher, words)?;
        if self.is_of_slurm {
            let set = std::env::vars_os().map(|(name, _)| name);
            let misleads = |name: &OsString| {
                let name = name.to_string_lossy();
                name.starts_with("SLURM_") && !OF_CLUSTER.contains(&&*name)
            };
            set.filter(misleads).for_each(|name| {
                command.env_remove(name);
            });
        }
        let said = bounded::ask_for(&mut command, patience, LONGEST_ANSWER)
            .context("it cannot be started")?;
        let mut answer = NodeAnswer::read(&said.output);
        if let Some(complaint) = said.complaint().filter(|_| answer.parts.is_empty()) {
            answer.problem = Some(complaint);
        }
        Ok(answer)
    }
}

fn by_ssh(host: &str) -> String {
    format!("ssh -o BatchMode=yes -o ConnectTimeout=5 -- {}", shell::quote(host))
}

/// Why the nodes of a job are not known, and what does without Slurm.
fn without_slurm(job: &str, why: &str) -> String {
    if why.contains("Invalid job id") {
        return format!("Slurm knows no job {job} that runs");
    }
    format!(
        "Slurm, which knows the nodes of job {job}, does not answer ({why}); without it: lapscope hang --command PROGRAM --hosts \
         node7,node8"
    )
}

fn asked(command: &mut Command) -> Result<String, String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let said =
        bounded::ask(command, bounded::LIMIT).ok_or_else(|| format!("there is no {name} here"))?;
    match said.complaint() {
        Some(complaint) => Err(complaint),
        None => Ok(said.output),
    }
}

/// What came from a node, or from those that a launcher reaches.
#[derive(Debug, Default, PartialEq, Eq)]
pub struct NodeAnswer {
    /// A document each.
    pub parts: Vec<String>,
    /// Why there are none, or not all of them.
    pub problem: Option<String>,
}

impl NodeAnswer {
    fn none(problem: String) -> NodeAnswer {
        NodeAnswer { parts: Vec::new(), problem: Some(problem) }
    }

    /// Lines of several processes may be mixed.
    fn read(output: &str) -> NodeAnswer {
        let mut lines: BTreeMap<&str, (usize, HashMap<usize, &str>)> = BTreeMap::new();
        let mut answer = NodeAnswer::default();
        for line in output.lines() {
            let Some((_, rest)) = line.split_once(MARK) else { continue };
            let Some(read) = AnswerLine::read(rest) else { continue };
            if read.version != VERSION {
                answer.problem = Some(format!(
                    "another lapscope is there ({}; here: {VERSION}): use the same on all nodes, by its path in a directory that they \
                     share",
                    read.version
                ));
                continue;
            }
            let of = lines.entry(read.from).or_default();
            of.0 = read.of;
            of.1.insert(read.at, read.text);
        }
        for (from, (of, texts)) in lines {
            let whole: Option<String> = (0..of).map(|at| texts.get(&at).copied()).collect();
            match whole {
                Some(whole) => answer.parts.push(whole),
                None => answer.problem = Some(format!("what {from} printed is cut off")),
            }
        }
        if answer == NodeAnswer::default() {
            let first = output.lines().find(|line| !line.trim().is_empty());
            answer.problem = Some(match first {
                Some(line) => {
                    format!("it printed what is no answer: {}", Style::cut(line, LONGEST_SHOWN))
                }
                None => "it printed nothing".to_owned(),
            });
        }
        answer
    }
}

/// A line of an answer, behind its mark.
struct AnswerLine<'a> {
    version: &'a str,
    /// A process, which no other has the name of.
    from: &'a str,
    at: usize,
    of: usize,
    text: &'a str,
}

impl<'a> AnswerLine<'a> {
    fn read(rest: &'a str) -> Option<AnswerLine<'a>> {
        let mut words = rest.splitn(5, ' ');
        let mut word = || words.next();
        let (version, from) = (word()?, word()?);
        let (at, of) = (word()?.parse().ok()?, word()?.parse().ok()?);
        Some(AnswerLine { version, from, at, of, text: word()? })
    }
}

/// Prints a document, in one line itself, as an answer.
///
/// # Errors
/// Of the writer.
pub fn write_part(document: &str, out: &mut dyn Write) -> io::Result<()> {
    let (host, pid) = (host_name(), std::process::id());
    let mut texts = Vec::new();
    let mut rest = document;
    while !rest.is_empty() {
        let fits = (0..=LONGEST_LINE.min(rest.len())).rev().find(|&end| rest.is_char_boundary(end));
        let (text, behind) = rest.split_at(fits.unwrap_or(rest.len()));
        texts.push(text);
        rest = behind;
    }
    for (at, text) in texts.iter().enumerate() {
        writeln!(out, "{MARK}{VERSION} {host}-{pid} {at} {} {text}", texts.len())?;
    }
    Ok(())
}

/// What comes from all, in their order. `further`: words for each process.
///
/// # Errors
/// There is nobody to ask.
pub fn ask_all(
    reaches: &[Reach],
    further: &[OsString],
    patience: Duration,
) -> Result<Vec<NodeAnswer>> {
    if reaches.is_empty() {
        bail!("no node is named");
    }
    let by = Instant::now() + patience * ROUNDS;
    let next = AtomicUsize::new(0);
    let answers = Mutex::new(BTreeMap::new());
    let work = || loop {
        let at = next.fetch_add(1, Ordering::Relaxed);
        let Some(reach) = reaches.get(at) else { return };
        let answer = match Instant::now() < by {
            true => reach.ask(further, patience),
            false => NodeAnswer::none("it was not asked: others took all the time".to_owned()),
        };
        answers.lock().expect("nobody panics with it").insert(at, answer);
    };
    thread::scope(|scope| {
        for _ in 0..reaches.len().min(SIDE_BY_SIDE) {
            scope.spawn(work);
        }
    });
    Ok(answers.into_inner().expect("all have ended").into_values().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn printed(document: &str) -> String {
        let mut out = Vec::new();
        write_part(document, &mut out).unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn what_is_printed_is_read_again_whatever_else_is_printed() {
        let document = format!("{{\"é\": \"{}\"}}", "ä b ".repeat(1000));
        let lines = printed(&document);
        assert!(lines.lines().count() > 5 && lines.lines().all(|line| line.len() < 1024));
        let other = lines.replace(&format!("-{} ", std::process::id()), "-other ");
        let mixed: Vec<&str> = lines
            .lines()
            .zip(other.lines().rev())
            .flat_map(|(a, b)| [a, "Welcome to node7!", b])
            .collect();
        let answer = NodeAnswer::read(&mixed.join("\r\n"));
        assert_eq!(answer, NodeAnswer { parts: vec![document.clone(), document], problem: None });
    }

    #[test]
    fn what_is_no_answer_is_named() {
        let lines = printed(&"x".repeat(3000));
        let cut = &lines[..2000];
        let why = |text: &str| {
            let answer = NodeAnswer::read(text);
            assert!(answer.parts.is_empty());
            answer.problem.unwrap()
        };
        assert!(why(cut).ends_with("is cut off"));
        assert!(why("").contains("nothing"));
        assert!(why("Permission denied").contains("no answer: Permission denied"));
        assert!(why(&lines.replace(VERSION, "0.0.7")).contains("another lapscope is there (0.0.7;"));
        assert!(why(&"é".repeat(300)).ends_with("é…"));
    }

    /// A node that does not answer holds nobody up for longer than it is given.
    #[test]
    fn each_launcher_is_bounded_in_time() {
        let by = |launcher: &str| Reach::by_launcher(launcher, &["--job", "1"]);
        let reaches = ["sh -c 'sleep 60'", "sh -c 'exit 3'", "no-such-launcher", "'"].map(by);
        let begin = Instant::now();
        let answers = ask_all(&reaches, &[], Duration::from_millis(300)).unwrap();
        assert!(begin.elapsed() < Duration::from_secs(30));
        let whys: Vec<String> = answers.into_iter().filter_map(|answer| answer.problem).collect();
        let expected =
            ["did not answer in time", "exit code 3", "cannot be started", "a quote that"];
        assert!(
            whys.iter().zip(expected).all(|(why, part)| why.contains(part)) && whys.len() == 4,
            "{whys:?}"
        );
        assert_eq!(reaches[0].line_to_paste(), "lapscope hang --job 1");
    }
}
