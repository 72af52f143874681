//! What a call is, as the database's table `call_name` says it: from the entry's clauses, its verb and its tag.

use crate::clauses::{Clause, Clauses};
use crate::verb::{Tag, Verb};

/// The columns of `call_name` behind its name, family and role; schema/README.md has the meanings.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Facts {
    pub kind: &'static str,
    pub transfers: Option<&'static str>,
    pub mode: Option<&'static str>,
    pub counted: bool,
    pub needs: Option<&'static str>,
    pub completes: Option<&'static str>,
    pub blocking: String,
}

impl Facts {
    /// What an entry says of a call; who blocks in its stead is not known yet.
    ///
    /// # Errors
    /// A clause is missing, or it is no word for that.
    pub fn for_call(verb: Verb, tag: Option<Tag>, clauses: &Clauses) -> Result<Facts, String> {
        let kind = kind_of(&clauses.message);
        let transfers = match (verb, kind) {
            (Verb::Probe, _) => None,
            (Verb::Start, _) => Some("started"),
            (_, "send") if !clauses.receive.is_empty() => Some("both"),
            (_, "send") => Some("send"),
            (_, "recv") => Some("receive"),
            _ => None,
        };
        let sends = matches!(transfers, Some("send" | "both"));
        let needs = word(Clause::Needs, clauses, kind == "collective")?;
        Ok(Facts {
            kind,
            transfers,
            mode: tag.and_then(Tag::mode).or(sends.then_some("standard")),
            counted: !matches!(verb, Verb::Init | Verb::Probe) && tag != Some(Tag::Uncounted),
            needs,
            completes: word(Clause::Completes, clauses, verb == Verb::Complete)?,
            blocking: String::new(),
        })
    }

    /// Names and values in the order of the table.
    pub fn columns(&self) -> [(&'static str, Option<String>); 7] {
        let own = |value: Option<&str>| value.map(str::to_owned);
        [
            ("usual_kind", own(Some(self.kind))),
            ("transfers", own(self.transfers)),
            ("mode", own(self.mode)),
            ("counted", Some(u8::from(self.counted).to_string())),
            ("needs", own(self.needs)),
            ("completes", own(self.completes)),
            ("blocking", own(Some(&self.blocking))),
        ]
    }
}

/// The kind of the operations that a call makes, as its clause `message` says by its first word.
fn kind_of(message: &str) -> &'static str {
    match message.split('(').next().unwrap_or_default() {
        "to" => "send",
        "from" | "matched_take" => "recv",
        "rooted" | "unrooted" => "collective",
        "rma" => "rma",
        "io" => "io",
        "generalized" => "generalized",
        _ => "other",
    }
}

fn word(clause: Clause, clauses: &Clauses, wanted: bool) -> Result<Option<&'static str>, String> {
    let text = clauses.facts[clause as usize].as_str();
    let known = clause.words().iter().find(|word| **word == text);
    match (known, text.is_empty(), wanted) {
        (Some(word), _, true) => Ok(Some(word)),
        (None, true, false) => Ok(None),
        (None, true, true) => {
            Err(format!("needs a clause that says which of {:?}", clause.words()))
        }
        (None, false, _) => Err(format!("{text} is none of {:?}", clause.words())),
        (Some(_), _, false) => Err(format!("a clause that says {text} is not for it")),
    }
}

/// The call that does the same and returns when it is done: `MPI_Allreduce` of `MPI_Iallreduce`, `MPI_Allreduce_init`
/// and their large forms, `MPI_File_read` of `MPI_File_iread`. The call itself where there is none.
pub fn blocking_name(call: &str, exists: impl Fn(&str) -> bool) -> String {
    let small = call.strip_suffix("_c").filter(|name| exists(name)).unwrap_or(call);
    let name = small.trim_start_matches("MPI_");
    let name = name.strip_suffix("_init").unwrap_or(name);
    let shorter = match (name.strip_prefix('I'), name.split_once("_i")) {
        (Some(rest), _) => capitalized(rest),
        (None, Some((object, rest))) => format!("{object}_{rest}"),
        (None, None) => name.to_owned(),
    };
    let blocking = format!("MPI_{shorter}");
    if exists(&blocking) {
        blocking
    } else {
        small.to_owned()
    }
}

fn capitalized(word: &str) -> String {
    let mut letters = word.chars();
    let first = letters.next().map(|first| first.to_ascii_uppercase());
    first.into_iter().chain(letters).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::parse;

    fn facts(text: &str) -> Facts {
        parse(text).expect("understood").pop().expect("a call").facts
    }

    #[test]
    fn sends_have_modes_and_directions() {
        let send = |verb: &str| facts(&format!("[A]\n{verb} Send(in buf)\n    message: to(x)\n"));
        assert_eq!((send("call").mode, send("call").transfers), (Some("standard"), Some("send")));
        assert_eq!(send("post+request:buffered").mode, Some("buffered"));
        let prepared = send("init+request:partitioned");
        assert_eq!((prepared.mode, prepared.counted), (Some("partitioned"), false));
        let both = facts("[A]\ncall Sendrecv(in buf)\n    message: to(x)\n    receive: from(y)\n");
        assert_eq!((both.transfers, both.kind), (Some("both"), "send"));
        let asks = facts("[A]\nprobe Probe(int tag)\n    message: from(x)\n");
        assert_eq!((asks.transfers, asks.mode, asks.kind), (None, None, "recv"));
    }

    #[test]
    fn collectives_say_what_they_need() {
        let collective = |clause: &str| {
            parse(&format!("[A]\ncall Bcast(comm comm)\n    message: rooted(0)\n{clause}"))
        };
        let facts = collective("    needs: root\n").expect("understood").remove(0).facts;
        assert_eq!((facts.needs, facts.kind), (Some("root"), "collective"));
        let said = |clause| collective(clause).expect_err("a mistake");
        assert!(said("").contains("MPI_Bcast: needs a clause"), "{}", said(""));
        assert!(said("    needs: some\n").contains("some is none of"));
    }

    #[test]
    fn blocking_names() {
        const NAMES: [&str; 6] = [
            "MPI_Allreduce",
            "MPI_Bcast",
            "MPI_Ibcast_c",
            "MPI_Ibcast",
            "MPI_Comm_dup",
            "MPI_File_read",
        ];
        let of = |call| blocking_name(call, |name| NAMES.contains(&name));
        for (call, blocking) in [
            ("MPI_Iallreduce", "MPI_Allreduce"),
            ("MPI_Allreduce_init", "MPI_Allreduce"),
            ("MPI_Ibcast_c", "MPI_Bcast"),
            ("MPI_Bcast", "MPI_Bcast"),
            ("MPI_Comm_idup", "MPI_Comm_dup"),
            ("MPI_File_iread", "MPI_File_read"),
            ("MPI_Init", "MPI_Init"),
            ("MPI_Intercomm_create", "MPI_Intercomm_create"),
            ("MPI_Psend_init", "MPI_Psend_init"),
        ] {
            assert_eq!(of(call), blocking);
        }
    }
}
