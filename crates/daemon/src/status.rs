//! Status of a daemon.

use hopline_middlebox::service::Metric;
use hopline_middlebox::service::MetricKind;
use serde::{Deserialize, Serialize};

/// Status of a daemon and its proxies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Status {
    /// Name.
    pub name: String,
    /// Version.
    pub version: String,
    /// Process ID.
    pub process: u32,
    /// Time since its start, seconds.
    pub running_s: u64,
    /// Number of reloads of its file.
    pub reloads: u64,
    /// Privileges; daemons of earlier versions do not report them.
    #[serde(default)]
    pub sandbox: Option<Sandbox>,
    /// Use of connection tracking on the machine; `null` if none of its rules depends on it.
    #[serde(default)]
    pub connection_tracking: Option<Tracked>,
    /// Proxies, in the order of the file.
    pub proxies: Vec<ProxyStatus>,
}

/// Use of connection tracking on the machine of a daemon.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Tracked {
    /// No program enables connection tracking, and the daemon has no rules that would.
    #[serde(rename = "not in use")]
    NotInUse,
    /// Another program has enabled connection tracking, and the daemon has its rules for it.
    #[serde(rename = "in use")]
    InUse,
}

/// Privileges that a daemon has kept.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sandbox {
    /// User ID of the daemon.
    pub user: u32,
    /// Capabilities.
    pub capabilities: Vec<String>,
    /// Enforced version of Landlock; `null` if the kernel has none.
    pub landlock: Option<u32>,
    /// Possible restrictions that are not enforced, with the reason.
    pub unrestricted: Vec<String>,
}

/// Status of a proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProxyStatus {
    /// Name.
    pub name: String,
    /// Kind.
    pub kind: String,
    /// State.
    pub state: Condition,
    /// Reason why it does not run, as the system reports it; `null` if it runs.
    pub why: Option<String>,
    /// Further notices, such as the absence of the other end of its link.
    #[serde(default)]
    pub notices: Vec<String>,
    /// Time in this state, seconds.
    pub for_s: u64,
    /// Number of restarts.
    pub restarts: u64,
    /// Counters since its last start.
    pub figures: Vec<Reading>,
}

/// State of a proxy.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Condition {
    /// The proxy runs.
    Running,
    /// The proxy has failed, and is to be restarted after a pause.
    Waiting,
}

/// Counter or gauge of a proxy.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Reading {
    /// Name.
    pub name: String,
    /// Description.
    pub doc: String,
    /// Counter or gauge.
    pub kind: ReadingKind,
    /// Value.
    pub value: u64,
}

/// Type of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum ReadingKind {
    /// Value that only increases.
    Counter,
    /// Value that increases and decreases.
    Gauge,
}

impl From<Metric> for Reading {
    fn from(figure: Metric) -> Self {
        let kind = match figure.kind {
            MetricKind::Counter => ReadingKind::Counter,
            MetricKind::Gauge => ReadingKind::Gauge,
        };
        Self { name: figure.name.into(), doc: figure.doc.into(), kind, value: figure.value }
    }
}
