use super::*;
use crate::arq;
use crate::arq::DeliveryMode;
use crate::dproxy::opaque;
use core::num::NonZeroU8;
use hopline_core::{Duration, Purpose, RandomStream};
use hopline_wire::dproxy::tunnel::HANDSHAKE_LEN;
use proptest::prelude::*;
use std::collections::BTreeMap;

const KEY: Key = Key::new([7; 32]);
const DELAY: Duration = Duration::from_millis(2);

fn nack_recovery() -> RecoveryScheme {
    RecoveryScheme::Nack(opaque::Config::default())
}

fn arq_recovery() -> RecoveryScheme {
    RecoveryScheme::Arq(arq::Config::default())
}

/// Two ends, and the datagrams in flight between them.
struct Network {
    ends: [Tunnel; 2],
    now: Instant,
    /// One-way delay.
    delay: Duration,
    in_flight: BTreeMap<(Instant, u64), (usize, Bytes)>,
    sent: u64,
    /// Packets that have crossed, by the end at which they arrived.
    delivered: [Vec<Bytes>; 2],
    /// All datagrams ever sent, by destination.
    recorded: Vec<(usize, Bytes)>,
    loss: f64,
    random: RandomStream,
}

impl Network {
    fn new(repairs: [RecoveryScheme; 2], keys: [Key; 2]) -> Self {
        let end = |at: usize| Tunnel::new(Config { key: keys[at], recovery: repairs[at] }, 100 + at as u64);
        Self {
            ends: [end(0), end(1)],
            now: Instant::from_secs(1),
            delay: DELAY,
            in_flight: BTreeMap::new(),
            sent: 0,
            delivered: Default::default(),
            recorded: Vec::new(),
            loss: 0.0,
            random: RandomStream::keyed(1, 0, 0, Purpose::Emulation),
        }
    }

    fn with_recovery(repair: RecoveryScheme) -> Self {
        let mut net = Self::new([repair; 2], [KEY; 2]);
        net.run_ms(100);
        net
    }

    /// Restarts an end as another incarnation.
    fn restart(&mut self, at: usize, repair: RecoveryScheme, life: u64) {
        self.ends[at] = Tunnel::new(Config { key: KEY, recovery: repair }, life);
    }

    fn send(&mut self, from: usize, packet: impl Into<Bytes>) {
        self.ends[from].send(self.now, packet.into());
        self.drain();
    }

    fn run_ms(&mut self, ms: u64) {
        self.drain();
        let until = self.now + Duration::from_millis(ms);
        loop {
            let arrival = self.in_flight.keys().next().map(|key| key.0);
            let timers = self.ends.iter().filter_map(Tunnel::poll_timeout);
            let Some(next) = arrival.into_iter().chain(timers).min().filter(|next| *next <= until) else {
                break;
            };
            self.now = self.now.max(next);
            while let Some(first) = self.in_flight.first_entry().filter(|first| first.key().0 <= self.now) {
                let (to, datagram) = first.remove();
                self.ends[to].handle_datagram(self.now, &datagram);
            }
            let now = self.now;
            self.ends.iter_mut().for_each(|end| end.handle_timeout(now));
            self.drain();
        }
        self.now = until;
    }

    fn drain(&mut self) {
        for from in [0, 1] {
            while let Some(does) = self.ends[from].poll_action() {
                match does {
                    TunnelAction::Deliver(packet) => self.delivered[from].push(packet),
                    TunnelAction::SendDatagram { datagram, .. } => {
                        let datagram = Bytes::from(datagram);
                        self.recorded.push((1 - from, datagram.clone()));
                        if !self.random.bernoulli(self.loss) {
                            self.sent += 1;
                            self.in_flight.insert((self.now + self.delay, self.sent), (1 - from, datagram));
                        }
                    }
                }
            }
        }
    }

    fn is_ready(&self) -> bool {
        self.ends.iter().all(Tunnel::is_ready)
    }
}

fn packet(n: u32) -> Bytes {
    Bytes::from(n.to_be_bytes().repeat(1 + n as usize % 300))
}

#[test]
fn simultaneous_ends_have_a_session_after_two_rtts() {
    for repair in [nack_recovery(), arq_recovery()] {
        let mut net = Network::new([repair; 2], [KEY; 2]);
        net.run_ms(8);
        assert!(net.is_ready());
        assert_eq!(net.ends.each_ref().map(|end| end.stats().sessions), [1, 1]);
        net.run_ms(9_000);
        let greetings = net.ends.each_ref().map(|end| end.stats().handshakes);
        assert!(greetings.iter().all(|count| *count <= 4), "and say no more then: {greetings:?}");
    }
}

#[test]
fn end_without_peer_sends_handshakes_and_drops_packets() {
    let mut net = Network::new([nack_recovery(); 2], [KEY; 2]);
    net.loss = 1.0;
    net.run_ms(10_000);
    net.send(0, packet(1));
    let Stats { handshakes: greetings, without_peer, packets, .. } = net.ends[0].stats();
    assert_eq!((packets, without_peer), (1, 1));
    assert!((10..17).contains(&greetings), "{greetings}");
}

#[test]
fn losses_are_repaired_in_both_directions() {
    for repair in [nack_recovery(), arq_recovery()] {
        let mut net = Network::with_recovery(repair);
        net.loss = 0.2;
        for n in 0..500 {
            net.send(0, packet(n));
            net.send(1, packet(n + 1000));
            net.run_ms(1);
        }
        net.loss = 0.0;
        net.run_ms(1_000);
        assert_eq!(net.delivered[1], (0..500).map(packet).collect::<Vec<_>>());
        assert_eq!(net.delivered[0], (1000..1500).map(packet).collect::<Vec<_>>());
        assert!(net.ends[0].stats().retransmitted > 100);
    }
}

#[test]
fn lossless_link_has_no_retransmissions() {
    for repair in [nack_recovery(), arq_recovery()] {
        let mut net = Network::with_recovery(repair);
        for n in 0..500 {
            net.send(0, packet(n));
            net.send(1, packet(n + 1000));
            net.run_ms(1);
        }
        net.run_ms(1_000);
        assert_eq!(net.delivered.each_ref().map(Vec::len), [500, 500]);
        assert_eq!(net.ends.each_ref().map(|end| end.stats().retransmitted), [0, 0], "{repair:?}");
    }
}

#[test]
fn parity_restores_packets() {
    let count = NonZeroU8::new(4).unwrap();
    let parity = opaque::Parity::Adaptive { min_group: count, max_group: count };
    let mut net =
        Network::with_recovery(RecoveryScheme::Nack(opaque::Config { parity, ..Default::default() }));
    net.loss = 0.1;
    for n in 0..1000 {
        net.send(0, packet(n));
        net.run_ms(1);
    }
    net.loss = 0.0;
    net.run_ms(1_000);
    assert_eq!(net.delivered[1], (0..1000).map(packet).collect::<Vec<_>>());
    assert!(net.ends[1].stats().restored > 20, "{:?}", net.ends[1].stats());
}

#[test]
fn restarted_end_gets_a_new_session() {
    for (repair, who) in
        [(nack_recovery(), 0), (nack_recovery(), 1), (arq_recovery(), 0), (arq_recovery(), 1)]
    {
        let mut net = Network::with_recovery(repair);
        (0..50).for_each(|n| net.send(0, packet(n)));
        net.run_ms(100);
        net.restart(who, repair, 999);
        net.run_ms(12);
        assert!(net.is_ready(), "after three round trips");
        (50..100).for_each(|n| net.send(0, packet(n)));
        net.run_ms(100);
        assert_eq!(net.delivered[1], (0..100).map(packet).collect::<Vec<_>>());
        assert_eq!(net.ends[1 - who].stats().sessions, 2);
    }
}

#[test]
fn replayed_datagrams_have_no_effect() {
    for repair in [nack_recovery(), arq_recovery()] {
        let mut net = Network::with_recovery(repair);
        for life in [200, 201, 202] {
            (0..20).for_each(|n| net.send(0, packet(n)));
            (0..20).for_each(|n| net.send(1, packet(n)));
            net.run_ms(500);
            net.restart(life as usize % 2, repair, life);
            net.run_ms(500);
        }
        let (delivered, sessions) =
            (net.delivered.clone(), net.ends.each_ref().map(|end| end.stats().sessions));
        let recorded = core::mem::take(&mut net.recorded);
        for (to, datagram) in recorded.iter().chain(recorded.iter().rev()) {
            let now = net.now;
            net.ends[*to].handle_datagram(now, datagram);
            // Also replay it to the end that sent it.
            net.ends[1 - *to].handle_datagram(now, datagram);
            net.run_ms(1);
        }
        assert_eq!(net.delivered, delivered);
        assert_eq!(net.ends.each_ref().map(|end| end.stats().sessions), sessions);
        assert!(net.is_ready());
        net.send(0, packet(7));
        net.run_ms(100);
        assert_eq!(net.delivered[1].len(), delivered[1].len() + 1, "and does no harm");
    }
}

#[test]
fn delayed_handshake_of_an_old_epoch_is_rejected() {
    let mut net = Network::with_recovery(nack_recovery());
    // An incarnation that answers the challenge, and is not heard.
    net.restart(1, nack_recovery(), 500);
    net.run_ms(0);
    net.recorded.clear();
    net.run_ms(5);
    let withheld: Vec<_> = net.recorded.iter().filter(|(to, _)| *to == 0).cloned().collect();
    assert!(!withheld.is_empty());
    net.in_flight.clear();
    net.restart(1, nack_recovery(), 501);
    net.run_ms(500);
    let sessions = net.ends[0].stats().sessions;
    for (to, datagram) in withheld {
        let now = net.now;
        net.ends[to].handle_datagram(now, &datagram);
        net.run_ms(10);
    }
    assert_eq!(net.ends[0].stats().sessions, sessions);
    net.send(0, packet(1));
    net.run_ms(100);
    assert_eq!(net.delivered[1], [packet(1)]);
}

#[test]
fn datagrams_with_another_key_are_counted() {
    let mut net = Network::new([nack_recovery(); 2], [KEY, Key::new([8; 32])]);
    net.run_ms(3_000);
    net.send(0, packet(1));
    net.run_ms(100);
    assert!(!net.ends[0].is_ready() && net.delivered[1].is_empty());
    let stats = net.ends[0].stats();
    assert!(stats.forged_handshakes > 3 && stats.sessions == 0, "{stats:?}");
}

#[test]
fn no_amplification_and_no_reply_without_proof() {
    let mut net = Network::with_recovery(nack_recovery());
    (0..20).for_each(|n| net.send(0, packet(n)));
    net.run_ms(100);
    let mut random = RandomStream::keyed(2, 0, 0, Purpose::Emulation);
    let recorded = net.recorded.clone();
    for _ in 0..100_000 {
        let (_, datagram) = &recorded[random.below(recorded.len() as u32) as usize];
        let mut forged = datagram.to_vec();
        let at = random.below(forged.len() as u32) as usize;
        forged[at] ^= 1 << random.below(8);
        net.ends[1].handle_datagram(net.now, &forged.into());
        assert_eq!(net.ends[1].poll_action(), None);
    }
    let Stats { malformed, forged, forged_handshakes: forged_greetings, .. } = net.ends[1].stats();
    assert!(malformed > 0 && forged > 10_000 && forged_greetings > 1_000);
    for (_, datagram) in recorded.iter().filter(|(to, datagram)| *to == 1 && datagram.len() == HANDSHAKE_LEN)
    {
        net.ends[1].handle_datagram(net.now, datagram);
        while let Some(does) = net.ends[1].poll_action() {
            assert!(
                matches!(&does, TunnelAction::SendDatagram { datagram, .. } if datagram.len() == HANDSHAKE_LEN),
                "{does:?}"
            );
        }
    }
}

#[test]
fn queue_drops_are_not_repaired() {
    let mut net = Network::with_recovery(nack_recovery());
    net.ends[0].send(net.now, packet(1));
    let Some(TunnelAction::SendDatagram { packet: Some(number), .. }) = net.ends[0].poll_action() else {
        panic!("a packet goes")
    };
    net.ends[0].on_queue_drop(number);
    net.send(0, packet(2));
    net.run_ms(100);
    assert_eq!((&net.delivered[1][..], net.ends[0].stats().refused), (&[packet(2)][..], 1));
}

#[test]
fn ends_with_different_recovery_schemes_report_it() {
    let mut net = Network::new([nack_recovery(), arq_recovery()], [KEY; 2]);
    net.run_ms(100);
    net.send(0, packet(1));
    net.run_ms(100);
    assert_eq!(net.delivered[1].len(), 0);
    let found = net.ends.each_ref().map(Tunnel::peer);
    assert_eq!(found, [MessageFormat::ArqFrames, MessageFormat::NackFrames].map(PeerStatus::OtherFormat));
}

#[test]
fn silent_end_is_absent_within_three_seconds_and_resumes() {
    let mut net = Network::with_recovery(nack_recovery());
    net.loss = 1.0;
    for n in 0..300 {
        net.send(0, packet(n));
        net.run_ms(10);
    }
    assert_eq!(net.ends[0].peer(), PeerStatus::Absent);
    net.loss = 0.0;
    net.run_ms(1_100);
    assert_eq!(net.ends.each_ref().map(Tunnel::peer), [PeerStatus::Present; 2]);
    assert_eq!(net.ends[0].stats().sessions, 1, "it is the same session");
    net.send(0, packet(7));
    net.run_ms(1_000);
    assert_eq!(net.delivered[1].last(), Some(&packet(7)));
}

#[test]
fn link_with_a_fifth_of_loss_stays_present() {
    let mut net = Network::with_recovery(nack_recovery());
    net.loss = 0.2;
    for n in 0..6_000 {
        net.send(0, packet(n));
        net.run_ms(10);
        assert_eq!(net.ends[0].peer(), PeerStatus::Present);
    }
}

/// Runs traffic from one end for this time. Returns the number of changes of each end's peer state, and the
/// time of the first end's last change.
fn run_with_traffic(
    net: &mut Network,
    ms: u64,
    mut each: impl FnMut(&mut Network),
) -> ([u32; 2], Option<Duration>) {
    let (began, mut last) = (net.now, None);
    let (mut counts, mut said) = ([0; 2], net.ends.each_ref().map(Tunnel::peer));
    for _ in 0..ms / 50 {
        each(net);
        net.run_ms(50);
        for at in [0, 1] {
            let is = net.ends[at].peer();
            if is != said[at] {
                (counts[at], said[at]) = (counts[at] + 1, is);
                if at == 0 {
                    last = Some(net.now.since(began));
                }
            }
        }
    }
    (counts, last)
}

const RTTS_MS: [u64; 4] = [100, 1_400, 2_000, 4_000];

fn send_one_packet(net: &mut Network) {
    net.send(0, packet(1));
}

#[test]
fn distant_end_stays_present() {
    for rtt in RTTS_MS {
        let mut net = Network::new([nack_recovery(); 2], [KEY; 2]);
        net.delay = Duration::from_millis(rtt / 2);
        net.run_ms(10_000 + 4 * rtt);
        for loss in [0.0, 0.1] {
            net.loss = loss;
            assert_eq!(
                run_with_traffic(&mut net, 60_000, send_one_packet).0,
                [0; 2],
                "{rtt} ms, traffic, {loss} lost"
            );
            assert_eq!(run_with_traffic(&mut net, 60_000, |_| ()).0, [0; 2], "{rtt} ms, idle, {loss} lost");
        }
        let greetings = net.ends[0].stats().handshakes;
        assert!(greetings < 2 * 240_000 / 150, "{rtt} ms: no more than are asked for: {greetings}");
    }
}

#[test]
fn distant_silent_end_is_absent_and_returns_once() {
    for (rtt, most) in RTTS_MS.into_iter().zip([2_700, 3_000, 3_000, 4_000]) {
        let mut net = Network::new([nack_recovery(); 2], [KEY; 2]);
        net.delay = Duration::from_millis(rtt / 2);
        net.run_ms(10_000 + 4 * rtt);
        let _ = run_with_traffic(&mut net, 20_000, send_one_packet);
        net.loss = 1.0;
        let (counts, last) = run_with_traffic(&mut net, 20_000, send_one_packet);
        assert_eq!((counts[0], net.ends[0].peer()), (1, PeerStatus::Absent), "{rtt} ms");
        assert!(
            last <= Some(Duration::from_millis(most)),
            "{rtt} ms: {:?} s",
            last.map(Duration::as_secs_f64)
        );
        net.loss = 0.0;
        let (counts, last) = run_with_traffic(&mut net, 20_000, send_one_packet);
        assert_eq!((counts[0], net.ends[0].peer()), (1, PeerStatus::Present), "{rtt} ms");
        assert!(
            last <= Some(Duration::from_millis(1_050 + rtt)),
            "{rtt} ms: {:?} s",
            last.map(Duration::as_secs_f64)
        );
    }
}

#[test]
fn sleeping_radio_stays_present() {
    let mut net = Network::new([nack_recovery(); 2], [KEY; 2]);
    let mut at = 0;
    // Datagrams sent while it sleeps arrive when it wakes, every 3 s.
    let mut sleep = |net: &mut Network| {
        at = (at + 50) % 3_000;
        net.delay = Duration::from_millis(3_000 - at + 10);
        net.send(0, packet(1));
    };
    let _ = run_with_traffic(&mut net, 60_000, &mut sleep);
    assert_eq!(run_with_traffic(&mut net, 120_000, &mut sleep).0, [0; 2]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn ends_reconnect_after_losses_and_restarts_without_duplicates(
        loss in 0.0f64..0.6,
        restarts in prop::collection::vec((0usize..2, 0u64..300), 0..6),
        asks in any::<bool>(),
        any_order in any::<bool>(),
        seed in any::<u64>(),
    ) {
        let order = if any_order { DeliveryMode::Any } else { DeliveryMode::InOrder };
        let repair = if asks {
            RecoveryScheme::Nack(opaque::Config { order, ..Default::default() })
        } else {
            RecoveryScheme::Arq(arq::Config { order, ..Default::default() })
        };
        let mut net = Network::new([repair; 2], [KEY; 2]);
        (net.loss, net.random) = (loss, RandomStream::keyed(seed, 0, 0, Purpose::Emulation));
        let mut n = 0;
        for (life, (who, ms)) in (1000..).zip(restarts) {
            for _ in 0..ms {
                net.send(0, packet(n));
                n += 1;
                net.run_ms(1);
            }
            net.restart(who, repair, life);
        }
        net.run_ms(30_000);
        net.loss = 0.0;
        net.run_ms(5_000);
        prop_assert!(net.is_ready());
        net.send(0, packet(n));
        net.run_ms(1_000);
        prop_assert_eq!(net.delivered[1].last(), Some(&packet(n)));
        let mut all = net.delivered[1].clone();
        all.sort();
        all.dedup();
        prop_assert_eq!(all.len(), net.delivered[1].len());
    }
}
