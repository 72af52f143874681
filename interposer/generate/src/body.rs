//! The body of a wrapper: guard, stamp, the real call, stamp, one record. The same in C and in Fortran but for how the
//! real call is made and how handles are read.

use crate::calls::{Call, Param};
use crate::kind::Load;
use crate::line;
use crate::tables::fortran_name;
use crate::verb::Verb;

/// Who calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Language {
    C,
    Fortran,
}

/// Writes one wrapper's body.
pub struct Body<'a> {
    pub call: &'a Call,
    pub language: Language,
}

impl Body<'_> {
    /// The arguments of the real call: the wrapper's own.
    pub fn arguments(&self) -> String {
        self.arguments_but(|_| None)
    }

    /// The same, with another value for some of them.
    pub fn arguments_but(&self, other: impl Fn(&Param) -> Option<&'static str>) -> String {
        let params = self.call.params.iter();
        let own = |param: &Param, name: String| other(param).map_or(name, str::to_owned);
        if self.language == Language::C {
            return params
                .map(|param| own(param, param.name.clone()))
                .collect::<Vec<_>>()
                .join(", ");
        }
        let mut names: Vec<String> = params
            .clone()
            .filter(|param| !param.kind.fortran.is_empty())
            .map(|param| own(param, fortran_name(param)))
            .collect();
        names.push("ierror".to_owned());
        names.extend(
            params.filter(|param| param.kind.is_text).map(|param| format!("{}_length", param.name)),
        );
        names.join(", ")
    }

    /// Who has called the wrapper, which in Fortran is another function.
    fn caller(&self) -> &'static str {
        match self.language {
            Language::C => "CALLER()",
            Language::Fortran => "caller",
        }
    }

    /// The real call, with its error code in `error`.
    fn real_call(&self, text: &mut String) {
        let arguments = self.arguments();
        if self.language == Language::C {
            line!(text, "    int error = REAL(C_{})({arguments});", self.call.name);
        } else {
            line!(text, "    real({arguments});");
        }
    }

    /// A clause in terms of what the wrapper has.
    pub fn clause(&self, clause: &str) -> String {
        let mut text = clause.replace("call,", &format!("CALL_{},", self.call.name));
        for param in &self.call.params {
            let behind = format!("*{}", param.name);
            if let (Language::Fortran, Load::HandleBehind(f2c)) = (self.language, param.kind.load) {
                text = text.replace(&behind, &format!("{f2c}(*{})", param.name));
            }
        }
        text
    }

    /// The parameter through which a handle is read before the call, which may be a null pointer.
    fn read_before(&self) -> Option<&Param> {
        let clauses = [&self.call.clauses.before, &self.call.clauses.message];
        self.call.params.iter().find(|param| {
            matches!(param.kind.load, Load::HandleBehind(_))
                && (matches!(self.call.verb, Verb::Complete | Verb::Look)
                    || clauses.iter().any(|clause| clause.contains(&format!("*{}", param.name))))
        })
    }

    /// How the wrapper finds the thread's record.
    pub fn enter(&self) -> &'static str {
        match self.call.verb {
            // what is made has to be known also when its making is not to be recorded, and so has what ends
            Verb::Make | Verb::Init => "enter()",
            Verb::Complete | Verb::Look => "enter_unless_asleep()",
            _ => "enter_unless_paused()",
        }
    }

    /// In C; in Fortran who calls the body has entered.
    fn guard(&self, text: &mut String) {
        let enter = self.enter();
        match self.read_before() {
            Some(param) => {
                line!(text, "    struct thread *t = {} ? {enter} : NULL;", param.name);
            }
            None => line!(text, "    struct thread *t = {enter};"),
        }
        line!(text, "    if (!t) {{");
        line!(text, "        return REAL(C_{})({});", self.call.name, self.arguments());
        line!(text, "    }}");
    }

    /// Fortran's arguments as C has them, as far as a clause speaks of them.
    pub fn load(&self, text: &mut String) {
        if self.language == Language::C {
            return;
        }
        line!(text, "    MPI_Fint own_error = MPI_SUCCESS;");
        line!(text, "    ierror = ierror ? ierror : &own_error; /* OPTIONAL in mpi_f08 */");
        for param in self.call.params.iter().filter(|param| self.call.mentions(&param.name)) {
            let (name, kind) = (&param.name, param.kind);
            let c = if self.call.large { kind.large } else { kind.c };
            match kind.load {
                Load::Value => line!(text, "    {c} {name} = ({c})*{name}_f;"),
                Load::Handle(f2c) => line!(text, "    {c} {name} = {f2c}(*{name}_f);"),
                Load::Asis | Load::HandleBehind(_) => {}
            }
        }
    }

    fn has_status(&self) -> bool {
        self.call.param("status*").is_some()
    }

    /// A status to read also where the application wants none.
    fn own_status(&self, text: &mut String) {
        if !self.has_status() {
            return;
        }
        line!(text, "    MPI_Status own_status;");
        match self.language {
            Language::C => line!(text, "    status = wanted(status, &own_status);"),
            Language::Fortran => line!(text, "    status = fortran_wanted(status, &own_status);"),
        }
    }

    fn status(&self) -> &'static str {
        match (self.has_status(), self.language) {
            (false, _) => "NULL",
            (true, Language::C) => "status",
            (true, Language::Fortran) => "fortran_status(status, &own_status)",
        }
    }

    fn message(&self, text: &mut String, indent: &str) {
        let message = &self.call.clauses.message;
        let message =
            if message.is_empty() { "nothing()".to_owned() } else { self.clause(message) };
        line!(text, "{indent}struct message message = {message};");
        if !self.call.clauses.receive.is_empty() {
            line!(
                text,
                "{indent}struct message receive = {};",
                self.clause(&self.call.clauses.receive)
            );
            line!(text, "{indent}message.receive = &receive;");
        }
    }

    fn bytes(&self, text: &mut String, indent: &str) {
        let clauses = &self.call.clauses;
        if !clauses.bytes.is_empty() {
            line!(text, "{indent}message.bytes = {};", self.clause(&clauses.bytes));
        }
        if !clauses.received.is_empty() {
            line!(text, "{indent}receive.bytes = {};", self.clause(&clauses.received));
        }
    }

    fn before(&self, text: &mut String) {
        if !self.call.clauses.before.is_empty() {
            line!(text, "    {};", self.clause(&self.call.clauses.before));
        }
    }

    /// `before`, the real call between two stamps, and its error code.
    fn timed_call(&self, text: &mut String) {
        self.own_status(text);
        self.message(text, "    ");
        self.before(text);
        line!(text, "    struct span span;");
        let (name, caller) = (&self.call.name, self.caller());
        line!(text, "    span_begin(&span, t, CALL_{name}, {caller}, &message);");
        self.real_call(text);
        line!(text, "    span_stamp(&span);");
        if self.language == Language::Fortran {
            line!(text, "    int error = *ierror;");
        }
    }

    fn after(&self, text: &mut String, indent: &str) {
        if !self.call.clauses.after.is_empty() {
            line!(text, "{indent}{};", self.clause(&self.call.clauses.after));
        }
    }

    fn call(&self, text: &mut String) {
        self.timed_call(text);
        let clauses = &self.call.clauses;
        if !clauses.bytes.is_empty() || !clauses.received.is_empty() {
            line!(text, "    if (LIKELY(error == MPI_SUCCESS) || is_truncation(error)) {{");
            self.bytes(text, "        ");
            line!(text, "    }}");
        }
        line!(text, "    span_done(&span, &message, {}, error);", self.status());
        if !clauses.after.is_empty() {
            line!(text, "    if (error == MPI_SUCCESS)");
            self.after(text, "        ");
        }
        self.buffers(text, "    ", " && error == MPI_SUCCESS", "reach_called(&span");
    }

    fn has_buffers(&self) -> bool {
        !self.call.clauses.sends.is_empty() || !self.call.clauses.receives.is_empty()
    }

    /// The buffers that a call sends and receives, for those who watch them.
    fn buffers(&self, text: &mut String, indent: &str, condition: &str, function: &str) {
        if !self.has_buffers() {
            return;
        }
        let clauses = &self.call.clauses;
        let given = [&clauses.sends, &clauses.receives].map(|clause| match clause.as_str() {
            "" => "NO_BUFFER".to_owned(),
            clause => self.clause(clause),
        });
        line!(text, "{indent}if (UNLIKELY(t->gives_buffers){condition})");
        line!(text, "{indent}    {function}, {}, {});", given[0], given[1]);
    }

    fn probe(&self, text: &mut String) {
        self.timed_call(text);
        line!(text, "    if (error == MPI_SUCCESS && *flag) {{");
        self.bytes(text, "        ");
        line!(text, "        span_done(&span, &message, {}, error);", self.status());
        self.after(text, "        ");
        line!(text, "    }} else {{");
        line!(text, "        record_unsuccessful_test(&span);");
        line!(text, "    }}");
    }

    fn request_handle(&self) -> &'static str {
        match self.language {
            Language::C => "*request",
            Language::Fortran => "request_f2c(*request)",
        }
    }

    fn init(&self, text: &mut String) {
        self.timed_call(text);
        line!(text, "    if (error == MPI_SUCCESS) {{");
        self.bytes(text, "        ");
        let live = if self.has_buffers() { "struct spool_live *live = " } else { "" };
        line!(
            text,
            "        {live}record_init(&span, &message, {}, request);",
            self.request_handle()
        );
        self.after(text, "        ");
        self.buffers(text, "        ", "", "reach_made(t, live");
        line!(text, "    }} else {{");
        line!(text, "        span_done(&span, &message, NULL, error);");
        line!(text, "    }}");
    }

    /// The real call of what posts requests: the times are theirs.
    fn stamped_call(&self, text: &mut String) {
        line!(text, "    uint64_t begin = stamp_begin(t);");
        self.real_call(text);
        line!(text, "    uint64_t end = stamp_end(t);");
    }

    fn error(&self) -> &'static str {
        match self.language {
            Language::C => "error",
            Language::Fortran => "*ierror",
        }
    }

    fn post(&self, text: &mut String) {
        let taken_before = self.read_before().is_some();
        if taken_before {
            self.message(text, "    ");
        }
        self.before(text);
        self.stamped_call(text);
        line!(text, "    if ({} == MPI_SUCCESS) {{", self.error());
        if !taken_before {
            self.message(text, "        ");
        }
        self.bytes(text, "        ");
        let made = &self.call.clauses.made;
        line!(
            text,
            "        {}record_post(t, CALL_{}, {}, begin, end, message, {}, request);",
            if made.is_empty() && !self.has_buffers() { "" } else { "struct spool_live *live = " },
            self.call.name,
            self.caller(),
            self.request_handle()
        );
        if !made.is_empty() {
            line!(text, "        {};", self.clause(made));
        }
        self.buffers(text, "        ", "", "reach_posted(t, live");
        line!(text, "    }}");
    }

    /// The parameter that a completing call takes its requests from, where there are several.
    fn requests(&self) -> Option<&Param> {
        self.call.params.iter().find(|param| param.name == "requests")
    }

    /// The real call between two stamps, on behalf of requests: no message is known.
    fn timed_completion(&self, text: &mut String, arguments: &str) {
        let (call, caller) = (&self.call.name, self.caller());
        line!(text, "    struct span span;");
        if self.call.verb == Verb::Complete {
            line!(text, "    batch_begin(&span, &batch, CALL_{call}, {caller});");
        } else {
            line!(text, "    span_begin(&span, t, CALL_{call}, {caller}, NULL);");
        }
        match self.language {
            Language::C => line!(text, "    int error = REAL(C_{})({arguments});", self.call.name),
            Language::Fortran => line!(text, "    real({arguments});"),
        }
        line!(text, "    span_stamp(&span);");
        if self.language == Language::Fortran {
            line!(text, "    int error = *ierror;");
        }
        self.after(text, "    ");
    }

    fn complete_one(&self, text: &mut String) {
        self.own_status(text);
        let status = if self.has_status() { "status" } else { "NULL" };
        line!(text, "    MPI_Request handle = {};", self.request_handle());
        line!(text, "    struct spool_live *detached;");
        line!(text, "    struct batch batch;");
        line!(
            text,
            "    batch_take_one(&batch, t, &handle, request, {status}, FORTRAN, &detached);"
        );
        self.before(text);
        self.timed_completion(text, &self.arguments());
        line!(text, "    batch_return(&batch);");
    }

    /// Guard, copy of the requests, and what [`Self::load`] does; without memory for the copy the call goes unrecorded.
    fn take_batch(&self, text: &mut String) {
        let arguments = self.arguments();
        let has_array = self.call.param("statuses").is_some();
        line!(text, "    struct batch batch;");
        match self.language {
            Language::C => {
                let statuses = if has_array { "statuses" } else { "MPI_STATUSES_IGNORE" };
                line!(
                    text,
                    "    struct thread *t = requests || count == 0 ? enter_unless_asleep() : NULL;"
                );
                line!(
                    text,
                    "    if (!t || !batch_take(&batch, t, count, requests, {statuses})) {{"
                );
                line!(text, "        int error = REAL(C_{})({arguments});", self.call.name);
                line!(text, "        if (t)");
                line!(text, "            leave(t);");
                line!(text, "        return error;");
            }
            Language::Fortran => {
                let statuses = if has_array { "statuses" } else { "NULL" };
                line!(
                    text,
                    "    if (!batch_take_fortran(&batch, t, *count_f, requests, {statuses})) {{"
                );
                line!(text, "        real({arguments});");
                line!(text, "        leave(t);");
                line!(text, "        return;");
            }
        }
        line!(text, "    }}");
        self.load(text);
    }

    fn complete_many(&self, text: &mut String) {
        if self.has_status() {
            self.own_status(text);
            line!(text, "    batch.statuses = status;");
        }
        let arguments = self.arguments().replace("statuses", "batch.statuses");
        self.timed_completion(text, &arguments);
        line!(text, "    batch_return(&batch);");
    }

    fn start(&self, text: &mut String) {
        self.stamped_call(text);
        line!(text, "    if ({} == MPI_SUCCESS)", self.error());
        self.after(text, "        ");
    }

    /// All between the braces.
    pub fn write(&self, text: &mut String) {
        let takes_batch = self.call.verb == Verb::Complete && self.requests().is_some();
        if takes_batch {
            self.take_batch(text);
        } else {
            if self.language == Language::C {
                self.guard(text);
            }
            self.load(text);
        }
        match self.call.verb {
            Verb::Probe if self.call.param("flag*").is_some() => self.probe(text),
            Verb::Call | Verb::Make | Verb::Probe => self.call(text),
            Verb::Init => self.init(text),
            Verb::Post => self.post(text),
            Verb::Complete if takes_batch => self.complete_many(text),
            Verb::Complete => self.complete_one(text),
            Verb::Look => self.timed_completion(text, &self.arguments()),
            Verb::Start => self.start(text),
            Verb::Control | Verb::Bound => unreachable!("written by hand"),
        }
        line!(text, "    leave(t);");
        if self.language == Language::C {
            line!(text, "    return error;");
        }
    }
}
