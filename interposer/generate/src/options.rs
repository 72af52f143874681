//! `options.def`: every variable of the recorder, as tables in C and in Rust, and as a page.

use std::collections::BTreeMap;

use crate::{banner_of, line};

/// All that the file says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Words that mean on, and off.
    pub truths: [Vec<String>; 2],
    /// Kinds of units, each with names and how many of the smallest they are.
    pub units: Vec<(String, Vec<(String, i64)>)>,
    pub options: Vec<Variable>,
}

/// A `LAPSCOPE_*` variable.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Variable {
    pub name: String,
    pub values: Values,
    /// As a user would write it; empty: not set.
    pub default: String,
    pub doc: String,
}

/// Which values are taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Values {
    Bool,
    Count {
        range: [i64; 2],
        /// What is counted: `MB`, `% of run time`.
        unit: String,
    },
    Choice(Vec<String>),
    Text(String),
    Tuples(Vec<(String, [i64; 2])>),
}

impl Variable {
    /// The name in small letters, without the prefix.
    pub fn field(&self) -> String {
        self.name.trim_start_matches("LAPSCOPE_").to_ascii_lowercase()
    }

    /// What a user is told to write.
    pub fn expected(&self) -> String {
        match &self.values {
            Values::Bool => "on|off".to_owned(),
            Values::Count { range: [low, high], unit } => format!("{low}..{high} {unit}"),
            Values::Choice(words) => words.join("|"),
            Values::Text(what) => what.clone(),
            Values::Tuples(parts) => {
                let names: Vec<&str> = parts.iter().map(|(name, _)| name.as_str()).collect();
                format!("{},...", names.join(":"))
            }
        }
    }

    fn type_name(&self) -> &'static str {
        match self.values {
            Values::Bool => "BOOL",
            Values::Count { .. } => "COUNT",
            Values::Choice(_) => "CHOICE",
            Values::Text(_) => "STRING",
            Values::Tuples(_) => "TUPLES",
        }
    }

    /// The ranges of its numbers.
    fn ranges(&self) -> Vec<[i64; 2]> {
        match &self.values {
            Values::Count { range, .. } => vec![*range],
            Values::Tuples(parts) => parts.iter().map(|(_, range)| *range).collect(),
            Values::Bool | Values::Choice(_) | Values::Text(_) => Vec::new(),
        }
    }

    /// The unit that its numbers have, as a user may write it; empty where that is none of the units.
    fn unit(&self, options: &Options) -> String {
        let Values::Count { unit, .. } = &self.values else { return String::new() };
        let name = unit.to_ascii_lowercase();
        let names = options.units.iter().flat_map(|(_, names)| names);
        names.map(|(known, _)| known).find(|known| **known == name).cloned().unwrap_or_default()
    }
}

fn range(text: &str) -> Result<[i64; 2], String> {
    let bounds = text.split_once("..").and_then(|(low, high)| {
        let (low, high) = (low.parse().ok()?, high.parse().ok()?);
        (low < high).then_some([low, high])
    });
    bounds.ok_or_else(|| format!("not LOW..HIGH: {text}"))
}

fn values(kind: &str, text: &str) -> Result<Values, String> {
    match kind {
        "bool" if text.is_empty() => Ok(Values::Bool),
        "count" => {
            let (bounds, unit) = text.split_once(' ').unwrap_or((text, ""));
            Ok(Values::Count { range: range(bounds)?, unit: unit.to_owned() })
        }
        "choice" => Ok(Values::Choice(text.split('|').map(str::to_owned).collect())),
        "string" => Ok(Values::Text(text.to_owned())),
        "tuples" => {
            let part = |part: &str| {
                let (name, bounds) = part
                    .trim()
                    .split_once(' ')
                    .ok_or_else(|| format!("not NAME LOW..HIGH: {part}"))?;
                Ok((name.to_owned(), range(bounds)?))
            };
            Ok(Values::Tuples(text.split(':').map(part).collect::<Result<_, String>>()?))
        }
        _ => Err(format!("unknown type {kind} {text}")),
    }
}

fn option(text: &str) -> Result<Variable, String> {
    let (head, default) = text.split_once('=').ok_or("no = DEFAULT")?;
    let mut words = head.trim().splitn(3, ' ');
    let name = words.next().unwrap_or_default().to_owned();
    if !name.starts_with("LAPSCOPE_") {
        return Err(format!("{name} does not begin with LAPSCOPE_"));
    }
    let kind = words.next().ok_or("no type")?;
    let values = values(kind, words.next().unwrap_or_default())?;
    Ok(Variable { name, values, default: default.trim().to_owned(), doc: String::new() })
}

fn units(text: &str) -> Result<(String, Vec<(String, i64)>), String> {
    let (kind, names) = text.split_once(' ').ok_or("no units")?;
    let name = |part: &str| {
        let unit = part.trim().split_once(' ');
        unit.and_then(|(name, size)| Some((name.to_owned(), size.parse().ok()?)))
            .ok_or_else(|| format!("not NAME SIZE: {part}"))
    };
    Ok((kind.to_owned(), names.split(',').map(name).collect::<Result<_, _>>()?))
}

/// Lines with those that are indented behind them, and the number of the first.
fn entries(text: &str) -> Vec<(usize, &str, Vec<&str>)> {
    let mut entries: Vec<(usize, &str, Vec<&str>)> = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        match (line.starts_with("    "), entries.last_mut()) {
            _ if line.starts_with('#') || line.trim().is_empty() => {}
            (true, Some((_, _, behind))) => behind.push(line.trim()),
            _ => entries.push((number, line.trim_end(), Vec::new())),
        }
    }
    entries
}

/// Reads the file.
///
/// # Errors
/// `LINE: what is wrong`.
pub fn parse(text: &str) -> Result<Options, String> {
    let mut options = Options::default();
    for (number, head, behind) in entries(text) {
        let (word, rest) = head.split_once(' ').unwrap_or((head, ""));
        let rest = rest.trim_start();
        let wrong = |problem: String| format!("{number}: {problem}");
        match word {
            "true" | "false" => {
                let words = rest.split(' ').map(str::to_owned).collect();
                options.truths[usize::from(word == "false")] = words;
            }
            "units" => {
                let whole = [&[rest], &behind[..]].concat().join(" ");
                options.units.push(units(&whole).map_err(wrong)?);
            }
            "option" => {
                let doc = behind.join(" ");
                let variable = option(rest).map_err(wrong)?;
                if doc.is_empty() {
                    return Err(wrong(format!("{} says not what it does", variable.name)));
                }
                options.options.push(Variable { doc, ..variable });
            }
            _ => return Err(wrong(format!("not understood: {word}"))),
        }
    }
    check(&options)?;
    Ok(options)
}

fn check(options: &Options) -> Result<(), String> {
    let mut seen = BTreeMap::new();
    for variable in &options.options {
        if seen.insert(&variable.name, ()).is_some() {
            return Err(format!("1: {} is there twice", variable.name));
        }
    }
    Ok(())
}

/// The table in C, for the preprocessor. Whoever includes it defines the macros that it wants.
pub fn c_table(options: &Options) -> String {
    let mut text = banner_of("Every variable, and how its values are read.", "options.def");
    for macro_name in ["OPTION", "CHOICE", "TRUTH", "UNIT"] {
        line!(&mut text, "#ifndef {macro_name}\n#define {macro_name}(...)\n#endif");
    }
    line!(&mut text, "/* OPTION(field, name, type, default, what is expected, unit of its numbers, their ranges...) */");
    for variable in &options.options {
        let ranges = variable.ranges().into_iter();
        let ranges: String = ranges.map(|[low, high]| format!(", {{{low}, {high}}}")).collect();
        line!(
            &mut text,
            "OPTION({}, {:?}, {}, {:?}, {:?}, {:?}{ranges})",
            variable.field(),
            variable.name,
            variable.type_name(),
            variable.default,
            variable.expected(),
            variable.unit(options)
        );
    }
    line!(&mut text, "/* CHOICE(constant, its place among the words of its option) */");
    for variable in &options.options {
        let Values::Choice(words) = &variable.values else { continue };
        for (place, word) in words.iter().enumerate() {
            let constant = format!("{}_{word}", variable.field()).to_ascii_uppercase();
            line!(&mut text, "CHOICE({constant}, {place})");
        }
    }
    for (value, words) in [1, 0].into_iter().zip(&options.truths) {
        for word in words {
            line!(&mut text, "TRUTH({word:?}, {value})");
        }
    }
    for (kind, names) in options.units.iter().map(|(_, names)| names).enumerate() {
        for (name, size) in names {
            line!(&mut text, "UNIT({name:?}, {kind}, INT64_C({size}))");
        }
    }
    line!(&mut text, "#undef OPTION\n#undef CHOICE\n#undef TRUTH\n#undef UNIT");
    text
}

fn rust_values(variable: &Variable, options: &Options) -> String {
    match &variable.values {
        Values::Bool => "Values::Bool".to_owned(),
        Values::Count { range: [low, high], .. } => {
            let unit = variable.unit(options);
            format!("Values::Count {{ low: {low}, high: {high}, unit: {unit:?} }}")
        }
        Values::Choice(words) => format!("Values::Choice(&{words:?})"),
        Values::Text(_) => "Values::Text".to_owned(),
        Values::Tuples(_) => {
            let ranges = variable.ranges().into_iter();
            let ranges: Vec<_> = ranges.map(|[low, high]| (low, high)).collect();
            format!("Values::Tuples(&{ranges:?})")
        }
    }
}

/// The table in Rust: constants of types that whoever includes it defines.
pub fn rust_table(options: &Options) -> String {
    let mut text = String::new();
    line!(&mut text, "/// Every variable of the recorder, in the order of `options.def`.");
    line!(&mut text, "pub const OPTIONS: &[OptionDef] = &[");
    for variable in &options.options {
        line!(
            &mut text,
            "OptionDef {{ name: {:?}, values: {}, default: {:?}, unit: {:?}, doc: {:?} }},",
            variable.name,
            rust_values(variable, options),
            variable.default,
            variable.expected(),
            variable.doc
        );
    }
    line!(&mut text, "];");
    line!(
        &mut text,
        "const TRUTHS: [&[&str]; 2] = [&{:?}, &{:?}];",
        options.truths[0],
        options.truths[1]
    );
    line!(&mut text, "const UNITS: &[&[(&str, i64)]] = &[");
    for (_, names) in &options.units {
        line!(&mut text, "&{names:?},");
    }
    line!(&mut text, "];");
    text
}

const PAGE: &str = "# Options

Each option is an environment variable of the ranks. `lapscope run --set NAME=VALUE` sets one, and
`lapscope options` prints them all with their values now. A value that is not taken is named, and
the default is used. Sizes and times may have a unit: `64k`, `2G` (times 1024), `300us`, `1ms`,
`2min`.

This page is made from `interposer/options.def`; a test holds it against that file:

    cargo run -p lapscope-generate -- . --dictionary
";

/// `docs/options.md`.
pub fn page(options: &Options) -> String {
    let mut text = PAGE.to_owned();
    line!(&mut text, "\n| variable | values | default | meaning |\n|---|---|---|---|");
    for variable in &options.options {
        let Variable { name, default, doc, .. } = variable;
        let values = variable.expected().replace('|', ", ");
        let default = if default.is_empty() { String::new() } else { format!("`{default}`") };
        line!(&mut text, "| `{name}` | {values} | {default} | {doc} |");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str =
        "# a comment\ntrue on 1\nfalse off 0\nunits bytes b 1,\n    k 1024, mb 1048576\n\n\
        option LAPSCOPE_MAX count 1..9 MB = 5\n    Says \"this\",\n    and that.\n\
        option LAPSCOPE_WHAT choice a|b = a\n    Which.\n\
        option LAPSCOPE_DIR string directory =\n    Where.\n\
        option LAPSCOPE_CLOCK tuples RANK 0..7 : PPM -3..3 =\n    For tests.\n";

    #[test]
    fn every_type_is_read() {
        let options = parse(TEXT).expect("understood");
        let [max, what, dir, clock] = &options.options[..] else { panic!("{options:?}") };
        assert_eq!((max.default.as_str(), max.doc.as_str()), ("5", "Says \"this\", and that."));
        assert_eq!(
            (max.field(), max.expected(), max.unit(&options)),
            ("max".into(), "1..9 MB".into(), "mb".into())
        );
        assert_eq!(what.values, Values::Choice(vec!["a".into(), "b".into()]));
        assert_eq!((dir.default.as_str(), dir.expected()), ("", "directory".into()));
        assert_eq!(
            (clock.expected(), clock.ranges()),
            ("RANK:PPM,...".into(), vec![[0, 7], [-3, 3]])
        );
        assert_eq!(options.units[0].1[1], ("k".into(), 1024));
    }

    #[test]
    fn both_tables_say_the_same() {
        let options = parse(TEXT).expect("understood");
        let c = c_table(&options);
        for said in [
            "OPTION(max, \"LAPSCOPE_MAX\", COUNT, \"5\", \"1..9 MB\", \"mb\", {1, 9})\n",
            "OPTION(clock, \"LAPSCOPE_CLOCK\", TUPLES, \"\", \"RANK:PPM,...\", \"\", {0, 7}, {-3, 3})\n",
            "CHOICE(WHAT_B, 1)\n",
            "TRUTH(\"off\", 0)\n",
            "UNIT(\"k\", 0, INT64_C(1024))\n",
        ] {
            assert!(c.contains(said), "{said}\n{c}");
        }
        let rust = rust_table(&options);
        assert!(rust.contains("values: Values::Count { low: 1, high: 9, unit: \"mb\" }"), "{rust}");
        assert!(rust.contains("Values::Tuples(&[(0, 7), (-3, 3)])"), "{rust}");
    }

    #[test]
    fn the_page_has_a_row_for_each_option() {
        let page = page(&parse(TEXT).expect("understood"));
        assert!(
            page.contains("\n| `LAPSCOPE_MAX` | 1..9 MB | `5` | Says \"this\", and that. |\n"),
            "{page}"
        );
        assert!(page.contains("\n| `LAPSCOPE_WHAT` | a, b | `a` | Which. |\n"), "{page}");
        assert!(page.contains("\n| `LAPSCOPE_DIR` | directory |  | Where. |\n"), "{page}");
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, said) in [
            ("\noption LAPSCOPE_A bool on\n    x\n", "2: no = DEFAULT"),
            ("option LAPSCOPE_A word = \n    x\n", "1: unknown type word "),
            ("option A bool = on\n    x\n", "1: A does not begin with LAPSCOPE_"),
            ("option LAPSCOPE_A bool = on\n", "1: LAPSCOPE_A says not what it does"),
            ("option LAPSCOPE_A count 5..2 MB = 3\n    x\n", "1: not LOW..HIGH: 5..2"),
            ("units bytes b one\n", "1: not NAME SIZE: b one"),
            ("opton\n", "1: not understood: opton"),
        ] {
            assert_eq!(parse(text).expect_err(text), said);
        }
    }
}
