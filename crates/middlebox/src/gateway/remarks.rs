//! Log lines of an exit about entrances: each change once, and at most one line a minute about unknown peers.

use super::greeting::Malformed;
use super::key::Name;
use super::service::Notices;
use crate::service::{Notice, Tone};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};

/// Minimum interval between lines of a kind about unknown peers, which may be many.
const PERIOD: Duration = Duration::from_secs(60);

/// State of an entrance, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Entrance {
    /// It has a trunk.
    Present,
    /// It has no trunk any more.
    Gone,
    /// A gateway under its name has another key.
    Unproven,
}

/// Fault of an unknown peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stranger {
    /// It has this version of the protocol.
    Version(u8),
    /// It uses another protocol.
    Foreign,
    /// Its name is not that of an entrance.
    Unnamed,
}

/// The latest log lines.
#[derive(Debug, Default)]
pub(super) struct Remarks {
    said: Mutex<Said>,
    notices: Notices,
}

#[derive(Debug, Default)]
struct Said {
    entrances: BTreeMap<Name, Entrance>,
    /// Time of the last line about each kind of fault; all versions are one kind.
    strangers: BTreeMap<u8, Instant>,
}

impl Remarks {
    /// Returns the notices.
    pub(super) const fn notices(&self) -> &Notices {
        &self.notices
    }

    /// Logs the state of the entrance `name` at `address`, if it has changed.
    pub(super) fn entrance(&self, name: &Name, now: Entrance, address: SocketAddr) {
        if !self.said.lock().unwrap_or_else(PoisonError::into_inner).is_new(name, now) {
            return;
        }
        let (tone, text) = match now {
            Entrance::Present => {
                (Tone::Good, format!("the entrance {name} has opened a trunk from {address}"))
            }
            Entrance::Gone => {
                (Tone::Bad, format!("the entrance {name} at {address} is gone: its connections are reset"))
            }
            Entrance::Unproven => (
                Tone::Bad,
                format!("the gateway at {address} calls itself {name} and has another key: it is refused"),
            ),
        };
        self.notices.say(Notice { about: format!("entrance {name}").into(), tone, text });
    }

    /// Logs the fault of an unknown peer, unless one of its kind was logged within a minute.
    pub(super) fn stranger(&self, did: Stranger, address: SocketAddr) {
        if self.said.lock().unwrap_or_else(PoisonError::into_inner).is_due(did, now()) {
            let text = format!("the gateway at {address} {did}: it is refused");
            self.notices.say(Notice { about: "stranger".into(), tone: Tone::Bad, text });
        }
    }
}

impl Said {
    fn is_new(&mut self, name: &Name, now: Entrance) -> bool {
        self.entrances.insert(name.clone(), now) != Some(now)
    }

    fn is_due(&mut self, did: Stranger, now: Instant) -> bool {
        let kind = match did {
            Stranger::Version(_) => 0,
            Stranger::Foreign => 1,
            Stranger::Unnamed => 2,
        };
        let last = self.strangers.get(&kind);
        let is_due = last.is_none_or(|at| now.saturating_duration_since(*at) >= PERIOD);
        if is_due {
            self.strangers.insert(kind, now);
        }
        is_due
    }
}

impl From<Malformed> for Stranger {
    fn from(malformed: Malformed) -> Self {
        match malformed {
            Malformed::Version(version) => Self::Version(version),
            _ => Self::Foreign,
        }
    }
}

impl fmt::Display for Stranger {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Version(version) => {
                write!(f, "speaks version {version} of the protocol, not {}", super::greeting::VERSION)
            }
            Self::Foreign => f.write_str("speaks another protocol"),
            Self::Unnamed => f.write_str("has a name that is not among the peers"),
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
    use crate::service::Ledger;

    #[test]
    fn each_change_of_an_entrance_is_told_once() {
        let mut said = Said::default();
        let (one, other) = ("one".parse().unwrap(), "other".parse().unwrap());
        assert!(said.is_new(&one, Entrance::Unproven) && !said.is_new(&one, Entrance::Unproven));
        assert!(said.is_new(&other, Entrance::Unproven));
        assert!(said.is_new(&one, Entrance::Present) && !said.is_new(&one, Entrance::Present));
        assert!(said.is_new(&one, Entrance::Gone) && said.is_new(&one, Entrance::Present));
    }

    #[test]
    fn each_entrance_has_a_notice_of_its_own_and_the_latest_stands() {
        let (remarks, ledger) = (Remarks::default(), Ledger::default());
        let [one, other] = ["one", "other"].map(|name| name.parse().unwrap());
        let at = ([192, 0, 2, 1], 7172).into();
        for (name, now) in [(&one, Entrance::Present), (&one, Entrance::Gone), (&other, Entrance::Present)] {
            remarks.entrance(name, now, at);
        }
        remarks.notices().pass_to(&ledger);
        let tones: Vec<_> = ledger.notices().iter().map(|notice| notice.tone).collect();
        assert_eq!(tones, [Tone::Bad, Tone::Good]);
    }

    #[test]
    fn strangers_of_a_kind_are_told_of_once_a_minute() {
        let (mut said, began) = (Said::default(), now());
        assert!(said.is_due(Stranger::Version(1), began) && said.is_due(Stranger::Foreign, began));
        let soon = began + PERIOD / 2;
        assert!((2..=255).all(|version| !said.is_due(Stranger::Version(version), soon)));
        assert!(said.is_due(Stranger::Unnamed, soon) && said.is_due(Stranger::Version(3), began + PERIOD));
    }
}
