//! What calls.def says of each call, by its number: as the conversion writes it into the table `call_name`.

use std::sync::OnceLock;

use rusqlite::types::{FromSql, ValueRef};

use crate::calls::call_rows;
use crate::model::{CallName, Kind};

/// What is asked of every record.
#[derive(Debug, Clone, Copy, Default)]
pub struct CallFacts {
    /// [`CallName::gathers`].
    pub gathers: bool,
    /// It makes a persistent request.
    pub is_init: bool,
}

/// By number.
pub fn all() -> &'static [CallName] {
    static ALL: OnceLock<Vec<CallName>> = OnceLock::new();
    ALL.get_or_init(|| call_rows().map(call_name).collect())
}

pub fn facts(call: u16) -> CallFacts {
    static FACTS: OnceLock<Vec<CallFacts>> = OnceLock::new();
    let facts = FACTS.get_or_init(|| {
        let of = |name: &CallName| CallFacts {
            gathers: name.gathers().is_some(),
            is_init: name.role == "INIT",
        };
        all().iter().map(of).collect()
    });
    facts.get(usize::from(call)).copied().unwrap_or_default()
}

fn call_name(row: [&str; 10]) -> CallName {
    let [name, family, role, kind, transfers, mode, counted, needs, completes, blocking] = row;
    CallName {
        name: name.to_owned(),
        family: family.to_owned(),
        role: role.to_owned(),
        kind: Kind::parse(kind),
        transfers: word(transfers),
        mode: word(mode),
        counted: counted != "0",
        needs: word(needs),
        completes: word(completes),
        blocking: blocking.to_owned(),
    }
}

fn word<T: FromSql>(word: &str) -> Option<T> {
    let value = (!word.is_empty()).then_some(ValueRef::Text(word.as_bytes()))?;
    T::column_result(value).ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::calls::mpi_calls;
    use crate::model::{Completes, Needs, Transfers};

    #[test]
    fn every_call_is_understood() {
        let names: Vec<&str> = all().iter().map(|call| call.name.as_str()).collect();
        assert!(names.iter().copied().eq(mpi_calls()) && names.len() > 300, "{}", names.len());
        let of = |name: &str| all().iter().find(|call| call.name == name).unwrap();
        assert_eq!(of("MPI_Waitany").completes, Some(Completes::Any));
        assert_eq!(of("MPI_Bcast").needs, Some(Needs::Root));
        assert_eq!(of("MPI_Isendrecv").transfers, Some(Transfers::Both));
        assert_eq!(
            (of("MPI_Send_init").counted, of("MPI_Send").transfers),
            (false, Some(Transfers::Send))
        );
    }
}
