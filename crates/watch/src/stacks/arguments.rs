//! What the program passed to the MPI call that a rank is inside of, where that is certain.

use serde::{Deserialize, Serialize};

use lapscope_data::symbols::Passed;

/// Of the parameters of a call. What is left out is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arguments {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<i32>,
    /// Of what is sent, or received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<i32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub communicator: Option<String>,
}

/// A call: its name, and its parameters of which something is said, each with its place among all.
struct CallParameters {
    name: &'static str,
    parameters: &'static [(usize, &'static str)],
}

// SIGNATURES: of calls.def, by build.rs
include!(concat!(env!("OUT_DIR"), "/signatures.rs"));

/// In which integers and pointers are passed, in their order: the System V ABI of x86-64, 3.2.3, by the numbers of DWARF.
const PASSED_IN: [u16; 6] = [5, 4, 1, 2, 8, 9];

/// The names by which a program in C may call it; `None`: nothing is said of that call.
pub fn callees(call: &str) -> Option<[String; 2]> {
    let signature = signature(call)?;
    Some([signature.name.to_owned(), format!("P{}", signature.name)])
}

fn signature(call: &str) -> Option<&'static CallParameters> {
    SIGNATURES.iter().find(|it| it.name.eq_ignore_ascii_case(call))
}

/// `communicator` names a handle.
pub fn of(
    call: &str,
    passed: &[(u16, Passed)],
    communicator: impl Fn(Passed) -> Option<&'static str>,
) -> Option<Arguments> {
    let mut arguments = Arguments::default();
    for &(place, name) in signature(call)?.parameters {
        let register = PASSED_IN.get(place);
        let Some((_, value)) = passed.iter().find(|(it, _)| Some(it) == register) else { continue };
        // what is negative means something else in each MPI
        let number = match value {
            Passed::Value(value) => Some(*value as i32).filter(|it| *it >= 0),
            Passed::Address(_) => None,
        };
        match name {
            "dest" => arguments.to = number,
            "source" => arguments.from = number,
            "root" => arguments.root = number,
            "tag" | "sendtag" => arguments.tag = number,
            _ => arguments.communicator = communicator(*value).map(str::to_owned),
        }
    }
    (arguments != Arguments::default()).then_some(arguments)
}

impl Arguments {
    /// "to rank 1, tag 7, in MPI_COMM_WORLD".
    pub fn in_words(&self) -> String {
        let number = |word: &str, number: Option<i32>| number.map(|it| format!("{word} {it}"));
        let parts = [
            number("to rank", self.to),
            number("from rank", self.from),
            number("with root", self.root),
            number("tag", self.tag),
            self.communicator.as_ref().map(|it| format!("in {it}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn registers_are_those_of_the_parameters() {
        let value = |register, value: i64| (register, Passed::Value(value as u64));
        let world = |it| (it == Passed::Address(0x4040)).then_some("MPI_COMM_WORLD");
        let passed = [value(2, 3), value(8, 17), (9, Passed::Address(0x4040))];
        let receive = of("MPI_Recv", &passed, world).expect("arguments");
        assert_eq!(receive.in_words(), "from rank 3, tag 17, in MPI_COMM_WORLD");
        let sent = of("MPI_Sendrecv", &passed, world).expect("arguments");
        assert_eq!(sent.in_words(), "to rank 3, tag 17");
        let high = of("MPI_Send", &[value(2, 1 << 32 | 1), value(8, -1)], world);
        assert_eq!(high.expect("arguments").in_words(), "to rank 1");
        assert_eq!(of("MPI_Wait", &passed, world), None);
        assert_eq!(of("MPI_Recv", &[], world), None);
        assert_eq!(callees("MPI_Recv"), Some(["MPI_Recv".into(), "PMPI_Recv".into()]));
    }
}
