//! A run as one file: what equal runs have in common, in a tar archive of equal bytes.
//!
//! The format is POSIX ustar (IEEE 1003.1-1988), compressed by zstd, with a pax header (IEEE 1003.1-2001) before a file
//! whose folder has too long a name for it. Times, owners and attempts are left out, and so are weights, which the rest
//! makes again; episodes are stored as text.

use std::io::{self, Write};

use crate::record::{Disk, RunDir, RunError, reader};

/// How hard zstd tries.
const COMPRESSION: i32 = 19;
const BLOCK: usize = 512;
/// The longest folder that a header has room for, in bytes.
const PREFIX: usize = 155;

/// The archive of a finished run, with a `README` that holds `command`.
///
/// # Errors
/// The system's; [`RunError::Corrupt`] for episodes that cannot be read.
pub fn archive(disk: &Disk, run: &RunDir, command: &str) -> Result<Vec<u8>, RunError> {
    let mut tar = Vec::new();
    let mut add = |name: &str, content: &[u8]| entry(&mut tar, &format!("{}/{name}", run.name()), content);
    add("README", command.as_bytes());
    // So that the archive, unpacked among runs, is the run: done, by no attempt of there.
    add("state", b"done 0\n");
    for name in ["run.lock.kdl", "canon.txt", "metrics.jsonl", "result.kdl"] {
        add(name, &disk.read(&run.path().join(name))?);
    }
    for folder in ["rollouts", "evals"] {
        for name in disk.names(&run.path().join(folder))?.iter().filter(|name| !name.starts_with('.')) {
            let text = reader::episodes(disk, &run.path().join(folder).join(name))?;
            add(&format!("{folder}/{}", name.trim_end_matches(".zst")), text.as_bytes());
        }
    }
    tar.extend([0; 2 * BLOCK]);
    compress(&tar).map_err(RunError::io("compress", run.path()))
}

fn compress(bytes: &[u8]) -> io::Result<Vec<u8>> {
    let mut encoder = zstd::Encoder::new(Vec::new(), COMPRESSION)?;
    encoder.include_checksum(true)?;
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// One file, whose own name is short.
fn entry(tar: &mut Vec<u8>, path: &str, content: &[u8]) {
    let (folder, name) = path.rsplit_once('/').unwrap_or(("", path));
    if folder.len() <= PREFIX {
        return blocks(tar, folder, name, "0", content);
    }
    let record = format!(" path={path}\n");
    // The record begins with its length, which counts its own digits.
    let counts = |length: &usize| length.to_string().len() + record.len() == *length;
    let length = (record.len()..).find(counts).unwrap_or_default();
    blocks(tar, "", "path", "x", format!("{length}{record}").as_bytes());
    blocks(tar, "", name, "0", content);
}

/// A header of a block, and the content in whole blocks.
fn blocks(tar: &mut Vec<u8>, folder: &str, name: &str, kind: &str, content: &[u8]) {
    let mut header = [0; BLOCK];
    let mut put = |at: usize, text: &str| header[at..at + text.len()].copy_from_slice(text.as_bytes());
    put(0, name);
    put(100, "0000644\0");
    put(108, "0000000\0");
    put(116, "0000000\0");
    put(124, &format!("{:011o}\0", content.len()));
    put(136, "00000000000\0");
    // The sum is that of a header whose own field is blank.
    put(148, "        ");
    put(156, kind);
    put(257, "ustar\x0000");
    put(345, folder);
    let sum: u32 = header.iter().map(|byte| u32::from(*byte)).sum();
    header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
    tar.extend(header);
    tar.extend(content);
    tar.resize(tar.len().next_multiple_of(BLOCK), 0);
}
