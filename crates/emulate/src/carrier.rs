//! The thread that carries frames between the TAPs of all hosts, through a simulated network.

use crate::observers::{Observation, Observed, Observers};
use crate::report::{HostReport, NetworkReport, Report};
use crate::tap_set::{HostTap, StopSignal, TapSet, Wake};
use bytes::Bytes;
use hopline_core::{Duration, Instant};
use hopline_linux::event_loop::Clock;
use hopline_linux::{Error, sched};
use hopline_sim::{EgressFrame, Spec, World};
use hopline_tools::link::{Lateness, LatenessRecorder};
use rustix::time::{ClockId, Timespec, clock_gettime};
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::thread::{self, JoinHandle};

/// Frames read from one TAP before other TAPs have their turn.
const BATCH: usize = 64;
/// Events processed before frames are read and the end is noticed, if the thread is late.
const EVENTS_AT_ONCE: usize = 4096;
/// Time from one look at the state to the next.
const PROGRESS_INTERVAL: Duration = Duration::from_millis(250);
/// Longest frame of a TAP with the largest MTU.
const MAX_FRAME: usize = 65_536 + 14;

/// Handle of the thread; stops it when dropped.
#[derive(Debug)]
pub(crate) struct Carrier {
    stop: StopSignal,
    progress: Arc<Mutex<Progress>>,
    thread: Option<JoinHandle<Report>>,
}

/// State of an emulation that goes on.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Progress {
    /// Time of the network.
    pub now: Instant,
    /// Frames that kernels have sent.
    pub frames: u64,
    /// Lateness so far.
    pub lateness: Lateness,
}

impl Carrier {
    /// Starts run number `run` of `spec`, with TAPs at nodes. Returns when the network exists, and its clock runs.
    pub(crate) fn start(
        spec: Spec,
        run: u64,
        taps: Vec<HostTap>,
        observed: Observation,
    ) -> Result<Self, Error> {
        let observers = Observers::new(&spec, observed).map_err(|e| Error::new("writing a capture", e))?;
        let (taps, stop) = TapSet::new(taps, spec.nodes.len())?;
        let progress = Arc::new(Mutex::new(Progress::default()));
        let shown = Arc::clone(&progress);
        let (ready, started) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("air".into())
            .spawn(move || {
                let carrier = CarrierThread::new(spec, run, taps, observers, shown);
                let _ = ready.send(());
                carrier.run()
            })
            .map_err(|e| Error::new("starting a thread", e))?;
        // An error is a panic of the thread, which shows when it is ended.
        let _ = started.recv();
        Ok(Self { stop, progress, thread: Some(thread) })
    }

    /// Returns the latest state that the thread has shown.
    pub(crate) fn progress(&self) -> Progress {
        *self.progress.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends the thread. `names`: those of the nodes with TAPs.
    pub(crate) fn finish(mut self, names: Vec<String>) -> Option<Report> {
        let mut report = self.stop()?;
        for (host, name) in report.network.hosts.iter_mut().zip(names) {
            host.name = name;
        }
        Some(report)
    }

    fn stop(&mut self) -> Option<Report> {
        let thread = self.thread.take()?;
        self.stop.send();
        thread.join().ok()
    }
}

impl Drop for Carrier {
    fn drop(&mut self) {
        let _ = self.stop();
    }
}

struct CarrierThread {
    clock: Clock,
    spec: Spec,
    world: World<Observers>,
    taps: TapSet,
    lateness: LatenessRecorder,
    frames: u64,
    progress: Arc<Mutex<Progress>>,
    /// Time at which progress is shown again.
    shown_until: Instant,
}

impl CarrierThread {
    fn new(spec: Spec, run: u64, taps: TapSet, observers: Observers, progress: Arc<Mutex<Progress>>) -> Self {
        let world = World::new(&spec, run, observers);
        Self {
            clock: Clock::start(),
            spec,
            world,
            taps,
            lateness: LatenessRecorder::default(),
            frames: 0,
            progress,
            shown_until: Instant::ZERO,
        }
    }

    fn run(mut self) -> Report {
        let priority = sched::request_real_time();
        let mut buffer = vec![0; MAX_FRAME];
        let mut ready = Vec::new();
        // After a failure nothing more happens.
        while self.world.failure().is_none() && self.wait(&mut ready) == Wake::Continue {
            self.catch_up();
            for number in ready.drain(..) {
                self.receive_from(number, &mut buffer);
            }
            self.catch_up();
            self.show_progress();
        }
        // What is due by now was not processed in time, if the thread was late.
        self.catch_up();
        let host =
            |(node, refused)| HostReport { name: String::new(), tap: self.world.tap_counts(node), refused };
        let hosts = self.taps.refused().into_iter().map(host).collect();
        let lateness = self.lateness.lateness();
        let failure = self.world.failure().map(|failure| failure.describe(&self.spec));
        let (cpu_time, now) = (cpu_time(), self.world.now());
        let (outcome, observers) = self.world.finish();
        // What is pending of a capture is handed to the thread that writes; it has the errors.
        let Observed { flows, links, .. } = observers.finish(now);
        let network = NetworkReport { outcome, hosts, flows, links, failure };
        Report { network, lateness, cpu_time, priority }
    }

    /// Waits until a frame arrives or an event is due. Adds the numbers of the TAPs with frames to `ready`.
    fn wait(&self, ready: &mut Vec<usize>) -> Wake {
        let due = Some(self.world.next_due()).filter(|&due| due < Instant::FAR_FUTURE);
        let most = due.map(|due| {
            let left = due.as_nanos().saturating_sub(self.clock.now().as_nanos());
            Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 }
        });
        match self.taps.wait(most, ready) {
            Ok(wake) => wake,
            Err(error) => panic!("the emulation cannot wait for frames: {error}"),
        }
    }

    /// Shows the state to other threads now and then. Never waits for them.
    fn show_progress(&mut self) {
        let now = self.world.now();
        if now >= self.shown_until
            && let Ok(mut progress) = self.progress.try_lock()
        {
            *progress = Progress { now, frames: self.frames, lateness: self.lateness.lateness() };
            self.shown_until = now + PROGRESS_INTERVAL;
        }
    }

    /// Processes the events that are due, and hands out the frames that have arrived.
    fn catch_up(&mut self) {
        for _ in 0..EVENTS_AT_ONCE {
            let (due, now) = (self.world.next_due(), self.clock.now());
            if due > now || self.world.failure().is_some() {
                return self.world.run_until(now);
            }
            self.lateness.record(now - due);
            self.world.run_until(due);
            while let Some(EgressFrame { node, medium, frame, .. }) = self.world.poll_frame() {
                self.taps.send(node, medium, &frame);
            }
        }
    }

    /// Brings the frames that a kernel has sent into the network. They enter at the time of their arrival, or if the thread
    /// is late, at that of the last event.
    fn receive_from(&mut self, number: usize, buffer: &mut [u8]) {
        let (node, medium) = self.taps.place(number);
        for _ in 0..BATCH {
            let Some(len) = self.taps.receive(number, buffer) else { return };
            let now = self.clock.now();
            if self.world.next_due() > now {
                self.world.run_until(now);
            }
            self.frames += 1;
            let frame = Bytes::copy_from_slice(&buffer[..len]);
            // What is refused is counted.
            let _ = match medium {
                None => self.world.inject_frame(node, &frame),
                Some(medium) => self.world.inject_frame_over(node, medium, &frame),
            };
        }
    }
}

/// Returns the CPU time of this thread.
fn cpu_time() -> Duration {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    Duration::from_nanos(time.tv_sec as u64 * 1_000_000_000 + time.tv_nsec as u64)
}
