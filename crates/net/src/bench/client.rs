//! The client's part: it calls, says what is to be measured, and brings the data streams.

use super::control::{Control, LOOK, Side};
use super::course::Course;
use super::datagram::Counters;
use super::error::Error;
use super::parameters::Parameters;
use super::plan::{Direction, Plan, Transport};
use super::probe::{Latency, Prober, When};
use super::protocol::{COOKIE, Cookie, State};
use super::pump;
use super::refusal::Bound;
use super::report::{Connected, Ending, Report, Role, Settled};
use super::stream::{CONNECT, Dialer, Stream};
use super::{Watch, now};
use crate::wide::PublicKey;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::thread;
use std::time::Duration;

/// How long the server may take for one step before the test: one that waits for another test to end is longest.
const SET_UP: Duration = Duration::from_secs(30);
/// How long a server may show results.
const DISPLAY: Duration = Duration::from_secs(10);
/// How long it is tried whether somebody takes TCP where nobody takes TPA.
const INSTEAD: Duration = Duration::from_secs(2);
/// Characters of a cookie: 32 of them, so that each is five random bits.
const ALPHABET: &[u8; 32] = b"abcdefghijklmnopqrstuvwxyz234567";

/// Whom a client calls.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Call {
    /// Addresses of the server; the first that answers has it.
    pub peers: Vec<SocketAddr>,
    /// Address to call from; `None`: the system's choice.
    pub from: Option<IpAddr>,
    /// Time to connect, with all of `peers`; each has its share of what is left. `None`: 10 s. Later connections of the test have as much each.
    pub patience: Option<Duration>,
}

/// Carries out `plan` with the server at the first of `call.peers` that answers. `period`: of intervals, above zero; `None`:
/// none.
///
/// # Errors
/// Why there is no result. What was told to `watch` until then is all there is.
pub fn measure(
    plan: &Plan,
    call: &Call,
    period: Option<Duration>,
    watch: &mut dyn Watch,
) -> Result<Report, Error> {
    plan.validate()?;
    let (dialer, peer, stream) = dial(plan, call)?;
    let mut control = Control::new(Side::Client, stream)?;
    match converse(plan, &dialer, peer, &mut control, period, watch) {
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

/// The first of the peers that answers, and a connection to it.
fn dial(plan: &Plan, call: &Call) -> Result<(Dialer, SocketAddr, Stream), Error> {
    let mut failure = Error::Plan(Bound::Peer);
    let until = now() + call.patience.unwrap_or(CONNECT);
    for (number, &peer) in call.peers.iter().enumerate() {
        // An address that is silent leaves time for the others.
        let share = until.saturating_duration_since(now()) / (call.peers.len() - number) as u32;
        let attempt = Dialer::new(plan, peer, call.from, call.patience)
            .and_then(|dialer| Ok((dialer.dial_within(peer, share)?, dialer)));
        match attempt {
            Ok((stream, dialer)) => return Ok((dialer, peer, stream)),
            Err(_) if matches!(plan.transport, Transport::Tpa { .. }) && takes_tcp(peer) => {
                failure = Error::NotServed { peer, protocol: plan.transport.protocol() };
            }
            Err(source) => failure = Error::Connecting { peer, source },
        }
    }
    Err(failure)
}

fn takes_tcp(peer: SocketAddr) -> bool {
    TcpStream::connect_timeout(&peer, INSTEAD).is_ok()
}

fn converse(
    plan: &Plan,
    dialer: &Dialer,
    peer: SocketAddr,
    control: &mut Control,
    period: Option<Duration>,
    watch: &mut dyn Watch,
) -> Result<Report, Error> {
    let cookie = cookie()?;
    control.send(&cookie)?;
    let step = |control: &mut Control, state, doing, watch: &dyn Watch| {
        control.expect(state, SET_UP, doing, &|| watch.interrupted())
    };
    step(
        control,
        State::ParamExchange,
        "ask for the parameters, as iperf3 and `hopline bench -s` do",
        watch,
    )?;
    let length = length(plan, control.stream());
    control.tell(&Parameters::of(plan, length))?;
    step(control, State::CreateStreams, "ask for the data streams", watch)?;
    let prober = prober(plan, control, cookie)?;
    thread::scope(|scope| {
        let probing = prober.as_ref().map(|prober| scope.spawn(|| prober.run()));
        let stop = StopProbes(prober.as_ref());
        linger(plan, prober.as_ref(), watch);
        let streams = join(plan, dialer, peer, &cookie, control.key)?;
        step(control, State::TestStart, "take the data streams", watch)?;
        step(control, State::TestRunning, "begin the test", watch)?;
        let roles = roles(plan, Side::Client);
        watch.connected(&settled(&cookie, length, peer, &streams, &roles)?);
        prober.iter().for_each(|prober| prober.enter(When::During));
        let counters = Counters::Bits64;
        let course =
            Course { plan, length, counters, streams: &streams, roles: &roles, control, period, watch };
        let report = course.run();
        streams.into_iter().for_each(Stream::abort);
        let mut report = report?;
        prober.iter().for_each(|prober| prober.enter(When::After));
        if report.ending == Ending::Complete {
            control.expect(State::DisplayResults, DISPLAY, "show the results", &|| false)?;
            linger(plan, prober.as_ref(), watch);
        }
        drop(stop);
        report.latency = probing.and_then(|probing| probing.join().ok()).filter(Latency::was_answered);
        // A server that has everything and left is none the worse for it.
        let _ = control.say(State::IperfDone);
        Ok(report)
    })
}

/// Ends the probes, however the test ended.
struct StopProbes<'a>(Option<&'a Prober>);

impl Drop for StopProbes<'_> {
    fn drop(&mut self) {
        self.0.iter().for_each(|prober| prober.stop());
    }
}

/// Looks at latency while nothing is sent.
fn linger(plan: &Plan, prober: Option<&Prober>, watch: &dyn Watch) {
    let (Some(_), Some(time)) = (prober, plan.probes) else { return };
    let until = now() + time;
    while now() < until && !watch.interrupted() {
        thread::sleep(until.saturating_duration_since(now()).min(LOOK));
    }
}

fn prober(plan: &Plan, control: &Control, cookie: Cookie) -> Result<Option<Prober>, Error> {
    let (Some(port), Some(_)) = (control.echo_port, plan.probes) else { return Ok(None) };
    let mut here = control.stream().local_addr().map_err(Error::Control)?;
    here.set_port(0);
    let there = SocketAddr::new(control.peer_addr()?.ip(), port);
    let prober = Prober::new(here, there, cookie);
    prober.map(Some).map_err(|e| crate::Error::system("making a socket for latency", e).into())
}

fn cookie() -> Result<Cookie, Error> {
    let mut cookie = [0; COOKIE];
    getrandom::fill(&mut cookie[..COOKIE - 1])
        .map_err(|e| crate::Error::system("asking for random bytes", io::Error::other(e)))?;
    cookie[..COOKIE - 1].iter_mut().for_each(|byte| *byte = ALPHABET[usize::from(*byte) % ALPHABET.len()]);
    Ok(cookie)
}

/// What is handed over at once: of UDP, where nothing is said, what fits into a segment of the path.
fn length(plan: &Plan, control: &Stream) -> u32 {
    let segment = || control.telemetry().ok().flatten().map(|telemetry| telemetry.mss);
    plan.length.unwrap_or_else(|| match plan.transport {
        Transport::Udp => segment().filter(|mss| (500..=65_507).contains(mss)).unwrap_or(1460),
        _ => 128 << 10,
    })
}

/// What this side does on each stream, in the order in which they are made.
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

/// The data streams of the test that has `cookie`.
fn join(
    plan: &Plan,
    dialer: &Dialer,
    peer: SocketAddr,
    cookie: &Cookie,
    key: Option<PublicKey>,
) -> Result<Vec<Stream>, Error> {
    let wide = match (&plan.transport, key) {
        // A server of ours has told one by now.
        (Transport::TpaWide, None) => {
            return Err(Error::NotServed { peer, protocol: plan.transport.protocol() });
        }
        (Transport::TpaWide, Some(key)) => {
            let dialer = dialer.wide(key);
            Some(dialer.map_err(|e| crate::Error::system("making a socket for TPA-wide", e))?)
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
                greet(&stream, cookie).map_err(broken)?;
                stream
            }
        };
        if role == Role::Sends {
            stream.prepare_to_send(&plan.transport)?;
        }
        stream.set_patience(pump::CALL).map_err(broken)?;
        streams.push(stream);
    }
    Ok(streams)
}

fn greet(mut stream: &Stream, cookie: &Cookie) -> io::Result<()> {
    // The first bytes of a connection always find room.
    match io::Write::write(&mut stream, cookie)? {
        COOKIE => io::Write::flush(&mut stream),
        _ => Err(ErrorKind::WriteZero.into()),
    }
}

/// What is known once the streams are there.
pub(super) fn settled(
    cookie: &Cookie,
    length: u32,
    peer: SocketAddr,
    streams: &[Stream],
    roles: &[Role],
) -> Result<Settled, Error> {
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
    Ok(Settled {
        cookie: crate::printable::printable(&cookie[..COOKIE - 1]),
        length,
        buffers: streams.first().and_then(Stream::buffers),
        peer,
        streams: connected,
    })
}
