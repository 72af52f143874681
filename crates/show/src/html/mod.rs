//! A run as a page of HTML that stands alone: one file, which asks for nothing else and works without a network. Each section is
//! a file; `markup` is the only way by which anything of a run gets into it.
//!
//! Grids are drawn on canvas, all else is SVG or HTML: a heat map of 64 x 160 places and five causes is 50,000 numbers,
//! which as elements are megabytes and slow. A canvas can be used without a pointer: a sentence says what is to be
//! seen, arrow keys move a cursor, and a line is read aloud with the exact value. The script is plain, without a
//! framework or a build step: what is in the page can be read in the source.

mod advice;
mod circumstances;
mod collect;
pub mod compare;
mod data;
pub(crate) mod escape;
pub mod hang;
mod head;
mod injection;
pub mod jobs;
mod left_over;
mod markup;
mod page;
mod pictures;
mod profile;
mod ranks;
pub mod scaling;
mod sites;
mod sizes;
mod sources;
pub mod stacks;
mod steps;
mod style;
mod thresholds;
mod unexpected;

pub use collect::{collect, Contents, PageChoice};
pub use page::{is_page, page};
pub use sources::Sources;
