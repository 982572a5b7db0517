//! Threads, for independent pieces of work or for one piece together.

use std::num::NonZero;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock};
use std::thread::available_parallelism;

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Some threads, each a rayon pool of its own: what burn does inside a piece stays on that piece's thread, so its
/// arithmetic cannot depend on how many there are. And one pool, from when it is first asked for, of as many threads as
/// there are cores for, for what may be shared out bit for bit.
pub(super) struct Workers {
    pools: Vec<ThreadPool>,
    all: OnceLock<ThreadPool>,
}

impl Workers {
    /// # Panics
    /// If the system gives no thread.
    pub(super) fn new(threads: usize) -> Self {
        Self { pools: (0..threads.max(1)).map(|_| pool(1)).collect(), all: OnceLock::new() }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.pools.len()
    }

    /// `work` in the pool of all threads, which it may share out parts of itself to.
    pub(super) fn together<T: Send>(&self, work: impl FnOnce() -> T + Send) -> T {
        let threads = || self.count().min(available_parallelism().map_or(1, NonZero::get));
        self.all.get_or_init(|| pool(threads())).install(work)
    }

    /// `work(i)` for each i below `count`, handed out as threads come free; results in order.
    pub(super) fn map<T: Send>(&self, count: usize, work: impl Fn(usize) -> T + Sync) -> Vec<T> {
        let next = AtomicUsize::new(0);
        let results: Mutex<Vec<Option<T>>> = Mutex::new((0..count).map(|_| None).collect());
        let run = || {
            loop {
                let i = next.fetch_add(1, Ordering::Relaxed);
                if i >= count {
                    break;
                }
                let result = work(i);
                results.lock().expect("no thread panicked")[i] = Some(result);
            }
        };
        std::thread::scope(|scope| {
            for pool in self.pools.iter().take(count) {
                scope.spawn(|| pool.install(run));
            }
        });
        let results = results.into_inner().expect("no thread panicked");
        results.into_iter().map(|r| r.expect("every piece was done")).collect()
    }
}

fn pool(threads: usize) -> ThreadPool {
    ThreadPoolBuilder::new().num_threads(threads).build().expect("a thread can be started")
}
