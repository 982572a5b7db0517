//! Documents laid over each other, and what overrides make of them.

use super::document::{self, Alias, Layer};
use super::error::Diagnostic;
use super::layer::Layers;
use super::overrides::{Assignment, Overrides, ShortName};
use super::tree::Body;
use super::{Diagnostics, Field, Place, Reader, finish};

/// A tree before any override, from which many are resolved.
pub(super) struct Laid<'l> {
    pub root: &'static [Field],
    pub body: Body,
    layers: Layers<'l>,
    aliases: &'l [Alias],
    /// Of the uppermost document: what is missing is missing there.
    top: Option<Place>,
}

impl<'l> Laid<'l> {
    /// Lays `texts` over each other, the lowest first. What is wrong is added to `errors`.
    pub(super) fn new(
        root: &'static [Field],
        texts: &[&'l Layer],
        aliases: &'l [Alias],
        reader: &'l dyn Reader,
        errors: &mut Vec<Diagnostic>,
    ) -> Self {
        document::check_aliases(root, aliases, errors);
        let mut layers = Layers::new(root, reader);
        let body = layers.lay(texts);
        errors.append(&mut layers.errors);
        Self { root, body, layers, aliases, top: texts.last().map(|text| text.place.clone()) }
    }

    /// The whole tree under these assignments; what is wrong with them comes after `errors`. Where a document was not
    /// as it should be, so not `complete`, what it may have given is not missed.
    pub(super) fn resolve(
        &self,
        assignments: Vec<Assignment>,
        errors: Vec<Diagnostic>,
        complete: bool,
    ) -> Result<(Body, Vec<ShortName>), Diagnostics> {
        let mut layers = self.layers.fork(errors);
        let mut body = self.body.clone();
        let mut command = Overrides::new(self.root, &mut layers, &mut body);
        command.apply(assignments, self.aliases);
        let short_names = command.short_names;
        let mut errors = layers.errors;
        finish::follow_references(self.root, &mut body, &mut errors);
        if let (true, Some(top)) = (complete, &self.top) {
            finish::fill(self.root, &mut body, top, &mut errors);
        }
        Diagnostics::check(errors)?;
        Ok((body, short_names))
    }
}
