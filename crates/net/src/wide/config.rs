//! What is set for sockets.

use crate::machine;
use hopline_core::Duration;
use hopline_sealed::{Credentials, HostConfig, PrivateKey, ResetKey, Seed, TransportConfig};
use std::io;
use std::net::SocketAddr;

/// Bytes written and not acknowledged before a write blocks: 100 Mb/s over 300 ms.
const SEND_BUFFER: u64 = 4 << 20;
/// Room for data that the peer is told of before anything was read of it: what is sent within a round trip at first, many times over.
const RECEIVE_START: u64 = 256 << 10;
/// Memory of received data of a socket, before each connection is kept to its share: as much as one connection may need.
const RECEIVE_MEMORY: u64 = 16 << 20;
/// Shorter than translators of addresses remember a silent connection, and than a user's patience.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// How much earlier than it might a packet leaves: a thread wakes late by less than that, and at 1 Gb/s a train has 80 packets.
const PACE_AHEAD: Duration = Duration::from_millis(1);
/// Time by which a thread may wake late without sending less for it, where other programs fill all processors: Linux grants a turn of some milliseconds.
const CATCH_UP: Duration = Duration::from_millis(4);
/// Datagrams of one connection in a row: as many as leave with one system call.
const BURST: u32 = 64;
/// How much longer the header of IPv6 is than that of IPv4, bytes.
const IPV6_EXTRA: u16 = 20;

/// What is to be known before a connection of TPA-wide is opened, or accepted.
#[derive(Clone, Debug)]
pub struct Config {
    /// Who we are, and who may be at the other end.
    pub credentials: Credentials,
    /// Of the transport. Over IPv6 20 bytes are taken off [`mss`](TransportConfig::mss).
    pub transport: TransportConfig,
}

/// TPA-wide for real networks: [`TransportConfig::DEFAULT`] with a send buffer of 4 MiB, a receive
/// window that begins with 256 KiB and grows with what is read, a sign of life asked for after 5 s of silence, so
/// that a peer whose address has changed is found again, and packets that leave up to 1 ms before their time, several with one system
/// call, and make up for 4 ms by which a thread woke late.
#[must_use]
pub fn config(credentials: Credentials) -> Config {
    let transport = TransportConfig {
        send_buffer: Some(SEND_BUFFER),
        receive_start: RECEIVE_START,
        keep_alive: Some(KEEP_ALIVE),
        pace_ahead: PACE_AHEAD,
        catch_up: CATCH_UP,
        ..TransportConfig::DEFAULT
    };
    Config { credentials, transport }
}

/// Of a host, with a [`ResetKey`] that nobody else has.
pub(super) fn of_host() -> io::Result<HostConfig> {
    let resets = Some(ResetKey::new(random()?));
    Ok(HostConfig { burst: BURST, receive_memory: RECEIVE_MEMORY, resets, ..HostConfig::default() })
}

pub(super) fn seed() -> io::Result<Seed> {
    random().map(Seed::new)
}

fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// What a listener at `local` tells peers that it has lost: after a restart it can be told again if the listener has a key of its own.
pub(super) fn resets(credentials: &Credentials, local: SocketAddr) -> Option<ResetKey> {
    match credentials {
        Credentials::Keys { private, .. } => Some(reset_key(private, local)),
        Credentials::Shared(_) => None,
    }
}

/// The key of this machine's listener at `local` that has this private key.
pub(crate) fn reset_key(private: &PrivateKey, local: SocketAddr) -> ResetKey {
    ResetKey::of(private, local, &machine::identity().concat())
}

/// With packets to or from `address` no longer than over IPv4. A listener on all addresses has peers of both kinds; those of IPv6
/// ask for shorter packets by themselves.
pub(super) fn fitted(transport: TransportConfig, address: SocketAddr) -> TransportConfig {
    let over_ipv6 = match address {
        SocketAddr::V4(_) => false,
        SocketAddr::V6(address) => !address.ip().is_unspecified() && address.ip().to_ipv4_mapped().is_none(),
    };
    let mss = if over_ipv6 { transport.mss.saturating_sub(IPV6_EXTRA) } else { transport.mss };
    TransportConfig { mss, ..transport }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_is_no_longer_over_ipv6() {
        let mss = |address: &str| fitted(TransportConfig::DEFAULT, address.parse().unwrap()).mss;
        assert_eq!(
            [mss("192.0.2.1:9"), mss("[::ffff:192.0.2.1]:9"), mss("[::]:9"), mss("[2001:db8::1]:9")],
            [1437, 1437, 1437, 1417]
        );
    }
}
