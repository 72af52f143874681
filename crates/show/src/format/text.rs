//! For reading.

use super::FormatDef;
use lapscope_data::text::style::Style;
use lapscope_data::text::visible::Form;

pub(super) const FORMAT: FormatDef = FormatDef {
    name: "text",
    help: "For reading",
    is_table: false,
    streams: false,
    form: || Form::Text { color: Style::for_stdout().color },
    write: |document, out| document.write_text(out, Style::for_stdout()),
};
