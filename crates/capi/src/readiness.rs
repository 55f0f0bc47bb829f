//! Waiting for many sockets.

use crate::abi::{TPA_POLLERR, TPA_POLLHUP, TPA_POLLIN, TPA_POLLNVAL, TPA_POLLOUT, tpa_pollfd};
use crate::clock::{now, timespec};
use crate::error::Result;
use crate::socket::{LONGEST_SLEEP, Socket, State};
use crate::table;
use crate::transport::{Begun, Stream};
use hopline_net::streams::{Interest, Ready};
use libc::{c_int, c_short};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::cell::OnceCell;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

/// Rings when one of the streams that a thread waits for has changed.
#[derive(Debug)]
struct Bell(OwnedFd);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        // A counter that cannot be added to is above zero.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

thread_local! {
    /// One for each thread: streams that have not changed know it already.
    static BELL: OnceCell<Arc<Bell>> = const { OnceCell::new() };
}

/// Descriptor of the system's that a thread waits for, beside the bell.
enum Awaited {
    /// A listener.
    Listener(Arc<Socket>),
    /// TCP rings no bell.
    Tcp(Arc<Stream>, PollFlags),
    /// The choice of a protocol, of which another thread may take the news.
    Choice(Arc<Socket>),
}

impl Awaited {
    fn poll_fd(&self) -> PollFd<'_> {
        match self {
            Self::Listener(socket) | Self::Choice(socket) => PollFd::new(&**socket, PollFlags::IN),
            Self::Tcp(stream, flags) => PollFd::new(&**stream, *flags),
        }
    }
}

/// Waits until something can be done with one of `entries`, for at most `limit`, and says what. Returns with how many.
pub(crate) fn wait(entries: &mut [tpa_pollfd], limit: Option<Duration>) -> Result<usize> {
    let (bell, began) = (bell()?, now());
    let waker = Waker::from(Arc::clone(&bell));
    loop {
        silence(&bell);
        let sockets: Vec<_> = entries.iter().map(|entry| table::get(entry.handle).ok()).collect();
        let mut all = Vec::new();
        for (entry, socket) in entries.iter_mut().zip(&sockets) {
            let found = match socket {
                _ if entry.handle < 0 => 0,
                None => TPA_POLLNVAL,
                Some(socket) => look(socket, entry.events.into(), &waker),
            };
            // A constant of a few bits.
            entry.revents = found as c_short;
            all.extend(socket.iter().filter_map(|socket| awaited(socket, entry)));
        }
        let ready = entries.iter().filter(|entry| entry.revents != 0).count();
        let left = limit.map(|limit| limit.saturating_sub(began.elapsed()));
        if ready > 0 || left.is_some_and(|left| left.is_zero()) {
            return Ok(ready);
        }
        let chooses = all.iter().any(|awaited| matches!(awaited, Awaited::Choice(_)));
        let sleep =
            if chooses { Some(left.map_or(LONGEST_SLEEP, |left| left.min(LONGEST_SLEEP))) } else { left };
        let mut polled = vec![PollFd::new(&bell.0, PollFlags::IN)];
        polled.extend(all.iter().map(Awaited::poll_fd));
        poll(&mut polled, sleep.map(timespec).as_ref())?;
    }
}

/// Source of a change that wakes no waker: its descriptor is polled.
fn awaited(socket: &Arc<Socket>, entry: &tpa_pollfd) -> Option<Awaited> {
    match &*socket.progressed() {
        State::Listening(_) if asks(entry, TPA_POLLIN) => Some(Awaited::Listener(Arc::clone(socket))),
        State::Calling(Begun::TpaOrTcp(_), ..) => Some(Awaited::Choice(Arc::clone(socket))),
        State::Open(stream) if matches!(&**stream, Stream::Tcp(_)) => {
            Some(Awaited::Tcp(Arc::clone(stream), asked_of_tcp(entry.events.into())))
        }
        _ => None,
    }
}

/// Returns the calls that a socket would take now. The waker is woken when that may have changed, unless it is [awaited].
fn look(socket: &Socket, events: c_int, waker: &Waker) -> c_int {
    let asked = TPA_POLLERR | TPA_POLLHUP | events;
    let stream = match &*socket.progressed() {
        State::Idle(_) | State::Closed => return TPA_POLLHUP,
        State::Failed(..) => return (TPA_POLLERR | TPA_POLLHUP | TPA_POLLIN | TPA_POLLOUT) & asked,
        State::Listening(_) => {
            return if events & TPA_POLLIN != 0 && is_readable(socket) { TPA_POLLIN } else { 0 };
        }
        State::Calling(Begun::TpaOrTcp(_), ..) => return 0,
        State::Calling(Begun::Stream(stream), ..) | State::Open(stream) => Arc::clone(stream),
    };
    let found = look_at_stream(&stream, events, waker);
    // Whether it is open, and to whom, is looked at before anything is said of a stream, and anew after it wakes us.
    match &*socket.progressed() {
        State::Open(_) => found & asked,
        State::Failed(..) => (TPA_POLLERR | TPA_POLLHUP | TPA_POLLIN | TPA_POLLOUT) & asked,
        _ => 0,
    }
}

fn look_at_stream(stream: &Stream, events: c_int, waker: &Waker) -> c_int {
    let interest = match (events & TPA_POLLIN != 0, events & TPA_POLLOUT != 0) {
        (true, true) => Interest::Both,
        (false, true) => Interest::Write,
        _ => Interest::Read,
    };
    let ready = match stream {
        Stream::Wide(stream) => stream.poll_ready(interest, &Context::from_waker(waker)),
        Stream::Tpa(stream) => stream.poll_ready(interest, &Context::from_waker(waker)),
        Stream::Tcp(_) => look_at_tcp(stream, events),
    };
    let flags = [(ready.readable, TPA_POLLIN), (ready.writable, TPA_POLLOUT), (ready.over, TPA_POLLHUP)];
    flags.into_iter().filter(|(holds, _)| *holds).fold(0, |all, (_, flag)| all | flag)
}

fn look_at_tcp(stream: &Stream, events: c_int) -> Ready {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut polled = [PollFd::new(stream, asked_of_tcp(events))];
    // A descriptor that cannot be polled has nothing to tell.
    let _ = poll(&mut polled, Some(&at_once));
    let found = polled[0].revents();
    let over = found.intersects(PollFlags::HUP | PollFlags::ERR);
    Ready {
        readable: over || found.contains(PollFlags::IN),
        writable: over || found.contains(PollFlags::OUT),
        over,
    }
}

fn asked_of_tcp(events: c_int) -> PollFlags {
    let asked = [(TPA_POLLIN, PollFlags::IN), (TPA_POLLOUT, PollFlags::OUT)];
    asked.into_iter().filter(|(event, _)| events & event != 0).map(|(_, flag)| flag).collect()
}

fn asks(entry: &tpa_pollfd, event: c_int) -> bool {
    c_int::from(entry.events) & event != 0
}

fn is_readable(socket: &Socket) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&at_once)).is_ok_and(|ready| ready > 0)
}

fn bell() -> Result<Arc<Bell>> {
    BELL.with(|bell| {
        if let Some(bell) = bell.get() {
            return Ok(Arc::clone(bell));
        }
        let made = Arc::new(Bell(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?));
        Ok(Arc::clone(bell.get_or_init(|| made)))
    })
}

fn silence(bell: &Bell) {
    // It may not have rung.
    let _ = rustix::io::read(&bell.0, &mut [0u8; 8]);
}
