//! Neighborhood RED machine.

use super::{Choices, Life};
use hopline_core::{Duration, Instant, LinkId, NodeId, Purpose, RandomStream, StateMachine};
use hopline_queue::SignalAction;
use hopline_queue::neighborhood_red::config::{
    Delivery, IncomingPolicy, Limits, NoticeLimits, StarvationTest,
};
use hopline_queue::neighborhood_red::{
    Arrival, ChannelTime, Config, Event, NeighborhoodRed, ReceivedNotice, Signal,
};
use hopline_queue::red::RedDecision;
use hopline_wire::ncn::{NormalizedPb, Notice, StarvedNode};
use std::net::Ipv4Addr;

/// Most neighbours in the table of the machine.
const NEIGHBOURS: u16 = 5;
/// Longest lifetime of a notice.
const LONGEST_LIFETIME: Duration = Duration::from_millis(65_535);

/// Drives a Neighborhood RED machine with operations read from `data`.
///
/// # Panics
/// If the machine violates its contract: it panics, exceeds its limits, sets a timer in the past, sends messages that do not
/// parse, has averages that no channel gives, selects packets while no notice is valid, or, with a guard, drops all packets
/// for longer than a lifetime without a pause.
pub fn neighborhood_red_machine(data: &[u8]) {
    let mut choices = Choices(data);
    let mut node = Node::new(config(&mut choices));
    while !choices.is_over() {
        node.step(&mut choices);
    }
    node.end();
}

struct Node {
    red: NeighborhoodRed,
    now: Instant,
    /// End of the lifetime of the last notice.
    noticed_until: Instant,
    /// Latest start of the present period without packets.
    silent: Option<Instant>,
    total: ChannelTime,
    sampled: Instant,
    /// Share of the time, percent: busy, transmitting, receiving. The sum may exceed 100.
    load: [u8; 3],
}

impl Node {
    fn new(config: Config) -> Self {
        let stream = RandomStream::new(1, 1, NodeId(0), Purpose::Neighborhood);
        Self {
            red: NeighborhoodRed::new(config, NodeId(0).ipv4(), Instant::ZERO, stream),
            now: Instant::ZERO,
            noticed_until: Instant::ZERO,
            silent: None,
            total: ChannelTime::default(),
            sampled: Instant::ZERO,
            load: [0; 3],
        }
    }

    fn step(&mut self, choices: &mut Choices<'_>) {
        match choices.byte() % 8 {
            0 => {
                self.load = [choices.byte(), choices.byte(), choices.byte()];
                self.pass(Duration::from_millis(u64::from(choices.byte()) * 40));
            }
            // A late timer: the machine was due, and is not called before the next event.
            1 => {
                self.now += Duration::from_millis(u64::from(choices.byte()) * 40);
                self.wake();
            }
            2 => self.red.handle_signal(self.now, Signal::FrameReceived(address(choices))),
            3 => self.red.handle_signal(self.now, Signal::Channel(nonsense(choices))),
            4 | 5 => self.notice(choices),
            6 => self.admit(Arrival::Outgoing { next_hop: address(choices) }),
            _ => self.admit(Arrival::Incoming),
        }
        self.drain();
        self.check();
    }

    fn notice(&mut self, choices: &mut Choices<'_>) {
        let from = address(choices);
        let notice = Notice {
            // Often everything, or the largest value of partial congestion.
            normalized_pb: match choices.byte() {
                0..=99 => NormalizedPb::ONE,
                100..=199 => NormalizedPb::of(self.red.config().max_partial_pb()),
                _ => NormalizedPb::of(f64::from(choices.u16()) / 65_535.0),
            },
            lifetime: Duration::from_millis(choices.u16().into()),
            starved_node: if choices.byte() < 128 {
                StarvedNode::Sender
            } else {
                StarvedNode::Neighbour(address(choices))
            },
        };
        self.noticed_until = self.noticed_until.max(self.now + notice.lifetime);
        self.red.handle_packet(self.now, LinkId::ONLY, ReceivedNotice { from, notice });
    }

    fn admit(&mut self, coming: Arrival) {
        let verdict = self.red.admit(self.now, coming);
        if self.now >= self.noticed_until {
            assert_eq!(verdict, RedDecision::Enqueue, "no notice holds");
        }
        if let (RedDecision::Drop, NoticeLimits::On(limits)) = (verdict, self.red.config().notice_limits) {
            let begun = self.silent.filter(|begun| self.now < *begun + limits.recovery_time);
            let begun = *self.silent.insert(begun.unwrap_or(self.now));
            assert!(self.now < begun + limits.max_lifetime, "silent for too long");
        }
    }

    fn drain(&mut self) {
        while let Some(event) = self.red.poll_event() {
            let Event::Sample = event;
            let passed = self.now.since(self.sampled);
            let [busy, transmitting, receiving] = self.load.map(|percent| passed * u64::from(percent) / 100);
            self.sampled = self.now;
            self.total.elapsed += passed;
            self.total.busy += busy;
            self.total.transmitting += transmitting;
            self.total.receiving += receiving;
            self.red.handle_signal(self.now, Signal::Channel(self.total));
        }
        while let Some(sent) = self.red.poll_transmit(self.now) {
            let mut bytes = Vec::new();
            sent.notice.emit(&mut bytes);
            assert_eq!(Notice::parse(&bytes), Ok(sent.notice));
            assert!(sent.notice.lifetime <= LONGEST_LIFETIME);
        }
    }

    fn check(&self) {
        assert!(self.red.table_sizes().iter().all(|&entries| entries <= NEIGHBOURS.into()));
        let config = self.red.config();
        let most = config.bandwidth_bps as f64 / f64::from(config.packet_bits);
        let [outgoing, incoming] = self.red.node_averages();
        for average in [self.red.average(), outgoing, incoming] {
            assert!((0.0..=most * (1.0 + 1e-9)).contains(&average), "{average}");
        }
        assert!(self.red.poll_timeout().is_some_and(|(at, _)| at > self.now));
        let stats = self.red.stats();
        assert!(stats.ignored() <= stats.notices_received);
        assert!(stats.selected_incoming + stats.selected_outgoing <= stats.packets);
    }

    /// Checks that nothing is dropped after a silence longer than any lifetime.
    fn end(&mut self) {
        self.pass(LONGEST_LIFETIME);
        for coming in [Arrival::Incoming, Arrival::Outgoing { next_hop: NodeId(1).ipv4() }] {
            assert_eq!(self.red.admit(self.now, coming), RedDecision::Enqueue);
        }
        assert_eq!(self.red.normalized_pb(self.now), NormalizedPb::ZERO);
    }
}

impl Life for Node {
    fn now(&mut self) -> &mut Instant {
        &mut self.now
    }

    fn due(&self) -> Option<Instant> {
        self.red.poll_timeout().map(|(at, _)| at)
    }

    fn wake(&mut self) {
        self.red.handle_timeout(self.now);
        self.drain();
    }
}

fn config(choices: &mut Choices<'_>) -> Config {
    let choice = choices.byte();
    let when = |bit: u8| choice >> bit & 1 == 1;
    Config {
        notice_limits: if when(0) { NoticeLimits::On(Limits::DEFAULT) } else { NoticeLimits::Off },
        incoming: if when(1) { IncomingPolicy::Relayed } else { IncomingPolicy::Dropped },
        delivery: if when(2) { Delivery::Broadcast } else { Delivery::Unicast },
        starvation: if when(3) { StarvationTest::BelowFairShare } else { Config::PAPER.starvation },
        action: if when(4) { SignalAction::Mark } else { SignalAction::Drop },
        neighbours: NEIGHBOURS.try_into().expect("not zero"),
        ..Config::PAPER
    }
}

/// Returns mostly one of eight nodes, the machine's own among them.
fn address(choices: &mut Choices<'_>) -> Ipv4Addr {
    match choices.byte() {
        255 => Ipv4Addr::BROADCAST,
        254 => Ipv4Addr::UNSPECIFIED,
        253 => Ipv4Addr::new(224, 0, 0, 1),
        byte => NodeId(u32::from(byte % 8)).ipv4(),
    }
}

/// Returns radio times that need not be consistent with each other or with earlier ones.
fn nonsense(choices: &mut Choices<'_>) -> ChannelTime {
    let mut time = || Duration::from_nanos(u64::from(choices.u32()) << (choices.byte() % 24));
    ChannelTime { elapsed: time(), busy: time(), transmitting: time(), receiving: time() }
}
