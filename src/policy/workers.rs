//! Threads for independent pieces of work.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use rayon::{ThreadPool, ThreadPoolBuilder};

/// Some threads, each a rayon pool of its own: what burn does inside a piece stays on that piece's thread, so its
/// arithmetic cannot depend on how many there are.
pub(super) struct Workers {
    pools: Vec<ThreadPool>,
}

impl Workers {
    /// # Panics
    /// If the system gives no thread.
    pub(super) fn new(threads: usize) -> Self {
        let pool = |_| ThreadPoolBuilder::new().num_threads(1).build().expect("a thread can be started");
        Self { pools: (0..threads.max(1)).map(pool).collect() }
    }

    /// How many there are.
    pub(super) fn count(&self) -> usize {
        self.pools.len()
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
