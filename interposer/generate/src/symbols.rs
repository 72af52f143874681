//! The names under which a call is found: in C, and in Fortran under every mangling that compilers use.

use std::fmt;

use crate::calls::Call;

/// A way to reach a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Binding {
    C,
    /// `mpif.h` and `use mpi`.
    Fortran,
    /// `use mpi_f08`, choice buffers by address.
    F08,
    /// `use mpi_f08`, choice buffers by TS 29113 descriptors.
    F08ts,
}

impl Binding {
    /// In front of the names of functions in the generated code.
    pub fn prefix(self) -> &'static str {
        match self {
            Binding::C => "C",
            Binding::Fortran => "F",
            Binding::F08 => "F08",
            Binding::F08ts => "F08TS",
        }
    }
}

impl fmt::Display for Binding {
    fn fmt(&self, out: &mut fmt::Formatter) -> fmt::Result {
        out.write_str(match self {
            Binding::C => "c",
            Binding::Fortran => "fortran",
            Binding::F08 => "f08",
            Binding::F08ts => "f08ts",
        })
    }
}

/// The bindings that a call has. Large counts are in C and `mpi_f08` alone (MPI-4.1 2.5.8), descriptors where there is
/// a choice buffer.
pub fn bindings(call: &Call) -> Vec<Binding> {
    let mut found = vec![Binding::C];
    if !call.large {
        found.push(Binding::Fortran);
    }
    found.push(Binding::F08);
    if call.params.iter().any(|param| param.kind.is_buffer) {
        found.push(Binding::F08ts);
    }
    found
}

/// `-fno-underscoring`, the default of most compilers, `-fsecond-underscore`, and compilers that write upper case.
fn mangled(base: &str) -> [String; 4] {
    [format!("{base}_"), base.to_owned(), format!("{base}__"), base.to_uppercase()]
}

/// Its names, the likeliest first.
pub fn names(call: &Call, binding: Binding) -> Vec<String> {
    let lower = call.name.to_lowercase();
    let suffix = match binding {
        Binding::C => return vec![call.name.clone()],
        Binding::Fortran => "",
        Binding::F08 => "_f08",
        Binding::F08ts => "_f08ts",
    };
    let mut found = mangled(&format!("{lower}{suffix}")).to_vec();
    if let (true, Some(small)) = (call.large, lower.strip_suffix("_c")) {
        found.extend(mangled(&format!("{small}{suffix}_large"))); // MPICH
    }
    if binding == Binding::Fortran
        && matches!(lower.as_str(), "mpi_win_allocate" | "mpi_win_allocate_shared")
    {
        found.extend(mangled(&format!("{lower}_cptr"))); // the overload with TYPE(C_PTR), MPI-4.1 12.2.2
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls;

    fn first(text: &str, at: usize) -> Call {
        calls::parse(text).expect("understood").swap_remove(at)
    }

    #[test]
    fn a_call_with_a_buffer_has_all_bindings() {
        let send = first("[A]\ncall Send(in buf, count count) large\n", 0);
        assert_eq!(bindings(&send), [Binding::C, Binding::Fortran, Binding::F08, Binding::F08ts]);
        assert_eq!(
            names(&send, Binding::Fortran),
            ["mpi_send_", "mpi_send", "mpi_send__", "MPI_SEND"]
        );
        assert_eq!(names(&send, Binding::F08ts)[0], "mpi_send_f08ts_");
    }

    #[test]
    fn large_counts_are_not_in_mpif_h() {
        let send = first("[A]\ncall Send(in buf, count count) large\n", 1);
        assert_eq!(bindings(&send), [Binding::C, Binding::F08, Binding::F08ts]);
        let found = names(&send, Binding::F08ts);
        assert!(found.contains(&"mpi_send_c_f08ts_".to_owned()));
        assert!(found.contains(&"mpi_send_f08ts_large_".to_owned()));
    }
}
