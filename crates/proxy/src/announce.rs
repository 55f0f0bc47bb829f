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

const ANNOUNCE: u8 = 0x08;
const ANSWER: u8 = 0x04;

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
    pub remember: Duration,
    /// Maximum number of remembered hosts, and of pending handshakes. At least 1, default 4096. The oldest is
    /// evicted.
    pub most: usize,
}

/// End of the path at which an [`Announcer`] sits.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Role {
    /// The end of the clients.
    Caller,
    /// The end of the servers.
    Called,
}

/// Direction of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Towards {
    /// To the other end of the path.
    Path,
    /// To the hosts at this end.
    Hosts,
}

/// Transport support of a host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Speaks {
    /// TPA, besides TCP.
    Tpa,
    /// TCP; no TPA as far as is known.
    TcpOnly,
}

/// Action taken on a packet, which is always forwarded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Done {
    /// None.
    Untouched,
    /// A SYN was marked.
    Announced,
    /// A mark was read and removed; it will be answered.
    Heard,
    /// The answer was put into a SYN-ACK.
    Answered,
    /// A SYN-ACK told this about its sender; its mark was removed.
    Learned(IpAddr, Speaks),
}

/// Marks and reads the handshakes that pass.
#[derive(Clone, Debug)]
pub struct Announcer {
    config: Config,
    /// Marked SYNs without an answer, by client and server.
    waiting: Memory<Flow, ()>,
    hosts: Memory<IpAddr, Speaks>,
}

/// Address of the client, then of the server.
type Flow = (SocketAddr, SocketAddr);

/// Longest time of a handshake: longer than a kernel tries (tcp(7), `tcp_syn_retries`).
const HANDSHAKE: Duration = Duration::from_secs(180);

impl Config {
    /// Returns the default parameters for this end.
    #[must_use]
    pub const fn new(role: Role) -> Self {
        Self { role, remember: Duration::from_secs(600), most: 4096 }
    }
}

impl Announcer {
    /// Creates an announcer that has learned nothing.
    #[must_use]
    pub fn new(config: Config) -> Self {
        let memory = (config.most.max(1), HANDSHAKE, config.remember);
        Self { config, waiting: Memory::new(memory.0, memory.1), hosts: Memory::new(memory.0, memory.2) }
    }

    /// Handles an IPv4 or IPv6 packet that goes `towards` there: adds or removes a mark where needed.
    /// Checksums stay right. Malformed packets and fragments stay unchanged.
    pub fn pass(&mut self, now: Instant, towards: Towards, packet: &mut [u8]) -> Done {
        let Some(mut segment) = Segment::of(packet) else { return Done::Untouched };
        match (self.config.role, towards, segment.kind()) {
            (Role::Caller, Towards::Path, Kind::Syn) => self.announce(now, &mut segment),
            (Role::Caller, Towards::Hosts, Kind::SynAck) => self.learn(now, &mut segment),
            (Role::Called, Towards::Hosts, Kind::Syn) => self.hear(now, &mut segment),
            (Role::Called, Towards::Path, Kind::SynAck) => self.answer(now, &mut segment),
            _ => Done::Untouched,
        }
    }

    /// Returns what is known about `host`.
    #[must_use]
    pub fn speaks(&self, now: Instant, host: IpAddr) -> Option<Speaks> {
        self.hosts.get(now, &host).copied()
    }

    fn announce(&mut self, now: Instant, segment: &mut Segment<'_>) -> Done {
        let comes_again = self.waiting.get(now, &segment.flow).is_some();
        if comes_again || self.speaks(now, segment.flow.1.ip()) == Some(Speaks::TcpOnly) {
            return Done::Untouched;
        }
        self.waiting.put(now, segment.flow, ());
        segment.set(ANNOUNCE);
        Done::Announced
    }

    fn learn(&mut self, now: Instant, segment: &mut Segment<'_>) -> Done {
        let (from, to) = segment.flow;
        if self.waiting.take(now, &(to, from)).is_none() {
            return Done::Untouched;
        }
        let speaks = if segment.has(ANSWER) { Speaks::Tpa } else { Speaks::TcpOnly };
        segment.clear(ANSWER);
        self.hosts.put(now, from.ip(), speaks);
        Done::Learned(from.ip(), speaks)
    }

    fn hear(&mut self, now: Instant, segment: &mut Segment<'_>) -> Done {
        if !segment.has(ANNOUNCE) {
            return Done::Untouched;
        }
        segment.clear(ANNOUNCE);
        self.waiting.put(now, segment.flow, ());
        Done::Heard
    }

    fn answer(&mut self, now: Instant, segment: &mut Segment<'_>) -> Done {
        let (from, to) = segment.flow;
        // The SYN-ACK may be retransmitted, and is then answered again.
        if self.waiting.get(now, &(to, from)).is_none() {
            return Done::Untouched;
        }
        segment.set(ANSWER);
        Done::Answered
    }
}

/// Map with limited size and lifetime of entries; the oldest entry is evicted.
#[derive(Clone, Debug)]
struct Memory<K, V> {
    most: usize,
    lasts: Duration,
    known: BTreeMap<K, (Instant, V)>,
    /// Entries by age; those renewed or removed since do not count.
    order: VecDeque<(Instant, K)>,
}

impl<K: Ord + Copy, V> Memory<K, V> {
    const fn new(most: usize, lasts: Duration) -> Self {
        Self { most, lasts, known: BTreeMap::new(), order: VecDeque::new() }
    }

    fn get(&self, now: Instant, key: &K) -> Option<&V> {
        self.known.get(key).filter(|(since, _)| now < *since + self.lasts).map(|(_, value)| value)
    }

    fn take(&mut self, now: Instant, key: &K) -> Option<V> {
        self.known.remove(key).filter(|(since, _)| now < *since + self.lasts).map(|(_, value)| value)
    }

    fn put(&mut self, now: Instant, key: K, value: V) {
        self.known.insert(key, (now, value));
        self.order.push_back((now, key));
        // The order holds each key at most twice on average: removing or renewing a key leaves an entry
        // behind.
        while self.known.len() > self.most || self.order.len() > 2 * self.most {
            let Some((since, oldest)) = self.order.pop_front() else { break };
            if self.known.get(&oldest).is_some_and(|(known, _)| *known == since) {
                self.known.remove(&oldest);
            }
        }
    }
}

/// A TCP segment in its packet.
struct Segment<'a> {
    tcp: &'a mut [u8],
    /// Source and destination.
    flow: Flow,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Syn,
    SynAck,
    Other,
}

impl<'a> Segment<'a> {
    fn of(packet: &'a mut [u8]) -> Option<Self> {
        let (start, from, to) = match packet.first()? >> 4 {
            4 => of_ipv4(packet)?,
            6 => of_ipv6(packet)?,
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
        self.change(self.tcp[12] | bit);
    }

    fn clear(&mut self, bit: u8) {
        self.change(self.tcp[12] & !bit);
    }

    /// Replaces the 13th byte, and updates the checksum.
    fn change(&mut self, to: u8) {
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
fn of_ipv4(packet: &[u8]) -> Option<(usize, IpAddr, IpAddr)> {
    let header = packet.first_chunk::<20>()?;
    let is_fragment = u16::from_be_bytes([header[6], header[7]]) & 0x3fff != 0;
    let address =
        |at: usize| Ipv4Addr::new(header[at], header[at + 1], header[at + 2], header[at + 3]).into();
    let len = usize::from(header[0] & 0xf) * 4;
    (header[9] == TCP && !is_fragment && len >= 20).then(|| (len, address(12), address(16)))
}

/// As [`of_ipv4`], for IPv6 without extension headers.
fn of_ipv6(packet: &[u8]) -> Option<(usize, IpAddr, IpAddr)> {
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

    const HERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1)), 1234);
    const THERE: SocketAddr = SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2)), 80);

    fn at(seconds: u64) -> Instant {
        Instant::from_secs(seconds)
    }

    fn announcer(role: Role) -> Announcer {
        Announcer::new(Config { most: 4, ..Config::new(role) })
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
    fn two_ends_find_each_other_and_hosts_see_no_mark() {
        let v6 = |n| SocketAddr::new(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, n).into(), 80 + n);
        for (here, there) in [(HERE, THERE), (v6(1), v6(2))] {
            let (mut caller, mut called) = (announcer(Role::Caller), announcer(Role::Called));
            let mut syn = packet(here, there, SYN);
            assert_eq!(caller.pass(at(0), Towards::Path, &mut syn), Done::Announced);
            assert_eq!(reserved(&syn), ANNOUNCE);
            assert_eq!(called.pass(at(0), Towards::Hosts, &mut syn), Done::Heard);
            assert_eq!(syn, packet(here, there, SYN));
            let mut answer = packet(there, here, SYN | ACK);
            assert_eq!(called.pass(at(0), Towards::Path, &mut answer), Done::Answered);
            assert_eq!(reserved(&answer), ANSWER);
            let learned = caller.pass(at(0), Towards::Hosts, &mut answer);
            assert_eq!(learned, Done::Learned(there.ip(), Speaks::Tpa));
            assert_eq!(answer, packet(there, here, SYN | ACK));
            assert_eq!(caller.speaks(at(599), there.ip()), Some(Speaks::Tpa));
            assert_eq!(caller.speaks(at(600), there.ip()), None);
        }
    }

    #[test]
    fn a_host_without_tpa_is_called_without_a_mark_for_a_while() {
        let mut caller = announcer(Role::Caller);
        let mut syn = packet(HERE, THERE, SYN);
        caller.pass(at(0), Towards::Path, &mut syn);
        let mut answer = packet(THERE, HERE, SYN | ACK);
        let learned = caller.pass(at(1), Towards::Hosts, &mut answer);
        assert_eq!(learned, Done::Learned(THERE.ip(), Speaks::TcpOnly));
        let mut next = |now, port| {
            let here = SocketAddr::new(HERE.ip(), port);
            caller.pass(at(now), Towards::Path, &mut packet(here, THERE, SYN))
        };
        assert_eq!(next(600, 2), Done::Untouched);
        assert_eq!(next(601, 2), Done::Announced);
    }

    #[test]
    fn a_host_that_sends_reserved_bits_back_does_not_speak_tpa() {
        let mut caller = announcer(Role::Caller);
        caller.pass(at(0), Towards::Path, &mut packet(HERE, THERE, SYN));
        let mut mirrored = packet(THERE, HERE, SYN | ACK);
        Segment::of(&mut mirrored).unwrap().set(ANNOUNCE);
        let learned = caller.pass(at(0), Towards::Hosts, &mut mirrored);
        assert_eq!(learned, Done::Learned(THERE.ip(), Speaks::TcpOnly));
    }

    #[test]
    fn a_call_that_is_repeated_goes_unmarked() {
        let mut caller = announcer(Role::Caller);
        assert_eq!(caller.pass(at(0), Towards::Path, &mut packet(HERE, THERE, SYN)), Done::Announced);
        let mut again = packet(HERE, THERE, SYN);
        assert_eq!(caller.pass(at(1), Towards::Path, &mut again), Done::Untouched);
        assert_eq!(again, packet(HERE, THERE, SYN));
    }

    #[test]
    fn answers_to_no_call_teach_nothing_and_get_no_mark() {
        let mut forged = packet(THERE, HERE, SYN | ACK);
        Segment::of(&mut forged).unwrap().set(ANSWER);
        let mut caller = announcer(Role::Caller);
        assert_eq!(caller.pass(at(0), Towards::Hosts, &mut forged), Done::Untouched);
        assert_eq!(caller.speaks(at(0), THERE.ip()), None);
        let mut called = announcer(Role::Called);
        assert_eq!(called.pass(at(0), Towards::Path, &mut packet(THERE, HERE, SYN | ACK)), Done::Untouched);
        assert_eq!(called.pass(at(0), Towards::Hosts, &mut packet(HERE, THERE, SYN)), Done::Untouched);
    }

    #[test]
    fn other_segments_fragments_and_garbage_stay_as_they_are() {
        let mut caller = announcer(Role::Caller);
        let mut fragment = packet(HERE, THERE, SYN);
        fragment[6] = 0x20;
        let mut udp = packet(HERE, THERE, SYN);
        udp[9] = 17;
        let segments = [ACK, SYN | ACK, SYN | RST, SYN | FIN, 0].map(|flags| packet(HERE, THERE, flags));
        for original in
            segments.into_iter().chain([fragment, udp, vec![], vec![0x45], vec![0x4f; 40], vec![0x60; 50]])
        {
            let mut passed = original.clone();
            assert_eq!(caller.pass(at(0), Towards::Path, &mut passed), Done::Untouched, "{original:?}");
            assert_eq!(passed, original);
        }
        for len in 0..packet(HERE, THERE, SYN).len() - 4 {
            let mut cut = packet(HERE, THERE, SYN)[..len].to_vec();
            assert_eq!(caller.pass(at(0), Towards::Path, &mut cut), Done::Untouched);
        }
    }

    #[test]
    fn a_flood_of_calls_is_bounded_and_forgets_the_oldest() {
        let mut caller = announcer(Role::Caller);
        for port in 1..=1000 {
            caller.pass(at(0), Towards::Path, &mut packet(SocketAddr::new(HERE.ip(), port), THERE, SYN));
            assert!(caller.waiting.known.len() <= 4 && caller.waiting.order.len() <= 8);
        }
        let mut answer = |port| {
            let here = SocketAddr::new(HERE.ip(), port);
            caller.pass(at(0), Towards::Hosts, &mut packet(THERE, here, SYN | ACK))
        };
        assert_eq!(answer(996), Done::Untouched);
        assert_eq!(answer(997), Done::Learned(THERE.ip(), Speaks::TcpOnly));
    }
}
