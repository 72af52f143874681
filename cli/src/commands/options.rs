//! `lapscope options`: every variable, its default, its value now and whether that is valid.

use std::io::{self, Write};
use std::process::ExitCode;

use serde::Serialize;

use crate::args::OptionsArgs;
use lapscope_data::options::{is_valid, nearest, OptionDef, OPTIONS, OWN_VARIABLES};
use lapscope_data::text::style::Style;
use lapscope_show::format::{self, Document};

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
struct OptionsOutput {
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
    let mut answer = OptionsOutput { options: options_now(), unknown: unknown_variables() };
    format::print(&mut answer, args.format)?;
    Ok(ExitCode::SUCCESS)
}

impl Document for OptionsOutput {
    fn write_text(&mut self, out: &mut dyn Write, style: Style) -> anyhow::Result<()> {
        Ok(write_text(out, self, style)?)
    }

    fn write_json(&mut self, out: &mut dyn Write) -> anyhow::Result<()> {
        format::write_json(self, out)
    }
}

fn options_now() -> Vec<OptionNow> {
    let now = |option: &OptionDef| {
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

fn write_text(out: &mut dyn Write, answer: &OptionsOutput, style: Style) -> io::Result<()> {
    let mut line = |text: &str, first: &str| writeln!(out, "{}", style.wrap(text, first, "    "));
    for option in &answer.options {
        let default = if option.default.is_empty() { "not set" } else { option.default };
        line(&format!("{}  ({}; default: {default})", option.name, option.unit), "")?;
        line(option.doc, "    ")?;
        match (&option.value, option.valid) {
            (None, _) => {}
            (Some(value), true) => line(&format!("now: {value}"), "    ")?,
            (Some(value), false) => {
                let text = format!("now: {value}, which is not valid: the default will be used");
                line(&text, "    ")?;
            }
        }
    }
    for unknown in &answer.unknown {
        let guess =
            unknown.nearest.map(|name| format!("; did you mean {name}?")).unwrap_or_default();
        line(&format!("{} is set but means nothing to lapscope{guess}", unknown.name), "")?;
    }
    let how = "Set them in the environment, or for one run: lapscope run --set NAME=VALUE -- ...";
    line(how, "\n")?;
    line("Sizes and times may have a unit: 64k, 2M (times 1024), 300us, 1ms, 2s.", "")
}
