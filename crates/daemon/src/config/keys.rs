//! Every key of a file of proxies, as those of scenarios are declared. The keys of machines are the same ones.

use hopline_scenario::choice;
use hopline_scenario::choice::Chosen;
use hopline_scenario::field::{self, Field};
use hopline_scenario::json_schema::FileKind;
use hopline_scenario::keys::proxy as machine;
use hopline_scenario::schema::Default::{Integer, Word};
use hopline_scenario::schema::Key;

/// Files of proxies.
pub const PROXIES: FileKind =
    FileKind { name: "proxy", title: "the proxies of a machine, for hopline proxy", keys: FILE };

/// How messages are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogFormat {
    /// A line of text each.
    Text,
    /// A JSON object each.
    Json,
}

/// What a `[[proxy]]` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindKey {
    /// Snoop.
    Snoop,
    /// M-TCP's supervisor host.
    Mtcp,
    /// What asks for what mobile hosts have sent.
    Nack,
}

/// Keys of [`FILE`].
pub mod file {
    use super::*;

    /// `name`.
    pub const NAME: Field<field::Word> = Field::word(
        Key::text(
            "name",
            "what rules, sockets and files of this daemon are called by; another daemon has another: up to 16 letters, digits, - and _",
        )
        .or(Word("hopline")),
    );
    /// `state_dir`.
    pub const STATE_DIR: Field<field::Word> = Field::word(
        Key::text(
            "state_dir",
            "folder of its lock, its socket, and its list of rules; made if it is not there",
        )
        .or(Word("/run/hopline")),
    );
    /// `log`.
    pub const LOG: Chosen<LogFormat> =
        choice!("log", { "text" => LogFormat::Text, "json" => LogFormat::Json }, "how messages are written to stderr").or("text");
    /// `metrics`.
    pub const METRICS: Key = Key::text(
        "metrics",
        "address and port where Prometheus may read figures, such as 127.0.0.1:9464; default: nowhere",
    );
    /// `mark`.
    pub const MARK: Field<u64> = Field::integer(
        Key::integer(
            "mark",
            1,
            0xffff,
            "mark of packets that are brought to sockets of this machine, in the upper half of the kernel's 32 bits",
        )
        .or(Integer(0x686f)),
    );
    /// `route_table`.
    pub const ROUTE_TABLE: Field<u64> = Field::integer(
        Key::integer("route_table", 1, 0x7fff_ffff, "routing table that brings them there")
            .or(Integer(26_735)),
    );
}

/// Keys of [`PROXY`].
pub mod proxy {
    use super::*;

    /// `kind`.
    pub const KIND: Chosen<KindKey> = choice!(
        "kind",
        { "snoop" => KindKey::Snoop, "mtcp" => KindKey::Mtcp, "nack" => KindKey::Nack },
        "what it is; snoop: what the last hop loses is sent again from here; mtcp: senders wait while a mobile host cannot be reached; nack: mobile hosts are asked for what they have sent and what has not come",
    )
    .required();
    /// `name`.
    pub const NAME: Key = Key::text("name", "what it is called in messages and figures; default: its kind");
    /// `interface`.
    pub const INTERFACE: Key =
        Key::text("interface", "the interface that leads to the mobile hosts, such as wlan0");
    /// `subnets`.
    pub const SUBNETS: Key = Key::texts(
        "subnets",
        "the mobile hosts that it serves, such as [\"10.1.0.0/16\"]; default: all beyond the interface",
    );
    /// `ports`.
    pub const PORTS: Key = Key::integers(
        "ports",
        1,
        65_535,
        "the ports of fixed hosts that it serves, such as [80, 443]; default: all",
    );
    /// `queue`.
    pub const QUEUE: Key = Key::integer(
        "queue",
        0,
        65_535,
        "number of its NFQUEUE, which no other program may have; default: 26,735 for the first proxy of the file, and so on",
    );
}

/// `[[proxy]]`.
pub const PROXY: &[Key] = &[
    proxy::KIND.key,
    proxy::NAME,
    proxy::INTERFACE,
    proxy::SUBNETS,
    proxy::PORTS,
    proxy::QUEUE,
    machine::PRESET.key,
    machine::HIGH_WATER_PACKETS,
    machine::LOCAL_LIMIT,
    machine::DUP_ACK_THRESHOLD,
    machine::MIN_TIMER_MS,
    machine::PERSIST_MS,
    machine::SPURIOUS_ACKS.key,
    machine::OLD_DATA.key,
    machine::OVERFLOW.key,
    machine::TURN.key,
    machine::SILENCE_MS,
    machine::PROBE_MS,
    machine::CONNECTIONS,
    machine::IDLE_S,
];

/// The whole file.
pub const FILE: &[Key] = &[
    file::NAME.key,
    file::STATE_DIR.key,
    file::LOG.key,
    file::METRICS,
    file::MARK.key,
    file::ROUTE_TABLE.key,
    Key::tables("proxy", PROXY, "the proxies of this machine"),
];

/// Keys that every kind takes.
const COMMON: &[&str] = &["kind", "name"];
/// Keys of machines that see packets pass.
const IN_PATH: &[&str] = &["interface", "subnets", "ports", "queue", "connections", "idle_s"];

impl KindKey {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Snoop, Self::Mtcp, Self::Nack];

    /// As it is written.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Snoop => "snoop",
            Self::Mtcp => "mtcp",
            Self::Nack => "nack",
        }
    }

    /// Whether a proxy of this kind takes `key`.
    #[must_use]
    pub fn takes(self, key: &str) -> bool {
        self.groups().iter().any(|group| group.contains(&key))
    }

    /// The keys that it takes, by where they belong.
    fn groups(self) -> &'static [&'static [&'static str]] {
        match self {
            Self::Snoop => &[
                COMMON,
                IN_PATH,
                &[
                    "preset",
                    "high_water_packets",
                    "local_limit",
                    "dup_ack_threshold",
                    "min_timer_ms",
                    "persist_ms",
                    "spurious_acks",
                    "old_data",
                    "overflow",
                    "turn",
                ],
            ],
            Self::Mtcp => &[COMMON, IN_PATH, &["silence_ms", "probe_ms"]],
            Self::Nack => &[COMMON, IN_PATH, &["local_limit", "min_timer_ms"]],
        }
    }
}
