//! What the commands started, and what those started.

use rustix::process::{Pid, Signal, WaitOptions, kill_process, set_child_subreaper, wait};
use std::fs;
use std::thread;
use std::time::Duration;

/// How long who is told to end may take.
pub(super) const GRACE: Duration = Duration::from_secs(3);
const LOOK: Duration = Duration::from_millis(20);

/// All processes below this one, whoever started them.
pub(super) struct Children(());

impl Children {
    /// From now on those whose parents end become ours, so that none is forgotten.
    pub(super) fn adopt() -> Self {
        // Where it cannot be, only our own children are ended.
        let _ = set_child_subreaper(Some(rustix::process::getpid()));
        Self(())
    }

    fn end(&self) {
        for signal in [Signal::TERM, Signal::KILL] {
            // Many take a second SIGTERM for impatience.
            let mut told = Vec::new();
            for _ in 0..GRACE.as_millis() / LOOK.as_millis() {
                reap();
                let alive = alive();
                if alive.is_empty() {
                    return;
                }
                for pid in alive {
                    if !told.contains(&pid) {
                        let _ = kill_process(pid, signal);
                        told.push(pid);
                    }
                }
                thread::sleep(LOOK);
            }
        }
    }
}

/// However it comes to its end, nothing is left.
impl Drop for Children {
    fn drop(&mut self) {
        self.end();
    }
}

pub(super) fn tell_to_end(pid: u32) {
    if let Some(pid) = Pid::from_raw(pid as i32) {
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// All that have ended, of whichever process group: a zombie counts as alive.
fn reap() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

/// Our children, of every thread of ours.
fn alive() -> Vec<Pid> {
    let Ok(threads) = fs::read_dir("/proc/self/task") else { return Vec::new() };
    let of_thread =
        |entry: fs::DirEntry| fs::read_to_string(entry.path().join("children")).unwrap_or_default();
    let lists: Vec<String> = threads.flatten().map(of_thread).collect();
    lists
        .iter()
        .flat_map(|list| list.split_whitespace())
        .filter_map(|pid| Pid::from_raw(pid.parse().ok()?))
        .collect()
}
