//! The experiment language: KDL documents and overrides in, one resolved tree of typed values out, or diagnostics.
//!
//! The Rust types are the schema. [`section!`] declares a group of fields and [`variants!`] a choice between named
//! groups; both give a constant description ([`Kind`], [`Field`], [`Alternative`]) that drives reading, suggestions,
//! `show`, and the canonical text, and a [`Decode`] that turns the resolved [`Value`] into the type. Resolution
//! checks everything against the description, so decoding cannot fail. This layer knows no section of an experiment.

use std::collections::BTreeMap;
use std::io;
use std::sync::Arc;

mod axis;
mod canon;
mod document;
mod error;
mod explain;
mod finish;
mod laid;
mod layer;
mod leaf;
mod overrides;
mod scalar;
mod schema;
pub mod show;
mod source;
pub mod sweep;
pub mod tree;

pub use canon::{HEADER, canonical, type_name};
pub(crate) use document::names_a_directory;
pub use error::{Diagnostic, Diagnostics};
pub use explain::{Explanation, explain};
pub use overrides::ShortName;
pub(crate) use schema::{ends_with, nearest};
pub use source::{Place, Source};

/// What lies outside: this layer reads nothing by itself. Paths are relative to the project's root, or absolute.
pub trait Reader: Sync {
    /// A file's bytes.
    fn read(&self, path: &str) -> io::Result<Vec<u8>>;

    /// The text at a path, where it is one that the program carries: then it is parsed once, whoever asks for it.
    fn carried(&self, path: &str) -> Option<&'static str> {
        let _ = path;
        None
    }

    /// The paths of the documents below `configs` or `experiments`, sorted.
    fn list(&self, folder: &str) -> Vec<String>;

    /// The digest of a folder's content, in hex.
    fn folder(&self, path: &str) -> io::Result<String>;

    /// The directory of the finished run that `name` says.
    fn run(&self, name: &str) -> io::Result<String> {
        Err(io::Error::other(format!("no folder of runs to look for {name} in")))
    }

    /// Whether the document of that path hides another one that this version brings along.
    fn hides(&self, path: &str) -> bool {
        let _ = path;
        false
    }

    /// What an override in the words of another program is here, for a person.
    fn foreign(&self, argument: &str) -> Option<String> {
        let _ = argument;
        None
    }
}

/// Which documents make the tree.
pub enum Top<'a> {
    /// An experiment's document, with all that it builds on.
    Experiment(&'a str),
    /// A part alone.
    Part(&'a str),
    /// A stretch of a text, which builds on nothing: the block `config` of a lock.
    Block(&'a Arc<Source>, &'a [kdl::KdlNode]),
}

impl Top<'_> {
    /// What a document is called that could not be read.
    fn place(&self) -> Place {
        match self {
            Self::Experiment(path) | Self::Part(path) => Place::typed(path),
            Self::Block(source, _) => Place::new(source, 0, 0),
        }
    }
}

/// A whole tree: every field of the description has a value of its kind.
#[derive(Clone, Debug)]
pub struct Resolved {
    /// The experiment's name, if it has one.
    pub name: Option<String>,
    /// What its document says of itself.
    pub note: Option<String>,
    pub body: tree::Body,
    pub short_names: Vec<ShortName>,
    /// The paths of the documents, the lowest layer first.
    pub documents: Vec<String>,
    /// Where the experiment's own document names it, or begins.
    pub place: Place,
}

/// Lays the documents and the overrides over each other and checks all of them against `root`.
///
/// # Errors
/// Every mistake in any of the documents and overrides.
pub fn resolve(
    root: &'static [Field],
    top: &Top<'_>,
    overrides: &[String],
    reader: &dyn Reader,
) -> Result<Resolved, Diagnostics> {
    let mut documents = document::Documents::new(reader);
    let name = match top {
        Top::Experiment(path) => documents.experiment(path, None),
        Top::Part(path) => {
            documents.part(path, None);
            None
        }
        Top::Block(source, nodes) => {
            documents.text(source, nodes);
            None
        }
    };
    let whole = documents.layers.last().map_or_else(|| top.place(), |layer| layer.place.clone());
    let note = documents.note.take();
    let places = Source::command_line(overrides);
    let overlays = documents.overlays(overrides, &places);
    let document::Documents { layers: texts, aliases, mut errors, .. } = documents;
    let complete = errors.is_empty();
    let laid = laid::Laid::new(root, &texts.iter().collect::<Vec<_>>(), &whole, &aliases, reader, &mut errors);
    let laid = laid.under(&overlays);
    let assignments = overrides::assignments(overrides, &places, reader, &mut errors);
    let (body, short_names) = laid.resolve(assignments, errors, complete)?;
    Ok(Resolved { name, note, body, short_names, documents: document::names(&texts), place: whole })
}

/// The path of every field of every alternative, without the numbers of repeated nodes, parents first.
#[must_use]
pub fn fields(root: &'static [Field]) -> Vec<(String, &'static Field)> {
    schema::entries(root).iter().map(|entry| (entry.path.clone(), entry.field)).collect()
}

/// Parses a document of any size that this program wrote.
///
/// # Errors
/// What is wrong with its syntax.
pub fn parse(source: &Arc<Source>) -> Result<kdl::KdlDocument, Diagnostics> {
    document::read(source).map_err(Diagnostics::of)
}

/// A field of a section.
#[derive(Debug)]
pub struct Field {
    /// Kebab-case.
    pub name: &'static str,
    pub doc: &'static str,
    pub kind: &'static Kind,
    /// Inclusive bounds of a number, or of every number of a list.
    pub range: Option<(f64, f64)>,
    /// May change how a run is executed or shown, never its numbers: kept out of the key.
    pub local: bool,
    /// Of a field that came after runs were named: the value that says what they did, as an override would. A field of
    /// that value is not in the key, and where nothing gives the field it has that value.
    pub before: Option<&'static str>,
    /// The source file that declares it, and so reads it.
    pub file: &'static str,
}

/// What a value may be.
#[derive(Debug)]
pub enum Kind {
    Bool,
    /// An integer of the Rust type named, within its bounds.
    Int {
        name: &'static str,
        min: i128,
        max: i128,
    },
    /// A finite f64.
    Float,
    Text,
    /// Text given in place, or by `(file)path`; a file enters the key by content.
    Input,
    /// A folder, by `(dir)path`, or a finished run, by `(run)name`; enters the key by content: of a run, its weights.
    Folder,
    /// One of some names.
    Choice(&'static [&'static str]),
    /// Several arguments of one node; for sections and variants, several nodes of one name.
    List(&'static Kind),
    /// May be absent: `(unset)` or `null`.
    Optional(&'static Kind),
    Section(&'static [Field]),
    /// One of some named groups of fields; `common` fields stand beside those of every alternative.
    Variant {
        family: &'static str,
        alternatives: &'static [Alternative],
        common: &'static [Field],
    },
}

/// A member of a variant.
#[derive(Debug)]
pub struct Alternative {
    pub name: &'static str,
    pub doc: &'static str,
    /// Version of what the component computes; in the key of every run that uses it.
    pub epoch: u32,
    pub fields: &'static [Field],
}

/// A resolved value, of the shape that its [`Kind`] says.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Bool(bool),
    Int(i128),
    Float(f64),
    Text(String),
    /// Bytes read from outside and the path that named them.
    Input {
        text: String,
        path: Option<String>,
    },
    /// A folder outside, by path, and the digest of its content.
    Folder {
        path: String,
        digest: String,
    },
    List(Vec<Value>),
    /// An optional value that is absent.
    Unset,
    Section(BTreeMap<&'static str, Value>),
    Variant {
        name: &'static str,
        fields: BTreeMap<&'static str, Value>,
    },
}

/// A type that a resolved value becomes.
pub trait Decode: Sized {
    const KIND: Kind;

    /// Total on values of the kind's shape; resolution has checked it.
    fn decode(value: &Value) -> Self;
}

/// A type whose value is a group of fields.
pub trait Section: Sized {
    const DOC: &'static str;
    const EPOCH: u32;
    const FIELDS: &'static [Field];

    fn decode_fields(fields: &BTreeMap<&'static str, Value>) -> Self;
}

/// Text that may have come from a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input(pub String);

/// A folder outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    pub path: std::path::PathBuf,
    /// Of its content, when the key was made.
    pub digest: String,
}

macro_rules! scalar {
    ($type:ty, $kind:expr, $pattern:pat => $value:expr) => {
        impl Decode for $type {
            const KIND: Kind = $kind;

            fn decode(value: &Value) -> Self {
                match value {
                    $pattern => $value,
                    other => unreachable!("resolution left {other:?} for a {}", stringify!($type)),
                }
            }
        }
    };
}

macro_rules! integer {
    ($($type:ty),*) => { $(
        scalar!($type, Kind::Int { name: stringify!($type), min: <$type>::MIN as i128, max: <$type>::MAX as i128 },
            Value::Int(i) => *i as $type);
    )* };
}

integer!(u32, u64, usize);
scalar!(bool, Kind::Bool, Value::Bool(b) => *b);
scalar!(f64, Kind::Float, Value::Float(f) => *f);
scalar!(String, Kind::Text, Value::Text(s) => s.clone());
scalar!(Input, Kind::Input, Value::Input { text, .. } => Input(text.clone()));
scalar!(Folder, Kind::Folder, Value::Folder { path, digest } => Folder { path: path.into(), digest: digest.clone() });

impl<T: Decode> Decode for Vec<T> {
    const KIND: Kind = Kind::List(&T::KIND);

    fn decode(value: &Value) -> Self {
        match value {
            Value::List(items) => items.iter().map(T::decode).collect(),
            other => unreachable!("resolution left {other:?} for a list"),
        }
    }
}

impl<T: Decode> Decode for Option<T> {
    const KIND: Kind = Kind::Optional(&T::KIND);

    fn decode(value: &Value) -> Self {
        (*value != Value::Unset).then(|| T::decode(value))
    }
}

/// `include_zero` → `include-zero`, in constants.
#[must_use]
pub const fn kebab<const N: usize>(name: &str) -> [u8; N] {
    let (bytes, mut out, mut i) = (name.as_bytes(), [0; N], 0);
    while i < N {
        out[i] = if bytes[i] == b'_' { b'-' } else { bytes[i] };
        i += 1;
    }
    out
}

/// Declares a group of fields: the struct, its description and its decoding.
///
/// ```text
/// section! {
///     /// Doc.
///     pub struct TopP epoch 2 {
///         /// Doc.
///         pub value: f64 where 0.0..=1.0,
///         /// Doc.
///         (local) pub threads: u32,
///         /// Doc. A later field: what runs did before it was there is `false`.
///         pub late: bool as "false",
///     }
/// }
/// ```
macro_rules! section {
    (
        $(#[doc = $doc:literal])+
        pub struct $name:ident $(epoch $epoch:literal)? {
            $(
                $(#[doc = $field_doc:literal])+
                $(($local:ident))? pub $field:ident : $type:ty
                    $(where $low:literal ..= $high:literal)? $(as $before:literal)?
            ),* $(,)?
        }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq)]
        pub struct $name { $( $(#[doc = $field_doc])+ pub $field: $type, )* }

        impl $crate::config::Section for $name {
            const DOC: &'static str = concat!($($doc, "\n"),+);
            const EPOCH: u32 = $crate::config::first!($($epoch,)? 1);
            const FIELDS: &'static [$crate::config::Field] = &[ $( $crate::config::Field {
                name: $crate::config::kebab_name!($field),
                doc: concat!($($field_doc, "\n"),+),
                kind: &<$type as $crate::config::Decode>::KIND,
                range: $crate::config::first!($( Some(($low as f64, $high as f64)), )? None),
                local: $crate::config::first!($( { let _ = stringify!($local); true }, )? false),
                before: $crate::config::first!($( Some($before), )? None),
                file: file!(),
            }, )* ];

            fn decode_fields(fields: &std::collections::BTreeMap<&'static str, $crate::config::Value>) -> Self {
                let _ = fields;
                $(
                    let $field = &fields[$crate::config::kebab_name!($field)];
                    let $field = <$type as $crate::config::Decode>::decode($field);
                )*
                Self { $($field),* }
            }
        }

        impl $crate::config::Decode for $name {
            const KIND: $crate::config::Kind = $crate::config::Kind::Section(<Self as $crate::config::Section>::FIELDS);

            fn decode(value: &$crate::config::Value) -> Self {
                match value {
                    $crate::config::Value::Section(fields) => <Self as $crate::config::Section>::decode_fields(fields),
                    other => unreachable!("resolution left {other:?} for a section"),
                }
            }
        }
    };
}

/// Declares a choice between named groups of fields: the enum, its names, epochs, description and decoding.
macro_rules! variants {
    (
        $(#[doc = $doc:literal])+
        pub enum $name:ident : $family:literal { $( $key:literal => $arm:ident($type:ty) ),+ $(,)? }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Debug, PartialEq)]
        pub enum $name { $( $arm($type), )+ }

        impl $name {
            /// Every member's name, in order.
            pub const NAMES: &'static [&'static str] = &[$($key),+];

            /// The member's name.
            #[must_use]
            pub fn name(&self) -> &'static str {
                match self { $( Self::$arm(_) => $key, )+ }
            }

            /// The member's version.
            #[must_use]
            pub fn epoch(&self) -> u32 {
                match self { $( Self::$arm(_) => <$type as $crate::config::Section>::EPOCH, )+ }
            }
        }

        impl $crate::config::Decode for $name {
            const KIND: $crate::config::Kind = $crate::config::Kind::Variant {
                family: $family,
                alternatives: &[ $( $crate::config::Alternative {
                    name: $key,
                    doc: <$type as $crate::config::Section>::DOC,
                    epoch: <$type as $crate::config::Section>::EPOCH,
                    fields: <$type as $crate::config::Section>::FIELDS,
                }, )+ ],
                common: &[],
            };

            fn decode(value: &$crate::config::Value) -> Self {
                match value {
                    $( $crate::config::Value::Variant { name: $key, fields } =>
                        Self::$arm(<$type as $crate::config::Section>::decode_fields(fields)), )+
                    other => unreachable!("resolution left {other:?} for a variant"),
                }
            }
        }
    };
}

/// Declares a choice between names that carry nothing.
macro_rules! choice {
    (
        $(#[doc = $doc:literal])+
        pub enum $name:ident { $( $(#[doc = $arm_doc:literal])* $key:literal => $arm:ident ),+ $(,)? }
    ) => {
        $(#[doc = $doc])+
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        pub enum $name { $( $(#[doc = $arm_doc])* $arm, )+ }

        impl $name {
            /// The name in configs and records.
            #[must_use]
            pub fn name(self) -> &'static str {
                match self { $( Self::$arm => $key, )+ }
            }
        }

        impl $crate::config::Decode for $name {
            const KIND: $crate::config::Kind = $crate::config::Kind::Choice(&[$($key),+]);

            fn decode(value: &$crate::config::Value) -> Self {
                match value {
                    $crate::config::Value::Text(name) => match name.as_str() {
                        $( $key => Self::$arm, )+
                        other => unreachable!("resolution left {other:?} for a choice"),
                    },
                    other => unreachable!("resolution left {other:?} for a choice"),
                }
            }
        }
    };
}

/// The kebab-case name of a field, as a constant.
macro_rules! kebab_name {
    ($field:ident) => {{
        // A field that is called like a word of Rust, such as `r#for`, has its name without the mark.
        const NAME: &str = match stringify!($field).as_bytes() {
            [b'r', b'#', ..] => stringify!($field).split_at(2).1,
            _ => stringify!($field),
        };
        const BYTES: [u8; NAME.len()] = $crate::config::kebab(NAME);
        const KEBAB: &str = match std::str::from_utf8(&BYTES) {
            Ok(name) => name,
            Err(_) => unreachable!(),
        };
        KEBAB
    }};
}

/// The first of its arguments: an optional one before its default.
macro_rules! first {
    ($first:expr $(, $rest:expr)* $(,)?) => {
        $first
    };
}

pub(crate) use {choice, first, kebab_name, section, variants};
