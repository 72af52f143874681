//! Help as wide as the terminal. Here clap breaks lines; what stands behind the options (`after_help`) it would break once
//! more where the source does, so that is laid out beforehand.

use clap::error::ErrorKind;
use clap::{Command, CommandFactory, FromArgMatches, Parser as _};

use super::Cli;
use lapscope_data::text::say::write_stderr;
use lapscope_data::text::shell;
use lapscope_data::text::style::{display_width, stdout_columns, Style};
use lapscope_data::text::visible::is_hostile;
use lapscope_launch::run::line::find_executable;

/// Longer lines are hard to read.
const MOST_COLUMNS: usize = 120;
const DEFAULT_COLUMNS: usize = 100;
/// An explanation beside its entry has at least so many columns; else it goes below.
const LEAST_COLUMNS: usize = 30;

/// Commands by what they are for, in the order in which somebody needs them.
const GROUPS: [(&str, &[&str]); 6] = [
    ("Record", &["run", "reach", "recover"]),
    (
        "Read",
        &["report", "html", "overlap", "thresholds", "sites", "requests", "diff", "check", "jobs"],
    ),
    ("Ask", &["hang", "live", "whatif"]),
    ("Change", &["tune"]),
    ("Set up", &["doctor", "calibrate", "options", "bench", "help"]),
    ("Hand over", &["export", "sql"]),
];

/// The command line, or the end of the process with what is wrong about it, with help, or with the version.
pub fn parse() -> Cli {
    // help is laid out where something is wrong or help is asked for: that takes longer than many a command
    if let Ok(cli) = Cli::try_parse() {
        return cli;
    }
    let parsed =
        command(columns()).try_get_matches().and_then(|matches| Cli::from_arg_matches(&matches));
    parsed.unwrap_or_else(|error| {
        if let Some(text) = option_of_a_launcher(&error).or_else(|| what_is_missing(&error)) {
            usage_error(&text);
        }
        let text = match program_in_place_of_command(&error) {
            Some(program) => {
                let line =
                    std::env::args().skip(1).map(|word| shell::quote(&word)).collect::<Vec<_>>();
                usage_error(&format!(
                    "{program} is no command of lapscope; to record it: lapscope run -- {}",
                    line.join(" ")
                ))
            }
            None => error.to_string(),
        };
        // An argument may be the name of somebody's directory.
        if error.use_stderr() && text.chars().any(|letter| is_hostile(letter) && letter != '\n') {
            write_stderr(&text);
            std::process::exit(error.exit_code());
        }
        error.exit()
    })
}

/// What was typed where a command belongs, and is a program: a path, or in one of the folders of PATH.
fn program_in_place_of_command(error: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind, ContextValue};
    let typed = match error.get(ContextKind::InvalidSubcommand)? {
        ContextValue::String(typed) if error.kind() == ErrorKind::InvalidSubcommand => typed,
        _ => return None,
    };
    let is_program = typed.contains('/') || find_executable(typed.as_ref()).is_some();
    is_program.then(|| typed.clone())
}

/// `lapscope run -n 4 ./app`: what to type, where an option that only launchers have stands before any launcher.
fn option_of_a_launcher(error: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind, ContextValue};
    const LAUNCHING: [&str; 3] = ["run", "reach", "tune"];
    const OPTIONS: [&str; 5] = ["-n", "-np", "--np", "-N", "--ntasks"];
    let typed = match error.get(ContextKind::InvalidArg)? {
        ContextValue::String(typed) if error.kind() == ErrorKind::UnknownArgument => typed,
        _ => return None,
    };
    let mut words = std::env::args().skip(1);
    let command = words.next().filter(|command| LAUNCHING.contains(&command.as_str()))?;
    let line: Vec<String> = words.map(|word| shell::quote(&word)).collect();
    let is_first =
        line.first()?.starts_with(typed) && OPTIONS.iter().any(|it| it.starts_with(typed));
    is_first.then(|| {
        let line = line.join(" ");
        format!("{typed} is an option of a launcher; to record what one starts: lapscope {command} -- mpirun {line}")
    })
}

/// What a command or an option needs that was not typed, with an example from its help.
fn what_is_missing(error: &clap::Error) -> Option<String> {
    use clap::error::{ContextKind, ContextValue};
    let (command, path) = typed_command();
    match (error.kind(), error.get(ContextKind::InvalidArg)?) {
        (ErrorKind::MissingRequiredArgument, ContextValue::Strings(needed)) => {
            let help = command.get_after_help()?.to_string();
            let begin = format!("{path} ");
            let example =
                help.lines().map(str::trim_start).find(|line| line.starts_with(&begin))?;
            let example = example.split("  ").next().unwrap_or(example);
            Some(format!("{path} needs {}, as in: {example}", needed.join(" and ")))
        }
        (ErrorKind::InvalidValue, ContextValue::String(option)) if lacks_value(error) => {
            let name = option.trim_start_matches('-').split([' ', '=']).next()?;
            let option_of = |it: &&clap::Arg| it.get_long() == Some(name);
            let help = command.get_arguments().find(option_of)?.get_help()?;
            Some(format!("{option} needs a value: {help}"))
        }
        _ => None,
    }
}

fn lacks_value(error: &clap::Error) -> bool {
    use clap::error::{ContextKind, ContextValue};
    let value = error.get(ContextKind::InvalidValue);
    matches!(value, Some(ContextValue::String(value)) if value.is_empty())
}

/// The command whose arguments are on the command line, and how it is typed: `lapscope export goal`.
fn typed_command() -> (Command, String) {
    let (mut command, mut path) = (Cli::command(), "lapscope".to_owned());
    for word in std::env::args().skip(1) {
        let Some(found) = command.find_subcommand(&word).cloned() else { break };
        path = format!("{path} {}", found.get_name());
        command = found;
    }
    (command, path)
}

/// The help of lapscope, or of the command `topic`; `None`: there is no such command.
pub fn help_of(topic: Option<&str>) -> Option<String> {
    let mut root = command(columns());
    root.build();
    let command = match topic {
        Some(topic) => root.find_subcommand_mut(topic)?,
        None => &mut root,
    };
    Some(command.render_long_help().to_string())
}

/// The command line as it is described, for what is made of that.
pub fn described() -> Command {
    Cli::command()
}

/// What to say of a topic without help.
pub fn unknown_topic(topic: &str) -> clap::Error {
    let root = Cli::command();
    let commands: Vec<&str> = root
        .get_subcommands()
        .filter(|command| !command.is_hide_set())
        .map(Command::get_name)
        .collect();
    let text = format!("no help on '{topic}'; there is: terms, cures, {}", commands.join(", "));
    Cli::command().error(ErrorKind::InvalidValue, text)
}

/// Ends the process: what was typed makes no sense.
pub fn usage_error(text: &str) -> ! {
    Cli::command().error(ErrorKind::ValueValidation, text).exit()
}

fn columns() -> usize {
    stdout_columns().unwrap_or(DEFAULT_COLUMNS).min(MOST_COLUMNS)
}

fn command(columns: usize) -> Command {
    let laid_out = |command: Command| {
        let text = command.get_after_help().map(|text| layout(&text.to_string(), columns));
        match text {
            Some(text) => command.after_help(text),
            None => command,
        }
    };
    let root = laid_out(Cli::command()).mut_subcommands(laid_out).term_width(columns);
    let groups = grouped(&root, columns);
    root.help_template(format!(
        "{{about-with-newline}}\n{{usage-heading}} {{usage}}\n\n{groups}\n\nOptions:\n{{options}}{{after-help}}"
    ))
}

/// All commands, each with what it does, below a heading for each group.
fn grouped(root: &Command, columns: usize) -> String {
    let entry = |name: &&str| {
        let command = root.find_subcommand(name)?;
        Some(format!("  {name:<10}  {}", command.get_about()?))
    };
    let group = |(heading, names): &(&str, &[&str])| {
        let entries: Vec<String> = names.iter().filter_map(entry).collect();
        let entries: Vec<&str> = entries.iter().map(String::as_str).collect();
        format!(
            "{heading}:\n{}",
            entries_laid_out(&entries, Style { color: false, width: columns })
        )
    };
    GROUPS.iter().map(group).collect::<Vec<_>>().join("\n\n")
}

/// Paragraphs broken into lines of `columns`; indented lines are entries, whose explanations stand beside or below them.
fn layout(text: &str, columns: usize) -> String {
    let style = Style { color: false, width: columns };
    let mut blocks: Vec<String> = Vec::new();
    let mut lines = text.lines().peekable();
    while let Some(line) = lines.next() {
        if line.starts_with(' ') {
            let mut entries = vec![line];
            while let Some(entry) = lines.next_if(|line| line.starts_with(' ')) {
                entries.push(entry);
            }
            blocks.push(entries_laid_out(&entries, style));
            continue;
        }
        let mut paragraph = line.to_owned();
        while let Some(more) =
            lines.next_if(|more| !line.is_empty() && !more.is_empty() && !more.starts_with(' '))
        {
            paragraph += " ";
            paragraph += more;
        }
        blocks.push(style.wrap(&paragraph, "", ""));
    }
    blocks.join("\n")
}

fn entries_laid_out(entries: &[&str], style: Style) -> String {
    let split = |line: &&str| {
        let line = line.trim_start();
        let (entry, explanation) = line.split_once("  ").unwrap_or((line, ""));
        (entry.to_owned(), explanation.trim_start().to_owned())
    };
    let entries: Vec<(String, String)> = entries.iter().map(split).collect();
    let explained = entries.iter().filter(|(_, explanation)| !explanation.is_empty());
    let column = 2 + explained.map(|(entry, _)| display_width(entry)).max().unwrap_or(0) + 2;
    let is_beside = column + LEAST_COLUMNS <= style.width;
    let lines = entries.iter().map(|(entry, explanation)| {
        if explanation.is_empty() {
            style.wrap(entry, "  ", "      ")
        } else if is_beside {
            let first = format!("  {entry:<width$}", width = column - 2);
            beside(style, &first, explanation)
        } else {
            let entry = style.wrap(entry, "  ", "      ");
            format!("{entry}\n{}", style.wrap(explanation, "      ", "      "))
        }
    });
    lines.collect::<Vec<_>>().join("\n")
}

/// Style::wrap would put so deep a text below.
fn beside(style: Style, first: &str, text: &str) -> String {
    let indent = display_width(first);
    let narrow = Style { width: style.width - indent, ..style };
    let text = narrow.wrap(text, "", "");
    format!("{first}{}", text.replace('\n', &format!("\n{}", " ".repeat(indent))))
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "One paragraph that the source\nbreaks somewhere.\n\nExamples:\n  lapscope a    what it does\n  lapscope b c";

    #[test]
    fn every_command_is_in_one_group() {
        let mut grouped: Vec<&str> =
            GROUPS.iter().flat_map(|(_, names)| names.iter().copied()).collect();
        let root = Cli::command();
        let shown = root.get_subcommands().filter(|command| !command.is_hide_set());
        let mut shown: Vec<&str> = shown.map(Command::get_name).collect();
        grouped.sort_unstable();
        shown.sort_unstable();
        assert_eq!(grouped, shown);
    }

    #[test]
    fn paragraphs_are_broken_once() {
        let wide = layout(TEXT, 80);
        assert!(
            wide.starts_with("One paragraph that the source breaks somewhere.\n\nExamples:\n"),
            "{wide}"
        );
        assert!(wide.ends_with("  lapscope a  what it does\n  lapscope b c"), "{wide}");
        let narrow = layout(TEXT, 30);
        assert!(narrow.contains("\n  lapscope a\n      what it does\n"), "{narrow}");
    }

    #[test]
    fn help_fits_at_every_width() {
        for columns in [40, 60, 80, 100, 120] {
            let mut root = command(columns);
            for sub in root.get_subcommands_mut() {
                let name = sub.get_name().to_owned();
                let after = sub.get_after_help().map(ToString::to_string).unwrap_or_default();
                for line in after.lines().filter(|line| line.trim_start().contains(' ')) {
                    assert!(display_width(line) <= columns, "{name} at {columns}: {line}");
                }
                let help = sub.clone().term_width(columns).render_help().to_string();
                assert!(
                    help.contains(after.trim_end()),
                    "{name} at {columns} is broken twice:\n{help}"
                );
            }
        }
    }
}
