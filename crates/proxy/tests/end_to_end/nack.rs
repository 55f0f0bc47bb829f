//! Uploads: the base station requests packets that the last hop has lost, and Snoop on the mobile host
//! answers.

use crate::end_to_end::filters::FilterStation;
use crate::end_to_end::support::{emulations, endpoints, header, transports, wire, with_timestamp};
use bytes::Bytes;
use hopline_core::{Duration, Instant, LinkId, StateMachine};
use hopline_proxy::nack::{self, NackStation};
use hopline_proxy::snoop::{self, Snoop};
use hopline_proxy::{Packet, Pep, Transmit, Verdict};
use hopline_testkit::transfer::{EndpointPair, Transfer};
use hopline_testkit::{Emulation, Side, TwoLinks};
use hopline_transport::Signal;
use hopline_transport::connection::{CloseError, Connection, Event, OpenError, SendError, State};
use hopline_transport::tcp::{self, Endpoint};
use hopline_wire::tcp::Segment;
use proptest::prelude::*;
use std::collections::VecDeque;

/// A host: its TCP, and the middlebox between that and the link.
struct Host {
    tcp: Endpoint<Bytes>,
    snoop: Option<Snoop<Segment<Bytes>>>,
    side: Side,
    outgoing: VecDeque<Segment<Bytes>>,
}

/// Source of a host's timer.
#[derive(Clone, Copy, Debug)]
enum TimerSource {
    Tcp,
    Snoop,
}

impl Host {
    /// Packets of the middlebox go first: to the link, or up to TCP.
    fn drain(&mut self, now: Instant) {
        while let Some(transmit) = self.snoop.as_mut().and_then(Pep::poll_transmit) {
            match transmit {
                Transmit::Retransmission { packet: kept, tsval: clock, .. } => {
                    self.outgoing.push_front(with_timestamp(clock, kept))
                }
                Transmit::Ack(ack) => self.tcp.handle_packet(now, LinkId(0), ack.segment()),
                Transmit::Nack(nack) => self.outgoing.push_back(nack.segment()),
            }
        }
    }
}

impl StateMachine for Host {
    type Packet = Segment<Bytes>;
    type Transmit = Segment<Bytes>;
    type Signal = Signal;
    type Event = Event;
    type Timer = TimerSource;

    fn handle_packet(&mut self, now: Instant, link: LinkId, segment: Segment<Bytes>) {
        let ip = header(if self.side == Side::A { Side::B } else { Side::A });
        let verdict = match &mut self.snoop {
            Some(keeps) => keeps.handle_packet_from_mobile(now, Packet::new(&ip, &segment)),
            None => Verdict::Forward,
        };
        match verdict {
            Verdict::Absorb => assert!(segment.payload.is_empty(), "data are never absorbed"),
            Verdict::Forward => self.tcp.handle_packet(now, link, segment),
            Verdict::ForwardWith(says) => self.tcp.handle_packet(now, link, says.apply_to(&segment)),
        }
        self.drain(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.tcp.handle_timeout(now);
        if let Some(keeps) = &mut self.snoop {
            keeps.handle_timeout(now);
        }
        self.drain(now);
    }

    fn handle_signal(&mut self, now: Instant, signal: Signal) {
        self.tcp.handle_signal(now, signal);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Segment<Bytes>> {
        if let Some(again) = self.outgoing.pop_front() {
            return Some(again);
        }
        let segment = self.tcp.poll_transmit(now)?;
        if let Some(keeps) = &mut self.snoop {
            let (ip, kept) = (header(self.side), segment.clone());
            let packet = Packet::new(&ip, &segment);
            assert_ne!(
                keeps.handle_packet_to_mobile(now, packet, || kept),
                Verdict::Absorb,
                "TCP knows what it does"
            );
        }
        Some(segment)
    }

    fn poll_timeout(&self) -> Option<(Instant, TimerSource)> {
        let tcp = self.tcp.poll_timeout().map(|(at, _)| (at, TimerSource::Tcp));
        let keeps = self.snoop.as_ref().and_then(Pep::poll_timeout).map(|at| (at, TimerSource::Snoop));
        tcp.into_iter().chain(keeps).min_by_key(|(at, _)| *at)
    }

    fn poll_event(&mut self) -> Option<Event> {
        self.tcp.poll_event()
    }
}

impl Connection<Bytes> for Host {
    fn connect(&mut self, now: Instant) -> Result<(), OpenError> {
        self.tcp.connect(now)
    }

    fn listen(&mut self) -> Result<(), OpenError> {
        self.tcp.listen()
    }

    fn send(&mut self, now: Instant, data: Bytes) -> Result<(), SendError> {
        self.tcp.send(now, data)
    }

    fn recv(&mut self) -> Option<Bytes> {
        self.tcp.recv()
    }

    fn close(&mut self, now: Instant) -> Result<(), CloseError> {
        self.tcp.close(now)
    }

    fn abort(&mut self, now: Instant) {
        self.tcp.abort(now);
    }

    fn state(&self) -> State {
        self.tcp.state()
    }
}

/// Roles of the station and the mobile host.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Roles {
    /// Neither takes part.
    None,
    /// The station sends requests to all hosts, and this one caches its data.
    Known,
    /// The station sends requests to hosts that announce, and this one does.
    Announced,
    /// The station sends requests to hosts that announce, and this one does not.
    Ordinary,
}

fn hosts(config: tcp::Config, isns: [u32; 2], keeps: Option<snoop::Config>) -> [Host; 2] {
    let (a, b) = endpoints(config, isns);
    let keeps = keeps.map(Snoop::new);
    let host = |tcp, keeps, side| Host { tcp, snoop: keeps, side, outgoing: VecDeque::new() };
    [host(a, None, Side::A), host(b, keeps, Side::B)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn transfer_completes_past_a_nack_station(
        attempts in 1u8..20,
        asks in prop::sample::select(&[nack::NackPolicy::All, nack::NackPolicy::Announced][..]),
        tcp in transports(),
        wireless in [emulations(), emulations()],
        restarts in prop::option::of(1u64..2000),
        totals in [0u64..30_000, 0u64..200_000],
        isns in [0..u32::MAX, u32::MAX - 50_000..u32::MAX],
        seed in any::<u64>(),
    ) {
        let config = nack::Config { max_requests: attempts, policy: asks, ..nack::Config::default() };
        let keeps = if asks == nack::NackPolicy::All { snoop::Config::nack_host() } else { snoop::Config::announcing_host() };
        let [a, b] = hosts(tcp, isns, Some(keeps));
        let station = FilterStation::new(move || NackStation::new(config), restarts.map(Duration::from_millis));
        let middle = TwoLinks::new(a, station, b, [wire(), wire()], wireless, seed);
        let mut transfer = Transfer::of(middle, totals, |_| {});
        transfer.run(Instant::from_secs(4000));
        transfer.assert_complete();
    }
}

#[test]
fn upload_hardly_suffers_from_first_hop_losses() {
    const TOTAL: u64 = 3_000_000;
    let time = |tcp: tcp::Config, roles| {
        let tcp = tcp.with_window_clamp(Some(100));
        let last_hop =
            Emulation::default().with_latency(Duration::from_millis(2)).with_rate(Some(20_000_000));
        let lossy = last_hop.clone().with_loss(0.05);
        let (keeps, attempts, asks) = match roles {
            Roles::None => (None, 0, nack::NackPolicy::All),
            Roles::Known => (Some(snoop::Config::nack_host()), 10, nack::NackPolicy::All),
            Roles::Announced => (Some(snoop::Config::announcing_host()), 10, nack::NackPolicy::Announced),
            Roles::Ordinary => (None, 10, nack::NackPolicy::Announced),
        };
        let [a, b] = hosts(tcp, [1, 2], keeps);
        let config = nack::Config { max_requests: attempts, policy: asks, ..nack::Config::default() };
        let station = FilterStation::new(move || NackStation::new(config), None);
        let middle = TwoLinks::new(a, station, b, [wire(), wire()], [last_hop, lossy], 5);
        let mut transfer = Transfer::of(middle, [0, TOTAL], |_| {});
        while transfer.received()[1] < TOTAL {
            transfer.run_users();
            assert!(transfer.pair.step(Instant::from_secs(2000)), "{tcp:?}");
        }
        transfer.pair.now().since(Instant::ZERO)
    };
    for tcp in [tcp::Config::linux().with_sack(), tcp::Config::modern().with_sack(), tcp::Config::modern()] {
        let [without, ordinary] = [Roles::None, Roles::Ordinary].map(|roles| time(tcp, roles));
        assert_eq!(without, ordinary, "an ordinary host is not asked");
        for with in [Roles::Known, Roles::Announced].map(|roles| time(tcp, roles)) {
            assert!(with.as_nanos() * 3 < without.as_nanos(), "{with:?} with, {without:?} without, {tcp:?}");
        }
    }
}
