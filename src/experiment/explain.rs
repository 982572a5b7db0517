//! What a name means in an experiment.

use std::path::Path;

use super::{FIELDS, Outside};
use crate::config::{self, Diagnostics, Explanation};

/// The values that a name can stand for, with their defaults from `configs/base.kdl` below `root`. Numbers of repeated
/// nodes and of list items play no part.
///
/// # Errors
/// A name that no value has; mistakes in the defaults.
pub fn explain(name: &str, root: &Path) -> Result<Vec<Explanation>, Diagnostics> {
    let parts: Vec<&str> = name.split('.').filter(|part| part.parse::<usize>().is_err()).collect();
    config::explain(FIELDS, "configs/base.kdl", &parts.join("."), &Outside::new(root))
}
