//! Packet I/O with the TUN interface, and timers.

use super::shared::{Shared, State};
use hopline_core::Instant;
use hopline_linux::{Tun, sys};
use rustix::time::{
    Itimerspec, TimerfdClockId, TimerfdFlags, TimerfdTimerFlags, Timespec, timerfd_create, timerfd_settime,
};
use std::future::poll_fn;
use std::io;
use std::os::fd::{AsFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::task::{Context, Poll};
use std::time::Duration;
use tokio::io::unix::AsyncFd;
use tokio::time::{Interval, interval};

/// Packets read before other tasks run.
const BATCH: usize = 64;
/// Interval between checks that the interface still exists.
const CHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum bytes of an IP packet.
const MAX_PACKET: usize = 65_535;

/// Passes packets between a TUN interface and a stack.
pub(super) struct Driver {
    shared: Arc<Shared>,
    tun: Tun,
    packets: AsyncFd<OwnedFd>,
    /// Timer with nanosecond resolution: with the milliseconds of the runtime, paced senders would send in bursts.
    timer: AsyncFd<OwnedFd>,
    armed: Option<Instant>,
    /// Timer for checks: the runtime does not report the removal of the interface.
    checks: Interval,
    buffer: Vec<u8>,
    /// Packets that the kernel rejected.
    write_failures: Arc<AtomicU64>,
}

impl Driver {
    /// Creates a driver within the current runtime.
    pub(super) fn new(shared: Arc<Shared>, tun: Tun, refused: Arc<AtomicU64>) -> io::Result<Self> {
        let flags = TimerfdFlags::NONBLOCK | TimerfdFlags::CLOEXEC;
        let timer = timerfd_create(TimerfdClockId::Monotonic, flags)?;
        Ok(Self {
            packets: sys::watch(tun.as_fd().try_clone_to_owned()?)?,
            timer: sys::watch(timer)?,
            shared,
            tun,
            armed: None,
            checks: interval(CHECK_INTERVAL),
            buffer: vec![0; MAX_PACKET],
            write_failures: refused,
        })
    }

    /// Runs the stack until the interface fails.
    pub(super) async fn run(mut self) -> io::Result<()> {
        poll_fn(|context| self.poll(context)).await
    }

    /// Resets all connections.
    pub(super) fn stop(shared: &Shared, tun: &Tun) {
        let mut state = shared.lock();
        state.stack.abort_all(shared.now());
        // At the end, rejected packets are not counted.
        send(&mut state, shared.now(), tun, &AtomicU64::new(0));
    }

    fn poll(&mut self, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let shared = Arc::clone(&self.shared);
        let mut state = shared.lock();
        state.driver = Some(context.waker().clone());
        self.handle_timer(context, &mut state)?;
        let more = self.handle_packets(context, &mut state)?;
        // Segments that tasks have caused meanwhile are sent even if no packet arrived.
        send(&mut state, shared.now(), &self.tun, &self.write_failures);
        state.wake_tasks();
        self.set_timer(&state)?;
        if more {
            context.waker().wake_by_ref();
        }
        Poll::Pending
    }

    fn handle_timer(&mut self, context: &mut Context<'_>, state: &mut State) -> io::Result<()> {
        while let Poll::Ready(ready) = self.timer.poll_read_ready(context) {
            // The read clears the timer; after a spurious wake-up there is nothing to read.
            let _ = rustix::io::read(self.timer.get_ref(), &mut [0; 8]);
            ready?.clear_ready();
            self.armed = None;
        }
        let now = self.shared.now();
        if state.stack.poll_timeout().is_some_and(|due| due <= now) {
            state.stack.handle_timeout(now);
            send(state, now, &self.tun, &self.write_failures);
        }
        Ok(())
    }

    /// Reads waiting packets. Returns whether there may be more.
    fn handle_packets(&mut self, context: &mut Context<'_>, state: &mut State) -> io::Result<bool> {
        let mut taken = 0;
        while self.checks.poll_tick(context).is_ready() {
            // Nothing to read is an answer, too.
            taken += usize::from(self.handle_packet(state)?);
        }
        while self.packets.poll_read_ready(context)?.is_ready() {
            while self.handle_packet(state)? {
                taken += 1;
                if taken >= BATCH {
                    return Ok(true);
                }
            }
            if let Poll::Ready(ready) = self.packets.poll_read_ready(context) {
                ready?.clear_ready();
            }
        }
        Ok(false)
    }

    /// Reads a waiting packet. Returns whether there was one.
    fn handle_packet(&mut self, state: &mut State) -> io::Result<bool> {
        let Some(len) = self.tun.receive(&mut self.buffer)? else { return Ok(false) };
        let now = self.shared.now();
        state.stack.handle_packet(now, &self.buffer[..len]);
        // Each packet is answered separately: duplicate acknowledgements count.
        send(state, now, &self.tun, &self.write_failures);
        Ok(true)
    }

    fn set_timer(&mut self, state: &State) -> io::Result<()> {
        let due = state.stack.poll_timeout();
        if due == self.armed {
            return Ok(());
        }
        // Zero would stop the timer.
        let wait = due.map_or(0, |due| due.as_nanos().saturating_sub(self.shared.now().as_nanos()).max(1));
        let it_value =
            Timespec { tv_sec: (wait / 1_000_000_000) as i64, tv_nsec: (wait % 1_000_000_000) as _ };
        let it_interval = Timespec { tv_sec: 0, tv_nsec: 0 };
        timerfd_settime(
            self.timer.get_ref(),
            TimerfdTimerFlags::empty(),
            &Itimerspec { it_interval, it_value },
        )?;
        self.armed = due;
        Ok(())
    }
}

/// Passes all packets of the stack to the kernel.
fn send(state: &mut State, now: Instant, tun: &Tun, refused: &AtomicU64) {
    let mut packet = Vec::new();
    while state.stack.poll_transmit(now, &mut packet) {
        // The packet counts as lost on the path.
        if tun.send(&packet).is_err() {
            refused.fetch_add(1, Relaxed);
        }
    }
}
