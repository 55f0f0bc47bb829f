//! Keys of middleboxes.
//!
//! The keys in `machine` are those that scenarios have too. `reference.rs` explains the clauses ", of KIND: " in texts.

use hopline_config::keys::proxy as machine;
use hopline_config::schema::Key;

/// `interface`.
pub const INTERFACE: Key = Key::text(
    "interface",
    "interface that leads to the mobile hosts, of d-proxy: interface that leads to the peer, of nack-host: interface that leads to the base station, of neighborhood-red and base-station: interface of the radio",
).example("\"wlan0\"");
/// `subnets`.
pub const SUBNETS: Key = Key::texts(
    "subnets",
    "subnets of the mobile hosts that it serves; if all are IPv4, no IPv6 host is served, and vice versa",
)
.derived("all beyond the interface")
.example("[\"10.1.0.0/16\", \"fd01::/48\"]");
/// `ports`.
pub const PORTS: Key = Key::integers(
    "ports",
    1,
    65_535,
    "TCP ports of fixed hosts that it serves, of split and gateway: destination ports of connections that it serves",
)
.derived("all")
.example("[80, 443]");
/// `queue`.
pub const QUEUE: Key = Key::integer(
    "queue",
    0,
    65_535,
    "number of its NFQUEUE, which no other program may use, of gateway and gateway-exit: number of its NFQUEUE, which only announce needs; no other program may use it",
).derived("26735 for the first proxy of the file, and so on");

/// Key of the interface.
pub(super) const INTERFACE_KEYS: &[Key] = &[INTERFACE];
/// Key of the subnets of mobile hosts.
pub(super) const MOBILE_HOST_KEYS: &[Key] = &[SUBNETS];
/// Key of the ports of fixed hosts.
pub(super) const PORT_KEYS: &[Key] = &[PORTS];
/// Key of the packet queue.
pub(super) const QUEUE_KEYS: &[Key] = &[QUEUE];
/// Keys of the connection table.
pub(super) const TABLE_KEYS: &[Key] = &[machine::CONNECTIONS, machine::IDLE_S];
/// Keys of Snoop.
pub(super) const SNOOP_KEYS: &[Key] = &[
    machine::PRESET.key,
    machine::HOP_WINDOW.key,
    machine::DUP_ACK_THRESHOLD,
    machine::PERSIST_MS,
    machine::DUPLICATE_ACKS.key,
    machine::SPURIOUS_ACKS.key,
    machine::MARKS.key,
    machine::OLD_DATA.key,
];
/// Key of the position of retransmitted packets in the queue of the link.
pub(super) const ORDER_KEYS: &[Key] = &[machine::TURN.key];
/// Key of the maximum number of local retransmissions of a packet, or of requests for it.
pub(super) const LOCAL_RETRANSMISSION_KEYS: &[Key] = &[machine::LOCAL_LIMIT];
/// Key of the minimum retransmission timeout.
pub(super) const MIN_TIMER_KEYS: &[Key] = &[machine::MIN_TIMER_MS];
/// Key of the size of the retransmission buffer.
pub(super) const BUFFER_KEYS: &[Key] = &[machine::HIGH_WATER_PACKETS];
/// Key of the treatment of packets that queues reject.
pub(super) const OVERFLOW_KEYS: &[Key] = &[machine::OVERFLOW.key];
/// Keys of M-TCP.
pub(super) const MTCP_KEYS: &[Key] = &[machine::SILENCE_MS, machine::PROBE_MS];
