//! One process at a time runs a run: an operating system's lock, and beside it a file that says who, for file systems
//! whose locks are not to be trusted and for people.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError, Sender};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::record::disk::LockedFile;
use crate::record::fields::{Fields, Read};
use crate::record::timings::unix_time;
use crate::record::{Disk, RunError};

/// Between two signs of life.
const HEARTBEAT: Duration = Duration::from_secs(5);
/// A process on another host that gave no sign for so many seconds is taken for dead.
pub const SILENCE: u64 = 60;
/// How often a lock of nobody is tried again, every ten milliseconds.
const PATIENCE: u32 = 100;

/// Who holds a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Holder {
    pub host: String,
    pub pid: u32,
    /// When the process started, in clock ticks since the machine did; tells it from a later one of the same number.
    pub started: u64,
    /// The machine's current boot.
    pub boot: String,
    /// When the lease was taken, in seconds since 1970.
    pub since: u64,
    /// The last sign of life, in seconds since 1970.
    pub heartbeat: u64,
}

impl Holder {
    /// This process, now.
    #[must_use]
    pub fn this_process() -> Self {
        let (pid, now) = (std::process::id(), unix_time());
        Self { host: host(), pid, started: start_of(pid).unwrap_or(0), boot: boot(), since: now, heartbeat: now }
    }

    /// Who holds the run in the folder `run`, if somebody who is alive does.
    ///
    /// # Errors
    /// The system's.
    pub fn of(disk: &Disk, run: &Path) -> Result<Option<Self>, RunError> {
        let text = disk.find_text(&run.join("lease"))?;
        Ok(text.and_then(|text| Self::parse(&text)).filter(Self::is_alive))
    }

    /// On this host: whether the process is there and is the same one. On another: whether it was heard of lately, by
    /// clocks that may differ either way.
    #[must_use]
    pub fn is_alive(&self) -> bool {
        if self.host == host() {
            return self.boot == boot() && start_of(self.pid) == Some(self.started);
        }
        self.heartbeat.abs_diff(unix_time()) < SILENCE
    }

    fn is_same(&self, other: &Self) -> bool {
        (&self.host, self.pid, self.started, &self.boot) == (&other.host, other.pid, other.started, &other.boot)
    }

    /// The lines of the file `lease`.
    #[must_use]
    pub fn to_text(&self) -> String {
        let fields = Fields::default().with_text("host", &self.host).with("pid", self.pid);
        let fields = fields.with("started", self.started).with_text("boot", &self.boot);
        fields.with("since", self.since).with("heartbeat", self.heartbeat).to_string()
    }

    fn parse(text: &str) -> Option<Self> {
        let fields = Read::parse(text)?;
        Some(Self {
            host: fields.text("host")?,
            pid: fields.count("pid")?.try_into().ok()?,
            started: fields.count("started")?,
            boot: fields.text("boot")?,
            since: fields.count("since")?,
            heartbeat: fields.count("heartbeat")?,
        })
    }
}

/// The right to write to a run directory. Given back when dropped; a killed process's is free at once.
#[derive(Debug)]
pub struct Lease {
    run: PathBuf,
    lost: Arc<AtomicBool>,
    /// Dropping it ends the thread.
    stop: Option<Sender<()>>,
    heart: Option<JoinHandle<()>>,
}

impl Lease {
    /// Takes the lease of the run in the folder `run`.
    ///
    /// # Errors
    /// [`RunError::RunningElsewhere`] if a live process holds it; the system's.
    pub fn take(disk: &Disk, run: &Path) -> Result<Self, RunError> {
        let path = run.join("lease");
        let Some(mut file) = lock(disk, run)? else {
            let holder = disk.find_text(&path)?.and_then(|text| Holder::parse(&text));
            // A holder that has not written who it is after all this time.
            return Err(elsewhere(run, holder.unwrap_or_else(|| Holder { pid: 0, ..Holder::this_process() })));
        };
        if let Some(holder) = Holder::parse(&file.read()?).filter(Holder::is_alive) {
            return Err(elsewhere(run, holder));
        }
        let me = Holder::this_process();
        file.write(&me.to_text())?;
        let lost = Arc::new(AtomicBool::new(false));
        let (stop, stopped) = mpsc::channel();
        let theirs = Arc::clone(&lost);
        // A thread, since one step may take longer than the silence after which others believe us dead.
        let heart = thread::spawn(move || {
            while stopped.recv_timeout(HEARTBEAT) == Err(RecvTimeoutError::Timeout) {
                beat(&mut file, &me, &theirs);
            }
            if !theirs.load(Ordering::SeqCst) {
                // At worst it stays as that of a process that is gone.
                let _ = file.write("");
            }
        });
        Ok(Self { run: run.to_owned(), lost, stop: Some(stop), heart: Some(heart) })
    }

    /// That the lease is still ours.
    ///
    /// # Errors
    /// [`RunError::LeaseLost`] if another process took it while this one gave no sign of life.
    pub fn check(&self) -> Result<(), RunError> {
        if self.lost.load(Ordering::SeqCst) { Err(RunError::LeaseLost { path: self.run.clone() }) } else { Ok(()) }
    }
}

impl Drop for Lease {
    fn drop(&mut self) {
        self.stop.take();
        // A thread that panicked leaves a lease that ends with this process.
        let _ = self.heart.take().map(JoinHandle::join);
    }
}

/// The locked file of the lease, or None if somebody holds it. A lock of nobody who is alive is waited for: its holder
/// is about to write who it is, or is gone, and a process that it was just starting has not closed the file yet.
fn lock(disk: &Disk, run: &Path) -> Result<Option<LockedFile>, RunError> {
    for _ in 0..PATIENCE {
        if let Some(file) = disk.lock(&run.join("lease"))? {
            return Ok(Some(file));
        }
        if Holder::of(disk, run)?.is_some() {
            break;
        }
        thread::sleep(Duration::from_millis(10));
    }
    Ok(None)
}

/// One sign of life; `lost` is set if the file names somebody else by now.
fn beat(file: &mut LockedFile, me: &Holder, lost: &AtomicBool) {
    let Ok(text) = file.read() else { return };
    if Holder::parse(&text).is_none_or(|holder| holder.is_same(me)) {
        // One that fails is made up for by the next.
        let _ = file.write(&Holder { heartbeat: unix_time(), ..me.clone() }.to_text());
    } else {
        lost.store(true, Ordering::SeqCst);
    }
}

fn elsewhere(run: &Path, holder: Holder) -> RunError {
    RunError::RunningElsewhere { path: run.to_owned(), host: holder.host, pid: holder.pid, since: holder.since }
}

/// This machine's name.
pub(crate) fn host() -> String {
    system("/proc/sys/kernel/hostname").or_else(|| std::env::var("HOSTNAME").ok()).unwrap_or_else(|| "localhost".into())
}

fn boot() -> String {
    system("/proc/sys/kernel/random/boot_id").unwrap_or_default()
}

/// When a process started, in clock ticks since the machine did: field 22 of `/proc/PID/stat`. None if there is no such
/// process, or only its remains that nobody has waited for.
#[must_use]
pub fn start_of(pid: u32) -> Option<u64> {
    let stat = system(&format!("/proc/{pid}/stat"))?;
    // The second field is the program's name in parentheses and may hold anything; the third is the state.
    let fields: Vec<&str> = stat.rsplit_once(')')?.1.split_whitespace().collect();
    if matches!(*fields.first()?, "Z" | "X") { None } else { fields.get(19)?.parse().ok() }
}

fn system(path: &str) -> Option<String> {
    std::fs::read_to_string(path).ok().map(|text| text.trim().to_owned())
}
