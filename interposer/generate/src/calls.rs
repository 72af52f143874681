//! The description: entries of calls.def, one [`Call`] for each name and size of counts.

use std::collections::BTreeSet;

use crate::clauses::Clauses;
use crate::facts::{self, Facts};
use crate::kind::{self, Kind};
use crate::verb::{Role, Tag, Verb};

/// A parameter.
#[derive(Clone, Debug)]
pub struct Param {
    pub kind: &'static Kind,
    pub name: String,
}

/// One call.
#[derive(Clone, Debug)]
pub struct Call {
    /// The name in C: `MPI_Isend_c`.
    pub name: String,
    pub family: String,
    pub verb: Verb,
    pub role: Role,
    pub params: Vec<Param>,
    /// The variable arguments of `MPI_Pcontrol`.
    pub variadic: bool,
    /// This is the large-count form.
    pub large: bool,
    pub clauses: Clauses,
    pub facts: Facts,
}

impl Call {
    /// The parameter of a kind.
    pub fn param(&self, kind: &str) -> Option<&Param> {
        self.params.iter().find(|param| param.kind.name == kind)
    }

    /// Whether a clause speaks of a name.
    pub fn mentions(&self, name: &str) -> bool {
        self.clauses.all().iter().any(|clause| words(clause).any(|word| word == name))
    }
}

/// The identifiers of a piece of C.
fn words(text: &str) -> impl Iterator<Item = &str> {
    text.split(|letter: char| !letter.is_alphanumeric() && letter != '_')
}

/// A verb with the parameters it appends, a tag, and a name: `post+request:buffered Ibsend`.
struct Form<'a> {
    verb: Verb,
    appended: Vec<&'a str>,
    tag: Option<Tag>,
    name: &'a str,
}

fn parse_form(text: &str) -> Option<Form<'_>> {
    let (verb, name) = text.split_once(' ')?;
    let (verb, tag) = match verb.split_once(':') {
        Some((verb, tag)) => (verb, Some(Tag::parse(tag)?)),
        None => (verb, None),
    };
    let mut parts = verb.split('+');
    let verb = Verb::parse(parts.next()?)?;
    let is_name = name.chars().all(|letter| letter.is_alphanumeric() || letter == '_');
    is_name.then(|| Form { verb, appended: parts.collect(), tag, name })
}

fn appended(name: &str) -> Option<Param> {
    let kind = match name {
        "status" => "status*",
        "request" => "request*",
        "flag" => "flag*",
        "info" => "info",
        _ => return None,
    };
    Some(Param { kind: kind::find(kind)?, name: name.to_owned() })
}

fn parse_params(text: &str) -> Result<(Vec<Param>, bool), String> {
    let mut params = Vec::new();
    let mut variadic = false;
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        if part == "..." {
            variadic = true;
            continue;
        }
        let (kind, name) =
            part.split_once(' ').ok_or_else(|| format!("not `KIND NAME`: {part}"))?;
        let kind = kind::find(kind).ok_or_else(|| format!("no such kind of parameter: {kind}"))?;
        params.push(Param { kind, name: name.trim().to_owned() });
    }
    Ok((params, variadic))
}

/// An entry with its clauses, as calls.
fn parse_entry(family: &str, head: &str, clauses: &Clauses) -> Result<Vec<Call>, String> {
    let (forms, rest) = head.split_once('(').ok_or("an entry needs (parameters)")?;
    let (params, options) = rest.rsplit_once(')').ok_or("an entry needs (parameters)")?;
    let (params, variadic) = parse_params(params)?;
    let sizes: &[bool] = match options.trim() {
        "" => &[false],
        "large" => &[false, true],
        other => return Err(format!("not understood: {other}")),
    };
    let mut calls = Vec::new();
    for form in forms.split(',').map(str::trim) {
        let form = parse_form(form).ok_or_else(|| format!("not `VERB NAME`: {form}"))?;
        let facts = Facts::for_call(form.verb, form.tag, clauses)
            .map_err(|error| format!("MPI_{}: {error}", form.name))?;
        let mut params = params.clone();
        for name in form.appended {
            params.push(appended(name).ok_or_else(|| format!("nothing to append: {name}"))?);
        }
        for &large in sizes {
            calls.push(Call {
                name: format!("MPI_{}{}", form.name, if large { "_c" } else { "" }),
                family: family.to_owned(),
                verb: form.verb,
                role: form.verb.role(),
                params: params.clone(),
                variadic,
                large,
                clauses: clauses.clone(),
                facts: facts.clone(),
            });
        }
    }
    Ok(calls)
}

/// Lines of the file put together: `(number, head, clauses)` for each entry, `(number, [FAMILY], ..)` for each family.
fn entries(text: &str) -> Result<Vec<(usize, String, Clauses)>, String> {
    let mut found: Vec<(usize, String, Clauses)> = Vec::new();
    let mut open = false; // the last head goes on in the next line
    for (index, line) in text.lines().enumerate() {
        let number = index + 1;
        if line.starts_with('#') || line.trim().is_empty() {
            continue;
        }
        let trimmed = line.trim();
        if let Some((_, head, _)) = found.last_mut().filter(|_| open) {
            head.push(' ');
            head.push_str(trimmed);
        } else if line.starts_with("    ") {
            let (name, clause) = trimmed
                .split_once(": ")
                .ok_or_else(|| format!("{number}: not `CLAUSE: C`: {trimmed}"))?;
            let (_, _, clauses) =
                found.last_mut().ok_or_else(|| format!("{number}: a clause of no call"))?;
            let place =
                clauses.at(name).ok_or_else(|| format!("{number}: no such clause: {name}"))?;
            *place = clause.to_owned();
            continue;
        } else {
            found.push((number, trimmed.to_owned(), Clauses::default()));
        }
        let head = &found.last().expect("just made").1;
        open = !head.starts_with('[') && !head.contains(')');
    }
    Ok(found)
}

/// All calls in the order of the file; a call's place is its number.
///
/// # Errors
/// `LINE: what is wrong`.
pub fn parse(text: &str) -> Result<Vec<Call>, String> {
    let mut calls = Vec::new();
    let mut family = String::new();
    for (number, head, clauses) in entries(text)? {
        if let Some(name) = head.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            name.clone_into(&mut family);
            continue;
        }
        calls.extend(
            parse_entry(&family, &head, &clauses).map_err(|error| format!("{number}: {error}"))?,
        );
    }
    name_blocking(&mut calls);
    let mut seen = BTreeSet::new();
    match calls.iter().find(|call| !seen.insert(call.name.clone())) {
        Some(twice) => Err(format!("1: {} is there twice", twice.name)),
        None => Ok(calls),
    }
}

/// Tells each call which one does the same and returns when it is done.
fn name_blocking(calls: &mut [Call]) {
    let names: BTreeSet<String> = calls.iter().map(|call| call.name.clone()).collect();
    for call in calls {
        call.facts.blocking = facts::blocking_name(&call.name, |name| names.contains(name));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "# a comment\n[POINT_TO_POINT]\ncall Send,\npost+request Isend\n(in buf, count count, comm comm) large\n    message: to(dest)\n    bytes: 3 * count\n\n[OTHER]\ncontrol Pcontrol(int level, ...)\n";

    #[test]
    fn each_name_and_size_is_a_call() {
        let calls = parse(TEXT).expect("understood");
        let names: Vec<_> = calls.iter().map(|call| call.name.as_str()).collect();
        assert_eq!(names, ["MPI_Send", "MPI_Send_c", "MPI_Isend", "MPI_Isend_c", "MPI_Pcontrol"]);
        assert_eq!(calls[2].family, "POINT_TO_POINT");
        assert_eq!(calls[2].role, Role::Post);
        assert!(calls[4].variadic && calls[4].family == "OTHER");
    }

    #[test]
    fn appended_parameters_come_last() {
        let calls = parse(TEXT).expect("understood");
        assert_eq!(calls[0].params.len(), 3);
        assert_eq!(calls[2].params.last().expect("parameters").kind.name, "request*");
    }

    #[test]
    fn clauses_belong_to_all_names_of_an_entry() {
        let calls = parse(TEXT).expect("understood");
        assert_eq!(calls[1].clauses.message, "to(dest)");
        assert!(
            calls[3].mentions("count") && !calls[3].mentions("comm") && !calls[3].mentions("coun")
        );
    }

    #[test]
    fn mistakes_are_named_with_their_line() {
        for (text, said) in [
            ("[A]\ncall Send(inn buf)\n", "2: no such kind of parameter: inn"),
            ("[A]\nbcall Send(in buf)\n", "2: not `VERB NAME`: bcall Send"),
            ("[A]\ncall Send(in buf)\n    mesage: x\n", "3: no such clause: mesage"),
            ("    bytes: x\n", "1: a clause of no call"),
            ("[A]\ncall A()\ncall A()\n", "1: MPI_A is there twice"),
            ("[A]\ncall A() huge\n", "2: not understood: huge"),
        ] {
            assert_eq!(parse(text).expect_err(text), said);
        }
    }
}
