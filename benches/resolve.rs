//! Resolving: 10,000 cells of a sweep without writing them, and `show` of each experiment that comes along.
#![expect(clippy::print_stdout, reason = "it prints what it measures")]

use std::convert::Infallible;
use std::path::Path;
use std::time::Instant;

use starpo::experiment::{self, EMBEDDED, Outside};

#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Two filters, five learning rates, a thousand seeds.
const AXES: [&str; 3] = ["filter=none,top-p", "update.learning-rate=1e-7..1e-5:log5", "seed=1..=1000"];

#[expect(clippy::disallowed_methods, reason = "it is about time")]
fn main() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let axes = AXES.map(str::to_owned);
    let begun = Instant::now();
    let nothing = &mut |_: &_| Ok::<(), Infallible>(());
    let cells = experiment::sweep("sokoban", &axes, &Outside::new(root), &|_| false, nothing, &mut |_| Ok(()));
    let Ok(cells) = cells.expect("the sweep is sound");
    println!("{} cells: {:.2} s", cells.cells.len(), begun.elapsed().as_secs_f64());
    let experiments = EMBEDDED.iter().map(|(path, _)| *path).filter(|path| path.starts_with("experiments/"));
    for path in experiments.filter(|path| !path.starts_with("experiments/sweeps/")) {
        let begun = Instant::now();
        let shown = experiment::resolve(path, &[], root).expect("it is sound").show();
        println!("show {path}: {:.1} ms, {} lines", 1e3 * begun.elapsed().as_secs_f64(), shown.lines().count());
    }
}
