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

impl FrameName {
    /// For tables: "exchange halo.c:42", or as much of that as is known, and then the module.
    pub fn short(&self) -> String {
        let module = || base_name(self.module.as_deref().unwrap_or("?"));
        match (&self.function, self.offset) {
            (Some(function), Some(offset)) => {
                format!("{}+{offset:#x} in {}", short_function(function), module())
            }
            (Some(function), None) if self.file.is_none() => {
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
        if self.is_python() {
            function.replace(".<locals>", "")
        } else {
            short_function(function)
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

/// A C++ or Rust function without its parameter list and with template arguments left out.
pub fn short_function(name: &str) -> String {
    let name =
        name.replace("(anonymous namespace)", "{anonymous}").replace("operator()", "operator{}");
    let is_operator = name.contains("operator");
    let mut short = String::with_capacity(name.len());
    let mut depth = 0usize;
    for letter in name.chars() {
        match letter {
            '<' if !is_operator => {
                depth += 1;
                if depth == 1 {
                    short.push_str("<…>");
                }
            }
            '>' if !is_operator => depth = depth.saturating_sub(1),
            '(' if depth == 0 => break,
            _ if depth == 0 => short.push(letter),
            _ => {}
        }
    }
    // A template function's demangled name starts with its return type.
    let short = short.rsplit_once(' ').map_or(short.as_str(), |(_, function)| function);
    short.replace("{anonymous}", "(anonymous)").replace("operator{}", "operator()")
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
}
