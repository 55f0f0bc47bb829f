//! TCP host stack.

use super::Choices;
use bytes::Bytes;
use hopline_core::{Duration, Instant, Seq32};
use hopline_stack::{ConnectionId, Event, Secret, Stack, StackConfig};
use hopline_transport::tcp::{Config, DoorConfig};
use hopline_wire::ip::{Ecn, Header, IpHeader, Protocol};
use hopline_wire::tcp::{Flags, Options, Segment};
use std::net::{IpAddr, Ipv4Addr};

const OWN: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));
const PORT: u16 = 80;
const MOST: usize = 6;
const MOST_HALF_OPEN: usize = 3;

/// Drives a stack with any packets, times and calls. Checksums of segments are corrected, and segments often match the last
/// one sent. Checks that nothing panics, limits hold, every sent packet parses, and no timer stays overdue.
pub fn host_stack(data: &[u8]) {
    let mut choices = Choices(data);
    let tcp = match choices.byte() % 3 {
        0 => Config::linux(),
        1 => Config::modern().with_door(Some(DoorConfig::all(2.0, 2.0))),
        _ => Config::modern().with_newreno(),
    };
    let tcp = tcp.with_receive_buffer(20_000).with_send_buffer(Some(20_000));
    let config = StackConfig::new(tcp, vec![OWN], Secret([7; 16]));
    let config = StackConfig { max_connections: MOST, max_half_open: MOST_HALF_OPEN, ..config };
    let mut world = World {
        stack: Stack::new(config).expect("the parameters are in their ranges"),
        now: Instant::ZERO,
        last: None,
        ids: Vec::new(),
    };
    world.stack.listen(PORT);
    while !choices.is_over() {
        world.operate(&mut choices);
        world.drain();
    }
}

struct World {
    stack: Stack,
    now: Instant,
    /// Last segment sent, and its destination.
    last: Option<(IpAddr, Segment<Bytes>)>,
    ids: Vec<ConnectionId>,
}

impl World {
    fn operate(&mut self, choices: &mut Choices<'_>) {
        let (now, id) = (self.now, self.id(choices));
        match choices.byte() % 10 {
            0..4 => self.segment(choices),
            4 => self.report(choices),
            5 => {
                let bytes: Vec<u8> = (0..choices.byte() % 64).map(|_| choices.byte()).collect();
                self.stack.handle_packet(now, &bytes);
            }
            6 => {
                self.now = now + Duration::from_millis(u64::from(choices.u16()));
                self.stack.handle_timeout(self.now);
            }
            7 => {
                let remote =
                    (Ipv4Addr::new(10, 0, 0, 2 + choices.byte() % 4), 1 + u16::from(choices.byte())).into();
                self.ids.extend(self.stack.connect(now, remote));
            }
            8 => self.call(choices, id),
            _ => {
                if let Some(id) = id {
                    self.stack.receive(now, id, usize::from(choices.byte()));
                }
            }
        }
    }

    fn id(&self, choices: &mut Choices<'_>) -> Option<ConnectionId> {
        self.ids.get(usize::from(choices.byte()) % self.ids.len().max(1)).copied()
    }

    fn call(&mut self, choices: &mut Choices<'_>, id: Option<ConnectionId>) {
        let Some(id) = id else { return };
        match choices.byte() % 4 {
            0 => drop(self.stack.send(self.now, id, &vec![7; usize::from(choices.u16()) % 5000])),
            1 => self.stack.close(self.now, id),
            2 => self.stack.abort(self.now, id),
            _ => self.stack.orphan(self.now, id),
        }
    }

    /// Passes a segment with correct checksums; half of them answer the last one.
    fn segment(&mut self, choices: &mut Choices<'_>) {
        let kind = choices.byte();
        let peer = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2 + choices.byte() % 4));
        let flags = Flags(choices.u16());
        let payload = vec![9; usize::from(choices.byte())];
        let answered = self.last.as_ref().filter(|_| kind.is_multiple_of(2));
        let (from, src_port, dst_port, seq, ack) = match answered {
            Some((peer, last)) => {
                (*peer, last.dst_port, last.src_port, last.ack + u32::from(kind / 64), last.seq_end())
            }
            None => {
                let port = 1000 + u16::from(choices.byte() % 8);
                (peer, port, PORT, Seq32(choices.u32()), Seq32(choices.u32()))
            }
        };
        let segment = Segment {
            src_port,
            dst_port,
            seq,
            ack,
            flags,
            window: choices.u16(),
            urgent: 0,
            options: Options::default(),
            ecn: Ecn::NotCapable,
            payload: Bytes::from(payload),
        };
        let header = Header::new(from, OWN, Protocol::Tcp);
        let mut packet = Vec::new();
        header.emit(segment.wire_len(), &mut packet);
        segment.emit(&header, &mut packet);
        self.stack.handle_packet(self.now, &packet);
    }

    /// Passes an ICMP message about the last segment, or about none.
    fn report(&mut self, choices: &mut Choices<'_>) {
        let mut icmp = vec![[3, 8, 11][usize::from(choices.byte()) % 3], choices.byte() % 16, 0, 0];
        icmp.extend(choices.u32().to_be_bytes());
        if let Some((peer, last)) = &self.last {
            let header = Header::new(OWN, *peer, Protocol::Tcp);
            header.emit(last.wire_len(), &mut icmp);
            last.emit(&header, &mut icmp);
        }
        icmp.truncate(8 + usize::from(choices.byte()));
        let checksum = hopline_wire::checksum::internet(&icmp);
        icmp[2..4].copy_from_slice(&checksum.to_be_bytes());
        let mut packet = Vec::new();
        let router = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 9));
        Header::new(router, OWN, Protocol::Icmp).emit(icmp.len(), &mut packet);
        packet.extend(icmp);
        self.stack.handle_packet(self.now, &packet);
    }

    fn drain(&mut self) {
        let mut packet = Vec::new();
        let mut sent = 0;
        while self.stack.poll_transmit(self.now, &mut packet) {
            let (ip, payload) = Header::parse(&packet).expect("a packet that was made can be read");
            assert!(packet.len() <= 1500, "longer than the MTU");
            if ip.protocol() == Protocol::Tcp {
                let segment = Segment::parse(&ip, &Bytes::copy_from_slice(&packet[payload]));
                self.last = Some((ip.dst(), segment.expect("a segment that was made can be read")));
            }
            sent += 1;
            assert!(sent < 10_000, "sending does not end");
        }
        while let Some(event) = self.stack.poll_event() {
            if let Event::Accepted(id) = event {
                self.ids.push(id);
            }
        }
        self.ids.retain(|&id| self.stack.status(id).is_some());
        assert!(self.stack.len() <= MOST && self.stack.half_open() <= MOST_HALF_OPEN);
    }
}
