//! starpo's hot operations, one a file: formula, f64 reference, CPU body, and a cubecl kernel where there is one.
//!
//! CPU bodies promise the same bits on every x86-64-v3 machine: fixed lanes and orders of summation, explicit FMA, no
//! system libm, one thread. Threads are the caller's business.

use std::sync::atomic::{AtomicBool, Ordering};

pub mod attention;
pub mod bias;
#[cfg(test)]
mod check;
pub mod embedding;
pub mod exp;
pub mod head;
pub mod linear;
pub mod rms_norm;
pub mod selective_log_softmax;
pub mod swiglu;

/// Numbers that are computed side by side: two AVX registers, a line of a cache.
const LANES: usize = 16;

/// Whether bodies run as on a machine without AVX2.
static PORTABLE: AtomicBool = AtomicBool::new(false);

/// Lets bodies run as on a machine without AVX2, in the whole process: what holds their bits together can so be tested
/// on one machine.
pub fn set_portable(portable: bool) {
    PORTABLE.store(portable, Ordering::Relaxed);
}

/// Runs `body`, compiled for AVX2 and FMA where the machine has them. The bits are the same without (only slower).
#[inline(always)]
pub(crate) fn vectorised<R>(body: impl FnOnce() -> R) -> R {
    #[cfg(target_arch = "x86_64")]
    if let Some(v3) = pulp::x86::V3::try_new().filter(|_| !PORTABLE.load(Ordering::Relaxed)) {
        return pulp::Simd::vectorize(v3, body);
    }
    body()
}

/// Has a line of memory fetched into the second-level cache, for later.
#[inline(always)]
#[cfg_attr(not(target_arch = "x86_64"), expect(unused_variables, reason = "no hint, no harm"))]
pub(crate) fn fetch(line: &[f32; LANES]) {
    #[cfg(target_arch = "x86_64")]
    #[expect(unsafe_code, reason = "a hint: nothing is read")]
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T1, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T1>(line.as_ptr().cast());
    }
}
