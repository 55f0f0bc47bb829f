//! Programs of a host, by the clock of its kernel: virtual time.

use super::plan::{Plan, PlannedProgram, ProgramEnd, STOP_FILE, end_file, errors_file, output_file};
use rustix::process::{Pid, Signal, kill_process_group};
use rustix::time::{ClockId, clock_gettime};
use std::fs::{self, File};
use std::io;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time between SIGTERM and SIGKILL.
const KILL_DELAY: Duration = Duration::from_secs(3);
/// Interval between looks for a stop file.
const STOP_INTERVAL: Duration = Duration::from_millis(100);

/// Start or stop of a program. At equal times programs are stopped before others start.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Due {
    Stop(usize),
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
        agenda.extend(program.stop_ns.map(|time| (time, Due::Stop(index))));
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
    // Without the file, the end of the program is unknown.
    let _ = serde_json::to_vec(&end).map(|bytes| fs::write(place, bytes));
}

fn stop(running: Option<&Running>, signal: Signal) {
    let Some(running) = running else { return };
    // The number of a process that has ended may belong to another one.
    let has_ended = running.has_ended.lock().unwrap_or_else(PoisonError::into_inner);
    if let (false, Some(group)) = (*has_ended, running.group) {
        running.was_stopped.store(true, Ordering::Relaxed);
        let _ = kill_process_group(group, signal);
    }
}

/// Ends all programs.
fn end(running: Vec<Option<Running>>) {
    let running: Vec<Running> = running.into_iter().flatten().collect();
    for signal in [Signal::TERM, Signal::KILL] {
        for program in &running {
            stop(Some(program), signal);
        }
        let until = now_ns() + KILL_DELAY.as_nanos() as u64;
        while now_ns() < until && running.iter().any(|program| !program.waiter.is_finished()) {
            thread::sleep(Duration::from_millis(10));
        }
    }
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
    }
}
