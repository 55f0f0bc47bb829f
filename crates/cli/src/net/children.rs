//! Processes that the commands started, and their descendants.

use rustix::process::{
    Pid, Signal, WaitOptions, kill_process, kill_process_group, set_child_subreaper, wait,
};
use std::fs;
use std::thread;
use std::time::Duration;

/// Time between SIGTERM and SIGKILL.
pub(super) const KILL_DELAY: Duration = Duration::from_secs(3);
const POLL_INTERVAL: Duration = Duration::from_millis(20);

/// All descendants of this process.
pub(super) struct Children(());

impl Children {
    /// Makes this process adopt descendants when their parents end, so that none is missed.
    pub(super) fn adopt() -> Self {
        // Without it, only direct children are ended.
        let _ = set_child_subreaper(Some(rustix::process::getpid()));
        Self(())
    }

    fn end(&self) {
        for signal in [Signal::TERM, Signal::KILL] {
            // One SIGTERM for each: many programs take a second one for impatience.
            let mut told = Vec::new();
            for _ in 0..KILL_DELAY.as_millis() / POLL_INTERVAL.as_millis() {
                reap();
                let alive = children();
                if alive.is_empty() {
                    return;
                }
                for pid in alive {
                    if !told.contains(&pid) {
                        let _ = kill_process(pid, signal);
                        told.push(pid);
                    }
                }
                thread::sleep(POLL_INTERVAL);
            }
        }
    }
}

/// Ends all processes, whatever the reason of the end.
impl Drop for Children {
    fn drop(&mut self) {
        self.end();
    }
}

/// Sends a signal to a process group, that of its leader `pid`.
pub(super) fn terminate_group(pid: u32, signal: Signal) {
    if let Some(pid) = Pid::from_raw(pid as i32) {
        let _ = kill_process_group(pid, signal);
    }
}

pub(super) fn terminate(pid: u32) {
    if let Some(pid) = Pid::from_raw(pid as i32) {
        let _ = kill_process(pid, Signal::TERM);
    }
}

/// Reaps all ended children, of any process group: a zombie would count as alive.
fn reap() {
    while let Ok(Some(_)) = wait(WaitOptions::NOHANG) {}
}

/// Returns the children of all threads of this process.
fn children() -> Vec<Pid> {
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
