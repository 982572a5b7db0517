//! Tables as Parquet, by the feature of that name.

use std::path::Path;

use super::Table;
use crate::record::{Disk, RunError};

/// The files of a run: a row a step, and a row a turn.
pub const FILES: [&str; 2] = ["metrics.parquet", "episodes.parquet"];

/// Writes a run's [`FILES`] beside its records.
///
/// # Errors
/// The system's; a record that does not read; a build without Parquet.
pub fn write_run(disk: &Disk, run: &Path) -> Result<(), RunError> {
    for (name, table) in FILES.into_iter().zip([Table::of_steps(disk, run)?, Table::of_turns(disk, run)?]) {
        let path = run.join(name);
        disk.replace(&path, &bytes(&table).map_err(RunError::io("write", &path))?)?;
    }
    Ok(())
}

/// That this build has Parquet.
///
/// # Errors
/// What it lacks.
pub fn check() -> Result<(), &'static str> {
    match cfg!(feature = "parquet") {
        true => Ok(()),
        false => Err("this starpo was built without Parquet: build it with --features parquet"),
    }
}

/// A table as a file. A column of whole numbers is INT64, of numbers DOUBLE, of truth values BOOLEAN, any other a
/// string; all are optional.
///
/// # Errors
/// A build without Parquet.
#[cfg(not(feature = "parquet"))]
pub fn bytes(_: &Table) -> std::io::Result<Vec<u8>> {
    check().map(|()| Vec::new()).map_err(std::io::Error::other)
}

/// A table as a file. A column of whole numbers is INT64, of numbers DOUBLE, of truth values BOOLEAN, any other a
/// string; all are optional.
///
/// # Errors
/// A build without Parquet.
#[cfg(feature = "parquet")]
pub fn bytes(table: &Table) -> std::io::Result<Vec<u8>> {
    file::bytes(table).map_err(std::io::Error::other)
}

#[cfg(feature = "parquet")]
mod file {
    use std::sync::Arc;

    use ::parquet::basic::{Compression, LogicalType, Repetition, Type as Physical};
    use ::parquet::data_type::{BoolType, ByteArrayType, DataType, DoubleType, Int64Type};
    use ::parquet::errors::Result;
    use ::parquet::file::properties::WriterProperties;
    use ::parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
    use ::parquet::schema::types::Type;
    use serde_json::Value;

    use super::Table;

    pub(super) fn bytes(table: &Table) -> Result<Vec<u8>> {
        let columns: Vec<Vec<&Value>> =
            (0..table.columns.len()).map(|column| table.rows.iter().map(|row| &row[column]).collect()).collect();
        let kinds: Vec<Physical> = columns.iter().map(|cells| kind(cells)).collect();
        let field = |(name, &kind): (&String, &Physical)| {
            let text = (kind == Physical::BYTE_ARRAY).then_some(LogicalType::String);
            let builder = Type::primitive_type_builder(name, kind).with_repetition(Repetition::OPTIONAL);
            builder.with_logical_type(text).build().map(Arc::new)
        };
        let fields = table.columns.iter().zip(&kinds).map(field).collect::<Result<Vec<_>>>()?;
        let schema = Type::group_type_builder("starpo").with_fields(fields).build()?;
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let mut writer = SerializedFileWriter::new(Vec::new(), Arc::new(schema), Arc::new(properties))?;
        let mut group = writer.next_row_group()?;
        for (cells, kind) in columns.iter().zip(kinds) {
            match kind {
                Physical::INT64 => column::<Int64Type>(&mut group, cells, Value::as_i64)?,
                Physical::DOUBLE => column::<DoubleType>(&mut group, cells, Value::as_f64)?,
                Physical::BOOLEAN => column::<BoolType>(&mut group, cells, Value::as_bool)?,
                _ => column::<ByteArrayType>(&mut group, cells, |cell| match cell {
                    Value::Null => None,
                    Value::String(text) => Some(text.as_str().into()),
                    other => Some(other.to_string().as_str().into()),
                })?,
            }
        }
        group.close()?;
        writer.into_inner()
    }

    /// The narrowest type that holds all cells.
    fn kind(cells: &[&Value]) -> Physical {
        let all = |is: fn(&Value) -> bool| cells.iter().all(|cell| cell.is_null() || is(cell));
        match () {
            () if all(Value::is_null) => Physical::DOUBLE,
            () if all(Value::is_i64) => Physical::INT64,
            () if all(Value::is_number) => Physical::DOUBLE,
            () if all(Value::is_boolean) => Physical::BOOLEAN,
            () => Physical::BYTE_ARRAY,
        }
    }

    fn column<T: DataType>(
        group: &mut SerializedRowGroupWriter<'_, Vec<u8>>,
        cells: &[&Value],
        read: impl Fn(&Value) -> Option<T::T>,
    ) -> Result<()> {
        let cells: Vec<Option<T::T>> = cells.iter().map(|cell| read(cell)).collect();
        let defined: Vec<i16> = cells.iter().map(|cell| i16::from(cell.is_some())).collect();
        let values: Vec<T::T> = cells.into_iter().flatten().collect();
        if let Some(mut column) = group.next_column()? {
            column.typed::<T>().write_batch(&values, Some(&defined), None)?;
            column.close()?;
        }
        Ok(())
    }
}
