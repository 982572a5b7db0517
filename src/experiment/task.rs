//! An environment, or a part of `configs/env`, as an experiment of its own.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;

use super::{Outside, Resolved, resolve_with};
use crate::config::{Diagnostics, Reader};
use crate::env::EnvConfig;

/// What [`resolve_task`] takes: the parts of `configs/env`, and the environments that no part is called like.
#[must_use]
pub fn task_names(root: &Path) -> Vec<String> {
    let parts = Outside::new(root).list("configs");
    let part = |path: &String| Some(path.strip_prefix("configs/env/")?.strip_suffix(".kdl")?.to_owned());
    let names: BTreeSet<String> =
        parts.iter().filter_map(part).chain(EnvConfig::NAMES.iter().map(|&name| name.to_owned())).collect();
    names.into_iter().collect()
}

/// The base with one task: that of the part `name`, else the environment of that name as the defaults have it.
///
/// # Errors
/// Every mistake in the part and in the overrides.
pub fn resolve_task(name: &str, overrides: &[String], root: &Path) -> Result<Resolved, Diagnostics> {
    let outside = Outside::new(root);
    let is_part = outside.list("configs").contains(&format!("configs/env/{name}.kdl"));
    let body = if is_part { format!("use \"env/{name}\"") } else { format!("task {name:?}") };
    let document = format!("experiment {name:?} {{\n    extends \"base\"\n    {body}\n}}\n");
    let path = format!("{name}.kdl");
    resolve_with(&path, overrides, &Beside { outside: &outside, path: &path, document: &document })
}

/// The project's files and one document more.
struct Beside<'a> {
    outside: &'a Outside,
    path: &'a str,
    document: &'a str,
}

impl Reader for Beside<'_> {
    fn read(&self, path: &str) -> io::Result<Vec<u8>> {
        if path == self.path { Ok(self.document.as_bytes().to_vec()) } else { self.outside.read(path) }
    }

    fn list(&self, folder: &str) -> Vec<String> {
        self.outside.list(folder)
    }

    fn folder(&self, path: &str) -> io::Result<String> {
        self.outside.folder(path)
    }
}
