//! Every key of a file of proxies, as those of scenarios are declared. The keys of machines are the same ones.
//!
//! A proxy takes the keys of some groups, by its kind. What several kinds take is declared once.

pub mod in_path;
pub mod neighborhood;
pub mod split;

use hopline_scenario::choice;
use hopline_scenario::choice::Chosen;
use hopline_scenario::field::{self, Field};
use hopline_scenario::json_schema::FileKind;
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

/// What a `[[proxy]]` is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KindKey {
    /// Snoop.
    Snoop,
    /// M-TCP's supervisor host.
    Mtcp,
    /// What asks for what mobile hosts have sent.
    Nack,
    /// Connections split in two.
    Split,
    /// Neighborhood RED.
    NeighborhoodRed,
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
            "split" => KindKey::Split,
            "neighborhood-red" => KindKey::NeighborhoodRed,
        },
        "what it is; snoop: what the last hop loses is sent again from here; mtcp: senders wait while a mobile host cannot be reached; nack: mobile hosts are asked for what they have sent and what has not come; split: connections end here, and others lead on; neighborhood-red: drops or marks when a neighbour suffers",
    )
    .required();
    /// `name`.
    pub const NAME: Key = Key::text("name", "what it is called in messages and figures; default: its kind");
}

/// A group of keys.
type Group = &'static [Key];

const COMMON: Group = &[proxy::KIND.key, proxy::NAME];

/// Every group. No two have a key in common.
const GROUPS: &[Group] = &[
    COMMON,
    in_path::LEADS,
    in_path::PLACE,
    in_path::WAITING,
    in_path::TABLE,
    in_path::SNOOP,
    in_path::LOCAL,
    in_path::MTCP,
    split::SPLIT,
    neighborhood::NEIGHBORHOOD,
];

impl KindKey {
    /// All of them.
    pub const ALL: &[Self] = &[Self::Snoop, Self::Mtcp, Self::Nack, Self::Split, Self::NeighborhoodRed];

    /// As it is written.
    #[must_use]
    pub const fn word(self) -> &'static str {
        match self {
            Self::Snoop => "snoop",
            Self::Mtcp => "mtcp",
            Self::Nack => "nack",
            Self::Split => "split",
            Self::NeighborhoodRed => "neighborhood-red",
        }
    }

    /// Whether a proxy of this kind takes `key`.
    #[must_use]
    pub fn takes(self, key: &str) -> bool {
        self.groups().iter().any(|group| group.iter().any(|of_group| of_group.name == key))
    }

    /// The groups that it takes.
    const fn groups(self) -> &'static [Group] {
        match self {
            Self::Snoop => &[
                COMMON,
                in_path::LEADS,
                in_path::PLACE,
                in_path::WAITING,
                in_path::TABLE,
                in_path::SNOOP,
                in_path::LOCAL,
            ],
            Self::Mtcp => {
                &[COMMON, in_path::LEADS, in_path::PLACE, in_path::WAITING, in_path::TABLE, in_path::MTCP]
            }
            Self::Nack => {
                &[COMMON, in_path::LEADS, in_path::PLACE, in_path::WAITING, in_path::TABLE, in_path::LOCAL]
            }
            Self::Split => &[COMMON, in_path::LEADS, in_path::PLACE, split::SPLIT],
            Self::NeighborhoodRed => &[COMMON, in_path::LEADS, in_path::WAITING, neighborhood::NEIGHBORHOOD],
        }
    }
}

/// `[[proxy]]`.
pub const PROXY: &[Key] = &joined::<{ length(GROUPS) }>(GROUPS);

const fn length(groups: &[Group]) -> usize {
    let (mut length, mut group) = (0, 0);
    while group < groups.len() {
        length += groups[group].len();
        group += 1;
    }
    length
}

/// The keys of all groups in a row: loops, since iterators are not for constants.
const fn joined<const N: usize>(groups: &[Group]) -> [Key; N] {
    let mut all = [proxy::NAME; N];
    let (mut place, mut group) = (0, 0);
    while group < groups.len() {
        let mut key = 0;
        while key < groups[group].len() {
            all[place] = groups[group][key];
            (place, key) = (place + 1, key + 1);
        }
        group += 1;
    }
    all
}
