//! Fast retransmission after a handoff (Caceres, Iftode, "Improving the Performance of Reliable Transport Protocols in Mobile Computing
//! Environments", IEEE JSAC 13(5), 1995): a mobile host that has changed its station repeats its last ACK as often as makes the fixed
//! host send again at once. Otherwise what was lost on the way waits for a coarse timer.
//!
//! The machine stands in the mobile host, where it sees the ACKs that leave. It knows nothing of what was lost: where nothing was, the
//! fixed host cuts its window all the same, as published. A sender with SACK counts only duplicates that tell of something (RFC 6675 §2),
//! and takes no notice.

use crate::packet::{BareAck, Connection, Packet};
use crate::table::{Bounds, Table};
use core::num::NonZeroU8;
use hopline_core::{Duration, Instant, Payload};
use hopline_wire::tcp::Flags;
use std::collections::VecDeque;

/// How it behaves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Config {
    /// How often an ACK is repeated, at least 1. Default 3, the threshold of RFC 5681.
    pub duplicates: NonZeroU8,
    /// How much is remembered of connections. Default 64 s of silence: no sender waits longer between two attempts.
    pub bounds: Bounds,
}

impl Default for Config {
    fn default() -> Self {
        let bounds = Bounds { idle: Duration::from_secs(64), ..Bounds::default() };
        Self { duplicates: const { NonZeroU8::new(3).expect("not zero") }, bounds }
    }
}

/// The machine in a mobile host.
#[derive(Debug)]
pub struct FastRetransmit {
    config: Config,
    /// The last ACK of each connection over which something comes.
    table: Table<BareAck>,
    out: VecDeque<BareAck>,
    stats: Stats,
}

/// What a [`FastRetransmit`] has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Handoffs.
    pub moves: u64,
    /// ACKs repeated.
    pub acks_made: u64,
}

impl FastRetransmit {
    /// A machine that knows of no connection yet.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self { config, table: Table::new(config.bounds), out: VecDeque::new(), stats: Stats::default() }
    }

    /// A packet of this host leaves it.
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
        let known = self.table.hear(now, &connection);
        // Who only sends has nothing to ask for.
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
            Some(place) => *self.table.at(place) = ack,
            None => {
                self.table.insert(now, connection, ack);
            }
        }
    }

    /// The host is at another station now.
    pub fn moved(&mut self) {
        self.stats.moves += 1;
        for ack in self.table.iter() {
            self.stats.acks_made += u64::from(self.config.duplicates.get());
            self.out.extend(core::iter::repeat_n(*ack, self.config.duplicates.get().into()));
        }
    }

    /// Forgets connections over which nothing has come for long.
    pub fn handle_timeout(&mut self, now: Instant) {
        while self.table.next_due(now).is_some() {}
    }

    /// When to call [`FastRetransmit::handle_timeout`].
    #[must_use]
    pub fn poll_timeout(&self) -> Option<Instant> {
        self.table.next_look()
    }

    /// The next ACK to send.
    pub fn poll_transmit(&mut self) -> Option<BareAck> {
        self.out.pop_front()
    }

    /// What it has done.
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

    const HERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 2));
    const THERE: IpAddr = IpAddr::V4(Ipv4Addr::new(10, 0, 0, 1));

    fn pass_out(host: &mut FastRetransmit, at_s: u64, port: u16, flags: Flags, ack: u32, len: u64) {
        let ip = Header::between(HERE, THERE, Protocol::Tcp);
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

    fn repeated(host: &mut FastRetransmit) -> Vec<(u16, u32)> {
        host.moved();
        let acks = core::iter::from_fn(|| host.poll_transmit());
        acks.map(|ack| (ack.connection.mobile.1, ack.ack.0)).collect()
    }

    #[test]
    fn the_last_ack_of_each_download_is_repeated_three_times() {
        let mut host = FastRetransmit::new(Config::default());
        for ack in [500, 1000] {
            pass_out(&mut host, 0, 9, Flags::ACK, ack, 0);
        }
        pass_out(&mut host, 0, 7, Flags::ACK, 70, 0);
        assert_eq!(repeated(&mut host), [(9, 1000), (9, 1000), (9, 1000), (7, 70), (7, 70), (7, 70)]);
        assert_eq!(*host.stats(), Stats { moves: 1, acks_made: 6 });
    }

    #[test]
    fn who_only_sends_and_who_is_done_asks_for_nothing() {
        let mut host = FastRetransmit::new(Config::default());
        pass_out(&mut host, 0, 5, Flags::ACK, 1, 1000);
        for (port, end) in [(6, Flags::FIN | Flags::ACK), (7, Flags::RST), (8, Flags::SYN)] {
            pass_out(&mut host, 0, port, Flags::ACK, 500, 0);
            pass_out(&mut host, 0, port, end, 500, 0);
        }
        assert_eq!(repeated(&mut host), []);
    }

    #[test]
    fn an_old_connection_is_forgotten_and_many_are_bounded() {
        let bounds = Bounds { connections: 2, idle: Duration::from_secs(60), ..Bounds::default() };
        let duplicates = NonZeroU8::MIN;
        let mut host = FastRetransmit::new(Config { duplicates, bounds });
        for (port, at_s) in [(1, 0), (2, 10), (3, 20)] {
            pass_out(&mut host, at_s, port, Flags::ACK, 500, 0);
        }
        assert_eq!(repeated(&mut host).len(), 2);
        host.handle_timeout(Instant::from_secs(75));
        assert_eq!(repeated(&mut host), [(3, 500)]);
        host.handle_timeout(Instant::from_secs(200));
        assert_eq!((repeated(&mut host), host.poll_timeout()), (vec![], None));
    }

    /// A download of which a window is lost in a handoff, from a sender without SACK. Its timer does not expire meanwhile. `repeats`: so often
    /// the host repeats its last ACK. Returns the segments that the sender sends again then, its recoveries, and its time-outs.
    fn after_a_handoff(repeats: Option<u8>) -> (usize, u64, u64) {
        use hopline_core::{LinkId, Machine};
        use hopline_transport::tcp::{self, Endpoint, Ports};
        let ports = Ports { local: 80, remote: 9 };
        let mut sender =
            Endpoint::<Length>::new(tcp::Config::modern().with_newreno(), ports, Seq32(0)).unwrap();
        let ip = Header::between(HERE, THERE, Protocol::Tcp);
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
            host.moved();
            while let Some(ack) = host.poll_transmit() {
                sender.handle_packet(now, LinkId::ONLY, ack.segment());
            }
        }
        let again = core::iter::from_fn(|| sender.poll_transmit(now)).filter(|sent| sent.seq == Seq32(1));
        (again.count(), sender.stats().fast_retransmits, sender.stats().timeouts)
    }

    #[test]
    fn a_sender_sends_again_at_the_end_of_a_handoff_and_waits_for_its_timer_otherwise() {
        assert_eq!(after_a_handoff(Some(3)), (1, 1, 0));
        assert_eq!(after_a_handoff(Some(4)), (1, 1, 0));
        assert_eq!(after_a_handoff(Some(2)), (0, 0, 0));
        assert_eq!(after_a_handoff(None), (0, 0, 0));
    }
}
