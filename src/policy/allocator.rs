//! What becomes of memory that is freed.

use std::ffi::c_long;

use libmimalloc_sys::{mi_option_set, mi_option_t};

/// `mi_option_purge_delay` in mimalloc.h, for which the bindings have no name; numbers of options never change.
const PURGE_DELAY: mi_option_t = 15;
/// That no page is given back.
const NEVER: c_long = -1;

/// Has mimalloc, where it is the allocator of the process, keep what is freed. Each step frees gigabytes and asks for
/// as many at once: pages that went back to the system between would be cleared again before their next use, a fifth
/// of the time of an update. To be called before there are threads.
#[expect(unsafe_code, reason = "the C function asks for no more than a thread at a time")]
pub fn keep_freed_memory() {
    unsafe { mi_option_set(PURGE_DELAY, NEVER) }
}
