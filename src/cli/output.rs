//! Files that go where the command line says.

use std::path::Path;

use super::CliError;
use crate::record::{Disk, RunError, garbage};

/// Has `make` write a file to `path`, which `option` names, and removes what killed processes left of it before.
pub(super) fn write(
    disk: &Disk,
    path: &Path,
    option: &'static str,
    make: impl FnOnce() -> Result<(), RunError>,
) -> Result<(), CliError> {
    garbage::clear(disk, path).and_then(|()| make()).map_err(|error| error.output(path, option).into())
}
