//! Server side of a test: accepts TPA and TCP connections at one port, and carries out one test after another.

use super::client::{roles, settings};
use super::control::{Control, INTERRUPT_CHECK, Notifier, Side, unexpected_state};
use super::dispatcher::{ACCEPT_POLL, Dispatcher};
use super::error::Error;
use super::native;
use super::parameters::{Agreed, Dialect, Parameters};
use super::plan::{DEFAULT_CWND_MAX, Plan, Transport};
use super::probe::Echo;
use super::protocol::{Cookie, Extra, State, UDP_CONNECT, UDP_CONNECT_LEGACY, UDP_REPLY, UDP_REPLY_LEGACY};
use super::refusal::{Code, Refusal};
use super::report::{Report, Role};
use super::stream::{Kind, Stream, set_socket_options};
use super::test_run::TestRun;
use super::{Observer, now, pump};
use hopline_streams::tpa::{self, TpaListener};
use hopline_streams::wide::{PublicKey, Trust, Wide, WideListener};
use hopline_streams::{Host, PortSharing};
use rustix::event::{PollFd, PollFlags, poll};
use socket2::{Domain, SockRef, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpListener, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, RecvTimeoutError, sync_channel};
use std::thread;
use std::time::{Duration, Instant};

/// Timeout for a client from the acceptance of its plan until all streams are connected, and again for its results.
const SETUP_TIMEOUT: Duration = Duration::from_secs(30);
/// Time that a client may spend on displaying the results.
const DISPLAY_TIMEOUT: Duration = Duration::from_secs(30);
/// Pause after a failed accept, for instance for lack of file descriptors.
const ACCEPT_BACKOFF: Duration = Duration::from_millis(100);
/// Attempts to find a port that is free for both transports.
const PORT_ATTEMPTS: usize = 16;

/// Listens for clients, over TPA at a UDP port and over TCP at the port of the same number.
///
/// It carries out one test at a time, since two would distort each other; meanwhile, other clients are told that it is
/// busy. There is no authentication: every client that reaches the port may run a test of up to a day.
#[derive(Debug)]
pub struct Server {
    tcp: TcpListener,
    tpa: TpaListener,
    max_streams: u16,
}

/// Default limit of the streams of a test, over both directions. [`Server::limit_streams`] changes it.
pub const DEFAULT_MAX_STREAMS: u16 = 128;

/// Number of tests that a server carries out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TestCount {
    /// Tests until it is interrupted.
    All,
    /// One test, successful or not. Connections that did not lead to a test do not count.
    One,
}

impl Server {
    /// Binds the server. Port 0 is any port that is free for both transports.
    ///
    /// # Errors
    /// The error of the system for the address.
    pub fn bind(address: IpAddr, port: u16) -> io::Result<Self> {
        let attempts = if port == 0 { PORT_ATTEMPTS } else { 1 };
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
        Ok(Self { tcp, tpa, max_streams: DEFAULT_MAX_STREAMS })
    }

    /// Limits the streams of a test, over both directions. Each stream takes a thread and, if the server receives, up to
    /// 128 KiB. Range 1–256; default [`DEFAULT_MAX_STREAMS`].
    #[must_use]
    pub fn limit_streams(self, most: u16) -> Self {
        Self { max_streams: most, ..self }
    }

    /// Returns the local address, which both transports share.
    ///
    /// # Errors
    /// If the system fails.
    pub fn local_addr(&self) -> io::Result<SocketAddr> {
        self.tcp.local_addr()
    }

    /// Carries out tests until `watch` interrupts. `period`: length of an interval, above zero; `None`: no intervals.
    ///
    /// # Errors
    /// [`Error::Interrupted`]; with [`TestCount::One`], the error of that test.
    pub fn serve(
        &self,
        tests: TestCount,
        period: Option<Duration>,
        watch: &mut dyn Observer,
    ) -> Result<(), Error> {
        let (sender, receiver) = sync_channel(1);
        let desk = Dispatcher::new(sender);
        thread::scope(|scope| {
            scope.spawn(|| self.accept_all(scope, &desk));
            let result = self.run_tests(&desk, &receiver, tests, period, watch);
            desk.close();
            result
        })
    }

    /// Accepts connections until the desk closes.
    fn accept_all<'scope>(&'scope self, scope: &'scope thread::Scope<'scope, '_>, desk: &'scope Dispatcher) {
        let mut turn = 0;
        while !desk.is_closing() {
            let mut both = [PollFd::new(&self.tcp, PollFlags::IN), PollFd::new(&self.tpa, PollFlags::IN)];
            // After an early or failed wake-up the loop checks again.
            let _ = poll(&mut both, Some(&ACCEPT_POLL));
            for accepted in [self.accept_tcp(), self.accept_tpa()] {
                match accepted {
                    // The order of the streams is that of the connections, not of the arrival of their cookies.
                    Ok(stream) => {
                        turn += 1;
                        desk.spawn_cookie_reader(scope, stream, turn);
                    }
                    Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                    Err(_) => thread::sleep(ACCEPT_BACKOFF),
                }
            }
        }
    }

    fn accept_tcp(&self) -> io::Result<Stream> {
        self.tcp.accept().map(|(stream, _)| Stream::Tcp(stream))
    }

    fn accept_tpa(&self) -> io::Result<Stream> {
        self.tpa.accept().map(|(stream, _)| Stream::native(stream))
    }

    /// Carries out the tests that the desk passes on.
    fn run_tests(
        &self,
        desk: &Dispatcher,
        tests: &Receiver<(Control, Cookie)>,
        how_many: TestCount,
        period: Option<Duration>,
        watch: &mut dyn Observer,
    ) -> Result<(), Error> {
        loop {
            if watch.interrupted() {
                return Err(Error::Interrupted);
            }
            let (mut control, cookie) = match tests.recv_timeout(INTERRUPT_CHECK) {
                Ok(test) => test,
                Err(RecvTimeoutError::Timeout) => continue,
                Err(RecvTimeoutError::Disconnected) => unreachable!("the desk has the other end"),
            };
            let mut streams = Vec::new();
            let result = self.run_test(desk, &mut control, &cookie, &mut streams, period, watch);
            match &result {
                Ok(_) => control.close(),
                Err(error) => control.fail(error),
            }
            streams.into_iter().for_each(Stream::abort);
            desk.unregister_test();
            watch.ended(&result);
            match (how_many, result) {
                (_, Err(Error::Interrupted)) => return Err(Error::Interrupted),
                (TestCount::One, result) => return result.map(|_| ()),
                (TestCount::All, _) => {}
            }
        }
    }

    /// Carries out one test, from its parameters on.
    fn run_test(
        &self,
        desk: &Dispatcher,
        control: &mut Control,
        cookie: &Cookie,
        streams: &mut Vec<Stream>,
        period: Option<Duration>,
        watch: &mut dyn Observer,
    ) -> Result<Report, Error> {
        let agreed = negotiate(control, self.max_streams)?;
        let peer = control.peer_addr()?;
        watch.accepted(peer, &agreed.plan);
        let wide = self.wide(&agreed.plan)?;
        let (key, wide) = wide.unzip();
        let echo = start_echo(control, &agreed, key)?;
        let over = AtomicBool::new(false);
        thread::scope(|scope| {
            let over = StopEcho(&over);
            if let Some(listener) = &wide {
                scope.spawn(|| desk.accept_wide(scope, listener, over.0));
            }
            if let Some(echo) = &echo {
                scope.spawn(|| echo.run(cookie, peer.ip(), over.0));
            }
            *streams = match agreed.plan.transport {
                Transport::Udp => self.accept_udp_streams(control, &agreed.plan, peer.ip(), watch)?,
                _ => collect_streams(desk, control, &agreed.plan, cookie, watch)?,
            };
            let roles = roles(&agreed.plan, Side::Server);
            for ((stream, role), number) in streams.iter().zip(&roles).zip(1..) {
                let broken = |source| Error::Data { stream: number, source };
                stream.set_timeout(pump::CALL_TIMEOUT).map_err(broken)?;
                stream.set_socket_options(&agreed.plan.socket_options, peer).map_err(Error::Option)?;
                if *role == Role::Sends {
                    stream.prepare_to_send(&agreed.plan.transport)?;
                }
            }
            control.send_state(State::TestStart)?;
            watch.connected(&settings(cookie, agreed.length, peer, streams, &roles)?);
            control.send_state(State::TestRunning)?;
            let Agreed { plan, length, counters, .. } = &agreed;
            let (length, counters) = (*length, *counters);
            let course = TestRun { plan, length, counters, streams, roles: &roles, control, period, watch };
            let report = course.run()?;
            // The client has everything; a missing answer changes nothing.
            let _ = control.await_state(State::IperfDone, DISPLAY_TIMEOUT, "look at the results", &|| {
                watch.interrupted()
            });
            Ok(report)
        })
    }

    /// Connects the streams of a test over UDP: a socket for each, at the port of the server.
    fn accept_udp_streams(
        &self,
        control: &mut Control,
        plan: &Plan,
        client: IpAddr,
        watch: &dyn Observer,
    ) -> Result<Vec<Stream>, Error> {
        let mut streams: Vec<(UdpSocket, [u8; 4])> = Vec::new();
        let failed = |e| Error::from(hopline_linux::Error::system("making a socket for datagrams", e));
        let mut next = self.udp_socket(plan, client)?;
        control.send_state(State::CreateStreams)?;
        let bell = Notifier::new().map_err(Error::Control)?;
        let until = now() + SETUP_TIMEOUT;
        while streams.len() < plan.all_streams() {
            check_waiting(watch, until)?;
            if let Some(state) = control.receive_state(Duration::ZERO, &bell)? {
                return Err(unexpected_state(state));
            }
            // A reply may have been lost; the client repeats its request.
            for (socket, answer) in &streams {
                if is_request_repeated(socket) {
                    let _ = socket.send(answer);
                }
            }
            let Some((from, answer)) = receive_stream_request(&next, client) else { continue };
            next.connect(from).map_err(failed)?;
            let ready = if streams.len() + 1 < plan.all_streams() {
                let another = self.udp_socket(plan, client)?;
                std::mem::replace(&mut next, another)
            } else {
                next.try_clone().map_err(failed)?
            };
            // The client repeats its request if this reply is lost.
            let _ = ready.send(&answer);
            streams.push((ready, answer));
        }
        Ok(streams.into_iter().map(|(socket, _)| Stream::Udp(socket)).collect())
    }

    /// Creates a UDP socket at the server's port, beside TPA's. It receives the first datagrams of new clients.
    fn udp_socket(&self, plan: &Plan, client: IpAddr) -> Result<UdpSocket, Error> {
        let bound = || -> io::Result<Socket> {
            let here = self.local_addr()?;
            let socket = Socket::new(Domain::for_address(here), Type::DGRAM, None)?;
            socket.set_reuse_address(true)?;
            self.bind_beside_tpa(|| socket.bind(&here.into()))?;
            socket.set_read_timeout(Some(INTERRUPT_CHECK))?;
            Ok(socket)
        };
        let socket = bound().map_err(|e| hopline_linux::Error::system("making a socket for datagrams", e))?;
        set_socket_options(
            SockRef::from(&socket),
            &plan.socket_options,
            Kind::Udp,
            SocketAddr::new(client, 0),
        )
        .map_err(Error::Option)?;
        Ok(socket.into())
    }

    /// Creates the listener for the streams of a test over TPA-wide, and the key by which the client identifies it. Both
    /// serve this test only.
    fn wide(&self, plan: &Plan) -> Result<Option<(PublicKey, WideListener)>, Error> {
        if plan.transport != Transport::TpaWide {
            return Ok(None);
        }
        let listen = || -> io::Result<_> {
            let (key, config) = native::wide(Trust::Anyone)?;
            let here = self.local_addr()?;
            let host: Host<Wide> = self.bind_beside_tpa(|| Host::bind_beside(here))?;
            let listener = host.listen(&config, plan.all_streams())?;
            listener.set_nonblocking(true);
            Ok(Some((key, listener)))
        };
        listen().map_err(|e| hopline_linux::Error::system("making a socket for TPA-wide", e).into())
    }

    /// Binds a socket to the UDP port that TPA has.
    fn bind_beside_tpa<T>(&self, bind: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        self.tpa.host().share_port(PortSharing::Allowed)?;
        let bound = bind();
        self.tpa.host().share_port(PortSharing::Forbidden)?;
        bound
    }
}

/// Guard that ends the echo beside a test, also after an error.
struct StopEcho<'a>(&'a AtomicBool);

impl Drop for StopEcho<'_> {
    fn drop(&mut self) {
        self.0.store(true, Relaxed);
    }
}

/// Receives the client's parameters, and accepts or rejects them.
fn negotiate(control: &mut Control, most_streams: u16) -> Result<Agreed, Error> {
    control.send_state(State::ParamExchange)?;
    let parameters: Parameters = control.receive_json().map_err(|error| match error {
        Error::Protocol(words) => Error::Parameters(Refusal::new(Code::Parameters, words)),
        error => error,
    })?;
    if parameters.dialect() == Dialect::Hopline {
        control.dialect = Dialect::Hopline;
    }
    let agreed = parameters.into_agreed().map_err(Error::Parameters)?;
    let over_tpa = matches!(agreed.plan.transport, Transport::Tpa { .. });
    if over_tpa != matches!(control.stream(), Stream::Native(_)) {
        let text = format!("a test over {} is asked for over another", agreed.plan.transport.protocol());
        return Err(Error::Parameters(Refusal::new(Code::Parameters, text)));
    }
    if agreed.plan.all_streams() > most_streams.into() {
        let words = format!("the server takes {most_streams} streams, both directions together, and no more");
        return Err(Error::Parameters(Refusal::new(Code::Streams, words)));
    }
    if let Transport::Tcp { congestion_control: Some(wanted) } = &agreed.plan.transport
        && roles(&agreed.plan, Side::Server).contains(&Role::Sends)
    {
        wanted.check_here()?;
    }
    Ok(agreed)
}

/// Starts the echo of probes if the client supports it, and sends the client its port and `key`.
fn start_echo(control: &mut Control, agreed: &Agreed, key: Option<PublicKey>) -> Result<Option<Echo>, Error> {
    if agreed.dialect != Dialect::Hopline {
        return Ok(None);
    }
    let mut here = control.stream().local_addr().map_err(Error::Control)?.ip();
    if here.is_unspecified() {
        here = control.peer_addr()?.ip();
    }
    // Without an echo the test still takes place.
    let echo = agreed.plan.probes.and_then(|_| Echo::bind(here).ok());
    let echo_port = echo.as_ref().and_then(|echo| echo.port().ok());
    control.send_state(State::Hopline)?;
    control.send_json(&Extra { echo_port, key: key.map(|key| *key.bytes()), refused: None })?;
    Ok(echo)
}

/// Receives a request for a stream at `socket`. Returns the address of the client and the reply.
fn receive_stream_request(socket: &UdpSocket, client: IpAddr) -> Option<(SocketAddr, [u8; 4])> {
    let mut word = [0; 5];
    let (len, from) = socket.recv_from(&mut word).ok()?;
    let answer = match u32::from_ne_bytes(*word.first_chunk()?) {
        UDP_CONNECT => UDP_REPLY,
        UDP_CONNECT_LEGACY => UDP_REPLY_LEGACY,
        _ => return None,
    };
    let is_client = from.ip().to_canonical() == client.to_canonical();
    (len == 4 && is_client).then_some((from, answer.to_ne_bytes()))
}

/// Returns whether the client has repeated its request at a connected socket.
fn is_request_repeated(socket: &UdpSocket) -> bool {
    let mut word = [0; 5];
    let waiting = socket.set_nonblocking(true).and_then(|()| socket.recv(&mut word));
    let _ = socket.set_nonblocking(false);
    matches!(waiting, Ok(4))
}

/// Collects the streams of a test over connections, in the order of their arrival.
fn collect_streams(
    desk: &Dispatcher,
    control: &mut Control,
    plan: &Plan,
    cookie: &Cookie,
    watch: &dyn Observer,
) -> Result<Vec<Stream>, Error> {
    let bell = Notifier::new().map_err(Error::Control)?;
    let client = control.peer_addr()?.ip();
    let arriving = desk.register_test(plan, client, *cookie);
    control.send_state(State::CreateStreams)?;
    let mut streams: Vec<(u64, Stream)> = Vec::new();
    let until = now() + SETUP_TIMEOUT;
    while streams.len() < plan.all_streams() {
        check_waiting(watch, until)?;
        match arriving.recv_timeout(INTERRUPT_CHECK) {
            Ok(stream) => streams.push(stream),
            Err(_) => {
                if let Some(state) = control.receive_state(Duration::ZERO, &bell)? {
                    return Err(unexpected_state(state));
                }
            }
        }
    }
    desk.mark_connected();
    streams.sort_by_key(|&(turn, _)| turn);
    Ok(streams.into_iter().map(|(_, stream)| stream).collect())
}

/// Checks that the client may still open data streams.
fn check_waiting(watch: &dyn Observer, until: Instant) -> Result<(), Error> {
    if watch.interrupted() {
        return Err(Error::Interrupted);
    }
    if now() >= until { Err(Error::Late("bring all data streams")) } else { Ok(()) }
}
