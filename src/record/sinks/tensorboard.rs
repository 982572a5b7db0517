//! TensorBoard's event files, written by hand: a few fields of two messages.
//!
//! A file is a sequence of TFRecords: length (u64), masked CRC32C of the length, an `Event`, masked CRC32C of it, all
//! little-endian. `Event { 1: wall_time double, 2: step int64, 3: file_version string, 5: summary, 7: session_log }`,
//! `Summary { 1: repeated Value { 1: tag string, 2: simple_value float } }`, `SessionLog { 1: status, START = 1 }`.
//! Sources: tensorboard/compat/proto/{event,summary}.proto, tensorflow/core/lib/io/record_writer.h.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::record::disk::Found;
use crate::record::timings::unix_time;
use crate::record::values::leaves;
use crate::record::{Attempt, Disk, RunError, reader};

/// The folder of a run's events.
pub const FOLDER: &str = "tensorboard";

/// The event file of an attempt, in the run's folder `tensorboard`.
///
/// Each attempt writes its own from the records that it goes on from, and removes those of earlier ones: so no step is
/// there twice, and none is missing, whenever a run began to write events. A session start tells a TensorBoard that is
/// looking to forget what it read before. Steps written anew carry the time of that.
#[derive(Debug)]
pub struct Events {
    disk: Disk,
    path: PathBuf,
}

impl Events {
    /// # Errors
    /// The system's; what is wrong with the records so far.
    pub fn begin(attempt: &Attempt) -> Result<Self, RunError> {
        let (disk, folder) = (attempt.disk(), attempt.path().join(FOLDER));
        let path = renew(disk, &folder, attempt.number(), &reader::metrics(disk, attempt.path())?)?;
        Ok(Self { disk: disk.clone(), path })
    }

    /// Adds a step's record.
    ///
    /// # Errors
    /// The system's.
    pub fn add(&self, record: &Value) -> Result<(), RunError> {
        self.disk.append(&self.path, &framed(&event(record, unix_time())))
    }
}

/// Has a folder hold the events of a run that is at its end: they are written anew if any are missing.
///
/// # Errors
/// The system's.
pub fn complete(disk: &Disk, folder: &Path, attempt: u32, records: &[Value]) -> Result<(), RunError> {
    for path in ours(disk, folder)? {
        // The version and the session's start come before the steps.
        if events(&disk.read(&path)?) == records.len() + 2 {
            return Ok(());
        }
    }
    renew(disk, folder, attempt, records).map(|_| ())
}

/// The events of a file up to the first that is torn or damaged.
fn events(mut file: &[u8]) -> usize {
    let mut count = 0;
    while let Some((length, rest)) = file.split_first_chunk::<8>() {
        let size = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let whole = rest.split_at_checked(size.saturating_add(8));
        let Some((_, rest)) = whole.filter(|(event, _)| framed(&event[4..4 + size])[8..] == **event) else { break };
        (file, count) = (rest, count + 1);
    }
    count
}

/// Writes the event file of an attempt and removes those of others.
fn renew(disk: &Disk, folder: &Path, attempt: u32, records: &[Value]) -> Result<PathBuf, RunError> {
    let path = write(disk, folder, attempt, records)?;
    disk.remove_drafts(folder)?;
    for other in ours(disk, folder)?.iter().filter(|other| **other != path) {
        disk.remove_file(other)?;
    }
    Ok(path)
}

/// The files of [`write`] in a folder.
fn ours(disk: &Disk, folder: &Path) -> Result<Vec<PathBuf>, RunError> {
    let mut found = Vec::new();
    for name in disk.names(folder)? {
        let number = name.strip_prefix("events.out.tfevents.").and_then(|rest| rest.strip_suffix(".starpo"));
        let numbered = number.is_some_and(|number| number.len() == 10 && number.parse::<u32>().is_ok());
        if numbered && matches!(disk.look(&folder.join(&name))?, Some(Found::File(_))) {
            found.push(folder.join(name));
        }
    }
    Ok(found)
}

/// Writes the event file of attempt `attempt` into a folder, made if need be: where it is.
///
/// # Errors
/// The system's.
pub fn write(disk: &Disk, folder: &Path, attempt: u32, records: &[Value]) -> Result<PathBuf, RunError> {
    // TensorBoard reads a folder's files in the order of their names.
    let path = folder.join(format!("events.out.tfevents.{attempt:010}.starpo"));
    disk.ensure_folder(folder)?;
    disk.replace(&path, &file(records, unix_time()))?;
    Ok(path)
}

/// A whole file of events, one a record, all at the time `seconds` since 1970.
fn file(records: &[Value], seconds: u64) -> Vec<u8> {
    let time = double(1, seconds as f64);
    let version = [&time[..], &bytes(3, b"brain.Event:2")].concat();
    let start = [time, bytes(7, &varint_field(1, 1))].concat();
    let events = records.iter().map(|record| event(record, seconds));
    [version, start].into_iter().chain(events).flat_map(|event| framed(&event)).collect()
}

/// A record's numbers as an `Event`, each under its field's path. A boolean is 0 or 1; what is no number is left out.
fn event(record: &Value, seconds: u64) -> Vec<u8> {
    let step = record["step"].as_u64().unwrap_or(0);
    let number = |value: &Value| value.as_f64().or(value.as_bool().map(f64::from));
    let summary: Vec<u8> = leaves(record)
        .iter()
        .filter(|(path, _)| path != "step")
        .filter_map(|(path, value)| Some((path, number(value)?)))
        .flat_map(|(path, value)| bytes(1, &[bytes(1, path.as_bytes()), float(2, value as f32)].concat()))
        .collect();
    [double(1, seconds as f64), varint_field(2, step), bytes(5, &summary)].concat()
}

/// A record of the file.
fn framed(event: &[u8]) -> Vec<u8> {
    let length = (event.len() as u64).to_le_bytes();
    [&length[..], &masked(&length).to_le_bytes(), event, &masked(event).to_le_bytes()].concat()
}

fn masked(bytes: &[u8]) -> u32 {
    crc32c::crc32c(bytes).rotate_right(15).wrapping_add(0xA282_EAD8)
}

/// The fields of a message, each its number and wire type and then its content.
fn varint_field(field: u8, value: u64) -> Vec<u8> {
    [vec![field << 3], varint(value)].concat()
}

fn double(field: u8, value: f64) -> Vec<u8> {
    [&[field << 3 | 1][..], &value.to_le_bytes()].concat()
}

fn bytes(field: u8, content: &[u8]) -> Vec<u8> {
    [&[field << 3 | 2][..], &varint(content.len() as u64), content].concat()
}

fn float(field: u8, value: f32) -> Vec<u8> {
    [&[field << 3 | 5][..], &value.to_le_bytes()].concat()
}

fn varint(mut value: u64) -> Vec<u8> {
    let mut bytes = Vec::new();
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
    bytes
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_varints_of_seven_bits() {
        assert_eq!([varint(0), varint(127), varint(300)], [vec![0], vec![0x7F], vec![0xAC, 0x02]]);
    }

    /// Byte for byte what Python's `tensorboard` serialises.
    #[test]
    fn an_event_is_a_step_with_its_numbers() {
        let record = json!({"step": 300, "a": {"b": 0.5, "yes": true, "name": "x", "none": null}});
        let value = |tag: &str, number: f32| {
            let tag = [&[0x0A, tag.len() as u8], tag.as_bytes()].concat();
            let value = [tag, vec![0x15], number.to_le_bytes().to_vec()].concat();
            [vec![0x0A, value.len() as u8], value].concat()
        };
        let summary = [value("a.b", 0.5), value("a.yes", 1.0)].concat();
        let head = [&[0x09][..], &2.0f64.to_le_bytes(), &[0x10, 0xAC, 0x02, 0x2A, summary.len() as u8]].concat();
        assert_eq!(event(&record, 2), [head, summary].concat());
    }
}
