//! The launcher of one machine: as many processes at a time as it has room for.

use std::fs::OpenOptions;
use std::io;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};

use rustix::process::{Pid, Signal, kill_process};

use super::launch::{Job, Launcher};

/// How a machine is shared out among processes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Room {
    /// Processes at a time.
    pub jobs: usize,
    /// Threads of each; None: the machine's cores, shared out among those that go.
    pub threads: Option<usize>,
    pub cores: usize,
}

impl Room {
    /// Jobs × threads that fit `cores`: what is not given follows from what is; with neither, one thread a job.
    #[must_use]
    pub fn new(jobs: Option<usize>, threads: Option<usize>, cores: usize) -> Self {
        let fitting = || cores / threads.unwrap_or(1).max(1);
        Self { jobs: jobs.unwrap_or_else(fitting).max(1), threads, cores }
    }

    /// Threads of a job beside which others go or are about to.
    fn share(&self, jobs: usize) -> usize {
        self.threads.unwrap_or(self.cores / jobs.clamp(1, self.jobs)).max(1)
    }
}

/// Processes of this program.
#[derive(Debug)]
pub struct Pool {
    pub program: PathBuf,
    /// The folder of runs.
    pub runs: PathBuf,
    /// The folder for what they print.
    pub output: PathBuf,
    pub room: Room,
    waiting: Vec<Job>,
    going: Vec<(String, Child)>,
    ended: Vec<String>,
}

impl Pool {
    #[must_use]
    pub fn new(program: PathBuf, runs: PathBuf, output: PathBuf, room: Room) -> Self {
        Self { program, runs, output, room, waiting: Vec::new(), going: Vec::new(), ended: Vec::new() }
    }

    /// Takes away the processes that have ended, and the jobs that wait in vain.
    fn reap(&mut self) -> io::Result<()> {
        let mut place = 0;
        while let Some((_, child)) = self.going.get_mut(place) {
            let Some(status) = child.try_wait()? else {
                place += 1;
                continue;
            };
            let (name, _) = self.going.remove(place);
            if !status.success() {
                let vain = |job: &mut Job| job.after.as_ref() == Some(&name);
                self.ended.extend(self.waiting.extract_if(.., vain).map(|job| job.run));
            }
            self.ended.insert(0, name);
        }
        Ok(())
    }

    fn fill(&mut self) -> io::Result<()> {
        while self.going.len() < self.room.jobs {
            let open = |name: &String| {
                self.waiting.iter().any(|job| job.run == *name) || self.going.iter().any(|(going, _)| going == name)
            };
            let ready: Vec<usize> = (0..self.waiting.len())
                .filter(|index| !self.waiting[*index].after.as_ref().is_some_and(open))
                .collect();
            let Some(first) = ready.first() else { break };
            let threads = self.room.share(self.going.len() + ready.len());
            let job = self.waiting.remove(*first);
            let child = self.spawn(&job.run, threads)?;
            self.going.push((job.run, child));
        }
        Ok(())
    }

    fn spawn(&self, run: &str, threads: usize) -> io::Result<Child> {
        let path = self.output.join(format!("{run}.txt"));
        let named = |error: io::Error| io::Error::new(error.kind(), format!("{}: {error}", path.display()));
        if path.metadata().is_ok_and(|there| !there.is_file()) {
            return Err(named(io::Error::other("it is no plain file")));
        }
        let output = OpenOptions::new().append(true).create(true).open(&path).map_err(named)?;
        let mut command = Command::new(&self.program);
        command.arg("exec").arg(self.runs.join(run)).arg("--runs-dir").arg(&self.runs);
        command.args(["--threads", &threads.to_string()]);
        // A group of its own: the terminal's signals reach us alone, and we pass them on once.
        command.stdin(Stdio::null()).stdout(output.try_clone()?).stderr(output).process_group(0).spawn()
    }
}

impl Launcher for Pool {
    fn start(&mut self, jobs: &[Job]) -> io::Result<()> {
        self.waiting.extend(jobs.iter().cloned());
        self.fill()
    }

    fn poll(&mut self) -> io::Result<Vec<String>> {
        self.reap()?;
        self.fill()?;
        Ok(std::mem::take(&mut self.ended))
    }

    fn stop(&mut self, signal: i32) -> io::Result<()> {
        self.ended.extend(self.waiting.drain(..).map(|job| job.run));
        for (_, child) in &self.going {
            if let (Some(pid), Some(signal)) = (Pid::from_raw(child.id() as i32), Signal::from_named_raw(signal)) {
                // One that has just ended needs no signal.
                let _ = kill_process(pid, signal);
            }
        }
        Ok(())
    }
}

/// No signal of the terminal would reach the processes any more: they end after their step.
impl Drop for Pool {
    fn drop(&mut self) {
        let _ = self.stop(Signal::TERM.as_raw());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn jobs_and_threads_fit_the_machine() {
        let room = |jobs, threads| Room::new(jobs, threads, 8);
        assert_eq!((room(None, None).jobs, room(None, None).share(30)), (8, 1));
        assert_eq!((room(Some(2), None).jobs, room(Some(2), None).share(30)), (2, 4));
        assert_eq!((room(None, Some(3)).jobs, room(None, Some(3)).share(30)), (2, 3));
        // A warm start that all others wait for has the machine for itself.
        assert_eq!(room(None, None).share(1), 8);
        assert_eq!(Room::new(None, Some(16), 8).jobs, 1);
    }
}
