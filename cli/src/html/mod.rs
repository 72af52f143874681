//! A run as a page of HTML that stands alone: one file, which asks for nothing else and works without a network. Each section is
//! a file; `markup` is the only way by which anything of a run gets into it.

mod advice;
mod circumstances;
mod collect;
pub mod compare;
mod data;
mod escape;
pub mod hang;
mod head;
mod injection;
mod markup;
mod page;
mod pictures;
mod ranks;
mod sites;
mod sizes;
mod sources;
mod steps;
mod style;
mod thresholds;

pub use collect::{collect, Contents, PageChoice};
pub use page::{is_page, page};
pub use sources::Sources;
