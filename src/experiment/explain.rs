//! What a name means in an experiment.

use super::FIELDS;
use crate::config::{self, Diagnostics, Explanation, Reader};

/// The values that a name can stand for, with their defaults from `configs/base.kdl`. Numbers of repeated
/// nodes and of list items play no part.
///
/// # Errors
/// A name that no value has; mistakes in the defaults.
pub fn explain(name: &str, reader: &dyn Reader) -> Result<Vec<Explanation>, Diagnostics> {
    let parts: Vec<&str> = name.split('.').filter(|part| part.parse::<usize>().is_err()).collect();
    config::explain(FIELDS, "configs/base.kdl", &parts.join("."), reader)
}
