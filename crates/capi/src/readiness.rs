//! Waiting for many sockets (`tpa_poll`).

use crate::abi::{TPA_POLLERR, TPA_POLLHUP, TPA_POLLIN, TPA_POLLNVAL, TPA_POLLOUT, tpa_pollfd};
use crate::clock::{now, timespec};
use crate::error::Result;
use crate::socket::{MAX_SLEEP, Socket, State};
use crate::table;
use crate::transport::{ConnectingStream, Stream};
use hopline_streams::{Interest, Ready};
use libc::{c_int, c_short};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::cell::OnceCell;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

/// Event counter that becomes readable when a stream that a thread waits for has changed.
#[derive(Debug)]
struct Notifier(OwnedFd);

impl Wake for Notifier {
    fn wake(self: Arc<Self>) {
        // A write fails only if the counter is at its maximum, hence above zero already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

thread_local! {
    /// One bell for each thread. Streams that have not changed have it registered already.
    static NOTIFIER: OnceCell<Arc<Notifier>> = const { OnceCell::new() };
}

/// File descriptor that a thread waits for, in addition to the bell.
enum WaitedFor {
    /// Listener.
    Listener(Arc<Socket>),
    /// TCP connection, which rings no bell.
    Tcp(Arc<Stream>, PollFlags),
    /// Selection of a protocol, of which another thread may consume the result.
    Selection(Arc<Socket>),
}

impl WaitedFor {
    /// Returns the longest sleep. Another thread may consume the result of a protocol selection, and the kernel does not
    /// report a silent peer.
    fn max_sleep(&self) -> Option<Duration> {
        match self {
            Self::Listener(_) => None,
            Self::Selection(_) => Some(MAX_SLEEP),
            Self::Tcp(stream, _) => match &**stream {
                Stream::Tcp(tcp) => tcp.check_interval(),
                Stream::Wide(_) | Stream::Tpa(_) => None,
            },
        }
    }

    fn poll_fd(&self) -> PollFd<'_> {
        match self {
            Self::Listener(socket) | Self::Selection(socket) => PollFd::new(&**socket, PollFlags::IN),
            Self::Tcp(stream, flags) => PollFd::new(&**stream, *flags),
        }
    }
}

/// Waits until one of `entries` is ready, for at most `limit`, and fills in the events. Returns the number of ready entries.
pub(crate) fn wait(entries: &mut [tpa_pollfd], limit: Option<Duration>) -> Result<usize> {
    let (bell, began) = (notifier()?, now());
    let waker = Waker::from(Arc::clone(&bell));
    loop {
        clear(&bell);
        let sockets: Vec<_> = entries.iter().map(|entry| table::get(entry.handle).ok()).collect();
        let mut all = Vec::new();
        for (entry, socket) in entries.iter_mut().zip(&sockets) {
            let look = match socket {
                _ if entry.handle < 0 => Readiness::of_events(0),
                None => Readiness::of_events(TPA_POLLNVAL),
                Some(socket) => poll_socket(socket, entry.events.into(), &waker),
            };
            // The value is a constant of a few bits.
            entry.revents = look.events as c_short;
            all.extend(look.waited_for);
            #[cfg(test)]
            tests::interleave();
        }
        let ready = entries.iter().filter(|entry| entry.revents != 0).count();
        let left = limit.map(|limit| limit.saturating_sub(began.elapsed()));
        if ready > 0 || left.is_some_and(|left| left.is_zero()) {
            return Ok(ready);
        }
        let sleep = all.iter().filter_map(WaitedFor::max_sleep).chain(left).min();
        let mut polled = vec![PollFd::new(&bell.0, PollFlags::IN)];
        polled.extend(all.iter().map(WaitedFor::poll_fd));
        poll(&mut polled, sleep.map(timespec).as_ref())?;
    }
}

/// State of a socket at one moment: its events, and the source of the next change. Both come from one look, since the socket
/// may change between two.
struct Readiness {
    events: c_int,
    /// Descriptor of a change that wakes no waker. `None`: the waker is woken, or nothing changes by itself.
    waited_for: Option<WaitedFor>,
}

impl Readiness {
    const fn of_events(found: c_int) -> Self {
        Self { events: found, waited_for: None }
    }
}

/// Returns the state of a socket. The waker is woken when it may have changed, unless a descriptor is awaited.
fn poll_socket(socket: &Arc<Socket>, events: c_int, waker: &Waker) -> Readiness {
    let asked = TPA_POLLERR | TPA_POLLHUP | events;
    loop {
        let stream = match &*socket.updated_state() {
            State::Idle(_) | State::Closed => return Readiness::of_events(TPA_POLLHUP),
            State::Failed(..) => {
                return Readiness::of_events((TPA_POLLERR | TPA_POLLHUP | TPA_POLLIN | TPA_POLLOUT) & asked);
            }
            State::Listening(_) if events & TPA_POLLIN == 0 => return Readiness::of_events(0),
            State::Listening(_) => {
                let found = if is_readable(socket) { TPA_POLLIN } else { 0 };
                return Readiness {
                    events: found,
                    waited_for: Some(WaitedFor::Listener(Arc::clone(socket))),
                };
            }
            State::Connecting(ConnectingStream::TpaOrTcp(_), ..) => {
                return Readiness { events: 0, waited_for: Some(WaitedFor::Selection(Arc::clone(socket))) };
            }
            State::Connecting(ConnectingStream::Stream(stream), ..) | State::Open(stream) => {
                Arc::clone(stream)
            }
        };
        let found = poll_stream(&stream, events, waker);
        let awaited = matches!(&*stream, Stream::Tcp(_))
            .then(|| WaitedFor::Tcp(Arc::clone(&stream), tcp_events(events)));
        // The state of the connection, and its check, are examined before any event of the stream is reported, and again
        // after it wakes this thread.
        match &*socket.updated_state() {
            State::Open(now) if Arc::ptr_eq(now, &stream) => {
                return Readiness { events: found & asked, waited_for: awaited };
            }
            State::Connecting(ConnectingStream::Stream(now), ..) if Arc::ptr_eq(now, &stream) => {
                return Readiness::of_events(0);
            }
            // Another thread has changed the socket meanwhile.
            _ => {}
        }
    }
}

fn poll_stream(stream: &Stream, events: c_int, waker: &Waker) -> c_int {
    let interest = match (events & TPA_POLLIN != 0, events & TPA_POLLOUT != 0) {
        (true, true) => Interest::Both,
        (false, true) => Interest::Write,
        _ => Interest::Read,
    };
    let ready = match stream {
        Stream::Wide(stream) => stream.poll_ready(interest, &Context::from_waker(waker)),
        Stream::Tpa(stream) => stream.poll_ready(interest, &Context::from_waker(waker)),
        Stream::Tcp(tcp) => {
            // An aborted connection is closed in the kernel too.
            let _ = tcp.abort_if_silent();
            poll_tcp(stream, events)
        }
    };
    let flags = [(ready.readable, TPA_POLLIN), (ready.writable, TPA_POLLOUT), (ready.over, TPA_POLLHUP)];
    flags.into_iter().filter(|(holds, _)| *holds).fold(0, |all, (_, flag)| all | flag)
}

fn poll_tcp(stream: &Stream, events: c_int) -> Ready {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut polled = [PollFd::new(stream, tcp_events(events))];
    // A descriptor that cannot be polled has no events.
    let _ = poll(&mut polled, Some(&at_once));
    let found = polled[0].revents();
    let over = found.intersects(PollFlags::HUP | PollFlags::ERR);
    Ready {
        readable: over || found.contains(PollFlags::IN),
        writable: over || found.contains(PollFlags::OUT),
        over,
    }
}

fn tcp_events(events: c_int) -> PollFlags {
    let asked = [(TPA_POLLIN, PollFlags::IN), (TPA_POLLOUT, PollFlags::OUT)];
    asked.into_iter().filter(|(event, _)| events & event != 0).map(|(_, flag)| flag).collect()
}

fn is_readable(socket: &Socket) -> bool {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    poll(&mut [PollFd::new(socket, PollFlags::IN)], Some(&at_once)).is_ok_and(|ready| ready > 0)
}

fn notifier() -> Result<Arc<Notifier>> {
    NOTIFIER.with(|bell| {
        if let Some(bell) = bell.get() {
            return Ok(Arc::clone(bell));
        }
        let made = Arc::new(Notifier(eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?));
        Ok(Arc::clone(bell.get_or_init(|| made)))
    })
}

fn clear(bell: &Notifier) {
    // Fails if the bell has not rung.
    let _ = rustix::io::read(&bell.0, &mut [0u8; 8]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::tpa_option::{TPA_NONBLOCK, TPA_PROTOCOL};
    use crate::abi::tpa_protocol::TPA_PROTOCOL_TPA_OR_TCP;
    use crate::socket::CloseMode;
    use std::cell::RefCell;

    /// Longer than any step of a test.
    const LONG: Duration = Duration::from_secs(30);

    thread_local! {
        /// Work of another thread that happens once between the look at a socket and the sleep.
        static MEANWHILE: RefCell<Option<Box<dyn FnOnce()>>> = const { RefCell::new(None) };
    }

    /// Runs the work that is due after a look at a socket.
    pub(super) fn interleave() {
        if let Some(work) = MEANWHILE.take() {
            work();
        }
    }

    fn socket() -> Socket {
        let socket = Socket::new().unwrap();
        socket.set(TPA_PROTOCOL, &(TPA_PROTOCOL_TPA_OR_TCP as c_int).to_ne_bytes()).unwrap();
        socket.set(TPA_NONBLOCK, &1i32.to_ne_bytes()).unwrap();
        socket
    }

    fn listener() -> Socket {
        let listener = socket();
        listener.bind("127.0.0.1:0".parse().unwrap()).unwrap();
        listener.listen(8).unwrap();
        listener
    }

    /// Polls the socket while `meanwhile` runs. Returns the events; 0 if the poll reached its time limit.
    fn found(handle: c_int, events: c_int, meanwhile: impl FnOnce() + 'static) -> c_int {
        MEANWHILE.set(Some(Box::new(meanwhile)));
        let mut entries = [tpa_pollfd { handle, events: events as c_short, revents: 0 }];
        let began = now();
        wait(&mut entries, Some(LONG)).unwrap();
        let slept = began.elapsed() >= LONG;
        if slept { 0 } else { entries[0].revents.into() }
    }

    #[test]
    fn a_selection_between_poll_and_sleep_is_noticed() {
        let listener = listener();
        let handle = table::insert(socket());
        let connecting = table::get(handle).unwrap();
        let refusal = connecting.connect(listener.local().unwrap()).unwrap_err();
        assert_eq!(refusal.errno, libc::EINPROGRESS);
        let meanwhile = move || {
            while matches!(&*connecting.updated_state(), State::Connecting(..)) {
                std::thread::yield_now();
            }
        };
        assert_eq!(found(handle, TPA_POLLOUT, meanwhile), TPA_POLLOUT);
        table::remove(handle).unwrap().end(CloseMode::Abort).unwrap();
    }

    #[test]
    fn a_refusal_between_poll_and_sleep_is_noticed() {
        let free = listener().local().unwrap();
        let handle = table::insert(socket());
        let connecting = table::get(handle).unwrap();
        assert_eq!(connecting.connect(free).unwrap_err().errno, libc::EINPROGRESS);
        let meanwhile = move || {
            while matches!(&*connecting.updated_state(), State::Connecting(..)) {
                std::thread::yield_now();
            }
        };
        assert_ne!(found(handle, TPA_POLLOUT, meanwhile) & TPA_POLLERR, 0);
        table::remove(handle).unwrap().end(CloseMode::Abort).unwrap();
    }

    #[test]
    fn a_listener_closed_between_poll_and_sleep_is_noticed() {
        let handle = table::insert(listener());
        let listening = table::get(handle).unwrap();
        let meanwhile = move || listening.end(CloseMode::Abort).unwrap();
        assert_eq!(found(handle, TPA_POLLIN, meanwhile), TPA_POLLHUP);
        table::remove(handle).unwrap();
    }

    #[test]
    fn a_connection_aborted_between_poll_and_sleep_is_noticed() {
        let listener = listener();
        let handle = table::insert(socket());
        let connected = table::get(handle).unwrap();
        let _ = connected.connect(listener.local().unwrap());
        assert_eq!(found(handle, TPA_POLLOUT, || {}), TPA_POLLOUT);
        let meanwhile = move || connected.end(CloseMode::Abort).unwrap();
        assert_eq!(found(handle, TPA_POLLIN, meanwhile), TPA_POLLHUP);
        table::remove(handle).unwrap();
    }
}
