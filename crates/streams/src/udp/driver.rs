//! Thread of a host: waits for datagrams, for room in the socket and for timers.

use super::host::Shared;
use super::protocol::Protocol;
use super::socket::Buffers;
use super::table::{Driver, Io};
use hopline_linux::sched;
use rustix::event::{PollFd, PollFlags, poll};
use rustix::time::Timespec;
use std::os::fd::AsFd;

pub(super) fn run(shared: &Shared<impl Protocol>) {
    // If it were late to a timer, it would send less than the rate allows.
    sched::request_prompt_wakeups();
    let mut buffers = Buffers::new();
    while let Some((flags, timeout)) = before_sleep(shared) {
        let woken = sleep(shared, flags, timeout.as_ref());
        if woken.contains(PollFlags::ERR) {
            handle_icmp_errors(shared);
        }
        if woken.contains(PollFlags::IN) {
            receive(shared, &mut buffers);
        }
        shared.with(|table, io| {
            table.driver = Driver::Awake;
            if woken.contains(PollFlags::OUT) {
                table.resume(io);
            }
            table.handle_timeouts(io);
        });
    }
}

/// Returns the events and the timeout to wait for. `None` at the end.
fn before_sleep(shared: &Shared<impl Protocol>) -> Option<(PollFlags, Option<Timespec>)> {
    let mut table = shared.table();
    let until = table.next_deadline();
    let room = if table.is_blocked() { PollFlags::OUT } else { PollFlags::empty() };
    table.driver = Driver::Asleep { until, awaits: PollFlags::IN | room };
    let timeout = until.map(|at| {
        let left = at.since(shared.now()).as_nanos();
        Timespec { tv_sec: (left / 1_000_000_000) as i64, tv_nsec: (left % 1_000_000_000) as i64 }
    });
    (!table.is_over()).then_some((PollFlags::IN | room, timeout))
}

/// Waits, and returns the events of the socket.
fn sleep(shared: &Shared<impl Protocol>, flags: PollFlags, timeout: Option<&Timespec>) -> PollFlags {
    let mut fds =
        [PollFd::new(&shared.socket, flags), PollFd::from_borrowed_fd(shared.wake.as_fd(), PollFlags::IN)];
    // After an interruption the loop checks what is due.
    if poll(&mut fds, timeout).is_err() {
        return PollFlags::empty();
    }
    if !fds[1].revents().is_empty() {
        let _ = rustix::io::read(&shared.wake, &mut [0u8; 8]);
    }
    fds[0].revents()
}

/// Reads a batch. Timers are processed before the next one.
fn receive(shared: &Shared<impl Protocol>, buffers: &mut Buffers) {
    shared.socket.receive(buffers);
    shared.with(|table, io| {
        table.driver = Driver::Awake;
        for (path, ecn, datagram) in buffers.datagrams() {
            table.handle_datagram(io, path, ecn, datagram);
        }
        table.send_replies(io);
    });
}

fn handle_icmp_errors(shared: &Shared<impl Protocol>) {
    while let Some(address) = shared.socket.next_icmp_error() {
        shared.with(|table, io: Io<'_>| table.handle_unreachable(io, address));
    }
}
