//! Questions and answers as bytes: CBOR (RFC 8949) behind a version, so that what another lapscope wrote is refused, not misread.

use std::fmt;
use std::io::Write;
use std::marker::PhantomData;

use anyhow::{ensure, Context};
use cbor4ii::core::dec::{Read, Reference};
use cbor4ii::core::utils::SliceReader;
use serde::de::{DeserializeOwned, IgnoredAny, MapAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// The format of questions and partial results; raised when either changes.
pub const FORMAT: u32 = 4;

#[derive(Serialize)]
struct Out<'a, T> {
    format: u32,
    lapscope: &'a str,
    body: &'a T,
}

/// `body` is `None` where it is of another format: there may be anything in it.
struct In<T> {
    format: u32,
    lapscope: String,
    body: Option<T>,
}

impl<'de, T: Deserialize<'de>> Deserialize<'de> for In<T> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<In<T>, D::Error> {
        deserializer.deserialize_map(InVisitor(PhantomData))
    }
}

/// Takes the body as it comes: a run of many ranks is large, and every part is told of it in every stage.
struct InVisitor<T>(PhantomData<T>);

impl<'de, T: Deserialize<'de>> Visitor<'de> for InVisitor<T> {
    type Value = In<T>;

    fn expecting(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str("a map of format, lapscope and body")
    }

    fn visit_map<M: MapAccess<'de>>(self, mut map: M) -> Result<In<T>, M::Error> {
        let mut read = In { format: 0, lapscope: String::new(), body: None };
        while let Some(key) = map.next_key::<String>()? {
            match key.as_str() {
                "format" => read.format = map.next_value()?,
                "lapscope" => read.lapscope = map.next_value()?,
                "body" if read.format == FORMAT => read.body = Some(map.next_value()?),
                _ => {
                    map.next_value::<IgnoredAny>()?;
                }
            }
        }
        Ok(read)
    }
}

/// # Errors
/// What writing says.
pub fn write<T: Serialize>(out: impl Write, body: &T) -> anyhow::Result<()> {
    let version = env!("CARGO_PKG_VERSION");
    cbor4ii::serde::to_writer(out, &Out { format: FORMAT, lapscope: version, body })
        .context("a partial result cannot be written")
}

/// Reads the first of some that stand one behind the other, and leaves the others.
///
/// # Errors
/// It is none, or of another format.
pub fn read<T: DeserializeOwned>(bytes: &mut &[u8], what: &str) -> anyhow::Result<T> {
    let mut deserializer = cbor4ii::serde::Deserializer::new(SliceReader::new(bytes));
    let read =
        In::deserialize(&mut deserializer).with_context(|| format!("{what} cannot be read"))?;
    let mut reader = deserializer.into_inner();
    let Ok(Reference::Long(rest) | Reference::Short(rest)) = reader.fill(usize::MAX);
    *bytes = &bytes[bytes.len() - rest.len()..];
    let In { format, lapscope, body } = read;
    ensure!(
        format == FORMAT,
        "{what} is of format {format}, written by lapscope {lapscope}; this one reads format {FORMAT}: use the same lapscope on all \
         machines"
    );
    body.with_context(|| format!("{what} cannot be read: it has no body"))
}
