//! Documents laid over each other, and what overrides make of them.

use std::sync::Arc;

use super::document::{self, Alias, Layer};
use super::error::Diagnostic;
use super::layer::Layers;
use super::overrides::{Assignment, Overrides, ShortName};
use super::tree::Body;
use super::{Diagnostics, Field, Place, Reader, Source, finish};

/// A tree before any override, from which many are resolved.
pub(super) struct Laid<'l> {
    pub root: &'static [Field],
    pub body: Body,
    layers: Layers<'l>,
    texts: Vec<&'l Layer>,
    aliases: &'l [Alias],
    /// Texts that the command line's arguments of these numbers laid over the documents.
    overlays: &'l [(usize, Arc<Source>)],
    /// What is missing is missing here.
    top: Place,
}

impl<'l> Laid<'l> {
    /// Lays `texts` over each other, the lowest first, for the document at `top`. What is wrong is added to `errors`.
    pub(super) fn new(
        root: &'static [Field],
        texts: &[&'l Layer],
        top: &Place,
        aliases: &'l [Alias],
        reader: &'l dyn Reader,
        errors: &mut Vec<Diagnostic>,
    ) -> Self {
        document::check_aliases(root, aliases, errors);
        let mut layers = Layers::new(root, reader);
        let body = layers.lay(texts);
        errors.append(&mut layers.errors);
        Self { root, body, layers, texts: texts.to_vec(), aliases, overlays: &[], top: top.clone() }
    }

    /// The same where the uppermost texts are overlays.
    pub(super) fn under(self, overlays: &'l [(usize, Arc<Source>)]) -> Self {
        Self { overlays, ..self }
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
        let mut command = Overrides::new(self.root, &mut layers, &mut body, self.overlays);
        command.apply(assignments, self.aliases);
        let short_names = command.short_names;
        let mut errors = layers.errors;
        finish::follow_references(self.root, &mut body, &mut errors);
        if complete {
            let missing = finish::fill(self.root, &mut body, &self.top);
            errors.extend(finish::missed(missing, &self.texts, self.layers.reader));
        }
        Diagnostics::check(errors)?;
        Ok((body, short_names))
    }
}
