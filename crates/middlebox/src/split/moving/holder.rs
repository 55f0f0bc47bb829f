//! The holder: connections leave.

use super::channel::{Channel, Kind, MAX_FRAME, Role};
use super::claimant::encode_clocks;
use super::state::{ConnectionState, MAX_STATE};
use super::{BaseStation, MoveConfig, STATION_TIMEOUT};
use crate::handoff::{ClaimResult, MovePolicy};
use crate::split::Shared;
use crate::split::connector::Connector;
use crate::split::pair::{CLIENT, Pair, Parts, SERVER};
use crate::split::worker::DepartingHost;
use hopline_linux::Error;
use hopline_linux::repair::{Dump, Frozen, Retired};
use rustix::event::{PollFd, PollFlags, poll};
use rustix::io::Errno;
use std::io::{self, ErrorKind};
use std::net::{IpAddr, TcpListener, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::channel;
use std::thread::{self, Builder};
use std::time::Duration;

/// Stations that may ask at once.
const MAX_STATIONS: usize = 16;
/// Time for packets that a rule has led to a socket to reach it, before it is closed.
const LINGER: Duration = Duration::from_millis(20);

/// Listener for the claims of other stations.
#[derive(Debug)]
pub(in crate::split) struct ClaimListener {
    listener: TcpListener,
    moves: MoveConfig,
}

impl ClaimListener {
    pub(in crate::split) fn open(moves: MoveConfig) -> Result<Self, Error> {
        let open = || {
            let listener = TcpListener::bind(moves.listen)?;
            listener.set_nonblocking(true)?;
            Ok::<_, io::Error>(listener)
        };
        let doing = || format!("listening for other stations at {}", moves.listen);
        // The address of a station may come later, as that of its base station.
        let listener = open().map_err(|e| Error::of_address(doing(), moves.listen.ip(), e))?;
        Ok(Self { listener, moves })
    }

    /// Serves stations until `end` can be read.
    pub(in crate::split) fn run(&self, shared: &Shared, end: BorrowedFd<'_>) -> io::Result<()> {
        let asking = AtomicUsize::new(0);
        thread::scope(|scope| {
            loop {
                let mut waited = [
                    PollFd::from_borrowed_fd(end, PollFlags::IN),
                    PollFd::from_borrowed_fd(self.listener.as_fd(), PollFlags::IN),
                ];
                match poll(&mut waited, None) {
                    Ok(_) | Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
                if !waited[0].revents().is_empty() {
                    return Ok(());
                }
                let Some(stream) = self.accept(shared) else { continue };
                if asking.fetch_add(1, Ordering::Relaxed) >= MAX_STATIONS {
                    asking.fetch_sub(1, Ordering::Relaxed);
                    continue;
                }
                let asking = &asking;
                let serve = move || {
                    // A station that cannot be answered asks again, or its host connects again.
                    if serve(shared, &self.moves, stream).is_err() {
                        shared.counts.broken_claims.add(1);
                    }
                    asking.fetch_sub(1, Ordering::Relaxed);
                };
                if Builder::new().name("split moves".into()).spawn_scoped(scope, serve).is_err() {
                    asking.fetch_sub(1, Ordering::Relaxed);
                }
            }
        })
    }

    /// The next station. Without descriptors it waits a moment.
    fn accept(&self, shared: &Shared) -> Option<TcpStream> {
        match self.listener.accept() {
            Ok((_, from)) if !self.is_permitted(from.ip()) => {
                shared.counts.refused_claims.add(1);
                None
            }
            Ok((stream, _)) => stream.set_nonblocking(false).is_ok().then_some(stream),
            Err(error) => {
                if error.kind() != ErrorKind::WouldBlock {
                    thread::sleep(LINGER);
                }
                None
            }
        }
    }
}

impl ClaimListener {
    /// Returns whether a station with this address may claim.
    fn is_permitted(&self, address: IpAddr) -> bool {
        let stations = &self.moves.stations;
        stations.is_empty() || stations.iter().any(|station| station.ip() == address)
    }
}

/// Reads a claim: the host, and the number of its request.
fn parse_claim(bytes: &[u8]) -> Option<(IpAddr, Option<u64>)> {
    let text = str::from_utf8(bytes).ok()?;
    match text.split_once(' ') {
        Some((host, number)) => Some((host.parse().ok()?, Some(number.parse().ok()?))),
        None => Some((text.parse().ok()?, None)),
    }
}

/// Returns whether the connections of a claimed host may leave.
fn may_leave(moves: &MoveConfig, host: IpAddr, number: Option<u64>) -> MayLeave {
    let Some(BaseStation { visitors, .. }) = &moves.base_station else { return MayLeave::Yes };
    if visitors.move_policy() == MovePolicy::Suspended {
        return MayLeave::No;
    }
    match (host, number) {
        (IpAddr::V4(host), Some(number)) if visitors.handle_claim(host, number) == ClaimResult::Returned => {
            MayLeave::Returned
        }
        _ => MayLeave::Yes,
    }
}

enum MayLeave {
    Yes,
    No,
    Returned,
}

/// Outcome for a connection that was to move.
enum MoveResult {
    Moved([Retired; 2]),
    /// The connection goes on here.
    Stays(Parts),
    /// The connection was reset.
    Lost,
}

/// Serves one station.
fn serve(shared: &Shared, moves: &MoveConfig, stream: TcpStream) -> io::Result<()> {
    let mut channel = Channel::open(stream, Role::Holder, &moves.key, STATION_TIMEOUT)?;
    let (Kind::Claim, host) = channel.receive(STATION_TIMEOUT)? else {
        return Err(ErrorKind::InvalidData.into());
    };
    let (host, number) = parse_claim(&host).ok_or(ErrorKind::InvalidData)?;
    match may_leave(moves, host, number) {
        MayLeave::Yes => {}
        MayLeave::No => return channel.send(Kind::End, &[]),
        MayLeave::Returned => return channel.send(Kind::Returned, &[]),
    }
    let mut caller = Connector::new(shared).map_err(io::Error::other)?;
    let mut broken = Ok(());
    let mut retired = Vec::new();
    for parts in take_connections(shared, host) {
        // Without the other station the rest goes on here.
        let fate = match broken {
            Ok(()) => move_connection(&mut channel, parts, &mut broken),
            Err(_) => MoveResult::Stays(parts),
        };
        match fate {
            MoveResult::Moved(sockets) => {
                retired.push(sockets);
                shared.counts.moved_away.add(1);
                shared.counts.open_connections.subtract(1);
            }
            MoveResult::Stays(parts) => {
                shared.counts.not_moved.add(1);
                resume(shared, &mut caller, parts);
            }
            MoveResult::Lost => {
                shared.counts.lost_moving.add(1);
                shared.counts.open_connections.subtract(1);
            }
        }
    }
    let ended = broken.and_then(|()| channel.send(Kind::End, &[]));
    if !retired.is_empty() {
        thread::sleep(LINGER);
    }
    ended
}

/// The connections of a host, which nothing reads or writes any more.
fn take_connections(shared: &Shared, host: IpAddr) -> Vec<Parts> {
    let (to, connections) = channel();
    shared.inboxes.iter().for_each(|inbox| inbox.push_departing(DepartingHost { host, to: to.clone() }));
    drop(to);
    connections.iter().collect()
}

/// Has a connection go on here.
fn resume(shared: &Shared, caller: &mut Connector<'_>, parts: Parts) {
    let is_told = parts.streams.iter().all(|stream| {
        // What fails for a socket that is gone the worker finds out.
        stream.peer_addr().is_ok_and(|peer| caller.apply_options(stream, peer.ip()).is_ok())
    });
    if !is_told {
        shared.counts.reset.add(1);
    } else if shared.adopt(Pair::from_parts(parts)) {
        return;
    }
    shared.counts.open_connections.subtract(1);
}

/// Moves one connection. `broken` is the error that ends the conversation.
fn move_connection(channel: &mut Channel, parts: Parts, broken: &mut io::Result<()>) -> MoveResult {
    let Parts { streams: [client, server], pending: waiting } = parts;
    let (client, of_client) = match Frozen::freeze(client) {
        Ok(frozen) => frozen,
        Err((client, _)) => return MoveResult::Stays(Parts { streams: [client, server], pending: waiting }),
    };
    let (server, of_server) = match Frozen::freeze(server) {
        Ok(frozen) => frozen,
        Err((server, _)) => {
            return client.thaw().map_or(MoveResult::Lost, |client| {
                MoveResult::Stays(Parts { streams: [client, server], pending: waiting })
            });
        }
    };
    let sockets = [client, server];
    let agreed = connection_state(&sockets, [of_client, of_server], &waiting)
        .and_then(|moved| offer_state(channel, &moved, broken))
        .and_then(|()| check_unchanged(channel, &sockets, broken));
    let Some(clocks) = agreed else { return thaw_sockets(sockets, waiting) };
    // Two-step commit: from here on nothing goes on here, and a doubt ends in a reset, which the drop of frozen sockets is.
    let done =
        channel.send(Kind::Commit, &encode_clocks(clocks)).and_then(|()| channel.receive(STATION_TIMEOUT));
    match done {
        Ok((Kind::Done, _)) => MoveResult::Moved(sockets.map(Frozen::retire)),
        Ok((Kind::Failed, _)) => MoveResult::Lost,
        Ok(_) => {
            *broken = Err(ErrorKind::InvalidData.into());
            MoveResult::Lost
        }
        Err(error) => {
            *broken = Err(error);
            MoveResult::Lost
        }
    }
}

fn thaw_sockets(sockets: [Frozen; 2], waiting: [Vec<u8>; 2]) -> MoveResult {
    let [client, server] = sockets.map(Frozen::thaw);
    match (client, server) {
        (Ok(client), Ok(server)) => MoveResult::Stays(Parts { streams: [client, server], pending: waiting }),
        _ => MoveResult::Lost,
    }
}

/// The state of a connection. Bytes that were read of one half and that the other half has not sent go on in one row.
///
/// All but the last byte that was not read is in that row, too. The last one stays in the queue of its socket: the kernel announces
/// room to a host that saw a closed window when a byte is read.
fn connection_state(
    sockets: &[Frozen; 2],
    dumps: [Dump; 2],
    waiting: &[Vec<u8>; 2],
) -> Option<ConnectionState> {
    let [client, server] = [CLIENT, SERVER].map(|half| sockets[half].stream().peer_addr());
    let [mut of_client, mut of_server] = dumps;
    let read = |dump: &mut Dump| {
        let last = dump.state.unread.len().saturating_sub(1);
        let last = dump.state.unread.split_off(last);
        std::mem::replace(&mut dump.state.unread, last)
    };
    let (by_client, by_server) = (read(&mut of_client), read(&mut of_server));
    let waiting = [
        [&of_client.unsent[..], &waiting[CLIENT], &by_server].concat(),
        [&of_server.unsent[..], &waiting[SERVER], &by_client].concat(),
    ];
    let halves = [of_client.state, of_server.state];
    Some(ConnectionState { client: client.ok()?, server: server.ok()?, halves, unsent: waiting })
}

/// Offers the state. `None`: it is not taken.
fn offer_state(channel: &mut Channel, moved: &ConnectionState, broken: &mut io::Result<()>) -> Option<()> {
    let state = moved.emit();
    if state.len() > MAX_STATE {
        return None;
    }
    let mut offer = || {
        channel.send(Kind::Offer, &(state.len() as u32).to_be_bytes())?;
        state.chunks(MAX_FRAME).try_for_each(|bytes| channel.send(Kind::Bytes, bytes))?;
        match channel.receive(STATION_TIMEOUT)? {
            (Kind::Ready, _) => Ok(true),
            (Kind::Refuse, _) => Ok(false),
            _ => Err(ErrorKind::InvalidData.into()),
        }
    };
    match offer() {
        Ok(is_taken) => is_taken.then_some(()),
        Err(error) => {
            *broken = Err(error);
            None
        }
    }
}

/// The clocks of both sockets, if these are as they were read: packets that had passed the filter before may have come to them.
fn check_unchanged(
    channel: &mut Channel,
    sockets: &[Frozen; 2],
    broken: &mut io::Result<()>,
) -> Option<[Option<u32>; 2]> {
    let [client, server] = sockets;
    let clocks = client.check().and_then(|first| server.check().map(|second| [first, second]));
    if clocks.is_err() {
        *broken = channel.send(Kind::Abandon, &[]);
    }
    clocks.ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_claim_names_a_host_and_optionally_a_request() {
        let host: IpAddr = "10.9.0.7".parse().unwrap();
        assert_eq!(parse_claim(b"10.9.0.7"), Some((host, None)));
        assert_eq!(parse_claim(b"10.9.0.7 12"), Some((host, Some(12))));
        for wrong in ["", " ", "10.9.0.7 ", "10.9.0.7 x", "10.9.0.7 1 2", "10.9.0", "fd09::1 -1"] {
            assert_eq!(parse_claim(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
