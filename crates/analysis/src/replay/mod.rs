//! A recorded run replayed as discrete events under a scenario: computation as it was recorded, messages by a model of the
//! network that moves them only when MPI would.

pub mod scenario;
