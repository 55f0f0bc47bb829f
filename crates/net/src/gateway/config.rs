//! What gateways are told.

use super::destination::{Allowed, Destination};
use super::error::Error;
use super::key::{Key, Name, Peer};
use super::socks::Login;
use crate::tpa;
use crate::transparent::LegOptions;
use crate::wide::{self, Credentials, PreSharedKey, TransportConfig};
use hopline_core::Duration as Span;
use std::collections::BTreeSet;
use std::net::{Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

/// The UDP port of TPA unless something else is said; it is not registered.
const PORT: u16 = 7172;
/// cwndmax of the trunk.
const CWND_MAX: u8 = 12;
/// How long a peer may be silent.
const SILENCE: Span = Span::from_secs(60);
/// What TPA-wide keeps of each direction, bytes.
const WIDE_BUFFER: u64 = 2 << 20;

const CONNECTIONS: RangeInclusive<u32> = 1..=65_535;
const BUFFER: RangeInclusive<u32> = 4096..=1 << 20;

/// What an entrance is to do. Start from [`EntranceConfig::new`].
#[derive(Clone, Debug, PartialEq)]
pub struct EntranceConfig {
    /// How connections come in; at least one way.
    pub ways: Vec<Way>,
    /// Where the exit is reached: address and UDP port.
    pub exit: SocketAddr,
    /// What UDP address TPA is spoken from. Default: any address, any port. With a port of its own, an entrance that was started anew
    /// tells the exit at once that its former connections are gone.
    pub local: Option<SocketAddr>,
    /// By what name the exit knows this entrance.
    pub name: Name,
    /// The secret shared with the exit.
    pub key: Key,
    /// What carries the trunk, alike at both ends. Default [`Transport::tpa`].
    pub transport: Transport,
    /// What becomes of connections while no exit answers. Default [`Fallback::Tcp`].
    pub fallback: Fallback,
    /// How long an exit may take to answer before it counts as absent. 100 ms to 60 s, default 3 s.
    pub fallback_after: Duration,
    /// How long it counts as absent before it is tried again, in the background, and again. 100 ms to 1 h, default 30 s.
    pub retry_after: Duration,
    /// How long a client of SOCKS may take to say where it wants to go. 100 ms to 60 s, default 10 s.
    pub negotiation_timeout: Duration,
    /// How long to wait for a TCP connection when there is no exit. 100 ms to 25 s, default 10 s.
    pub connect_timeout: Duration,
    /// What the kernel's TCP is told, of clients and, where there is no exit, of destinations. Default [`LegOptions::default`].
    pub tcp: LegOptions,
    /// Connections at once; more are reset. 1 to 65 535, default 1024. Half of them may be clients that have not yet said where they want to go.
    pub max_connections: u32,
    /// Bytes kept for each direction of a connection, beside what TPA and the kernel keep. 4 KiB to 1 MiB, default 32 KiB.
    pub buffer: u32,
    /// Whose address is shown to the destination. Default [`Sources::Gateway`]. [`Sources::Client`] asks the exit for the same, and
    /// needs `CAP_NET_ADMIN` when an exit is absent and connections go by TCP.
    pub sources: Sources,
}

/// What carries connections from gateway to gateway.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    /// TPA as published: at most 12 segments in flight, nothing encrypted.
    Tpa(tpa::Config),
    /// TPA-wide, encrypted, with keys that are made of those which the gateways share.
    TpaWide(TransportConfig),
}

/// How connections come in.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Way {
    /// Whoever connects to `listen` is connected to `to`.
    Forward {
        /// Address and TCP port here.
        listen: SocketAddr,
        /// Where all of them go.
        to: Destination,
    },
    /// SOCKS version 5: clients say where to.
    Socks {
        /// Address and TCP port here. 127.0.0.1:1080 is the usual one: whoever reaches it may use it, unless there is a login.
        listen: SocketAddr,
        /// What clients must show. `None`: nothing.
        login: Option<Login>,
    },
    /// Connections that rules of the system divert here (TPROXY), and that go where they would have gone.
    Transparent {
        /// Address and TCP port here, as in the rule.
        listen: SocketAddr,
    },
}

/// What becomes of connections while no exit answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fallback {
    /// They go by TCP from here.
    #[default]
    Tcp,
    /// They are refused.
    Refuse,
}

/// Whose address a destination sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Sources {
    /// That of the gateway that connects.
    #[default]
    Gateway,
    /// The client's; what is sent back to it must come by the gateway (`IP_TRANSPARENT`).
    Client,
}

/// What an exit is to do. Start from [`ExitConfig::new`].
#[derive(Clone, Debug, PartialEq)]
pub struct ExitConfig {
    /// UDP address at which entrances find it. Default 0.0.0.0:7172.
    pub listen: SocketAddr,
    /// Whom it serves; at least one, each under a name of its own.
    pub peers: Vec<Peer>,
    /// Where it lets connections go. Default [`Allowed::Beyond`].
    pub allowed: Allowed,
    /// Whose address destinations see. Default [`Sources::Gateway`]. [`Sources::Client`] holds for requests that name a client, and
    /// needs `CAP_NET_ADMIN` while it runs.
    pub sources: Sources,
    /// What carries the trunk, as in [`EntranceConfig`].
    pub transport: Transport,
    /// How long an entrance may take to say what it wants, from when it was taken. 100 ms to 60 s, default 10 s.
    pub request_timeout: Duration,
    /// How long to wait for a TCP connection onward, names included. 100 ms to 25 s, default 10 s.
    pub connect_timeout: Duration,
    /// What the kernel's TCP is told, of destinations. Default [`LegOptions::default`].
    pub tcp: LegOptions,
    /// Connections at once; an entrance that asks for more is told so. 1 to 65 535, default 1024.
    pub max_connections: u32,
    /// As in [`EntranceConfig`].
    pub buffer: u32,
}

impl EntranceConfig {
    /// An entrance called `name` to the exit at `exit`, with one way in and the default of everything else.
    #[must_use]
    pub fn new(way: Way, exit: SocketAddr, name: Name, key: Key) -> Self {
        Self {
            ways: vec![way],
            exit,
            local: None,
            name,
            key,
            transport: Transport::tpa(),
            fallback: Fallback::Tcp,
            fallback_after: Duration::from_secs(3),
            retry_after: Duration::from_secs(30),
            negotiation_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            tcp: LegOptions::default(),
            max_connections: 1024,
            buffer: 32 * 1024,
            sources: Sources::Gateway,
        }
    }

    /// Checks what the types leave open.
    ///
    /// # Errors
    /// The first parameter that is out of its range.
    pub fn validate(&self) -> Result<(), Error> {
        let second = Duration::from_secs;
        check(!self.ways.is_empty(), "ways", "at least one")?;
        check(self.exit.port() > 0, "exit", "an address with a port")?;
        let alike = |local: SocketAddr| local.is_ipv6() || self.exit.is_ipv4();
        check(self.local.is_none_or(alike), "local", "of the exit's version of IP")?;
        check(is_within(self.fallback_after, second(60)), "fallback_after", "100 ms to 60 s")?;
        check(is_within(self.negotiation_timeout, second(60)), "negotiation_timeout", "100 ms to 60 s")?;
        check(is_within(self.retry_after, second(3600)), "retry_after", "100 ms to 1 h")?;
        self.tcp.check()?;
        check_common(&self.transport, self.connect_timeout, self.max_connections, self.buffer)
    }
}

impl ExitConfig {
    /// An exit for `peers` at port 7172, with the default of everything else.
    #[must_use]
    pub fn new(peers: Vec<Peer>) -> Self {
        Self {
            listen: (Ipv4Addr::UNSPECIFIED, PORT).into(),
            peers,
            allowed: Allowed::Beyond,
            sources: Sources::Gateway,
            transport: Transport::tpa(),
            request_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            tcp: LegOptions::default(),
            max_connections: 1024,
            buffer: 32 * 1024,
        }
    }

    /// Checks what the types leave open.
    ///
    /// # Errors
    /// The first parameter that is out of its range.
    pub fn validate(&self) -> Result<(), Error> {
        check(!self.peers.is_empty(), "peers", "at least one")?;
        let names: BTreeSet<_> = self.peers.iter().map(|peer| &peer.name).collect();
        check(is_within(self.request_timeout, Duration::from_secs(60)), "request_timeout", "100 ms to 60 s")?;
        check(names.len() == self.peers.len(), "peers", "of different names")?;
        self.tcp.check()?;
        check_common(&self.transport, self.connect_timeout, self.max_connections, self.buffer)
    }
}

impl Transport {
    /// [`tpa::config`] with a window of 12, a least RTO of 20 ms and an ACK timer of 10 ms; a peer that is silent for 60 s is lost.
    #[must_use]
    pub fn tpa() -> Self {
        let mut config = tpa::config(CWND_MAX);
        config.silence_limit = Some(SILENCE);
        // The timers of TPA as published are for hosts far apart: over a short trunk a loss would cost many round trips.
        (config.rto.min, config.ack.timer) = (Span::from_millis(20), Span::from_millis(10));
        Self::Tpa(config)
    }

    /// What [`wide::config`] has, with 2 MiB kept of each direction of a connection, of which there may be many: 300 Mb/s over 50 ms. A peer
    /// that is silent for 60 s is lost.
    #[must_use]
    pub fn tpa_wide() -> Self {
        // The gateways have credentials of their own.
        let mut config = wide::config(Credentials::Shared(PreSharedKey::new([0; 32]))).transport;
        config.silence.limit = Some(SILENCE);
        (config.send_buffer, config.receive_buffer) = (Some(WIDE_BUFFER), WIDE_BUFFER);
        Self::TpaWide(config)
    }

    fn check(&self) -> Result<(), Error> {
        let (valid, keep_alive, silence) = match self {
            Self::Tpa(config) => (config.validate(), config.keep_alive, config.silence_limit),
            Self::TpaWide(config) => (config.validate(), config.keep_alive, config.silence.limit),
        };
        valid.map_err(|error| Error::Config { field: error.field, must: error.must })?;
        check(keep_alive.is_some(), "keep_alive", "set: else a peer that is gone is never missed")?;
        check(silence.is_some(), "silence limit", "set: else a peer that is gone is never given up")
    }
}

fn check_common(
    transport: &Transport,
    connect: Duration,
    connections: u32,
    buffer: u32,
) -> Result<(), Error> {
    transport.check()?;
    check(is_within(connect, Duration::from_secs(25)), "connect_timeout", "100 ms to 25 s")?;
    check(CONNECTIONS.contains(&connections), "max_connections", "1 to 65535")?;
    check(BUFFER.contains(&buffer), "buffer", "4 KiB to 1 MiB")
}

fn is_within(duration: Duration, most: Duration) -> bool {
    (Duration::from_millis(100)..=most).contains(&duration)
}

fn check(ok: bool, field: &'static str, must: &'static str) -> Result<(), Error> {
    if ok { Ok(()) } else { Err(Error::Config { field, must }) }
}
