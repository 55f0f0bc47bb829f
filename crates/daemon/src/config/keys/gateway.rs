//! Keys of gateways.

use hopline_config::choice;
use hopline_config::choice::Choice;
use hopline_config::schema::{Exception, Key, Literal};
use hopline_middlebox::gateway::{Fallback, SourceAddress};

/// `exit`.
pub const EXIT: Key = Key::text(
    "exit",
    "address or name, and UDP port, of the other gateway; a name is resolved anew whenever the trunk is opened",
).example("\"192.0.2.7:7172\"");
/// `identity`.
pub const IDENTITY: Key =
    Key::text("identity", "name by which the other gateway knows this one").example("\"drone-7\"");
/// `forward`.
pub const FORWARD: Key =
    Key::texts("forward", "forwarded connections: those to the first address are carried to the second one")
        .example("[\"127.0.0.1:8080 = server.example:80\"]");
/// `socks`.
pub const SOCKS: Key = Key::text(
    "socks",
    "address and port of its SOCKS 5 server; any but a loopback address requires socks_login_file",
)
.example("\"127.0.0.1:1080\"");
/// `socks_login_file`.
pub const SOCKS_LOGIN_FILE: Key =
    Key::text("socks_login_file", "file with the login of SOCKS clients in its first line, USER:PASSWORD")
        .derived("none, and no login is asked for")
        .example("\"/etc/hopline/socks.login\"");
/// `divert`.
pub const DIVERT: Key = Key::text(
    "divert",
    "interface on which connections of other hosts arrive that are diverted into the gateway",
)
.example("\"eth1\"");
/// `divert_queue`.
pub const DIVERT_QUEUE: Key = Key::integer(
    "divert_queue",
    0,
    65_535,
    "of divert: number of the NFQUEUE in which SYNs wait after the firewall has accepted them; no other program may use it",
).derived("27735 for the first proxy of the file, and so on");
/// `destinations`.
pub const DESTINATIONS: Key =
    Key::texts("destinations", "of divert: networks to which connections are diverted")
        .derived("all")
        .example("[\"10.1.0.0/16\"]");
/// `sources`.
pub const SOURCES: Choice<SourceAddress> = choice!(
    "sources",
    { "gateway" => SourceAddress::Gateway, "client" => SourceAddress::Client },
    "source address of connections to servers; gateway: that of the gateway; client: that of the client, which requires that replies are routed through the gateway",
).default("gateway");
/// `fallback`.
pub const FALLBACK: Choice<Fallback> = choice!(
    "fallback",
    { "tcp" => Fallback::Tcp, "refuse" => Fallback::Refuse },
    "treatment of connections while the other gateway does not answer; tcp: they are carried by TCP, unencrypted; refuse: they are reset",
).default_except("tcp", &[Exception::new("of transport = \"tpa-wide\"", Literal::Word("refuse"))]);
/// `fallback_after_s`.
pub const FALLBACK_AFTER_S: Key = Key::number(
    "fallback_after_s",
    0.1,
    60.0,
    "silence of the other gateway after which it counts as absent for new connections",
)
.default(Literal::Number(3.0));
/// `retry_after_s`.
pub const RETRY_AFTER_S: Key =
    Key::number("retry_after_s", 0.1, 3600.0, "pause after a failed attempt to reach the other gateway")
        .default(Literal::Number(2.0));
/// `reset_after_s`.
pub const RESET_AFTER_S: Key = Key::number(
    "reset_after_s",
    0.1,
    3600.0,
    "silence of the other gateway after which connections through it are reset; choose it longer than the outages that connections are to survive",
).default(Literal::Number(4.5));
/// `spare_connections`.
pub const SPARE_CONNECTIONS: Key = Key::integer(
    "spare_connections",
    0,
    64,
    "streams to the other gateway that are kept ready, so that new connections wait for no handshake",
)
.default(Literal::Integer(4));
/// `max_wait_s`.
pub const MAX_WAIT_S: Key = Key::number(
    "max_wait_s",
    0.1,
    30.0,
    "maximum time that connections beyond max_connections wait before they are reset; at most max_connections of them wait",
).default(Literal::Number(10.0));

/// Transport between the two gateways.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Carrier {
    /// TPA as published.
    #[default]
    Tpa,
    /// TPA-wide.
    TpaWide,
}

/// `transport`.
pub const TRANSPORT: Choice<Carrier> = choice!(
    "transport",
    { "tpa" => Carrier::Tpa, "tpa-wide" => Carrier::TpaWide },
    "transport to the other gateway, the same at both; tpa: TPA as published; tpa-wide: TPA-wide, which is encrypted and keeps as much data in flight as the path holds",
).default("tpa");
/// `cwnd_max`.
pub const CWND_MAX: Key =
    Key::integer("cwnd_max", 1, 12, "of transport = \"tpa\": maximum window in segments")
        .default(Literal::Integer(12));
/// `congestion`.
pub const CONGESTION: Key =
    Key::text("congestion", "congestion control of the kernel's TCP to clients and servers")
        .derived("the system's")
        .example("\"cubic\"");
/// `announce`.
pub const ANNOUNCE: Key = Key::text(
    "announce",
    "interface that leads to the other gateway and to the hosts beyond it; a reserved bit in TCP handshakes on this interface announces hosts that are reached over TPA, and other hosts are reached by TCP",
).derived("none, and all hosts are reached over TPA").example("\"wlan0\"");
/// `listen`.
pub const LISTEN: Key = Key::text("listen", "UDP address and port at which entrances reach it")
    .default(Literal::Word("0.0.0.0:7172"))
    .example("\"0.0.0.0:7172\"");
/// `peers`.
pub const PEERS: Key =
    Key::texts("peers", "identities of the entrances that it serves, each with its key file")
        .example("[\"drone-7 = drone-7.key\"]");
/// `max_trunks`.
pub const MAX_TRUNKS: Key = Key::integer(
    "max_trunks",
    1,
    1024,
    "maximum number of trunks of one identity; if it opens another one, its oldest trunk is closed with all connections in it",
).default(Literal::Integer(16));
/// `allowed`.
pub const ALLOWED: Key = Key::texts(
    "allowed",
    "permitted destinations of connections, of gateway: permitted destinations of connections that it carries by TCP itself",
).derived("anywhere but to this host and its neighbours on the link, of clients of socks not to private networks either").example("[\"10.0.0.0/8 80-443\"]");

/// Keys of `gateway`, the entrance.
pub(super) const ENTRANCE_KEYS: &[Key] = &[
    EXIT,
    IDENTITY,
    FORWARD,
    SOCKS,
    SOCKS_LOGIN_FILE,
    DIVERT,
    DIVERT_QUEUE,
    DESTINATIONS,
    FALLBACK.key,
    FALLBACK_AFTER_S,
    RETRY_AFTER_S,
    RESET_AFTER_S,
    SPARE_CONNECTIONS,
];
/// Keys of `gateway-exit`, the exit.
pub(super) const EXIT_KEYS: &[Key] = &[LISTEN, PEERS, MAX_TRUNKS];
/// Keys of both kinds.
pub(super) const GATEWAY_KEYS: &[Key] =
    &[ANNOUNCE, ALLOWED, SOURCES.key, TRANSPORT.key, CWND_MAX, CONGESTION, MAX_WAIT_S];
