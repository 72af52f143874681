//! Reads `interposer/options.def`. Compiled twice: into the build script, which turns the file into a table, and into
//! the library, for the tests and the types.

/// A `LAPSCOPE_*` variable.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionDef<S> {
    pub name: S,
    pub kind: OptionKind,
    /// As a user would write it.
    pub default: S,
    /// `on|off`, `1..128 frames`, `auto|tsc|monotonic`, or what the value is.
    pub unit: S,
    pub doc: S,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum OptionKind {
    Bool,
    Count,
    Choice,
    String,
    /// `RANK:MICROSECONDS:PPM`, several separated by commas.
    Clocks,
}

impl OptionKind {
    fn parse(word: &str) -> Option<OptionKind> {
        Some(match word {
            "BOOL" => OptionKind::Bool,
            "COUNT" => OptionKind::Count,
            "CHOICE" => OptionKind::Choice,
            "STRING" => OptionKind::String,
            "CLOCKS" => OptionKind::Clocks,
            _ => return None,
        })
    }
}

/// Every `OPTION(...)` of the text, in its order. Comments may stand anywhere.
///
/// # Errors
/// A sentence with the line number, when an entry is not of the form that the file's head describes.
pub fn parse(text: &str) -> Result<Vec<OptionDef<String>>, String> {
    let text = blank_comments(text);
    let mut options = Vec::new();
    let mut rest = text.as_str();
    while let Some(at) = rest.find("OPTION(") {
        let line = text[..text.len() - rest.len() + at].matches('\n').count() + 1;
        let (fields, behind) =
            split_fields(&rest[at + 7..]).ok_or_else(|| format!("line {line}: no closing )"))?;
        options.push(entry(&fields).map_err(|problem| format!("line {line}: {problem}"))?);
        rest = behind;
    }
    Ok(options)
}

fn entry(fields: &[String]) -> Result<OptionDef<String>, String> {
    let [_, name, kind, default, unit, doc] = fields else {
        return Err(format!("{} fields, expected 6", fields.len()));
    };
    let kind = OptionKind::parse(kind).ok_or_else(|| format!("unknown type {kind}"))?;
    if !name.starts_with("LAPSCOPE_") {
        return Err(format!("{name} does not begin with LAPSCOPE_"));
    }
    Ok(OptionDef {
        name: name.clone(),
        kind,
        default: default.clone(),
        unit: unit.clone(),
        doc: doc.clone(),
    })
}

/// C comments outside of strings become blanks; line ends stay, for line numbers.
fn blank_comments(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    let (mut in_string, mut comment) = (false, None);
    while let Some(c) = chars.next() {
        match comment {
            Some('*') if c == '*' && chars.peek() == Some(&'/') => {
                chars.next();
                comment = None;
            }
            Some('/') if c == '\n' => comment = None,
            Some(_) => {}
            None if !in_string && c == '/' && matches!(chars.peek(), Some('*' | '/')) => {
                comment = chars.next();
            }
            None => {
                out.push(c);
                if in_string && c == '\\' {
                    out.extend(chars.next());
                } else if c == '"' {
                    in_string = !in_string;
                }
                continue;
            }
        }
        if c == '\n' {
            out.push('\n');
        }
    }
    out
}

/// The fields up to the closing bracket, strings without their quotes and joined where C would join them; and what
/// follows. `None` when the bracket never closes.
fn split_fields(text: &str) -> Option<(Vec<String>, &str)> {
    let mut fields = vec![String::new()];
    let mut chars = text.char_indices();
    let mut in_string = false;
    while let Some((at, c)) = chars.next() {
        let field = fields.last_mut().expect("never empty");
        match c {
            '"' => in_string = !in_string,
            '\\' if in_string => field.extend(chars.next().map(|(_, escaped)| escaped)),
            _ if in_string => field.push(c),
            ',' => fields.push(String::new()),
            ')' => return Some((fields, &text[at + 1..])),
            _ if c.is_whitespace() => {}
            _ => field.push(c),
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn entries_with_commas_brackets_quotes_and_comments() {
        let text = r#"
            /* OPTION(no, "LAPSCOPE_NO", BOOL, "", "", "") */
            OPTION(a_b,  "LAPSCOPE_A_B", COUNT,"5" , "1..9 MB", "Says (\"this\"), and // that." " And more.") // end
            OPTION(c, "LAPSCOPE_C", STRING, "",
                   "directory", "Over two lines.")"#;
        let options = parse(text).unwrap();
        assert_eq!(options.len(), 2);
        assert_eq!(options[0].name, "LAPSCOPE_A_B");
        assert_eq!(options[0].kind, OptionKind::Count);
        assert_eq!(options[0].default, "5");
        assert_eq!(options[0].unit, "1..9 MB");
        assert_eq!(options[0].doc, "Says (\"this\"), and // that. And more.");
        assert_eq!((options[1].default.as_str(), options[1].unit.as_str()), ("", "directory"));
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        let error = |text| parse(text).unwrap_err();
        assert_eq!(error("\nOPTION(a, \"LAPSCOPE_A\", BOOL)"), "line 2: 3 fields, expected 6");
        assert_eq!(
            error("OPTION(a, \"LAPSCOPE_A\", WORD, \"\", \"\", \"\")"),
            "line 1: unknown type WORD"
        );
        assert_eq!(
            error("/*\n*/\nOPTION(a, \"A\", BOOL, \"\", \"\", \"\")"),
            "line 3: A does not begin with LAPSCOPE_"
        );
        assert_eq!(error("OPTION(a, \"LAPSCOPE_A"), "line 1: no closing )");
    }

    #[test]
    fn the_real_file_parses() {
        let options = parse(include_str!("../../../interposer/options.def")).unwrap();
        let max_mb = options.iter().find(|option| option.name == "LAPSCOPE_MAX_MB").unwrap();
        assert_eq!((max_mb.kind, max_mb.default.as_str()), (OptionKind::Count, "512"));
        assert!(options.iter().all(|option| !option.doc.is_empty()));
    }
}
