//! Where an attempt's code came from: recorded for people, part of no key.

use std::process::{Command, Stdio};

use crate::record::fields::Fields;

/// The dependencies that this program was built with.
const CARGO_LOCK: &[u8] = include_bytes!("../../Cargo.lock");

/// Adds version, commit, digest of uncommitted changes (where the working folder is in a git work tree) and digest of
/// `Cargo.lock`.
pub(crate) fn describe(fields: Fields) -> Fields {
    let mut fields = fields.with("version", env!("CARGO_PKG_VERSION"));
    if let Some(commit) = git(&["rev-parse", "HEAD"]) {
        fields = fields.with("commit", String::from_utf8_lossy(&commit).trim());
        let changes = [git(&["diff", "HEAD", "--binary"]), git(&["status", "--porcelain"])];
        let changes = changes.into_iter().flatten().flatten().collect::<Vec<u8>>();
        if !changes.is_empty() {
            fields = fields.with("dirty", digest(&changes));
        }
    }
    fields.with("cargo-lock", digest(CARGO_LOCK))
}

fn digest(bytes: &[u8]) -> String {
    format!("blake3:{}", blake3::hash(bytes).to_hex())
}

fn git(arguments: &[&str]) -> Option<Vec<u8>> {
    let output = Command::new("git").args(arguments).stdin(Stdio::null()).stderr(Stdio::null()).output().ok()?;
    output.status.success().then_some(output.stdout)
}
