//! The claimant: connections come here.

use super::channel::{Channel, Kind, MAX_FRAME, Role};
use super::state::{ConnectionState, MAX_STATE};
use super::{ClaimReport, MAX_STAGED_TIME, STATION_TIMEOUT};
use crate::split::Shared;
use crate::split::connector::Connector;
use crate::split::pair::{CLIENT, Pair, Parts, SERVER};
use hopline_linux::repair::{Marking, Restored, probe_peer};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind, Read};
use std::net::{IpAddr, SocketAddr, TcpStream};

/// Answer of the holder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ClaimResult {
    /// These connections have come, and there are no more.
    Arrived(ClaimReport),
    /// The host has gone back there.
    Returned,
}

/// Claims the connections of a host. `number`: that of the host's last request to the station of this machine.
pub(super) fn claim(
    shared: &Shared,
    host: IpAddr,
    number: Option<u64>,
    from: SocketAddr,
) -> io::Result<ClaimResult> {
    let moves = shared.moves.as_ref().ok_or(ErrorKind::Unsupported)?;
    let stream = connect(moves.listen.ip(), from)?;
    let mut channel = Channel::open(stream, Role::Claimant, &moves.key, STATION_TIMEOUT)?;
    let number = number.map_or_else(String::new, |number| format!(" {number}"));
    channel.send(Kind::Claim, format!("{host}{number}").as_bytes())?;
    let mut caller = Connector::new(shared).map_err(io::Error::other)?;
    let mut arrived = ClaimReport::default();
    loop {
        match channel.receive(STATION_TIMEOUT)? {
            (Kind::Offer, len) => {
                let bytes = receive_state(&mut channel, &len)?;
                let came = receive_connection(shared, &mut caller, &mut channel, (host, &bytes))?;
                if came {
                    shared.counts.moved_here.add(1);
                    shared.counts.moved_bytes.add(bytes.len() as u64);
                    arrived.connections += 1;
                    arrived.bytes += bytes.len() as u64;
                    channel.send(Kind::Done, &[])?;
                } else {
                    arrived.refused += 1;
                }
            }
            (Kind::End, _) => return Ok(ClaimResult::Arrived(arrived)),
            (Kind::Returned, _) => return Ok(ClaimResult::Returned),
            _ => return Err(ErrorKind::InvalidData.into()),
        }
    }
}

/// Connects to another station by our address, which it knows.
fn connect(ours: IpAddr, to: SocketAddr) -> io::Result<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, Some(Protocol::TCP))?;
    if !ours.is_unspecified() && ours.is_ipv4() == to.is_ipv4() {
        socket.bind(&SocketAddr::new(ours, 0).into())?;
    }
    socket.connect_timeout(&to.into(), STATION_TIMEOUT)?;
    Ok(socket.into())
}

/// The state of a connection.
fn receive_state(channel: &mut Channel, len: &[u8]) -> io::Result<Vec<u8>> {
    let len = <[u8; 4]>::try_from(len).map(u32::from_be_bytes).map_err(|_| ErrorKind::InvalidData)? as usize;
    if len > MAX_STATE {
        return Err(ErrorKind::InvalidData.into());
    }
    let mut state = Vec::new();
    while state.len() < len {
        let (kind, bytes) = channel.receive(STATION_TIMEOUT)?;
        if kind != Kind::Bytes || bytes.is_empty() || bytes.len() > MAX_FRAME.min(len - state.len()) {
            return Err(ErrorKind::InvalidData.into());
        }
        state.extend_from_slice(&bytes);
    }
    Ok(state)
}

/// Takes one connection. Returns whether it goes on here.
fn receive_connection(
    shared: &Shared,
    caller: &mut Connector<'_>,
    channel: &mut Channel,
    (host, bytes): (IpAddr, &[u8]),
) -> io::Result<bool> {
    let moved =
        ConnectionState::parse(bytes).filter(|moved| moved.is_of(host)).ok_or(ErrorKind::InvalidData)?;
    let Ok(staged) = restore_sockets(shared, caller, &moved) else {
        channel.send(Kind::Refuse, &[])?;
        return Ok(false);
    };
    channel.send(Kind::Ready, &[])?;
    // Staged sockets that are dropped end silently: the holder still has the connection, or resets it.
    let (Kind::Commit, clocks) = channel.receive(MAX_STAGED_TIME)? else { return Ok(false) };
    let [to_client, to_server] = decode_clocks(&clocks).ok_or(ErrorKind::InvalidData)?;
    let [client, server] = staged;
    let client = client.activate(to_client);
    let server = server.activate(to_server);
    // From here on a connection that does not go on is reset.
    shared.counts.open_connections.add(1);
    let gone_on = client.and_then(|client| Ok([client, server?])).and_then(|streams| resume(streams, moved));
    let goes_on = gone_on.is_ok_and(|parts| shared.adopt(Pair::from_parts(parts)));
    if !goes_on {
        shared.counts.open_connections.subtract(1);
        shared.counts.lost_moving.add(1);
        channel.send(Kind::Failed, &[])?;
    }
    Ok(goes_on)
}

/// Has both hosts learn that the connection goes on.
fn resume(streams: [TcpStream; 2], moved: ConnectionState) -> io::Result<Parts> {
    let ConnectionState { halves, unsent: mut waiting, .. } = moved;
    for (half, state) in halves.iter().enumerate() {
        let mut unread = vec![0; state.unread.len()];
        { &streams[half] }.read_exact(&mut unread)?;
        waiting[1 - half].extend_from_slice(&unread);
        probe_peer(&streams[half])?;
    }
    Ok(Parts { streams, pending: waiting })
}

/// Makes both sockets.
fn restore_sockets(
    shared: &Shared,
    caller: &mut Connector<'_>,
    moved: &ConnectionState,
) -> io::Result<[Restored; 2]> {
    if shared.counts.open_connections.get() >= shared.max_connections as u64 {
        return Err(ErrorKind::ResourceBusy.into());
    }
    let mut half = |half: usize, marked: Marking| {
        let (local, peer) = moved.addresses(half);
        let options = caller.options(peer.ip())?.ok_or(ErrorKind::AddrNotAvailable)?;
        let restore = || Restored::restore(local, peer, &moved.halves[half], &options, marked);
        shared.spare_descriptor.with_spare_held(restore)
    };
    Ok([half(CLIENT, Marking::FromOptions)?, half(SERVER, Marking::Onward)?])
}

/// The clocks of timestamps of both halves, where they have one.
fn decode_clocks(bytes: &[u8]) -> Option<[Option<u32>; 2]> {
    let clock = |bytes: [u8; 5]| {
        let [has, number @ ..] = bytes;
        (has == 1).then(|| u32::from_be_bytes(number))
    };
    let (both, rest) = bytes.as_chunks::<5>();
    let both: [[u8; 5]; 2] = both.try_into().ok()?;
    rest.is_empty().then(|| both.map(clock))
}

/// Returns the bytes that [`decode_clocks`] reads.
pub(super) fn encode_clocks(clocks: [Option<u32>; 2]) -> Vec<u8> {
    let clock = |clock: Option<u32>| {
        let [a, b, c, d] = clock.unwrap_or(0).to_be_bytes();
        [u8::from(clock.is_some()), a, b, c, d]
    };
    clocks.map(clock).concat()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn clocks_round_trip() {
        for clocks in [[None, None], [Some(0), None], [Some(7), Some(u32::MAX)]] {
            assert_eq!(decode_clocks(&encode_clocks(clocks)), Some(clocks));
        }
        assert_eq!((decode_clocks(&[]), decode_clocks(&[0; 9]), decode_clocks(&[0; 11])), (None, None, None));
    }
}
