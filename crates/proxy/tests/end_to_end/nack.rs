//! Uploads: the base station requests packets that the last hop has lost, and Snoop on the mobile host
//! answers.

use crate::end_to_end::filters::Base;
use crate::end_to_end::support::{emulations, endpoints, header, showing, transports, wire};
use bytes::Bytes;
use hopline_core::{Duration, Instant, LinkId, Machine};
use hopline_proxy::nack::{self, Nacks};
use hopline_proxy::snoop::{self, Snoop};
use hopline_proxy::{Filter, Packet, Transmit, Verdict};
use hopline_testkit::transfer::{Course, Transfer};
use hopline_testkit::{Emulation, Middle, Side};
use hopline_transport::Signal;
use hopline_transport::connection::{CloseError, Connection, Event, OpenError, SendError, State};
use hopline_transport::tcp::{self, Endpoint};
use hopline_wire::tcp::Segment;
use proptest::prelude::*;
use std::collections::VecDeque;

/// A host: its TCP, and the middlebox between that and the link.
struct Host {
    tcp: Endpoint<Bytes>,
    keeps: Option<Snoop<Segment<Bytes>>>,
    side: Side,
    out: VecDeque<Segment<Bytes>>,
}

/// Source of a host's timer.
#[derive(Clone, Copy, Debug)]
enum Wakes {
    Tcp,
    Keeps,
}

impl Host {
    /// Packets of the middlebox go first: to the link, or up to TCP.
    fn drain(&mut self, now: Instant) {
        while let Some(transmit) = self.keeps.as_mut().and_then(Filter::poll_transmit) {
            match transmit {
                Transmit::Again { kept, clock, .. } => self.out.push_front(showing(clock, kept)),
                Transmit::Ack(ack) => self.tcp.handle_packet(now, LinkId(0), ack.segment()),
                Transmit::Nack(nack) => self.out.push_back(nack.segment()),
            }
        }
    }
}

impl Machine for Host {
    type Packet = Segment<Bytes>;
    type Transmit = Segment<Bytes>;
    type Signal = Signal;
    type Event = Event;
    type Timer = Wakes;

    fn handle_packet(&mut self, now: Instant, link: LinkId, segment: Segment<Bytes>) {
        let ip = header(if self.side == Side::A { Side::B } else { Side::A });
        let verdict = match &mut self.keeps {
            Some(keeps) => keeps.pass_from_mobile(now, Packet::new(&ip, &segment)),
            None => Verdict::Forward,
        };
        match verdict {
            Verdict::Absorb => assert!(segment.payload.is_empty(), "data are never absorbed"),
            Verdict::Forward => self.tcp.handle_packet(now, link, segment),
            Verdict::ForwardWith(says) => self.tcp.handle_packet(now, link, says.put_into(&segment)),
        }
        self.drain(now);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.tcp.handle_timeout(now);
        if let Some(keeps) = &mut self.keeps {
            keeps.handle_timeout(now);
        }
        self.drain(now);
    }

    fn handle_signal(&mut self, now: Instant, signal: Signal) {
        self.tcp.handle_signal(now, signal);
    }

    fn poll_transmit(&mut self, now: Instant) -> Option<Segment<Bytes>> {
        if let Some(again) = self.out.pop_front() {
            return Some(again);
        }
        let segment = self.tcp.poll_transmit(now)?;
        if let Some(keeps) = &mut self.keeps {
            let (ip, kept) = (header(self.side), segment.clone());
            let packet = Packet::new(&ip, &segment);
            assert_ne!(keeps.pass_to_mobile(now, packet, || kept), Verdict::Absorb, "TCP knows what it does");
        }
        Some(segment)
    }

    fn poll_timeout(&self) -> Option<(Instant, Wakes)> {
        let tcp = self.tcp.poll_timeout().map(|(at, _)| (at, Wakes::Tcp));
        let keeps = self.keeps.as_ref().and_then(Filter::poll_timeout).map(|at| (at, Wakes::Keeps));
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
    let host = |tcp, keeps, side| Host { tcp, keeps, side, out: VecDeque::new() };
    [host(a, None, Side::A), host(b, keeps, Side::B)]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_500, ..ProptestConfig::default() })]

    #[test]
    fn every_byte_arrives_past_a_station_that_asks(
        attempts in 1u8..20,
        asks in prop::sample::select(&[nack::Asks::All, nack::Asks::Announced][..]),
        tcp in transports(),
        wireless in [emulations(), emulations()],
        restarts in prop::option::of(1u64..2000),
        totals in [0u64..30_000, 0u64..200_000],
        isns in [0..u32::MAX, u32::MAX - 50_000..u32::MAX],
        seed in any::<u64>(),
    ) {
        let config = nack::Config { attempts, asks, ..nack::Config::default() };
        let keeps = if asks == nack::Asks::All { snoop::Config::told() } else { snoop::Config::announcing() };
        let [a, b] = hosts(tcp, isns, Some(keeps));
        let station = Base::new(move || Nacks::new(config), restarts.map(Duration::from_millis));
        let middle = Middle::new(a, station, b, [wire(), wire()], wireless, seed);
        let mut transfer = Transfer::of(middle, totals, |_| {});
        transfer.run(Instant::from_secs(4000));
        transfer.assert_complete();
    }
}

#[test]
fn an_upload_hardly_feels_the_losses_of_its_first_hop() {
    const TOTAL: u64 = 3_000_000;
    let time = |tcp: tcp::Config, roles| {
        let tcp = tcp::Config { window_clamp: Some(100), ..tcp };
        let last_hop =
            Emulation { latency: Duration::from_millis(2), rate: Some(20_000_000), ..Emulation::default() };
        let lossy = Emulation { loss: 0.05, ..last_hop.clone() };
        let (keeps, attempts, asks) = match roles {
            Roles::None => (None, 0, nack::Asks::All),
            Roles::Known => (Some(snoop::Config::told()), 10, nack::Asks::All),
            Roles::Announced => (Some(snoop::Config::announcing()), 10, nack::Asks::Announced),
            Roles::Ordinary => (None, 10, nack::Asks::Announced),
        };
        let [a, b] = hosts(tcp, [1, 2], keeps);
        let config = nack::Config { attempts, asks, ..nack::Config::default() };
        let station = Base::new(move || Nacks::new(config), None);
        let middle = Middle::new(a, station, b, [wire(), wire()], [last_hop, lossy], 5);
        let mut transfer = Transfer::of(middle, [0, TOTAL], |_| {});
        while transfer.received()[1] < TOTAL {
            transfer.act();
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
