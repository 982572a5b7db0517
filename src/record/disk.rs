//! All access of a run to its files, made of calls of a [`FileSystem`], so that a test can end a run at any of them.

mod file_system;

pub use file_system::{FileSystem, Found, Handle, How, System};

use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::record::RunError;

/// How the names begin of what is not whole yet, or any more.
const DRAFT: &str = ".tmp-";

type Result<T> = std::result::Result<T, RunError>;

/// A file system, as a run uses it; by default the operating system's.
#[derive(Clone, Debug)]
pub struct Disk(Arc<dyn FileSystem>);

impl Default for Disk {
    fn default() -> Self {
        Self::on(System)
    }
}

impl Disk {
    #[must_use]
    pub fn on(system: impl FileSystem + 'static) -> Self {
        Self(Arc::new(system))
    }

    /// Writes a new file and forces it to the disk. Its folder is not forced.
    ///
    /// # Errors
    /// If the file exists, or the system's.
    pub fn write_new(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let mut file = self.0.open(path, How::New).map_err(RunError::io("create", path))?;
        file.write_all(bytes).and_then(|()| file.sync()).map_err(RunError::io("write", path))
    }

    /// Puts `bytes` in the place of what `path` held: readers see the old or the new, also after a crash. Of two
    /// processes that do so at once, the last one's is there.
    ///
    /// # Errors
    /// The system's; the old is then still there.
    pub fn replace(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        static TEMPORARIES: AtomicU64 = AtomicU64::new(0);
        let mut temporary = beside(path).into_os_string();
        temporary.push(format!("-{}-{}", std::process::id(), TEMPORARIES.fetch_add(1, Ordering::Relaxed)));
        let temporary = PathBuf::from(temporary);
        // Left by a killed process that had our number.
        self.remove_file(&temporary)?;
        let written = self.write_new(&temporary, bytes).and_then(|()| self.rename(&temporary, path));
        if written.is_err() {
            // Where the disk is full, it would take the room of what comes next.
            let _ = self.remove_file(&temporary);
        }
        written?;
        self.sync_folder(parent(path))
    }

    /// Removes the files of a folder that killed processes left half written; nobody may be writing there.
    ///
    /// # Errors
    /// The system's.
    pub fn remove_drafts(&self, folder: &Path) -> Result<()> {
        for name in self.names(folder)?.iter().filter(|name| name.starts_with(DRAFT)) {
            let path = folder.join(name);
            if let Some(Found::File(_)) = self.look(&path)? {
                self.remove_file(&path)?;
            }
        }
        Ok(())
    }

    /// Adds `bytes` to the end of a file that is there. Not forced: see [`Disk::sync`].
    ///
    /// # Errors
    /// The system's; among them, that the file is gone.
    pub fn append(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let mut file = self.0.open(path, How::Append).map_err(RunError::io("open", path))?;
        file.write_all(bytes).map_err(RunError::io("write", path))
    }

    /// A file opened for adding, made if need be by the one process that may.
    ///
    /// # Errors
    /// The system's.
    pub fn open_log(&self, path: &Path) -> Result<Box<dyn Handle>> {
        self.ensure_file(path)?;
        self.0.open(path, How::Append).map_err(RunError::io("open", path))
    }

    /// Makes an empty file where there is none.
    ///
    /// # Errors
    /// The system's; among them, that what is there is no file.
    pub fn ensure_file(&self, path: &Path) -> Result<()> {
        let how = if self.exists(path)? { How::Append } else { How::New };
        self.0.open(path, how).map(drop).map_err(RunError::io("open", path))
    }

    /// Cuts a file to `length` bytes and forces it; a file that is not there is left so.
    ///
    /// # Errors
    /// The system's.
    pub fn truncate(&self, path: &Path, length: u64) -> Result<()> {
        if self.length(path)? == length {
            return Ok(());
        }
        let file = self.0.open(path, How::Change);
        let cut = file.and_then(|mut file| file.cut(length).and_then(|()| file.sync()));
        cut.map_err(RunError::io("cut back", path))
    }

    /// Forces a file to the disk, if it is there.
    ///
    /// # Errors
    /// The system's.
    pub fn sync(&self, path: &Path) -> Result<()> {
        if !self.exists(path)? {
            return Ok(());
        }
        let file = self.0.open(path, How::Change);
        file.and_then(|mut file| file.sync()).map_err(RunError::io("write", path))
    }

    /// Forces a folder's list of names to the disk.
    ///
    /// # Errors
    /// The system's.
    pub fn sync_folder(&self, path: &Path) -> Result<()> {
        self.0.sync_folder(path).map_err(RunError::io("write", path))
    }

    /// Makes a folder that was not there. Its parents must be.
    ///
    /// # Errors
    /// The system's.
    pub fn create_folder(&self, path: &Path) -> Result<()> {
        self.0.create_folder(path).map_err(RunError::io("create", path))
    }

    /// Makes a folder and its parents, where they are not there, and forces their names to the disk.
    ///
    /// # Errors
    /// The system's.
    pub fn ensure_folder(&self, path: &Path) -> Result<()> {
        if self.look(path)? == Some(Found::Folder) {
            return Ok(());
        }
        let folder = parent(path);
        self.ensure_folder(folder)?;
        let made = self.create_folder(path);
        // Another process may have been faster.
        if self.look(path)? != Some(Found::Folder) {
            made?;
        }
        self.sync_folder(folder)
    }

    /// Renames; a file in the way is replaced.
    ///
    /// # Errors
    /// The system's: among them, that `to` is a folder that is not empty.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.0.rename(from, to).map_err(RunError::io("make", to))
    }

    /// Moves a folder, to another file system too: there it is copied first, and appears whole.
    ///
    /// # Errors
    /// The system's.
    pub fn relocate(&self, from: &Path, to: &Path) -> Result<()> {
        match self.0.rename(from, to) {
            Err(error) if error.kind() == io::ErrorKind::CrossesDevices => {}
            renamed => return renamed.map_err(RunError::io("make", to)),
        }
        let draft = beside(to);
        self.remove(&draft)?;
        self.copy(from, &draft)?;
        self.rename(&draft, to)?;
        self.sync_folder(parent(to))?;
        self.discard(from)
    }

    /// A folder with all that is in it, or a file, a second time.
    fn copy(&self, from: &Path, to: &Path) -> Result<()> {
        if self.look(from)? != Some(Found::Folder) {
            return self.write_new(to, &self.read(from)?);
        }
        self.create_folder(to)?;
        self.names(from)?.iter().try_for_each(|name| self.copy(&from.join(name), &to.join(name)))?;
        self.sync_folder(to)
    }

    /// Removes a folder with all that is in it: it is renamed first, so that a kill halfway leaves no part of it.
    ///
    /// # Errors
    /// The system's.
    pub fn discard(&self, path: &Path) -> Result<()> {
        if path.file_name().is_some_and(|name| name.to_string_lossy().starts_with(DRAFT)) {
            return self.remove(path);
        }
        let aside = beside(path);
        self.remove(&aside)?;
        self.rename(path, &aside)?;
        self.sync_folder(parent(path))?;
        self.remove(&aside)
    }

    /// Removes a file, if it is there; of a symbolic link the link.
    ///
    /// # Errors
    /// The system's.
    pub fn remove_file(&self, path: &Path) -> Result<()> {
        if !self.exists(path)? && !self.is_link(path)? {
            return Ok(());
        }
        self.0.remove_file(path).map_err(RunError::io("remove", path))
    }

    /// Removes what stands at a path, if anything does: a folder with all that is in it, one name after the other; of a
    /// symbolic link the link, never what it leads to.
    ///
    /// # Errors
    /// The system's.
    pub fn remove(&self, path: &Path) -> Result<()> {
        if self.look(path)? != Some(Found::Folder) || self.is_link(path)? {
            return self.remove_file(path);
        }
        self.names(path)?.iter().try_for_each(|name| self.remove(&path.join(name)))?;
        self.0.remove_folder(path).map_err(RunError::io("remove", path))
    }

    /// A file's bytes.
    ///
    /// # Errors
    /// The system's.
    pub fn read(&self, path: &Path) -> Result<Vec<u8>> {
        let mut bytes = Vec::new();
        self.open(path)?.read_to_end(&mut bytes).map_err(RunError::io("read", path))?;
        Ok(bytes)
    }

    /// A file's text.
    ///
    /// # Errors
    /// The system's; among them, that it is not UTF-8.
    pub fn read_text(&self, path: &Path) -> Result<String> {
        let mut text = String::new();
        self.open(path)?.read_to_string(&mut text).map_err(RunError::io("read", path))?;
        Ok(text)
    }

    /// A file's text, or none if it is not there.
    ///
    /// # Errors
    /// The system's.
    pub fn find_text(&self, path: &Path) -> Result<Option<String>> {
        match self.read_text(path) {
            Err(RunError::Io { source, .. }) if source.kind() == io::ErrorKind::NotFound => Ok(None),
            text => text.map(Some),
        }
    }

    /// A file opened for reading.
    ///
    /// # Errors
    /// The system's.
    pub fn open(&self, path: &Path) -> Result<Box<dyn Handle>> {
        self.0.open(path, How::Read).map_err(RunError::io("read", path))
    }

    /// What stands at a path, if anything does.
    ///
    /// # Errors
    /// The system's.
    pub fn look(&self, path: &Path) -> Result<Option<Found>> {
        self.0.look(path).map_err(RunError::io("read", path))
    }

    /// Whether a path is a symbolic link; all else follows it.
    ///
    /// # Errors
    /// The system's.
    pub fn is_link(&self, path: &Path) -> Result<bool> {
        self.0.is_link(path).map_err(RunError::io("read", path))
    }

    /// Whether anything stands at a path.
    ///
    /// # Errors
    /// The system's.
    pub fn exists(&self, path: &Path) -> Result<bool> {
        Ok(self.look(path)?.is_some())
    }

    /// A file's length in bytes; 0 if it is not there.
    ///
    /// # Errors
    /// The system's.
    pub fn length(&self, path: &Path) -> Result<u64> {
        Ok(match self.look(path)? {
            Some(Found::File(length)) => length,
            _ => 0,
        })
    }

    /// The names in a folder, sorted; none if it is not there. Names that are not UTF-8 are not ours and are left out.
    ///
    /// # Errors
    /// The system's.
    pub fn names(&self, folder: &Path) -> Result<Vec<String>> {
        let mut names = match self.0.names(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            names => names.map_err(RunError::io("list", folder))?,
        };
        names.sort_unstable();
        Ok(names)
    }

    /// A small file under an exclusive lock, as [`FileSystem::lock`] gives it.
    ///
    /// # Errors
    /// The system's.
    pub fn lock(&self, path: &Path) -> Result<Option<LockedFile>> {
        let file = self.0.lock(path).map_err(RunError::io("open", path))?;
        Ok(file.map(|file| LockedFile { path: path.to_owned(), file }))
    }
}

/// A small file that only we may change, rewritten in place since the lock belongs to it and not to its name. A torn
/// one says nothing.
#[derive(Debug)]
pub struct LockedFile {
    path: PathBuf,
    file: Box<dyn Handle>,
}

impl LockedFile {
    /// What it holds.
    ///
    /// # Errors
    /// The system's.
    pub fn read(&mut self) -> Result<String> {
        let mut text = String::new();
        let read = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.read_to_string(&mut text));
        read.map(|_| text).map_err(RunError::io("read", &self.path))
    }

    /// Puts `text` in its place.
    ///
    /// # Errors
    /// The system's.
    pub fn write(&mut self, text: &str) -> Result<()> {
        let written = self.file.seek(SeekFrom::Start(0)).and_then(|_| self.file.write_all(text.as_bytes()));
        written.and_then(|()| self.file.cut(text.len() as u64)).map_err(RunError::io("write", &self.path))
    }
}

/// The folder that holds `path`.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The temporary name from which `path` is renamed.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!("{DRAFT}{name}"))
}
