//! Fast retransmission after a handoff (Caceres, Iftode, "Improving the Performance of Reliable Transport
//! Protocols in Mobile Computing Environments", IEEE JSAC 13(5), 1995). A mobile host that has changed its
//! base station repeats its last ACK until the fixed host's duplicate-ACK threshold is reached, so that it
//! retransmits at once. Otherwise losses of the handoff wait for a coarse timer.
//!
//! The middlebox runs on the mobile host, where it sees outgoing ACKs. It does not know which packets were
//! lost: even if none was, the fixed host reduces its window, as published. A sender with SACK counts only
//! duplicates with new SACK information (RFC 6675 §2), and ignores them.

use crate::packet::{BareAck, Connection, Packet};
use crate::table::{Table, TableLimits};
use core::num::NonZeroU8;
use hopline_core::{Duration, Instant, Payload};
use hopline_wire::tcp::Flags;
use std::collections::VecDeque;

/// Parameters of [`FastRetransmit`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// Number of duplicates of an ACK, at least 1. Default 3, the threshold of RFC 5681.
    pub duplicates: NonZeroU8,
    /// Limits of the connection table. Default idle time 64 s: no sender waits longer between two attempts.
    pub limits: TableLimits,
}

impl Default for Config {
    fn default() -> Self {
        let bounds = TableLimits { idle_timeout: Duration::from_secs(64), ..TableLimits::default() };
        Self { duplicates: const { NonZeroU8::new(3).expect("not zero") }, limits: bounds }
    }
}

/// Fast retransmission on a mobile host.
#[derive(Debug)]
pub struct FastRetransmit {
    config: Config,
    /// Last ACK of each connection with incoming data.
    table: Table<BareAck>,
    pending_acks: VecDeque<BareAck>,
    stats: Stats,
}

/// Counters of a [`FastRetransmit`].
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Handoffs.
    pub handoffs: u64,
    /// ACKs made: duplicates sent.
    pub acks_made: u64,
}

impl FastRetransmit {
    /// Creates an instance without connections.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            table: Table::new(config.limits),
            pending_acks: VecDeque::new(),
            stats: Stats::default(),
        }
    }

    /// Handles a packet that leaves this host.
    pub fn pass_out<P: Payload>(&mut self, now: Instant, packet: Packet<'_, P>) {
        let (connection, segment) = (Connection::from_mobile(packet), packet.segment);
        let ends = segment.flags.contains(Flags::RST) || segment.flags.contains(Flags::FIN);
        if ends || segment.flags.contains(Flags::SYN) {
            self.table.remove(&connection);
            return;
        }
        if !segment.flags.contains(Flags::ACK) {
            return;
        }
        let known = self.table.touch(now, &connection);
        // A connection that only sends data is not tracked: no data are missing here.
        if known.is_none() && segment.seq_len() > 0 {
            return;
        }
        let ack = BareAck {
            connection,
            seq: segment.seq_end(),
            ack: segment.ack,
            window: segment.window,
            timestamps: segment.options.timestamps,
        };
        match known {
            Some(place) => *self.table.state_mut(place) = ack,
            None => {
                self.table.insert(now, connection, ack);
            }
        }
    }

    /// Handles a handoff to another base station.
    pub fn handle_handoff(&mut self) {
        self.stats.handoffs += 1;
        for ack in self.table.iter() {
            self.stats.acks_made += u64::from(self.config.duplicates.get());
            self.pending_acks.extend(core::iter::repeat_n(*ack, self.config.duplicates.get().into()));
        }
    }

    /// Removes idle connections.
    pub fn handle_timeout(&mut self, now: Instant) {
        while self.table.next_due(now).is_some() {}
    }

    /// Returns the time of the next call of [`FastRetransmit::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.table.poll_timeout()
    }

    /// Returns the next ACK to send.
    pub fn poll_transmit(&mut self) -> Option<BareAck> {
        self.pending_acks.pop_front()
    }

    /// Returns the counters.
    #[must_use]
    pub const fn stats(&self) -> &Stats {
        &self.stats
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_core::{Length, Seq32};
    use hopline_wire::ip::{Header, Protocol};
    use hopline_wire::tcp::Segment;
    use std::net::{IpAddr, Ipv4Addr};

    const LOCAL: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
    const REMOTE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

    fn pass_out(host: &mut FastRetransmit, at_s: u64, port: u16, flags: Flags, ack: u32, len: u64) {
        let ip = Header::new(LOCAL, REMOTE, Protocol::Tcp);
        let segment = Segment {
            src_port: port,
            dst_port: 80,
            ack: Seq32(ack),
            flags,
            payload: Length(len),
            ..Segment::default()
        };
        host.pass_out(Instant::from_secs(at_s), Packet::new(&ip, &segment));
    }

    fn duplicate_acks(host: &mut FastRetransmit) -> Vec<(u16, u32)> {
        host.handle_handoff();
        let acks = core::iter::from_fn(|| host.poll_transmit());
        acks.map(|ack| (ack.connection.mobile.1, ack.ack.0)).collect()
    }

    #[test]
    fn last_ack_of_each_download_is_repeated_three_times() {
        let mut host = FastRetransmit::new(Config::default());
        for ack in [500, 1000] {
            pass_out(&mut host, 0, 9, Flags::ACK, ack, 0);
        }
        pass_out(&mut host, 0, 7, Flags::ACK, 70, 0);
        assert_eq!(duplicate_acks(&mut host), [(9, 1000), (9, 1000), (9, 1000), (7, 70), (7, 70), (7, 70)]);
        assert_eq!(*host.stats(), Stats { handoffs: 1, acks_made: 6 });
    }

    #[test]
    fn uploads_and_closed_connections_send_no_duplicates() {
        let mut host = FastRetransmit::new(Config::default());
        pass_out(&mut host, 0, 5, Flags::ACK, 1, 1000);
        for (port, end) in [(6, Flags::FIN | Flags::ACK), (7, Flags::RST), (8, Flags::SYN)] {
            pass_out(&mut host, 0, port, Flags::ACK, 500, 0);
            pass_out(&mut host, 0, port, end, 500, 0);
        }
        assert_eq!(duplicate_acks(&mut host), []);
    }

    #[test]
    fn idle_connections_expire_and_table_is_bounded() {
        let bounds = TableLimits {
            max_connections: 2,
            idle_timeout: Duration::from_secs(60),
            ..TableLimits::default()
        };
        let duplicates = NonZeroU8::MIN;
        let mut host = FastRetransmit::new(Config { duplicates, limits: bounds });
        for (port, at_s) in [(1, 0), (2, 10), (3, 20)] {
            pass_out(&mut host, at_s, port, Flags::ACK, 500, 0);
        }
        assert_eq!(duplicate_acks(&mut host).len(), 2);
        host.handle_timeout(Instant::from_secs(75));
        assert_eq!(duplicate_acks(&mut host), [(3, 500)]);
        host.handle_timeout(Instant::from_secs(200));
        assert_eq!((duplicate_acks(&mut host), host.poll_timeout()), (vec![], None));
    }

    /// Simulates a download that loses a window in a handoff, from a sender without SACK. Its timer does not
    /// expire meanwhile. `repeats`: number of duplicates of the last ACK. Returns the number of segments that
    /// the sender then retransmits, of its recoveries, and of its timeouts.
    fn after_a_handoff(repeats: Option<u8>) -> (usize, u64, u64) {
        use hopline_core::{LinkId, StateMachine};
        use hopline_transport::tcp::{self, Endpoint, Ports};
        let ports = Ports { local: 80, remote: 9 };
        let mut sender =
            Endpoint::<Length>::new(tcp::Config::modern().with_newreno(), ports, Seq32(0)).unwrap();
        let ip = Header::new(LOCAL, REMOTE, Protocol::Tcp);
        let from_host = |flags, seq, ack| Segment::<Length> {
            src_port: 9,
            dst_port: 80,
            flags,
            seq: Seq32(seq),
            ack: Seq32(ack),
            window: 60_000,
            ..Segment::default()
        };
        let mut now = Instant::ZERO;
        sender.listen().unwrap();
        sender.handle_packet(now, LinkId::ONLY, from_host(Flags::SYN, 0, 0));
        assert!(sender.poll_transmit(now).is_some());
        let ack = from_host(Flags::ACK, 1, 1);
        let mut host = FastRetransmit::new(Config {
            duplicates: NonZeroU8::new(repeats.unwrap_or(1)).unwrap(),
            ..Config::default()
        });
        host.pass_out(now, Packet::new(&ip, &ack));
        sender.handle_packet(now, LinkId::ONLY, ack);
        sender.send(now, Length(100_000)).unwrap();
        while sender.poll_transmit(now).is_some() {}
        now += Duration::from_millis(100);
        if repeats.is_some() {
            host.handle_handoff();
            while let Some(ack) = host.poll_transmit() {
                sender.handle_packet(now, LinkId::ONLY, ack.segment());
            }
        }
        let again = core::iter::from_fn(|| sender.poll_transmit(now)).filter(|sent| sent.seq == Seq32(1));
        (again.count(), sender.stats().fast_retransmits, sender.stats().timeouts)
    }

    #[test]
    fn sender_retransmits_after_handoff_before_its_timeout() {
        assert_eq!(after_a_handoff(Some(3)), (1, 1, 0));
        assert_eq!(after_a_handoff(Some(4)), (1, 1, 0));
        assert_eq!(after_a_handoff(Some(2)), (0, 0, 0));
        assert_eq!(after_a_handoff(None), (0, 0, 0));
    }
}
