//! Keys of home agents, base stations and mobile hosts.

use super::group::{Group, joined, length};
use super::in_path;
use hopline_config::keys::{cells, mobile};
use hopline_config::schema::{Key, Literal};

/// `address`.
pub const ADDRESS: Key = Key::text(
    "address",
    "address of this host at which it receives messages, of mobile-host: home address of this host",
)
.example("\"192.0.2.11\"");
/// `network`.
pub const NETWORK: Key =
    Key::text("network", "the network of the mobile hosts' home addresses").example("\"10.9.0.0/24\"");
/// `mobiles`.
pub const MOBILES: Key =
    Key::texts("mobiles", "the home addresses of the mobile hosts").derived("none").example("[\"10.9.0.7\"]");
/// `stations`.
pub const STATIONS: Key = Key::texts(
    "stations",
    "addresses of the stations at which mobile hosts may register; required with scheme = \"registration\", otherwise without effect",
).derived("none").example("[\"192.0.2.11\"]");
/// `interfaces`.
pub const INTERFACES: Key = Key::texts(
    "interfaces",
    "of home-agent: interfaces that lead to the stations, of mobile-host: interfaces of its radios",
)
.example("[\"wlan0\"]");
/// `home_agent`.
pub const HOME_AGENT: Key = Key::text("home_agent", "address of the home agent").example("\"192.0.2.1\"");
/// `wired`.
pub const WIRED: Key = Key::text("wired", "interface that leads to the home agent").example("\"eth0\"");
/// `signals`.
pub const SIGNALS: Key = Key::text(
    "signals",
    "file with the signal strength of each station; each line has its address and the strength in dBm",
)
.derived("none, and strengths are not known")
.example("\"/run/signals\"");
/// `handoff_every_s`.
pub const HANDOFF_EVERY_S: Key = Key::number(
    "handoff_every_s",
    0.001,
    1e6,
    "period after which it changes to the strongest other station",
)
.derived("by hysteresis_db")
.example("10");
/// `lifetime_s`.
pub const LIFETIME_S: Key = Key::number(
    "lifetime_s",
    0.001,
    65.535,
    "time without a message after which a station stops serving the host, and the host considers a station unreachable",
).default(Literal::Number(3.0));

/// `snoop`.
pub const SNOOP: Key = Key::table(
    "snoop",
    &joined::<{ length(SNOOP_GROUPS) }>(SNOOP_GROUPS),
    "Snoop at this station; it deletes its state of hosts that leave, and with start = warm learns which packets an arriving host has received at other stations",
).derived("none").example("{ preset = \"modern\" }");

/// Groups of the keys of Snoop at a base station.
const SNOOP_GROUPS: &[Group] = &[
    in_path::QUEUE_KEYS,
    in_path::TABLE_KEYS,
    in_path::SNOOP_KEYS,
    in_path::ORDER_KEYS,
    in_path::LOCAL_RETRANSMISSION_KEYS,
    in_path::MIN_TIMER_KEYS,
    in_path::BUFFER_KEYS,
    in_path::OVERFLOW_KEYS,
];

/// Keys of home agents, base stations and mobile hosts.
pub(super) const HANDOFF_KEYS: &[Key] = &[ADDRESS];
/// Keys of home agents and base stations.
pub(super) const FIXED_HOST_KEYS: &[Key] = &[NETWORK];
/// Keys of home agents.
pub(super) const HOME_AGENT_KEYS: &[Key] = &[MOBILES, STATIONS];
/// Keys of home agents and mobile hosts.
pub(super) const ENDPOINT_KEYS: &[Key] = &[INTERFACES, cells::SCHEME.key];
/// Keys of base stations.
pub(super) const STATION_KEYS: &[Key] =
    &[HOME_AGENT, WIRED, SNOOP, cells::BUFFER_PACKETS.key, cells::BEACON_S.key, cells::START.key];
/// Keys of mobile hosts.
pub(super) const MOBILE_KEYS: &[Key] = &[
    SIGNALS,
    HANDOFF_EVERY_S,
    LIFETIME_S,
    mobile::HYSTERESIS_DB.key,
    mobile::BEACONS.key,
    mobile::BUFFERING.key,
    mobile::FAST_RETRANSMIT,
];
