//! Named arrays as safetensors files.

use std::collections::BTreeSet;

use half::{bf16, f16};
use safetensors::{Dtype, SafeTensors, tensor::TensorView};

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

/// Flat arrays as the bytes of a file; each array's names get its prefix. `steps` is stored as a tensor of that name.
pub(super) fn to_safetensors(
    parts: &[Part],
    arrays: &[(&str, &[f32])],
    precision: Precision,
    steps: Option<u64>,
) -> Vec<u8> {
    let (dtype, size) = match precision {
        Precision::F32 => (Dtype::F32, 4),
        Precision::Bf16 => (Dtype::BF16, 2),
    };
    let stored = |values: &[f32]| -> Vec<u8> {
        match precision {
            Precision::F32 => values.iter().flat_map(|x| x.to_le_bytes()).collect(),
            Precision::Bf16 => values.iter().flat_map(|x| bf16::from_f32(*x).to_le_bytes()).collect(),
        }
    };
    let bytes: Vec<Vec<u8>> = arrays.iter().map(|(_, values)| stored(values)).collect();
    let steps = steps.map(u64::to_le_bytes);
    let view = |dtype, shape: Vec<usize>, bytes| TensorView::new(dtype, shape, bytes).expect("shape and bytes agree");
    let mut tensors = Vec::new();
    for ((prefix, _), bytes) in arrays.iter().zip(&bytes) {
        for part in parts {
            let bytes = &bytes[size * part.range.start..size * part.range.end];
            tensors.push((format!("{prefix}{}", part.name), view(dtype, part.shape.clone(), bytes)));
        }
    }
    tensors.extend(steps.as_ref().map(|bytes| (STEPS.to_owned(), view(Dtype::U64, vec![1], bytes))));
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
