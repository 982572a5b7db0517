//! What a sweep is, on disk: the list of its cells, by the names of their runs.

use std::path::{Path, PathBuf};

use kdl::{KdlDocument, KdlNode};

use crate::config::show::quoted;
use crate::config::{Diagnostics, Reader};
use crate::experiment::{self, CellRun, Cells, Key, Resolved};
use crate::record::disk::{Found, parent};
use crate::record::{Disk, RunDir, RunError, SWEEPS, garbage, tags};

const FILE: &str = "sweep.kdl";
/// The version of its form.
const FORMAT: i128 = 1;

/// A sweep that is written down.
#[derive(Clone, Debug)]
pub struct Record {
    /// `runs/sweeps/<name>-<id>`.
    pub path: PathBuf,
    pub cells: Cells,
}

impl Record {
    /// Resolves the sweep and writes it down, then the locks of all its runs and warm starts: from here on no document
    /// matters. The sweep comes first, so that all that is made is named, and nothing takes it for garbage.
    ///
    /// # Errors
    /// All that is wrong with the sweep or its cells, with nothing written; or else the disk's.
    pub fn make(
        disk: &Disk,
        runs: &Path,
        name: &str,
        overrides: &[String],
        reader: &dyn Reader,
    ) -> Result<Result<Self, RunError>, Diagnostics> {
        let mut path = PathBuf::new();
        let mut begin = |cells: &Cells| Self::write(disk, runs, cells).map(|made| path = made);
        let mut write = |run: Resolved| write(disk, runs, &run);
        let is_there = |name: &String| disk.exists(&runs.join(name).join("run.lock.kdl")).unwrap_or(false);
        let wanted = |cell: &CellRun| !is_there(&cell.run) || !cell.warm_start.as_ref().is_none_or(is_there);
        let cells = experiment::sweep(name, overrides, reader, &wanted, &mut begin, &mut write)?;
        Ok(cells.map(|cells| Self { path, cells }))
    }

    /// Writes the list of cells: the folder that it is in.
    fn write(disk: &Disk, runs: &Path, cells: &Cells) -> Result<PathBuf, RunError> {
        let text = to_text(cells);
        let path = runs.join(SWEEPS).join(format!("{}-{}", cells.name, Key::of_sweep(&text).id()));
        if disk.find_text(&path.join(FILE))?.as_ref() != Some(&text) {
            disk.ensure_folder(runs)?;
            let _naming = garbage::naming(disk, runs)?;
            // Where a sweep may be named, the tag would be meant.
            let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
            for tag in [cells.name.clone(), name] {
                if let Some(run) = tags::find(disk, runs, &tag)? {
                    return Err(RunError::Tagged { tag, run });
                }
            }
            disk.ensure_folder(&path)?;
            disk.replace(&path.join(FILE), text.as_bytes())?;
        }
        Ok(path)
    }

    /// The sweep that `name` says: a path, a directory's name, or a unique prefix of one.
    ///
    /// # Errors
    /// [`RunError::Unknown`], [`RunError::Ambiguous`], [`RunError::Corrupt`]; the system's.
    pub fn find(disk: &Disk, runs: &Path, name: &str) -> Result<Self, RunError> {
        let folder = runs.join(SWEEPS);
        let there = |path: &PathBuf| disk.exists(&path.join(FILE)).unwrap_or(false);
        let direct = [folder.join(name), PathBuf::from(name)].into_iter().find(there);
        let path = match direct {
            Some(path) => path,
            None => {
                let mut names = disk.names(&folder)?;
                names.retain(|found| !name.is_empty() && found.starts_with(name));
                match names.as_slice() {
                    [] => return Err(RunError::Unknown { name: name.to_owned(), runs: runs.to_owned() }),
                    [only] => folder.join(only),
                    _ => return Err(RunError::Ambiguous { name: name.to_owned(), candidates: names }),
                }
            }
        };
        // However it is spelt, it bears the name of its own directory.
        let named = path.canonicalize().unwrap_or_else(|_| path.clone());
        let path = if path.file_name() == named.file_name() { path } else { named };
        let file = path.join(FILE);
        let text = disk.read_text(&file)?;
        let document: Option<KdlDocument> = text.parse().ok();
        let format = document.as_ref().and_then(|document| document.get("sweep")?.get("format")?.as_integer());
        if let Some(format) = format.filter(|format| *format > FORMAT) {
            return Err(RunError::Later { path: file, format, known: FORMAT });
        }
        let cells = document.filter(|_| format == Some(FORMAT)).and_then(|document| cells(&document));
        let corrupt = |what: &str| RunError::Corrupt { path: file.clone(), what: what.to_owned() };
        let cells = cells.ok_or_else(|| corrupt("it is no list of cells"))?;
        let record = Self { path, cells };
        if !record.name().ends_with(&format!("-{}", Key::of_sweep(&text).id())) {
            return Err(corrupt("it is not the list that the id of its directory stands for"));
        }
        Ok(record)
    }

    /// The lists in a folder of runs that are damaged: they may have named any run.
    ///
    /// # Errors
    /// The system's.
    pub fn damaged(disk: &Disk, runs: &Path) -> Result<Vec<PathBuf>, RunError> {
        let folder = runs.join(SWEEPS);
        let names = if disk.look(&folder)? == Some(Found::Folder) { disk.names(&folder)? } else { Vec::new() };
        let lists =
            names.iter().map(|name| folder.join(name).join(FILE)).filter(|list| disk.exists(list).unwrap_or(true));
        let sound = |list: &PathBuf| {
            let found = Self::find(disk, runs, &parent(list).file_name().unwrap_or_default().to_string_lossy());
            matches!(found, Ok(_) | Err(RunError::Later { .. }))
        };
        Ok(lists.filter(|list| !sound(list)).collect())
    }

    /// The directory's name, `<name>-<id>`.
    #[must_use]
    pub fn name(&self) -> String {
        self.path.file_name().unwrap_or_default().to_string_lossy().into_owned()
    }
}

fn write(disk: &Disk, runs: &Path, run: &Resolved) -> Result<(), RunError> {
    RunDir::open_or_create(disk, runs, &run.id().to_string(), &run.lock(), &run.canon)?;
    if let Some((canon, id)) = run.warm_start() {
        RunDir::open_or_create(disk, runs, &id.to_string(), &run.lock(), &canon)?;
    }
    Ok(())
}

fn to_text(cells: &Cells) -> String {
    let mut text = format!("sweep {} format={FORMAT}\n", quoted(&cells.name));
    let named = [("baseline", &cells.baseline), ("noise", &cells.noise)];
    for (word, name) in named.into_iter().filter_map(|(word, name)| Some((word, name.as_ref()?))) {
        text.push_str(&format!("{word} {}\n", quoted(name)));
    }
    for metric in &cells.report {
        text.push_str(&format!("report {}\n", quoted(metric)));
    }
    for cell in &cells.cells {
        text.push_str(&format!("cell {} seed={} run={}", quoted(&cell.case), cell.seed, quoted(&cell.run)));
        if let Some(warm) = &cell.warm_start {
            text.push_str(&format!(" warm-start={}", quoted(warm)));
        }
        let axes: Vec<String> =
            cell.axes.iter().map(|(path, value)| format!("axis {} {}", quoted(path), quoted(value))).collect();
        if !axes.is_empty() {
            text.push_str(&format!(" {{ {} }}", axes.join("; ")));
        }
        text.push('\n');
    }
    text
}

fn cells(document: &KdlDocument) -> Option<Cells> {
    let one = |word: &str| document.get(word).and_then(first);
    let named = |word: &'static str| document.nodes().iter().filter(move |node| node.name().value() == word);
    Some(Cells {
        name: one("sweep")?,
        baseline: one("baseline"),
        noise: one("noise"),
        report: named("report").filter_map(first).collect(),
        cells: named("cell").map(cell).collect::<Option<_>>()?,
        short_names: Vec::new(),
    })
}

fn cell(node: &KdlNode) -> Option<CellRun> {
    let text = |name: &str| node.get(name).and_then(|value| value.as_string()).map(str::to_owned);
    let axis = |node: &KdlNode| Some((first(node)?, node.get(1)?.as_string()?.to_owned()));
    let axes = node.children().map(KdlDocument::nodes).unwrap_or_default();
    Some(CellRun {
        case: first(node)?,
        axes: axes.iter().map(axis).collect::<Option<_>>()?,
        seed: node.get("seed")?.as_integer()?.try_into().ok()?,
        run: text("run")?,
        warm_start: text("warm-start"),
    })
}

fn first(node: &KdlNode) -> Option<String> {
    Some(node.get(0)?.as_string()?.to_owned())
}
