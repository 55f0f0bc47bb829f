//! BBR: over a bottleneck with a queue, loss and a policer, and in dialogues.

mod draft;
mod hostile;
mod samples;
mod v1;
mod v3;

use crate::tcp::{BbrConfig, BbrModel, BbrState, Config, Endpoint, Ports};
use hopline_core::{Duration, Instant, Length, LinkId, Payload, Purpose, RandomStream, Seq32, StateMachine};
use hopline_wire::tcp::Segment;
use std::collections::VecDeque;

/// Bytes on the link beside the data of a segment.
const HEADERS: u64 = 52;

fn linux(bbr: BbrConfig) -> Config {
    Config::linux().with_bbr(bbr)
}

/// Path model for the data of a sender. Acknowledgments are neither delayed by other traffic nor lost.
#[derive(Clone, Copy, Debug)]
struct Link {
    bits_per_sec: u64,
    round_trip: Duration,
    /// Capacity of the queue, packets.
    queue: usize,
    /// Independent loss rate of data packets.
    loss: f64,
    policer: Option<TokenBucketPolicer>,
}

/// Drops what finds too few tokens.
#[derive(Clone, Copy, Debug)]
struct TokenBucketPolicer {
    bits_per_sec: u64,
    bucket_bytes: f64,
}

/// 10 Mb/s, 40 ms: a product of 50,000 bytes; a queue of four times as much.
const PLAIN: Link = Link {
    bits_per_sec: 10_000_000,
    round_trip: Duration::from_millis(40),
    queue: 130,
    loss: 0.0,
    policer: None,
};

/// Unsent data that [`Supply::Bulk`] keeps: 32 segments.
const BULK_BYTES: u64 = 32 * 1448;

struct TestPath {
    a: Endpoint<Length>,
    b: Endpoint<Length>,
    now: Instant,
    link: Link,
    random: RandomStream,
    tokens: (f64, Instant),
    /// Departure times of the packets at the bottleneck.
    bottleneck_queue: VecDeque<Instant>,
    /// Segments on the way from `a` to `b`, and back.
    in_flight: [VecDeque<(Instant, Segment<Length>)>; 2],
    /// States of BBR, with their beginnings.
    states: Vec<(Instant, BbrState)>,
    /// Longest queue since this was cleared, packets.
    max_queue: usize,
    /// Treatment of the next data packets; the later ones pass.
    fates: VecDeque<Fate>,
    /// Releases acknowledgments only at multiples of this period, and the last of each period only.
    ack_period: Option<Duration>,
    supply: Supply,
    /// State of the sender after each acknowledgment, before it sends; tests of version 3 switch it on.
    record: Option<Vec<draft::Snapshot>>,
}

/// Treatment of a data packet at the bottleneck.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Fate {
    Pass,
    Drop,
    /// Arrives so much later, behind packets that were sent after it.
    Delay(Duration),
}

/// Application of the sender.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Supply {
    /// Provides no data.
    Off,
    /// Keeps the send queue filled, with so little that it can stop at any time.
    Bulk,
    /// Provides `bytes` at `next`, and then in intervals of `every`.
    Chunks { bytes: u64, every: Duration, next: Instant },
}

impl TestPath {
    /// Creates an open connection with nothing to send.
    fn new_idle(bbr: BbrConfig, link: Link, seed: u64) -> Self {
        let end = |local, remote, iss| {
            Endpoint::new(linux(bbr), Ports { local, remote }, Seq32(iss)).expect("a valid configuration")
        };
        let (mut a, mut b) = (end(1, 2, seed as u32), end(2, 1, 77));
        b.listen().unwrap();
        a.connect(Instant::ZERO).unwrap();
        let tokens = (link.policer.map_or(0.0, |policer| policer.bucket_bytes), Instant::ZERO);
        let mut path = Self {
            a,
            b,
            now: Instant::ZERO,
            link,
            random: RandomStream::global(seed, 0, Purpose::Emulation),
            tokens,
            bottleneck_queue: VecDeque::new(),
            in_flight: Default::default(),
            states: Vec::new(),
            max_queue: 0,
            fates: VecDeque::new(),
            ack_period: None,
            supply: Supply::Off,
            record: None,
        };
        path.drain();
        path.run_until(0.1);
        path
    }

    /// Open, with more to send than there is time for.
    fn new_busy(bbr: BbrConfig, link: Link, seed: u64) -> Self {
        let mut path = Self::new_idle(bbr, link, seed);
        path.send(1 << 40);
        path
    }

    fn send(&mut self, bytes: u64) {
        self.a.send(self.now, Length(bytes)).unwrap();
        self.drain();
    }

    fn model(&self) -> BbrModel {
        self.a.bbr().expect("BBR is at work")
    }

    /// Runs until so many seconds from the start.
    fn run_until(&mut self, secs: f64) {
        let end = Instant::ZERO + Duration::from_secs_f64(secs);
        while let Some(at) = self.next_at().filter(|&at| at <= end) {
            self.now = self.now.max(at);
            self.step();
        }
        self.now = end;
    }

    /// Bits per second that arrive for the first time until so many seconds from the start.
    fn goodput_until(&mut self, secs: f64) -> f64 {
        let (before, began) = (self.b.stats().bytes_received, self.now);
        self.run_until(secs);
        (self.b.stats().bytes_received - before) as f64 * 8.0 / self.now.since(began).as_secs_f64()
    }

    /// The states that there were between two times.
    fn states_between(&self, from: f64, to: f64) -> Vec<BbrState> {
        let inside = |at: Instant| (from..to).contains(&at.as_secs_f64());
        self.states.iter().filter(|(at, _)| inside(*at)).map(|&(_, state)| state).collect()
    }

    /// Returns the times at which BBR entered this state, seconds.
    fn times_of(&self, state: BbrState) -> Vec<f64> {
        self.states.iter().filter(|(_, s)| *s == state).map(|(at, _)| at.as_secs_f64()).collect()
    }

    fn next_at(&self) -> Option<Instant> {
        let arrivals = self.in_flight.iter().filter_map(|queue| queue.front().map(|&(at, _)| at));
        let timers = [self.a.poll_timeout(), self.b.poll_timeout()].into_iter().flatten().map(|(at, _)| at);
        let supply = if let Supply::Chunks { next, .. } = self.supply { Some(next) } else { None };
        arrivals.chain(timers).chain(supply).min()
    }

    fn step(&mut self) {
        for to in [0, 1] {
            while let Some((_, segment)) = self.in_flight[to].pop_front_if(|(at, _)| *at <= self.now) {
                let end = if to == 0 { &mut self.b } else { &mut self.a };
                end.handle_packet(self.now, LinkId::ONLY, segment);
                if to == 1 {
                    self.record_ack();
                }
                self.drain();
            }
        }
        self.a.handle_timeout(self.now);
        self.b.handle_timeout(self.now);
        self.drain();
        self.supply_data();
        if let Some(BbrModel { state, .. }) = self.a.bbr()
            && self.states.last().is_none_or(|&(_, last)| last != state)
        {
            self.states.push((self.now, state));
        }
    }

    fn drain(&mut self) {
        while let Some(segment) = self.a.poll_transmit(self.now) {
            let data = segment.payload.len();
            let fate = if data == 0 { Fate::Pass } else { self.fates.pop_front().unwrap_or(Fate::Pass) };
            let (lost, late) = match fate {
                Fate::Pass => (false, Duration::ZERO),
                Fate::Drop => (true, Duration::ZERO),
                Fate::Delay(late) => (false, late),
            };
            if let Some(at) = self.transmit(data)
                && !lost
            {
                let at = at + self.link.round_trip / 2 + late;
                let place = self.in_flight[0].partition_point(|&(other, _)| other <= at);
                self.in_flight[0].insert(place, (at, segment));
            }
        }
        while let Some(segment) = self.b.poll_transmit(self.now) {
            let since_start = self.now.since(Instant::ZERO);
            let release = self.ack_period.map_or(since_start, |period| since_start.round_up_to(period));
            let at = Instant::ZERO + release + self.link.round_trip / 2;
            let acks = &mut self.in_flight[1];
            acks.pop_back_if(|(other, _)| self.ack_period.is_some() && *other == at);
            acks.push_back((at, segment));
        }
        while self.b.recv().is_some() {}
        while self.a.poll_event().is_some() {}
        while self.b.poll_event().is_some() {}
    }

    /// Changes the rate of the link, for the packets in its queue as well.
    fn set_rate(&mut self, bits_per_sec: u64) {
        let (old, now) = (self.link.bits_per_sec, self.now);
        let stretch = |at: Instant, from: Instant| {
            let wait = at.since(from).as_secs_f64() * old as f64 / bits_per_sec as f64;
            from + Duration::from_secs_f64(wait)
        };
        for at in self.bottleneck_queue.iter_mut().filter(|at| **at > now) {
            *at = stretch(*at, now);
        }
        let past_queue = now + self.link.round_trip / 2;
        for (at, _) in self.in_flight[0].iter_mut().filter(|(at, _)| *at > past_queue) {
            *at = stretch(*at, past_queue);
        }
        self.link.bits_per_sec = bits_per_sec;
    }

    /// Lets the application provide what is due.
    fn supply_data(&mut self) {
        match self.supply {
            Supply::Off => {}
            Supply::Bulk => {
                let unsent = self.a.snd.queue.end() - self.a.snd.nxt;
                if unsent < BULK_BYTES {
                    self.send(BULK_BYTES - unsent);
                }
            }
            Supply::Chunks { bytes, every, next } if next <= self.now => {
                self.supply = Supply::Chunks { bytes, every, next: next + every };
                self.send(bytes);
            }
            Supply::Chunks { .. } => {}
        }
    }

    /// Returns the departure time of a segment of `len` bytes at the bottleneck; `None`: it is dropped.
    fn transmit(&mut self, len: u64) -> Option<Instant> {
        let size = len + HEADERS;
        if let Some(policer) = self.link.policer {
            let (tokens, since) = self.tokens;
            let fresh = self.now.since(since).as_secs_f64() * policer.bits_per_sec as f64 / 8.0;
            let tokens = (tokens + fresh).min(policer.bucket_bytes);
            let taken = if tokens < size as f64 { 0.0 } else { size as f64 };
            self.tokens = (tokens - taken, self.now);
            if taken < 1.0 {
                return None;
            }
        }
        while self.bottleneck_queue.pop_front_if(|at| *at <= self.now).is_some() {}
        if self.bottleneck_queue.len() > self.link.queue {
            return None;
        }
        let free = self.bottleneck_queue.back().copied().unwrap_or(self.now).max(self.now);
        let through = free + Duration::of_bits(8 * size, self.link.bits_per_sec);
        self.bottleneck_queue.push_back(through);
        self.max_queue = self.max_queue.max(self.bottleneck_queue.len());
        (self.random.unit() >= self.link.loss || len == 0).then_some(through)
    }
}
