//! The project's files, and the copies of its documents that the binary carries.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{embedded, foreign};
use crate::config::Reader;

/// Files below folders, of which the first that has a file gives it; a document that none has is the embedded one of
/// that path. Folders that a config names are below `here`.
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
            match fs::read(folder.join(path)) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {}
                result => return result,
            }
        }
        embedded(path).map(|text| text.as_bytes().to_vec()).ok_or_else(|| io::ErrorKind::NotFound.into())
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
        found.into_iter().filter(|path| path.ends_with(".kdl")).collect()
    }

    fn folder(&self, path: &str) -> io::Result<String> {
        let mut lines = BTreeSet::new();
        walk(&self.here.join(path), "", &mut |name, file| {
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
