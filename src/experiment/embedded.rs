//! The documents of `configs/` and `experiments/` as they were when the binary was made, sorted by path.

macro_rules! embedded {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../", $path)))),*]
    };
}

/// Path and text. A test holds the list against the folders.
pub const FILES: &[(&str, &str)] = embedded![
    "configs/algorithm/dapo.kdl",
    "configs/algorithm/dr-grpo.kdl",
    "configs/algorithm/gspo.kdl",
    "configs/algorithm/hgpo.kdl",
    "configs/algorithm/ragen-grpo.kdl",
    "configs/algorithm/ragen-ppo.kdl",
    "configs/algorithm/reinforce-pp.kdl",
    "configs/algorithm/rloo.kdl",
    "configs/algorithm/starpo-s.kdl",
    "configs/algorithm/verl-agent-gigpo.kdl",
    "configs/algorithm/verl-agent-grpo.kdl",
    "configs/base.kdl",
    "configs/env/2048.kdl",
    "configs/env/bandit.kdl",
    "configs/env/blackjack.kdl",
    "configs/env/coord-frozen-lake-slippery.kdl",
    "configs/env/coord-frozen-lake.kdl",
    "configs/env/coord-sokoban.kdl",
    "configs/env/countdown-all.kdl",
    "configs/env/countdown.kdl",
    "configs/env/ez-points.kdl",
    "configs/env/frozen-lake-slippery.kdl",
    "configs/env/large-sudoku.kdl",
    "configs/env/larger-sokoban.kdl",
    "configs/env/math.kdl",
    "configs/env/medium-sudoku.kdl",
    "configs/env/number-line.kdl",
    "configs/env/points24.kdl",
    "configs/env/rubiks-cube-far.kdl",
    "configs/env/rubiks-cube.kdl",
    "configs/env/simple-sokoban.kdl",
    "configs/env/simple-sudoku.kdl",
    "configs/env/small-sudoku.kdl",
    "configs/env/sokoban-other-vocab.kdl",
    "configs/model/tiny-tokenizer.json",
    "configs/model/tiny.kdl",
    "experiments/2048.kdl",
    "experiments/bandit.kdl",
    "experiments/countdown.kdl",
    "experiments/frozen-lake.kdl",
    "experiments/mixture.kdl",
    "experiments/repro.kdl",
    "experiments/sokoban.kdl",
    "experiments/sweeps/filters.kdl",
];

/// The text of the document of that path.
pub(super) fn find(path: &str) -> Option<&'static str> {
    FILES.iter().find(|(name, _)| *name == path).map(|(_, text)| *text)
}
