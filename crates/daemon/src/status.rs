//! How a daemon is, as it says itself.

use hopline_net::service::Figure;
use hopline_net::service::FigureKind;
use serde::{Deserialize, Serialize};

/// A daemon and its proxies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// What it is called.
    pub name: String,
    /// Its version.
    pub version: String,
    /// Its process.
    pub process: u32,
    /// For how long it has run.
    pub running_s: u64,
    /// How often its file was read again.
    pub reloads: u64,
    /// Rights that it has given up; a daemon of an earlier version does not say.
    #[serde(default)]
    pub sandbox: Option<Sandbox>,
    /// State of connection tracking on its machine; `null` if none of its rules depends on that.
    #[serde(default)]
    pub connection_tracking: Option<Tracked>,
    /// Its proxies, in the order of its file.
    pub proxies: Vec<ProxyStatus>,
}

/// Use of connection tracking on the machine of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tracked {
    /// Nothing tracks connections, and the daemon has no rules that would.
    #[serde(rename = "not in use")]
    NotInUse,
    /// Something else tracks connections, and the daemon has its rules for that.
    #[serde(rename = "in use")]
    InUse,
}

/// Privileges that a daemon has kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// The user that it runs as.
    pub user: u32,
    /// Its capabilities.
    pub capabilities: Vec<String>,
    /// The version of Landlock that confines it; `null` if the kernel has none.
    pub landlock: Option<u32>,
    /// Rights that could be restricted and are not, with the reason.
    pub unrestricted: Vec<String>,
}

/// A proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyStatus {
    /// What it is called.
    pub name: String,
    /// What it is.
    pub kind: String,
    /// Whether it works.
    pub state: Condition,
    /// Why it does not, in the words of the system; `null` if it does.
    pub why: Option<String>,
    /// Further notices, such as the absence of the other end of its link.
    #[serde(default)]
    pub notices: Vec<String>,
    /// For how long it has been in this state.
    pub for_s: u64,
    /// How often it has been started again.
    pub restarts: u64,
    /// What it has done since it was started last.
    pub figures: Vec<Reading>,
}

/// Whether a proxy works.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Condition {
    /// It does.
    Running,
    /// It has ended against its will, and is started again in a while.
    Waiting,
}

/// One figure of a proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Its name.
    pub name: String,
    /// What it counts.
    pub doc: String,
    /// Whether it only grows.
    pub kind: ReadingKind,
    /// How much it is.
    pub value: u64,
}

/// How a figure moves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadingKind {
    /// Upwards only.
    Counter,
    /// Up and down.
    Gauge,
}

impl From<Figure> for Reading {
    fn from(figure: Figure) -> Self {
        let kind = match figure.kind {
            FigureKind::Counter => ReadingKind::Counter,
            FigureKind::Gauge => ReadingKind::Gauge,
        };
        Self { name: figure.name.into(), doc: figure.doc.into(), kind, value: figure.value }
    }
}
