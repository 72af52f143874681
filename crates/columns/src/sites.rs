//! Call sites, one row each: what `site_id` of other tables refers to.

use lapscope_data::model::CallName;
use lapscope_data::symbols::FrameName;

use super::table::Column;

pub struct SiteRow<'a> {
    pub id: u32,
    pub call: &'a CallName,
    /// `None`: without call paths.
    pub frame: Option<FrameName>,
    /// As reports print it.
    pub name: Option<String>,
}

impl SiteRow<'_> {
    fn frame(&self, of: impl Fn(&FrameName) -> Option<&String>) -> Option<&str> {
        self.frame.as_ref().and_then(of).map(String::as_str)
    }
}

pub fn columns<'a>() -> Vec<Column<SiteRow<'a>>> {
    vec![
        Column::whole("site_id", |row| row.id.into()),
        Column::word("call", |row| Some(&row.call.name)),
        Column::word("site", |row| row.name.as_deref()),
        Column::word("function", |row| row.frame(|frame| frame.function.as_ref())),
        Column::word("file", |row| row.frame(|frame| frame.file.as_ref())),
        Column::maybe("line", |row| row.frame.as_ref()?.line.map(i64::from)),
        Column::word("module", |row| row.frame(|frame| frame.module.as_ref())),
        Column::maybe("address", |row| row.frame.as_ref().map(|frame| frame.address as i64)),
        Column::word("family", |row| Some(&row.call.family)),
        Column::word("role", |row| Some(&row.call.role)),
        Column::word("blocking_call", |row| Some(&row.call.blocking)),
    ]
}
