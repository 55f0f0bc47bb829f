//! Snoop and M-TCP: no ACK is ever sent for data that the mobile host has not acknowledged itself.

use crate::end_to_end::pair::Pair;
use crate::end_to_end::support::{emulations, endpoints, header, transports, wire, with_timestamp};
use bytes::Bytes;
use hopline_core::{Duration, Instant, Seq32};
use hopline_proxy::hop_window;
use hopline_proxy::mtcp::{self, Mtcp};
use hopline_proxy::snoop::{self, windowed};
use hopline_proxy::{Packet, Pep, Transmit, Verdict};
use hopline_testkit::transfer::{EndpointPair, Transfer};
use hopline_testkit::{Emulation, Side, Station, TwoLinks};
use hopline_transport::tcp::{self, ClosedWindow, Endpoint, LossDetection};
use hopline_wire::tcp::{Flags, SackBlock, Segment};
use proptest::prelude::*;
use std::collections::VecDeque;

/// A base station with a middlebox, which asserts its invariants.
pub(crate) struct FilterStation<M> {
    middlebox: M,
    create: Box<dyn Fn() -> M>,
    out: VecDeque<(Side, Segment<Bytes>)>,
    /// Highest acknowledgment of the mobile host.
    mobile_ack: Option<Seq32>,
    /// Its SACK blocks beyond that, latest last.
    mobile_sack: Vec<SackBlock>,
    /// Interval at which it loses all state.
    restart_interval: Option<Duration>,
    last_restart: Instant,
}

impl<M> FilterStation<M> {
    pub(crate) fn new(make: impl Fn() -> M + 'static, restarts: Option<Duration>) -> Self {
        let (machine, out) = (make(), VecDeque::new());
        Self {
            middlebox: machine,
            create: Box::new(make),
            out,
            mobile_ack: None,
            mobile_sack: Vec::new(),
            restart_interval: restarts,
            last_restart: Instant::ZERO,
        }
    }

    /// Asserts that the mobile host has reported all of a block, in any pieces.
    fn assert_sacked_by_mobile(&self, block: &SackBlock) {
        let mut left = block.left;
        while left.before(block.right) {
            let mut said = self.mobile_sack.iter().rev();
            let around = said.find(|said| !said.left.after(left) && said.right.after(left));
            left = around.unwrap_or_else(|| panic!("{block:?} was never said, from {left} on")).right;
        }
    }

    fn send_to_fixed(&mut self, segment: Segment<Bytes>) {
        if segment.flags.contains(Flags::ACK) && !segment.flags.contains(Flags::RST) {
            let told = self.mobile_ack.expect("the mobile host has sent an ACK");
            assert!(!segment.ack.after(told), "an ACK for {} where {told} was told", segment.ack);
        }
        self.out.push_back((Side::B, segment));
    }
}

impl<M: Pep<Segment<Bytes>>> Station<Segment<Bytes>> for FilterStation<M> {
    fn handle_packet(&mut self, now: Instant, from: Side, segment: Segment<Bytes>) {
        if self.restart_interval.is_some_and(|every| now.since(self.last_restart) >= every) {
            (self.middlebox, self.last_restart) = ((self.create)(), now);
        }
        let ip = header(from);
        let packet = Packet::new(&ip, &segment);
        match from {
            Side::A => match self.middlebox.handle_packet_to_mobile(now, packet, || segment.clone()) {
                Verdict::Absorb => {}
                _ => self.out.push_back((Side::A, segment)),
            },
            Side::B => {
                if segment.flags.contains(Flags::ACK) {
                    self.mobile_ack = Some(self.mobile_ack.map_or(segment.ack, |told| told.max(segment.ack)));
                    self.mobile_sack.extend(segment.options.sack.as_slice());
                }
                match self.middlebox.handle_packet_from_mobile(now, packet) {
                    Verdict::Absorb => assert!(segment.payload.is_empty(), "data are never absorbed"),
                    Verdict::Forward => self.send_to_fixed(segment),
                    Verdict::ForwardWith(says) => {
                        says.sack.as_slice().iter().for_each(|block| self.assert_sacked_by_mobile(block));
                        self.send_to_fixed(says.apply_to(&segment));
                    }
                }
            }
        }
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.middlebox.handle_timeout(now);
    }

    fn poll_transmit(&mut self, _now: Instant) -> Option<(Side, Segment<Bytes>)> {
        while let Some(transmit) = self.middlebox.poll_transmit() {
            match transmit {
                Transmit::Retransmission { packet: kept, tsval: clock, .. } => {
                    self.out.push_back((Side::A, with_timestamp(clock, kept)))
                }
                Transmit::Ack(ack) => self.send_to_fixed(ack.segment()),
                Transmit::Nack(nack) => self.out.push_back((Side::A, nack.segment())),
            }
        }
        self.out.pop_front()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.middlebox.poll_timeout()
    }
}

fn snoops() -> impl Strategy<Value = snoop::Config> {
    let preset = prop_oneof![
        Just(snoop::Config::published()),
        Just(snoop::Config::ns2()),
        Just(snoop::Config::modern())
    ];
    (preset, 1u16..64, any::<bool>(), any::<bool>()).prop_map(|(config, mark, small, window)| snoop::Config {
        hop_window: window.then_some(hop_window::Config::DEFAULT),
        high_water: if small { mark.try_into().expect("from 1 on") } else { config.high_water },
        ..config
    })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 2_000, ..ProptestConfig::default() })]

    #[test]
    fn transfer_completes_and_no_ack_is_ahead_of_the_mobile_host(
        config in snoops(),
        tcp in transports(),
        wireless in [emulations(), emulations()],
        restarts in prop::option::of(1u64..2000),
        totals in [0u64..200_000, 0u64..30_000],
        // Numbers wrap around in the middle.
        isns in [u32::MAX - 50_000..u32::MAX, 0..u32::MAX],
        seed in any::<u64>(),
    ) {
        let (ends, links) = (endpoints(tcp, isns), ([wire(), wire()], wireless));
        completes(move || windowed(config), restarts.map(Duration::from_millis), ends, links, totals, seed);
    }

    #[test]
    fn transfer_completes_past_mtcp_with_short_silence_timeout(
        silence in 5u64..400,
        tcp in transports(),
        persists in any::<bool>(),
        wireless in [emulations(), emulations()],
        restarts in prop::option::of(1u64..2000),
        totals in [0u64..200_000, 0u64..30_000],
        // Numbers wrap around in the middle.
        isns in [u32::MAX - 50_000..u32::MAX, 0..u32::MAX],
        seed in any::<u64>(),
    ) {
        let silence = Duration::from_millis(silence);
        let config = mtcp::Config { silence_timeout: silence, probe_interval: silence, ..mtcp::Config::default() };
        let closed_window = if persists { ClosedWindow::Persist } else { ClosedWindow::TimeOut };
        let tcp = match tcp.loss_detection() {
            LossDetection::DupAcks => tcp.with_closed_window(closed_window),
            LossDetection::Rack(_) => tcp,
        };
        let (ends, links) = (endpoints(tcp, isns), ([wire(), wire()], wireless));
        completes(move || Mtcp::new(config), restarts.map(Duration::from_millis), ends, links, totals, seed);
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 1_000, ..ProptestConfig::default() })]

    #[test]
    fn transfer_completes_past_two_middleboxes_in_either_order(
        config in snoops(),
        silence in 5u64..400,
        which in 0u8..3,
        tcp in transports(),
        wireless in [emulations(), emulations()],
        restarts in prop::option::of(1u64..2000),
        totals in [0u64..200_000, 0u64..30_000],
        isns in [u32::MAX - 50_000..u32::MAX, 0..u32::MAX],
        seed in any::<u64>(),
    ) {
        let silence = Duration::from_millis(silence);
        let mtcp = move || Mtcp::new(mtcp::Config { silence_timeout: silence, probe_interval: silence, ..mtcp::Config::default() });
        let snoop = move || windowed(config);
        let (ends, links) = (endpoints(tcp, isns), ([wire(), wire()], wireless));
        let restarts = restarts.map(Duration::from_millis);
        match which {
            0 => completes(move || Pair::new(mtcp(), snoop()), restarts, ends, links, totals, seed),
            1 => completes(move || Pair::new(snoop(), mtcp()), restarts, ends, links, totals, seed),
            _ => completes(move || Pair::new(snoop(), snoop()), restarts, ends, links, totals, seed),
        }
    }
}

/// Runs a transfer in both directions past a middlebox, to its end.
fn completes<M: Pep<Segment<Bytes>>>(
    make: impl Fn() -> M + 'static,
    restarts: Option<Duration>,
    (a, b): (Endpoint<Bytes>, Endpoint<Bytes>),
    (wired, wireless): ([Emulation; 2], [Emulation; 2]),
    totals: [u64; 2],
    seed: u64,
) {
    let middle = TwoLinks::new(a, FilterStation::new(make, restarts), b, wired, wireless, seed);
    let mut transfer = Transfer::of(middle, totals, |_| {});
    transfer.run(Instant::from_secs(4000));
    transfer.assert_complete();
}

/// Returns the time in which three megabytes arrive over a last hop with this loss. Its queue has room for
/// the window: no drops are reported, and retransmissions go last.
fn transfer_time(tcp: tcp::Config, config: snoop::Config, loss: f64) -> Duration {
    const TOTAL: u64 = 3_000_000;
    let forth = Emulation::default()
        .with_loss(loss)
        .with_latency(Duration::from_millis(2))
        .with_rate(Some(20_000_000));
    let tcp = tcp.with_window_clamp(Some(100));
    let back = forth.clone().with_loss(0.0);
    let (a, b) = endpoints(tcp, [1, 2]);
    let middle = TwoLinks::new(
        a,
        FilterStation::new(move || windowed(config), None),
        b,
        [wire(), wire()],
        [forth, back],
        5,
    );
    let mut transfer = Transfer::of(middle, [TOTAL, 0], |_| {});
    while transfer.received()[0] < TOTAL {
        transfer.run_users();
        assert!(transfer.pair.step(Instant::from_secs(2000)), "{config:?} over {tcp:?}");
    }
    transfer.pair.now().since(Instant::ZERO)
}

/// Configuration of a Snoop that does nothing.
pub(crate) fn no_op_snoop() -> snoop::Config {
    snoop::Config {
        high_water: 1.try_into().expect("not zero"),
        max_local_retransmissions: 0,
        ..snoop::Config::ns2()
    }
}

#[test]
fn modern_snoop_hides_ten_percent_loss() {
    let linux = tcp::Config::linux().with_sack();
    let (plain, hidden) =
        (transfer_time(linux, no_op_snoop(), 0.1), transfer_time(linux, snoop::Config::modern(), 0.1));
    assert!(hidden.as_nanos() * 3 < plain.as_nanos(), "{hidden:?} with, {plain:?} without");
}

#[test]
fn modern_snoop_is_no_worse_for_any_transport() {
    let hosts = [
        tcp::Config::linux().with_sack(),
        tcp::Config::modern().with_sack(),
        tcp::Config::modern().with_newreno(),
        tcp::Config::modern().with_reno(),
        tcp::Config::bsd(),
    ];
    for tcp in hosts {
        for loss in [0.0, 0.01, 0.05] {
            let (plain, with) =
                (transfer_time(tcp, no_op_snoop(), loss), transfer_time(tcp, snoop::Config::modern(), loss));
            assert!(
                with.as_nanos() * 10 <= plain.as_nanos() * 12,
                "{with:?} with, {plain:?} without: {loss} lost, {tcp:?}"
            );
        }
    }
}
