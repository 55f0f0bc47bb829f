//! Dialogues of a supervisor host with both ends of a connection.

use super::*;
use hopline_core::Length;
use hopline_wire::ip::{Header, Protocol};
use hopline_wire::tcp::SackBlock;
use std::net::Ipv6Addr;

const FIXED: (IpAddr, u16) = (IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1)), 80);
const MOBILE: (IpAddr, u16) = (IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2)), 9);
const LEN: u32 = 1000;
/// Sequence number before packet 0. Numbers wrap around with packet 2.
const START: Seq32 = Seq32(u32::MAX - 2 * LEN);

struct Supervisor {
    mtcp: Mtcp<u32>,
    now_ms: u64,
}

fn seq(n: u32) -> Seq32 {
    START + n * LEN
}

fn segment(from: (IpAddr, u16), flags: Flags, seq: Seq32, len: u32) -> (Header, Segment<Length>) {
    let to = if from == FIXED { MOBILE } else { FIXED };
    let ip = Header::new(from.0, to.0, Protocol::Tcp);
    let payload = Length(len.into());
    (ip, Segment { src_port: from.1, dst_port: to.1, seq, flags, payload, window: 500, ..Segment::default() })
}

impl Supervisor {
    /// Creates a supervisor host: packets 0 to `sent` have passed, and packet 0 is acknowledged after 10 ms.
    fn after(sent: u32) -> Self {
        let mut all = Self { mtcp: Mtcp::new(Config::default()), now_ms: 0 };
        all.pass_on(Flags::SYN, START - 1, 0, 0);
        assert_eq!(all.pass_back(Flags::SYN | Flags::ACK, START), None);
        for n in 0..=sent {
            all.data(n);
        }
        all.now_ms = 10;
        all
    }

    fn now(&self) -> Instant {
        Instant::from_millis(self.now_ms)
    }

    fn pass_on(&mut self, flags: Flags, seq: Seq32, len: u32, kept: u32) {
        let (ip, segment) = segment(FIXED, flags, seq, len);
        let verdict = self.mtcp.handle_packet_to_mobile(self.now(), Packet::new(&ip, &segment), || kept);
        assert_eq!(verdict, Verdict::Forward, "nothing is ever taken from the way to the host");
    }

    fn data(&mut self, n: u32) {
        self.pass_on(Flags::ACK, seq(n), LEN, n);
    }

    /// Passes an ACK of the host. Returns its new number, or `None` if it is unchanged.
    fn pass_back(&mut self, flags: Flags, number: Seq32) -> Option<Seq32> {
        self.pass_back_with(flags, number, None)
    }

    fn pass_back_with(&mut self, flags: Flags, number: Seq32, sack: Option<SackBlock>) -> Option<Seq32> {
        let (ip, mut segment) = segment(MOBILE, flags, Seq32(77), 0);
        segment.ack = number;
        sack.into_iter().for_each(|block| {
            segment.options.sack.push(block);
        });
        match self.mtcp.handle_packet_from_mobile(self.now(), Packet::new(&ip, &segment)) {
            Verdict::Forward => None,
            Verdict::ForwardWith(says) => Some(says.ack),
            Verdict::Absorb => panic!("an ACK is absorbed"),
        }
    }

    fn ack(&mut self, n: u32) -> Option<Seq32> {
        self.pass_back(Flags::ACK, seq(n))
    }

    fn run_to(&mut self, ms: u64) -> Vec<Transmit<u32>> {
        self.now_ms = ms;
        self.mtcp.handle_timeout(Instant::from_millis(ms));
        self.transmits()
    }

    fn transmits(&mut self) -> Vec<Transmit<u32>> {
        core::iter::from_fn(|| self.mtcp.poll_transmit()).collect()
    }
}

/// Returns whether this is the ACK that makes the sender wait.
fn is_zero_window_ack(transmit: &Transmit<u32>, number: Seq32) -> bool {
    matches!(transmit, Transmit::Ack(BareAck { ack, window: 0, .. }) if *ack == number)
}

#[test]
fn last_byte_is_withheld_while_data_are_in_flight() {
    let mut host = Supervisor::after(3);
    assert_eq!(host.ack(1), Some(seq(1) - 1));
    assert_eq!(host.ack(3), Some(seq(3) - 1));
    assert_eq!(host.ack(3), Some(seq(3) - 1), "a duplicate remains one");
    assert_eq!(host.ack(4), None, "all is acknowledged: nobody is to time out on a byte");
    assert_eq!(host.run_to(60_000), []);
}

#[test]
fn nothing_is_withheld_with_sack_blocks() {
    let mut all = Supervisor::after(5);
    assert_eq!(all.ack(1), Some(seq(1) - 1));
    let beyond = SackBlock { left: seq(3), right: seq(4) };
    assert_eq!(
        all.pass_back_with(Flags::ACK, seq(2), Some(beyond)),
        None,
        "the hole begins where it is told"
    );
    assert_eq!(all.ack(4), Some(seq(4) - 1));
}

#[test]
fn silent_host_closes_the_sender_window() {
    let mut host = Supervisor::after(3);
    host.ack(2);
    assert_eq!(host.run_to(209), []);
    let sent = host.run_to(210);
    assert!(sent.len() == 1 && is_zero_window_ack(&sent[0], seq(2)), "{sent:?}");
    assert_eq!(host.mtcp.stats().windows_closed, 1);
}

#[test]
fn window_probes_are_answered_and_the_host_is_probed() {
    let mut host = Supervisor::after(3);
    host.ack(2);
    host.run_to(210);
    host.pass_on(Flags::ACK, seq(2), 1, 99);
    let answer = host.transmits();
    assert!(answer.len() == 1 && is_zero_window_ack(&answer[0], seq(2)), "{answer:?}");
    let sent = host.run_to(710);
    assert!(
        matches!(
            sent[..],
            [Transmit::Retransmission { queue_position: QueuePosition::Front, packet: 99, .. }]
        ),
        "{sent:?}"
    );
    assert_eq!(host.run_to(1000), []);
    assert_eq!(host.run_to(1210).len(), 1, "and again");
}

#[test]
fn returning_host_reopens_the_window() {
    let mut host = Supervisor::after(3);
    host.ack(2);
    host.run_to(210);
    host.now_ms = 5000;
    assert_eq!(host.ack(2), None, "the same number, with a window");
    assert_eq!(host.ack(3), Some(seq(3) - 1), "and the last byte is kept back again");
    assert_eq!((host.mtcp.stats().windows_reopened, host.transmits()), (1, vec![]));
    let sent = host.run_to(5200);
    assert!(
        sent.len() == 1 && is_zero_window_ack(&sent[0], seq(3)),
        "and if it falls silent again: {sent:?}"
    );
}

#[test]
fn announced_ack_never_decreases() {
    let mut host = Supervisor::after(3);
    host.ack(2);
    host.run_to(210);
    assert_eq!(host.ack(1), None, "an old ACK passes as it is");
    host.data(4);
    assert_eq!(host.ack(2), None);
}

#[test]
fn silence_without_data_in_flight_is_ignored() {
    let mut host = Supervisor::after(1);
    host.ack(2);
    assert_eq!(host.run_to(60_000), []);
    host.data(2);
    assert_eq!(host.run_to(60_199), []);
    assert_eq!(host.run_to(60_200).len(), 1);
}

#[test]
fn fin_is_acknowledged_completely() {
    let mut host = Supervisor::after(0);
    host.pass_on(Flags::ACK | Flags::FIN, seq(1), 0, 1);
    assert_eq!(host.ack(1), Some(seq(1) - 1));
    assert_eq!(host.pass_back(Flags::ACK, seq(1) + 1), None);
}

#[test]
fn no_ack_is_made_before_the_host_has_acknowledged() {
    let mut host = Supervisor { mtcp: Mtcp::new(Config::default()), now_ms: 0 };
    host.data(5);
    assert_eq!(host.run_to(1000), []);
    assert_eq!(host.mtcp.connections(), 1);
}

#[test]
fn restarted_middlebox_lets_a_waiting_sender_continue() {
    let mut host = Supervisor::after(3);
    host.ack(2);
    host.run_to(210);
    host.mtcp = Mtcp::new(Config::default());
    assert_eq!(host.ack(2), None, "of a stranger nothing is kept back: the window is open");
}

#[test]
fn acks_of_unsent_data_are_ignored() {
    let mut host = Supervisor::after(1);
    assert_eq!(host.ack(9), None);
    assert_eq!(host.mtcp.stats().acks_beyond, 1);
    assert_eq!(host.run_to(200).len(), 1, "nor is it a sign of life");
}

#[test]
fn reset_or_new_syn_removes_state() {
    let mut host = Supervisor::after(1);
    host.pass_on(Flags::RST, seq(2), 0, 0);
    assert_eq!(host.mtcp.connections(), 0);
    host.data(7);
    host.pass_back(Flags::RST, seq(0));
    assert_eq!(host.mtcp.connections(), 0);
}

/// After a timeout the sender's window is one packet: the byte would keep that packet in flight until the next timeout.
#[test]
fn nothing_is_withheld_during_sender_recovery() {
    let mut host = Supervisor::after(5);
    assert_eq!(host.ack(1), Some(seq(1) - 1));
    host.now_ms = 300;
    host.data(1);
    assert_eq!(host.ack(2), None, "the packet sent again is acknowledged whole");
    host.data(6);
    assert_eq!(host.ack(5), None, "recovery goes on");
    assert_eq!(host.ack(6), Some(seq(6) - 1), "all that was sent before the retransmission is there");
}
