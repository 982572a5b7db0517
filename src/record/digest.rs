//! A result's digest: what two equal runs have in common, in one line.

use std::io::{self, BufReader, Read};
use std::path::Path;

use crate::record::attempt::step_of;
use crate::record::checkpoint::{self, MANIFEST};
use crate::record::disk::Handle;
use crate::record::{Disk, RunError};

/// The digest of the run in the folder `run`, as `blake3:` and 64 hexadecimal digits: over `metrics.jsonl`, the
/// uncompressed episodes of every file in `rollouts` and `evals`, and the files of the newest checkpoint (the learner's
/// whole state, weights among it), each with its name and length. Times, logs and attempts are not in it.
///
/// # Errors
/// The system's; [`RunError::Corrupt`] for a file of episodes that cannot be decompressed.
pub fn digest(disk: &Disk, run: &Path) -> Result<String, RunError> {
    let weights = checkpoint::steps(disk, run)?.last().map(|step| checkpoint::folder(run, *step));
    of(disk, run, weights.as_deref())
}

/// What is wrong with the files of a run that came to `digest`, if anything. Where there are no weights, as in an
/// unpacked archive, nobody can tell.
///
/// # Errors
/// As [`digest()`].
pub fn differs(disk: &Disk, run: &Path, digest: &str) -> Result<Option<String>, RunError> {
    if !disk.exists(&run.join("checkpoints"))? || self::digest(disk, run)? == digest {
        return Ok(None);
    }
    let name = run.file_name().unwrap_or_default().to_string_lossy();
    Ok(Some(format!("its files are not those of its digest, {digest}; starpo verify {name} says which")))
}

/// [`digest`] without the checkpoint: what can be asked of a run whose weights are not there.
///
/// # Errors
/// As [`digest`].
pub fn records(disk: &Disk, run: &Path) -> Result<String, RunError> {
    of(disk, run, None)
}

fn of(disk: &Disk, run: &Path, weights: Option<&Path>) -> Result<String, RunError> {
    let mut result = blake3::Hasher::new_derive_key("starpo result 1");
    let mut add = |name: &str, path: &Path| {
        let mut source: Box<dyn Read> = match name.strip_suffix(".zst") {
            Some(_) => Box::new(decompress(path, disk.open(path)?)?),
            None => disk.open(path)?,
        };
        let mut content = Counted(blake3::Hasher::new(), 0);
        io::copy(&mut source, &mut content).map_err(RunError::io("read", path))?;
        let name = name.trim_end_matches(".zst");
        result.update(&(name.len() as u64).to_le_bytes()).update(name.as_bytes());
        result.update(&content.1.to_le_bytes()).update(content.0.finalize().as_bytes());
        Ok::<(), RunError>(())
    };
    add("metrics.jsonl", &run.join("metrics.jsonl"))?;
    for folder in ["rollouts", "evals"] {
        for name in disk.names(&run.join(folder))?.iter().filter(|name| step_of(name).is_some()) {
            add(&format!("{folder}/{name}"), &run.join(folder).join(name))?;
        }
    }
    if let Some(folder) = weights {
        for name in disk.names(folder)?.iter().filter(|name| *name != MANIFEST) {
            add(&format!("weights/{name}"), &folder.join(name))?;
        }
    }
    Ok(format!("blake3:{}", result.finalize().to_hex()))
}

/// What the weights of the run in the folder `run` are to a run that starts from them, in hex: the policy's file in the
/// newest checkpoint, and the lines of the canonical text that say what model it is of.
///
/// # Errors
/// The system's; [`RunError::Corrupt`] if there is no checkpoint.
pub fn weights(disk: &Disk, run: &Path) -> Result<String, RunError> {
    let missing = || RunError::Corrupt { path: run.to_owned(), what: "it has no checkpoint with weights".to_owned() };
    let step = checkpoint::steps(disk, run)?.pop().ok_or_else(missing)?;
    let canon = disk.read_text(&run.join("canon.txt"))?;
    let is_model = |line: &&str| ["model", "@input model", "@epoch model."].iter().any(|start| line.starts_with(start));
    let mut result = blake3::Hasher::new_derive_key("starpo weights 1");
    for line in canon.lines().filter(is_model) {
        result.update(line.as_bytes()).update(b"\n");
    }
    result.update(&disk.read(&checkpoint::folder(run, step).join("model.safetensors"))?);
    Ok(result.finalize().to_hex().to_string())
}

fn decompress(path: &Path, file: Box<dyn Handle>) -> Result<impl Read + use<>, RunError> {
    zstd::Decoder::new(BufReader::new(file)).map_err(RunError::io("read", path))
}

/// Hashes and counts what is written to it.
struct Counted(blake3::Hasher, u64);

impl io::Write for Counted {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.update(bytes);
        self.1 += bytes.len() as u64;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}
