//! A packet arrives.

use crate::config::mss_for_mtu;
use crate::connection::{Connection, ConnectionId, EndReason, FourTuple, Owner};
use crate::icmp::{self, IcmpError, IcmpMessage, IcmpReport};
use crate::stack::Stack;
use bytes::Bytes;
use hopline_core::{Instant, LinkId, Seq32, StateMachine};
use hopline_transport::Signal;
use hopline_transport::tcp::{DropReason, Endpoint, State};
use hopline_wire::ip::{Ecn, Header, IpHeader, Protocol};
use hopline_wire::tcp::{Flags, Options, Segment};

/// Packets that may wait without a connection: resets and echo replies.
const MAX_REPLIES: usize = 64;
/// Least path MTU that a report is believed, bytes. A smaller one would make a connection crawl (RFC 5927 §7.2).
const MIN_PATH_MTU: u32 = 296;
/// Least path MTU of IPv6, in which no link has a smaller one.
const MIN_PATH_MTU_V6: u32 = 1280;
/// Path MTU that is assumed of a router that does not say (RFC 1191 §5).
const DEFAULT_REPORTED_MTU: u32 = 576;
/// Link of all packets: a stack has one interface.
const LINK: LinkId = LinkId(0);
/// Hop limits with which hosts send.
const INITIAL_HOP_LIMITS: [u8; 3] = [64, 128, 255];

impl Stack {
    /// Takes an IP packet. A packet that is not for a connection is counted, and answered as RFC 9293 §3.10.7.1 says.
    pub fn handle_packet(&mut self, now: Instant, packet: &[u8]) {
        self.stats.received += 1;
        let Ok((ip, payload)) = Header::parse(packet) else {
            self.stats.malformed += 1;
            return;
        };
        if !self.config.addresses.contains(&ip.dst()) || !self.is_valid_peer(ip.src()) {
            self.stats.misaddressed += 1;
            return;
        }
        if ip.protocol() == Protocol::Tcp {
            // A copy, so that a short piece of data does not keep a whole buffer of packets.
            match Segment::parse(&ip, &Bytes::copy_from_slice(&packet[payload])) {
                Ok(segment) => self.handle_segment(now, &ip, segment),
                Err(_) => self.stats.malformed += 1,
            }
        } else if icmp::is_icmp(&ip) {
            self.handle_icmp(now, &ip, &packet[payload]);
        } else {
            self.stats.unsupported += 1;
        }
    }

    fn handle_segment(&mut self, now: Instant, ip: &Header, segment: Segment<Bytes>) {
        let ends = FourTuple {
            local: (ip.dst(), segment.dst_port).into(),
            remote: (ip.src(), segment.src_port).into(),
        };
        let known = self.by_tuple.get(&ends).copied();
        let Some(id) = known.or_else(|| self.accept_syn(now, ends, &segment)) else { return };
        self.apply_memory_limits(id);
        let connection = self.connections.get_mut(&id).expect("the tables agree");
        let (accepted, unread) = accepted_and_unread_drops(&connection.endpoint);
        connection.endpoint.handle_packet(now, LINK, segment);
        let (accepted_then, unread_then) = accepted_and_unread_drops(&connection.endpoint);
        self.stats.unread_limit_drops += unread_then - unread;
        // Any host can send a packet with the addresses and ports of a connection. TCP knows which are the peer's (RFC 5961).
        if accepted_then > accepted {
            update_path_hops(now, connection, ip);
        }
        self.process_outputs(now, id);
    }

    /// Begins a connection that a peer asks for. Anything but a SYN to a listening port is answered by a reset.
    fn accept_syn(
        &mut self,
        now: Instant,
        ends: FourTuple,
        segment: &Segment<Bytes>,
    ) -> Option<ConnectionId> {
        let only_syn =
            segment.flags.0 & (Flags::SYN | Flags::ACK | Flags::RST | Flags::FIN).0 == Flags::SYN.0;
        if !only_syn || !self.listening.contains(&ends.local.port()) || ends.remote.port() == 0 {
            self.stats.unknown_connection += 1;
            self.send_reset(ends, segment);
            return None;
        }
        if self.half_open.is_full() {
            self.evict_half_open();
        }
        if self.make_room().is_err() {
            self.stats.syns_dropped += 1;
            return None;
        }
        let standing = self.half_open.classify(ends.remote.ip());
        let place = self.half_open.insert(ends.remote.ip(), standing);
        let id = self.insert(now, ends, Owner::HalfOpen(place));
        let connection = self.connections.get_mut(&id).expect("it was just inserted");
        connection.endpoint.listen().expect("it is new");
        Some(id)
    }

    /// Answers a segment for no connection with a reset, unless it is one (RFC 9293 §3.10.7.1).
    fn send_reset(&mut self, ends: FourTuple, segment: &Segment<Bytes>) {
        if segment.flags.contains(Flags::RST) {
            return;
        }
        let (seq, ack, flags) = if segment.flags.contains(Flags::ACK) {
            (segment.ack, Seq32(0), Flags::RST)
        } else {
            (Seq32(0), segment.seq_end(), Flags::RST | Flags::ACK)
        };
        let reset = Segment {
            src_port: ends.local.port(),
            dst_port: ends.remote.port(),
            seq,
            ack,
            flags,
            window: 0,
            urgent: 0,
            options: Options::default(),
            ecn: Ecn::NotCapable,
            payload: Bytes::new(),
        };
        if let Some(place) = self.reply_buffer() {
            crate::output::write(ends, &reset, place);
            self.stats.resets_sent += 1;
        }
    }

    /// Returns a new packet among the answers, unless too many wait.
    fn reply_buffer(&mut self) -> Option<&mut Vec<u8>> {
        if self.replies.len() >= MAX_REPLIES {
            self.stats.replies_dropped += 1;
            return None;
        }
        self.replies.push_back(Vec::new());
        self.replies.back_mut()
    }

    fn handle_icmp(&mut self, now: Instant, ip: &Header, bytes: &[u8]) {
        match icmp::parse(ip, bytes) {
            IcmpMessage::Report(notice) => self.handle_icmp_report(now, notice),
            IcmpMessage::EchoRequest => {
                let answer = icmp::echo_reply(ip, bytes);
                let header = Header::new(ip.dst(), ip.src(), ip.protocol());
                if let Some(place) = self.reply_buffer() {
                    header.emit(answer.len(), place);
                    place.extend(answer);
                }
            }
            IcmpMessage::Malformed => self.stats.malformed += 1,
            IcmpMessage::Other => self.stats.unsupported += 1,
        }
    }

    /// Takes a report about a segment, if that is under way (RFC 5927 §4.1).
    fn handle_icmp_report(&mut self, now: Instant, notice: IcmpReport) {
        let ends = FourTuple { local: notice.local, remote: notice.remote };
        let id = self.by_tuple.get(&ends).copied();
        let of_it = id.and_then(|id| Some((id, self.connections.get_mut(&id)?)));
        let Some((id, connection)) = of_it.filter(|(_, c)| c.endpoint.is_outstanding(notice.seq)) else {
            self.stats.stale_icmp_errors += 1;
            return;
        };
        self.stats.icmp_errors += 1;
        match notice.error {
            IcmpError::TooBig { mtu } => {
                let (least, said) = match ends.local.is_ipv4() {
                    true if mtu == 0 => (MIN_PATH_MTU, DEFAULT_REPORTED_MTU),
                    true => (MIN_PATH_MTU, mtu),
                    false => (MIN_PATH_MTU_V6, mtu),
                };
                connection.endpoint.lower_mss(mss_for_mtu(said.max(least), ends.local.ip()));
            }
            // RFC 5461 §4.1: an attempt to connect need not wait for its last time-out.
            IcmpError::Unreachable(obstacle) if connection.endpoint.state() == State::SynSent => {
                connection.end = Some(EndReason::Unreachable(obstacle));
                connection.endpoint.abort(now);
            }
            // RFC 1122 §4.2.3.9: a connection outlives a route. Whatever the report says of the port: it may be forged (RFC 5927 §5.2).
            IcmpError::Unreachable(_) => connection.endpoint.handle_signal(now, Signal::RouteLost),
        }
        self.process_outputs(now, id);
    }
}

/// Returns the number of segments that TCP has accepted, and of those of which it dropped the data behind too many unread pieces.
fn accepted_and_unread_drops(endpoint: &Endpoint<Bytes>) -> (u64, u64) {
    let stats = endpoint.stats();
    (stats.segments_accepted, stats.drops.count(DropReason::UnreadLimit))
}

/// Tells the endpoint how many hops the peer's packets take, if that is new. Hosts send with a hop limit of 64, 128 or 255; what is missing
/// of it was taken off by routers, of which the host of the TUN interface is one that stands for the first hop.
fn update_path_hops(now: Instant, connection: &mut Connection, ip: &Header) {
    let left = match ip {
        Header::V4(ip) => ip.ttl,
        Header::V6(ip) => ip.hop_limit,
    };
    let initial = INITIAL_HOP_LIMITS.into_iter().find(|&initial| initial >= left).unwrap_or(u8::MAX);
    let hops = (initial - left).max(1);
    if connection.path_hops != Some(hops) {
        connection.path_hops = Some(hops);
        connection.endpoint.handle_signal(now, Signal::PathLength { hops });
    }
}
