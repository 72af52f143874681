//! Names of Fortran procedures as the source has them, from those that compilers give to linkers.

use addr2line::gimli::{self, DwLang};

/// Whether debug information says that it is Fortran's.
pub fn is_fortran(language: Option<DwLang>) -> bool {
    [
        gimli::DW_LANG_Fortran77,
        gimli::DW_LANG_Fortran90,
        gimli::DW_LANG_Fortran95,
        gimli::DW_LANG_Fortran03,
        gimli::DW_LANG_Fortran08,
    ]
    .into_iter()
    .any(|fortran| language == Some(fortran))
}

/// `module::procedure` of a linker's name that no other language has: `__m_MOD_p` of gfortran, `m_mp_p_` of Intel,
/// `_QMmPp` of LLVM's flang. `None` of any other name.
pub fn demangle(name: &str) -> Option<String> {
    let (module, procedure) = gfortran(name).or_else(|| intel(name)).or_else(|| flang(name))?;
    [module, procedure].iter().all(|part| is_name(part)).then(|| format!("{module}::{procedure}"))
}

/// Likewise, of a name that debug information of Fortran gives: there an underscore at the end is the compiler's, too.
pub fn demangle_fortran(name: &str) -> String {
    let without = || match name.strip_suffix("__").filter(|stem| stem.contains('_')) {
        Some(stem) => stem,
        None => name.strip_suffix('_').unwrap_or(name),
    };
    demangle(name).unwrap_or_else(|| without().to_owned())
}

fn gfortran(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("__")?.split_once("_MOD_")
}

fn intel(name: &str) -> Option<(&str, &str)> {
    name.strip_suffix('_')?.split_once("_mp_")
}

fn flang(name: &str) -> Option<(&str, &str)> {
    name.strip_prefix("_QM")?.split_once('P')
}

/// Compilers write names of Fortran, which have no case, in small letters. A submodule has a dot before its name.
fn is_name(text: &str) -> bool {
    let fits = |letter: u8| {
        letter.is_ascii_lowercase() || letter.is_ascii_digit() || b"_.".contains(&letter)
    };
    text.starts_with(|first: char| first.is_ascii_lowercase()) && text.bytes().all(fits)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn procedures_of_modules_have_the_names_of_the_source() {
        for linker in [
            "__clover_module_MOD_clover_exchange",
            "clover_module_mp_clover_exchange_",
            "_QMclover_modulePclover_exchange",
        ] {
            assert_eq!(demangle(linker).unwrap(), "clover_module::clover_exchange");
        }
        for other in ["exchange_", "_Z4haloi", "__libc_start_main", "_QPhalo", "__MOD_", "main"] {
            assert_eq!(demangle(other), None, "{other}");
        }
    }

    #[test]
    fn an_underscore_at_the_end_is_the_compiler_s() {
        assert_eq!(demangle_fortran("outside_"), "outside");
        assert_eq!(demangle_fortran("my_sub__"), "my_sub"); // -fsecond-underscore
        assert_eq!(demangle_fortran("inner"), "inner");
        assert_eq!(demangle_fortran("__m_MOD_p"), "m::p");
    }
}
