//! The holder: connections leave.

use super::arrival::emit_clocks;
use super::channel::{Channel, Kind, LONGEST_FRAME, Role};
use super::state::{LONGEST, Moved};
use super::{BaseStation, Moves, PATIENCE};
use crate::handoff::{Claimed, Moving};
use crate::split::Shared;
use crate::split::caller::Caller;
use crate::split::pair::{CLIENT, Pair, Parts, SERVER};
use crate::split::worker::Leaver;
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
const MOST: usize = 16;
/// Time for packets that a rule has led to a socket to reach it, before it is closed.
const LINGER: Duration = Duration::from_millis(20);

/// Listener for the claims of other stations.
#[derive(Debug)]
pub(in crate::split) struct Gate {
    listener: TcpListener,
    moves: Moves,
}

impl Gate {
    pub(in crate::split) fn open(moves: Moves) -> Result<Self, Error> {
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
                if asking.fetch_add(1, Ordering::Relaxed) >= MOST {
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
            Ok((_, from)) if !self.knows(from.ip()) => {
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

impl Gate {
    /// Returns whether a station with this address may claim.
    fn knows(&self, address: IpAddr) -> bool {
        let stations = &self.moves.stations;
        stations.is_empty() || stations.iter().any(|station| station.ip() == address)
    }
}

/// Reads a claim: the host, and the number of its request.
fn claim(bytes: &[u8]) -> Option<(IpAddr, Option<u64>)> {
    let text = str::from_utf8(bytes).ok()?;
    match text.split_once(' ') {
        Some((host, number)) => Some((host.parse().ok()?, Some(number.parse().ok()?))),
        None => Some((text.parse().ok()?, None)),
    }
}

/// Returns whether the connections of a claimed host may leave.
fn may_leave(moves: &Moves, host: IpAddr, number: Option<u64>) -> MayLeave {
    let Some(BaseStation { visitors, .. }) = &moves.base_station else { return MayLeave::Yes };
    if visitors.moving() == Moving::Suspended {
        return MayLeave::No;
    }
    match (host, number) {
        (IpAddr::V4(host), Some(number)) if visitors.claimed(host, number) == Claimed::IsBack => {
            MayLeave::IsBack
        }
        _ => MayLeave::Yes,
    }
}

enum MayLeave {
    Yes,
    No,
    IsBack,
}

/// Outcome for a connection that was to move.
enum Fate {
    Moved([Retired; 2]),
    /// The connection goes on here.
    Stays(Parts),
    /// The connection was reset.
    Lost,
}

/// Serves one station.
fn serve(shared: &Shared, moves: &Moves, stream: TcpStream) -> io::Result<()> {
    let mut channel = Channel::open(stream, Role::Holder, &moves.key, PATIENCE)?;
    let (Kind::Claim, host) = channel.receive(PATIENCE)? else { return Err(ErrorKind::InvalidData.into()) };
    let (host, number) = claim(&host).ok_or(ErrorKind::InvalidData)?;
    match may_leave(moves, host, number) {
        MayLeave::Yes => {}
        MayLeave::No => return channel.send(Kind::End, &[]),
        MayLeave::IsBack => return channel.send(Kind::IsBack, &[]),
    }
    let mut caller = Caller::new(shared).map_err(io::Error::other)?;
    let mut broken = Ok(());
    let mut retired = Vec::new();
    for parts in leaving(shared, host) {
        // Without the other station the rest goes on here.
        let fate = match broken {
            Ok(()) => depart(&mut channel, parts, &mut broken),
            Err(_) => Fate::Stays(parts),
        };
        match fate {
            Fate::Moved(sockets) => {
                retired.push(sockets);
                shared.counts.moved_away.add(1);
                shared.counts.open.subtract(1);
            }
            Fate::Stays(parts) => {
                shared.counts.unmoved.add(1);
                stay(shared, &mut caller, parts);
            }
            Fate::Lost => {
                shared.counts.lost_moving.add(1);
                shared.counts.open.subtract(1);
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
fn leaving(shared: &Shared, host: IpAddr) -> Vec<Parts> {
    let (to, connections) = channel();
    shared.inboxes.iter().for_each(|inbox| inbox.leave(Leaver { host, to: to.clone() }));
    drop(to);
    connections.iter().collect()
}

/// Has a connection go on here.
fn stay(shared: &Shared, caller: &mut Caller<'_>, parts: Parts) {
    let is_told = parts.streams.iter().all(|stream| {
        // What fails for a socket that is gone the worker finds out.
        stream.peer_addr().is_ok_and(|peer| caller.tell(stream, peer.ip()).is_ok())
    });
    if !is_told {
        shared.counts.reset.add(1);
    } else if shared.adopt(Pair::of(parts)) {
        return;
    }
    shared.counts.open.subtract(1);
}

/// Moves one connection. `broken` is the error that ends the conversation.
fn depart(channel: &mut Channel, parts: Parts, broken: &mut io::Result<()>) -> Fate {
    let Parts { streams: [client, server], waiting } = parts;
    let (client, of_client) = match Frozen::freeze(client) {
        Ok(frozen) => frozen,
        Err((client, _)) => return Fate::Stays(Parts { streams: [client, server], waiting }),
    };
    let (server, of_server) = match Frozen::freeze(server) {
        Ok(frozen) => frozen,
        Err((server, _)) => {
            return client
                .thaw()
                .map_or(Fate::Lost, |client| Fate::Stays(Parts { streams: [client, server], waiting }));
        }
    };
    let sockets = [client, server];
    let agreed = moved(&sockets, [of_client, of_server], &waiting)
        .and_then(|moved| offer(channel, &moved, broken))
        .and_then(|()| check(channel, &sockets, broken));
    let Some(clocks) = agreed else { return thawed(sockets, waiting) };
    // Two-step commit: from here on nothing goes on here, and a doubt ends in a reset, which the drop of frozen sockets is.
    let done = channel.send(Kind::Commit, &emit_clocks(clocks)).and_then(|()| channel.receive(PATIENCE));
    match done {
        Ok((Kind::Done, _)) => Fate::Moved(sockets.map(Frozen::retire)),
        Ok((Kind::Failed, _)) => Fate::Lost,
        Ok(_) => {
            *broken = Err(ErrorKind::InvalidData.into());
            Fate::Lost
        }
        Err(error) => {
            *broken = Err(error);
            Fate::Lost
        }
    }
}

fn thawed(sockets: [Frozen; 2], waiting: [Vec<u8>; 2]) -> Fate {
    let [client, server] = sockets.map(Frozen::thaw);
    match (client, server) {
        (Ok(client), Ok(server)) => Fate::Stays(Parts { streams: [client, server], waiting }),
        _ => Fate::Lost,
    }
}

/// The state of a connection. Bytes that were read of one half and that the other half has not sent go on in one row.
///
/// All but the last byte that was not read is in that row, too. The last one stays in the queue of its socket: the kernel announces
/// room to a host that saw a closed window when a byte is read.
fn moved(sockets: &[Frozen; 2], dumps: [Dump; 2], waiting: &[Vec<u8>; 2]) -> Option<Moved> {
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
    Some(Moved { client: client.ok()?, server: server.ok()?, halves, waiting })
}

/// Offers the state. `None`: it is not taken.
fn offer(channel: &mut Channel, moved: &Moved, broken: &mut io::Result<()>) -> Option<()> {
    let state = moved.emit();
    if state.len() > LONGEST {
        return None;
    }
    let mut offer = || {
        channel.send(Kind::Offer, &(state.len() as u32).to_be_bytes())?;
        state.chunks(LONGEST_FRAME).try_for_each(|bytes| channel.send(Kind::Bytes, bytes))?;
        match channel.receive(PATIENCE)? {
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
fn check(
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
    fn a_claim_names_a_host_and_maybe_a_request() {
        let host: IpAddr = "10.9.0.7".parse().unwrap();
        assert_eq!(claim(b"10.9.0.7"), Some((host, None)));
        assert_eq!(claim(b"10.9.0.7 12"), Some((host, Some(12))));
        for wrong in ["", " ", "10.9.0.7 ", "10.9.0.7 x", "10.9.0.7 1 2", "10.9.0", "fd09::1 -1"] {
            assert_eq!(claim(wrong.as_bytes()), None, "{wrong}");
        }
    }
}
