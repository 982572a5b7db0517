//! Every mistake that the language knows, each with its place and a hint.

use std::fmt;
use std::sync::Arc;

use miette::{GraphicalReportHandler, GraphicalTheme, LabeledSpan, SourceCode};

use super::{Place, Source};

/// Columns of the longest line that is shown in an excerpt.
const LONGEST_LINE: usize = 4000;
/// Mistakes that are shown in full.
const SHOWN_MAX: usize = 100;
/// Mistakes after which no more are looked for.
pub(super) const MISTAKES_MAX: usize = 200;

/// One mistake.
#[derive(Debug)]
pub struct Diagnostic {
    code: &'static str,
    message: String,
    /// Where the mistake is, and what it is there.
    home: Box<(Place, String)>,
    /// Other places that have to do with it.
    others: Vec<(Place, String)>,
    help: Option<String>,
    /// Nothing that keeps a run from being what it says.
    warning: bool,
}

impl Diagnostic {
    pub(super) fn new(code: &'static str, message: impl Into<String>, place: &Place, label: impl Into<String>) -> Self {
        let home = Box::new((place.clone(), label.into()));
        Self { code, message: message.into(), home, others: Vec::new(), help: None, warning: false }
    }

    /// Another place that has to do with it.
    pub(super) fn at(mut self, place: &Place, label: impl Into<String>) -> Self {
        self.others.push((place.clone(), label.into()));
        self
    }

    pub(super) fn help(mut self, help: impl Into<String>) -> Self {
        let help = help.into();
        self.help = (!help.is_empty()).then_some(help);
        self
    }

    /// A rule of a layer above that the value at `place` breaks.
    #[must_use]
    pub fn rule(place: &Place, message: &str, help: &str) -> Self {
        Self::new("rule", message, place, "this value").help(help)
    }

    /// The same as a warning.
    #[must_use]
    pub fn warning(self) -> Self {
        Self { warning: true, ..self }
    }

    /// An experiment of that name is not among the documents at these paths.
    #[must_use]
    pub fn unknown_experiment(name: &str, paths: &[String]) -> Self {
        let all: Vec<_> = paths.iter().map(|path| super::document::document_name(path)).collect();
        let message = format!("there is no experiment \"{name}\"");
        let diagnostic = Self::new("unknown-document", message, &Place::typed(name), "unknown name");
        diagnostic.help(choices(name, "experiments", &all))
    }

    /// A name that no field has, on a command line.
    pub(super) fn unknown_path<'p>(name: &str, paths: impl Iterator<Item = &'p str>) -> Self {
        let last = |path: &'p str| [path, path.rsplit('.').next().unwrap_or(path)];
        let near = super::schema::nearest(name, paths.flat_map(last).collect::<Vec<_>>());
        let message = format!("there is no value `{name}`");
        Self::new("unknown-key", message, &Place::typed(name), "unknown name").help(did_you_mean(&near))
    }

    /// Adds a line of help.
    #[must_use]
    pub fn note(mut self, line: &str) -> Self {
        self.help = Some(self.help.map_or_else(|| line.to_owned(), |help| format!("{help}\n{line}")));
        self
    }

    /// Whether it is the same mistake at the same place.
    #[must_use]
    pub fn is_same(&self, other: &Self) -> bool {
        (self.code, &self.message, self.place()) == (other.code, &other.message, other.place())
    }

    /// The kind of mistake, such as `unknown-key`.
    #[must_use]
    pub fn code(&self) -> &'static str {
        self.code
    }

    /// Where the mistake is.
    #[must_use]
    pub fn place(&self) -> &Place {
        &self.home.0
    }

    /// Labels in other texts than the first one's, as a line of help: an excerpt shows one text.
    fn elsewhere(&self) -> Option<String> {
        let away = |(place, _): &&(Place, String)| !Arc::ptr_eq(&place.source, &self.place().source);
        let line = |(place, label): &(Place, String)| format!("{}: {label}", place.origin());
        let lines: Vec<String> = self.others.iter().filter(away).map(line).collect();
        (!lines.is_empty()).then(|| lines.join("\n"))
    }

    /// Where an excerpt is shown: the renderer gives up on lines of tens of thousands of columns.
    fn excerpt(&self) -> Option<&Place> {
        Some(self.place()).filter(|place| place.source.text.lines().all(|line| line.len() <= LONGEST_LINE))
    }

    /// The place in words, where there is no excerpt.
    fn unshown(&self) -> Option<String> {
        let place = Some(self.place()).filter(|_| self.excerpt().is_none())?;
        let at = format!("at {}:{}:{}", place.source.name, place.line(), place.column());
        Some(format!("{at}, in a text whose lines are too long to show"))
    }

    fn advice(&self) -> Option<String> {
        let parts: Vec<String> = [self.unshown(), self.elsewhere(), self.help.clone()].into_iter().flatten().collect();
        (!parts.is_empty()).then(|| parts.join("\n"))
    }

    /// As [`Diagnostics::render`] shows each.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let theme = if colour { GraphicalTheme::unicode() } else { GraphicalTheme::none() };
        let handler = GraphicalReportHandler::new_themed(theme).with_width(100).with_links(false).with_context_lines(1);
        let mut out = String::new();
        // Writing to a string fails only if a span lies outside its text, and places are clamped.
        if handler.render_report(&mut out, self).is_err() {
            out.push_str(&self.message);
        }
        out
    }

    fn json(&self) -> serde_json::Value {
        let place = self.place();
        serde_json::json!({
            "code": self.code,
            "file": place.source.name,
            "line": place.line(),
            "column": place.column(),
            "message": self.message,
            "help": self.advice(),
        })
    }
}

impl fmt::Display for Diagnostic {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Diagnostic {}

impl miette::Diagnostic for Diagnostic {
    fn code<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        Some(Box::new(format!("starpo::{}", self.code)))
    }

    fn severity(&self) -> Option<miette::Severity> {
        self.warning.then_some(miette::Severity::Warning)
    }

    fn help<'a>(&'a self) -> Option<Box<dyn fmt::Display + 'a>> {
        self.advice().map(|advice| Box::new(wrapped(&advice)) as Box<dyn fmt::Display>)
    }

    fn source_code(&self) -> Option<&dyn SourceCode> {
        self.excerpt().map(|place| &*place.source as &dyn SourceCode)
    }

    fn labels(&self) -> Option<Box<dyn Iterator<Item = LabeledSpan> + '_>> {
        let home = self.excerpt()?;
        let all = std::iter::once(&*self.home).chain(&self.others);
        let here = all.filter(|(place, _)| Arc::ptr_eq(&place.source, &home.source));
        Some(Box::new(here.map(|(place, label)| LabeledSpan::new_with_span(Some(label.clone()), place.span()))))
    }
}

/// Breaks long lines at blanks: left to itself, the renderer breaks names at their hyphens.
fn wrapped(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut width = 0;
        for word in line.split(' ') {
            let long = width > 0 && width + word.chars().count() > 84;
            if long {
                width = 0;
            }
            out.push_str(if long {
                "\n"
            } else if width > 0 {
                " "
            } else {
                ""
            });
            out.push_str(word);
            width += word.chars().count() + 1;
        }
        out.push('\n');
    }
    out.trim_end().to_owned()
}

/// All mistakes of a request, text by text. Never empty.
#[derive(Debug)]
pub struct Diagnostics(Vec<Diagnostic>);

impl Diagnostics {
    /// # Errors
    /// If there is anything in `found`.
    pub fn check(found: Vec<Diagnostic>) -> Result<(), Self> {
        if found.is_empty() { Ok(()) } else { Err(Self::of(found)) }
    }

    /// Each mistake once, as one reads: text by text in the order in which they were met, each from its top.
    pub(super) fn of(found: Vec<Diagnostic>) -> Self {
        let mut texts: Vec<Arc<Source>> = Vec::new();
        let mut sorted: Vec<((usize, usize), Diagnostic)> = Vec::new();
        for diagnostic in found {
            let place = diagnostic.place();
            let known = texts.iter().position(|text| Arc::ptr_eq(text, &place.source));
            let text = known.unwrap_or_else(|| {
                texts.push(Arc::clone(&place.source));
                texts.len() - 1
            });
            sorted.push(((text, place.start()), diagnostic));
        }
        sorted.sort_by(|(at, a), (bt, b)| at.cmp(bt).then_with(|| a.message.cmp(&b.message)));
        sorted.dedup_by(|(at, a), (bt, b)| at == bt && a.code == b.code && a.message == b.message);
        Self(sorted.into_iter().map(|(_, diagnostic)| diagnostic).collect())
    }

    /// Adds a line of help to each.
    #[must_use]
    pub fn note(self, line: &str) -> Self {
        Self(self.0.into_iter().map(|one| one.note(line)).collect())
    }

    /// The mistakes one by one.
    #[must_use]
    pub fn into_vec(self) -> Vec<Diagnostic> {
        self.0
    }

    pub fn iter(&self) -> impl Iterator<Item = &Diagnostic> {
        self.0.iter()
    }

    /// For people: excerpts of the texts, 100 columns wide. In colour with line art, or else in plain ASCII.
    #[must_use]
    pub fn render(&self, colour: bool) -> String {
        let mut out: String = self.0.iter().take(SHOWN_MAX).map(|one| one.render(colour) + "\n").collect();
        match self.0.len() {
            1 => out.push_str("1 error\n"),
            count @ ..=SHOWN_MAX => out.push_str(&format!("{count} errors\n")),
            count => out.push_str(&format!("{count} errors, of which the first {SHOWN_MAX} are shown\n")),
        }
        out
    }

    /// A list with `code`, `file`, `line`, `column`, `message` and `help` of each.
    #[must_use]
    pub fn json(&self) -> serde_json::Value {
        self.0.iter().map(Diagnostic::json).collect()
    }
}

impl fmt::Display for Diagnostics {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.render(false))
    }
}

impl std::error::Error for Diagnostics {}

impl From<Diagnostic> for Diagnostics {
    fn from(one: Diagnostic) -> Self {
        Self(vec![one])
    }
}

/// `did you mean …?`, or nothing.
pub(super) fn did_you_mean(near: &[&str]) -> String {
    match near {
        [] => String::new(),
        near => {
            format!("did you mean {}? ", near.iter().map(|name| format!("`{name}`")).collect::<Vec<_>>().join(", "))
        }
    }
}

/// A list of choices after a suggestion.
pub(super) fn choices(wanted: &str, what: &str, all: &[&str]) -> String {
    let near = super::schema::nearest(wanted, all.iter().copied());
    let list = if all.is_empty() { format!("there are no {what}") } else { format!("{what}: {}", all.join(", ")) };
    format!("{}{list}", did_you_mean(&near))
}

macro_rules! mistakes {
    ($(
        $name:ident($place:ident $(, $arg:ident : $type:ty)*) $code:literal $message:literal, $label:literal;
    )*) => { $(
        pub(super) fn $name($place: &Place $(, $arg: $type)*) -> Diagnostic {
            Diagnostic::new($code, format!($message), $place, format!($label))
        }
    )* };
}

// What each message says, in one table. Hints that need to look around are added where it is known what is around.
mistakes! {
    syntax(place, message: &str, label: &str) "syntax" "{message}", "{label}";
    too_large(place, what: &str) "too-large" "the document is too large: {what}", "here";
    long_number(place, most: usize) "too-large" "a number has more than {most} digits in a row", "this many";
    unknown_key(place, key: &str, inside: &str) "unknown-key" "unknown key `{key}` in {inside}", "unknown key";
    other_variant(place, key: &str, family: &str, chosen: &str)
        "other-variant" "`{key}` is no field of {family} \"{chosen}\"", "belongs to another variant";
    wrong_type(place, expected: &str, found: &str)
        "wrong-type" "expected {expected}, found {found}", "expected {expected}";
    out_of_range(place, value: &str, low: &str, high: &str)
        "out-of-range" "{value} is out of range", "between {low} and {high}";
    non_finite(place) "non-finite" "a number must be finite", "not finite";
    unknown_variant(place, family: &str, name: &str)
        "unknown-variant" "there is no {family} \"{name}\"", "unknown name";
    not_chosen(place, path: &str) "missing-key" "`{path}` is not chosen yet", "its fields need a name before them";
    unknown_document(place, name: &str) "unknown-document" "there is no \"{name}\"", "not found";
    not_first(place, name: &str) "not-first" "`{name}` stands after other nodes", "move it to the top";
    bad_annotation(place, annotation: &str, why: &str) "bad-annotation" "`({annotation})` {why}", "this annotation";
    wrong_arguments(place, name: &str, expected: &str, found: usize)
        "wrong-arguments" "`{name}` takes {expected}, found {found}", "wrong number of arguments";
    not_a_block(place, name: &str) "wrong-arguments" "`{name}` is a value: it has no fields", "not here";
    wrapping(place, message: &str) "wrapping-node" "{message}", "here";
    ref_to_nothing(place, path: &str) "ref-to-nothing" "`{path}` is no value of this experiment", "refers to nothing";
    alias_to_nothing(place, path: &str) "alias-to-nothing" "`{path}` is no value of any experiment", "leads nowhere";
    alias_to_section(place, path: &str) "alias-to-section" "`{path}` is a section", "an alias stands for one value";
    alias_hidden(place, name: &str) "alias-hidden" "`{name}` is a path, and a path comes before an alias", "never used";
    append_to_ref(place, name: &str)
        "append-to-ref" "`{name}` is a reference to a list: nothing can go after it", "added here";
    forgotten_file(place, path: &str)
        "forgotten-file" "\"{path}\" is the name of a file, where its text belongs", "a name, and not the text";
    unreadable(place, path: &str, why: &str) "unreadable" "cannot read {path}: {why}", "named here";
    sweep(place, message: &str, label: &str) "sweep" "{message}", "{label}";
    bad_range(place, text: &str, why: &str) "bad-range" "`{text}` gives no values: {why}", "this range";
    not_an_override(place, text: &str) "not-an-override" "`{text}` is no override", "no `=`";
    unknown_override(place, key: &str) "unknown-override" "no value is called `{key}`", "unknown name";
    ambiguous(place, key: &str) "ambiguous-name" "`{key}` may mean several values", "ambiguous";
    override_of_section(place, path: &str)
        "override-of-section" "`{path}` has fields and no value of its own", "a section";
    several_values(place, path: &str) "several-values" "`{path}` takes one value", "several values";
    long_chain(place, most: usize)
        "too-large" "a chain of more than {most} references", "leads from reference to reference";
    not_a_list(place, path: &str) "not-a-list" "`{path}` is one value: nothing can be added to it", "no list";
}

/// Values that nothing gives.
pub(super) fn missing(place: &Place, paths: &[String]) -> Diagnostic {
    let names = |paths: &[String]| paths.iter().map(|path| format!("`{path}`")).collect::<Vec<_>>().join(", ");
    let message = match paths {
        [path] => format!("`{path}` is not set, and it has no default"),
        [first @ .., last] if first.len() < 4 => {
            format!("{} and `{last}` are not set, and they have no default", names(first))
        }
        _ => format!("{} and {} more are not set, and they have no default", names(&paths[..4]), paths.len() - 4),
    };
    Diagnostic::new("missing-key", message, place, "missing in here")
}

/// The same key twice in one body, or twice on the command line.
pub(super) fn duplicate(place: &Place, first: &Place, key: &str) -> Diagnostic {
    Diagnostic::new("duplicate-key", format!("`{key}` is given twice"), place, "given again")
        .at(first, "first given here")
}

/// A key both as a property and as a child.
pub(super) fn child_and_property(place: &Place, first: &Place, key: &str) -> Diagnostic {
    Diagnostic::new("child-and-property", format!("`{key}` is given as a property and as a child"), place, "as a child")
        .at(first, "as a property")
        .help("a field is a child or a property of its node, never both")
}

/// Documents or references that lead back to themselves.
pub(super) fn cycle(what: &str, place: &Place, other: &Place) -> Diagnostic {
    let diagnostic = Diagnostic::new("cycle", format!("{what} lead back to where they started"), place, "this one");
    if place == other { diagnostic } else { diagnostic.at(other, "comes back from here") }
}
