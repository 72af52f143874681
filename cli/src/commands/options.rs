//! `lapscope options`: every variable, its default, its value now and whether that is valid.

use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;

use crate::args::{OptionsArgs, TextOrJson};
use crate::options::{is_valid, nearest, OPTIONS, OWN_VARIABLES};

#[derive(Serialize)]
struct OptionNow {
    name: &'static str,
    default: &'static str,
    unit: &'static str,
    doc: &'static str,
    /// In the environment; null when not set.
    value: Option<String>,
    /// Whether the recorder takes `value`; with false it uses the default.
    valid: bool,
}

#[derive(Serialize)]
struct Answer {
    options: Vec<OptionNow>,
    /// LAPSCOPE_ variables in the environment that mean nothing.
    unknown: Vec<Unknown>,
}

/// A LAPSCOPE_ variable in the environment that mean nothing to lapscope.
#[derive(Debug, Serialize)]
pub struct Unknown {
    pub name: String,
    /// The known name that is nearest.
    pub nearest: Option<&'static str>,
}

/// # Errors
/// Standard output cannot be written.
pub fn run(args: &OptionsArgs) -> anyhow::Result<ExitCode> {
    let answer = Answer { options: options_now(), unknown: unknown_variables() };
    let mut out = io::stdout().lock();
    match args.format {
        TextOrJson::Json => {
            serde_json::to_writer_pretty(&mut out, &answer)?;
            writeln!(out)?;
        }
        TextOrJson::Text => print_text(&mut out, &answer)?,
    }
    Ok(ExitCode::SUCCESS)
}

fn options_now() -> Vec<OptionNow> {
    let now = |option: &crate::options_def::OptionDef<&'static str>| {
        // As the recorder: an empty value is no value.
        let value = std::env::var_os(option.name).filter(|value| !value.is_empty());
        let value = value.map(|value| value.to_string_lossy().into_owned());
        OptionNow {
            name: option.name,
            default: option.default,
            unit: option.unit,
            doc: option.doc,
            valid: value.as_ref().map_or(true, |value| is_valid(option, value)),
            value,
        }
    };
    OPTIONS.iter().map(now).collect()
}

/// LAPSCOPE_ variables in the environment that nobody reads: most likely misspelt.
pub fn unknown_variables() -> Vec<Unknown> {
    let mut unknown: Vec<Unknown> = std::env::vars_os()
        .filter_map(|(name, _)| name.into_string().ok())
        .filter(|name| name.starts_with("LAPSCOPE_"))
        .filter(|name| !OPTIONS.iter().any(|option| option.name == name))
        .filter(|name| !OWN_VARIABLES.contains(&name.as_str()))
        .map(|name| Unknown { nearest: nearest(&name), name })
        .collect();
    unknown.sort_by(|a, b| a.name.cmp(&b.name));
    unknown
}

fn print_text(out: &mut impl Write, answer: &Answer) -> io::Result<()> {
    let width =
        terminal_size::terminal_size().map_or(100, |(width, _)| usize::from(width.0)).max(40);
    for option in &answer.options {
        let default = if option.default.is_empty() { "not set" } else { option.default };
        writeln!(out, "{}  ({}; default: {default})", option.name, option.unit)?;
        for line in wrap(option.doc, width - 4) {
            writeln!(out, "    {line}")?;
        }
        match (&option.value, option.valid) {
            (None, _) => {}
            (Some(value), true) => writeln!(out, "    now: {value}")?,
            (Some(value), false) => {
                writeln!(out, "    now: {value}, which is not valid: the default will be used")?;
            }
        }
    }
    for unknown in &answer.unknown {
        let guess =
            unknown.nearest.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
        writeln!(out, "{} is set but means nothing to lapscope{guess}", unknown.name)?;
    }
    writeln!(
        out,
        "\nSet them in the environment, or for one run: lapscope run --set NAME=VALUE -- ..."
    )
}

/// Breaks `text` at blanks into lines of at most `width` characters, where words allow.
fn wrap(text: &str, width: usize) -> Vec<String> {
    let mut lines: Vec<String> = vec![String::new()];
    for word in text.split_whitespace() {
        let line = lines.last_mut().expect("never empty");
        if line.is_empty() {
            line.push_str(word);
        } else if line.len() + 1 + word.len() <= width {
            line.push(' ');
            line.push_str(word);
        } else {
            lines.push(word.to_owned());
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    #[test]
    fn wrapping_keeps_words_whole() {
        assert_eq!(super::wrap("one two three", 8), ["one two", "three"]);
        assert_eq!(super::wrap("incomprehensible", 4), ["incomprehensible"]);
    }
}
