//! What the program passed to the MPI call that a rank is inside of, where that is certain.

use serde::{Deserialize, Serialize};

use super::abi::Abi;
use super::calls;
use lapscope_data::symbols::Passed;

/// Of the parameters of a call. What is left out is not known.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Arguments {
    #[serde(skip_serializing_if = "Option::is_none")]
    pub to: Option<Given>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub from: Option<Given>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub root: Option<Given>,
    /// Of what is sent, or received.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub tag: Option<Given>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub communicator: Option<String>,
}

/// A rank, or a tag.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Given {
    Number(i32),
    /// `MPI_ANY_SOURCE`
    Constant(String),
}

impl Given {
    /// `None`: a negative number of which nobody knows what it means.
    fn new(number: i32, constants: &[(i32, &str)]) -> Option<Given> {
        let constant = constants.iter().find(|(value, _)| *value == number);
        match constant {
            Some((_, name)) => Some(Given::Constant((*name).to_owned())),
            None => (number >= 0).then_some(Given::Number(number)),
        }
    }
}

/// In which integers and pointers are passed, in their order: the System V ABI of x86-64, 3.2.3, by the numbers of DWARF.
const PASSED_IN: [u16; 6] = [5, 4, 1, 2, 8, 9];

/// The names by which a program in C may call it; `None`: nothing is said of that call.
pub fn callees(call: &str) -> Option<[String; 2]> {
    let call = calls::find(call).filter(|it| !it.parameters.is_empty())?;
    Some([call.name.to_owned(), format!("P{}", call.name)])
}

/// `communicator` names a handle; `abi`: what negative numbers mean, which is another thing in each; `None`: nobody knows.
pub fn of(
    call: &str,
    passed: &[(u16, Passed)],
    abi: Option<&Abi>,
    communicator: impl Fn(Passed) -> Option<&'static str>,
) -> Option<Arguments> {
    let mut arguments = Arguments::default();
    for &(place, name) in calls::find(call)?.parameters {
        let register = PASSED_IN.get(place);
        let Some((_, value)) = passed.iter().find(|(it, _)| Some(it) == register) else { continue };
        let number = match value {
            Passed::Value(value) => Some(*value as i32),
            Passed::Address(_) => None,
        };
        let peer = || Given::new(number?, &abi.map(Abi::peers).unwrap_or_default());
        let tag = || Given::new(number?, &abi.map(Abi::tags).unwrap_or_default());
        match name {
            "dest" => arguments.to = peer(),
            "source" => arguments.from = peer(),
            "root" => arguments.root = peer(),
            "tag" | "sendtag" => arguments.tag = tag(),
            _ => arguments.communicator = communicator(*value).map(str::to_owned),
        }
    }
    (arguments != Arguments::default()).then_some(arguments)
}

impl Arguments {
    /// "to rank 1, tag 7, in MPI_COMM_WORLD".
    pub fn in_words(&self) -> String {
        let given = |word: &str, kind: &str, given: &Option<Given>| match given.as_ref()? {
            Given::Number(number) => Some(format!("{word}{kind}{number}")),
            Given::Constant(name) => Some(format!("{word}{name}")),
        };
        let parts = [
            given("to ", "rank ", &self.to),
            given("from ", "rank ", &self.from),
            given("with root ", "", &self.root),
            given("tag ", "", &self.tag),
            self.communicator.as_ref().map(|it| format!("in {it}")),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::stacks::abi;

    #[test]
    fn registers_are_those_of_the_parameters() {
        let value = |register, value: i64| (register, Passed::Value(value as u64));
        let world = |it| (it == Passed::Address(0x4040)).then_some("MPI_COMM_WORLD");
        let mpich = abi::of("libmpich.so.12");
        let said = |call, passed: &[(u16, Passed)], abi| {
            of(call, passed, abi, world).map(|it| it.in_words())
        };
        let passed = [value(2, 3), value(8, 17), (9, Passed::Address(0x4040))];
        let receive = said("MPI_Recv", &passed, mpich);
        assert_eq!(receive.as_deref(), Some("from rank 3, tag 17, in MPI_COMM_WORLD"));
        let sent = said("MPI_Sendrecv", &passed, mpich);
        assert_eq!(sent.as_deref(), Some("to rank 3, tag 17"));
        let high = said("MPI_Send", &[value(2, 1 << 32 | 1), value(8, -7)], mpich);
        assert_eq!(high.as_deref(), Some("to rank 1"));
        assert_eq!(of("MPI_Wait", &passed, mpich, world), None);
        assert_eq!(of("MPI_Recv", &[], mpich, world), None);
        assert_eq!(callees("MPI_Recv"), Some(["MPI_Recv".into(), "PMPI_Recv".into()]));
    }

    /// The same numbers are other constants in another MPI.
    #[test]
    fn constants_are_named() {
        let value = |register, value: i64| (register, Passed::Value(value as u64));
        let said = |library, call, passed: &[(u16, Passed)]| {
            of(call, passed, abi::of(library), |_| None).map(|it| it.in_words())
        };
        let any = [value(2, -1), value(8, -1)];
        for (library, expected) in [
            ("libmpi.so.40", "from MPI_ANY_SOURCE, tag MPI_ANY_TAG"),
            ("libmpich.so.12", "from MPI_PROC_NULL, tag MPI_ANY_TAG"),
            ("libmpi_abi.so.1", "from MPI_ANY_SOURCE"),
        ] {
            assert_eq!(said(library, "MPI_Recv", &any).as_deref(), Some(expected), "{library}");
        }
        assert_eq!(said("libunknown.so", "MPI_Recv", &any), None);
        let root = said("libmpi.so.40", "MPI_Bcast", &[value(2, -4)]);
        assert_eq!(root.as_deref(), Some("with root MPI_ROOT"));
    }
}
