//! The thread that carries frames between the TAPs of all hosts, through a simulated network.

use crate::report::{HostReport, Report};
use bytes::Bytes;
use hopline_core::{Instant, NodeId};
use hopline_linux::event_loop::Clock;
use hopline_linux::{Error, Tap, sched};
use hopline_sim::{EgressFrame, NoTrace, Spec, World};
use hopline_tools::link::LatenessRecorder;
use rustix::event::{EventfdFlags, PollFd, PollFlags, eventfd, poll};
use rustix::io::Errno;
use rustix::time::Timespec;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

/// Frames read from one TAP before other TAPs have their turn.
const BATCH: usize = 64;
/// Events processed before frames are read and the end is noticed, if the thread is late.
const EVENTS_AT_ONCE: usize = 4096;
/// Longest frame of a TAP with the largest MTU.
const MAX_FRAME: usize = 65_536 + 14;

/// Handle of the thread; stops it when dropped.
#[derive(Debug)]
pub(crate) struct Carrier {
    /// Becomes readable when the thread has to end.
    stop: Arc<OwnedFd>,
    thread: Option<JoinHandle<Report>>,
}

impl Carrier {
    /// Starts run number `run` of `spec`, with a TAP for each node. Returns when the network exists, and its clock runs.
    pub(crate) fn start(spec: Spec, run: u64, taps: Vec<Tap>) -> Result<Self, Error> {
        let stop = eventfd(0, EventfdFlags::CLOEXEC).map_err(|e| Error::new("making an eventfd", e))?;
        let stop = Arc::new(stop);
        let seen = Arc::clone(&stop);
        let (ready, started) = mpsc::channel();
        let thread = thread::Builder::new()
            .name("air".into())
            .spawn(move || {
                let carrier = CarrierThread::new(spec, run, taps, seen);
                let _ = ready.send(());
                carrier.run()
            })
            .map_err(|e| Error::new("starting a thread", e))?;
        // An error is a panic of the thread, which shows when it is ended.
        let _ = started.recv();
        Ok(Self { stop, thread: Some(thread) })
    }

    pub(crate) fn has_stopped(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Ends the thread. `names`: those of the nodes.
    pub(crate) fn finish(mut self, names: Vec<String>) -> Option<Report> {
        let mut report = self.stop()?;
        for (host, name) in report.hosts.iter_mut().zip(names) {
            host.name = name;
        }
        Some(report)
    }

    fn stop(&mut self) -> Option<Report> {
        let thread = self.thread.take()?;
        // The write cannot fail: the counter was never written.
        rustix::io::write(&*self.stop, &1u64.to_ne_bytes()).ok()?;
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
    stop: Arc<OwnedFd>,
    spec: Spec,
    world: World<NoTrace>,
    taps: Vec<HostTap>,
    lateness: LatenessRecorder,
}

/// TAP of a host.
struct HostTap {
    tap: Tap,
    /// `true` once the interface was deleted: it is always readable then, but has no frame.
    is_gone: bool,
    /// Frames that its kernel refused.
    refused: u64,
}

impl CarrierThread {
    fn new(spec: Spec, run: u64, taps: Vec<Tap>, stop: Arc<OwnedFd>) -> Self {
        let world = World::new(&spec, run, NoTrace);
        let taps = taps.into_iter().map(|tap| HostTap { tap, is_gone: false, refused: 0 }).collect();
        Self { clock: Clock::start(), stop, spec, world, taps, lateness: LatenessRecorder::default() }
    }

    fn run(mut self) -> Report {
        let priority = sched::request_real_time();
        let mut buffer = vec![0; MAX_FRAME];
        // After a failure nothing more happens.
        while self.world.failure().is_none() && self.wait() {
            self.catch_up();
            for node in (0..self.taps.len() as u32).map(NodeId) {
                self.receive_from(node, &mut buffer);
            }
            self.catch_up();
        }
        // What is due by now was not processed in time, if the thread was late.
        self.catch_up();
        let counts = |node: usize| self.world.tap_counts(NodeId(node as u32));
        let host = |(node, tap): (usize, &HostTap)| HostReport {
            name: String::new(),
            tap: counts(node),
            refused: tap.refused,
        };
        let hosts = self.taps.iter().enumerate().map(host).collect();
        let lateness = self.lateness.lateness();
        let failure = self.world.failure().map(|failure| failure.describe(&self.spec));
        Report { hosts, lateness, priority, failure, outcome: self.world.finish().0 }
    }

    /// Waits until a frame arrives or an event is due. Returns `false` at the end.
    fn wait(&self) -> bool {
        let due = Some(self.world.next_due()).filter(|&due| due < Instant::FAR_FUTURE);
        let timeout = due.map(|due| {
            let left = due.as_nanos().saturating_sub(self.clock.now().as_nanos());
            Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 }
        });
        let there = self.taps.iter().filter(|tap| !tap.is_gone);
        let mut fds: Vec<_> = std::iter::once(self.stop.as_fd())
            .chain(there.map(|tap| tap.tap.as_fd()))
            .map(|fd| PollFd::from_borrowed_fd(fd, PollFlags::IN))
            .collect();
        match poll(&mut fds, timeout.as_ref()) {
            Ok(_) | Err(Errno::INTR) => fds[0].revents().is_empty(),
            Err(error) => panic!("the emulation cannot wait for frames: {error}"),
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
            while let Some(EgressFrame { node, frame, .. }) = self.world.poll_frame() {
                let tap = &mut self.taps[node.index()];
                tap.refused += u64::from(tap.tap.send(&frame).is_err());
            }
        }
    }

    /// Brings the frames that a kernel has sent into the network. They enter at the time of their arrival, or if the thread
    /// is late, at that of the last event.
    fn receive_from(&mut self, node: NodeId, buffer: &mut [u8]) {
        for _ in 0..BATCH {
            let tap = &mut self.taps[node.index()];
            if tap.is_gone {
                return;
            }
            match tap.tap.receive(buffer) {
                Ok(Some(len)) => {
                    let now = self.clock.now();
                    if self.world.next_due() > now {
                        self.world.run_until(now);
                    }
                    // What is refused is counted.
                    let _ = self.world.inject_frame(node, &Bytes::copy_from_slice(&buffer[..len]));
                }
                Ok(None) => return,
                Err(error) => {
                    tap.is_gone = Errno::from_io_error(&error) == Some(Errno::BADFD);
                    return;
                }
            }
        }
    }
}
