//! Waiting for many sockets (`tpa_poll`).

use crate::abi::{TPA_POLLERR, TPA_POLLHUP, TPA_POLLIN, TPA_POLLNVAL, TPA_POLLOUT, tpa_pollfd};
use crate::clock::{now, timespec};
use crate::error::Result;
use crate::socket::{LONGEST_SLEEP, Socket, State};
use crate::table;
use crate::transport::{Begun, Stream};
use hopline_streams::streams::{Interest, Ready};
use libc::{c_int, c_short};
use rustix::event::{EventfdFlags, PollFd, PollFlags, Timespec, eventfd, poll};
use std::cell::OnceCell;
use std::os::fd::OwnedFd;
use std::sync::Arc;
use std::task::{Context, Wake, Waker};
use std::time::Duration;

/// Event counter that becomes readable when a stream that a thread waits for has changed.
#[derive(Debug)]
struct Bell(OwnedFd);

impl Wake for Bell {
    fn wake(self: Arc<Self>) {
        // A write fails only if the counter is at its maximum, hence above zero already.
        let _ = rustix::io::write(&self.0, &1u64.to_ne_bytes());
    }
}

thread_local! {
    /// One bell for each thread. Streams that have not changed have it registered already.
    static BELL: OnceCell<Arc<Bell>> = const { OnceCell::new() };
}

/// File descriptor that a thread waits for, in addition to the bell.
enum Awaited {
    /// Listener.
    Listener(Arc<Socket>),
    /// TCP connection, which rings no bell.
    Tcp(Arc<Stream>, PollFlags),
    /// Selection of a protocol, of which another thread may consume the result.
    Choice(Arc<Socket>),
}

impl Awaited {
    /// Returns the longest sleep. Another thread may consume the result of a protocol selection, and the kernel does not
    /// report a silent peer.
    fn next_look(&self) -> Option<Duration> {
        match self {
            Self::Listener(_) => None,
            Self::Choice(_) => Some(LONGEST_SLEEP),
            Self::Tcp(stream, _) => match &**stream {
                Stream::Tcp(tcp) => tcp.next_look(),
                Stream::Wide(_) | Stream::Tpa(_) => None,
            },
        }
    }

    fn poll_fd(&self) -> PollFd<'_> {
        match self {
            Self::Listener(socket) | Self::Choice(socket) => PollFd::new(&**socket, PollFlags::IN),
            Self::Tcp(stream, flags) => PollFd::new(&**stream, *flags),
        }
    }
}

/// Waits until one of `entries` is ready, for at most `limit`, and fills in the events. Returns the number of ready entries.
pub(crate) fn wait(entries: &mut [tpa_pollfd], limit: Option<Duration>) -> Result<usize> {
    let (bell, began) = (bell()?, now());
    let waker = Waker::from(Arc::clone(&bell));
    loop {
        silence(&bell);
        let sockets: Vec<_> = entries.iter().map(|entry| table::get(entry.handle).ok()).collect();
        let mut all = Vec::new();
        for (entry, socket) in entries.iter_mut().zip(&sockets) {
            let look = match socket {
                _ if entry.handle < 0 => Look::of(0),
                None => Look::of(TPA_POLLNVAL),
                Some(socket) => look(socket, entry.events.into(), &waker),
            };
            // The value is a constant of a few bits.
            entry.revents = look.found as c_short;
            all.extend(look.awaited);
            #[cfg(test)]
            tests::interleave();
        }
        let ready = entries.iter().filter(|entry| entry.revents != 0).count();
        let left = limit.map(|limit| limit.saturating_sub(began.elapsed()));
        if ready > 0 || left.is_some_and(|left| left.is_zero()) {
            return Ok(ready);
        }
        let sleep = all.iter().filter_map(Awaited::next_look).chain(left).min();
        let mut polled = vec![PollFd::new(&bell.0, PollFlags::IN)];
        polled.extend(all.iter().map(Awaited::poll_fd));
        poll(&mut polled, sleep.map(timespec).as_ref())?;
    }
}

/// State of a socket at one moment: its events, and the source of the next change. Both come from one look, since the socket
/// may change between two.
struct Look {
    found: c_int,
    /// Descriptor of a change that wakes no waker. `None`: the waker is woken, or nothing changes by itself.
    awaited: Option<Awaited>,
}

impl Look {
    const fn of(found: c_int) -> Self {
        Self { found, awaited: None }
    }
}

/// Returns the state of a socket. The waker is woken when it may have changed, unless a descriptor is awaited.
fn look(socket: &Arc<Socket>, events: c_int, waker: &Waker) -> Look {
    let asked = TPA_POLLERR | TPA_POLLHUP | events;
    loop {
        let stream = match &*socket.progressed() {
            State::Idle(_) | State::Closed => return Look::of(TPA_POLLHUP),
            State::Failed(..) => {
                return Look::of((TPA_POLLERR | TPA_POLLHUP | TPA_POLLIN | TPA_POLLOUT) & asked);
            }
            State::Listening(_) if events & TPA_POLLIN == 0 => return Look::of(0),
            State::Listening(_) => {
                let found = if is_readable(socket) { TPA_POLLIN } else { 0 };
                return Look { found, awaited: Some(Awaited::Listener(Arc::clone(socket))) };
            }
            State::Calling(Begun::TpaOrTcp(_), ..) => {
                return Look { found: 0, awaited: Some(Awaited::Choice(Arc::clone(socket))) };
            }
            State::Calling(Begun::Stream(stream), ..) | State::Open(stream) => Arc::clone(stream),
        };
        let found = look_at_stream(&stream, events, waker);
        let awaited = matches!(&*stream, Stream::Tcp(_))
            .then(|| Awaited::Tcp(Arc::clone(&stream), asked_of_tcp(events)));
        // The state of the connection, and its check, are examined before any event of the stream is reported, and again
        // after it wakes this thread.
        match &*socket.progressed() {
            State::Open(now) if Arc::ptr_eq(now, &stream) => return Look { found: found & asked, awaited },
            State::Calling(Begun::Stream(now), ..) if Arc::ptr_eq(now, &stream) => return Look::of(0),
            // Another thread has changed the socket meanwhile.
            _ => {}
        }
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
        Stream::Tcp(tcp) => {
            // An aborted connection is closed in the kernel too.
            let _ = tcp.is_given_up();
            look_at_tcp(stream, events)
        }
    };
    let flags = [(ready.readable, TPA_POLLIN), (ready.writable, TPA_POLLOUT), (ready.over, TPA_POLLHUP)];
    flags.into_iter().filter(|(holds, _)| *holds).fold(0, |all, (_, flag)| all | flag)
}

fn look_at_tcp(stream: &Stream, events: c_int) -> Ready {
    let at_once = Timespec { tv_sec: 0, tv_nsec: 0 };
    let mut polled = [PollFd::new(stream, asked_of_tcp(events))];
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

fn asked_of_tcp(events: c_int) -> PollFlags {
    let asked = [(TPA_POLLIN, PollFlags::IN), (TPA_POLLOUT, PollFlags::OUT)];
    asked.into_iter().filter(|(event, _)| events & event != 0).map(|(_, flag)| flag).collect()
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
    // Fails if the bell has not rung.
    let _ = rustix::io::read(&bell.0, &mut [0u8; 8]);
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::abi::tpa_option::{TPA_NONBLOCK, TPA_PROTOCOL};
    use crate::abi::tpa_protocol::TPA_PROTOCOL_TPA_OR_TCP;
    use crate::socket::End;
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
    fn a_choice_that_falls_between_the_look_and_the_sleep_is_noticed() {
        let listener = listener();
        let handle = table::insert(socket());
        let connecting = table::get(handle).unwrap();
        let refusal = connecting.connect(listener.local().unwrap()).unwrap_err();
        assert_eq!(refusal.errno, libc::EINPROGRESS);
        let meanwhile = move || {
            while matches!(&*connecting.progressed(), State::Calling(..)) {
                std::thread::yield_now();
            }
        };
        assert_eq!(found(handle, TPA_POLLOUT, meanwhile), TPA_POLLOUT);
        table::remove(handle).unwrap().end(End::Abort).unwrap();
    }

    #[test]
    fn a_refusal_that_comes_between_the_look_and_the_sleep_is_noticed() {
        let free = listener().local().unwrap();
        let handle = table::insert(socket());
        let connecting = table::get(handle).unwrap();
        assert_eq!(connecting.connect(free).unwrap_err().errno, libc::EINPROGRESS);
        let meanwhile = move || {
            while matches!(&*connecting.progressed(), State::Calling(..)) {
                std::thread::yield_now();
            }
        };
        assert_ne!(found(handle, TPA_POLLOUT, meanwhile) & TPA_POLLERR, 0);
        table::remove(handle).unwrap().end(End::Abort).unwrap();
    }

    #[test]
    fn a_listener_that_is_closed_between_the_look_and_the_sleep_is_noticed() {
        let handle = table::insert(listener());
        let listening = table::get(handle).unwrap();
        let meanwhile = move || listening.end(End::Abort).unwrap();
        assert_eq!(found(handle, TPA_POLLIN, meanwhile), TPA_POLLHUP);
        table::remove(handle).unwrap();
    }

    #[test]
    fn a_connection_that_is_aborted_between_the_look_and_the_sleep_is_noticed() {
        let listener = listener();
        let handle = table::insert(socket());
        let connected = table::get(handle).unwrap();
        let _ = connected.connect(listener.local().unwrap());
        assert_eq!(found(handle, TPA_POLLOUT, || {}), TPA_POLLOUT);
        let meanwhile = move || connected.end(End::Abort).unwrap();
        assert_eq!(found(handle, TPA_POLLIN, meanwhile), TPA_POLLHUP);
        table::remove(handle).unwrap();
    }
}
