//! An environment, or a part of `configs/env`, as an experiment of its own.

use std::collections::BTreeSet;
use std::io;

use super::{Resolved, resolve_with};
use crate::config::{Diagnostics, Reader};
use crate::env::EnvConfig;

/// What [`resolve_task`] takes: the parts of `configs/env`, and the environments that no part is called like.
#[must_use]
pub fn task_names(reader: &dyn Reader) -> Vec<String> {
    let parts = reader.list("configs");
    let part = |path: &String| Some(path.strip_prefix("configs/env/")?.strip_suffix(".kdl")?.to_owned());
    let names: BTreeSet<String> =
        parts.iter().filter_map(part).chain(EnvConfig::NAMES.iter().map(|&name| name.to_owned())).collect();
    names.into_iter().collect()
}

/// The base with one task: that of the part `name`, else the environment of that name as the defaults have it.
///
/// # Errors
/// Every mistake in the part and in the overrides.
pub fn resolve_task(name: &str, overrides: &[String], reader: &dyn Reader) -> Result<Resolved, Diagnostics> {
    let is_part = reader.list("configs").contains(&format!("configs/env/{name}.kdl"));
    let body = if is_part { format!("use \"env/{name}\"") } else { format!("task {name:?}") };
    let document = format!("experiment {name:?} {{\n    extends \"base\"\n    {body}\n}}\n");
    let path = format!("{name}.kdl");
    resolve_with(&path, overrides, &Beside { outside: reader, path: &path, document: &document })
}

/// The project's files and one document more.
struct Beside<'a> {
    outside: &'a dyn Reader,
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

    fn run(&self, name: &str) -> io::Result<String> {
        self.outside.run(name)
    }

    fn hides(&self, path: &str) -> bool {
        self.outside.hides(path)
    }

    fn foreign(&self, argument: &str) -> Option<String> {
        self.outside.foreign(argument)
    }
}
