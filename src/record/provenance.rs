//! Where an attempt's code came from: recorded for people, part of no key.

use std::process::{Command, Stdio};
use std::sync::LazyLock;

use crate::record::fields::Fields;

/// The dependencies that this program was built with.
const CARGO_LOCK: &[u8] = include_bytes!("../../Cargo.lock");

/// Asked once a process: a warm start and the run that wants it are made by the same code.
static CODE: LazyLock<Vec<(&str, String)>> = LazyLock::new(|| {
    let mut code = vec![("version", env!("CARGO_PKG_VERSION").to_owned())];
    if let Some(commit) = git(&["rev-parse", "HEAD"]) {
        code.push(("commit", String::from_utf8_lossy(&commit).trim().to_owned()));
        let changes = [git(&["diff", "HEAD", "--binary"]), git(&["status", "--porcelain"])];
        let changes = changes.into_iter().flatten().flatten().collect::<Vec<u8>>();
        if !changes.is_empty() {
            code.push(("dirty", digest(&changes)));
        }
    }
    code.push(("cargo-lock", digest(CARGO_LOCK)));
    code
});

/// Adds version, commit, digest of uncommitted changes (where the working folder is in a git work tree) and digest of
/// `Cargo.lock`.
pub(crate) fn describe(fields: Fields) -> Fields {
    CODE.iter().fold(fields, |fields, (name, value)| fields.with_text(name, value))
}

fn digest(bytes: &[u8]) -> String {
    format!("blake3:{}", blake3::hash(bytes).to_hex())
}

fn git(arguments: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new("git").args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then_some(output.stdout)
}
