//! Files that go where the command line says.

use std::fs;
use std::path::Path;

use crate::record::{Disk, RunError};

/// Writes a file. What is there and is no plain file, such as a link or `/dev/stdout`, stays and is written to.
pub(super) fn write(disk: &Disk, path: &Path, bytes: &[u8]) -> Result<(), RunError> {
    match path.symlink_metadata() {
        Ok(there) if !there.is_file() => fs::write(path, bytes).map_err(RunError::io("write", path)),
        _ => disk.replace(path, bytes),
    }
}
