//! Reads the cookie of each new connection and passes the connection to its test.

use super::control::{Control, INTERRUPT_CHECK, Notifier, Side, wait_for};
use super::now;
use super::plan::Plan;
use super::protocol::{COOKIE_LEN, Cookie, State};
use super::stream::{self, Stream};
use hopline_streams::admission::{Admission, AdmissionSlot};
use hopline_streams::wide::WideListener;
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io;
use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::Waker;
use std::thread;
use std::time::Duration;

/// Timeout for the cookie of a new connection.
const COOKIE_TIMEOUT: Duration = Duration::from_secs(10);
/// Limit of connections that have not sent a cookie yet, beside the streams that a test waits for. Beyond it, a
/// connection of the prefix with the most connections is closed.
/// heaviest prefix is closed.
const MAX_PENDING: usize = 32;
/// Time that a client waits before it is told that another test is running, in case that test is about to end.
const BUSY_DELAY: Duration = Duration::from_secs(2);
/// Interval between checks whether the running test has ended.
const POLL: Duration = Duration::from_millis(10);
/// Interval between checks of the accept loops whether to end.
pub(super) const ACCEPT_POLL: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };

/// Destination of new connections.
pub(super) struct Dispatcher {
    /// The test that waits for its streams.
    open_test: Mutex<Option<OpenTest>>,
    /// `true` if a test is running or about to start.
    busy: AtomicBool,
    tests: SyncSender<(Control, Cookie)>,
    admission: Arc<Admission>,
    closing: AtomicBool,
}

/// A test that waits for its streams.
struct OpenTest {
    cookie: Cookie,
    transport: &'static str,
    client: IpAddr,
    admission: Arc<Admission>,
    streams: Sender<(u64, Stream)>,
}

impl Dispatcher {
    /// Creates a desk that sends the control connections of tests to `tests`.
    pub(super) fn new(tests: SyncSender<(Control, Cookie)>) -> Self {
        Self {
            open_test: Mutex::new(None),
            busy: AtomicBool::new(false),
            tests,
            admission: Admission::new(MAX_PENDING),
            closing: AtomicBool::new(false),
        }
    }

    /// Marks the desk as closing: no further connections are accepted.
    pub(super) fn close(&self) {
        self.closing.store(true, Relaxed);
    }

    pub(super) fn is_closing(&self) -> bool {
        self.closing.load(Relaxed)
    }

    /// Marks all streams of the test as connected.
    pub(super) fn mark_connected(&self) {
        self.lock_test().take();
    }

    /// Reads the cookie of a new connection on a thread of its own.
    pub(super) fn spawn_cookie_reader<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        stream: Stream,
        turn: u64,
    ) {
        // A connection without a peer address has ended.
        let Ok(place) = self.reserve_slot(&stream) else { return stream.abort() };
        let greet = move || self.dispatch(stream, turn, &place);
        // If no thread can be started, the connection is closed and its place is freed.
        let _ = thread::Builder::new().name("greeter".into()).spawn_scoped(scope, greet);
    }

    /// Reserves a place for a new connection: with the test that waits for streams from its address, or with the other
    /// new connections.
    fn reserve_slot(&self, stream: &Stream) -> io::Result<AdmissionSlot> {
        let from = stream.peer_addr()?.ip();
        let awaited = self
            .lock_test()
            .as_ref()
            .filter(|open| open.client == from.to_canonical())
            .map(|open| open.admission.clone());
        Ok(awaited.as_ref().unwrap_or(&self.admission).enter(from))
    }

    /// Accepts TPA-wide connections of one test.
    pub(super) fn accept_wide<'scope>(
        &'scope self,
        scope: &'scope thread::Scope<'scope, '_>,
        listener: &WideListener,
        over: &AtomicBool,
    ) {
        let mut turn = 0;
        while !over.load(Relaxed) {
            let mut waiting = [PollFd::new(listener, PollFlags::IN)];
            // After an early or failed wake-up the loop checks again.
            let _ = poll(&mut waiting, Some(&ACCEPT_POLL));
            while let Ok((stream, _)) = listener.accept() {
                turn += 1;
                self.spawn_cookie_reader(scope, Stream::native(stream), turn);
            }
        }
    }

    /// Reads the cookie of a connection: that of the test that waits for streams, or that of a new test.
    fn dispatch(&self, stream: Stream, turn: u64, place: &AdmissionSlot) {
        let transport = stream.protocol();
        let Ok(control) = Control::new(Side::Server, stream) else { return };
        let Some(cookie) = self.read_cookie(&control, place) else { return control.into_stream().abort() };
        let stream = control.into_stream();
        if let Some(open) = &*self.lock_test()
            && open.cookie == cookie
            && open.transport == transport
        {
            // If the test has ended, the stream is dropped.
            let _ = open.streams.send((turn, stream));
            return;
        }
        if let Ok(control) = Control::new(Side::Server, stream) {
            self.start_test(control, cookie, place);
        }
    }

    /// Reads a cookie: 36 letters and digits of the alphabet and a zero. Returns `None` for anything else, and if the
    /// connection has lost its place.
    fn read_cookie(&self, control: &Control, place: &AdmissionSlot) -> Option<Cookie> {
        let (mut cookie, mut heard) = ([0; COOKIE_LEN], 0);
        let bell = Arc::new(Notifier::new().ok()?);
        place.wake_on_eviction(&Waker::from(Arc::clone(&bell)));
        let until = now() + COOKIE_TIMEOUT;
        while heard < COOKIE_LEN {
            if now() >= until || place.is_evicted() || self.closing.load(Relaxed) {
                return None;
            }
            if !wait_for(control.stream(), &bell, INTERRUPT_CHECK).ok()? {
                continue;
            }
            match io::Read::read(&mut control.stream(), &mut cookie[heard..]) {
                Ok(0) => return None,
                Ok(n) => heard += n,
                Err(e) if stream::is_timeout(&e) => {}
                Err(_) => return None,
            }
            if !cookie[..heard.min(COOKIE_LEN - 1)].iter().all(u8::is_ascii_alphanumeric) {
                return None;
            }
        }
        (cookie[COOKIE_LEN - 1] == 0).then_some(cookie)
    }

    fn start_test(&self, mut control: Control, cookie: Cookie, place: &AdmissionSlot) {
        let until = now() + BUSY_DELAY;
        while self.busy.swap(true, Relaxed) {
            if now() < until && !place.is_evicted() && !self.closing.load(Relaxed) {
                thread::sleep(POLL);
                continue;
            }
            if control.send_state(State::AccessDenied).is_ok() {
                control.close();
            }
            return;
        }
        // The channel has room for one test; it is disconnected once the desk closes.
        if self.tests.try_send((control, cookie)).is_err() {
            self.busy.store(false, Relaxed);
        }
    }

    /// Registers a test: streams with its cookie are passed to it from now on.
    pub(super) fn register_test(
        &self,
        plan: &Plan,
        client: IpAddr,
        cookie: Cookie,
    ) -> Receiver<(u64, Stream)> {
        let (streams, arriving) = channel();
        // Connections from the client's address that are not its streams may be as many again.
        let admission = Admission::new(2 * plan.all_streams());
        let (transport, client) = (plan.transport.protocol(), client.to_canonical());
        *self.lock_test() = Some(OpenTest { cookie, transport, client, admission, streams });
        arriving
    }

    pub(super) fn unregister_test(&self) {
        *self.lock_test() = None;
        self.busy.store(false, Relaxed);
    }

    fn lock_test(&self) -> MutexGuard<'_, Option<OpenTest>> {
        self.open_test.lock().expect("nobody panics while holding it")
    }
}
