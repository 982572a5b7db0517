//! Where text came from: files and the command line, and places in them.

use std::sync::Arc;

use miette::{MietteError, MietteSpanContents, SourceCode, SourceSpan, SpanContents};

/// A named text: a document, or the overrides of a command line.
#[derive(Debug)]
pub struct Source {
    pub name: String,
    pub text: String,
    /// Where each argument starts, in a command line.
    arguments: Vec<usize>,
    /// Whether a line ends with a comment that says where its value was given first.
    origins: bool,
}

impl Source {
    /// A document.
    #[must_use]
    pub fn document(name: impl Into<String>, text: impl Into<String>) -> Arc<Self> {
        Arc::new(Self { name: name.into(), text: text.into(), arguments: Vec::new(), origins: false })
    }

    /// The lock of a run, whose values say where they were given.
    #[must_use]
    pub fn lock(text: &str) -> Arc<Self> {
        let (name, text) = ("run.lock.kdl".to_owned(), text.to_owned());
        Arc::new(Self { name, text, arguments: Vec::new(), origins: true })
    }

    /// The overrides of a command line, and the place of each.
    #[must_use]
    pub fn command_line(arguments: &[String]) -> Vec<Place> {
        let mut starts = Vec::with_capacity(arguments.len());
        let mut text = String::new();
        for argument in arguments {
            if !starts.is_empty() {
                text.push(' ');
            }
            starts.push(text.len());
            text.push_str(argument);
        }
        let source = Arc::new(Self { name: "command line".to_owned(), text, arguments: starts, origins: false });
        let place = |(&start, argument): (&usize, &String)| Place::new(&source, start, argument.len());
        source.arguments.iter().zip(arguments).map(place).collect()
    }
}

impl SourceCode for Source {
    fn read_span<'a>(
        &'a self,
        span: &SourceSpan,
        before: usize,
        after: usize,
    ) -> Result<Box<dyn SpanContents<'a> + 'a>, MietteError> {
        let inner = self.text.as_str().read_span(span, before, after)?;
        Ok(Box::new(MietteSpanContents::new_named(
            self.name.clone(),
            inner.data(),
            *inner.span(),
            inner.line(),
            inner.column(),
            inner.line_count(),
        )))
    }
}

/// A stretch of a source, in bytes.
#[derive(Clone, Debug)]
pub struct Place {
    pub(super) source: Arc<Source>,
    start: usize,
    end: usize,
}

impl Place {
    /// Clamped to the text and to whole characters.
    #[must_use]
    pub fn new(source: &Arc<Source>, start: usize, len: usize) -> Self {
        let floor = |at: usize| source.text.floor_char_boundary(at.min(source.text.len()));
        Self { source: Arc::clone(source), start: floor(start), end: floor(start.saturating_add(len)) }
    }

    pub(crate) fn of(source: &Arc<Source>, span: SourceSpan) -> Self {
        Self::new(source, span.offset(), span.len())
    }

    /// A word of the command line that is no override.
    #[must_use]
    pub fn typed(word: &str) -> Self {
        Self::new(&Source::document("command line", word), 0, word.len())
    }

    /// The place of `len` bytes from `offset` on, inside this one.
    #[must_use]
    pub fn part(&self, offset: usize, len: usize) -> Self {
        Self::new(&self.source, self.start + offset, len)
    }

    /// Counted from 1.
    #[must_use]
    pub fn line(&self) -> usize {
        self.source.text[..self.start].matches('\n').count() + 1
    }

    /// In characters, counted from 1.
    #[must_use]
    pub fn column(&self) -> usize {
        let before = &self.source.text[..self.start];
        before[before.rfind('\n').map_or(0, |at| at + 1)..].chars().count() + 1
    }

    /// What stands in the comment of a lock's line.
    fn first_origin(&self) -> Option<&str> {
        let line = self.source.text[self.start..].lines().next().filter(|_| self.source.origins)?;
        line.rsplit_once("  // ").map(|(_, origin)| origin)
    }

    /// `configs/base.kdl:12`, or `override 2`.
    #[must_use]
    pub fn origin(&self) -> String {
        if let Some(origin) = self.first_origin() {
            return origin.to_owned();
        }
        match self.source.arguments.partition_point(|&start| start <= self.start) {
            0 => format!("{}:{}", self.source.name, self.line()),
            number => format!("override {number}"),
        }
    }

    /// Where it starts, in bytes.
    pub(super) fn start(&self) -> usize {
        self.start
    }

    pub(super) fn span(&self) -> SourceSpan {
        (self.start, self.end - self.start).into()
    }
}

impl PartialEq for Place {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.source, &other.source) && (self.start, self.end) == (other.start, other.end)
    }
}
