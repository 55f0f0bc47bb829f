//! Saturation throughput of the DCF in closed form.
//!
//! Two readings of one Markov chain. [`BackoffModel::Bianchi2000`] is the original: G. Bianchi, "Performance Analysis of the
//! IEEE 802.11 Distributed Coordination Function", IEEE JSAC 18(3), 2000; a busy period counts down one slot, and
//! retries never end. [`BackoffModel::Frozen`] is the DCF as standardised: I. Tinnirello, G. Bianchi, Y. Xiao, "Refinements on
//! IEEE 802.11 Distributed Coordination Function Modeling Approaches", IEEE Trans. Veh. Technol. 59(3), 2010; the
//! counter stands still while the medium is busy, so that the slot after a busy period belongs to the station that has
//! just sent and has drawn no slots at all; and the retry limit ends each MSDU.

/// Backoff model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BackoffModel {
    Bianchi2000,
    Frozen,
}

/// The backoff of each station.
#[derive(Clone, Copy, Debug)]
pub(super) struct BackoffParameters {
    /// Values of the smallest backoff: CWmin + 1.
    pub(super) w: f64,
    /// Doublings up to CWmax.
    pub(super) doublings: u32,
    /// Attempts before an MSDU is given up; [`BackoffModel::Frozen`] only.
    pub(super) attempts: u32,
}

/// Time for which the medium is occupied, in µs, interframe spaces included.
#[derive(Clone, Copy, Debug)]
pub(super) struct Occupancy {
    pub(super) slot: f64,
    pub(super) success: f64,
    pub(super) collision: f64,
}

/// Probabilities that a station sends in a slot, and that a frame sent collides.
#[derive(Clone, Copy, Debug)]
pub(super) struct OperatingPoint {
    pub(super) transmit_probability: f64,
    pub(super) collision_probability: f64,
}

impl BackoffParameters {
    /// Values at attempt `i`, from 0.
    fn window(&self, i: u32) -> f64 {
        self.w * f64::from(1 << i.min(self.doublings))
    }

    /// τ as a function of p.
    fn send_probability(&self, chain: BackoffModel, p: f64) -> f64 {
        match chain {
            // Bianchi 2000, eq. (7), written as a sum so that p = 1/2 is no special case.
            BackoffModel::Bianchi2000 => {
                let sum: f64 = (0..self.doublings).map(|i| (2.0 * p).powi(i as i32)).sum();
                2.0 / (1.0 + self.w + p * self.w * sum)
            }
            // Tinnirello et al. 2010, §III: the mean wait over the stages that an MSDU visits. A counter drawn among
            // 1 … W − 1 has W/2 − 1 slots to wait: its first passes within the busy period.
            BackoffModel::Frozen => {
                let visits = |i: u32| p.powi(i as i32);
                let all: f64 = (0..self.attempts).map(visits).sum();
                let wait: f64 = (0..self.attempts).map(|i| visits(i) * (self.window(i) / 2.0 - 1.0)).sum();
                1.0 / (1.0 + wait / all)
            }
        }
    }

    /// Solves τ(p) and p = 1 − (1 − τ)ⁿ⁻¹ by bisection: the one falls with p, the other rises.
    pub(super) fn solve(&self, chain: BackoffModel, stations: u32) -> OperatingPoint {
        let collide = |send: f64| 1.0 - (1.0 - send).powi(stations as i32 - 1);
        let (mut low, mut high) = (0.0, 1.0);
        for _ in 0..100 {
            let p = (low + high) / 2.0;
            if collide(self.send_probability(chain, p)) > p { low = p } else { high = p }
        }
        OperatingPoint { transmit_probability: self.send_probability(chain, low), collision_probability: low }
    }

    /// Payload bits per µs that `stations` carry together, each with `payload_bits` in every frame.
    pub(super) fn throughput(
        &self,
        chain: BackoffModel,
        stations: u32,
        payload_bits: f64,
        time: Occupancy,
    ) -> f64 {
        let OperatingPoint { transmit_probability: send, .. } = self.solve(chain, stations);
        self.throughput_at(send, chain, stations, payload_bits, time)
    }

    /// The same where each sends in a slot with probability `send`.
    fn throughput_at(
        &self,
        send: f64,
        chain: BackoffModel,
        stations: u32,
        payload_bits: f64,
        time: Occupancy,
    ) -> f64 {
        let n = f64::from(stations);
        let idle = (1.0 - send).powf(n);
        let success = n * send * (1.0 - send).powf(n - 1.0);
        let collision = 1.0 - idle - success;
        match chain {
            BackoffModel::Bianchi2000 => {
                let mean = idle * time.slot + success * time.success + collision * time.collision;
                success * payload_bits / mean
            }
            BackoffModel::Frozen => {
                // After each success the same station goes on at once with probability 1/W.
                let in_a_row = 1.0 / (1.0 - 1.0 / self.w);
                let mean = idle * time.slot
                    + success * (time.success * in_a_row + time.slot)
                    + collision * (time.collision + time.slot);
                success * in_a_row * payload_bits / mean
            }
        }
    }
}

const DSSS: BackoffParameters = BackoffParameters { w: 32.0, doublings: 5, attempts: 7 };

#[test]
fn the_model_of_bianchi_2000_matches_its_closed_form() {
    for n in [2, 5, 10, 20, 50] {
        let OperatingPoint { transmit_probability: send, collision_probability: p } =
            DSSS.solve(BackoffModel::Bianchi2000, n);
        let closed = 2.0 * (1.0 - 2.0 * p) / ((1.0 - 2.0 * p) * 33.0 + p * 32.0 * (1.0 - (2.0 * p).powi(5)));
        assert!((send / closed - 1.0).abs() < 1e-9, "{n}: {send} {closed}");
        assert!((1.0 - (1.0 - send).powi(n as i32 - 1) - p).abs() < 1e-9);
    }
}

/// FHSS as in Table II of Bianchi 2000 (1 Mb/s, 50 µs slots, 8184 bits): a success takes 8982 µs and a collision
/// 8713 µs, and no probability of sending carries more than a share of 0.823 (§V).
#[test]
fn the_maximum_throughput_of_bianchi_2000_is_reproduced() {
    let (headers, ack) = (128.0 + 272.0, 112.0 + 128.0);
    let time = Occupancy {
        slot: 50.0,
        success: headers + 8184.0 + 28.0 + 1.0 + ack + 128.0 + 1.0,
        collision: headers + 8184.0 + 128.0 + 1.0,
    };
    assert_eq!((time.success, time.collision), (8982.0, 8713.0));
    let share = |send: f64| DSSS.throughput_at(send, BackoffModel::Bianchi2000, 100, 8184.0, time);
    let best = (1..10_000).map(|k| share(f64::from(k) * 1e-5)).fold(0.0, f64::max);
    assert!((best - 0.823).abs() < 0.002, "{best}");
}

#[test]
fn a_lone_station_waits_half_its_window() {
    let time = Occupancy { slot: 20.0, success: 1000.0, collision: 1000.0 };
    for chain in [BackoffModel::Bianchi2000, BackoffModel::Frozen] {
        let rate = DSSS.throughput(chain, 1, 1000.0, time);
        assert!((rate - 1000.0 / (1000.0 + 15.5 * 20.0)).abs() < 1e-9, "{chain:?} {rate}");
    }
}
