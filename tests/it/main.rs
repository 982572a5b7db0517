//! The one integration binary.
#![expect(clippy::unwrap_used, reason = "a test that cannot go on has failed")]

mod advantage;
mod chat;
mod cli;
mod config;
mod crash;
mod diagnose;
mod disk;
mod env;
mod filters;
mod environments;
mod learners;
mod learning;
mod mixture;
mod models;
mod objective;
mod play;
mod players;
mod policy;
mod presets;
mod prolong;
mod record;
mod replay;
mod report;
mod reward;
mod run;
mod sinks;
mod stops;
mod store;
mod templates;
mod sweep;
mod tidy;
mod window;

/// Holds `text` against the document `golden/<folder>/<name>.snap`. `INSTA_UPDATE=always` writes it anew.
#[track_caller]
pub(crate) fn golden(folder: &str, name: &str, text: &str) {
    let mut settings = insta::Settings::clone_current();
    settings.set_snapshot_path(format!("{}/golden/{folder}", env!("CARGO_MANIFEST_DIR")));
    settings.set_prepend_module_to_snapshot(false);
    settings.set_omit_expression(true);
    settings.bind(|| insta::assert_snapshot!(name, text));
}
