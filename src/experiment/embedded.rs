//! The documents of `configs/` and `experiments/` as they were when the binary was made, sorted by path.

macro_rules! embedded {
    ($($path:literal),* $(,)?) => {
        &[$(($path, include_str!(concat!("../../", $path)))),*]
    };
}

/// Path and text. A test holds the list against the folders.
pub const FILES: &[(&str, &str)] = embedded![
    "configs/base.kdl",
    "configs/model/tiny-tokenizer.json",
    "configs/model/tiny.kdl",
    "experiments/bandit.kdl",
    "experiments/frozen-lake.kdl",
    "experiments/sokoban.kdl",
];

/// The text of the document of that path.
pub(super) fn find(path: &str) -> Option<&'static str> {
    FILES.iter().find(|(name, _)| *name == path).map(|(_, text)| *text)
}
