//! Client side of a test: connects, sends the test parameters and opens the data streams.

use super::control::{Control, INTERRUPT_CHECK, Side};
use super::datagram::CounterWidth;
use super::error::Error;
use super::parameters::Parameters;
use super::plan::{Direction, Plan, Transport};
use super::probe::{Latency, ProbePhase, Prober};
use super::protocol::{COOKIE_LEN, Cookie, State};
use super::pump;
use super::refusal::Bound;
use super::report::{Connected, Ending, Report, Role, TestSettings};
use super::stream::{CONNECT_TIMEOUT, Dialer, Stream};
use super::test_run::TestRun;
use super::{Observer, now};
use hopline_streams::wide::PublicKey;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

/// Timeout for each step before the test. The longest step is a server that waits for another test to end.
const SETUP_TIMEOUT: Duration = Duration::from_secs(30);
/// Time that a server may spend on displaying the results.
const DISPLAY_TIMEOUT: Duration = Duration::from_secs(10);
/// Timeout of the TCP connection attempt to a server that does not answer over TPA.
const TCP_PROBE_TIMEOUT: Duration = Duration::from_secs(2);
/// Characters of a cookie. There are 32, so that each carries five random bits.
const COOKIE_ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Addresses and timeout of a client's connections.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ConnectOptions {
    /// Addresses of the server, tried in order. The first that answers carries out the test.
    pub peers: Vec<SocketAddr>,
    /// Local address to connect from. `None`: the system's choice.
    pub local_address: Option<IpAddr>,
    /// Timeout for connecting, over all `peers`; each gets an equal share of the time that is left. `None`: 10 s. Each
    /// later connection of the test has the same timeout.
    pub timeout: Option<Duration>,
}

/// Carries out `plan` with the server at the first of `call.peers` that answers. `period`: length of an interval, above
/// zero; `None`: no intervals.
///
/// # Errors
/// The reason that there is no result. The only results until then are those passed to `watch`.
pub fn measure(
    plan: &Plan,
    call: &ConnectOptions,
    period: Option<Duration>,
    watch: &mut dyn Observer,
) -> Result<Report, Error> {
    plan.validate()?;
    let (dialer, peer, stream) = dial(plan, call)?;
    let mut control = Control::new(Side::Client, stream)?;
    match run_test(plan, &dialer, peer, &mut control, period, watch) {
        Ok(report) => {
            control.close();
            Ok(report)
        }
        Err(error) => {
            control.fail(&error);
            Err(error)
        }
    }
}

/// Connects to the first of the peers that answers.
fn dial(plan: &Plan, call: &ConnectOptions) -> Result<(Dialer, SocketAddr, Stream), Error> {
    let mut failure = Error::Plan(Bound::Peer);
    let until = now() + call.timeout.unwrap_or(CONNECT_TIMEOUT);
    for (number, &peer) in call.peers.iter().enumerate() {
        // Leave time for the remaining addresses if this one does not answer.
        let share = until.saturating_duration_since(now()) / (call.peers.len() - number) as u32;
        let attempt = Dialer::new(plan, peer, call.local_address, call.timeout)
            .and_then(|dialer| Ok((dialer.dial_within(peer, share)?, dialer)));
        match attempt {
            Ok((stream, dialer)) => return Ok((dialer, peer, stream)),
            Err(_) if matches!(plan.transport, Transport::Tpa { .. }) && accepts_tcp(peer) => {
                failure = Error::NotServed { peer, protocol: plan.transport.protocol() };
            }
            Err(source) => failure = Error::Connecting { peer, source },
        }
    }
    Err(failure)
}

fn accepts_tcp(peer: SocketAddr) -> bool {
    TcpStream::connect_timeout(&peer, TCP_PROBE_TIMEOUT).is_ok()
}

fn run_test(
    plan: &Plan,
    dialer: &Dialer,
    peer: SocketAddr,
    control: &mut Control,
    period: Option<Duration>,
    watch: &mut dyn Observer,
) -> Result<Report, Error> {
    let cookie = cookie()?;
    control.send(&cookie)?;
    let step = |control: &mut Control, state, doing, watch: &dyn Observer| {
        control.await_state(state, SETUP_TIMEOUT, doing, &|| watch.interrupted())
    };
    step(
        control,
        State::ParamExchange,
        "ask for the parameters, as iperf3 and `hopline bench -s` do",
        watch,
    )?;
    let length = write_length(plan, control.stream());
    control.send_json(&Parameters::of(plan, length))?;
    step(control, State::CreateStreams, "ask for the data streams", watch)?;
    let prober = prober(plan, control, cookie)?;
    thread::scope(|scope| {
        let probing = prober.as_ref().map(|prober| scope.spawn(|| prober.run()));
        let stop = StopProbes(prober.as_ref());
        measure_idle_latency(plan, prober.as_ref(), watch);
        let streams = join(plan, dialer, peer, &cookie, control.key)?;
        step(control, State::TestStart, "take the data streams", watch)?;
        step(control, State::TestRunning, "begin the test", watch)?;
        let roles = roles(plan, Side::Client);
        watch.connected(&settings(&cookie, length, peer, &streams, &roles)?);
        prober.iter().for_each(|prober| prober.enter_phase(ProbePhase::During));
        let counters = CounterWidth::Bits64;
        let course =
            TestRun { plan, length, counters, streams: &streams, roles: &roles, control, period, watch };
        let report = course.run();
        streams.into_iter().for_each(Stream::abort);
        let mut report = report?;
        prober.iter().for_each(|prober| prober.enter_phase(ProbePhase::After));
        if report.ending == Ending::Complete {
            control.await_state(State::DisplayResults, DISPLAY_TIMEOUT, "show the results", &|| false)?;
            measure_idle_latency(plan, prober.as_ref(), watch);
        }
        drop(stop);
        report.latency = probing.and_then(|probing| probing.join().ok()).filter(Latency::was_answered);
        // The server has all results; an error here does not affect it.
        let _ = control.send_state(State::IperfDone);
        Ok(report)
    })
}

/// Guard that stops the probes when the test ends, also by an error.
struct StopProbes<'a>(Option<&'a Prober>);

impl Drop for StopProbes<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|prober| prober.stop());
    }
}

/// Measures the latency of the idle path.
fn measure_idle_latency(plan: &Plan, prober: Option<&Prober>, watch: &dyn Observer) {
    let (Some(_), Some(time)) = (prober, plan.probes) else { return };
    let until = now() + time;
    while now() < until && !watch.interrupted() {
        thread::sleep(until.saturating_duration_since(now()).min(INTERRUPT_CHECK));
    }
}

fn prober(plan: &Plan, control: &Control, cookie: Cookie) -> Result<Option<Prober>, Error> {
    let (Some(port), Some(_)) = (control.echo_port, plan.probes) else { return Ok(None) };
    let mut here = control.stream().local_addr().map_err(Error::Control)?;
    here.set_port(0);
    let there = SocketAddr::new(control.peer_addr()?.ip(), port);
    let prober = Prober::new(here, there, cookie);
    prober.map(Some).map_err(|e| hopline_linux::Error::system("making a socket for latency", e).into())
}

fn cookie() -> Result<Cookie, Error> {
    let mut cookie = [0; COOKIE_LEN];
    getrandom::fill(&mut cookie[..COOKIE_LEN - 1])
        .map_err(|e| hopline_linux::Error::system("asking for random bytes", io::Error::other(e)))?;
    cookie[..COOKIE_LEN - 1]
        .iter_mut()
        .for_each(|byte| *byte = COOKIE_ALPHABET[usize::from(*byte) % COOKIE_ALPHABET.len()]);
    Ok(cookie)
}

/// Returns the bytes of one write. Without `length` in the plan, a datagram of UDP takes one segment of the path.
fn write_length(plan: &Plan, control: &Stream) -> u32 {
    let segment = || control.telemetry().ok().flatten().map(|telemetry| telemetry.mss);
    plan.length.unwrap_or_else(|| match plan.transport {
        Transport::Udp => segment().filter(|mss| (500..=65_507).contains(mss)).unwrap_or(1460),
        _ => 128 << 10,
    })
}

/// Returns the role of this side on each stream, in the order of their creation.
pub(super) fn roles(plan: &Plan, side: Side) -> Vec<Role> {
    let first = match (plan.direction, side) {
        (Direction::Forward | Direction::Both, Side::Client) | (Direction::Reverse, Side::Server) => {
            Role::Sends
        }
        _ => Role::Receives,
    };
    let streams = usize::from(plan.streams);
    let mut roles = vec![first; streams];
    if plan.direction == Direction::Both {
        roles.extend(vec![first.other(); streams]);
    }
    roles
}

/// Opens the data streams of the test that `cookie` names.
fn join(
    plan: &Plan,
    dialer: &Dialer,
    peer: SocketAddr,
    cookie: &Cookie,
    key: Option<PublicKey>,
) -> Result<Vec<Stream>, Error> {
    let wide = match (&plan.transport, key) {
        // A hopline server has sent its key by now.
        (Transport::TpaWide, None) => {
            return Err(Error::NotServed { peer, protocol: plan.transport.protocol() });
        }
        (Transport::TpaWide, Some(key)) => {
            let dialer = dialer.wide(key);
            Some(dialer.map_err(|e| hopline_linux::Error::system("making a socket for TPA-wide", e))?)
        }
        _ => None,
    };
    let mut streams = Vec::new();
    for (role, number) in roles(plan, Side::Client).into_iter().zip(1..) {
        let broken = |source| Error::Data { stream: number, source };
        let stream = match plan.transport {
            Transport::Udp => dialer.dial_udp(peer).map_err(broken)?,
            _ => {
                let stream = wide.as_ref().map_or_else(|| dialer.dial(peer), |wide| wide.dial(peer));
                let stream = stream.map_err(broken)?;
                send_cookie(&stream, cookie).map_err(broken)?;
                stream
            }
        };
        if role == Role::Sends {
            stream.prepare_to_send(&plan.transport)?;
        }
        stream.set_timeout(pump::CALL_TIMEOUT).map_err(broken)?;
        streams.push(stream);
    }
    Ok(streams)
}

fn send_cookie(mut stream: &Stream, cookie: &Cookie) -> io::Result<()> {
    // The send buffer of a new connection always has room for the cookie.
    match io::Write::write(&mut stream, cookie)? {
        COOKIE_LEN => io::Write::flush(&mut stream),
        _ => Err(ErrorKind::WriteZero.into()),
    }
}

/// Returns the settings of the test, once the streams are connected.
pub(super) fn settings(
    cookie: &Cookie,
    length: u32,
    peer: SocketAddr,
    streams: &[Stream],
    roles: &[Role],
) -> Result<TestSettings, Error> {
    let ends = |stream: &Stream, role| -> io::Result<Connected> {
        let mss = stream.telemetry()?.map(|telemetry| telemetry.mss);
        Ok(Connected { local: stream.local_addr()?, remote: stream.peer_addr()?, mss, role })
    };
    let numbered = streams.iter().zip(roles).zip(1..);
    let connected = numbered
        .map(|((stream, &role), number)| {
            ends(stream, role).map_err(|source| Error::Data { stream: number, source })
        })
        .collect::<Result<_, _>>()?;
    Ok(TestSettings {
        cookie: crate::printable::printable(&cookie[..COOKIE_LEN - 1]),
        length,
        buffers: streams.first().and_then(Stream::buffers),
        peer,
        streams: connected,
    })
}
