//! Keys of both ends of a link that repairs its losses.

use hopline_config::choice;
use hopline_config::choice::{Choice, Chosen};
use hopline_config::keys;
use hopline_config::keys::proxy as machine;
use hopline_config::schema::{Exception, Key, Literal};
use hopline_linux::TunLifetime;

/// `local`.
pub const LOCAL: Key = Key::text("local", "this end's own address on the link").example("\"192.0.2.1\"");
/// `peer`.
pub const PEER: Key = Key::text("peer", "the other end's address on the link").example("\"192.0.2.2\"");
/// `port`.
pub const PORT: Key =
    Key::integer("port", 1, 65_535, "UDP port at both ends").default(Literal::Integer(1022));
/// `stands`.
pub const STANDS: Choice<Position> = choice!(
    "stands",
    { "router" => Position::Router, "host" => Position::Host },
    "of d-proxy: whether what crosses the link is passed on here, or begins and ends here",
)
.default("router");
/// `tun`.
pub const TUN: Key = Key::text("tun", "name of the tunnel's interface")
    .default(Literal::Word("dproxy0"))
    .example("\"dproxy0\"");
/// `tun_lifetime`.
pub const TUN_LIFETIME: Chosen<TunLifetime> = choice!(
    "tun_lifetime",
    { "persistent" => TunLifetime::Persistent, "process" => TunLifetime::Process },
    "how long that interface is there; persistent: until `hopline proxy undo --tunnels`, or a file that is read again without it; the next daemon of this name takes it over, with its addresses and what other programs have attached to it; process: as long as the proxy runs",
)
.with_default("persistent");
/// `tun_addresses`.
pub const TUN_ADDRESSES: Key =
    Key::texts("tun_addresses", "addresses of that interface").derived("none").example("[\"10.82.0.1/30\"]");
/// `routes`.
pub const ROUTES: Key = Key::texts(
    "routes",
    "networks beyond the link: they are routed into the interface while the other end is there",
)
.derived("none")
.example("[\"10.1.0.0/16\"]");
/// `rate_mbps`.
pub const RATE_MBPS: Key = Key::number(
    "rate_mbps",
    0.001,
    100_000.0,
    "rate a little below that of the link: packets then wait in this host, where drops are seen, and not in a queue beyond it, of opaque and arq: rate a little below that of the link: packets then wait in this host, in FQ-CoDel, and not in a queue beyond it",
).derived("packets are sent at once").example("19.5");
/// `arq`.
pub const ARQ: Key =
    Key::table("arq", keys::ARQ, "how the link repairs its losses, as in scenarios, but for parity_every")
        .derived("the defaults of its keys")
        .example("{ attempts = 10 }");
/// `mtu`.
pub const MTU: Key = Key::integer(
    "mtu",
    68,
    65_515,
    "of opaque and arq: longest packet that passes between the ends, 1336 or more (IPv6: 1356), of home-agent: longest packet that goes into the tunnel",
).default_except(Literal::Integer(1500), &[Exception::new("of home-agent", Literal::Integer(1480))]);

/// Position of D-Proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// On the path of forwarded packets.
    Router,
    /// At an end of the connections.
    Host,
}

/// Keys of the two ends.
pub(super) const ADDRESS_KEYS: &[Key] = &[LOCAL, PEER, PORT];
/// Keys of the interface of a tunnel.
pub(super) const TUNNEL_KEYS: &[Key] = &[TUN, TUN_LIFETIME.key, TUN_ADDRESSES, ROUTES];
/// Key of the rate of the link.
pub(super) const RATE_KEYS: &[Key] = &[RATE_MBPS];
/// Key of the longest packets.
pub(super) const MTU_KEYS: &[Key] = &[MTU];
/// Keys of the timing of requests for lost packets.
pub(super) const RECOVERY_KEYS: &[Key] = &[
    machine::TIMEOUTS.key,
    machine::ORDER_RULE.key,
    machine::ORDER_REQUESTS,
    machine::RECOVERY_SAMPLES.key,
    machine::ORDER.key,
    machine::PATIENCE_MS,
    machine::GRACE_PACKETS,
    machine::TAIL_PROBE_MS,
];
/// Keys of D-Proxy for TCP.
pub(super) const DPROXY_KEYS: &[Key] = &[STANDS.key, machine::EXPANSION.key, machine::HELD_PACKETS];
/// Keys of D-Proxy for any packets.
pub(super) const OPAQUE_KEYS: &[Key] = &[machine::PARITY.key];
/// Keys of links with ARQ.
pub(super) const ARQ_KEYS: &[Key] = &[ARQ];
