//! Keys of home agents, base stations and mobile hosts.

use super::group::{Group, joined, length};
use super::in_path;
use hopline_config::keys::{cells, mobile};
use hopline_config::schema::{Key, Literal};

/// `address`.
pub const ADDRESS: Key = Key::text(
    "address",
    "the address of this host: where messages come, of mobile-host: the home address of this host",
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
    "addresses of the stations at which mobile hosts may register; of scheme = \"registration\" needed, otherwise of no effect",
).derived("none").example("[\"192.0.2.11\"]");
/// `interfaces`.
pub const INTERFACES: Key = Key::texts(
    "interfaces",
    "of home-agent: the interfaces by which stations are reached, of mobile-host: the interfaces of its radios",
)
.example("[\"wlan0\"]");
/// `home_agent`.
pub const HOME_AGENT: Key = Key::text("home_agent", "address of the home agent").example("\"192.0.2.1\"");
/// `wired`.
pub const WIRED: Key =
    Key::text("wired", "the interface by which the home agent is reached").example("\"eth0\"");
/// `signals`.
pub const SIGNALS: Key =
    Key::text("signals", "file that says how strongly stations are heard, in each line an address and dBm")
        .derived("none, and strengths are not known")
        .example("\"/run/signals\"");
/// `handoff_every_s`.
pub const HANDOFF_EVERY_S: Key = Key::number(
    "handoff_every_s",
    0.001,
    1e6,
    "it turns to the strongest other station each time this has passed",
)
.derived("by hysteresis_db")
.example("10");
/// `lifetime_s`.
pub const LIFETIME_S: Key = Key::number(
    "lifetime_s",
    0.001,
    65.535,
    "time without a message after which a station stops serving the host, and after which the host takes a station for gone",
).default(Literal::Number(3.0));

/// `snoop`.
pub const SNOOP: Key = Key::table(
    "snoop",
    &joined::<{ length(SNOOP_GROUPS) }>(SNOOP_GROUPS),
    "Snoop at this station, which forgets hosts that have gone and with start = warm knows what they have received elsewhere",
).derived("none").example("{ preset = \"modern\" }");

/// Keys of a Snoop at a station.
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

/// Keys of all three.
pub(super) const HANDOFF_KEYS: &[Key] = &[ADDRESS];
/// Keys of home agents and stations.
pub(super) const FIXED_HOST_KEYS: &[Key] = &[NETWORK];
/// Keys of home agents.
pub(super) const HOME_AGENT_KEYS: &[Key] = &[MOBILES, STATIONS];
/// Keys of home agents and mobile hosts.
pub(super) const ENDPOINT_KEYS: &[Key] = &[INTERFACES, cells::SCHEME.key];
/// Keys of stations.
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
