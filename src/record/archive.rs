//! A run as one file: what equal runs have in common, in a tar archive of equal bytes.
//!
//! The format is POSIX ustar (IEEE 1003.1-1988), compressed by zstd, with GNU's long names where a folder's is too long
//! for it. Times, owners and attempts are left out, and so are weights, which the rest makes again; episodes are stored
//! as text.

use tar::{Builder, Header};

use crate::record::attempt::{STEPWISE, compress};
use crate::record::{Disk, RunDir, RunError, reader};

/// How hard zstd tries.
const COMPRESSION: i32 = 19;

/// The archive of a finished run, with a `README` that holds `command`.
///
/// # Errors
/// The system's; [`RunError::Corrupt`] for episodes that cannot be read.
pub fn archive(disk: &Disk, run: &RunDir, command: &str) -> Result<Vec<u8>, RunError> {
    let mut tar = Builder::new(Vec::new());
    let mut add = |name: &str, content: &[u8]| {
        let path = format!("{}/{name}", run.name());
        tar.append_data(&mut header(content.len()), path, content).map_err(RunError::io("pack", run.path()))
    };
    add("README", command.as_bytes())?;
    // So that the archive, unpacked among runs, is the run: done, by no attempt of there.
    add("state", b"done 0\n")?;
    for name in ["run.lock.kdl", "canon.txt", "metrics.jsonl", "result.kdl"] {
        add(name, &disk.read(&run.path().join(name))?)?;
    }
    for (folder, files) in
        STEPWISE.into_iter().zip([reader::rollouts(disk, run.path())?, reader::evals(disk, run.path())?])
    {
        for (_, path) in files {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            add(&format!("{folder}/{}", name.trim_end_matches(".zst")), reader::episodes(disk, &path)?.as_bytes())?;
        }
    }
    let packed = tar.into_inner().and_then(|tar| compress(&tar, COMPRESSION));
    packed.map_err(RunError::io("compress", run.path()))
}

/// The header of a file of nobody, at no time.
fn header(size: usize) -> Header {
    let mut header = Header::new_ustar();
    header.set_size(size as u64);
    header.set_mode(0o644);
    header.set_uid(0);
    header.set_gid(0);
    header
}
