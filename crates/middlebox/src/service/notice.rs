//! Notices: the condition of a service as text, such as the absence of its peer.

use hopline_proxy::Peer;
use hopline_wire::dproxy::tunnel::Speaks;
use std::borrow::Cow;
use std::fmt::Debug;

/// Condition of a part of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Subject, such as `peer`, or the name of one of several. A later notice with the same subject replaces this one.
    pub about: Cow<'static, str>,
    /// Severity: the service works as intended, or not.
    pub tone: Tone,
    /// The condition, as part of a sentence.
    pub text: String,
}

/// Severity of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tone {
    /// The condition is intended.
    Good,
    /// The condition is not intended, and a user may want to fix it.
    Bad,
}

/// Receiver of the changed notices of a [`Ledger`](super::Ledger).
pub trait Listener: Debug + Send + Sync {
    /// Receives a new notice.
    fn hear(&self, notice: &Notice);
}

impl Notice {
    /// Returns the notice about the peer of a link, with its address. `None` while its state is unknown. `without`:
    /// treatment of packets while it is absent.
    #[must_use]
    pub fn of_peer(peer: Peer, address: &str, without: &str) -> Option<Self> {
        let is = match peer {
            Peer::Sought => return None,
            Peer::Present => {
                let text = format!("the other end, {address}, is there");
                return Some(Self { about: "peer".into(), tone: Tone::Good, text });
            }
            Peer::Absent => "does not answer".to_owned(),
            Peer::OtherVersion(version) => {
                let ours = hopline_wire::dproxy::VERSION;
                format!("speaks version {version} of the protocol, and this one version {ours}")
            }
            Peer::OtherKey => "has another key".to_owned(),
            Peer::OtherKind(speaks) => format!("is of another kind, {}", kind(speaks)),
        };
        let text = format!("the other end, {address}, {is}: {without}");
        Some(Self { about: "peer".into(), tone: Tone::Bad, text })
    }
}

const fn kind(speaks: Speaks) -> &'static str {
    match speaks {
        Speaks::Messages => "d-proxy",
        Speaks::Asking => "opaque",
        Speaks::Acknowledging => "arq",
    }
}

#[cfg(test)]
mod tests {
    use super::super::Ledger;
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Debug, Default)]
    struct Heard(Mutex<Vec<String>>);

    impl Listener for Heard {
        fn hear(&self, notice: &Notice) {
            self.0.lock().unwrap().push(notice.text.clone());
        }
    }

    #[test]
    fn a_listener_hears_of_a_change_once_and_the_latest_stands() {
        let heard = Arc::new(Heard::default());
        let ledger = Ledger::heard_by(heard.clone());
        for peer in [Peer::Sought, Peer::Absent, Peer::Absent, Peer::Present, Peer::OtherVersion(1)] {
            Notice::of_peer(peer, "192.0.2.2", "packets pass").into_iter().for_each(|n| ledger.say(n));
        }
        let expected = [
            "the other end, 192.0.2.2, does not answer: packets pass",
            "the other end, 192.0.2.2, is there",
            "the other end, 192.0.2.2, speaks version 1 of the protocol, and this one version 3: packets pass",
        ];
        assert_eq!(heard.0.lock().unwrap()[..], expected);
        assert_eq!(ledger.notices().len(), 1);
        assert_eq!((ledger.notices()[0].tone, &ledger.notices()[0].text[..]), (Tone::Bad, expected[2]));
    }
}
