//! Programs of a host, by the clock of its kernel: virtual time.

use super::plan::{Plan, PlannedProgram, ProgramEnd, STOP_FILE, end_file, errors_file, output_file};
use crate::kernel::WRITING_END;
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use rustix::time::{ClockId, clock_gettime};
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between SIGTERM and SIGKILL.
const KILL_DELAY: Duration = Duration::from_secs(3);
/// Parent of the threads of the kernel: kthreadd. Its own parent is 0.
const KERNEL_THREADS: &str = "2";
/// Interval between looks for a stop file.
const STOP_INTERVAL: Duration = Duration::from_millis(100);

/// Start or end of a program. At equal times programs end before others start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Stop(usize),
    Kill(usize),
    Start(usize),
}

/// A program that has been started.
struct Running {
    group: Option<Pid>,
    was_stopped: Arc<AtomicBool>,
    has_ended: Arc<Mutex<bool>>,
    waiter: JoinHandle<()>,
}

/// Runs all programs of a plan, up to its end. Their output and their ends are files in `folder`.
pub(super) fn run(plan: &Plan, folder: &Path) -> io::Result<()> {
    let mut running: Vec<Option<Running>> = plan.programs.iter().map(|_| None).collect();
    let stop_file = plan.end_ns.is_none().then(|| folder.join(STOP_FILE));
    for (time, due) in agenda(plan) {
        if is_stopped_before(time, stop_file.as_deref()) {
            end(running);
            return Ok(());
        }
        match due {
            Due::Start(index) => running[index] = start(plan, &plan.programs[index], folder)?,
            Due::Stop(index) => stop(running[index].as_ref(), Signal::TERM),
            Due::Kill(index) => stop(running[index].as_ref(), Signal::KILL),
        }
    }
    is_stopped_before(plan.end_ns.unwrap_or(u64::MAX), stop_file.as_deref());
    end(running);
    Ok(())
}

/// Sleeps up to a time. Returns `true` at once when there is a stop file.
fn is_stopped_before(time_ns: u64, stop_file: Option<&Path>) -> bool {
    let Some(stop_file) = stop_file else {
        sleep_until(time_ns);
        return false;
    };
    while now_ns() < time_ns {
        if stop_file.exists() {
            return true;
        }
        sleep_until(time_ns.min(now_ns() + STOP_INTERVAL.as_nanos() as u64));
    }
    false
}

/// Returns what is due before the end, in order.
fn agenda(plan: &Plan) -> Vec<(u64, Due)> {
    let mut agenda = Vec::new();
    for (index, program) in plan.programs.iter().enumerate() {
        agenda.push((program.start_ns, Due::Start(index)));
        if let Some(time) = program.stop_ns {
            let kill = time.saturating_add(KILL_DELAY.as_nanos() as u64);
            agenda.extend([(time, Due::Stop(index)), (kill, Due::Kill(index))]);
        }
    }
    agenda.retain(|&(time, _)| plan.end_ns.is_none_or(|end| time < end));
    agenda.sort_unstable();
    agenda
}

fn start(plan: &Plan, program: &PlannedProgram, folder: &Path) -> io::Result<Option<Running>> {
    let (name, was_stopped) = (program.name.clone(), Arc::new(AtomicBool::new(false)));
    let (program_name, arguments) = program.command.split_first().expect("a command is not empty");
    let child = Command::new(&program.path)
        .arg0(program_name)
        .args(arguments)
        .current_dir(&plan.folder)
        .env_clear()
        .envs(plan.environment.iter().cloned())
        .stdin(Stdio::null())
        .stdout(File::create(folder.join(output_file(&name)))?)
        .stderr(File::create(folder.join(errors_file(&name)))?)
        .process_group(0)
        .spawn();
    let place = folder.join(end_file(&name));
    let mut child = match child {
        Ok(child) => child,
        Err(error) => {
            let end = ProgramEnd {
                code: None,
                signal: None,
                error: Some(error.to_string()),
                was_stopped: false,
                ended_ns: now_ns(),
            };
            fs::write(place, serde_json::to_vec(&end)?)?;
            return Ok(None);
        }
    };
    let group = Pid::from_raw(child.id() as i32);
    let (stopped, has_ended) = (Arc::clone(&was_stopped), Arc::new(Mutex::new(false)));
    let ended = Arc::clone(&has_ended);
    let waiter = thread::Builder::new().spawn(move || wait(&mut child, &place, &stopped, &ended))?;
    Ok(Some(Running { group, was_stopped, has_ended, waiter }))
}

/// Waits for the end of a program, and writes it down.
fn wait(child: &mut Child, place: &Path, was_stopped: &AtomicBool, has_ended: &Mutex<bool>) {
    let Ok(status) = child.wait() else { return };
    *has_ended.lock().unwrap_or_else(PoisonError::into_inner) = true;
    let end = ProgramEnd {
        code: status.code(),
        signal: status.signal(),
        error: None,
        was_stopped: was_stopped.load(Ordering::Relaxed),
        ended_ns: now_ns(),
    };
    // Without the file, the end of the program is unknown. The console has the reason.
    if let Err(error) = serde_json::to_vec(&end).map_err(Into::into).and_then(|bytes| fs::write(place, bytes))
    {
        let program = place.file_stem().unwrap_or_default().to_string_lossy();
        let _ = writeln!(io::stderr(), "{WRITING_END} {program}: {error}");
    }
}

/// Signals a program and what it has started in its group, also if it has ended and left that.
fn stop(running: Option<&Running>, signal: Signal) {
    let Some(running) = running else { return };
    running.note_stop();
    if let Some(group) = running.group {
        let _ = kill_process_group(group, signal);
    }
}

impl Running {
    /// Notes that it is stopped, unless it has ended.
    fn note_stop(&self) {
        // Its end is not noted meanwhile.
        let has_ended = self.has_ended.lock().unwrap_or_else(PoisonError::into_inner);
        self.was_stopped.fetch_or(!*has_ended, Ordering::Relaxed);
    }
}

/// Ends all programs and what they have started.
fn end(running: Vec<Option<Running>>) {
    let running: Vec<Running> = running.into_iter().flatten().collect();
    running.iter().for_each(Running::note_stop);
    for signal in [Signal::TERM, Signal::KILL] {
        for process in processes() {
            // It may have ended since.
            let _ = kill_process(process, signal);
        }
        let until = now_ns() + KILL_DELAY.as_nanos() as u64;
        let is_at_work =
            || running.iter().any(|program| !program.waiter.is_finished()) || processes().next().is_some();
        while now_ns() < until && is_at_work() {
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Returns all processes that run, but for this one and the threads of the kernel.
fn processes() -> impl Iterator<Item = Pid> {
    let entries = fs::read_dir("/proc").into_iter().flatten().flatten();
    let numbers = entries.filter_map(|entry| entry.file_name().to_str()?.parse().ok());
    numbers.filter(|&number| number > 1 && is_running(number)).filter_map(Pid::from_raw)
}

/// Returns whether a process has a program that has not ended: proc(5), `/proc/pid/stat`.
fn is_running(process: i32) -> bool {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // The name, in parentheses, may contain anything.
    let mut fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace();
    let (state, parent) = (fields.next(), fields.next());
    !matches!(state, None | Some("Z" | "X"))
        && parent.is_some_and(|parent| parent != KERNEL_THREADS && parent != "0")
}

pub(super) fn sleep_until(time_ns: u64) {
    thread::sleep(Duration::from_nanos(time_ns.saturating_sub(now_ns())));
}

/// Returns the virtual time: a kernel boots at zero.
fn now_ns() -> u64 {
    let now = clock_gettime(ClockId::Boottime);
    now.tv_sec as u64 * 1_000_000_000 + now.tv_nsec as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_start_and_stop_in_order_and_before_the_end() {
        let program = |start_ns, stop_ns| PlannedProgram {
            name: String::new(),
            path: "true".into(),
            command: vec!["true".into()],
            start_ns,
            stop_ns,
        };
        let plan = Plan {
            name: String::new(),
            address: [10, 0, 0, 1].into(),
            interfaces: Vec::new(),
            routes: Vec::new(),
            hosts_file: String::new(),
            folder: "/".into(),
            environment: Vec::new(),
            programs: vec![program(5, Some(9)), program(9, None), program(1, Some(30)), program(20, None)],
            end_ns: Some(20),
        };
        let expected = [(1, Due::Start(2)), (5, Due::Start(0)), (9, Due::Stop(0)), (9, Due::Start(1))];
        assert_eq!(agenda(&plan), expected);
        let long = Plan { end_ns: None, ..plan };
        assert_eq!(agenda(&long).last(), Some(&(KILL_DELAY.as_nanos() as u64 + 30, Due::Kill(2))));
    }
}
