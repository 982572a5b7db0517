# Every verb works as a plain cargo or starpo command too.
set positional-arguments

# List the verbs
default:
    @just --list

# Run one experiment:  just exp sokoban top_p=0.9 seed=3
[no-exit-message]
exp name *overrides:
    @cargo run --quiet --release -- run "$@"

# Run a sweep and compare its arms:  just sweep filters   just sweep sokoban top_p=0.9,0.5 seed=1..=5
[no-exit-message]
sweep name *overrides:
    @cargo run --quiet --release -- sweep "$@"

# Show a resolved experiment, each value with its origin, and its key
[no-exit-message]
show name *overrides:
    @cargo run --quiet --release -- show "$@"

# Run the tests
test *args:
    @cargo test --workspace "$@"

# Compare the golden documents; `just golden accept` writes them anew and shows what moved
golden mode="check":
    @if [ "$1" = accept ]; then INSTA_UPDATE=always cargo test --test it; git diff --stat golden; else INSTA_UPDATE=no cargo test --test it; fi

# Measure generation, learning, resolving:  just bench   just bench --bench resolve
bench *args:
    @cargo bench "$@"

# Format and lint
check:
    @cargo fmt --all --check
    @cargo clippy --workspace --all-targets -- -D warnings

# The same experiment must give the same bytes: twice, with one thread and two, and through five kills
repro:
    @.ci/repro

# A small sweep through a Slurm cluster of one node: a task is killed and resumes, the digests are the local ones. Root
slurm:
    @.ci/slurm

# What CI runs
ci:
    @.ci/run
