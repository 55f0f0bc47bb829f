//! Notices: the condition of a service as text, such as the absence of its peer.

use hopline_proxy::PeerStatus;
use hopline_wire::dproxy::tunnel::MessageFormat;
use std::borrow::Cow;
use std::fmt::Debug;

/// Condition of a part of a service.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Notice {
    /// Subject, such as `peer`, or the name of one of several. A later notice with the same subject replaces this one.
    pub subject: Cow<'static, str>,
    /// Severity: the service works as intended, or not.
    pub severity: Severity,
    /// The condition, as part of a sentence.
    pub text: String,
}

/// Severity of a notice.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Severity {
    /// The condition is intended.
    Normal,
    /// The condition is not intended, and a user may want to fix it.
    Warning,
}

/// Receiver of the changed notices of a [`ServiceStatus`](super::ServiceStatus).
pub trait NoticeListener: Debug + Send + Sync {
    /// Receives a new notice.
    fn handle_notice(&self, notice: &Notice);
}

impl Notice {
    /// Returns the notice about the peer of a link, with its address. `None` while its state is unknown. `without`:
    /// treatment of packets while it is absent.
    #[must_use]
    pub fn of_peer(peer: PeerStatus, address: &str, without: &str) -> Option<Self> {
        let is = match peer {
            PeerStatus::Unknown => return None,
            PeerStatus::Present => {
                let text = format!("the other end, {address}, is there");
                return Some(Self { subject: "peer".into(), severity: Severity::Normal, text });
            }
            PeerStatus::Absent => "does not answer".to_owned(),
            PeerStatus::OtherVersion(version) => {
                let ours = hopline_wire::dproxy::VERSION;
                format!("speaks version {version} of the protocol, and this one version {ours}")
            }
            PeerStatus::OtherKey => "has another key".to_owned(),
            PeerStatus::OtherFormat(speaks) => format!("is of another kind, {}", peer_kind(speaks)),
        };
        let text = format!("the other end, {address}, {is}: {without}");
        Some(Self { subject: "peer".into(), severity: Severity::Warning, text })
    }
}

const fn peer_kind(speaks: MessageFormat) -> &'static str {
    match speaks {
        MessageFormat::DProxy => "d-proxy",
        MessageFormat::NackFrames => "opaque",
        MessageFormat::ArqFrames => "arq",
    }
}

#[cfg(test)]
mod tests {
    use super::super::ServiceStatus;
    use super::*;
    use std::sync::{Arc, Mutex};

    #[derive(Debug, Default)]
    struct RecordedNotices(Mutex<Vec<String>>);

    impl NoticeListener for RecordedNotices {
        fn handle_notice(&self, notice: &Notice) {
            self.0.lock().unwrap().push(notice.text.clone());
        }
    }

    #[test]
    fn a_listener_is_called_once_for_each_change_and_the_latest_notice_is_kept() {
        let heard = Arc::new(RecordedNotices::default());
        let ledger = ServiceStatus::with_listener(heard.clone());
        for peer in [
            PeerStatus::Unknown,
            PeerStatus::Absent,
            PeerStatus::Absent,
            PeerStatus::Present,
            PeerStatus::OtherVersion(1),
        ] {
            Notice::of_peer(peer, "192.0.2.2", "packets pass").into_iter().for_each(|n| ledger.report(n));
        }
        let expected = [
            "the other end, 192.0.2.2, does not answer: packets pass",
            "the other end, 192.0.2.2, is there",
            "the other end, 192.0.2.2, speaks version 1 of the protocol, and this one version 3: packets pass",
        ];
        assert_eq!(heard.0.lock().unwrap()[..], expected);
        assert_eq!(ledger.notices().len(), 1);
        assert_eq!(
            (ledger.notices()[0].severity, &ledger.notices()[0].text[..]),
            (Severity::Warning, expected[2])
        );
    }
}
