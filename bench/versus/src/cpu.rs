//! Processor time of a host: of all threads in its network namespace.

use crate::peer::Failure;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Name of a namespace: the target of `/proc/…/ns/net`, such as `net:[4026532281]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Name(PathBuf);

/// Returns the namespace of the calling thread.
pub fn here() -> Result<Name, Failure> {
    Ok(Name(fs::read_link("/proc/thread-self/ns/net")?))
}

/// Returns the processor time of this process's threads in `namespace`, in user mode and in the kernel, with
/// a resolution of nanoseconds (sum_exec_runtime, the first number of `schedstat`). Threads inherit the
/// namespace of the thread that starts them. Threads that have ended do not count: call this while they live.
pub fn time_of(namespace: &Name) -> Result<Duration, Failure> {
    let mut sum = Duration::ZERO;
    for task in fs::read_dir("/proc/self/task")? {
        let task = task?.path();
        // Another thread may end meanwhile.
        if fs::read_link(task.join("ns/net")).is_ok_and(|is_in| is_in == namespace.0) {
            sum += time_of_thread(&task)?;
        }
    }
    Ok(sum)
}

/// Returns the processor time of the living threads of process `id`, likewise.
///
/// # Errors
/// If there is no such process.
pub fn time_of_process(id: u32) -> Result<Duration, Failure> {
    let mut sum = Duration::ZERO;
    for task in fs::read_dir(format!("/proc/{id}/task"))? {
        sum += time_of_thread(&task?.path()).unwrap_or_default();
    }
    Ok(sum)
}

/// Returns the resident memory of process `id`, bytes.
///
/// # Errors
/// If there is no such process.
pub fn resident(id: u32) -> Result<u64, Failure> {
    let status = fs::read_to_string(format!("/proc/{id}/status"))?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).ok_or("it has no memory")?;
    let kilobytes: u64 = line.trim().trim_end_matches(" kB").parse()?;
    Ok(kilobytes * 1024)
}

/// The kernel's threads for packet processing under load (ksoftirqd of each processor), for all load of the
/// machine.
#[derive(Debug)]
pub struct SoftInterrupts(Vec<PathBuf>);

impl SoftInterrupts {
    pub fn find() -> Result<Self, Failure> {
        let processes = fs::read_dir("/proc")?.flatten().map(|process| process.path());
        let is_it = |path: &PathBuf| {
            fs::read_to_string(path.join("comm")).is_ok_and(|name| name.starts_with("ksoftirqd/"))
        };
        Ok(Self(processes.filter(is_it).collect()))
    }

    /// Returns their processor time.
    pub fn time(&self) -> Result<Duration, Failure> {
        self.0.iter().map(|path| time_of_thread(path)).sum()
    }
}

fn time_of_thread(task: &Path) -> Result<Duration, Failure> {
    let text = fs::read_to_string(task.join("schedstat"))?;
    let nanos = text.split_whitespace().next().ok_or("this kernel counts no processor time of threads")?;
    Ok(Duration::from_nanos(nanos.parse()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::sync::mpsc::channel;
    use std::thread;

    #[test]
    fn threads_that_a_thread_starts_count_for_as_long_as_they_live() {
        let name = here().unwrap();
        let before = time_of(&name).unwrap();
        let (done, is_done) = channel();
        let (end, is_over) = channel::<()>();
        thread::scope(|scope| {
            scope.spawn(move || {
                let work = |x: u64, i: u64| std::hint::black_box(x.wrapping_mul(i | 1));
                done.send((0..50_000_000).fold(1, work)).unwrap();
                is_over.recv().unwrap_err();
            });
            is_done.recv().unwrap();
            let after = time_of(&name).unwrap();
            assert!(after >= before + Duration::from_millis(1), "{before:?} {after:?}");
            drop(end);
        });
        assert_eq!(time_of(&Name(PathBuf::from("net:[0]"))).unwrap(), Duration::ZERO);
    }
}
