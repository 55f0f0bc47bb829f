//! Plan of the measurement: links, duration and repetitions.

use crate::peer::{Peer, Steadiness};
use hopline_core::Duration;
use hopline_testkit::DelayDistribution;
use hopline_testkit::Emulation;

/// Loss ratio from which on erratic transports are run with more seeds.
const HEAVY_LOSS: f64 = 0.1;

/// A bottleneck, and the transports measured over it.
#[derive(Debug, PartialEq)]
pub(crate) struct Bottleneck {
    /// Rate, both ways, bit/s of IP packets.
    pub(crate) rate: u64,
    /// Queue, packets.
    pub(crate) queue: usize,
    /// Runs of a steady transport over each link.
    pub(crate) seeds: u64,
    /// Concurrent runs: as many as two cores can keep on time.
    pub(crate) parallel: usize,
    /// Names of transports that are not measured.
    absent: &'static [&'static str],
}

/// Capacity of a few radio hops.
pub(crate) static SLOW: Bottleneck =
    Bottleneck { rate: 2_000_000, queue: 50, seeds: 2, parallel: 12, absent: &[] };

/// Capacity of a good radio or a mobile network. TPA's windows of two and three segments are meant for few
/// hops.
pub(crate) static FAST: Bottleneck = Bottleneck {
    rate: 20_000_000,
    queue: 100,
    seeds: 8,
    parallel: 6,
    absent: &["tcp-reno", "tpa-2", "tpa-3"],
};

/// Impairments of the link. ACKs have the same rate, queue and latency; their loss is `ack_loss`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Condition {
    pub(crate) bottleneck: &'static Bottleneck,
    /// One-way delay, ms.
    pub(crate) delay_ms: u64,
    /// Loss ratio of data packets.
    pub(crate) loss: f64,
    /// Mean length of loss bursts, packets.
    pub(crate) burst: Option<f64>,
    /// Share of data packets with 30 ms additional delay.
    pub(crate) reorder: f64,
    /// Loss ratio of ACKs.
    pub(crate) ack_loss: f64,
}

impl Condition {
    const fn clean(bottleneck: &'static Bottleneck, delay_ms: u64) -> Self {
        Self { bottleneck, delay_ms, loss: 0.0, burst: None, reorder: 0.0, ack_loss: 0.0 }
    }

    /// Returns rate and delay, as in tables.
    pub(crate) fn link_name(&self) -> String {
        format!("{} Mb/s, {} ms one way", self.bottleneck.rate / 1_000_000, self.delay_ms)
    }

    /// Returns its name in tables, without rate and delay.
    pub(crate) fn name(&self) -> String {
        let percent = |share: f64| (share * 100.0).round();
        let data = match (self.burst, self.reorder > 0.0) {
            (_, true) => format!("reorder {} %", percent(self.reorder)),
            (Some(_), _) => format!("bursts {} %", percent(self.loss)),
            (None, _) => format!("loss {} %", percent(self.loss)),
        };
        if self.ack_loss > 0.0 { format!("{data}, ACKs {} %", percent(self.ack_loss)) } else { data }
    }

    /// Returns the link: forward and backward.
    pub(crate) fn link(&self) -> [Emulation; 2] {
        let clean = Emulation::delay(Duration::from_millis(self.delay_ms))
            .with_rate(Some(self.bottleneck.rate))
            .with_queue(Some(self.bottleneck.queue));
        let forth = clean
            .clone()
            .with_loss(self.loss)
            .with_burst(self.burst)
            .with_reorder(self.reorder)
            .with_extra_delay(Duration::from_millis(30))
            .with_extra_distribution(DelayDistribution::Fixed);
        [forth, clean.with_loss(self.ack_loss)]
    }
}

/// The whole plan.
pub(crate) struct Plan {
    /// Links, those of a bottleneck together.
    pub(crate) conditions: Vec<Condition>,
    /// Duration of each run in seconds, connection set-up included.
    pub(crate) seconds: f64,
    effort: Effort,
}

/// Number of seeds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// The bottleneck's number; at least eight for erratic transports at heavy loss.
    AsPlanned,
    /// This number; at least eight for erratic transports at heavy loss.
    Seeds(u64),
    /// One; three for erratic transports at heavy loss.
    Quick,
}

impl Plan {
    pub(crate) fn full(seconds: f64, effort: Effort) -> Self {
        let conditions = [5, 25].into_iter().flat_map(slow).chain(fast()).collect();
        Self { conditions, seconds, effort }
    }

    /// Returns a short plan with a few links.
    pub(crate) fn quick(seconds: f64) -> Self {
        let conditions = [&SLOW, &FAST].into_iter().flat_map(|bottleneck| {
            let clean = Condition::clean(bottleneck, 25);
            [
                clean,
                Condition { loss: 0.05, ..clean },
                Condition { loss: 0.2, ..clean },
                Condition { loss: 0.05, burst: Some(4.0), ..clean },
                Condition { reorder: 0.05, ..clean },
            ]
        });
        Self { conditions: conditions.collect(), seconds, effort: Effort::Quick }
    }

    /// Returns the number of runs of `peer` under `condition`.
    pub(crate) fn runs(&self, peer: &dyn Peer, condition: &Condition) -> u64 {
        if condition.bottleneck.absent.contains(&peer.name()) {
            return 0;
        }
        let (steady, erratic) = match self.effort {
            Effort::AsPlanned => (condition.bottleneck.seeds, condition.bottleneck.seeds.max(8)),
            Effort::Seeds(seeds) => (seeds, seeds.max(8)),
            Effort::Quick => (1, 3),
        };
        match peer.steadiness() {
            Steadiness::Erratic if condition.loss >= HEAVY_LOSS => erratic,
            _ => steady,
        }
    }
}

fn slow(delay_ms: u64) -> impl Iterator<Item = Condition> {
    let clean = Condition::clean(&SLOW, delay_ms);
    let lossy = [0.0, 0.01, 0.05, 0.1, 0.2].map(|loss| Condition { loss, ..clean });
    let bursts = [0.01, 0.05, 0.1].map(|loss| Condition { loss, burst: Some(4.0), ..clean });
    lossy.into_iter().chain(bursts).chain([Condition { reorder: 0.05, ..clean }])
}

fn fast() -> impl Iterator<Item = Condition> {
    let clean = Condition::clean(&FAST, 25);
    let lossy = [0.0, 0.01, 0.05, 0.1, 0.2, 0.3].map(|loss| Condition { loss, ..clean });
    let others = [
        Condition { loss: 0.1, burst: Some(4.0), ..clean },
        Condition { reorder: 0.05, ..clean },
        Condition { loss: 0.05, ack_loss: 0.1, ..clean },
    ];
    let near_and_far = [5, 100].into_iter().flat_map(|delay_ms| {
        [0.0, 0.05, 0.2].map(|loss| Condition { loss, ..Condition::clean(&FAST, delay_ms) })
    });
    lossy.into_iter().chain(others).chain(near_and_far)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers;

    fn full() -> Plan {
        Plan::full(12.0, Effort::AsPlanned)
    }

    #[test]
    fn every_link_has_a_name_of_its_own() {
        for plan in [full(), Plan::quick(5.0)] {
            let mut names: Vec<_> = plan.conditions.iter().map(|c| (c.link_name(), c.name())).collect();
            let n = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), n);
        }
    }

    #[test]
    fn links_of_a_bottleneck_stand_together() {
        for plan in [full(), Plan::quick(5.0)] {
            let rates: Vec<_> = plan.conditions.iter().map(|c| c.bottleneck.rate).collect();
            assert!(rates.is_sorted() && rates[0] < rates[rates.len() - 1], "{rates:?}");
        }
    }

    fn runs(plan: &Plan, bottleneck: &Bottleneck, peer: &str, loss: f64) -> u64 {
        let peers = peers::all();
        let peer = peers.iter().find(|p| p.name() == peer).expect("it is one of them");
        let mut conditions = plan.conditions.iter();
        let condition =
            conditions.find(|c| c.bottleneck == bottleneck && c.loss == loss && c.burst.is_none());
        plan.runs(peer.as_ref(), condition.expect("it is one of them"))
    }

    #[test]
    fn bbr_at_heavy_loss_is_run_eight_times_at_least() {
        let slow = |peer, loss| runs(&full(), &SLOW, peer, loss);
        assert_eq!([slow("tcp-bbr", 0.05), slow("tcp-bbr", 0.1), slow("quinn-bbr", 0.2)], [2, 8, 8]);
        assert_eq!([slow("tcp-cubic", 0.2), slow("kcp-fast", 0.2)], [2, 2]);
        let few = Plan::full(12.0, Effort::Seeds(3));
        assert_eq!([runs(&few, &FAST, "tcp-bbr", 0.3), runs(&few, &FAST, "tpa-wide", 0.3)], [8, 3]);
    }

    #[test]
    fn whoever_is_measured_over_a_fast_link_is_run_eight_times() {
        for peer in peers::all() {
            let at = |bottleneck| runs(&full(), bottleneck, peer.name(), 0.01);
            let expected = if FAST.absent.contains(&peer.name()) { 0 } else { 8 };
            assert_eq!((at(&SLOW), at(&FAST)), (2, expected), "{}", peer.name());
        }
    }

    #[test]
    fn acks_meet_loss_only_where_the_name_says_so() {
        for condition in full().conditions {
            let [forth, back] = condition.link();
            assert_eq!(
                (forth.loss(), forth.burst(), forth.reorder()),
                (condition.loss, condition.burst, condition.reorder)
            );
            let bottleneck = condition.bottleneck;
            assert_eq!(
                (back.reorder(), back.rate(), back.queue()),
                (0.0, Some(bottleneck.rate), Some(bottleneck.queue))
            );
            assert_eq!(back.loss() > 0.0, condition.name().contains("ACKs"));
            assert_eq!((forth.latency(), back.latency()), (back.latency(), forth.latency()));
        }
    }
}
