//! A run as tables of columns: Parquet files that DuckDB, Polars, Spark, pandas and Arrow read. What every column means is in
//! `docs/parquet.md`; a test holds that document against the lists of columns here.
//!
//! Each node has one file of requests, one of calls and one of messages, so that nodes are written side by side and a
//! reader that wants one node opens one file. Rows stand in the order of ranks, in row groups of bounded size.

pub mod calls;
mod causes;
pub mod directory;
pub mod jobs;
pub mod messages;
pub mod ranks;
pub mod requests;
mod run;
pub mod sites;
pub mod table;
mod words;
mod write;

pub use write::{write, WriteProgress, TABLES};

/// Stands in every file as `lapscope.columns`; raised by every change that a reader of older files would misread.
pub const VERSION: &str = "1";
