//! What a run asks of a file system, and the operating system's. Tests put a simulated one in its place.

use std::fmt;
use std::fs::{self, File, OpenOptions, TryLockError};
use std::io::{self, Read, Seek, Write};
use std::os::unix::fs::MetadataExt;
use std::path::Path;

/// A file system. A change is one call, which may fail, or be the process's last; what was not forced to the disk by
/// then may be gone after the machine went down, in any order.
pub trait FileSystem: fmt::Debug + Send + Sync {
    /// What is there; None if nothing is, or a link that leads nowhere.
    fn look(&self, path: &Path) -> io::Result<Option<Found>>;

    /// Whether a path is a symbolic link. A file system that has none says no.
    fn is_link(&self, _: &Path) -> io::Result<bool> {
        Ok(false)
    }

    /// The names in a folder, in any order. Names that are not UTF-8 are not ours and are left out.
    fn names(&self, folder: &Path) -> io::Result<Vec<String>>;

    /// A file, opened. What may never end when it is read, or let nobody write to it, is refused.
    fn open(&self, path: &Path, how: How) -> io::Result<Box<dyn Handle>>;

    /// A file, made if need be, under an exclusive lock that ends with the process or the value. None if another
    /// process, or this one, has it locked; what is no file is refused. Where the file system knows no locks, it counts
    /// as locked by us: what the file says must then decide.
    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Handle>>>;

    /// Renames a file or a folder; a file or an empty folder in the way is replaced.
    fn rename(&self, from: &Path, to: &Path) -> io::Result<()>;

    fn remove_file(&self, path: &Path) -> io::Result<()>;

    /// Removes an empty folder, and what is in it under names that are not UTF-8.
    fn remove_folder(&self, path: &Path) -> io::Result<()>;

    /// Makes a folder that was not there. Its parents must be.
    fn create_folder(&self, path: &Path) -> io::Result<()>;

    /// Forces a folder's names to the disk.
    fn sync_folder(&self, path: &Path) -> io::Result<()>;
}

/// What stands at a path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Found {
    /// A file of so many bytes.
    File(u64),
    Folder,
    /// A pipe, a socket or a device: what may never end when it is read.
    Other,
}

/// What a file is opened for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum How {
    Read,
    /// Writing a file that was not there.
    New,
    /// Writing at the end of a file that is there.
    Append,
    /// Changing a file that is there.
    Change,
}

/// An open file.
pub trait Handle: Read + Write + Seek + Send {
    /// Makes the file as long as this.
    fn cut(&mut self, length: u64) -> io::Result<()>;

    /// Forces the file's content to the disk.
    fn sync(&mut self) -> io::Result<()>;
}

impl fmt::Debug for dyn Handle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Handle")
    }
}

impl Handle for File {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.set_len(length)
    }

    fn sync(&mut self) -> io::Result<()> {
        self.sync_all()
    }
}

/// The operating system's.
#[derive(Debug)]
pub struct System;

/// Whether there is nothing at a path: a link may lead to where nothing is, or round in a circle.
fn leads_nowhere(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
        || error.raw_os_error() == Some(rustix::io::Errno::LOOP.raw_os_error())
}

/// Opening a pipe waits for whoever has its other end, and reading a device may never come to one.
fn refuse_endless(path: &Path) -> io::Result<()> {
    match System.look(path)? {
        Some(Found::Other) => {
            Err(io::Error::new(io::ErrorKind::InvalidData, "it is a pipe, a socket or a device, and no file"))
        }
        _ => Ok(()),
    }
}

impl FileSystem for System {
    fn look(&self, path: &Path) -> io::Result<Option<Found>> {
        match fs::metadata(path) {
            Ok(found) if found.is_dir() => Ok(Some(Found::Folder)),
            Ok(found) if found.is_file() => Ok(Some(Found::File(found.len()))),
            Ok(_) => Ok(Some(Found::Other)),
            Err(error) if leads_nowhere(&error) => Ok(None),
            Err(error) => Err(error),
        }
    }

    fn is_link(&self, path: &Path) -> io::Result<bool> {
        match fs::symlink_metadata(path) {
            Err(error) if leads_nowhere(&error) => Ok(false),
            found => Ok(found?.is_symlink()),
        }
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut names = Vec::new();
        for entry in fs::read_dir(folder)? {
            names.extend(entry?.file_name().into_string().ok());
        }
        Ok(names)
    }

    fn open(&self, path: &Path, how: How) -> io::Result<Box<dyn Handle>> {
        refuse_endless(path)?;
        let mut options = OpenOptions::new();
        match how {
            How::Read => options.read(true),
            How::New => options.write(true).create_new(true),
            How::Append => options.append(true),
            How::Change => options.write(true),
        };
        Ok(Box::new(options.open(path)?))
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Handle>>> {
        refuse_endless(path)?;
        loop {
            let file = OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
            match file.try_lock() {
                Err(TryLockError::WouldBlock) => return Ok(None),
                Ok(()) | Err(TryLockError::Error(_)) => {}
            }
            // Whoever held the lock may have moved the whole folder aside between our opening and our locking.
            if let (Ok(ours), Ok(named)) = (file.metadata(), fs::metadata(path))
                && (ours.dev(), ours.ino()) == (named.dev(), named.ino())
            {
                return Ok(Some(Box::new(file)));
            }
        }
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        fs::rename(from, to)
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        fs::remove_file(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        match fs::remove_dir(path) {
            Err(error) if error.kind() == io::ErrorKind::DirectoryNotEmpty => {}
            removed => return removed,
        }
        for entry in fs::read_dir(path)? {
            let entry = entry?;
            match (entry.file_name().to_str(), entry.file_type()?.is_dir()) {
                (Some(_), _) => {}
                (None, true) => fs::remove_dir_all(entry.path())?,
                (None, false) => fs::remove_file(entry.path())?,
            }
        }
        fs::remove_dir(path)
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        fs::create_dir(path)
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        match File::open(path)?.sync_all() {
            // Some file systems of networks have no such thing.
            Err(error) if matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::Unsupported) => Ok(()),
            result => result,
        }
    }
}
