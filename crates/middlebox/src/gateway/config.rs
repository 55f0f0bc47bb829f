//! Configuration of gateways.

use super::destination::{Allowed, Destination, Rule, is_private};
use super::embedded;
use super::error::Error;
use super::key::{Key, Name, Peer};
use super::socks::Login;
use hopline_core::Duration as Span;
use hopline_linux::transparent::LegOptions;
use hopline_streams::tpa;
use hopline_streams::wide::{self, Credentials, PreSharedKey, TransportConfig};
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::ops::RangeInclusive;
use std::time::Duration;

/// Default UDP port of TPA. It is not registered.
const PORT: u16 = 7172;
/// cwndmax of the trunk.
const TRUNK_CWND_MAX: u8 = 12;
/// Idle timeout of a peer.
const IDLE_TIMEOUT: Span = Span::from_secs(60);
/// Buffer of TPA-wide for each direction of a connection, in bytes.
const WIDE_BUFFER: u64 = 2 << 20;

/// Default of `max_wait`.
const DEFAULT_MAX_WAIT: Duration = Duration::from_secs(10);
/// Maximum of `spare_connections`. An exit accepts more.
const MAX_SPARE: u32 = 64;

const CONNECTIONS: RangeInclusive<u32> = 1..=65_535;
const BUFFER: RangeInclusive<u32> = 4096..=1 << 20;

/// Configuration of an entrance. Start from [`EntranceConfig::new`].
#[derive(Clone, Debug, PartialEq)]
pub struct EntranceConfig {
    /// Listeners for connections; at least one.
    pub listeners: Vec<ListenerConfig>,
    /// Address or host name and UDP port of the exit. A host name is resolved whenever the trunk is opened.
    pub exit: Destination,
    /// Local UDP address of TPA. Default: any address, any port. With a fixed port, a restarted entrance tells the exit
    /// at once that its previous connections are lost.
    pub local: Option<SocketAddr>,
    /// Name under which the exit knows this entrance.
    pub name: Name,
    /// Secret shared with the exit.
    pub key: Key,
    /// Transport of the trunk, the same at both gateways. Default [`Transport::tpa`].
    pub transport: Transport,
    /// Treatment of connections while no exit answers. `None`, the default: [`Fallback::Tcp`] over TPA; [`Fallback::Refuse`] over a transport
    /// that encrypts, so that no byte leaves unencrypted unless `Some(Fallback::Tcp)` permits it.
    pub fallback: Option<Fallback>,
    /// Permitted destinations of connections that leave this host by TCP instead of the exit. Empty, the default: any
    /// destination except this host, its link-local neighbours and, for SOCKS clients, private networks. The destination
    /// of [`ListenerConfig::Forward`] is always permitted.
    pub allowed: Vec<Rule>,
    /// Silence after which an exit counts as absent for new connections. 100 ms to 60 s, default 3 s.
    pub fallback_after: Duration,
    /// Silence of an exit after which connections through it are reset. 100 ms to 1 h, default 4.5 s.
    pub reset_after: Duration,
    /// Time from a failed attempt to open the trunk until the next. 100 ms to 1 h, default 2 s.
    pub retry_after: Duration,
    /// Idle streams to the exit that are kept open, so that new connections need no handshake. 0 to 64, default 4.
    pub spare_connections: u32,
    /// Timeout of a SOCKS negotiation. 100 ms to 60 s, default 10 s.
    pub negotiation_timeout: Duration,
    /// Timeout of a TCP connection attempt when there is no exit. 100 ms to 25 s, default 10 s.
    pub connect_timeout: Duration,
    /// Socket options of TCP connections with clients and, when there is no exit, with destinations. Default
    /// [`LegOptions::default`].
    pub tcp: LegOptions,
    /// Maximum number of concurrent connections. 1 to 65 535, default 1024. As many again may wait for a place or be in
    /// negotiation; half of these from one IPv4 address or one IPv6 /64 network. Further ones are reset.
    pub max_connections: u32,
    /// Maximum time that a connection waits for a place before it is reset. 100 ms to 30 s, default 10 s.
    pub max_wait: Duration,
    /// Buffer for each direction of a connection, in bytes, in addition to those of TPA and of the kernel. 4 KiB to 1
    /// MiB, default 32 KiB.
    pub buffer: u32,
    /// Source address that the destination sees. Default [`SourceAddress::Gateway`]. [`SourceAddress::Client`] asks the exit to do
    /// the same, and needs `CAP_NET_ADMIN` for TCP connections while an exit is absent.
    pub source_address: SourceAddress,
}

/// Transport between gateways.
#[derive(Clone, Debug, PartialEq)]
pub enum Transport {
    /// TPA as published: at most 12 segments in flight, not encrypted.
    Tpa(tpa::Config),
    /// TPA-wide, encrypted with keys derived from the pre-shared keys of the gateways.
    TpaWide(TransportConfig),
}

/// A listener for connections.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenerConfig {
    /// Connections to `listen` are forwarded to `to`.
    Forward {
        /// Local address and TCP port.
        listen: SocketAddr,
        /// Destination of all connections.
        to: Destination,
    },
    /// SOCKS version 5: each client names its destination.
    Socks {
        /// Local address and TCP port, such as 127.0.0.1:1080. Beyond the loopback interface a login is required.
        listen: SocketAddr,
        /// Credentials required of clients. `None`: no authentication.
        login: Option<Login>,
    },
    /// Connections that firewall rules divert here (TPROXY), forwarded to their original destination.
    Transparent {
        /// Local address and TCP port, as in the rule.
        listen: SocketAddr,
    },
}

/// Treatment of connections while no exit answers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fallback {
    /// They are connected by TCP from this host, unencrypted.
    Tcp,
    /// They are accepted and then reset, since a client gets its answer before the fate of its connection is known. SOCKS
    /// clients get an error reply.
    Refuse,
}

/// Source address that a destination sees.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum SourceAddress {
    /// Address of the gateway that connects.
    #[default]
    Gateway,
    /// Address of the client. Packets back to it must be routed through the gateway (`IP_TRANSPARENT`).
    Client,
}

/// Configuration of an exit. Start from [`ExitConfig::new`].
#[derive(Clone, Debug, PartialEq)]
pub struct ExitConfig {
    /// UDP address of the listener for entrances. Default 0.0.0.0:7172.
    pub listen: SocketAddr,
    /// Entrances that it serves; at least one, each under a unique name.
    pub peers: Vec<Peer>,
    /// Permitted destinations. Default [`Allowed::NonLocal`].
    pub allowed: Allowed,
    /// Source address that destinations see. Default [`SourceAddress::Gateway`]. [`SourceAddress::Client`] applies to requests that
    /// name a client, and needs `CAP_NET_ADMIN` at run time.
    pub source_address: SourceAddress,
    /// Transport of the trunk, as in [`EntranceConfig`].
    pub transport: Transport,
    /// Timeout for a request on a new stream. 100 ms to 60 s, default 10 s.
    pub request_timeout: Duration,
    /// Timeout of a TCP connection attempt, including name resolution. 100 ms to 25 s, default 10 s.
    pub connect_timeout: Duration,
    /// Socket options of TCP connections with destinations. Default [`LegOptions::default`].
    pub tcp: LegOptions,
    /// Maximum number of concurrent trunks of an entrance. A further trunk closes the oldest, with all its connections.
    /// An entrance has one trunk, and more for a while after a restart. 1 to 1024, default 16.
    pub max_trunks: u32,
    /// Maximum number of concurrent connections. 1 to 65 535, default 1024. As many requests again may wait for a place;
    /// further ones are rejected.
    pub max_connections: u32,
    /// Maximum time that a request waits for a place before it is rejected. 100 ms to 30 s, default 10 s.
    pub max_wait: Duration,
    /// Buffer of a connection, as in [`EntranceConfig`].
    pub buffer: u32,
}

impl EntranceConfig {
    /// Returns an entrance called `name` to the exit at `exit`, with one listener and the defaults of all other
    /// parameters.
    #[must_use]
    pub fn new(way: ListenerConfig, exit: impl Into<Destination>, name: Name, key: Key) -> Self {
        Self {
            listeners: vec![way],
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
            max_wait: DEFAULT_MAX_WAIT,
            buffer: 32 * 1024,
            source_address: SourceAddress::Gateway,
        }
    }

    /// Returns the treatment of connections while no exit answers.
    #[must_use]
    pub fn fallback(&self) -> Fallback {
        self.fallback.unwrap_or(match self.transport {
            Transport::Tpa(_) => Fallback::Tcp,
            Transport::TpaWide(_) => Fallback::Refuse,
        })
    }

    /// Returns whether connections may leave unencrypted although the trunk would encrypt them.
    #[must_use]
    pub fn may_fall_back_unencrypted(&self) -> bool {
        self.transport.encrypts() && self.fallback() == Fallback::Tcp
    }

    /// Returns whether a connection from the listener `way` may be connected to `address` by TCP from this host.
    /// `is_own`: whether an address belongs to this host.
    pub(super) fn permits(
        &self,
        way: &ListenerConfig,
        address: SocketAddr,
        is_own: impl Fn(IpAddr) -> bool,
    ) -> bool {
        let ip = address.ip();
        let is_own = || embedded::all_of(ip).any(is_own);
        match way {
            ListenerConfig::Forward { .. } => true,
            _ if !self.allowed.is_empty() => Allowed::permitted_by(&self.allowed, address),
            // The client chooses the destination freely, and might not reach this network itself.
            ListenerConfig::Socks { .. } => {
                Allowed::NonLocal.permits(address) && !is_private(ip) && !is_own()
            }
            // The client's packets were routed to that destination.
            ListenerConfig::Transparent { .. } => Allowed::NonLocal.permits(address) && !is_own(),
        }
    }

    /// Checks the ranges of all parameters.
    ///
    /// # Errors
    /// The first parameter that is out of its range.
    pub fn validate(&self) -> Result<(), Error> {
        let second = Duration::from_secs;
        check(!self.listeners.is_empty(), "ways", "at least one")?;
        check(
            !self.listeners.iter().any(ListenerConfig::is_open_relay),
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
        check(self.spare_connections <= MAX_SPARE, "spare_connections", "0 to 64")?;
        self.tcp.check()?;
        check_common(
            &self.transport,
            [self.connect_timeout, self.max_wait],
            self.max_connections,
            self.buffer,
        )
    }
}

impl ListenerConfig {
    /// Returns whether any host that reaches the listener can open connections to destinations of its choice.
    #[must_use]
    pub fn is_open_relay(&self) -> bool {
        matches!(self, Self::Socks { listen, login: None } if !listen.ip().to_canonical().is_loopback())
    }
}

impl ExitConfig {
    /// Returns an exit for `peers` at port 7172, with the defaults of all other parameters.
    #[must_use]
    pub fn new(peers: Vec<Peer>) -> Self {
        Self {
            listen: (Ipv4Addr::UNSPECIFIED, PORT).into(),
            peers,
            allowed: Allowed::NonLocal,
            source_address: SourceAddress::Gateway,
            transport: Transport::tpa(),
            request_timeout: Duration::from_secs(10),
            connect_timeout: Duration::from_secs(10),
            tcp: LegOptions::default(),
            max_trunks: 16,
            max_connections: 1024,
            max_wait: DEFAULT_MAX_WAIT,
            buffer: 32 * 1024,
        }
    }

    /// Checks the ranges of all parameters.
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
    /// Returns [`tpa::config`] with a window of 12, a minimum RTO of 20 ms, an ACK timer of 10 ms and an idle timeout of
    /// 60 s.
    #[must_use]
    pub fn tpa() -> Self {
        let config = tpa::config(TRUNK_CWND_MAX).with_silence_limit(Some(IDLE_TIMEOUT));
        // The published timers of TPA are for distant hosts. Over a short trunk, a loss would cost many round trips.
        let rto = config.rto().with_min(Span::from_millis(20));
        let ack = config.ack().with_timer(Span::from_millis(10));
        Self::Tpa(config.with_rto(rto).with_ack(ack))
    }

    /// Returns [`wide::config`] with a buffer of 2 MiB for each direction of a connection, since there may be many: 300
    /// Mb/s over 50 ms. The idle timeout is 60 s.
    #[must_use]
    pub fn tpa_wide() -> Self {
        // Placeholder: the gateways have credentials of their own.
        let config = wide::config(Credentials::Shared(PreSharedKey::new([0; 32]))).transport();
        let config = config.with_silence_limit(Some(IDLE_TIMEOUT));
        Self::TpaWide(config.with_send_buffer(Some(WIDE_BUFFER)).with_receive_buffer(WIDE_BUFFER))
    }

    /// Returns whether the transport encrypts.
    #[must_use]
    pub const fn encrypts(&self) -> bool {
        matches!(self, Self::TpaWide(_))
    }

    fn check(&self) -> Result<(), Error> {
        let (valid, keep_alive, silence) = match self {
            Self::Tpa(config) => (config.validate(), config.keep_alive(), config.silence_limit()),
            Self::TpaWide(config) => (config.validate(), config.keep_alive(), config.silence().limit()),
        };
        valid.map_err(|error| Error::Config { field: error.field, must: error.requirement })?;
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

    fn config(way: ListenerConfig, allowed: &[&str]) -> EntranceConfig {
        let exit = SocketAddr::from(([192, 0, 2, 7], 7172));
        let allowed = allowed.iter().map(|rule| rule.parse().unwrap()).collect();
        let name = "a".parse().unwrap();
        EntranceConfig { allowed, ..EntranceConfig::new(way, exit, name, Key::new(&[1; 32])) }
    }

    fn at(text: &str) -> SocketAddr {
        text.parse().unwrap()
    }

    fn socks(listen: &str, login: Option<Login>) -> ListenerConfig {
        ListenerConfig::Socks { listen: at(listen), login }
    }

    /// Returns whether a connection from the listener `way` may go to `address`. This host is 198.51.100.1.
    fn permits(way: &ListenerConfig, allowed: &[&str], address: &str) -> bool {
        let is_own = |ip: IpAddr| ip == at("198.51.100.1:1").ip();
        config(way.clone(), allowed).permits(way, at(address), is_own)
    }

    #[test]
    fn socks_clients_reach_the_internet_or_listed_destinations() {
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
    fn diverted_connections_keep_their_destination_and_forwards_have_the_configured_one() {
        let way = ListenerConfig::Transparent { listen: at("127.0.0.1:7070") };
        assert!(permits(&way, &[], "10.1.2.3:80") && permits(&way, &[], "203.0.113.9:80"));
        assert!(!permits(&way, &[], "198.51.100.1:22") && !permits(&way, &[], "127.0.0.1:80"));
        assert!(!permits(&way, &[], "[2002:c633:6401::1]:22") && !permits(&way, &[], "[::127.0.0.1]:80"));
        assert!(!permits(&way, &["10.0.0.0/8"], "203.0.113.9:80"));
        let way = ListenerConfig::Forward { listen: at("0.0.0.0:80"), to: "127.0.0.1:8080".parse().unwrap() };
        assert!(permits(&way, &["10.0.0.0/8"], "127.0.0.1:8080"));
    }

    #[test]
    fn socks_beyond_the_loopback_interface_needs_a_login() {
        let valid = |way: ListenerConfig| config(way, &[]).validate().is_ok();
        assert!(valid(socks("127.0.0.1:1080", None)) && valid(socks("[::1]:1080", None)));
        for listen in ["0.0.0.0:1080", "[::]:1080", "192.0.2.1:1080"] {
            assert!(
                !valid(socks(listen, None)) && valid(socks(listen, Login::new("user", "secret"))),
                "{listen}"
            );
        }
    }

    #[test]
    fn unencrypted_fallback_needs_an_explicit_setting() {
        let of = |transport: Transport, fallback| {
            let config = EntranceConfig { transport, fallback, ..config(socks("127.0.0.1:1080", None), &[]) };
            (config.fallback(), config.may_fall_back_unencrypted())
        };
        assert_eq!(of(Transport::tpa_wide(), None), (Fallback::Refuse, false));
        assert_eq!(of(Transport::tpa_wide(), Some(Fallback::Tcp)), (Fallback::Tcp, true));
        assert_eq!(of(Transport::tpa(), None), (Fallback::Tcp, false));
        assert_eq!(of(Transport::tpa(), Some(Fallback::Refuse)), (Fallback::Refuse, false));
    }
}
