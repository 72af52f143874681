//! Settings of the MPI itself, tried in whole runs. [`table`] is what there is to try, [`first`] what the first run says of the
//! library and of the time at stake, [`candidate`] what follows, [`search`] what is tried next, [`proof`] when a gain is certain,
//! [`printed`] whether results change, [`trials`] goes through all that, [`document`] is the answer.

pub mod candidate;
pub mod document;
pub mod first;
pub mod printed;
pub mod proof;
pub mod search;
pub mod table;
pub mod trials;
