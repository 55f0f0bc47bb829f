//! Keys of proxies in pairs: one at each end of a link, to repair its losses.

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
    "of d-proxy: position of this end; router: packets that cross the link are forwarded here; host: they begin and end here",
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
    "lifetime of that interface; persistent: until `hopline proxy undo --tunnels`, or until a reloaded file no longer has it; the next daemon of this name takes it over, with its addresses and everything that other programs have attached to it; process: while the proxy runs",
)
.with_default("persistent");
/// `tun_addresses`.
pub const TUN_ADDRESSES: Key =
    Key::texts("tun_addresses", "addresses of that interface").derived("none").example("[\"10.82.0.1/30\"]");
/// `routes`.
pub const ROUTES: Key = Key::texts(
    "routes",
    "networks beyond the link; they are routed into the interface while the other end responds",
)
.derived("none")
.example("[\"10.1.0.0/16\"]");
/// `rate_mbps`.
pub const RATE_MBPS: Key = Key::number(
    "rate_mbps",
    0.001,
    100_000.0,
    "rate slightly below that of the link; packets then wait in this host, where the proxy sees drops, instead of in a queue further on, of opaque and arq: rate slightly below that of the link; packets then wait in FQ-CoDel in this host, instead of in a queue further on",
).derived("packets are sent at once").example("19.5");
/// `arq`.
pub const ARQ: Key =
    Key::table("arq", keys::ARQ, "repair of losses, with the keys of scenarios except parity_every")
        .derived("the defaults of its keys")
        .example("{ attempts = 10 }");
/// `mtu`.
pub const MTU: Key = Key::integer(
    "mtu",
    68,
    65_515,
    "of opaque and arq: longest packet in bytes between the two ends, 1336 or more (IPv6: 1356), of home-agent: longest packet in bytes that enters the tunnel",
).default_except(Literal::Integer(1500), &[Exception::new("of home-agent", Literal::Integer(1480))]);

/// Position of D-Proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Position {
    /// On a router that forwards the packets.
    Router,
    /// On the host at which the connections end.
    Host,
}

/// Keys of the addresses of both ends.
pub(super) const ADDRESS_KEYS: &[Key] = &[LOCAL, PEER, PORT];
/// Keys of the TUN interface of a tunnel.
pub(super) const TUNNEL_KEYS: &[Key] = &[TUN, TUN_LIFETIME.key, TUN_ADDRESSES, ROUTES];
/// Key of the rate of the link.
pub(super) const RATE_KEYS: &[Key] = &[RATE_MBPS];
/// Key of the maximum packet length.
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
/// Keys of D-Proxy for packets of any protocol.
pub(super) const OPAQUE_KEYS: &[Key] = &[machine::PARITY.key];
/// Keys of tunnels with ARQ.
pub(super) const ARQ_KEYS: &[Key] = &[ARQ];
