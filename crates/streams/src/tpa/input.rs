//! Processing of received datagrams.

use super::path_state::challenge;
use super::table::{Connection, Origin, Tpa};
use super::tokens::ADDRESS_CHALLENGE;
use crate::udp::Path;
use bytes::Bytes;
use hopline_core::request_admission::RequestId;
use hopline_core::{Instant, LinkId, StateMachine};
use hopline_transport::tpa::{Endpoint, Listener, Verdict};
use hopline_wire::tpa::{ChallengeToken, Control, Segment, Tag};

impl Tpa {
    pub(super) fn handle_segment_from(&mut self, now: Instant, path: Path, datagram: &[u8]) {
        // Copy the segment, so that unread data keep no larger buffer alive.
        let Ok(segment) = Segment::parse_udp(&Bytes::copy_from_slice(datagram)) else {
            self.stats.malformed += 1;
            return;
        };
        let shown = match segment.control {
            Control::StatelessReset => segment.tag.and_then(|peer| self.by_peer.get(&peer).copied()),
            _ => segment.tag,
        };
        let Some(tag) = shown.filter(|tag| self.connections.contains_key(tag)) else {
            return self.handle_unknown_segment(now, path, segment);
        };
        match segment.control {
            Control::Challenge(token) => return self.echo(path, tag, token),
            Control::Echo(token) if !self.handle_echo(now, path, tag, token) => return,
            Control::Echo(_) | Control::StatelessReset => {}
            _ => self.challenge_path(now, path, tag),
        }
        self.connection(tag).endpoint.handle_packet(now, LinkId::ONLY, segment);
        self.enqueue(tag);
    }

    /// Answers a path challenge of the peer.
    fn echo(&mut self, path: Path, tag: Tag, token: ChallengeToken) {
        let Some(peer) = self.connection(tag).endpoint.peer_tag() else { return };
        self.reply(path, Segment { control: Control::Echo(token), tag: Some(peer), ..Segment::default() });
    }

    /// Challenges a possible new address of the peer. Until the peer answers from it, datagrams to it are no longer than
    /// those received from it.
    fn challenge_path(&mut self, now: Instant, path: Path, tag: Tag) {
        let trust = self.token_key;
        let connection = self.connection(tag);
        if let Some(peer) = connection.endpoint.peer_tag()
            && connection.path_state.record_source(now, path)
        {
            self.reply(path, challenge(peer, trust.token(now, tag, path.peer, ADDRESS_CHALLENGE)));
        }
    }

    /// Returns whether an echo answers a challenge of this host. If so, records what it says about the path.
    fn handle_echo(&mut self, now: Instant, path: Path, tag: Tag, token: ChallengeToken) -> bool {
        let trust = self.token_key;
        let connection = self.connection(tag);
        let moved = trust.is_valid(now, tag, path.peer, ADDRESS_CHALLENGE, token);
        if moved {
            connection.path_state.set_path(path);
        }
        let passed = connection.path_state.handle_mtu_echo(now, tag, token, &trust);
        if passed {
            connection.fit_path();
        }
        if !moved && !passed {
            self.stats.unknown_segments += 1;
        }
        moved || passed
    }

    /// Handles a segment for an unknown connection.
    fn handle_unknown_segment(&mut self, now: Instant, path: Path, segment: Segment<Bytes>) {
        let (tag, control) = (segment.tag, segment.control);
        if control == Control::Syn && !self.should_answer_syn(now, path, &segment) {
            self.stats.unanswered += 1;
            return;
        }
        let verdict = match &self.backlog {
            Some(backlog) if !backlog.is_full() => backlog.handle_segment(now, path, segment),
            full => {
                if segment.control != Control::Syn {
                    // A peer that completes its handshake while the queue is full will retry.
                    let may_come_again = full.is_some() && segment.opening.is_some();
                    self.send_reset(now, path, segment.tag.filter(|_| !may_come_again), segment.control);
                } else if let Some(reset) = Listener::refuse(&segment) {
                    self.stats.refused += 1;
                    self.reply(path, reset);
                }
                return;
            }
        };
        match verdict {
            Verdict::Reply(answer) => {
                self.stats.answered += 1;
                self.reply(path, answer);
            }
            Verdict::Accepted(endpoint) => self.accept(path, endpoint),
            Verdict::Refused(_) => self.send_reset(now, path, tag, control),
        }
    }

    /// Returns whether to answer a SYN.
    fn should_answer_syn(&mut self, now: Instant, path: Path, call: &Segment<Bytes>) -> bool {
        let Some(caller) = call.opening.and_then(|opening| opening.tag) else { return false };
        let trust = self.token_key;
        let call = || RequestId {
            source_hash: trust.syn_id(path.peer, caller),
            content_hash: trust.caller_id(caller),
        };
        self.calls.admit(now, call)
    }

    /// Handles a segment for an unknown connection. If its sender knows the tag, it is told that the connection is lost.
    fn send_reset(&mut self, now: Instant, path: Path, tag: Option<Tag>, control: Control) {
        self.stats.unknown_segments += 1;
        if matches!(control, Control::None | Control::Fin) && tag.is_some() && self.reset_allowance.take(now)
        {
            self.reply(path, Segment { control: Control::StatelessReset, tag, ..Segment::default() });
        }
    }

    fn accept(&mut self, path: Path, endpoint: Endpoint<Bytes>) {
        let tag = self.insert(Connection::new(endpoint, path, Origin::Accepted));
        self.accepted.push_back(tag);
        if let Some(backlog) = &mut self.backlog {
            backlog.add_waiting();
        }
    }
}
