//! A recorded run replayed as discrete events under a scenario: computation as it was recorded, messages by a model of the
//! network that moves them only when MPI would.
//!
//! [`program`] makes steps of a trace, [`network`] says how long messages take and which way they go, [`engine`] goes from event
//! to event, [`outcome`] says when everything happened. What happens at an event has a file for each: a thread goes on (`thread`),
//! its rank comes into MPI or leaves it (`presence`), messages and collectives go on (`message`, `pipeline`, `gathering`), one of
//! them is complete (`complete`). Each knows those named after it, and the `state` that all of them change.
//!
//! Simulators of traces let a rendezvous go on in the background, or give it no processor time. Here a control message
//! is handled when its rank is inside MPI, or at the next test of a computation, or at once where progress is
//! asynchronous.
//!
//! What the record does not say enough of has its recorded duration: messages of unknown partners, most one-sided
//! calls, files, collectives of which a member is missing, scans, neighbourhood collectives. A wait waits for the
//! requests that it completed in the record, also MPI_Waitany: the order of events is the recorded one.

pub mod benchmark;
#[cfg(test)]
pub(crate) mod chain_tests;
pub mod collective;
mod complete;
pub mod conditions;
pub mod critical;
pub mod deadlock;
pub mod engine;
mod gathering;
pub mod injected;
pub mod kernels;
mod late;
mod link;
mod looks;
mod message;
pub mod moves;
pub mod network;
pub mod nonblocking;
pub mod outcome;
mod pipeline;
mod presence;
pub mod program;
mod queue;
pub mod replayed;
pub mod retime;
pub mod roots;
pub mod scenario;
mod state;
#[cfg(test)]
mod tests;
pub mod thinned;
mod thread;
pub mod timeline;
pub mod work;

pub use collective::Durations;
pub use conditions::Conditions;
pub use engine::replay;
pub use network::{LocalityNetwork, Network};
pub use outcome::Outcome;
pub use program::Program;
