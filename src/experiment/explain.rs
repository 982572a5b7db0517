//! What a name means in an experiment.

use std::path::Path;

use super::{FIELDS, Outside};
use crate::config::{self, Diagnostics, Explanation};

/// The values that a name can stand for, with their defaults from `configs/base.kdl` below `root`.
///
/// # Errors
/// A name that no value has; mistakes in the defaults.
pub fn explain(name: &str, root: &Path) -> Result<Vec<Explanation>, Diagnostics> {
    config::explain(FIELDS, "configs/base.kdl", name, &Outside::new(root))
}
