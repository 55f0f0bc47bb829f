//! What gateways are told.

use super::destination::{Allowed, Destination, Rule, is_private};
use super::embedded;
use super::error::Error;
use super::key::{Key, Name, Peer};
use super::socks::Login;
use crate::tpa;
use crate::transparent::LegOptions;
use crate::wide::{self, Credentials, PreSharedKey, TransportConfig};
use hopline_core::Duration as Span;
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
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

/// Longest time that connections wait for a place.
const MAX_WAIT: Duration = Duration::from_secs(10);
/// Most streams that are kept ready; an exit takes more.
const MOST_SPARE: u32 = 64;

const CONNECTIONS: RangeInclusive<u32> = 1..=65_535;
const BUFFER: RangeInclusive<u32> = 4096..=1 << 20;

/// What an entrance is to do. Start from [`EntranceConfig::new`].
#[derive(Clone, Debug, PartialEq)]
pub struct EntranceConfig {
    /// How connections come in; at least one way.
    pub ways: Vec<Way>,
    /// Address or name of the exit, and UDP port. A name is resolved anew whenever the trunk is opened.
    pub exit: Destination,
    /// What UDP address TPA is spoken from. Default: any address, any port. With a port of its own, an entrance that was started anew
    /// tells the exit at once that its former connections are gone.
    pub local: Option<SocketAddr>,
    /// By what name the exit knows this entrance.
    pub name: Name,
    /// The secret shared with the exit.
    pub key: Key,
    /// What carries the trunk, alike at both ends. Default [`Transport::tpa`].
    pub transport: Transport,
    /// Treatment of connections while no exit answers. `None`, the default: [`Fallback::Tcp`] over TPA; [`Fallback::Refuse`] over a transport
    /// that encrypts, so that no byte leaves in clear unless `Some(Fallback::Tcp)` says so.
    pub fallback: Option<Fallback>,
    /// Permitted destinations of connections that leave this host by TCP, and not through the exit. Empty, the default: anywhere but to this host itself and its
    /// neighbours on a link, and, of clients of SOCKS, to private networks. The destination of [`Way::Forward`] is always allowed.
    pub allowed: Vec<Rule>,
    /// Longest silence of an exit before it counts as absent, for new connections. 100 ms to 60 s, default 3 s.
    pub fallback_after: Duration,
    /// Longest silence of an exit before connections through it are reset. 100 ms to 1 h, default 4.5 s.
    pub reset_after: Duration,
    /// Time from a failed attempt until an absent exit is tried again. 100 ms to 1 h, default 2 s.
    pub retry_after: Duration,
    /// Streams to the exit that are kept ready, so that new connections need no handshake. 0 to 64, default 4.
    pub spare_connections: u32,
    /// How long a client of SOCKS may take to say where it wants to go. 100 ms to 60 s, default 10 s.
    pub negotiation_timeout: Duration,
    /// How long to wait for a TCP connection when there is no exit. 100 ms to 25 s, default 10 s.
    pub connect_timeout: Duration,
    /// What the kernel's TCP is told, of clients and, where there is no exit, of destinations. Default [`LegOptions::default`].
    pub tcp: LegOptions,
    /// Connections at once. 1 to 65 535, default 1024. As many again may wait for a place, or have not said where they want to go; half of these
    /// from one address, of IPv6 one network of 64 bits. More are reset.
    pub max_connections: u32,
    /// Longest time that a connection waits for a place before it is reset. 100 ms to 30 s, default 10 s.
    pub max_wait: Duration,
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
        /// Address and TCP port here, such as 127.0.0.1:1080. Beyond the loopback interface there must be a login.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// They go by TCP from here, in clear.
    Tcp,
    /// They are accepted and reset: a client is answered before it is known what becomes of its call. Clients of SOCKS are told.
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
    /// Trunks that an entrance may have at once; if it opens another one, its oldest is over, with all connections of that. An entrance has
    /// one, and more for a while when it was started anew. 1 to 1024, default 16.
    pub max_trunks: u32,
    /// Connections at once. 1 to 65 535, default 1024. As many requests again may wait for a place; an entrance that asks for more is told so.
    pub max_connections: u32,
    /// Longest time that a request waits for a place before the entrance is told that there is none. 100 ms to 30 s, default 10 s.
    pub max_wait: Duration,
    /// As in [`EntranceConfig`].
    pub buffer: u32,
}

impl EntranceConfig {
    /// An entrance called `name` to the exit at `exit`, with one way in and the default of everything else.
    #[must_use]
    pub fn new(way: Way, exit: impl Into<Destination>, name: Name, key: Key) -> Self {
        Self {
            ways: vec![way],
            exit: exit.into(),
            local: None,
            name,
            key,
            transport: Transport::tpa(),
            fallback: None,
            allowed: Vec::new(),
            fallback_after: Duration::from_secs(3),
            reset_after: Duration::from_millis(4500),
            retry_after: Duration::from_secs(2),
            spare_connections: 4,
            negotiation_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            tcp: LegOptions::default(),
            max_connections: 1024,
            max_wait: MAX_WAIT,
            buffer: 32 * 1024,
            sources: Sources::Gateway,
        }
    }

    /// Returns what becomes of connections while no exit answers.
    #[must_use]
    pub fn fallback(&self) -> Fallback {
        self.fallback.unwrap_or(match self.transport {
            Transport::Tpa(_) => Fallback::Tcp,
            Transport::TpaWide(_) => Fallback::Refuse,
        })
    }

    /// Returns whether connections that the trunk would encrypt may go in clear.
    #[must_use]
    pub fn falls_back_in_clear(&self) -> bool {
        self.transport.encrypts() && self.fallback() == Fallback::Tcp
    }

    /// Returns whether a connection that came in by `way` may go to `address` by TCP from here. `is_own`: whether an address is this host's.
    pub(super) fn permits(&self, way: &Way, address: SocketAddr, is_own: impl Fn(IpAddr) -> bool) -> bool {
        let ip = address.ip();
        let is_own = || embedded::all_of(ip).any(is_own);
        match way {
            Way::Forward { .. } => true,
            _ if !self.allowed.is_empty() => Allowed::permits_by(&self.allowed, address),
            // The client chooses freely, and might not reach this network itself.
            Way::Socks { .. } => Allowed::Beyond.permits(address) && !is_private(ip) && !is_own(),
            // Its packets were on their way there.
            Way::Transparent { .. } => Allowed::Beyond.permits(address) && !is_own(),
        }
    }

    /// Checks what the types leave open.
    ///
    /// # Errors
    /// The first parameter that is out of its range.
    pub fn validate(&self) -> Result<(), Error> {
        let second = Duration::from_secs;
        check(!self.ways.is_empty(), "ways", "at least one")?;
        check(
            !self.ways.iter().any(Way::is_open_relay),
            "login",
            "set where SOCKS listens beyond the loopback interface",
        )?;
        check(self.exit.port() > 0, "exit", "an address or name with a port")?;
        let is_ipv6 = matches!(self.exit, Destination::Address(SocketAddr::V6(_)));
        let alike = |local: SocketAddr| local.is_ipv6() || !is_ipv6;
        check(self.local.is_none_or(alike), "local", "of the exit's version of IP")?;
        check(is_within(self.fallback_after, second(60)), "fallback_after", "100 ms to 60 s")?;
        check(is_within(self.negotiation_timeout, second(60)), "negotiation_timeout", "100 ms to 60 s")?;
        check(is_within(self.retry_after, second(3600)), "retry_after", "100 ms to 1 h")?;
        check(is_within(self.reset_after, second(3600)), "reset_after", "100 ms to 1 h")?;
        check(self.spare_connections <= MOST_SPARE, "spare_connections", "0 to 64")?;
        self.tcp.check()?;
        check_common(
            &self.transport,
            [self.connect_timeout, self.max_wait],
            self.max_connections,
            self.buffer,
        )
    }
}

impl Way {
    /// Returns whether any host that reaches the listener can have connections made, to wherever it likes.
    #[must_use]
    pub fn is_open_relay(&self) -> bool {
        matches!(self, Self::Socks { listen, login: None } if !listen.ip().to_canonical().is_loopback())
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
            max_trunks: 16,
            max_connections: 1024,
            max_wait: MAX_WAIT,
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
        check((1..=1024).contains(&self.max_trunks), "max_trunks", "1 to 1024")?;
        self.tcp.check()?;
        check_common(
            &self.transport,
            [self.connect_timeout, self.max_wait],
            self.max_connections,
            self.buffer,
        )
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

    /// Returns whether it encrypts.
    #[must_use]
    pub const fn encrypts(&self) -> bool {
        matches!(self, Self::TpaWide(_))
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
    [connect, wait]: [Duration; 2],
    connections: u32,
    buffer: u32,
) -> Result<(), Error> {
    transport.check()?;
    check(is_within(wait, Duration::from_secs(30)), "max_wait", "100 ms to 30 s")?;
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

#[cfg(test)]
mod tests {
    use super::*;

    fn config(way: Way, allowed: &[&str]) -> EntranceConfig {
        let exit = SocketAddr::from(([192, 0, 2, 7], 7172));
        let allowed = allowed.iter().map(|rule| rule.parse().unwrap()).collect();
        let name = "a".parse().unwrap();
        EntranceConfig { allowed, ..EntranceConfig::new(way, exit, name, Key::new(&[1; 32])) }
    }

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn socks(listen: &str, login: Option<Login>) -> Way {
        Way::Socks { listen: at(listen), login }
    }

    /// Returns whether a connection that came in by `way` may go to `address`. This host is 198.51.100.1.
    fn permits(way: &Way, allowed: &[&str], address: &str) -> bool {
        let is_own = |ip: IpAddr| ip == at("198.51.100.1:1").ip();
        config(way.clone(), allowed).permits(way, at(address), is_own)
    }

    #[test]
    fn clients_of_socks_reach_the_internet_or_what_is_listed() {
        let way = socks("127.0.0.1:1080", None);
        for no in [
            "127.0.0.1:80",
            "198.51.100.1:22",
            "10.1.2.3:80",
            "192.168.1.1:80",
            "100.64.1.1:80",
            "[fd00::1]:80",
            "[fe80::1]:80",
            "[::ffff:10.1.2.3]:80",
            "[::10.1.2.3]:80",
            "[2002:a01:203::1]:80",
            "[2002:c633:6401::1]:80",
            "[64:ff9b::198.51.100.1]:80",
            "[64:ff9b:1::10.1.2.3]:80",
            "[2001:0:cb00:7101::39cc:9bfe]:80",
        ] {
            assert!(!permits(&way, &[], no), "{no}");
        }
        assert!(permits(&way, &[], "203.0.113.9:80") && permits(&way, &[], "[64:ff9b::203.0.113.9]:80"));
        let listed = ["10.1.0.0/16 80", "198.51.100.1"];
        assert!(permits(&way, &listed, "10.1.2.3:80") && permits(&way, &listed, "198.51.100.1:22"));
        assert!(!permits(&way, &listed, "203.0.113.9:80") && !permits(&way, &listed, "10.1.2.3:81"));
    }

    #[test]
    fn diverted_connections_go_where_their_packets_went_and_forwards_where_the_file_says() {
        let way = Way::Transparent { listen: at("127.0.0.1:7070") };
        assert!(permits(&way, &[], "10.1.2.3:80") && permits(&way, &[], "203.0.113.9:80"));
        assert!(!permits(&way, &[], "198.51.100.1:22") && !permits(&way, &[], "127.0.0.1:80"));
        assert!(!permits(&way, &[], "[2002:c633:6401::1]:22") && !permits(&way, &[], "[::127.0.0.1]:80"));
        assert!(!permits(&way, &["10.0.0.0/8"], "203.0.113.9:80"));
        let way = Way::Forward { listen: at("0.0.0.0:80"), to: "127.0.0.1:8080".parse().unwrap() };
        assert!(permits(&way, &["10.0.0.0/8"], "127.0.0.1:8080"));
    }

    #[test]
    fn socks_beyond_the_loopback_interface_needs_a_login() {
        let valid = |way: Way| config(way, &[]).validate().is_ok();
        assert!(valid(socks("127.0.0.1:1080", None)) && valid(socks("[::1]:1080", None)));
        for listen in ["0.0.0.0:1080", "[::]:1080", "192.0.2.1:1080"] {
            assert!(
                !valid(socks(listen, None)) && valid(socks(listen, Login::new("user", "secret"))),
                "{listen}"
            );
        }
    }

    #[test]
    fn only_a_file_that_says_so_has_connections_go_in_clear() {
        let of = |transport: Transport, fallback| {
            let config = EntranceConfig { transport, fallback, ..config(socks("127.0.0.1:1080", None), &[]) };
            (config.fallback(), config.falls_back_in_clear())
        };
        assert_eq!(of(Transport::tpa_wide(), None), (Fallback::Refuse, false));
        assert_eq!(of(Transport::tpa_wide(), Some(Fallback::Tcp)), (Fallback::Tcp, true));
        assert_eq!(of(Transport::tpa(), None), (Fallback::Tcp, false));
        assert_eq!(of(Transport::tpa(), Some(Fallback::Refuse)), (Fallback::Refuse, false));
    }
}
