//! All access of a run to its files: every change is a call of [`Disk`], so that a test can end it at any of them.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::record::RunError;

type Result<T> = std::result::Result<T, RunError>;

/// The file system, or one that fails for good after some number of changes.
#[derive(Clone, Debug, Default)]
pub struct Disk {
    /// Changes left, where they are counted.
    budget: Option<Arc<AtomicU64>>,
}

impl Disk {
    /// A disk on which `changes` primitive changes succeed. The next one fails halfway and all later ones fail at once,
    /// as if the process had been killed there.
    #[must_use]
    pub fn dying_after(changes: u64) -> Self {
        Self { budget: Some(Arc::new(AtomicU64::new(changes + 1))) }
    }

    /// Whether the changes were used up.
    #[must_use]
    pub fn is_dead(&self) -> bool {
        self.budget.as_ref().is_some_and(|left| left.load(Ordering::SeqCst) == 0)
    }

    /// Counts one change; false if it is the one that must fail halfway.
    fn spend(&self) -> io::Result<bool> {
        let Some(left) = &self.budget else { return Ok(true) };
        match left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)) {
            Ok(before) => Ok(before > 1),
            Err(_) => Err(io::Error::other("the disk is gone")),
        }
    }

    /// One change that happens whole or not at all.
    fn change<T>(&self, doing: &'static str, path: &Path, act: impl FnOnce() -> io::Result<T>) -> Result<T> {
        let alive = self.spend().and_then(|alive| alive.then_some(()).ok_or(io::Error::other("the disk is gone")));
        alive.and_then(|()| act()).map_err(RunError::io(doing, path))
    }

    /// Writes `bytes` to an open file; a dying disk writes half of them.
    fn put(&self, file: &mut File, bytes: &[u8]) -> io::Result<()> {
        if self.spend()? {
            return file.write_all(bytes);
        }
        file.write_all(&bytes[..bytes.len() / 2])?;
        Err(io::Error::other("the disk is gone"))
    }

    /// Writes a new file and forces it to the disk. Its folder is not forced.
    ///
    /// # Errors
    /// If the file exists, or the system's.
    pub fn write_new(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let mut file = self.change("create", path, || File::create_new(path))?;
        self.put(&mut file, bytes).map_err(RunError::io("write", path))?;
        self.change("write", path, || file.sync_all())
    }

    /// Puts `bytes` in the place of what `path` held: readers see the old or the new, also after a crash.
    ///
    /// # Errors
    /// The system's.
    pub fn replace(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let temporary = beside(path);
        self.remove_file(&temporary)?;
        self.write_new(&temporary, bytes)?;
        self.rename(&temporary, path)?;
        self.sync_folder(parent(path))
    }

    /// Adds `bytes` to the end of a file, which is created if need be. Not forced: see [`Disk::sync`].
    ///
    /// # Errors
    /// The system's.
    pub fn append(&self, path: &Path, bytes: &[u8]) -> Result<()> {
        let open = || OpenOptions::new().append(true).create(true).open(path);
        let mut file = self.change("open", path, open)?;
        self.put(&mut file, bytes).map_err(RunError::io("write", path))
    }

    /// Cuts a file to `length` bytes and forces it; a file that is not there is left so.
    ///
    /// # Errors
    /// The system's.
    pub fn truncate(&self, path: &Path, length: u64) -> Result<()> {
        if self.length(path)? == length {
            return Ok(());
        }
        let cut = || {
            let file = OpenOptions::new().write(true).open(path)?;
            file.set_len(length)?;
            file.sync_all()
        };
        self.change("cut back", path, cut)
    }

    /// Forces a file to the disk, if it is there.
    ///
    /// # Errors
    /// The system's.
    pub fn sync(&self, path: &Path) -> Result<()> {
        if !path.exists() {
            return Ok(());
        }
        self.change("write", path, || OpenOptions::new().append(true).open(path)?.sync_all())
    }

    /// Forces a folder's list of names to the disk.
    ///
    /// # Errors
    /// The system's.
    pub fn sync_folder(&self, path: &Path) -> Result<()> {
        self.change("write", path, || File::open(path)?.sync_all())
    }

    /// Makes a folder that was not there. Its parents must be.
    ///
    /// # Errors
    /// The system's.
    pub fn create_folder(&self, path: &Path) -> Result<()> {
        self.change("create", path, || fs::create_dir(path))
    }

    /// Makes a folder and its parents, where they are not there, and forces its name to the disk.
    ///
    /// # Errors
    /// The system's.
    pub fn ensure_folder(&self, path: &Path) -> Result<()> {
        if path.is_dir() {
            return Ok(());
        }
        self.change("create", path, || fs::create_dir_all(path))?;
        self.sync_folder(parent(path))
    }

    /// Renames; a file in the way is replaced.
    ///
    /// # Errors
    /// The system's: among them, that `to` is a folder that is not empty.
    pub fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.change("make", to, || fs::rename(from, to))
    }

    /// Removes a file, if it is there.
    ///
    /// # Errors
    /// The system's.
    pub fn remove_file(&self, path: &Path) -> Result<()> {
        if !path.exists() {
            return Ok(());
        }
        self.change("remove", path, || fs::remove_file(path))
    }

    /// Removes a folder with all that is in it.
    ///
    /// # Errors
    /// The system's.
    pub fn remove_folder(&self, path: &Path) -> Result<()> {
        self.change("remove", path, || fs::remove_dir_all(path))
    }

    /// A file's bytes.
    ///
    /// # Errors
    /// The system's.
    pub fn read(&self, path: &Path) -> Result<Vec<u8>> {
        fs::read(path).map_err(RunError::io("read", path))
    }

    /// A file's text.
    ///
    /// # Errors
    /// The system's; among them, that it is not UTF-8.
    pub fn read_text(&self, path: &Path) -> Result<String> {
        fs::read_to_string(path).map_err(RunError::io("read", path))
    }

    /// A file's text, or none if it is not there.
    ///
    /// # Errors
    /// The system's.
    pub fn find_text(&self, path: &Path) -> Result<Option<String>> {
        match fs::read_to_string(path) {
            Ok(text) => Ok(Some(text)),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
            Err(error) => Err(RunError::io("read", path)(error)),
        }
    }

    /// A file opened for reading.
    ///
    /// # Errors
    /// The system's.
    pub fn open(&self, path: &Path) -> Result<File> {
        File::open(path).map_err(RunError::io("read", path))
    }

    /// A log opened for adding, made if need be. Not a crash point: a log is no part of a result.
    ///
    /// # Errors
    /// The system's.
    pub fn open_log(&self, path: &Path) -> Result<File> {
        OpenOptions::new().append(true).create(true).open(path).map_err(RunError::io("open", path))
    }

    /// A file's length in bytes; 0 if it is not there.
    ///
    /// # Errors
    /// The system's.
    pub fn length(&self, path: &Path) -> Result<u64> {
        match fs::metadata(path) {
            Ok(metadata) => Ok(metadata.len()),
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(0),
            Err(error) => Err(RunError::io("read", path)(error)),
        }
    }

    /// The names in a folder, sorted; none if it is not there. Names that are not UTF-8 are not ours and are left out.
    ///
    /// # Errors
    /// The system's.
    pub fn names(&self, folder: &Path) -> Result<Vec<String>> {
        let entries = match fs::read_dir(folder) {
            Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(Vec::new()),
            entries => entries.map_err(RunError::io("list", folder))?,
        };
        let mut names = Vec::new();
        for entry in entries {
            names.extend(entry.map_err(RunError::io("list", folder))?.file_name().into_string().ok());
        }
        names.sort_unstable();
        Ok(names)
    }

    /// Opens a small file, made if need be, under an exclusive lock that ends with the process or the value.
    /// None if another process, or this one, has it locked. Where the file system knows no locks, it counts as locked
    /// by us: what the file says must then decide.
    ///
    /// # Errors
    /// The system's.
    pub fn lock(&self, path: &Path) -> Result<Option<LockedFile>> {
        let open = || OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path);
        let file = self.change("open", path, open)?;
        match file.try_lock() {
            Err(TryLockError::WouldBlock) => return Ok(None),
            Ok(()) | Err(TryLockError::Error(_)) => {}
        }
        // Whoever held the lock may have moved the whole folder aside between our opening and our locking.
        let same = match (file.metadata(), fs::metadata(path)) {
            (Ok(ours), Ok(named)) => (ours.dev(), ours.ino()) == (named.dev(), named.ino()),
            _ => false,
        };
        if same { Ok(Some(LockedFile { disk: self.clone(), path: path.to_owned(), file })) } else { self.lock(path) }
    }
}

/// A small file that only we may change, rewritten in place since the lock belongs to it and not to its name.
#[derive(Debug)]
pub struct LockedFile {
    disk: Disk,
    path: PathBuf,
    file: File,
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

    /// Puts `text` in its place. Not a crash point: a torn lease is a free one.
    ///
    /// # Errors
    /// The system's, or that the disk is dead.
    pub fn write(&mut self, text: &str) -> Result<()> {
        let mut write = || {
            if self.disk.is_dead() {
                return Err(io::Error::other("the disk is gone"));
            }
            self.file.seek(SeekFrom::Start(0))?;
            self.file.write_all(text.as_bytes())?;
            self.file.set_len(text.len() as u64)
        };
        write().map_err(RunError::io("write", &self.path))
    }
}

/// The folder that holds `path`.
pub(crate) fn parent(path: &Path) -> &Path {
    path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// The temporary name from which `path` is renamed.
fn beside(path: &Path) -> PathBuf {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    path.with_file_name(format!(".tmp-{name}"))
}
