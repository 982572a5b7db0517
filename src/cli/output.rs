//! Files that go where the command line says.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::MetadataExt;
use std::path::Path;

use super::CliError;
use crate::record::{Disk, RunDir, RunError, garbage};

/// Has `make` write to `path`, which `option` names, unless that is part of a run's record, and removes what killed
/// processes left of it before.
pub(super) fn make(
    disk: &Disk,
    path: &Path,
    option: &'static str,
    make: impl FnOnce() -> Result<(), RunError>,
) -> Result<(), CliError> {
    if RunDir::holds(path) {
        let why = io::Error::new(io::ErrorKind::AlreadyExists, "it is part of a record");
        return Err(RunError::io("write", path)(why).output(path, option).into());
    }
    garbage::clear(disk, path).and_then(|()| make()).map_err(|error| error.output(path, option).into())
}

/// Writes a file so. What is there and is no plain file, such as a link or a pipe, stays and is written to; standard
/// output under any name is written to where it stands.
pub(super) fn write(disk: &Disk, path: &Path, option: &'static str, bytes: &[u8]) -> Result<(), CliError> {
    if is_standard(path) {
        let mut output = io::stdout().lock();
        return match output.write_all(bytes).and_then(|()| output.flush()) {
            // Who reads it had enough.
            Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
            written => written.map_err(|error| RunError::io("write", path)(error).output(path, option).into()),
        };
    }
    make(disk, path, option, || match path.symlink_metadata() {
        Ok(there) if !there.is_file() => fs::write(path, bytes).map_err(RunError::io("write", path)),
        _ => disk.replace(path, bytes),
    })
}

/// Prints a result about what [`write()`] wrote to `path`, unless that stands on standard output itself.
pub(super) fn say(path: &Path, text: &str) {
    if !is_standard(path) {
        super::say(text);
    }
}

/// Whether a path is what standard output goes to: `-`, `/dev/stdout`, or the file that a shell sends it to.
pub(super) fn is_standard(path: &Path) -> bool {
    let output = io::stdout().as_fd().try_clone_to_owned().and_then(|output| File::from(output).metadata());
    let same =
        |named: fs::Metadata| output.is_ok_and(|output| (output.dev(), output.ino()) == (named.dev(), named.ino()));
    path == Path::new("-") || path.metadata().is_ok_and(same)
}
