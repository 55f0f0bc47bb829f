//! Keys of a proxy file, declared in the same way as those of scenarios. A middlebox has the same keys in both files.
//!
//! Keys form groups. The kind of a proxy determines which groups it takes, so a key of several kinds is declared once.

pub mod gateway;
mod group;
pub mod handoff;
pub mod in_path;
pub mod neighborhood;
pub mod pair;
mod reference;
pub mod split;

pub use reference::reference;
#[cfg(test)]
pub(super) use reference::{minimal_section, stated};

use group::{Group, joined, length};

use hopline_config::choice;
use hopline_config::choice::Chosen;
use hopline_config::field::{self, Field};
use hopline_config::json_schema::FileKind;
use hopline_config::schema::Default::{Integer, Word};
use hopline_config::schema::{Key, Literal};

/// Description of proxy files.
pub const PROXIES: FileKind =
    FileKind { name: "proxy", title: "the proxies of a machine, for hopline proxy", keys: FILE_KEYS };

/// Format of log messages.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// One line of text for each message.
    Text,
    /// One JSON object for each message.
    Json,
}

/// Keys of [`FILE_KEYS`].
pub mod file {
    use super::*;

    /// `name`.
    pub const NAME: Field<field::Word> = Field::word(
        Key::text(
            "name",
            "name of the daemon, part of the names of its rules, sockets and files, and different for each daemon: up to 16 letters, digits, - and _",
        )
        .with_default(Word("hopline")),
    );
    /// `state_dir`.
    pub const STATE_DIR: Field<field::Word> = Field::word(
        Key::text(
            "state_dir",
            "directory of the lock, the control socket and the list of rules; created if it is missing",
        )
        .with_default(Word("/run/hopline")),
    );
    /// `user`.
    pub const USER: Key = Key::text(
        "user",
        "user to which the daemon changes after root has started it, such as hopline; this user must be able to read the file and its secrets to reload them",
    ).default(Literal::Word("root"))
    .example("\"hopline\"");
    /// `status_group`.
    pub const STATUS_GROUP: Key =
        Key::text("status_group", "group of this machine with access to the status, which is read-only")
            .derived("all users may")
            .example("\"hopline\"");
    /// `log`.
    pub const LOG: Chosen<LogFormat> =
        choice!("log", { "text" => LogFormat::Text, "json" => LogFormat::Json }, "format of messages on stderr").with_default("text");
    /// `metrics`.
    pub const METRICS: Key = Key::text("metrics", "address and port at which Prometheus may read metrics")
        .derived("nowhere")
        .example("\"127.0.0.1:9464\"");
    /// `mark`.
    pub const MARK: Field<u64> = Field::integer(
        Key::integer(
            "mark",
            1,
            0xffff,
            "mark of packets that are diverted to sockets of this machine; it is the upper half of the kernel's mark of 32 bits",
        )
        .with_default(Integer(0x686f)),
    );
    /// `route_table`.
    pub const ROUTE_TABLE: Field<u64> = Field::integer(
        Key::integer("route_table", 1, 0x7fff_ffff, "routing table that diverts packets with the mark")
            .with_default(Integer(26_735)),
    );
}

/// Keys of the whole file.
pub const FILE_KEYS: &[Key] = &[
    file::NAME.key,
    file::STATE_DIR.key,
    file::USER,
    file::STATUS_GROUP,
    file::LOG.key,
    file::METRICS,
    file::MARK.key,
    file::ROUTE_TABLE.key,
    Key::tables("proxy", PROXY_KEYS, "the proxies of this machine"),
];

/// Kind of a `[[proxy]]`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindKey {
    /// Snoop.
    Snoop,
    /// Supervisor host of M-TCP.
    Mtcp,
    /// Requests for lost data of mobile hosts (NACK).
    Nack,
    /// Buffer of a mobile host for its segments, which a station with `nack` may request.
    NackHost,
    /// Split connections.
    Split,
    /// Neighborhood RED.
    NeighborhoodRed,
    /// D-Proxy for TCP packets.
    DProxy,
    /// D-Proxy for packets of any protocol, in a tunnel.
    Opaque,
    /// Tunnel with ARQ.
    Arq,
    /// Entrance of a gateway, from TCP to TPA.
    Gateway,
    /// Exit of a gateway, from TPA to TCP.
    GatewayExit,
    /// Home agent of mobile hosts.
    HomeAgent,
    /// Base station of mobile hosts.
    BaseStation,
    /// Mobile host.
    MobileHost,
}

/// Keys that every kind takes.
pub mod proxy {
    use super::*;

    /// `kind`.
    pub const KIND: Chosen<KindKey> = choice!(
        "kind",
        {
            "snoop" => KindKey::Snoop,
            "mtcp" => KindKey::Mtcp,
            "nack" => KindKey::Nack,
            "nack-host" => KindKey::NackHost,
            "split" => KindKey::Split,
            "neighborhood-red" => KindKey::NeighborhoodRed,
            "d-proxy" => KindKey::DProxy,
            "opaque" => KindKey::Opaque,
            "arq" => KindKey::Arq,
            "gateway" => KindKey::Gateway,
            "gateway-exit" => KindKey::GatewayExit,
            "home-agent" => KindKey::HomeAgent,
            "base-station" => KindKey::BaseStation,
            "mobile-host" => KindKey::MobileHost,
        },
        "kind of the proxy; snoop: retransmits packets that the last hop loses, and hides the losses from senders; mtcp: makes senders wait while a mobile host cannot be reached; nack: requests lost packets of uploads from mobile hosts; nack-host: buffers the packets that this host sends, and retransmits those that a station with nack requests; split: terminates connections, and opens connections to their destinations; neighborhood-red: drops or marks packets when a neighbour suffers; d-proxy: retransmits, together with its peer, TCP packets that the link between them loses; opaque: retransmits, together with its peer, lost packets of any protocol that are routed into an interface; arq: does the same as opaque, with an acknowledgment of each packet; gateway: carries connections to the other gateway over TPA or TPA-wide; gateway-exit: carries connections of gateways on to their destinations by TCP; home-agent: sends packets for mobile hosts to the stations that serve them; base-station: serves mobile hosts; mobile-host: changes its station without loss",
    )
    .required();
    /// `name`.
    pub const NAME: Key =
        Key::text("name", "name in messages and metrics").derived("its kind").example("\"wlan\"");
    /// `key_file`.
    pub const KEY_FILE: Key = Key::text(
        "key_file",
        "file with the secret that both ends share: 64 hexadecimal digits, of home-agent and base-station: file with the secret that the home agent and all base stations share: 32 hexadecimal digits, of mobile-host: file with the line that hopline proxy host-key prints",
    ).example("\"link.key\"");
}

const COMMON_KEYS: Group = &[proxy::KIND.key, proxy::NAME];
const SECRET_KEYS: Group = &[proxy::KEY_FILE];

/// All groups. No two groups have a key in common.
const GROUPS: &[Group] = &[
    COMMON_KEYS,
    SECRET_KEYS,
    in_path::INTERFACE_KEYS,
    in_path::MOBILE_HOST_KEYS,
    in_path::PORT_KEYS,
    in_path::QUEUE_KEYS,
    in_path::TABLE_KEYS,
    in_path::SNOOP_KEYS,
    in_path::ORDER_KEYS,
    in_path::LOCAL_RETRANSMISSION_KEYS,
    in_path::MIN_TIMER_KEYS,
    in_path::BUFFER_KEYS,
    in_path::OVERFLOW_KEYS,
    in_path::MTCP_KEYS,
    split::LISTENER_KEYS,
    split::SPLIT_KEYS,
    split::CONNECTION_KEYS,
    neighborhood::NEIGHBORHOOD_KEYS,
    pair::ADDRESS_KEYS,
    pair::TUNNEL_KEYS,
    pair::RATE_KEYS,
    pair::MTU_KEYS,
    pair::RECOVERY_KEYS,
    pair::DPROXY_KEYS,
    pair::OPAQUE_KEYS,
    pair::ARQ_KEYS,
    gateway::ENTRANCE_KEYS,
    gateway::EXIT_KEYS,
    gateway::GATEWAY_KEYS,
    handoff::HANDOFF_KEYS,
    handoff::FIXED_HOST_KEYS,
    handoff::HOME_AGENT_KEYS,
    handoff::ENDPOINT_KEYS,
    handoff::STATION_KEYS,
    handoff::MOBILE_KEYS,
];

impl KindKey {
    /// All kinds.
    pub const ALL: &[Self] = &[
        Self::Snoop,
        Self::Mtcp,
        Self::Nack,
        Self::NackHost,
        Self::Split,
        Self::NeighborhoodRed,
        Self::DProxy,
        Self::Opaque,
        Self::Arq,
        Self::Gateway,
        Self::GatewayExit,
        Self::HomeAgent,
        Self::BaseStation,
        Self::MobileHost,
    ];

    /// Returns the value of `kind` for this kind.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Snoop => "snoop",
            Self::Mtcp => "mtcp",
            Self::Nack => "nack",
            Self::NackHost => "nack-host",
            Self::Split => "split",
            Self::NeighborhoodRed => "neighborhood-red",
            Self::DProxy => "d-proxy",
            Self::Opaque => "opaque",
            Self::Arq => "arq",
            Self::Gateway => "gateway",
            Self::GatewayExit => "gateway-exit",
            Self::HomeAgent => "home-agent",
            Self::BaseStation => "base-station",
            Self::MobileHost => "mobile-host",
        }
    }

    /// Returns whether a proxy of this kind takes `key`.
    #[must_use]
    pub fn takes(self, key: &str) -> bool {
        self.groups().chain([COMMON_KEYS]).any(|group| group.iter().any(|of_group| of_group.name == key))
    }

    /// Returns the mandatory keys of a proxy of this kind.
    #[must_use]
    pub const fn needs(self) -> &'static [Key] {
        match self {
            Self::Snoop | Self::Mtcp | Self::Nack | Self::NackHost | Self::Split => &[in_path::INTERFACE],
            Self::NeighborhoodRed => &[in_path::INTERFACE, neighborhood::NEIGHBORHOOD_RED],
            Self::DProxy => &[in_path::INTERFACE, pair::LOCAL, pair::PEER, proxy::KEY_FILE],
            Self::Opaque | Self::Arq => &[pair::LOCAL, pair::PEER, proxy::KEY_FILE],
            Self::Gateway => &[gateway::EXIT, gateway::IDENTITY, proxy::KEY_FILE],
            Self::GatewayExit => &[gateway::PEERS],
            Self::HomeAgent => &[handoff::ADDRESS, handoff::NETWORK, handoff::INTERFACES, proxy::KEY_FILE],
            Self::BaseStation => &[
                handoff::ADDRESS,
                handoff::HOME_AGENT,
                handoff::NETWORK,
                handoff::WIRED,
                in_path::INTERFACE,
                proxy::KEY_FILE,
            ],
            Self::MobileHost => &[handoff::ADDRESS, handoff::INTERFACES, proxy::KEY_FILE],
        }
    }

    /// Returns the keys of which a proxy of this kind needs at least one.
    #[must_use]
    pub const fn needs_one_of(self) -> &'static [Key] {
        match self {
            Self::Gateway => &[gateway::FORWARD, gateway::SOCKS, gateway::DIVERT],
            _ => &[],
        }
    }

    /// Returns the groups of keys of this kind, without [`COMMON_KEYS`].
    fn groups(self) -> impl Iterator<Item = Group> {
        let own: &[Group] = match self {
            Self::Snoop => &[
                in_path::SNOOP_KEYS,
                in_path::ORDER_KEYS,
                in_path::LOCAL_RETRANSMISSION_KEYS,
                in_path::MIN_TIMER_KEYS,
                in_path::BUFFER_KEYS,
                in_path::OVERFLOW_KEYS,
            ],
            Self::Mtcp => &[in_path::MTCP_KEYS],
            Self::Nack => &[in_path::LOCAL_RETRANSMISSION_KEYS, in_path::MIN_TIMER_KEYS],
            Self::NackHost => &[
                in_path::INTERFACE_KEYS,
                in_path::QUEUE_KEYS,
                in_path::TABLE_KEYS,
                in_path::LOCAL_RETRANSMISSION_KEYS,
                in_path::BUFFER_KEYS,
            ],
            Self::Split => &[
                in_path::INTERFACE_KEYS,
                in_path::MOBILE_HOST_KEYS,
                in_path::PORT_KEYS,
                in_path::QUEUE_KEYS,
                split::LISTENER_KEYS,
                split::SPLIT_KEYS,
                split::CONNECTION_KEYS,
            ],
            Self::NeighborhoodRed => {
                &[in_path::INTERFACE_KEYS, in_path::QUEUE_KEYS, neighborhood::NEIGHBORHOOD_KEYS]
            }
            Self::DProxy => &[
                SECRET_KEYS,
                pair::ADDRESS_KEYS,
                pair::DPROXY_KEYS,
                pair::RATE_KEYS,
                pair::RECOVERY_KEYS,
                in_path::INTERFACE_KEYS,
                in_path::QUEUE_KEYS,
                in_path::TABLE_KEYS,
                in_path::ORDER_KEYS,
                in_path::LOCAL_RETRANSMISSION_KEYS,
                in_path::MIN_TIMER_KEYS,
                in_path::BUFFER_KEYS,
                in_path::OVERFLOW_KEYS,
            ],
            Self::Opaque => &[
                SECRET_KEYS,
                pair::ADDRESS_KEYS,
                pair::TUNNEL_KEYS,
                pair::RATE_KEYS,
                pair::MTU_KEYS,
                pair::RECOVERY_KEYS,
                pair::OPAQUE_KEYS,
                in_path::ORDER_KEYS,
                in_path::LOCAL_RETRANSMISSION_KEYS,
                in_path::MIN_TIMER_KEYS,
                in_path::BUFFER_KEYS,
            ],
            Self::Arq => &[
                SECRET_KEYS,
                pair::ADDRESS_KEYS,
                pair::TUNNEL_KEYS,
                pair::RATE_KEYS,
                pair::MTU_KEYS,
                pair::ARQ_KEYS,
            ],
            Self::Gateway => &[
                SECRET_KEYS,
                gateway::ENTRANCE_KEYS,
                gateway::GATEWAY_KEYS,
                in_path::PORT_KEYS,
                in_path::QUEUE_KEYS,
                split::LISTENER_KEYS,
                split::CONNECTION_KEYS,
            ],
            Self::GatewayExit => {
                &[gateway::EXIT_KEYS, gateway::GATEWAY_KEYS, in_path::QUEUE_KEYS, split::CONNECTION_KEYS]
            }
            Self::HomeAgent => &[
                SECRET_KEYS,
                handoff::HANDOFF_KEYS,
                handoff::FIXED_HOST_KEYS,
                handoff::HOME_AGENT_KEYS,
                handoff::ENDPOINT_KEYS,
                pair::MTU_KEYS,
            ],
            Self::BaseStation => &[
                SECRET_KEYS,
                handoff::HANDOFF_KEYS,
                handoff::FIXED_HOST_KEYS,
                handoff::STATION_KEYS,
                in_path::INTERFACE_KEYS,
            ],
            Self::MobileHost => {
                &[SECRET_KEYS, handoff::HANDOFF_KEYS, handoff::ENDPOINT_KEYS, handoff::MOBILE_KEYS]
            }
        };
        const IN_PATH: &[Group] = &[
            in_path::INTERFACE_KEYS,
            in_path::MOBILE_HOST_KEYS,
            in_path::PORT_KEYS,
            in_path::QUEUE_KEYS,
            in_path::TABLE_KEYS,
            pair::RATE_KEYS,
        ];
        let sees_packets = matches!(self, Self::Snoop | Self::Mtcp | Self::Nack);
        own.iter().chain(IN_PATH.iter().filter(move |_| sees_packets)).copied()
    }
}

/// Keys of `[[proxy]]`, of all kinds.
pub const PROXY_KEYS: &[Key] = &joined::<{ length(GROUPS) }>(GROUPS);
