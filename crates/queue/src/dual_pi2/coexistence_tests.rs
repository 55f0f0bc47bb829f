//! Classic and scalable senders behind DualPI2: shares and delays by a model of both.

use super::*;
use crate::packet_access::testing::{Owner, Packet, data};
use std::collections::VecDeque;

/// The link serves a packet of 1000 bytes each 0.1 ms (80 Mb/s); a step of the model.
const STEP: Duration = Duration::from_micros(100);
/// Senders of each kind.
const OF_EACH_KIND: usize = 4;
/// Base round-trip time of all senders, in steps: 20 ms.
const ROUND_TRIP: u64 = 200;
const STEPS: u64 = 900_000;
/// Steps before the measurement.
const WARM_UP: u64 = 300_000;

#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    /// Halves its window once a round trip if a packet was dropped (RFC 5681).
    Reno,
    /// Reduces its window once a round trip by half the average share of marks (DCTCP, RFC 8257).
    Scalable,
}

/// Sender in congestion avoidance.
struct Sender {
    kind: Kind,
    window: f64,
    in_flight: u32,
    /// `DCTCP.Alpha`.
    average: f64,
    acked: u32,
    signals: u32,
    /// Step from which on the window may be reduced.
    round_end: u64,
    delivered: u32,
    windows: f64,
    delays_ms: Vec<f64>,
}

impl Sender {
    fn new(kind: Kind) -> Self {
        let (window, average, windows) = (20.0, 1.0, 0.0);
        let (in_flight, acked, signals, delivered) = (0, 0, 0, 0);
        Self {
            kind,
            window,
            in_flight,
            average,
            acked,
            signals,
            round_end: 0,
            delivered,
            windows,
            delays_ms: Vec::new(),
        }
    }

    fn on_feedback(&mut self, step: u64, signal: bool, sojourn: u64) {
        self.in_flight -= 1;
        self.acked += 1;
        self.signals += u32::from(signal);
        self.window += 1.0 / self.window;
        let round_trip = ROUND_TRIP + sojourn;
        match self.kind {
            Kind::Reno if signal && step >= self.round_end => {
                self.window = (self.window / 2.0).max(2.0);
                self.round_end = step + round_trip;
            }
            Kind::Scalable if step >= self.round_end => {
                let share = f64::from(self.signals) / f64::from(self.acked);
                self.average += (share - self.average) / 16.0;
                if self.signals > 0 {
                    self.window = (self.window * (1.0 - self.average / 2.0)).max(2.0);
                }
                (self.acked, self.signals, self.round_end) = (0, 0, step + round_trip);
            }
            Kind::Reno | Kind::Scalable => {}
        }
    }
}

/// Returns the senders after a run, Classic ones first.
fn run(config: DualPi2Config) -> Vec<Sender> {
    let mut queue = DualPi2::new(config, NonZeroU16::new(4000).unwrap());
    let kinds = [[Kind::Reno; OF_EACH_KIND], [Kind::Scalable; OF_EACH_KIND]];
    let mut senders: Vec<Sender> = kinds.concat().into_iter().map(Sender::new).collect();
    // Enqueue steps by packet number, and feedback: arrival step, sender, signal, time in the queue.
    let (mut sent, mut feedback) = (Vec::new(), VecDeque::new());
    for step in 0..STEPS {
        let now = Instant::ZERO + STEP.saturating_mul(step);
        while let Some(&(at, sender, signal, sojourn)) = feedback.front()
            && at <= step
        {
            feedback.pop_front();
            let sender: &mut Sender = &mut senders[sender];
            sender.on_feedback(step, signal, sojourn);
        }
        for (index, sender) in senders.iter_mut().enumerate() {
            while f64::from(sender.in_flight) < sender.window {
                let capability =
                    if sender.kind == Kind::Reno { EcnCapability::NotCapable } else { EcnCapability::L4s };
                let packet = Packet { capability, flow: index as u64, ..data(sent.len() as u32) };
                sent.push((step, index));
                sender.in_flight += 1;
                assert_eq!(queue.enqueue(now, packet, &Owner::default()), EnqueueResult::Accepted);
            }
            sender.windows += if step >= WARM_UP { sender.window } else { 0.0 };
        }
        let mut owner = Owner::default();
        let served = queue.dequeue(now, &mut owner);
        for number in owner.dropped {
            let (at, sender) = sent[number as usize];
            feedback.push_back((step + ROUND_TRIP, sender, true, step - at));
        }
        if let Some(packet) = served {
            let (at, sender) = sent[packet.number as usize];
            feedback.push_back((step + ROUND_TRIP, sender, packet.mark, step - at));
            if step >= WARM_UP {
                senders[sender].delivered += 1;
                senders[sender].delays_ms.push(0.1 * (step - at) as f64);
            }
        }
    }
    senders
}

/// Result of the senders of one kind.
struct Share {
    /// Average window in packets.
    window: f64,
    delivered: u32,
    median_delay_ms: f64,
}

/// Returns the results of Classic and of scalable senders.
fn shares(config: DualPi2Config) -> [Share; 2] {
    let senders = run(config);
    [&senders[..OF_EACH_KIND], &senders[OF_EACH_KIND..]].map(|senders| {
        let mut delays: Vec<f64> =
            senders.iter().flat_map(|sender| sender.delays_ms.iter().copied()).collect();
        delays.sort_unstable_by(f64::total_cmp);
        let windows: f64 = senders.iter().map(|sender| sender.windows).sum();
        Share {
            window: windows / ((STEPS - WARM_UP) as f64 * OF_EACH_KIND as f64),
            delivered: senders.iter().map(|sender| sender.delivered).sum(),
            median_delay_ms: delays[delays.len() / 2],
        }
    })
}

#[test]
fn coupling_gives_classic_and_scalable_senders_about_equal_windows() {
    let [classic, l4s] = shares(DualPi2Config::RFC9332);
    let ratio = l4s.window / classic.window;
    assert!((0.7..1.4).contains(&ratio), "{} and {} packets", l4s.window, classic.window);
    assert!(l4s.median_delay_ms < 0.5, "{} ms", l4s.median_delay_ms);
    assert!((13.0..18.0).contains(&classic.median_delay_ms), "{} ms", classic.median_delay_ms);
    let delivered = l4s.delivered + classic.delivered;
    assert!(u64::from(delivered) * 100 > (STEPS - WARM_UP) * 99, "{delivered} packets");
    // Half the marks let scalable senders have larger windows, twice the marks smaller ones.
    let of_coupling = |coupling| {
        let [classic, l4s] = shares(DualPi2Config { coupling, ..DualPi2Config::RFC9332 });
        l4s.window / classic.window
    };
    let (half, twice) = (of_coupling(1.0), of_coupling(4.0));
    assert!(half > 1.4 && twice < 0.6, "{half} and {twice}");
}
