//! Questions and answers as bytes: CBOR (RFC 8949) behind a version, so that what another lapscope wrote is refused, not misread.

use std::io::{Read, Write};

use anyhow::{bail, ensure, Context, Result};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

/// The format of questions and partial results; raised when either changes.
pub const FORMAT: u32 = 2;

#[derive(Serialize)]
struct Out<'a, T> {
    format: u32,
    lapscope: &'a str,
    body: &'a T,
}

#[derive(Deserialize)]
struct In {
    format: u32,
    lapscope: String,
    body: ciborium::Value,
}

/// # Errors
/// What writing says.
pub fn write<T: Serialize>(out: impl Write, body: &T) -> Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    ciborium::into_writer(&Out { format: FORMAT, lapscope: version, body }, out)
        .context("a partial result cannot be written")
}

/// # Errors
/// It is none, or of another format.
pub fn read<T: DeserializeOwned>(input: impl Read, what: &str) -> Result<T> {
    let read: In =
        ciborium::from_reader(input).with_context(|| format!("{what} cannot be read"))?;
    let In { format, lapscope, body } = read;
    ensure!(
        format == FORMAT,
        "{what} is of format {format}, written by lapscope {lapscope}; this one reads format {FORMAT}: use the same lapscope on all \
         machines"
    );
    match body.deserialized() {
        Ok(body) => Ok(body),
        Err(error) => bail!("{what} cannot be read: {error}"),
    }
}
