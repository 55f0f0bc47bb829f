//! Log lines of an exit about entrances: each change once, and at most one line a minute about unknown peers.

use super::handshake::Malformed;
use super::key::Name;
use super::service::Notices;
use crate::service::{Notice, Severity};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum interval between lines of a kind about unknown peers, which may be many.
const UNKNOWN_PEER_INTERVAL: Duration = Duration::from_secs(60);

/// State of an entrance, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum EntranceState {
    /// It has a trunk.
    Present,
    /// It has no trunk any more.
    Gone,
    /// A gateway under its name has another key.
    WrongKey,
}

/// Fault of an unknown peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum UnknownPeer {
    /// It has this version of the protocol.
    Version(u8),
    /// It uses another protocol.
    OtherProtocol,
    /// Its name is not that of an entrance.
    UnknownName,
}

/// The latest log lines.
#[derive(Debug, Default)]
pub(super) struct ExitLog {
    state: Mutex<LogState>,
    notices: Notices,
}

#[derive(Debug, Default)]
struct LogState {
    entrances: BTreeMap<Name, EntranceState>,
    /// Time of the last line about each kind of fault; all versions are one kind.
    unknown_peers: BTreeMap<u8, Instant>,
}

impl ExitLog {
    /// Returns the notices.
    pub(super) const fn notices(&self) -> &Notices {
        &self.notices
    }

    /// Logs the state of the entrance `name` at `address`, if it has changed.
    pub(super) fn entrance(&self, name: &Name, now: EntranceState, address: SocketAddr) {
        if !self.state.lock().unwrap_or_else(PoisonError::into_inner).is_new(name, now) {
            return;
        }
        let (tone, text) = match now {
            EntranceState::Present => {
                (Severity::Normal, format!("the entrance {name} has opened a trunk from {address}"))
            }
            EntranceState::Gone => (
                Severity::Warning,
                format!("the entrance {name} at {address} is gone: its connections are reset"),
            ),
            EntranceState::WrongKey => (
                Severity::Warning,
                format!("the gateway at {address} calls itself {name} and has another key: it is refused"),
            ),
        };
        self.notices.push(Notice { subject: format!("entrance {name}").into(), severity: tone, text });
    }

    /// Logs the fault of an unknown peer, unless one of its kind was logged within a minute.
    pub(super) fn unknown_peer(&self, did: UnknownPeer, address: SocketAddr) {
        if self.state.lock().unwrap_or_else(PoisonError::into_inner).is_due(did, now()) {
            let text = format!("the gateway at {address} {did}: it is refused");
            self.notices.push(Notice { subject: "stranger".into(), severity: Severity::Warning, text });
        }
    }
}

impl LogState {
    fn is_new(&mut self, name: &Name, now: EntranceState) -> bool {
        self.entrances.insert(name.clone(), now) != Some(now)
    }

    fn is_due(&mut self, did: UnknownPeer, now: Instant) -> bool {
        let kind = match did {
            UnknownPeer::Version(_) => 0,
            UnknownPeer::OtherProtocol => 1,
            UnknownPeer::UnknownName => 2,
        };
        let last = self.unknown_peers.get(&kind);
        let is_due = last.is_none_or(|at| now.saturating_duration_since(*at) >= UNKNOWN_PEER_INTERVAL);
        if is_due {
            self.unknown_peers.insert(kind, now);
        }
        is_due
    }
}

impl From<Malformed> for UnknownPeer {
    fn from(malformed: Malformed) -> Self {
        match malformed {
            Malformed::Version(version) => Self::Version(version),
            _ => Self::OtherProtocol,
        }
    }
}

impl fmt::Display for UnknownPeer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => {
                write!(f, "speaks version {version} of the protocol, not {}", super::handshake::VERSION)
            }
            Self::OtherProtocol => f.write_str("speaks another protocol"),
            Self::UnknownName => f.write_str("has a name that is not among the peers"),
        }
    }
}

#[expect(clippy::disallowed_methods, reason = "a gateway is in real time")]
fn now() -> Instant {
    Instant::now()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::ServiceStatus;

    #[test]
    fn each_change_of_an_entrance_is_logged_once() {
        let mut said = LogState::default();
        let (one, other) = ("one".parse().unwrap(), "other".parse().unwrap());
        assert!(said.is_new(&one, EntranceState::WrongKey) && !said.is_new(&one, EntranceState::WrongKey));
        assert!(said.is_new(&other, EntranceState::WrongKey));
        assert!(said.is_new(&one, EntranceState::Present) && !said.is_new(&one, EntranceState::Present));
        assert!(said.is_new(&one, EntranceState::Gone) && said.is_new(&one, EntranceState::Present));
    }

    #[test]
    fn each_entrance_has_its_own_notice_and_the_latest_is_kept() {
        let (remarks, ledger) = (ExitLog::default(), ServiceStatus::default());
        let [one, other] = ["one", "other"].map(|name| name.parse().unwrap());
        let at = ([192, 0, 2, 1], 7172).into();
        for (name, now) in
            [(&one, EntranceState::Present), (&one, EntranceState::Gone), (&other, EntranceState::Present)]
        {
            remarks.entrance(name, now, at);
        }
        remarks.notices().drain_into(&ledger);
        let tones: Vec<_> = ledger.notices().iter().map(|notice| notice.severity).collect();
        assert_eq!(tones, [Severity::Warning, Severity::Normal]);
    }

    #[test]
    fn faults_of_unknown_peers_are_logged_once_a_minute_by_kind() {
        let (mut said, began) = (LogState::default(), now());
        assert!(
            said.is_due(UnknownPeer::Version(1), began) && said.is_due(UnknownPeer::OtherProtocol, began)
        );
        let soon = began + UNKNOWN_PEER_INTERVAL / 2;
        assert!((2..=255).all(|version| !said.is_due(UnknownPeer::Version(version), soon)));
        assert!(
            said.is_due(UnknownPeer::UnknownName, soon)
                && said.is_due(UnknownPeer::Version(3), began + UNKNOWN_PEER_INTERVAL)
        );
    }
}
