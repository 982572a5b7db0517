//! The project's files, and the copies of its documents that the binary carries.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, PoisonError};

use super::{embedded, foreign, parquet};
use crate::config::Reader;

/// Bytes that are read from what is no plain file.
const PIPED_MAX: u64 = 1 << 24;

/// The folder of sweeps.
pub(super) const SWEEPS: &str = "experiments/sweeps";

/// Files below folders, of which the first that has a file gives it; a document that none has is the embedded one of
/// that path, and a Parquet file is its rows as JSON lines. Folders that a config names are below `here`.
#[derive(Debug)]
pub struct Outside {
    folders: Vec<PathBuf>,
    here: PathBuf,
}

/// Where a document comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Home {
    File(PathBuf),
    Embedded,
}

impl Outside {
    /// One folder, and the embedded documents.
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { folders: vec![root.to_owned()], here: root.to_owned() }
    }

    /// Several folders, the first before the others, and the embedded documents.
    #[must_use]
    pub fn of(folders: Vec<PathBuf>, here: &Path) -> Self {
        Self { folders, here: here.to_owned() }
    }

    /// Where a document is; None if it is nowhere.
    #[must_use]
    pub fn home(&self, path: &str) -> Option<Home> {
        let file = self.folders.iter().map(|folder| folder.join(path)).find(|file| file.is_file());
        file.map(Home::File).or_else(|| embedded(path).map(|_| Home::Embedded))
    }
}

fn embedded(path: &str) -> Option<&'static str> {
    embedded::find(path.trim_start_matches("./"))
}

impl Reader for Outside {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        for folder in &self.folders {
            let place = folder.join(path);
            let read = if path.ends_with(".parquet") { parquet::json_lines(&place) } else { bytes(&place) };
            match read {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                result => return result,
            }
        }
        embedded(path).map(|text| text.as_bytes().to_vec()).ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    fn carried(&self, path: &str) -> Option<&'static str> {
        embedded(path).filter(|_| self.home(path) == Some(Home::Embedded))
    }

    fn list(&self, folder: &str) -> Vec<String> {
        let mut found = BTreeSet::new();
        for root in &self.folders {
            // A folder that cannot be read offers nothing; a document in it is reported when it is asked for.
            let _ = walk(&root.join(folder), folder, &mut |path, _| {
                found.insert(path.to_owned());
                Ok(())
            });
        }
        let below = embedded::FILES.iter().filter(|(path, _)| path.starts_with(&format!("{folder}/")));
        found.extend(below.map(|(path, _)| (*path).to_owned()));
        // A sweep is no experiment.
        let sweep = |path: &String| folder != SWEEPS && path.starts_with(&format!("{SWEEPS}/"));
        found.into_iter().filter(|path| path.ends_with(".kdl") && !sweep(path)).collect()
    }

    fn folder(&self, path: &str) -> io::Result<String> {
        let mut lines = BTreeSet::new();
        walk(&self.here.join(path), "", &mut |name, file| {
            // Hidden files are other programs' notes on the folder, such as when it was downloaded.
            if name.split('/').any(|part| part.starts_with('.')) {
                return Ok(());
            }
            if !fs::metadata(file)?.is_file() {
                return Err(io::Error::other(format!("{name} in it is no plain file")));
            }
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(fs::File::open(file)?)?;
            lines.insert(format!("{name:?}\t{}\t{}\n", hasher.count(), hasher.finalize().to_hex()));
            Ok(())
        })?;
        Ok(blake3::hash(lines.into_iter().collect::<String>().as_bytes()).to_hex().to_string())
    }

    fn foreign(&self, argument: &str) -> Option<String> {
        foreign::answer(argument)
    }

    fn hides(&self, path: &str) -> bool {
        embedded(path).is_some_and(|text| self.read(path).is_ok_and(|found| found != text.as_bytes()))
    }
}

/// A file's bytes. Of a pipe or a device, which may never end, no more than a document or a model's text has.
fn bytes(path: &Path) -> io::Result<Vec<u8>> {
    let (file, mut bytes) = (fs::File::open(path)?, Vec::new());
    let most = if file.metadata()?.is_file() { u64::MAX } else { PIPED_MAX };
    if file.take(most).read_to_end(&mut bytes)? as u64 == most {
        return Err(io::Error::other("it is no plain file, and does not end within 16 MiB"));
    }
    Ok(bytes)
}

/// Visits the files of a folder and its folders: the path with `/` under `name`, and where it is.
fn walk(folder: &Path, name: &str, visit: &mut dyn FnMut(&str, &Path) -> io::Result<()>) -> io::Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        let last = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let name = if name.is_empty() { last } else { format!("{name}/{last}") };
        // A link to a folder could lead back here, so only real folders are entered.
        if path.symlink_metadata()?.is_dir() {
            walk(&path, &name, visit)?;
        } else {
            visit(&name, &path)?;
        }
    }
    Ok(())
}

/// A reader that asks another for each content once, so that all runs of a sweep see the same.
pub(super) struct Once<'r> {
    reader: &'r dyn Reader,
    files: Mutex<BTreeMap<String, Vec<u8>>>,
    folders: Mutex<BTreeMap<String, String>>,
    runs: Mutex<BTreeMap<String, String>>,
}

impl<'r> Once<'r> {
    pub(super) fn new(reader: &'r dyn Reader) -> Self {
        Self { reader, files: Mutex::default(), folders: Mutex::default(), runs: Mutex::default() }
    }
}

impl Reader for Once<'_> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        remembered(&self.files, path, |path| self.reader.read(path))
    }

    fn carried(&self, path: &str) -> Option<&'static str> {
        self.reader.carried(path)
    }

    fn list(&self, folder: &str) -> Vec<String> {
        self.reader.list(folder)
    }

    fn folder(&self, path: &str) -> io::Result<String> {
        remembered(&self.folders, path, |path| self.reader.folder(path))
    }

    fn run(&self, name: &str) -> io::Result<String> {
        remembered(&self.runs, name, |name| self.reader.run(name))
    }

    fn hides(&self, path: &str) -> bool {
        self.reader.hides(path)
    }

    fn foreign(&self, argument: &str) -> Option<String> {
        self.reader.foreign(argument)
    }
}

fn remembered<T: Clone>(
    known: &Mutex<BTreeMap<String, T>>,
    path: &str,
    read: impl FnOnce(&str) -> io::Result<T>,
) -> io::Result<T> {
    // Held while it is read: two threads that ask at once must not see two contents.
    let mut known = known.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(value) = known.get(path) {
        return Ok(value.clone());
    }
    let value = read(path)?;
    known.insert(path.to_owned(), value.clone());
    Ok(value)
}
