//! Processing of received datagrams.

use super::route::challenge;
use super::table::{Connection, Origin, Tpa};
use super::trust::ADDRESS;
use crate::streams::Path;
use bytes::Bytes;
use hopline_core::flood::Call;
use hopline_core::{Instant, LinkId, Machine};
use hopline_transport::tpa::{Endpoint, Listener, Verdict};
use hopline_wire::tpa::{Control, Segment, Tag, Token};

impl Tpa {
    pub(super) fn hear(&mut self, now: Instant, path: Path, datagram: &[u8]) {
        // Copy the segment, so that unread data keep no larger buffer alive.
        let Ok(segment) = Segment::parse_udp(&Bytes::copy_from_slice(datagram)) else {
            self.stats.garbage += 1;
            return;
        };
        let shown = match segment.control {
            Control::Stray => segment.tag.and_then(|peer| self.by_peer.get(&peer).copied()),
            _ => segment.tag,
        };
        let Some(tag) = shown.filter(|tag| self.connections.contains_key(tag)) else {
            return self.hear_stray(now, path, segment);
        };
        match segment.control {
            Control::Challenge(token) => return self.echo(path, tag, token),
            Control::Echo(token) if !self.believe(now, path, tag, token) => return,
            Control::Echo(_) | Control::Stray => {}
            _ => self.locate(now, path, tag),
        }
        self.connection(tag).endpoint.handle_packet(now, LinkId::ONLY, segment);
        self.look_at(tag);
    }

    /// Answers a path challenge of the peer.
    fn echo(&mut self, path: Path, tag: Tag, token: Token) {
        let Some(peer) = self.connection(tag).endpoint.peer_tag() else { return };
        self.reply(path, Segment { control: Control::Echo(token), tag: Some(peer), ..Segment::default() });
    }

    /// Challenges a possible new address of the peer. Until the peer answers from it, datagrams to it are no longer than
    /// those received from it.
    fn locate(&mut self, now: Instant, path: Path, tag: Tag) {
        let trust = self.trust;
        let connection = self.connection(tag);
        if let Some(peer) = connection.endpoint.peer_tag()
            && connection.route.heard_from(now, path)
        {
            self.reply(path, challenge(peer, trust.token(now, tag, path.peer, ADDRESS)));
        }
    }

    /// Returns whether an echo answers a challenge of this host. If so, records what it says about the path.
    fn believe(&mut self, now: Instant, path: Path, tag: Tag, token: Token) -> bool {
        let trust = self.trust;
        let connection = self.connection(tag);
        let moved = trust.gave(now, tag, path.peer, ADDRESS, token);
        if moved {
            connection.route.move_to(path);
        }
        let passed = connection.route.has_passed(now, tag, token, &trust);
        if passed {
            connection.fit_path();
        }
        if !moved && !passed {
            self.stats.strays += 1;
        }
        moved || passed
    }

    /// Handles a segment for an unknown connection.
    fn hear_stray(&mut self, now: Instant, path: Path, segment: Segment<Bytes>) {
        let (tag, control) = (segment.tag, segment.control);
        if control == Control::Syn && !self.answers(now, path, &segment) {
            self.stats.unanswered += 1;
            return;
        }
        let verdict = match &self.backlog {
            Some(backlog) if !backlog.is_full() => backlog.judge(now, path, segment),
            full => {
                if segment.control != Control::Syn {
                    // A peer that completes its handshake while the queue is full will retry.
                    let may_come_again = full.is_some() && segment.opening.is_some();
                    self.turn_away(now, path, segment.tag.filter(|_| !may_come_again), segment.control);
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
            Verdict::Refused(_) => self.turn_away(now, path, tag, control),
        }
    }

    /// Returns whether to answer a SYN.
    fn answers(&mut self, now: Instant, path: Path, call: &Segment<Bytes>) -> bool {
        let Some(caller) = call.opening.and_then(|opening| opening.tag) else { return false };
        let trust = self.trust;
        let call = || Call { whose: trust.number(path.peer, caller), said: trust.name_of(caller) };
        self.calls.answers(now, call)
    }

    /// Handles a segment for an unknown connection. If its sender knows the tag, it is told that the connection is lost.
    fn turn_away(&mut self, now: Instant, path: Path, tag: Option<Tag>, control: Control) {
        self.stats.strays += 1;
        if matches!(control, Control::None | Control::Fin) && tag.is_some() && self.telling.take(now) {
            self.reply(path, Segment { control: Control::Stray, tag, ..Segment::default() });
        }
    }

    fn accept(&mut self, path: Path, endpoint: Endpoint<Bytes>) {
        let tag = self.insert(Connection::new(endpoint, path, Origin::Accepted));
        self.accepted.push_back(tag);
        if let Some(backlog) = &mut self.backlog {
            backlog.enter();
        }
    }
}
