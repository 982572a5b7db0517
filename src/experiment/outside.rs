//! The project's files, and the copies of its documents that the binary carries.

use std::collections::BTreeSet;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use super::{embedded, parquet};
use crate::config::Reader;

/// Files below a root folder; a document that is not there is the embedded one of that path, and a Parquet file is its
/// rows as JSON lines.
#[derive(Debug)]
pub struct Outside {
    root: PathBuf,
}

impl Outside {
    #[must_use]
    pub fn new(root: &Path) -> Self {
        Self { root: root.to_owned() }
    }
}

impl Reader for Outside {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        let place = self.root.join(path);
        let read = if path.ends_with(".parquet") { parquet::json_lines(&place) } else { fs::read(&place) };
        match read {
            Err(error) if error.kind() == io::ErrorKind::NotFound => {
                embedded::find(path.trim_start_matches("./")).map(|text| text.as_bytes().to_vec()).ok_or(error)
            }
            result => result,
        }
    }

    fn list(&self, folder: &str) -> Vec<String> {
        let mut found = BTreeSet::new();
        // A folder that cannot be read offers nothing; a document in it is reported when it is asked for.
        let _ = walk(&self.root.join(folder), folder, &mut |path, _| {
            found.insert(path.to_owned());
            Ok(())
        });
        let below = embedded::FILES.iter().filter(|(path, _)| path.starts_with(&format!("{folder}/")));
        found.extend(below.map(|(path, _)| (*path).to_owned()));
        found.into_iter().filter(|path| path.ends_with(".kdl")).collect()
    }

    fn folder(&self, path: &str) -> io::Result<String> {
        let mut lines = BTreeSet::new();
        walk(&self.root.join(path), "", &mut |name, file| {
            let mut hasher = blake3::Hasher::new();
            hasher.update_reader(fs::File::open(file)?)?;
            lines.insert(format!("{name:?}\t{}\t{}\n", hasher.count(), hasher.finalize().to_hex()));
            Ok(())
        })?;
        Ok(blake3::hash(lines.into_iter().collect::<String>().as_bytes()).to_hex().to_string())
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
