//! Lists of calls, functions and symbols for the preprocessor, and prototypes.

use crate::calls::{Call, Param};
use crate::symbols::{self, Binding};
use crate::{banner, line};

/// `CALL(name, family, role, kind, transfers, mode, counted, needs, completes, blocking)` for each call; empty where
/// there is nothing to say.
pub fn calls(calls: &[Call]) -> String {
    let mut text = banner("Every call: its number is its place.");
    for call in calls {
        let facts = call.facts.columns().map(|(_, value)| value.unwrap_or_default()).join(", ");
        line!(&mut text, "CALL({}, {}, {}, {facts})", call.name, call.family, call.role);
    }
    text
}

/// `FUNCTION(name)` for each call in each binding, and behind it `SYMBOL(name, function)` for each of its names.
pub fn functions(calls: &[Call]) -> String {
    let mut text = banner("Every call in every binding, with its symbols.");
    for call in calls {
        for binding in symbols::bindings(call) {
            let function = function_name(call, binding);
            line!(&mut text, "FUNCTION({function})");
            for symbol in symbols::names(call, binding) {
                line!(&mut text, "SYMBOL({symbol}, {function})");
            }
        }
    }
    text
}

/// The numbers of all symbols, as [`functions`] lists them, in the order of their names.
pub fn sorted(calls: &[Call]) -> String {
    let bindings = |call| symbols::bindings(call).into_iter();
    let names = calls
        .iter()
        .flat_map(|call| bindings(call).flat_map(move |binding| symbols::names(call, binding)));
    let mut numbered: Vec<(String, usize)> = names.zip(0..).collect();
    numbered.sort();
    let mut text = banner("Every symbol's number, by its name.");
    for (_, number) in numbered {
        line!(&mut text, "{number},");
    }
    text
}

/// `C_MPI_Isend`
pub fn function_name(call: &Call, binding: Binding) -> String {
    format!("{}_{}", binding.prefix(), call.name)
}

/// `type name`, without a blank behind a `*`.
pub fn declare(kind: &str, name: &str) -> String {
    if kind.ends_with('*') {
        format!("{kind}{name}")
    } else {
        format!("{kind} {name}")
    }
}

/// The type of a parameter in C.
pub fn c_type(call: &Call, param: &Param) -> &'static str {
    if call.large {
        param.kind.large
    } else {
        param.kind.c
    }
}

/// The type of a parameter as it comes from Fortran; empty where Fortran has none.
pub fn fortran_type(call: &Call, param: &Param) -> &'static str {
    if call.large {
        param.kind.fortran_large
    } else {
        param.kind.fortran
    }
}

/// The parameters of the C function.
pub fn c_params(call: &Call) -> String {
    let mut params: Vec<String> =
        call.params.iter().map(|param| declare(c_type(call, param), &param.name)).collect();
    if call.variadic {
        params.push("...".to_owned());
    }
    if params.is_empty() {
        params.push("void".to_owned());
    }
    params.join(", ")
}

/// The parameters of the Fortran function: those of the C function by reference, the error code, the lengths of texts.
pub fn fortran_params(call: &Call) -> String {
    let mut params: Vec<String> = call
        .params
        .iter()
        .filter(|param| !param.kind.fortran.is_empty())
        .map(|param| declare(fortran_type(call, param), &fortran_name(param)))
        .collect();
    params.push("MPI_Fint *ierror".to_owned());
    for param in call.params.iter().filter(|param| param.kind.is_text) {
        params.push(format!("size_t {}_length", param.name));
    }
    params.join(", ")
}

/// What comes by value in C has another name while it is still a pointer.
pub fn fortran_name(param: &Param) -> String {
    if param.kind.c.ends_with('*') {
        param.name.clone()
    } else {
        format!("{}_f", param.name)
    }
}

/// Types of all functions and the declarations of their wrappers.
pub fn prototypes(calls: &[Call]) -> String {
    let mut text = banner("Types of all functions, and their wrappers.");
    for call in calls {
        for binding in symbols::bindings(call) {
            let function = function_name(call, binding);
            match binding {
                Binding::C => line!(&mut text, "typedef int {function}_fn({});", c_params(call)),
                _ => line!(&mut text, "typedef void {function}_fn({});", fortran_params(call)),
            }
            line!(&mut text, "extern {function}_fn wrap_{function};");
        }
    }
    text
}

/// `SIGNATURE(name)` for each C function: a test compares the types above with an mpi.h.
pub fn signatures(calls: &[Call]) -> String {
    let mut text = banner("Every C function.");
    for call in calls {
        line!(&mut text, "SIGNATURE({})", call.name);
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::parse;

    #[test]
    fn texts_have_their_lengths_behind_the_error_code() {
        let calls =
            parse("[A]\ncall Open(comm comm, string name, file* made)\n").expect("understood");
        assert_eq!(c_params(&calls[0]), "MPI_Comm comm, const char *name, MPI_File *made");
        assert_eq!(
            fortran_params(&calls[0]),
            "const MPI_Fint *comm_f, const char *name, MPI_Fint *made, MPI_Fint *ierror, size_t name_length"
        );
    }

    #[test]
    fn symbols_are_found_by_name() {
        let calls = parse("[A]\ncall Send(in buf)\ncall Recv(out buf)\n").expect("understood");
        let listed = functions(&calls);
        let names: Vec<&str> = listed
            .lines()
            .filter_map(|line| line.strip_prefix("SYMBOL(")?.split(',').next())
            .collect();
        let sorted = sorted(&calls);
        let numbers = sorted.lines().filter_map(|line| line.strip_suffix(',')?.parse().ok());
        let by_name: Vec<&str> = numbers.map(|number: usize| names[number]).collect();
        assert!(by_name.len() == names.len() && by_name.windows(2).all(|pair| pair[0] < pair[1]));
    }

    #[test]
    fn large_counts_change_types() {
        let calls = parse("[A]\ncall Put(in buf, count n, displs d) large\n").expect("understood");
        assert_eq!(c_params(&calls[0]), "const void *buf, int n, const int *d");
        assert_eq!(c_params(&calls[1]), "const void *buf, MPI_Count n, const MPI_Aint *d");
    }
}
