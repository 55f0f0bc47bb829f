//! TPA announced in TCP's handshake (TPA §6): "a TCP SYN segment announcing TPA availability (e.g. by using a
//! reserved bit in the TCP header). If the other endpoint does not implement TPA, the sender will revert to a
//! standard TCP connection."
//!
//! The kernel's TCP cannot be told to set such a bit, nor does it show one. An [`Announcer`] therefore sits
//! in the path of its packets, at both ends. That of the client marks outgoing SYNs and reads the reply; that
//! of the server answers for it. The result helps the application that opens connections: its next connection
//! to that host can use TPA. The marked connection itself stays TCP.
//!
//! | bit of the 13th byte of the TCP header | in | meaning |
//! |---|---|---|
//! | 0x08 | SYN | the client supports TPA |
//! | 0x04 | SYN with ACK | the server supports TPA |
//!
//! Both bits are reserved (RFC 9293 §3.1: a host that does not know them ignores them). They differ because
//! some hosts echo reserved bits. A retransmitted SYN is not marked: a device on the path may drop packets
//! with unknown bits, and the connection matters more.

use hopline_core::{Duration, Instant};
use std::collections::{BTreeMap, VecDeque};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};

const ANNOUNCEMENT_BIT: u8 = 0x08;
const ANSWER_BIT: u8 = 0x04;

const TCP: u8 = 6;
const IPV6_HEADER: usize = 40;
const TCP_HEADER: usize = 20;

// Bits of the 14th byte of the TCP header (RFC 9293 §3.1).
const FIN: u8 = 0x01;
const SYN: u8 = 0x02;
const RST: u8 = 0x04;
const ACK: u8 = 0x10;

/// Parameters of an [`Announcer`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// End of the path at which the announcer sits.
    pub role: Role,
    /// Lifetime of what was learned about a host. Above zero, default 10 minutes.
    pub host_lifetime: Duration,
    /// Maximum number of remembered hosts, and of pending handshakes. At least 1, default 4096. The oldest is
    /// evicted.
    pub max_entries: usize,
}

/// End of the path at which an [`Announcer`] sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The end of the clients.
    Client,
    /// The end of the servers.
    Server,
}

/// Direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Direction {
    /// To the other end of the path.
    ToPeer,
    /// To the hosts at this end.
    ToHosts,
}

/// Transport support of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransportSupport {
    /// TPA, besides TCP.
    Tpa,
    /// TCP; no TPA as far as is known.
    TcpOnly,
}

/// Action taken on a packet, which is always forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AnnounceAction {
    /// None.
    Unchanged,
    /// A SYN was marked.
    SynMarked,
    /// A mark was read and removed; it will be answered.
    MarkRead,
    /// The answer was put into a SYN-ACK.
    SynAckMarked,
    /// A SYN-ACK told this about its sender; its mark was removed.
    Learned(IpAddr, TransportSupport),
}

/// Marks and reads the handshakes that pass.
#[derive(Clone, Debug)]
pub struct Announcer {
    config: Config,
    /// Marked SYNs without an answer, by client and server.
    pending: ExpiringMap<HandshakeKey, ()>,
    hosts: ExpiringMap<IpAddr, TransportSupport>,
}

/// Address of the client, then of the server.
type HandshakeKey = (SocketAddr, SocketAddr);

/// Longest time of a handshake: longer than a kernel tries (tcp(7), `tcp_syn_retries`).
const HANDSHAKE_TIMEOUT: Duration = Duration::from_secs(180);

impl Config {
    /// Returns the default parameters for this end.
    #[must_use]
    pub const fn new(role: Role) -> Self {
        Self { role, host_lifetime: Duration::from_secs(600), max_entries: 4096 }
    }
}

impl Announcer {
    /// Creates an announcer that has learned nothing.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let memory = (config.max_entries.max(1), HANDSHAKE_TIMEOUT, config.host_lifetime);
        Self {
            config,
            pending: ExpiringMap::new(memory.0, memory.1),
            hosts: ExpiringMap::new(memory.0, memory.2),
        }
    }

    /// Handles an IPv4 or IPv6 packet that goes `towards` there: adds or removes a mark where needed.
    /// Checksums stay right. Malformed packets and fragments stay unchanged.
    pub fn pass(&mut self, now: Instant, towards: Direction, packet: &mut [u8]) -> AnnounceAction {
        let Some(mut segment) = Segment::parse(packet) else { return AnnounceAction::Unchanged };
        match (self.config.role, towards, segment.kind()) {
            (Role::Client, Direction::ToPeer, Kind::Syn) => self.mark_syn(now, &mut segment),
            (Role::Client, Direction::ToHosts, Kind::SynAck) => self.read_syn_ack(now, &mut segment),
            (Role::Server, Direction::ToHosts, Kind::Syn) => self.read_syn(now, &mut segment),
            (Role::Server, Direction::ToPeer, Kind::SynAck) => self.mark_syn_ack(now, &mut segment),
            _ => AnnounceAction::Unchanged,
        }
    }

    /// Returns what is known about `host`.
    #[must_use]
    pub fn transport_support(&self, now: Instant, host: IpAddr) -> Option<TransportSupport> {
        self.hosts.get(now, &host).copied()
    }

    fn mark_syn(&mut self, now: Instant, segment: &mut Segment<'_>) -> AnnounceAction {
        let comes_again = self.pending.get(now, &segment.flow).is_some();
        if comes_again || self.transport_support(now, segment.flow.1.ip()) == Some(TransportSupport::TcpOnly)
        {
            return AnnounceAction::Unchanged;
        }
        self.pending.insert(now, segment.flow, ());
        segment.set(ANNOUNCEMENT_BIT);
        AnnounceAction::SynMarked
    }

    fn read_syn_ack(&mut self, now: Instant, segment: &mut Segment<'_>) -> AnnounceAction {
        let (from, to) = segment.flow;
        if self.pending.remove(now, &(to, from)).is_none() {
            return AnnounceAction::Unchanged;
        }
        let speaks = if segment.has(ANSWER_BIT) { TransportSupport::Tpa } else { TransportSupport::TcpOnly };
        segment.clear(ANSWER_BIT);
        self.hosts.insert(now, from.ip(), speaks);
        AnnounceAction::Learned(from.ip(), speaks)
    }

    fn read_syn(&mut self, now: Instant, segment: &mut Segment<'_>) -> AnnounceAction {
        if !segment.has(ANNOUNCEMENT_BIT) {
            return AnnounceAction::Unchanged;
        }
        segment.clear(ANNOUNCEMENT_BIT);
        self.pending.insert(now, segment.flow, ());
        AnnounceAction::MarkRead
    }

    fn mark_syn_ack(&mut self, now: Instant, segment: &mut Segment<'_>) -> AnnounceAction {
        let (from, to) = segment.flow;
        // The SYN-ACK may be retransmitted, and is then answered again.
        if self.pending.get(now, &(to, from)).is_none() {
            return AnnounceAction::Unchanged;
        }
        segment.set(ANSWER_BIT);
        AnnounceAction::SynAckMarked
    }
}

/// Map with limited size and lifetime of entries; the oldest entry is evicted.
#[derive(Clone, Debug)]
struct ExpiringMap<K, V> {
    capacity: usize,
    lifetime: Duration,
    entries: BTreeMap<K, (Instant, V)>,
    /// Entries by age; those renewed or removed since do not count.
    expiry_queue: VecDeque<(Instant, K)>,
}

impl<K: Ord + Copy, V> ExpiringMap<K, V> {
    const fn new(most: usize, lasts: Duration) -> Self {
        Self { capacity: most, lifetime: lasts, entries: BTreeMap::new(), expiry_queue: VecDeque::new() }
    }

    fn get(&self, now: Instant, key: &K) -> Option<&V> {
        self.entries.get(key).filter(|(since, _)| now < *since + self.lifetime).map(|(_, value)| value)
    }

    fn remove(&mut self, now: Instant, key: &K) -> Option<V> {
        self.entries.remove(key).filter(|(since, _)| now < *since + self.lifetime).map(|(_, value)| value)
    }

    fn insert(&mut self, now: Instant, key: K, value: V) {
        self.entries.insert(key, (now, value));
        self.expiry_queue.push_back((now, key));
        // The order holds each key at most twice on average: removing or renewing a key leaves an entry
        // behind.
        while self.entries.len() > self.capacity || self.expiry_queue.len() > 2 * self.capacity {
            let Some((since, oldest)) = self.expiry_queue.pop_front() else { break };
            if self.entries.get(&oldest).is_some_and(|(known, _)| *known == since) {
                self.entries.remove(&oldest);
            }
        }
    }
}

/// A TCP segment in its packet.
struct Segment<'a> {
    tcp: &'a mut [u8],
    /// Source and destination.
    flow: HandshakeKey,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Syn,
    SynAck,
    Other,
}

impl<'a> Segment<'a> {
    fn parse(packet: &'a mut [u8]) -> Option<Self> {
        let (start, from, to) = match packet.first()? >> 4 {
            4 => parse_ipv4(packet)?,
            6 => parse_ipv6(packet)?,
            _ => return None,
        };
        let tcp = packet.get_mut(start..).filter(|tcp| tcp.len() >= TCP_HEADER)?;
        let port = |at: usize| u16::from_be_bytes([tcp[at], tcp[at + 1]]);
        let flow = ((from, port(0)).into(), (to, port(2)).into());
        Some(Self { tcp, flow })
    }

    fn kind(&self) -> Kind {
        match self.tcp[13] & (SYN | ACK | RST | FIN) {
            SYN => Kind::Syn,
            both if both == SYN | ACK => Kind::SynAck,
            _ => Kind::Other,
        }
    }

    fn has(&self, bit: u8) -> bool {
        self.tcp[12] & bit != 0
    }

    fn set(&mut self, bit: u8) {
        self.set_flags_byte(self.tcp[12] | bit);
    }

    fn clear(&mut self, bit: u8) {
        self.set_flags_byte(self.tcp[12] & !bit);
    }

    /// Replaces the 13th byte, and updates the checksum.
    fn set_flags_byte(&mut self, to: u8) {
        let word = |high, low| u32::from(u16::from_be_bytes([high, low]));
        let (old, new) = (word(self.tcp[12], self.tcp[13]), word(to, self.tcp[13]));
        let checksum = word(self.tcp[16], self.tcp[17]);
        // RFC 1624 §3, eqn. 3.
        let sum = (!checksum & 0xffff) + (!old & 0xffff) + new;
        let folded = (sum & 0xffff) + (sum >> 16);
        let folded = ((folded & 0xffff) + (folded >> 16)) as u16;
        self.tcp[12] = to;
        self.tcp[16..18].copy_from_slice(&(!folded).to_be_bytes());
    }
}

/// Returns the offset of the segment, its source and its destination.
fn parse_ipv4(packet: &[u8]) -> Option<(usize, IpAddr, IpAddr)> {
    let header = packet.first_chunk::<20>()?;
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    let address =
        |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]).into();
    let len = usize::from(header[0] & 0xf) * 4;
    (header[9] == TCP && !is_fragment && len >= 20).then(|| (len, address(12), address(16)))
}

/// As [`parse_ipv4`], for IPv6 without extension headers.
fn parse_ipv6(packet: &[u8]) -> Option<(usize, IpAddr, IpAddr)> {
    let header = packet.first_chunk::<IPV6_HEADER>()?;
    let address = |at: usize| {
        let octets: [u8; 16] = header[at..at + 16].try_into().expect("16 bytes of 40");
        Ipv6Addr::from(octets).into()
    };
    (header[6] == TCP).then(|| (IPV6_HEADER, address(8), address(24)))
}

#[cfg(test)]
mod tests {
    use super::*;

    const CLIENT: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 1234);
    const SERVER: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 80);

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    fn announcer(role: Role) -> Announcer {
        Announcer::new(Config { max_entries: 4, ..Config::new(role) })
    }

    /// Returns a packet with a correct checksum.
    fn packet(from: SocketAddr, to: SocketAddr, flags: u8) -> Vec<u8> {
        let mut packet = match (from.ip(), to.ip()) {
            (IpAddr::V4(a), IpAddr::V4(b)) => {
                [&[0x45, 0, 0, 44, 0, 1, 0x40, 0, 64, TCP, 0, 0][..], &a.octets(), &b.octets()].concat()
            }
            (IpAddr::V6(a), IpAddr::V6(b)) => {
                [&[0x60, 0, 0, 0, 0, 24, TCP, 64][..], &a.octets(), &b.octets()].concat()
            }
            _ => unreachable!("one version"),
        };
        let start = packet.len();
        packet.extend(from.port().to_be_bytes());
        packet.extend(to.port().to_be_bytes());
        packet.extend([0, 0, 0, 9, 0, 0, 0, 0, 0x60, flags, 0xff, 0xff, 0, 0, 0, 0, 2, 4, 5, 0xb4]);
        let sum = checksum(&packet, start);
        packet[start + 16..start + 18].copy_from_slice(&sum.to_be_bytes());
        packet
    }

    /// Returns 0 for a packet with a correct checksum.
    fn checksum(packet: &[u8], start: usize) -> u16 {
        let addresses = if start == 20 { 12..20 } else { 8..40 };
        let pseudo = [&packet[addresses], &[0, TCP, 0, (packet.len() - start) as u8]].concat();
        let words = pseudo.chunks(2).chain(packet[start..].chunks(2));
        let mut sum: u32 = words.map(|word| u32::from(u16::from_be_bytes([word[0], word[1]]))).sum();
        while sum > 0xffff {
            sum = (sum & 0xffff) + (sum >> 16);
        }
        !(sum as u16)
    }

    fn reserved(packet: &[u8]) -> u8 {
        let start = if packet[0] >> 4 == 4 { 20 } else { 40 };
        assert_eq!(checksum(packet, start), 0);
        packet[start + 12] & 0xf
    }

    #[test]
    fn marks_are_exchanged_and_removed_before_hosts() {
        let v6 = |n| SocketAddr::new(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n).into(), 80 + n);
        for (here, there) in [(CLIENT, SERVER), (v6(1), v6(2))] {
            let (mut caller, mut called) = (announcer(Role::Client), announcer(Role::Server));
            let mut syn = packet(here, there, SYN);
            assert_eq!(caller.pass(at(0), Direction::ToPeer, &mut syn), AnnounceAction::SynMarked);
            assert_eq!(reserved(&syn), ANNOUNCEMENT_BIT);
            assert_eq!(called.pass(at(0), Direction::ToHosts, &mut syn), AnnounceAction::MarkRead);
            assert_eq!(syn, packet(here, there, SYN));
            let mut answer = packet(there, here, SYN | ACK);
            assert_eq!(called.pass(at(0), Direction::ToPeer, &mut answer), AnnounceAction::SynAckMarked);
            assert_eq!(reserved(&answer), ANSWER_BIT);
            let learned = caller.pass(at(0), Direction::ToHosts, &mut answer);
            assert_eq!(learned, AnnounceAction::Learned(there.ip(), TransportSupport::Tpa));
            assert_eq!(answer, packet(there, here, SYN | ACK));
            assert_eq!(caller.transport_support(at(599), there.ip()), Some(TransportSupport::Tpa));
            assert_eq!(caller.transport_support(at(600), there.ip()), None);
        }
    }

    #[test]
    fn syn_to_a_tcp_only_host_is_unmarked_until_expiry() {
        let mut caller = announcer(Role::Client);
        let mut syn = packet(CLIENT, SERVER, SYN);
        caller.pass(at(0), Direction::ToPeer, &mut syn);
        let mut answer = packet(SERVER, CLIENT, SYN | ACK);
        let learned = caller.pass(at(1), Direction::ToHosts, &mut answer);
        assert_eq!(learned, AnnounceAction::Learned(SERVER.ip(), TransportSupport::TcpOnly));
        let mut next = |now, port| {
            let here = SocketAddr::new(CLIENT.ip(), port);
            caller.pass(at(now), Direction::ToPeer, &mut packet(here, SERVER, SYN))
        };
        assert_eq!(next(600, 2), AnnounceAction::Unchanged);
        assert_eq!(next(601, 2), AnnounceAction::SynMarked);
    }

    #[test]
    fn host_that_echoes_reserved_bits_is_tcp_only() {
        let mut caller = announcer(Role::Client);
        caller.pass(at(0), Direction::ToPeer, &mut packet(CLIENT, SERVER, SYN));
        let mut mirrored = packet(SERVER, CLIENT, SYN | ACK);
        Segment::parse(&mut mirrored).unwrap().set(ANNOUNCEMENT_BIT);
        let learned = caller.pass(at(0), Direction::ToHosts, &mut mirrored);
        assert_eq!(learned, AnnounceAction::Learned(SERVER.ip(), TransportSupport::TcpOnly));
    }

    #[test]
    fn retransmitted_syn_is_unmarked() {
        let mut caller = announcer(Role::Client);
        assert_eq!(
            caller.pass(at(0), Direction::ToPeer, &mut packet(CLIENT, SERVER, SYN)),
            AnnounceAction::SynMarked
        );
        let mut again = packet(CLIENT, SERVER, SYN);
        assert_eq!(caller.pass(at(1), Direction::ToPeer, &mut again), AnnounceAction::Unchanged);
        assert_eq!(again, packet(CLIENT, SERVER, SYN));
    }

    #[test]
    fn syn_ack_without_syn_is_ignored() {
        let mut forged = packet(SERVER, CLIENT, SYN | ACK);
        Segment::parse(&mut forged).unwrap().set(ANSWER_BIT);
        let mut caller = announcer(Role::Client);
        assert_eq!(caller.pass(at(0), Direction::ToHosts, &mut forged), AnnounceAction::Unchanged);
        assert_eq!(caller.transport_support(at(0), SERVER.ip()), None);
        let mut called = announcer(Role::Server);
        assert_eq!(
            called.pass(at(0), Direction::ToPeer, &mut packet(SERVER, CLIENT, SYN | ACK)),
            AnnounceAction::Unchanged
        );
        assert_eq!(
            called.pass(at(0), Direction::ToHosts, &mut packet(CLIENT, SERVER, SYN)),
            AnnounceAction::Unchanged
        );
    }

    #[test]
    fn other_segments_fragments_and_garbage_are_unchanged() {
        let mut caller = announcer(Role::Client);
        let mut fragment = packet(CLIENT, SERVER, SYN);
        fragment[6] = 0x20;
        let mut udp = packet(CLIENT, SERVER, SYN);
        udp[9] = 17;
        let segments = [ACK, SYN | ACK, SYN | RST, SYN | FIN, 0].map(|flags| packet(CLIENT, SERVER, flags));
        for original in
            segments.into_iter().chain([fragment, udp, vec![], vec![0x45], vec![0x4f; 40], vec![0x60; 50]])
        {
            let mut passed = original.clone();
            assert_eq!(
                caller.pass(at(0), Direction::ToPeer, &mut passed),
                AnnounceAction::Unchanged,
                "{original:?}"
            );
            assert_eq!(passed, original);
        }
        for len in 0..packet(CLIENT, SERVER, SYN).len() - 4 {
            let mut cut = packet(CLIENT, SERVER, SYN)[..len].to_vec();
            assert_eq!(caller.pass(at(0), Direction::ToPeer, &mut cut), AnnounceAction::Unchanged);
        }
    }

    #[test]
    fn syn_flood_is_bounded_and_evicts_the_oldest() {
        let mut caller = announcer(Role::Client);
        for port in 1..=1000 {
            caller.pass(
                at(0),
                Direction::ToPeer,
                &mut packet(SocketAddr::new(CLIENT.ip(), port), SERVER, SYN),
            );
            assert!(caller.pending.entries.len() <= 4 && caller.pending.expiry_queue.len() <= 8);
        }
        let mut answer = |port| {
            let here = SocketAddr::new(CLIENT.ip(), port);
            caller.pass(at(0), Direction::ToHosts, &mut packet(SERVER, here, SYN | ACK))
        };
        assert_eq!(answer(996), AnnounceAction::Unchanged);
        assert_eq!(answer(997), AnnounceAction::Learned(SERVER.ip(), TransportSupport::TcpOnly));
    }
}
