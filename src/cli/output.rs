//! Files that go where the command line says.

use std::fs;
use std::path::Path;

use super::CliError;
use crate::record::{Disk, RunError, garbage};

/// Has `make` write to `path`, which `option` names, and removes what killed processes left of it before.
pub(super) fn make(
    disk: &Disk,
    path: &Path,
    option: &'static str,
    make: impl FnOnce() -> Result<(), RunError>,
) -> Result<(), CliError> {
    garbage::clear(disk, path).and_then(|()| make()).map_err(|error| error.output(path, option).into())
}

/// Writes a file so. What is there and is no plain file, such as a link or `/dev/stdout`, stays and is written to.
pub(super) fn write(disk: &Disk, path: &Path, option: &'static str, bytes: &[u8]) -> Result<(), CliError> {
    make(disk, path, option, || match path.symlink_metadata() {
        Ok(there) if !there.is_file() => fs::write(path, bytes).map_err(RunError::io("write", path)),
        _ => disk.replace(path, bytes),
    })
}
