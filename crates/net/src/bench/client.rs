//! The client's part: it calls, says what is to be measured, and brings the data streams.

use super::control::{Control, Side, out_of_turn};
use super::course::{Course, Role};
use super::error::Error;
use super::message::{Cookie, Message};
use super::plan::{Direction, Plan};
use super::report::{Connected, Report};
use super::stream::{Dialer, Stream};
use super::{Watch, pump};
use std::io::{self, ErrorKind, Write};
use std::net::SocketAddr;
use std::time::Duration;

/// How long the server may take for one step before the test.
const SET_UP: Duration = Duration::from_secs(20);

/// Carries out `plan` with the server at the first of `peers` that answers. `period`: of intervals, above zero; `None`: none.
///
/// # Errors
/// Why there is no result. What was told to `watch` until then is all there is.
pub fn measure(
    plan: &Plan,
    peers: &[SocketAddr],
    period: Option<Duration>,
    watch: &mut dyn Watch,
) -> Result<Report, Error> {
    plan.validate()?;
    let (dialer, peer, stream) = call(plan, peers)?;
    let mut control = Control::new(Side::Client, stream)?;
    match converse(plan, &dialer, peer, &mut control, period, watch) {
        Ok(report) => {
            control.close();
            Ok(report)
        }
        Err(error) => {
            if let Some(refusal) = error.told() {
                control.fail(refusal);
            }
            Err(error)
        }
    }
}

/// The first of `peers` that answers, and a connection to it.
fn call(plan: &Plan, peers: &[SocketAddr]) -> Result<(Dialer, SocketAddr, Stream), Error> {
    let mut failure = Error::Plan("a peer");
    for &peer in peers {
        let attempt = Dialer::new(&plan.transport, peer).and_then(|dialer| Ok((dialer.dial(peer)?, dialer)));
        match attempt {
            Ok((stream, dialer)) => return Ok((dialer, peer, stream)),
            Err(source) => failure = Error::Connecting { peer, source },
        }
    }
    Err(failure)
}

fn converse(
    plan: &Plan,
    dialer: &Dialer,
    peer: SocketAddr,
    control: &mut Control,
    period: Option<Duration>,
    watch: &mut dyn Watch,
) -> Result<Report, Error> {
    control.send(&Message::Plan(plan.clone()))?;
    let cookie = match control.expect(SET_UP, "answer as `hopline bench -s` does", &|| watch.interrupted())? {
        Message::Accept { cookie } => cookie,
        message => return Err(out_of_turn(&message)),
    };
    let role = match plan.direction {
        Direction::Forward => Role::Sends,
        Direction::Reverse => Role::Receives,
    };
    let streams: Vec<Stream> =
        (0..plan.streams).map(|i| join(plan, dialer, peer, cookie, i, role)).collect::<Result<_, _>>()?;
    match control.expect(SET_UP, "take the data streams", &|| watch.interrupted())? {
        Message::Ready => {}
        message => return Err(out_of_turn(&message)),
    }
    watch.connected(&connected(&streams)?);
    control.send(&Message::Start)?;
    let report = Course { plan, role, streams: &streams, control, period, watch }.run();
    streams.into_iter().for_each(Stream::abort);
    report
}

/// A data stream of the test that has `cookie`.
fn join(
    plan: &Plan,
    dialer: &Dialer,
    peer: SocketAddr,
    cookie: Cookie,
    index: u8,
    role: Role,
) -> Result<Stream, Error> {
    let stream = dialer.dial(peer).map_err(|source| Error::Connecting { peer, source })?;
    let broken = |source| Error::Data { stream: index + 1, source };
    if role == Role::Sends {
        stream.prepare_to_send(&plan.transport)?;
    }
    stream.set_patience(pump::CALL).map_err(broken)?;
    let message = Message::Join { cookie, stream: index }.encode();
    // The first bytes of a connection always find room.
    match (&stream).write(&message) {
        Ok(written) if written == message.len() => (&stream).flush().map_err(broken)?,
        Ok(_) => return Err(broken(ErrorKind::WriteZero.into())),
        Err(error) => return Err(broken(error)),
    }
    Ok(stream)
}

/// The two ends of each.
pub(super) fn connected(streams: &[Stream]) -> Result<Vec<Connected>, Error> {
    let ends = |stream: &Stream| -> io::Result<Connected> {
        Ok(Connected {
            local: stream.local_addr()?,
            remote: stream.peer_addr()?,
            mss: stream.telemetry()?.mss,
        })
    };
    let numbered = streams.iter().zip(1..);
    numbered
        .map(|(stream, number)| ends(stream).map_err(|source| Error::Data { stream: number, source }))
        .collect()
}
