//! Hears what new connections are, and brings them to where they belong.

use super::control::{Bell, Control, LOOK, Side, wait_for};
use super::now;
use super::plan::Plan;
use super::protocol::{COOKIE, Cookie, State};
use super::stream::{self, Stream};
use crate::admission::{Admission, Place};
use crate::wide::WideListener;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::thread;
use std::time::Duration;

/// How long a new connection may take to say what it is.
const GREETING: Duration = Duration::from_secs(10);
/// Connections that may be about to say what they are, at the same time, beside the streams that a test waits for. One more, and one of the
/// heaviest prefix is closed.
const GREETERS: usize = 32;
/// How long a client is kept waiting before it is told that a test is going on: that one may just be over.
const ENDING: Duration = Duration::from_secs(2);
/// How often it is looked whether it is.
const POLL: Duration = Duration::from_millis(10);
/// How often who waits for connections looks whether it is to end.
pub(super) const LOOK_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Where greeters bring what they got.
pub(super) struct Desk {
    /// The test that waits for its streams.
    open: Mutex<Option<Open>>,
    /// Whether a test is going on, or about to.
    busy: AtomicBool,
    tests: SyncSender<(Control, Cookie)>,
    admission: Arc<Admission>,
    closing: AtomicBool,
}

/// A test that waits for its streams.
struct Open {
    cookie: Cookie,
    transport: &'static str,
    client: IpAddr,
    admission: Arc<Admission>,
    streams: Sender<(u64, Stream)>,
}

impl Desk {
    /// One that brings the control connections of tests to `tests`.
    pub(super) fn new(tests: SyncSender<(Control, Cookie)>) -> Self {
        Self {
            open: Mutex::new(None),
            busy: AtomicBool::new(false),
            tests,
            admission: Admission::new(GREETERS),
            closing: AtomicBool::new(false),
        }
    }

    /// Nobody waits for new connections any more.
    pub(super) fn close(&self) {
        self.closing.store(true, Relaxed);
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// All streams are there.
    pub(super) fn has_all(&self) {
        self.open().take();
    }

    /// Hears on a thread of its own what a new connection is.
    pub(super) fn greet_aside<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        stream: Stream,
        turn: u64,
    ) {
        // A connection without a peer has ended.
        let Ok(place) = self.admit(&stream) else { return stream.abort() };
        let greet = move || self.greet(stream, turn, &place);
        // Without a thread the connection is closed, and its place is free.
        let _ = thread::Builder::new().name("greeter".into()).spawn_scoped(scope, greet);
    }

    /// A place for a new connection: among those of the test that waits for streams from its address, or among the others.
    fn admit(&self, stream: &Stream) -> io::Result<Place> {
        let from = stream.peer_addr()?.ip();
        let awaited = self
            .open()
            .as_ref()
            .filter(|open| open.client == from.to_canonical())
            .map(|open| open.admission.clone());
        Ok(awaited.as_ref().unwrap_or(&self.admission).enter(from))
    }

    /// Takes connections of one test.
    pub(super) fn accept_wide<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        listener: &WideListener,
        over: &AtomicBool,
    ) {
        let mut turn = 0;
        while !over.load(Relaxed) {
            let mut waiting = [PollFd::new(listener, PollFlags::IN)];
            // Woken early or late, it looks again.
            let _ = poll(&mut waiting, Some(&LOOK_WAIT));
            while let Ok((stream, _)) = listener.accept() {
                turn += 1;
                self.greet_aside(scope, Stream::own(stream), turn);
            }
        }
    }

    /// All kinds of connections begin with a cookie: that of the test that waits for streams, or a new one.
    fn greet(&self, stream: Stream, turn: u64, place: &Place) {
        let transport = stream.protocol();
        let Ok(control) = Control::new(Side::Server, stream) else { return };
        let Some(cookie) = self.hear_cookie(&control, place) else { return control.into_stream().abort() };
        let stream = control.into_stream();
        if let Some(open) = &*self.open()
            && open.cookie == cookie
            && open.transport == transport
        {
            // If the test has gone, so does the stream.
            let _ = open.streams.send((turn, stream));
            return;
        }
        if let Ok(control) = Control::new(Side::Server, stream) {
            self.take_test(control, cookie, place);
        }
    }

    /// 36 of the letters and digits that cookies are made of, and a zero; `None`: it is something else, or has lost its place.
    fn hear_cookie(&self, control: &Control, place: &Place) -> Option<Cookie> {
        let (mut cookie, mut heard) = ([0; COOKIE], 0);
        let bell = Arc::new(Bell::new().ok()?);
        place.wake_when_lost(&Waker::from(Arc::clone(&bell)));
        let until = now() + GREETING;
        while heard < COOKIE {
            if now() >= until || place.is_lost() || self.closing.load(Relaxed) {
                return None;
            }
            if !wait_for(control.stream(), &bell, LOOK).ok()? {
                continue;
            }
            match io::Read::read(&mut control.stream(), &mut cookie[heard..]) {
                Ok(0) => return None,
                Ok(n) => heard += n,
                Err(e) if stream::is_timeout(&e) => {}
                Err(_) => return None,
            }
            if !cookie[..heard.min(COOKIE - 1)].iter().all(u8::is_ascii_alphanumeric) {
                return None;
            }
        }
        (cookie[COOKIE - 1] == 0).then_some(cookie)
    }

    fn take_test(&self, mut control: Control, cookie: Cookie, place: &Place) {
        let until = now() + ENDING;
        while self.busy.swap(true, Relaxed) {
            if now() < until && !place.is_lost() && !self.closing.load(Relaxed) {
                thread::sleep(POLL);
                continue;
            }
            if control.say(State::AccessDenied).is_ok() {
                control.close();
            }
            return;
        }
        // There is room for one, and nobody waits once it closes.
        if self.tests.try_send((control, cookie)).is_err() {
            self.busy.store(false, Relaxed);
        }
    }

    /// Streams with this cookie belong to a test from now on.
    pub(super) fn open_test(&self, plan: &Plan, client: IpAddr, cookie: Cookie) -> Receiver<(u64, Stream)> {
        let (streams, arriving) = channel();
        // Connections from the client's address that are none of its streams have as many.
        let admission = Admission::new(2 * plan.all_streams());
        let (transport, client) = (plan.transport.protocol(), client.to_canonical());
        *self.open() = Some(Open { cookie, transport, client, admission, streams });
        arriving
    }

    pub(super) fn close_test(&self) {
        *self.open() = None;
        self.busy.store(false, Relaxed);
    }

    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().expect("nobody panics while holding it")
    }
}
