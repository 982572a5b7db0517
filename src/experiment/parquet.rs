//! Parquet files that a config names, as JSON lines: what features read, and what is digested.

use std::io;
use std::path::Path;

/// A line of JSON a row.
///
/// # Errors
/// The system's; what is wrong with the file; a build without Parquet.
#[cfg(feature = "parquet")]
pub(super) fn json_lines(path: &Path) -> io::Result<Vec<u8>> {
    use ::parquet::file::reader::{FileReader, SerializedFileReader};

    let reader = SerializedFileReader::new(std::fs::File::open(path)?).map_err(io::Error::other)?;
    let mut lines = Vec::new();
    for row in reader.get_row_iter(None).map_err(io::Error::other)? {
        let row = row.map_err(io::Error::other)?.to_json_value();
        lines.extend(format!("{row}\n").into_bytes());
    }
    Ok(lines)
}

#[cfg(not(feature = "parquet"))]
pub(super) fn json_lines(path: &Path) -> io::Result<Vec<u8>> {
    std::fs::metadata(path)?;
    Err(io::Error::other(
        "this starpo was built without Parquet: build it with --features parquet, or write the rows as JSON lines",
    ))
}
