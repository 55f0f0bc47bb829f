//! The server's part: it takes connections of both kinds at one port, and carries out one test after another.

use super::client::connected;
use super::control::{Bell, Control, LOOK, Side, out_of_turn};
use super::course::{Course, Role};
use super::error::{Error, Reason, Refusal};
use super::message::{Cookie, Message};
use super::plan::{DEFAULT_CWND_MAX, Direction, Plan, Transport};
use super::report::Report;
use super::stream::Stream;
use super::{Watch, now, pump};
use crate::tpa::{self, TpaListener};
use rustix::event::{PollFd, PollFlags, Timespec, poll};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, SyncSender, channel, sync_channel};
use std::sync::{Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

/// How long a new connection may take to say what it is.
const GREETING: Duration = Duration::from_secs(10);
/// How long a client may take from the acceptance of its plan until all streams are there, and again until it starts.
const SET_UP: Duration = Duration::from_secs(30);
/// Connections that may be about to say what they are, at the same time. More are closed.
const GREETERS: usize = 256;
/// How long a client is kept waiting before it is told that a test is going on: that one may just be over.
const ENDING: Duration = Duration::from_secs(2);
/// How often it is looked whether it is.
const POLL: Duration = Duration::from_millis(10);
/// Pause after an accept that failed, for want of descriptors perhaps.
const PAUSE: Duration = Duration::from_millis(100);
/// How often it looks whether it is to end.
const LOOK_WAIT: Timespec = Timespec { tv_sec: 0, tv_nsec: 100_000_000 };
/// How often a port is looked for that is free for both transports.
const ATTEMPTS: usize = 16;

/// Listens for clients, over TPA at a UDP port and over TCP at the port of the same number.
///
/// One test at a time, as two would measure each other: who comes meanwhile is told so. There is no authentication:
/// whoever reaches the port may have a test of up to a day.
#[derive(Debug)]
pub struct Server {
    tcp: TcpListener,
    tpa: TpaListener,
}

/// How many tests a server carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tests {
    /// Until it is interrupted.
    All,
    /// One, whether it succeeds or not; connections that came to no test do not count.
    One,
}

/// Where greeters bring what they got.
struct Desk {
    /// The test that waits for its streams.
    open: Mutex<Option<Open>>,
    /// Whether a test is going on, or about to.
    busy: AtomicBool,
    tests: SyncSender<(Control, Plan)>,
    greeters: AtomicUsize,
    closing: AtomicBool,
}

/// A test that waits for its streams.
struct Open {
    cookie: Cookie,
    transport: &'static str,
    streams: Sender<(u8, Stream)>,
}

impl Server {
    /// Listens; port 0 is any that is free for both.
    ///
    /// # Errors
    /// What the system says of the address.
    pub fn bind(address: IpAddr, port: u16) -> io::Result<Self> {
        let attempts = if port == 0 { ATTEMPTS } else { 1 };
        let mut result = Err(ErrorKind::AddrInUse.into());
        for _ in 0..attempts {
            result = Self::bind_both(SocketAddr::new(address, port));
            if result.is_ok() {
                break;
            }
        }
        result
    }

    fn bind_both(address: SocketAddr) -> io::Result<Self> {
        let tcp = TcpListener::bind(address)?;
        tcp.set_nonblocking(true)?;
        let tpa = TpaListener::bind(tcp.local_addr()?, &tpa::config(DEFAULT_CWND_MAX))?;
        tpa.set_nonblocking(true);
        Ok(Self { tcp, tpa })
    }

    /// Where it listens, for both.
    ///
    /// # Errors
    /// If the system fails.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Carries out tests until `watch` interrupts. `period`: of intervals, above zero; `None`: none.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; with [`Tests::One`], why that one failed.
    pub fn serve(&self, tests: Tests, period: Option<Duration>, watch: &mut dyn Watch) -> Result<(), Error> {
        let (sender, receiver) = sync_channel(1);
        let desk = Desk {
            open: Mutex::new(None),
            busy: AtomicBool::new(false),
            tests: sender,
            greeters: AtomicUsize::new(0),
            closing: AtomicBool::new(false),
        };
        thread::scope(|scope| {
            scope.spawn(|| self.accept_all(scope, &desk));
            let result = work(&desk, &receiver, tests, period, watch);
            desk.closing.store(true, Relaxed);
            result
        })
    }

    /// Takes connections until the desk closes.
    fn accept_all<'scope>(&'scope self, scope: &'scope thread::Scope<'scope, '_>, desk: &'scope Desk) {
        while !desk.closing.load(Relaxed) {
            let mut both = [PollFd::new(&self.tcp, PollFlags::IN), PollFd::new(&self.tpa, PollFlags::IN)];
            // Woken early or late, it looks again.
            let _ = poll(&mut both, Some(&LOOK_WAIT));
            for accepted in [self.accept_tcp(), self.accept_tpa()] {
                match accepted {
                    Ok(stream) => desk.greet_aside(scope, stream),
                    Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => thread::sleep(PAUSE),
                }
            }
        }
    }

    fn accept_tcp(&self) -> io::Result<Stream> {
        self.tcp.accept().map(|(stream, _)| Stream::Tcp(stream))
    }

    fn accept_tpa(&self) -> io::Result<Stream> {
        self.tpa.accept().map(|(stream, _)| Stream::Tpa(stream))
    }
}

/// Carries out the tests that come to the desk.
fn work(
    desk: &Desk,
    tests: &Receiver<(Control, Plan)>,
    how_many: Tests,
    period: Option<Duration>,
    watch: &mut dyn Watch,
) -> Result<(), Error> {
    loop {
        if watch.interrupted() {
            return Err(Error::Interrupted);
        }
        let (control, plan) = match tests.recv_timeout(LOOK) {
            Ok(test) => test,
            Err(RecvTimeoutError::Timeout) => continue,
            Err(RecvTimeoutError::Disconnected) => unreachable!("the desk has the other end"),
        };
        let result = carry_out(desk, control, &plan, period, watch);
        desk.close_test();
        watch.ended(&result);
        match (how_many, result) {
            (_, Err(Error::Interrupted)) => return Err(Error::Interrupted),
            (Tests::One, result) => return result.map(|_| ()),
            (Tests::All, _) => {}
        }
    }
}

/// One test, from the acceptance of its plan.
fn carry_out(
    desk: &Desk,
    mut control: Control,
    plan: &Plan,
    period: Option<Duration>,
    watch: &mut dyn Watch,
) -> Result<Report, Error> {
    let mut streams = Vec::new();
    let result = converse(desk, &mut control, plan, &mut streams, period, watch);
    match &result {
        Ok(_) => control.close(),
        Err(error) => {
            if let Some(refusal) = error.told() {
                control.fail(refusal);
            }
        }
    }
    streams.into_iter().for_each(Stream::abort);
    result
}

fn converse(
    desk: &Desk,
    control: &mut Control,
    plan: &Plan,
    streams: &mut Vec<Stream>,
    period: Option<Duration>,
    watch: &mut dyn Watch,
) -> Result<Report, Error> {
    watch.accepted(control.peer_addr()?, plan);
    let role = match plan.direction {
        Direction::Forward => Role::Receives,
        Direction::Reverse => Role::Sends,
    };
    if let (Role::Sends, Transport::Tcp { congestion_control: Some(wanted) }) = (role, &plan.transport) {
        wanted.check_here()?;
    }
    let (cookie, arriving) = desk.open_test(plan)?;
    control.send(&Message::Accept { cookie })?;
    *streams = gather(control, plan, arriving, watch)?;
    desk.open().take();
    for (stream, number) in streams.iter().zip(1..) {
        stream.set_patience(pump::CALL).map_err(|source| Error::Data { stream: number, source })?;
        if role == Role::Sends {
            stream.prepare_to_send(&plan.transport)?;
        }
    }
    watch.connected(&connected(streams)?);
    control.send(&Message::Ready)?;
    match control.expect(SET_UP, "start the test", &|| watch.interrupted())? {
        Message::Start => {}
        message => return Err(out_of_turn(&message)),
    }
    Course { plan, role, streams, control, period, watch }.run()
}

/// The streams of a test, as they come, in their order.
fn gather(
    control: &mut Control,
    plan: &Plan,
    arriving: Receiver<(u8, Stream)>,
    watch: &dyn Watch,
) -> Result<Vec<Stream>, Error> {
    let bell = Bell::new().map_err(Error::Control)?;
    let mut places: Vec<Option<Stream>> = (0..plan.streams).map(|_| None).collect();
    let until = now() + SET_UP;
    while places.iter().any(Option::is_none) {
        if watch.interrupted() {
            return Err(Error::Interrupted);
        }
        if now() >= until {
            return Err(Error::Late("bring all data streams"));
        }
        match arriving.recv_timeout(LOOK) {
            // The first to come has the place.
            Ok((index, stream)) => match places.get_mut(usize::from(index)) {
                Some(place @ None) => *place = Some(stream),
                _ => stream.abort(),
            },
            Err(_) => {
                if let Some(message) = control.receive(Duration::ZERO, &bell)? {
                    return Err(out_of_turn(&message));
                }
            }
        }
    }
    Ok(places.into_iter().flatten().collect())
}

impl Desk {
    /// Hears on a thread of its own what a new connection is.
    fn greet_aside<'scope>(&'scope self, scope: &'scope thread::Scope<'scope, '_>, stream: Stream) {
        if self.greeters.fetch_add(1, Relaxed) >= GREETERS {
            self.greeters.fetch_sub(1, Relaxed);
            return stream.abort();
        }
        let greet = || {
            self.greet(stream);
            self.greeters.fetch_sub(1, Relaxed);
        };
        if thread::Builder::new().name("greeter".into()).spawn_scoped(scope, greet).is_err() {
            self.greeters.fetch_sub(1, Relaxed);
        }
    }

    fn greet(&self, stream: Stream) {
        let transport = protocol(&stream);
        let Ok(mut control) = Control::new(Side::Server, stream) else { return };
        let said = control.expect(GREETING, "say what it wants", &|| self.closing.load(Relaxed));
        match said {
            Ok(Message::Plan(plan)) => self.take_plan(control, plan, transport),
            Ok(Message::Join { cookie, stream }) => self.take_stream(control, transport, cookie, stream),
            Ok(message) => {
                if let Some(refusal) = out_of_turn(&message).told() {
                    control.fail(refusal);
                }
            }
            // Whoever that is: it would not understand.
            Err(Error::Protocol(_)) => control.into_stream().abort(),
            Err(error) => {
                if let Some(refusal) = error.told() {
                    control.fail(refusal);
                }
            }
        }
    }

    fn take_plan(&self, control: Control, plan: Plan, transport: &'static str) {
        let wrong = plan.validate().err().and_then(|error| error.told());
        if let Some(refusal) = wrong {
            return control.fail(refusal);
        }
        if plan.transport.protocol() != transport {
            let text = format!("a test over {} is asked for over it", plan.transport.protocol());
            return control.fail(Refusal::new(Reason::Plan, text));
        }
        let until = now() + ENDING;
        while self.busy.swap(true, Relaxed) {
            if now() < until && !self.closing.load(Relaxed) {
                thread::sleep(POLL);
                continue;
            }
            return control.fail(Refusal::new(Reason::Busy, "a test is going on; try again later"));
        }
        // There is room for one, and nobody waits once it closes.
        if self.tests.try_send((control, plan)).is_err() {
            self.busy.store(false, Relaxed);
        }
    }

    fn take_stream(&self, control: Control, transport: &'static str, cookie: Cookie, index: u8) {
        let stream = control.into_stream();
        match &*self.open() {
            Some(open) if open.cookie == cookie && open.transport == transport => {
                // If the test has gone, so does the stream.
                let _ = open.streams.send((index, stream));
            }
            _ => stream.abort(),
        }
    }

    /// Streams with this cookie belong to a test from now on.
    fn open_test(&self, plan: &Plan) -> Result<(Cookie, Receiver<(u8, Stream)>), Error> {
        let mut cookie = Cookie::default();
        getrandom::fill(&mut cookie)
            .map_err(|e| crate::Error::system("asking for random bytes", io::Error::other(e)))?;
        let (streams, arriving) = channel();
        *self.open() = Some(Open { cookie, transport: plan.transport.protocol(), streams });
        Ok((cookie, arriving))
    }

    fn close_test(&self) {
        *self.open() = None;
        self.busy.store(false, Relaxed);
    }

    fn open(&self) -> MutexGuard<'_, Option<Open>> {
        self.open.lock().expect("nobody panics while holding it")
    }
}

fn protocol(stream: &Stream) -> &'static str {
    match stream {
        Stream::Tpa(_) => "TPA",
        Stream::Tcp(_) => "TCP",
    }
}
