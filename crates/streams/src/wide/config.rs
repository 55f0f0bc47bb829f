//! Defaults for real networks.

use hopline_core::{Duration, settings};
use hopline_linux::host_id;
use hopline_sealed::{Credentials, HostConfig, PrivateKey, ResetKey, Seed, TransportConfig};
use std::io;
use std::net::SocketAddr;

/// Bytes written and not acknowledged after which a write blocks: 100 Mb/s over 300 ms.
const SEND_BUFFER: u64 = 4 << 20;
/// Initial receive window, in bytes: many times the data sent in the first round trip.
const RECEIVE_START: u64 = 256 << 10;
/// Memory for received data of a socket, in bytes, beyond which each connection is limited to its share: as much as one
/// connection may need.
const RECEIVE_MEMORY: u64 = 16 << 20;
/// Interval of keep-alive probes, shorter than the timeout of address translators and a user's patience.
const KEEP_ALIVE: Duration = Duration::from_secs(5);
/// Maximum time by which a packet leaves early. A thread normally wakes late by less, and at 1 Gb/s a GSO group then has
/// 80 packets.
const MAX_EARLY_SEND: Duration = Duration::from_millis(1);
/// Maximum lateness of a wake-up that the pacer makes up for when other programs occupy all processors: Linux grants time
/// slices of some milliseconds.
const MAX_CATCH_UP: Duration = Duration::from_millis(4);
/// Maximum consecutive datagrams of one connection: those of one GSO group.
const MAX_BURST: u32 = 64;
/// Additional bytes of the IPv6 header over that of IPv4.
const IPV6_EXTRA: u16 = 20;

settings! {
    /// Configuration for opening or accepting a connection of TPA-wide. Start from [`config`] and use the setters.
    #[derive(Clone, Debug)]
    pub struct Config {
        /// Credentials of this side, and the set of permitted peers.
        credentials, with_credentials: Credentials as owned,
        /// Parameters of the transport. Default as [`config`] says. Over IPv6, [`mss`](TransportConfig::mss) is reduced by 20 bytes.
        transport, with_transport: TransportConfig,
    }
}

impl Config {
    /// Credentials of this side, and the set of permitted peers.
    #[must_use]
    pub const fn credentials(&self) -> &Credentials {
        &self.credentials
    }
}

/// Returns the configuration of TPA-wide for real networks. It differs from [`TransportConfig::DEFAULT`] in the
/// following:
///
/// - The send buffer has 4 MiB.
/// - The receive window starts at 256 KiB and grows with the data read.
/// - A keep-alive probe is sent after 5 s of silence, so that a peer with a changed address is found again.
/// - Packets leave up to 1 ms early, several with one system call.
/// - The pacer makes up for wake-ups that are up to 4 ms late.
#[must_use]
pub fn config(credentials: Credentials) -> Config {
    let transport = TransportConfig::DEFAULT
        .with_send_buffer(Some(SEND_BUFFER))
        .with_initial_receive_window(RECEIVE_START)
        .with_keep_alive(Some(KEEP_ALIVE))
        .with_pace_ahead(MAX_EARLY_SEND)
        .with_catch_up(MAX_CATCH_UP);
    Config { credentials, transport }
}

/// Returns the configuration of a host, with a random [`ResetKey`] of its own.
pub(super) fn host_config() -> io::Result<HostConfig> {
    let resets = Some(ResetKey::new(random()?));
    Ok(HostConfig::default().with_burst(MAX_BURST).with_receive_memory(RECEIVE_MEMORY).with_reset_key(resets))
}

pub(super) fn seed() -> io::Result<Seed> {
    random().map(Seed::new)
}

fn random() -> io::Result<[u8; 32]> {
    let mut bytes = [0; 32];
    getrandom::fill(&mut bytes)?;
    Ok(bytes)
}

/// Returns the stateless reset key of a listener at `local`. With a private key it is the same after a restart, so that
/// peers detect the loss of their connections.
pub(super) fn reset_key_for(credentials: &Credentials, local: SocketAddr) -> Option<ResetKey> {
    match credentials {
        Credentials::Keys { private, .. } => Some(reset_key(private, local)),
        Credentials::Shared(_) => None,
    }
}

/// Returns the stateless reset key of this host's listener at `local` with this private key.
#[must_use]
pub fn reset_key(private: &PrivateKey, local: SocketAddr) -> ResetKey {
    ResetKey::derive(private, local, &host_id::identity().concat())
}

/// Returns the configuration with packets to or from `address` no longer than over IPv4. A listener on all addresses has
/// peers of both versions; IPv6 peers request shorter packets themselves.
pub(super) fn config_for(transport: TransportConfig, address: SocketAddr) -> TransportConfig {
    let over_ipv6 = match address {
        SocketAddr::V4(_) => false,
        SocketAddr::V6(address) => !address.ip().is_unspecified() && address.ip().to_ipv4_mapped().is_none(),
    };
    let mss = if over_ipv6 { transport.mss().saturating_sub(IPV6_EXTRA) } else { transport.mss() };
    transport.with_mss(mss)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packets_are_shorter_over_ipv6() {
        let mss = |address: &str| config_for(TransportConfig::DEFAULT, address.parse().unwrap()).mss();
        assert_eq!(
            [mss("192.0.2.1:9"), mss("[::ffff:192.0.2.1]:9"), mss("[::]:9"), mss("[2001:db8::1]:9")],
            [1437, 1437, 1437, 1417]
        );
    }
}
