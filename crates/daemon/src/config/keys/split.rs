//! Keys of split connections.

use hopline_config::choice;
use hopline_config::choice::Chosen;
use hopline_config::schema::{Exception, Key, Literal};

/// Values of [`ONWARD`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConnectOrderKey {
    /// The proxy connects to the server before it answers the client.
    ServerFirst,
    /// The proxy connects to the server after it has answered the client.
    ClientFirst,
}

/// `listen_port`.
pub const LISTEN_PORT: Key = Key::integer(
    "listen_port",
    5,
    65_535,
    "port on the loopback interface at which it accepts diverted connections",
)
.derived("7070 for the first proxy of the file, and so on");
/// `onward`.
pub const ONWARD: Chosen<ConnectOrderKey> = choice!(
    "onward",
    { "first" => ConnectOrderKey::ServerFirst, "after" => ConnectOrderKey::ClientFirst },
    "time of the connection to the server; first: before the client is answered, so that the client is refused too if the server refuses or cannot be reached; after: once this machine has answered the client",
)
.with_default("first");
/// `mobile_congestion`.
pub const MOBILE_CONGESTION: Key =
    Key::text("mobile_congestion", "congestion control of the kernel towards mobile hosts")
        .derived("the system's")
        .example("\"bbr\"");
/// `fixed_congestion`.
pub const FIXED_CONGESTION: Key =
    Key::text("fixed_congestion", "congestion control of the kernel towards the other hosts")
        .derived("the system's")
        .example("\"cubic\"");
/// `user_timeout_s`.
pub const USER_TIMEOUT_S: Key = Key::number(
    "user_timeout_s",
    1.0,
    86_400.0,
    "time after which a connection with unacknowledged data is reset",
)
.derived("the system's, about a quarter of an hour")
.example("60");
/// `max_connections`.
pub const MAX_CONNECTIONS: Key = Key::integer(
    "max_connections",
    1,
    500_000,
    "maximum number of connections; further ones are reset, of gateways: maximum number of connections; further ones wait for max_wait_s; at most 65535",
).default_except(Literal::Integer(8192), &[Exception::new("of gateways", Literal::Integer(1024))]);
/// `buffer_bytes`.
pub const BUFFER_BYTES: Key = Key::integer(
    "buffer_bytes",
    4096,
    1 << 24,
    "maximum number of bytes that wait here for each connection and direction, besides the kernel's buffers, of gateways: maximum number of bytes that wait here for each connection and direction, besides the kernel's buffers; at most 1048576",
).default_except(Literal::Integer(65_536), &[Exception::new("of gateways", Literal::Integer(32_768))]);
/// `connect_timeout_s`.
pub const CONNECT_TIMEOUT_S: Key = Key::number(
    "connect_timeout_s",
    0.1,
    120.0,
    "time in which a server must answer; otherwise the client's connection is reset, of gateways: time in which a server must answer, or else the client is reset; at most 25",
).default_except(Literal::Number(30.0), &[Exception::new("of gateways", Literal::Number(10.0))]);
/// `drain_s`.
pub const DRAIN_S: Key = Key::number(
    "drain_s",
    0.0,
    3600.0,
    "time that connections may continue after the proxy is stopped; then they are reset",
)
.default(Literal::Number(0.0));

/// `moves`.
pub const MOVES: Key = Key::table(
    "moves",
    MOVE_KEYS,
    "moves of connections, with their mobile hosts, between this station and other ones; requires a base-station with the same interface in this file",
).derived("they stay")
.example("{ stations = [\"192.0.2.12\"] }");

/// Keys of [`MOVES`].
pub mod move_keys {
    use super::{Key, Literal};

    /// `stations`.
    pub const STATIONS: Key = Key::texts(
        "stations",
        "addresses of the other stations, from which hosts come and to which they go; each as in `address` of its base-station",
    )
    .example("[\"192.0.2.12\"]")
    .required();
    /// `port`.
    pub const PORT: Key = Key::integer(
        "port",
        1,
        65_535,
        "TCP port at which stations request connections from each other, the same at all stations",
    )
    .default(Literal::Integer(7071));
}

/// All keys of [`MOVES`].
const MOVE_KEYS: &[Key] = &[move_keys::STATIONS, move_keys::PORT];

/// Key of the listener.
pub(super) const LISTENER_KEYS: &[Key] = &[LISTEN_PORT];
/// Keys of the limits of connections: number, buffers, time to connect.
pub(super) const CONNECTION_KEYS: &[Key] = &[MAX_CONNECTIONS, BUFFER_BYTES, CONNECT_TIMEOUT_S];
/// Keys of split connections.
pub(super) const SPLIT_KEYS: &[Key] =
    &[ONWARD.key, MOBILE_CONGESTION, FIXED_CONGESTION, USER_TIMEOUT_S, DRAIN_S, MOVES];
