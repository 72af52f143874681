//! A variable to set.

use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Variable {
    pub name: String,
    pub value: String,
}

impl Variable {
    pub fn new(name: &str, value: String) -> Variable {
        Variable { name: name.to_owned(), value }
    }
}
