//! What a table is made of, and how its rows get into a file.

use std::fs::File;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context, Result};
use parquet::basic::{Compression, Encoding, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedColumnWriter, SerializedFileWriter};
use parquet::format::KeyValue;
use parquet::schema::types::{ColumnPath, Type};

use super::VERSION;

/// Rows of a row group: what a writer holds in memory, some 20 MB.
pub const ROW_GROUP: usize = 1 << 16;

/// How a column is made of a row.
pub enum ColumnValue<R> {
    Whole(fn(&R) -> i64),
    /// `None`: not known or not applicable.
    Maybe(fn(&R) -> Option<i64>),
    /// A number with a fraction; `None` likewise.
    Real(fn(&R) -> Option<f64>),
    Word(fn(&R) -> Option<&str>),
}

/// A column of a table.
pub struct Column<R> {
    pub name: &'static str,
    pub of: ColumnValue<R>,
}

impl<R> Column<R> {
    pub fn whole(name: &'static str, of: fn(&R) -> i64) -> Self {
        Column { name, of: ColumnValue::Whole(of) }
    }

    pub fn maybe(name: &'static str, of: fn(&R) -> Option<i64>) -> Self {
        Column { name, of: ColumnValue::Maybe(of) }
    }

    pub fn word(name: &'static str, of: fn(&R) -> Option<&str>) -> Self {
        Column { name, of: ColumnValue::Word(of) }
    }

    /// As `docs/parquet.md` has it.
    pub fn type_name(&self) -> &'static str {
        match self.of {
            ColumnValue::Whole(_) | ColumnValue::Maybe(_) => "integer",
            ColumnValue::Real(_) => "number",
            ColumnValue::Word(_) => "text",
        }
    }

    pub fn can_be_null(&self) -> bool {
        !matches!(self.of, ColumnValue::Whole(_))
    }

    fn schema(&self) -> parquet::errors::Result<Type> {
        let (physical, logical) = match self.of {
            ColumnValue::Whole(_) | ColumnValue::Maybe(_) => (Physical::INT64, None),
            ColumnValue::Real(_) => (Physical::DOUBLE, None),
            ColumnValue::Word(_) => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        };
        let repetition =
            if self.can_be_null() { Repetition::OPTIONAL } else { Repetition::REQUIRED };
        Type::primitive_type_builder(self.name, physical)
            .with_repetition(repetition)
            .with_logical_type(logical)
            .build()
    }

    /// Times hardly ever repeat, and neighbours are close to each other.
    fn is_time(&self) -> bool {
        self.name.ends_with("_ns")
    }

    fn write(
        &self,
        rows: &[R],
        out: &mut SerializedColumnWriter<'_>,
    ) -> parquet::errors::Result<()> {
        match self.of {
            ColumnValue::Whole(of) => {
                let values: Vec<i64> = rows.iter().map(of).collect();
                out.typed::<Int64Type>().write_batch(&values, None, None)?;
            }
            ColumnValue::Maybe(of) => write_some::<Int64Type>(rows.iter().map(of), out)?,
            ColumnValue::Real(of) => write_some::<DoubleType>(rows.iter().map(of), out)?,
            ColumnValue::Word(of) => {
                let words = rows.iter().map(|row| of(row).map(ByteArray::from));
                write_some::<ByteArrayType>(words, out)?;
            }
        }
        Ok(())
    }
}

fn write_some<T: DataType>(
    all: impl Iterator<Item = Option<T::T>>,
    out: &mut SerializedColumnWriter<'_>,
) -> parquet::errors::Result<()> {
    let mut values = Vec::new();
    let is_there = all.map(|value| {
        let is_there = i16::from(value.is_some());
        values.extend(value);
        is_there
    });
    let levels: Vec<i16> = is_there.collect();
    out.typed::<T>().write_batch(&values, Some(&levels), None)?;
    Ok(())
}

/// A file that rows are put into.
pub struct TableFile<R> {
    path: PathBuf,
    columns: Vec<Column<R>>,
    rows: Vec<R>,
    writer: SerializedFileWriter<File>,
}

impl<R> TableFile<R> {
    /// # Errors
    /// The file cannot be made.
    pub fn create(path: &Path, columns: Vec<Column<R>>) -> Result<TableFile<R>> {
        let name = || path.display().to_string();
        if let Some(directory) = path.parent() {
            std::fs::create_dir_all(directory).with_context(name)?;
        }
        let file = File::create_new(path).with_context(name)?;
        let fields = columns.iter().map(|column| column.schema().map(Arc::new));
        let fields = fields.collect::<parquet::errors::Result<_>>()?;
        let schema = Type::group_type_builder("lapscope").with_fields(fields).build()?;
        let properties = Arc::new(properties(&columns));
        let writer = SerializedFileWriter::new(file, Arc::new(schema), properties);
        let writer = writer.map_err(plain).with_context(name)?;
        Ok(TableFile { path: path.to_owned(), columns, rows: Vec::new(), writer })
    }

    /// Whether so many rows are held that they are written next.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn push(&mut self, row: R) -> Result<bool> {
        self.rows.push(row);
        let is_full = self.rows.len() >= ROW_GROUP;
        if is_full {
            self.flush()?;
        }
        Ok(is_full)
    }

    fn flush(&mut self) -> Result<()> {
        let mut write = || -> parquet::errors::Result<()> {
            let mut group = self.writer.next_row_group()?;
            for column in &self.columns {
                let Some(mut out) = group.next_column()? else { break };
                column.write(&self.rows, &mut out)?;
                out.close()?;
            }
            group.close()?;
            Ok(())
        };
        write().map_err(plain).with_context(|| self.path.display().to_string())?;
        self.rows.clear();
        Ok(())
    }

    /// What is still held, and the end of the file.
    ///
    /// # Errors
    /// They cannot be written.
    pub fn finish(mut self) -> Result<()> {
        if !self.rows.is_empty() {
            self.flush()?;
        }
        let TableFile { path, mut writer, .. } = self;
        let mut end = || -> parquet::errors::Result<()> {
            writer.finish()?;
            Ok(writer.inner_mut().flush()?)
        };
        end().map_err(plain).with_context(|| path.display().to_string())
    }
}

fn properties<R>(columns: &[Column<R>]) -> WriterProperties {
    let version = KeyValue::new("lapscope.columns".to_owned(), VERSION.to_owned());
    let start = WriterProperties::builder()
        .set_compression(Compression::ZSTD(ZstdLevel::default()))
        .set_key_value_metadata(Some(vec![version]))
        .set_created_by(concat!("lapscope version ", env!("CARGO_PKG_VERSION")).to_owned());
    let times = columns.iter().filter(|column| column.is_time());
    let with_times = times.fold(start, |properties, column| {
        let path = ColumnPath::from(column.name);
        properties
            .set_column_dictionary_enabled(path.clone(), false)
            .set_column_encoding(path, Encoding::DELTA_BINARY_PACKED)
    });
    with_times.build()
}

/// What the operating system said, where it was that.
fn plain(error: ParquetError) -> anyhow::Error {
    match error {
        ParquetError::External(inner) => match inner.downcast::<std::io::Error>() {
            Ok(error) => anyhow::Error::from(*error),
            Err(inner) => anyhow::anyhow!("{inner}"),
        },
        error => error.into(),
    }
}
