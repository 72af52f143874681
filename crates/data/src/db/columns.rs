//! Columns of the tables with millions of rows, as schema/tables.def has them, and rows of those that a reader wants.

use std::ffi::c_int;

use super::rows::{BadColumn, Rows};
use crate::model::{Bytes, Nanos};

/// A column, and how it is read.
pub trait TableColumn {
    const NAME: &'static str;
    type Value;
    /// # Errors
    /// At that place of the query stands what it cannot be.
    fn read(row: &Rows<'_>, at: c_int) -> Result<Self::Value, BadColumn>;
}

include!(concat!(env!("OUT_DIR"), "/generated/columns.rs"));

/// A row type that knows its columns of `request`; [`request_row`](crate::request_row) makes one.
pub trait FromRow: Sized {
    /// In the order in which [`FromRow::read`] takes them.
    const COLUMNS: &'static [&'static str];
    /// # Errors
    /// A column holds what it cannot.
    fn read(row: &Rows<'_>) -> Result<Self, BadColumn>;
    fn operation_id(&self) -> i64;
    fn completion_id(&self) -> Option<i64>;
    /// In the posting call.
    fn post(&self) -> Nanos;
}

/// Declares a row of `request` by the columns that its reader wants; their types are those of tables.def. Every reader wants
/// `operation_id`, `completion_id` and `post`.
#[macro_export]
macro_rules! request_row {
    ($(#[$about:meta])* $seen:vis struct $name:ident { $($(#[$note:meta])* $column:ident),* $(,)? }) => {
        $(#[$about])*
        $seen struct $name {
            $(
                $(#[$note])*
                $seen $column: <$crate::db::columns::request::$column as $crate::db::columns::TableColumn>::Value,
            )*
        }

        impl $crate::db::FromRow for $name {
            const COLUMNS: &'static [&'static str] =
                &[$(<$crate::db::columns::request::$column as $crate::db::columns::TableColumn>::NAME),*];

            fn read(row: &$crate::db::Rows<'_>) -> Result<Self, $crate::db::BadColumn> {
                use $crate::db::columns::TableColumn;
                #[allow(non_camel_case_types)]
                enum Place {
                    $($column),*
                }
                Ok($name {
                    $($column: $crate::db::columns::request::$column::read(row, Place::$column as _)?),*
                })
            }

            fn operation_id(&self) -> i64 {
                self.operation_id
            }

            fn completion_id(&self) -> Option<i64> {
                self.completion_id
            }

            fn post(&self) -> $crate::model::Nanos {
                self.post
            }
        }
    };
}
