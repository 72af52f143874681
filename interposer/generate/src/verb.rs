//! What an entry says in front of a name: the verb, and the tag behind it.

use std::fmt;

/// What lapscope does with a call; the head of calls.def has the meanings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verb {
    Call,
    Make,
    Post,
    Init,
    Probe,
    Complete,
    Look,
    Start,
    Control,
    Bound,
}

/// As the database names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    Block,
    Manage,
    Post,
    Init,
    Probe,
    Complete,
    Control,
    Bound,
}

impl fmt::Display for Role {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(match self {
            Role::Block => "BLOCK",
            Role::Manage => "MANAGE",
            Role::Post => "POST",
            Role::Init => "INIT",
            Role::Probe => "PROBE",
            Role::Complete => "COMPLETE",
            Role::Control => "CONTROL",
            Role::Bound => "BOUND",
        })
    }
}

impl Verb {
    pub fn parse(word: &str) -> Option<Self> {
        Some(match word {
            "call" => Verb::Call,
            "make" => Verb::Make,
            "post" => Verb::Post,
            "init" => Verb::Init,
            "probe" => Verb::Probe,
            "complete" => Verb::Complete,
            "look" => Verb::Look,
            "start" => Verb::Start,
            "control" => Verb::Control,
            "bound" => Verb::Bound,
            _ => return None,
        })
    }

    pub fn role(self) -> Role {
        match self {
            Verb::Call => Role::Block,
            Verb::Make => Role::Manage,
            Verb::Post | Verb::Start => Role::Post,
            Verb::Init => Role::Init,
            Verb::Probe => Role::Probe,
            Verb::Complete | Verb::Look => Role::Complete,
            Verb::Control => Role::Control,
            Verb::Bound => Role::Bound,
        }
    }

    /// The wrapper is written by hand.
    pub fn by_hand(self) -> bool {
        matches!(self, Verb::Control | Verb::Bound)
    }
}

/// A word behind a verb: `call:buffered Bsend`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tag {
    Buffered,
    Synchronous,
    Ready,
    Partitioned,
    /// Its bytes are counted in other rows.
    Uncounted,
}

impl Tag {
    pub fn parse(word: &str) -> Option<Tag> {
        Some(match word {
            "buffered" => Tag::Buffered,
            "synchronous" => Tag::Synchronous,
            "ready" => Tag::Ready,
            "partitioned" => Tag::Partitioned,
            "uncounted" => Tag::Uncounted,
            _ => return None,
        })
    }

    pub fn mode(self) -> Option<&'static str> {
        Some(match self {
            Tag::Buffered => "buffered",
            Tag::Synchronous => "synchronous",
            Tag::Ready => "ready",
            Tag::Partitioned => "partitioned",
            Tag::Uncounted => return None,
        })
    }
}
