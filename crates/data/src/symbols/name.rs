//! A frame's name, long and short.

use serde::{Deserialize, Serialize};

use crate::model::{is_mpi_library, is_python_interpreter, is_python_layer};

/// One frame by name. An address inside inlined code gives several of these, innermost first.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct FrameName {
    /// Demangled; `None` when no source knows it.
    pub function: Option<String>,
    /// Bytes from the begin of the function to the return address, where no line is known.
    pub offset: Option<u64>,
    /// As the compiler recorded it.
    pub file: Option<String>,
    pub line: Option<u32>,
    /// Only where another call site is on that line, too.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub column: Option<u32>,
    /// Path of the executable or shared object; `None` outside of all.
    pub module: Option<String>,
    /// The return address in the module's own numbering.
    pub address: u64,
    /// Inlined into the next frame.
    pub inlined: bool,
}

/// What debuggers call the frame between a handler of a signal and what it interrupted.
const SIGNAL_HANDLER: &str = "<signal handler called>";

impl FrameName {
    /// As the frame between a handler of a signal and what it interrupted.
    pub fn of_signal(self) -> FrameName {
        FrameName {
            function: Some(SIGNAL_HANDLER.to_owned()),
            offset: None,
            file: None,
            line: None,
            ..self
        }
    }

    /// For tables: "exchange halo.c:42", or as much of that as is known, and then the module.
    pub fn short(&self) -> String {
        let module = || base_name(self.module.as_deref().unwrap_or("?"));
        match (&self.function, self.offset) {
            (Some(function), Some(offset)) => {
                format!("{}+{offset:#x} in {}", short_function(function), module())
            }
            (Some(function), None) if self.file.is_none() && !self.is_signal() => {
                format!("{} in {}", short_function(function), module())
            }
            _ => self.brief(),
        }
    }

    /// For trees, whose branches say the rest: without offset and module where there is a function.
    pub fn brief(&self) -> String {
        let place = match (&self.file, self.line) {
            (Some(file), Some(line)) => {
                let column = self.column.map(|column| format!(":{column}")).unwrap_or_default();
                Some(format!("{}:{line}{column}", self.file_name(file)))
            }
            (Some(file), None) => Some(self.file_name(file).to_owned()),
            (None, _) => None,
        };
        match (&self.function, place) {
            (Some(function), Some(place)) => format!("{} {place}", self.shortened(function)),
            (Some(function), None) => self.shortened(function),
            (None, Some(place)) => place,
            (None, None) => {
                format!("{}+{:#x}", base_name(self.module.as_deref().unwrap_or("?")), self.address)
            }
        }
    }

    /// Without directories, but for mpi4py's own: `mpi4py/futures/_core.py`.
    fn file_name<'a>(&self, file: &'a str) -> &'a str {
        let layer = file.rfind("/mpi4py/").filter(|_| self.is_python() && self.is_python_layer());
        layer.map_or(base_name(file), |at| &file[at + 1..])
    }

    /// Python's names have no parameters, and angles of their own: `<module>`, `<lambda>`.
    fn shortened(&self, function: &str) -> String {
        match () {
            () if self.is_python() => function.replace(".<locals>", ""),
            () if self.is_signal() => function.to_owned(),
            () => short_function(function),
        }
    }

    /// Whether it is a line of Python: the file is what code is read from.
    pub fn is_python(&self) -> bool {
        self.module.is_some() && self.module == self.file
    }

    /// Whether it is machine code of Python's interpreter.
    pub fn is_python_interpreter(&self) -> bool {
        self.module.as_deref().is_some_and(is_python_interpreter)
    }

    /// Whether it is part of what brings MPI to Python, or starts what Python runs.
    pub fn is_python_layer(&self) -> bool {
        self.module.as_deref().is_some_and(is_python_layer)
    }

    /// Whether `text` is part of its function or file name.
    pub fn mentions(&self, text: &str) -> bool {
        let names = [&self.function, &self.file];
        names.into_iter().flatten().any(|name| name.contains(text)) || self.short().contains(text)
    }

    /// Whether it is the frame between a handler of a signal and what it interrupted.
    pub fn is_signal(&self) -> bool {
        self.function.as_deref() == Some(SIGNAL_HANDLER)
    }

    /// Whether it belongs to the MPI implementation or to lapscope, not to the program.
    pub fn is_mpi(&self) -> bool {
        self.module.as_deref().is_some_and(is_mpi_library)
    }

    /// Whether this is what calls `main` or a thread's function: it and what is outside of it says nothing about the
    /// program.
    pub fn is_start_code(&self) -> bool {
        const START: [&str; 6] = [
            "_start",
            "__libc_start_main",
            "__libc_start_call_main",
            "start_thread",
            "clone",
            "clone3",
        ];
        let function = self.function.as_deref().unwrap_or("");
        let name = function.split('@').next().unwrap_or(function);
        START.contains(&name.trim_end_matches("_impl"))
    }

    /// Whether it is a function local to the C library or the loader, which only debug files name.
    pub fn is_unnamed_libc(&self) -> bool {
        let module = base_name(self.module.as_deref().unwrap_or(""));
        self.function.is_none() && (module.starts_with("libc.so") || module.starts_with("ld-linux"))
    }
}

/// The part of a path behind the last slash.
pub fn base_name(path: &str) -> &str {
    path.rsplit('/').next().unwrap_or(path)
}

/// A C++ or Rust function without its return type and parameters, and with template arguments left out.
pub fn short_function(name: &str) -> String {
    let mut short = Shortening { short: String::with_capacity(name.len()), rest: name };
    while short.step() {}
    let short = short.short;
    // what a lambda is called by says nothing besides
    match short.strip_suffix("::operator()") {
        Some(lambda) if lambda.ends_with('}') => lambda.to_owned(),
        _ if short.is_empty() => name.to_owned(),
        _ => short,
    }
}

/// The innermost part of a function's name: `exchange` of `void Halo<double, 8>::exchange<int>(int)`.
pub fn innermost_name(function: &str) -> String {
    let short = short_function(function);
    let last = short.rsplit("::").next().unwrap_or(&short);
    last.strip_suffix(LEFT_OUT).unwrap_or(last).to_owned()
}

const LEFT_OUT: &str = "<…>";

/// A demangler's output, from left to right. Blanks and colons count outside of brackets alone.
struct Shortening<'a> {
    short: String,
    rest: &'a str,
}

impl<'a> Shortening<'a> {
    /// The next letter, bracket or operator; `false`: nothing that follows belongs to the name.
    fn step(&mut self) -> bool {
        const ANONYMOUS: &str = "(anonymous namespace)";
        let Some(letter) = self.rest.chars().next() else { return false };
        match letter {
            _ if self.rest.starts_with(ANONYMOUS) => {
                self.short.push_str("(anonymous)");
                self.rest = &self.rest[ANONYMOUS.len()..];
            }
            'o' if self.is_operator() => self.operator(),
            '<' => {
                self.skip_bracket();
                self.short.push_str(LEFT_OUT);
            }
            '(' => return self.parameters(),
            '{' => {
                let inside = self.skip_bracket();
                self.short.push_str(&without_parameters(inside));
            }
            '[' if !self.rest.starts_with("[clone ") => {
                self.skip_bracket();
            }
            '[' => return false,
            ' ' if self.rest.starts_with(" [clone ") => return false,
            ' ' => {
                self.short.clear(); // it was the return type
                self.rest = &self.rest[1..];
            }
            _ => {
                self.short.push(letter);
                self.rest = &self.rest[letter.len_utf8()..];
            }
        }
        true
    }

    /// Whether a part of the name begins that is `operator` and what it is for.
    fn is_operator(&self) -> bool {
        let is_begin = self.short.is_empty() || self.short.ends_with("::");
        let behind = self.rest.strip_prefix("operator").and_then(|rest| rest.chars().next());
        is_begin && behind.is_some_and(|next| !next.is_alphanumeric() && next != '_')
    }

    fn operator(&mut self) {
        const SYMBOLS: [&str; 14] =
            ["<=>", "->*", "<<=", ">>=", "()", "[]", "<<", ">>", "->", "<=", ">=", "&&", "||", "<"];
        let behind = &self.rest["operator".len()..];
        let symbol = SYMBOLS.iter().find(|it| behind.starts_with(**it)).map(|it| it.len());
        // else up to the parameters: `operator bool`, `operator new[]`, `operator==`
        let length = symbol.unwrap_or_else(|| behind.find(['(', '<']).unwrap_or(behind.len()));
        let (operator, rest) = self.rest.split_at("operator".len() + length);
        self.short.push_str(operator);
        self.rest = rest.trim_start();
        if symbol.is_some() && self.rest.starts_with('<') {
            self.skip_bracket();
        }
    }

    /// Behind parameters the name goes on where a function is inside of another.
    fn parameters(&mut self) -> bool {
        let is_type = self.short.ends_with("decltype");
        self.skip_bracket();
        if is_type || self.short.is_empty() {
            return true;
        }
        const BEHIND: [&str; 6] = [" const", " volatile", " &&", " &", " noexcept", "&"];
        while let Some(rest) = BEHIND.iter().find_map(|it| self.rest.strip_prefix(it)) {
            self.rest = rest;
        }
        self.rest.starts_with("::")
    }

    /// A bracket and what is in it; of one that does not end all the rest.
    fn skip_bracket(&mut self) -> &'a str {
        let mut open: Vec<char> = Vec::new();
        let mut before = ' ';
        for (at, letter) in self.rest.char_indices() {
            match letter {
                '<' | '(' | '{' | '[' => open.push(letter),
                '>' if before == '-' || open.last() != Some(&'<') => {} // an arrow, a comparison
                '>' | ')' | '}' | ']' => {
                    open.pop();
                }
                _ => {}
            }
            before = letter;
            if open.is_empty() {
                let (inside, rest) = self.rest.split_at(at + letter.len_utf8());
                self.rest = rest;
                return inside;
            }
        }
        std::mem::take(&mut self.rest)
    }
}

/// `{lambda#1}` of `{lambda(int, std::function<void ()>)#1}`.
fn without_parameters(lambda: &str) -> String {
    match (lambda.find('('), lambda.rfind(')')) {
        (Some(begin), Some(end)) if begin < end => {
            format!("{}{}", &lambda[..begin], &lambda[end + 1..])
        }
        _ => lambda.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_shortened_for_tables() {
        assert_eq!(short_function("exchange"), "exchange");
        assert_eq!(
            short_function("LAMMPS_NS::CommBrick::borders()"),
            "LAMMPS_NS::CommBrick::borders"
        );
        assert_eq!(short_function("void swap<a::b<int>, 3>(int*)"), "swap<…>");
        assert_eq!(short_function("(anonymous namespace)::post(int)"), "(anonymous)::post");
        assert_eq!(short_function("Halo::operator()(int) const"), "Halo::operator()");
    }

    #[test]
    fn templates_lambdas_and_operators_are_cut_where_they_end() {
        for (name, short, innermost) in [
            ("void Halo<double, 8>::exchange<int>(int)", "Halo<…>::exchange<…>", "exchange"),
            (
                "void Halo<double, 8>::exchange<int>(int)::{lambda(int)#1}::operator()(int) const",
                "Halo<…>::exchange<…>::{lambda#1}",
                "{lambda#1}",
            ),
            ("main::{lambda()#2}::operator()() const", "main::{lambda#2}", "{lambda#2}"),
            (
                "std::ostream& std::operator<< <std::char_traits<char> >(std::ostream&, char const*)",
                "std::operator<<",
                "operator<<",
            ),
            ("bool operator< <int>(A<int> const&, A<int> const&)", "operator<", "operator<"),
            ("Cell<(Kind)1>::operator->() const", "Cell<…>::operator->", "operator->"),
            ("Cell<((3)>(2))>::operator bool() const", "Cell<…>::operator bool", "operator bool"),
            ("operator new[](unsigned long)", "operator new[]", "operator new[]"),
            ("Halo::operator==(Halo const&) const", "Halo::operator==", "operator=="),
            (
                "std::function<void (int, A::B)>::operator()(int, A::B) const",
                "std::function<…>::operator()",
                "operator()",
            ),
            ("decltype (f(1)) solve<int>(int)", "solve<…>", "solve"),
            ("solve(int)::local::run() const &", "solve::local::run", "run"),
            ("exchange(int) [clone .part.0]", "exchange", "exchange"),
            ("name[abi:cxx11](int)", "name", "name"),
            ("operators::post(int)", "operators::post", "post"),
            ("<halo::Grid<T> as halo::Step>::run", "<…>::run", "run"),
            ("halo::run::{{closure}}", "halo::run::{{closure}}", "{{closure}}"),
            ("clover_module::clover_exchange", "clover_module::clover_exchange", "clover_exchange"),
            ("broken<a::b(", "broken<…>", "broken"),
            ("<", "<…>", ""),
        ] {
            assert_eq!(short_function(name), short);
            assert_eq!(innermost_name(name), innermost, "{name}");
        }
    }
}
