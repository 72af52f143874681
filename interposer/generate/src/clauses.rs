//! What an entry says in the lines below its head.

/// A clause that is one word; the head of calls.def has the meanings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clause {
    Needs,
    Completes,
}

impl Clause {
    pub const COUNT: usize = 2;

    pub fn parse(name: &str) -> Option<Clause> {
        match name {
            "needs" => Some(Clause::Needs),
            "completes" => Some(Clause::Completes),
            _ => None,
        }
    }

    pub fn words(self) -> &'static [&'static str] {
        match self {
            Clause::Needs => &["all", "root", "all_at_root", "lower", "neighbors"],
            Clause::Completes => &["one", "all", "any", "some"],
        }
    }
}

/// What a wrapper does besides calling; empty where nothing is said.
#[derive(Clone, Debug, Default)]
pub struct Clauses {
    pub message: String,
    pub bytes: String,
    pub receive: String,
    pub received: String,
    pub before: String,
    pub after: String,
    pub made: String,
    pub sends: String,
    pub receives: String,
    pub copies: String,
    pub settles: String,
    /// Not C: of what kind the call is.
    pub facts: [String; Clause::COUNT],
}

impl Clauses {
    pub fn at(&mut self, name: &str) -> Option<&mut String> {
        if let Some(clause) = Clause::parse(name) {
            return Some(&mut self.facts[clause as usize]);
        }
        Some(match name {
            "message" => &mut self.message,
            "bytes" => &mut self.bytes,
            "receive" => &mut self.receive,
            "received" => &mut self.received,
            "before" => &mut self.before,
            "after" => &mut self.after,
            "made" => &mut self.made,
            "sends" => &mut self.sends,
            "receives" => &mut self.receives,
            "copies" => &mut self.copies,
            "settles" => &mut self.settles,
            _ => return None,
        })
    }

    /// Those that are C.
    pub fn all(&self) -> [&str; 11] {
        [
            &self.message,
            &self.bytes,
            &self.receive,
            &self.received,
            &self.before,
            &self.after,
            &self.made,
            &self.sends,
            &self.receives,
            &self.copies,
            &self.settles,
        ]
    }
}
