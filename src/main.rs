//! The `starpo` binary.

use std::process::ExitCode;

// Training allocates and frees large buffers all the time; glibc gives each back to the system and faults it in again.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    starpo::policy::keep_freed_memory();
    starpo::cli::main(starpo::cli::parse())
}
