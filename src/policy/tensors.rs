//! Named arrays as safetensors files.

use std::borrow::Cow;
use std::collections::BTreeSet;

use half::{bf16, f16};
use safetensors::tensor::{TensorView, View};
use safetensors::{Dtype, SafeTensors};

use super::weights::Part;

/// The name of the tensor that holds a number of steps.
const STEPS: &str = "steps";

/// What a number is stored as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Precision {
    /// As it is.
    F32,
    /// Its upper half, rounded to nearest, ties to even.
    Bf16,
}

/// A tensor on its way into a file: its bytes are there one tensor at a time.
struct Stored<'a> {
    shape: Vec<usize>,
    content: Content<'a>,
}

enum Content<'a> {
    Numbers(&'a [f32], Precision),
    Steps([u8; 8]),
}

impl View for Stored<'_> {
    fn dtype(&self) -> Dtype {
        match self.content {
            Content::Numbers(_, Precision::F32) => Dtype::F32,
            Content::Numbers(_, Precision::Bf16) => Dtype::BF16,
            Content::Steps(_) => Dtype::U64,
        }
    }

    fn shape(&self) -> &[usize] {
        &self.shape
    }

    fn data(&self) -> Cow<'_, [u8]> {
        match &self.content {
            Content::Numbers(values, Precision::F32) => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Content::Numbers(values, Precision::Bf16) => {
                values.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes()).collect()
            }
            Content::Steps(bytes) => Cow::Borrowed(bytes),
        }
    }

    fn data_len(&self) -> usize {
        match &self.content {
            Content::Numbers(values, Precision::F32) => 4 * values.len(),
            Content::Numbers(values, Precision::Bf16) => 2 * values.len(),
            Content::Steps(bytes) => bytes.len(),
        }
    }
}

/// Flat arrays as the bytes of a file; each array's names get its prefix. `steps` is stored as a tensor of that name.
pub(super) fn to_safetensors(
    parts: &[Part],
    arrays: &[(&str, &[f32])],
    precision: Precision,
    steps: Option<u64>,
) -> Vec<u8> {
    let mut tensors = Vec::new();
    for (prefix, values) in arrays {
        for Part { name, shape, range } in parts {
            let stored = Stored { shape: shape.clone(), content: Content::Numbers(&values[range.clone()], precision) };
            tensors.push((format!("{prefix}{name}"), stored));
        }
    }
    let steps = steps.map(|steps| Stored { shape: vec![1], content: Content::Steps(steps.to_le_bytes()) });
    tensors.extend(steps.map(|steps| (STEPS.to_owned(), steps)));
    // Other readers of Hugging Face's files ask for this entry.
    let format = [("format".to_owned(), "pt".to_owned())].into_iter().collect();
    safetensors::serialize(tensors, Some(format)).expect("the layout is valid")
}

/// The tensors of some files. Every error names the file and the tensor.
pub(super) struct Tensors<'a> {
    files: Vec<(&'a str, SafeTensors<'a>)>,
}

impl<'a> Tensors<'a> {
    /// Of files with their names.
    pub(super) fn parse(files: &[(&'a str, &'a [u8])]) -> Result<Self, String> {
        let mut seen = BTreeSet::new();
        let mut parsed = Vec::new();
        for (name, bytes) in files {
            let file = SafeTensors::deserialize(bytes)
                .map_err(|error| format!("{name}: not a whole safetensors file: {error}"))?;
            if let Some(twice) = file.names().into_iter().find(|tensor| !seen.insert((*tensor).to_owned())) {
                return Err(format!("{name}: tensor `{twice}` is in another file too"));
            }
            parsed.push((*name, file));
        }
        Ok(Self { files: parsed })
    }

    fn find(&self, name: &str) -> Result<(&'a str, TensorView<'_>), String> {
        let found = self.files.iter().find_map(|(file, tensors)| Some((*file, tensors.tensor(name).ok()?)));
        found.ok_or_else(|| match self.files.as_slice() {
            [(file, _)] => format!("{file}: tensor `{name}` is missing"),
            [.., (last, _)] => format!("{last}: tensor `{name}` is neither here nor in the files before"),
            [] => format!("tensor `{name}` is missing: there are no files"),
        })
    }

    /// One flat array of the tensors `prefix` ++ part: f32, bf16 or f16.
    pub(super) fn array(&self, parts: &[Part], prefix: &str) -> Result<Vec<f32>, String> {
        let found = parts.iter().map(|part| {
            let name = format!("{prefix}{}", part.name);
            let (file, tensor) = self.find(&name)?;
            match tensor.shape() == part.shape {
                true => Ok((name, file, tensor)),
                false => Err(format!("{file}: tensor `{name}` has shape {:?}, not {:?}", tensor.shape(), part.shape)),
            }
        });
        // Sizes are what a config says: nothing is set aside for them before the files have it all.
        let found = found.collect::<Result<Vec<_>, String>>()?;
        let mut array = Vec::with_capacity(parts.last().map_or(0, |part| part.range.end));
        for (name, file, tensor) in found {
            let data = tensor.data();
            let start = array.len();
            match tensor.dtype() {
                Dtype::F32 => array.extend(data.as_chunks().0.iter().map(|bytes| f32::from_le_bytes(*bytes))),
                Dtype::BF16 => array.extend(data.as_chunks().0.iter().map(|&[a, b]| f32::from_le_bytes([0, 0, a, b]))),
                Dtype::F16 => array.extend(data.as_chunks().0.iter().map(|bytes| f16::from_le_bytes(*bytes).to_f32())),
                other => return Err(format!("{file}: tensor `{name}` has type {other:?}, not F32, BF16 or F16")),
            }
            if let Some(at) = array[start..].iter().position(|x| !x.is_finite()) {
                return Err(format!("{file}: tensor `{name}` has {} at position {at}", array[start + at]));
            }
        }
        Ok(array)
    }

    /// The number of steps that [`to_safetensors`] stored.
    pub(super) fn steps(&self) -> Result<u64, String> {
        let (file, tensor) = self.find(STEPS)?;
        let bytes = tensor.data().try_into();
        bytes.map(u64::from_le_bytes).map_err(|_| format!("{file}: tensor `{STEPS}` is not one 64-bit integer"))
    }

    /// That there are no tensors but `prefixes` ++ `parts`, and the number of steps.
    pub(super) fn nothing_but(&self, parts: &[Part], prefixes: &[&str]) -> Result<(), String> {
        let names = prefixes.iter().flat_map(|prefix| parts.iter().map(move |part| format!("{prefix}{}", part.name)));
        let known: BTreeSet<String> = names.collect();
        for (file, tensors) in &self.files {
            let extra = tensors.names().into_iter().filter(|name| !known.contains(*name) && *name != STEPS).min();
            if let Some(extra) = extra {
                return Err(format!("{file}: tensor `{extra}` is not one of this model's"));
            }
        }
        Ok(())
    }
}
