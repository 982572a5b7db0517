//! The launcher of a Slurm cluster: arrays of tasks on a shared disk.
//!
//! Runs that come after the same warm start are one array, which depends on that one's task. What a task does is in
//! `task.sh`. Whether a task still exists is asked of `squeue` alone, since accounting is often off.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::launch::{Job, Launcher};

/// Digits that tell folders of one sweep apart.
const PLACE: usize = 8;
const SCRIPT: &str = include_str!("task.sh");
/// Tasks of one array: one less than Slurm's own `MaxArraySize`.
const ARRAY: usize = 1000;
/// Calls of `poll` between two questions to the controller, which other people use too.
const PATIENCE: u32 = 10;
/// Questions in a row that a controller may leave unanswered.
const SILENT: u32 = 30;

/// A cluster that this machine can submit to.
#[derive(Debug)]
pub struct Slurm {
    /// This program's file, on a disk that the nodes share, as all paths here.
    pub program: PathBuf,
    /// The folder of runs.
    pub runs: PathBuf,
    /// The folder for what is submitted, and for what tasks print.
    pub folder: PathBuf,
    /// The name of all jobs: the sweep's, and which folder it is in.
    pub name: String,
    /// Tasks of an array at a time.
    pub jobs: Option<usize>,
    /// Threads of a task.
    pub threads: usize,
    /// Further options of `sbatch`; they win over ours.
    pub options: Vec<String>,
    /// Tasks by id, such as `17_3`, and their runs.
    tasks: BTreeMap<String, String>,
    ended: Vec<String>,
    calls: u32,
    silent: u32,
}

impl Slurm {
    /// Takes what an earlier process of the same sweep left waiting out of the queue: it is submitted anew.
    ///
    /// # Errors
    /// If there is no cluster.
    pub fn new(
        program: PathBuf,
        runs: PathBuf,
        folder: PathBuf,
        name: String,
        jobs: Option<usize>,
        threads: usize,
        options: Vec<String>,
    ) -> io::Result<Self> {
        // The same sweep in another folder of runs is none of ours.
        let name = named(&name, &folder);
        let (tasks, ended) = (BTreeMap::new(), Vec::new());
        let slurm = Self { program, runs, folder, name, jobs, threads, options, tasks, ended, calls: 0, silent: 0 };
        slurm.cancel(&["--state=PENDING"])?;
        fs::write(slurm.folder.join("task.sh"), SCRIPT)?;
        Ok(slurm)
    }

    fn cancel(&self, options: &[&str]) -> io::Result<()> {
        answer(Command::new("scancel").arg("--quiet").arg(format!("--name={}", self.name)).args(options)).map(drop)
    }

    /// Submits an array of runs that come after one task, or after none.
    fn submit(&mut self, runs: &[String], after: Option<&String>) -> io::Result<()> {
        let list = (1..).map(|number: u32| self.folder.join(format!("array-{number:04}.txt")));
        let list = list.into_iter().find(|list| !list.exists()).unwrap_or_default();
        fs::write(&list, runs.join("\n") + "\n")?;
        let mut command = Command::new("sbatch");
        let limit = self.jobs.map_or_else(String::new, |jobs| format!("%{jobs}"));
        command.args(["--parsable", "--requeue", "--open-mode=append", "--signal=B:USR1@120"]);
        command.arg(format!("--job-name={}", self.name)).arg(format!("--array=0-{}{limit}", runs.len() - 1));
        command.arg(format!("--cpus-per-task={}", self.threads)).arg("--output").arg(self.folder.join("%A_%a.txt"));
        if let Some(task) = after {
            command.arg(format!("--dependency=afterok:{task}")).arg("--kill-on-invalid-dep=yes");
        }
        command.args(&self.options).arg(self.folder.join("task.sh"));
        command.arg(&list).arg(&self.program).arg(&self.runs).arg(self.threads.to_string());
        let id = answer(&mut command)?;
        // `17;cluster` where there are several clusters.
        let id = id.trim().split(';').next().unwrap_or_default();
        self.tasks.extend(runs.iter().enumerate().map(|(index, run)| (format!("{id}_{index}"), run.clone())));
        Ok(())
    }
}

impl Launcher for Slurm {
    fn start(&mut self, jobs: &[Job]) -> io::Result<()> {
        let mut arrays: BTreeMap<Option<String>, Vec<String>> = BTreeMap::new();
        for job in jobs {
            arrays.entry(job.after.clone()).or_default().push(job.run.clone());
        }
        // Those that come after none are first, so that the tasks of warm starts are known.
        for (after, runs) in arrays {
            let task = self.tasks.iter().find(|(_, run)| Some(*run) == after.as_ref()).map(|(task, _)| task.clone());
            for runs in runs.chunks(ARRAY) {
                self.submit(runs, task.as_ref())?;
            }
        }
        Ok(())
    }

    fn poll(&mut self) -> io::Result<Vec<String>> {
        self.calls += 1;
        if self.calls.is_multiple_of(PATIENCE) {
            let name = format!("--name={}", self.name);
            match answer(Command::new("squeue").args(["--noheader", "--array", "--format=%i", &name])) {
                Ok(list) => {
                    self.silent = 0;
                    let gone = |task: &String, _: &mut String| !list.lines().any(|line| line.trim() == task);
                    self.ended.extend(self.tasks.extract_if(.., gone).map(|(_, run)| run));
                }
                Err(error) if self.silent >= SILENT => return Err(error),
                Err(_) => self.silent += 1,
            }
        }
        Ok(std::mem::take(&mut self.ended))
    }

    fn stop(&mut self, _: i32) -> io::Result<()> {
        self.cancel(&["--state=PENDING"])?;
        self.cancel(&["--state=RUNNING", "--batch", "--signal=TERM"])
    }
}

fn named(sweep: &str, folder: &Path) -> String {
    format!("{sweep}-{}", &blake3::hash(folder.as_os_str().as_encoded_bytes()).to_hex()[..PLACE])
}

/// What a command prints.
fn answer(command: &mut Command) -> io::Result<String> {
    let name = command.get_program().to_string_lossy().into_owned();
    let output = command.output().map_err(|error| io::Error::new(error.kind(), format!("{name}: {error}")))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(io::Error::other(format!("{name}: {}", said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_of_two_folders_have_two_names() {
        let [one, other] = ["/a/runs/sweeps/s-1/output", "/b/runs/sweeps/s-1/output"].map(Path::new);
        assert!(named("s-1", one).starts_with("s-1-") && named("s-1", one) != named("s-1", other));
        assert_eq!(named("s-1", one), named("s-1", one));
    }
}
