//! A disk in memory that fails as real ones do: on demand, at any call.

use std::collections::{BTreeMap, BTreeSet};
use std::ffi::OsStr;
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::{Component, Path};
use std::sync::{Arc, Mutex, MutexGuard};

use starpo::record::Disk;
use starpo::record::disk::{FileSystem, Found, Handle, How};
use starpo::record::lease::Holder;
use starpo::rng::Stream;

/// What goes wrong at a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The process ends: the call is done by half if it can be, and no later one happens.
    Kill,
    /// The disk is full, this time; a write is done by half.
    NoSpace,
    /// What was to be forced to the disk never gets there, and the system thinks no more of it.
    SyncFails,
    /// A write takes half of its bytes.
    Short,
}

/// What becomes of a disk when a process ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// The machine goes on: nothing is lost that was done.
    Process,
    /// All that was not forced to the disk is lost.
    Everything,
    /// Of what was not forced, some is lost, by this seed: names in any order, ends of files, or what is in them.
    Some(u64),
}

/// A disk. Clones are the same one.
#[derive(Clone, Debug)]
pub(crate) struct Memory(Arc<Mutex<State>>);

#[derive(Debug)]
struct State {
    /// The first is the root.
    nodes: Vec<Node>,
    /// Changes of names that are not forced to the disk, oldest first: in a folder, a name, and what it stands for.
    pending: Vec<Vec<(usize, String, Option<usize>)>>,
    locked: BTreeSet<usize>,
    calls: usize,
    faults: BTreeMap<usize, Fault>,
    /// Looks, lists and reads so far, and which of them fails.
    reads: usize,
    unread: Option<usize>,
    dead: bool,
    /// Bytes that it holds, if there is an end to them.
    capacity: Option<usize>,
    /// Folders of this name are other file systems.
    mount: Option<&'static OsStr>,
}

#[derive(Clone, Debug)]
enum Node {
    File {
        data: Vec<u8>,
        disk: Vec<u8>,
        /// What follows was given up by a failed sync.
        lost: Option<usize>,
    },
    Folder {
        names: BTreeMap<String, usize>,
        disk: BTreeMap<String, usize>,
    },
}

/// Bytes that a name takes.
const NAME: usize = 64;

fn error(kind: io::ErrorKind) -> io::Error {
    io::Error::from(kind)
}

fn dead() -> io::Error {
    io::Error::other("the process is dead")
}

impl Memory {
    pub(crate) fn new() -> Self {
        let root = Node::Folder { names: BTreeMap::new(), disk: BTreeMap::new() };
        Self(Arc::new(Mutex::new(State {
            nodes: vec![root],
            pending: Vec::new(),
            locked: BTreeSet::new(),
            calls: 0,
            faults: BTreeMap::new(),
            reads: 0,
            unread: None,
            dead: false,
            capacity: None,
            mount: None,
        })))
    }

    /// One on which the process is killed at call `call`.
    pub(crate) fn killed_at(call: usize) -> Self {
        let memory = Self::new();
        memory.fault(call, Fault::Kill);
        memory
    }

    pub(crate) fn disk(&self) -> Disk {
        Disk::on(self.clone())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap()
    }

    /// The `call`th change from now on, counted from 0, goes wrong.
    pub(crate) fn fault(&self, call: usize, fault: Fault) {
        let mut state = self.state();
        let at = state.calls + call;
        state.faults.insert(at, fault);
    }

    /// The `read`th look, list or read from now on, counted from 0, fails.
    pub(crate) fn fail_read(&self, read: usize) {
        let mut state = self.state();
        state.unread = Some(state.reads + read);
    }

    /// Looks, lists and reads so far.
    pub(crate) fn reads(&self) -> usize {
        self.state().reads
    }

    pub(crate) fn set_capacity(&self, bytes: Option<usize>) {
        self.state().capacity = bytes;
    }

    pub(crate) fn mount(&self, name: &'static str) {
        self.state().mount = Some(OsStr::new(name));
    }

    /// Changes so far.
    pub(crate) fn calls(&self) -> usize {
        self.state().calls
    }

    pub(crate) fn is_dead(&self) -> bool {
        self.state().dead
    }

    pub(crate) fn used(&self) -> usize {
        self.state().used(0)
    }

    /// Flips a bit of a file, in the cache and on the disk.
    pub(crate) fn flip(&self, path: &Path, at: usize) {
        let mut state = self.state();
        let node = state.find(path).unwrap();
        let Node::File { data, disk, .. } = &mut state.nodes[node] else { panic!("{path:?} is a folder") };
        data[at] ^= 1;
        *disk = data.clone();
    }

    /// The process is gone, in this manner, and another begins: nothing goes wrong for it until it is told so.
    pub(crate) fn restart(&self, end: End) {
        let mut state = self.state();
        match end {
            End::Process => {}
            End::Everything => state.power_cut(None),
            End::Some(seed) => state.power_cut(Some(Stream::new("power-cut", seed, &[]))),
        }
        state.locked.clear();
        state.faults.clear();
        state.unread = None;
        state.dead = false;
        state.bury(0);
    }
}

impl State {
    fn find(&self, path: &Path) -> Option<usize> {
        let parts = path.components().filter(|part| matches!(part, Component::Normal(_)));
        parts.map(|part| part.as_os_str().to_str().unwrap()).try_fold(0, |node, name| match &self.nodes[node] {
            Node::Folder { names, .. } => names.get(name).copied(),
            Node::File { .. } => None,
        })
    }

    /// The folder of a path, and the name in it.
    fn place(&self, path: &Path) -> io::Result<(usize, String)> {
        let folder = self.existing(path.parent().unwrap_or(Path::new("")))?;
        Ok((folder, path.file_name().unwrap().to_str().unwrap().to_owned()))
    }

    fn existing(&self, path: &Path) -> io::Result<usize> {
        self.find(path).ok_or(error(io::ErrorKind::NotFound))
    }

    /// Counts a change; what goes wrong with it, if it is not refused.
    fn change(&mut self) -> io::Result<Option<Fault>> {
        if self.dead {
            return Err(dead());
        }
        let fault = self.faults.get(&self.calls).copied();
        self.calls += 1;
        self.dead = fault == Some(Fault::Kill);
        Ok(fault)
    }

    /// Counts a look, a list or a read.
    fn reading(&mut self) -> io::Result<()> {
        self.reads += 1;
        match self.unread == Some(self.reads - 1) {
            true => Err(io::Error::other("input/output error")),
            false => Ok(()),
        }
    }

    /// Counts a change of names.
    fn rename(&mut self, change: Vec<(usize, String, Option<usize>)>) -> io::Result<()> {
        let makes = change.iter().any(|(.., node)| node.is_some()) && change.len() == 1;
        match self.change()? {
            Some(Fault::Kill) => return Err(dead()),
            Some(Fault::NoSpace) if makes => return Err(error(io::ErrorKind::StorageFull)),
            _ if makes => self.room(NAME)?,
            _ => {}
        }
        change.iter().for_each(|one| set(&mut self.nodes, one, false));
        self.pending.push(change);
        Ok(())
    }

    fn room(&self, bytes: usize) -> io::Result<()> {
        match self.capacity.is_some_and(|capacity| self.used(0) + bytes > capacity) {
            true => Err(error(io::ErrorKind::StorageFull)),
            false => Ok(()),
        }
    }

    fn used(&self, node: usize) -> usize {
        match &self.nodes[node] {
            Node::File { data, .. } => data.len(),
            Node::Folder { names, .. } => names.values().map(|node| NAME + self.used(*node)).sum(),
        }
    }

    fn create(&mut self, path: &Path, node: Node) -> io::Result<usize> {
        let (folder, name) = self.place(path)?;
        if self.find(path).is_some() {
            return Err(error(io::ErrorKind::AlreadyExists));
        }
        self.nodes.push(node);
        let made = self.nodes.len() - 1;
        self.rename(vec![(folder, name, Some(made))])?;
        Ok(made)
    }

    fn remove(&mut self, path: &Path) -> io::Result<()> {
        let (folder, name) = self.place(path)?;
        let node = self.existing(path)?;
        if matches!(&self.nodes[node], Node::Folder { names, .. } if !names.is_empty()) {
            return Err(error(io::ErrorKind::DirectoryNotEmpty));
        }
        self.rename(vec![(folder, name, None)])
    }

    /// Only what was forced to the disk is left, and by `draws` some of what was not.
    fn power_cut(&mut self, mut draws: Option<Stream>) {
        for change in std::mem::take(&mut self.pending) {
            if draws.as_mut().is_some_and(|draws| draws.chance(0.5)) {
                change.iter().for_each(|one| set(&mut self.nodes, one, true));
            }
        }
        for node in &mut self.nodes {
            match node {
                Node::File { data, disk, lost } => {
                    if let Some(draws) = &mut draws {
                        *disk = survivor(data, disk, *lost, draws);
                    }
                    (*data, *lost) = (disk.clone(), None);
                }
                Node::Folder { names, disk } => *names = disk.clone(),
            }
        }
    }

    /// As after a restart of the machine: leases name processes that are gone.
    fn bury(&mut self, folder: usize) {
        let Node::Folder { names, .. } = self.nodes[folder].clone() else { return };
        for (name, node) in names {
            self.bury(node);
            if let (true, Node::File { data, .. }) = (name == "lease", &mut self.nodes[node]) {
                *data = Holder { started: 1, ..Holder::this_process() }.to_text().into_bytes();
            }
        }
    }
}

/// What a file that was not forced to the disk may have become.
fn survivor(data: &[u8], disk: &[u8], lost: Option<usize>, draws: &mut Stream) -> Vec<u8> {
    let whole = lost.unwrap_or(data.len()).min(data.len());
    let same = data.iter().zip(disk).take_while(|(new, old)| new == old).count().min(whole);
    match draws.below(4) {
        0 => disk.to_vec(),
        1 => data[..whole].to_vec(),
        2 => data[..same + draws.below(whole - same + 1)].to_vec(),
        // It has its length and nothing in it yet.
        _ => [&data[..same], &vec![0; data.len() - same]].concat(),
    }
}

fn set(nodes: &mut [Node], (folder, name, node): &(usize, String, Option<usize>), on_disk: bool) {
    let Node::Folder { names, disk } = &mut nodes[*folder] else { return };
    let names = if on_disk { disk } else { names };
    match node {
        Some(node) => names.insert(name.clone(), *node),
        None => names.remove(name),
    };
}

impl FileSystem for Memory {
    fn look(&self, path: &Path) -> io::Result<Option<Found>> {
        let mut state = self.state();
        state.reading()?;
        Ok(state.find(path).map(|node| match &state.nodes[node] {
            Node::File { data, .. } => Found::File(data.len() as u64),
            Node::Folder { .. } => Found::Folder,
        }))
    }

    fn names(&self, folder: &Path) -> io::Result<Vec<String>> {
        let mut state = self.state();
        state.reading()?;
        match &state.nodes[state.existing(folder)?] {
            Node::Folder { names, .. } => Ok(names.keys().cloned().collect()),
            Node::File { .. } => Err(error(io::ErrorKind::NotADirectory)),
        }
    }

    fn open(&self, path: &Path, how: How) -> io::Result<Box<dyn Handle>> {
        let mut state = self.state();
        let found = state.find(path);
        let node = match (how, found) {
            (How::Append | How::Read | How::Change, Some(node)) => node,
            (How::Append | How::Read | How::Change, None) => return Err(error(io::ErrorKind::NotFound)),
            (How::New, _) => state.create(path, Node::File { data: Vec::new(), disk: Vec::new(), lost: None })?,
        };
        let Node::File { data, .. } = &state.nodes[node] else { return Err(error(io::ErrorKind::IsADirectory)) };
        let at = if how == How::Append { data.len() } else { 0 };
        Ok(Box::new(Opened { memory: self.clone(), node, at, locked: false }))
    }

    fn lock(&self, path: &Path) -> io::Result<Option<Box<dyn Handle>>> {
        let mut state = self.state();
        let node = match state.find(path) {
            Some(node) => node,
            None => state.create(path, Node::File { data: Vec::new(), disk: Vec::new(), lost: None })?,
        };
        if !state.locked.insert(node) {
            return Ok(None);
        }
        Ok(Some(Box::new(Opened { memory: self.clone(), node, at: 0, locked: true })))
    }

    fn rename(&self, from: &Path, to: &Path) -> io::Result<()> {
        let mut state = self.state();
        let (old, new, node) = (state.place(from)?, state.place(to)?, state.existing(from)?);
        let within = |path: &Path| path.parent().is_some_and(|path| path.iter().any(|part| Some(part) == state.mount));
        if within(from) != within(to) {
            return Err(error(io::ErrorKind::CrossesDevices));
        }
        let full = |node: usize| matches!(&state.nodes[node], Node::Folder { names, .. } if !names.is_empty());
        if state.find(to).is_some_and(full) {
            return Err(error(io::ErrorKind::DirectoryNotEmpty));
        }
        state.rename(vec![(old.0, old.1, None), (new.0, new.1, Some(node))])
    }

    fn remove_file(&self, path: &Path) -> io::Result<()> {
        self.state().remove(path)
    }

    fn remove_folder(&self, path: &Path) -> io::Result<()> {
        self.state().remove(path)
    }

    fn create_folder(&self, path: &Path) -> io::Result<()> {
        let folder = Node::Folder { names: BTreeMap::new(), disk: BTreeMap::new() };
        self.state().create(path, folder).map(|_| ())
    }

    fn sync_folder(&self, path: &Path) -> io::Result<()> {
        let mut state = self.state();
        let folder = state.existing(path)?;
        match state.change()? {
            Some(Fault::Kill) => return Err(dead()),
            Some(Fault::SyncFails) => return Err(io::Error::other("input/output error")),
            _ => {}
        }
        let here = |change: &Vec<(usize, String, Option<usize>)>| change.iter().any(|(at, ..)| *at == folder);
        let (forced, pending) = std::mem::take(&mut state.pending).into_iter().partition(here);
        state.pending = pending;
        let forced: Vec<Vec<_>> = forced;
        forced.iter().flatten().for_each(|one| set(&mut state.nodes, one, true));
        Ok(())
    }
}

/// An open file of a [`Memory`].
struct Opened {
    memory: Memory,
    node: usize,
    at: usize,
    locked: bool,
}

impl Opened {
    /// Acts on the file, after one counted change.
    fn change<T>(&self, act: impl FnOnce(&mut State, Option<Fault>) -> io::Result<T>) -> io::Result<T> {
        let mut state = self.memory.state();
        let fault = state.change()?;
        act(&mut state, fault)
    }
}

impl Read for Opened {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let mut state = self.memory.state();
        state.reading()?;
        let Node::File { data, .. } = &state.nodes[self.node] else { return Ok(0) };
        let read = (&data[self.at.min(data.len())..]).read(bytes)?;
        self.at += read;
        Ok(read)
    }
}

impl Seek for Opened {
    fn seek(&mut self, to: SeekFrom) -> io::Result<u64> {
        let SeekFrom::Start(at) = to else { return Err(error(io::ErrorKind::Unsupported)) };
        self.at = at as usize;
        Ok(at)
    }
}

impl Write for Opened {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let (node, at) = (self.node, self.at);
        let written = self.change(|state, fault| {
            let room = state.capacity.map_or(usize::MAX, |capacity| capacity.saturating_sub(state.used(0)));
            let fits = room.min(bytes.len());
            let half = bytes.len().div_ceil(2).min(fits);
            let count = if fault.is_some_and(|fault| fault != Fault::SyncFails) { half } else { fits };
            let Node::File { data, .. } = &mut state.nodes[node] else { return Ok(0) };
            let end = (at + count).max(data.len());
            data.resize(end, 0);
            data[at..at + count].copy_from_slice(&bytes[..count]);
            match fault {
                Some(Fault::Kill) => Err(dead()),
                Some(Fault::NoSpace) => Err(error(io::ErrorKind::StorageFull)),
                _ if count == 0 && !bytes.is_empty() => Err(error(io::ErrorKind::StorageFull)),
                _ => Ok(count),
            }
        })?;
        self.at += written;
        Ok(written)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Handle for Opened {
    fn cut(&mut self, length: u64) -> io::Result<()> {
        self.change(|state, fault| {
            let Node::File { data, lost, .. } = &mut state.nodes[self.node] else { return Ok(()) };
            if fault == Some(Fault::Kill) {
                return Err(dead());
            }
            data.resize(length as usize, 0);
            *lost = lost.filter(|lost| *lost < data.len());
            Ok(())
        })
    }

    fn sync(&mut self) -> io::Result<()> {
        self.change(|state, fault| {
            let Node::File { data, disk, lost } = &mut state.nodes[self.node] else { return Ok(()) };
            let same = data.iter().zip(&*disk).take_while(|(new, old)| new == old).count();
            match fault {
                Some(Fault::Kill) => return Err(dead()),
                Some(Fault::SyncFails) => {
                    *lost = Some(lost.unwrap_or(same));
                    return Err(io::Error::other("input/output error"));
                }
                _ => {}
            }
            let kept = lost.unwrap_or(data.len());
            *disk = [&data[..kept], &vec![0; data.len() - kept]].concat();
            Ok(())
        })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        if self.locked {
            self.memory.state().locked.remove(&self.node);
        }
    }
}
