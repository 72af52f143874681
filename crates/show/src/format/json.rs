//! One JSON document.

use std::io::Write;

use anyhow::Result;
use serde::Serialize;

use super::FormatDef;
use lapscope_data::text::visible::Form;

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "json",
    help: "Stable keys, documented in docs/json.md; times in ns, sizes in bytes",
    is_table: false,
    streams: true,
    form: || Form::Json,
    write: |document, out| document.write_json(out),
};

/// Writes `value` as it serialises, indented.
///
/// # Errors
/// Of the writer.
pub fn write(value: &impl Serialize, out: &mut dyn Write) -> Result<()> {
    serde_json::to_writer_pretty(&mut *out, value)?;
    Ok(out.write_all(b"\n")?)
}
