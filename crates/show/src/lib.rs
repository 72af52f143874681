//! How documents look: as text and tables, in the formats that programs read, as charts, as a page, and a running job in the terminal.

pub mod diagnosis;
mod documents;
pub mod format;
pub mod html;
#[cfg(feature = "live")]
pub mod live;
pub mod openmetrics;
pub mod output;
pub mod plot;
pub mod render;
