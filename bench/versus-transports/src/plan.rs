//! Plan of the measurement: links, duration and repetitions.

use crate::peer::{Peer, Steadiness};
use crate::variation::{OutageLength, Variation};
use clap::ValueEnum;
use hopline_core::Duration;
use hopline_link::{DelayDistribution, Emulation, Opportunities};
use std::sync::Arc;

/// Loss ratio from which on erratic transports are run with more seeds.
const HEAVY_LOSS: f64 = 0.1;

/// Part of the measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Part {
    /// Emulated links that do not change.
    Links,
    /// Emulated links with a rate or a delay that changes, or with outages.
    Varying,
    /// Many flows of one transport over one link.
    Crowds,
    /// No loss, no limit: goodput, and processor time.
    Cable,
}

/// A bottleneck, and the transports measured over it.
#[derive(Debug, PartialEq)]
pub(crate) struct Bottleneck {
    /// Part of the measurement that has this bottleneck.
    pub(crate) part: Part,
    /// Rate, both ways, bit/s of IP packets.
    pub(crate) rate: u64,
    /// Queue, packets.
    pub(crate) queue: usize,
    /// Runs of a steady transport over each link.
    pub(crate) seeds: u64,
    /// Concurrent runs: as many as two cores can keep on time.
    pub(crate) parallel: usize,
    /// Seconds of a run of the full plan.
    seconds: f64,
    /// Seconds of a run of the short plan.
    quick_seconds: f64,
    /// Names of transports that are not measured.
    absent: &'static [&'static str],
}

/// Capacity of a few radio hops.
pub(crate) static SLOW: Bottleneck = Bottleneck {
    part: Part::Links,
    rate: 2_000_000,
    queue: 50,
    seeds: 2,
    parallel: 12,
    seconds: 12.0,
    quick_seconds: 5.0,
    absent: &[],
};

/// Capacity of a good radio or a mobile network. TPA's windows of two and three segments are meant for few
/// hops.
pub(crate) static FAST: Bottleneck = Bottleneck {
    part: Part::Links,
    rate: 20_000_000,
    queue: 100,
    seeds: 8,
    parallel: 6,
    seconds: 12.0,
    quick_seconds: 5.0,
    absent: &["tcp-reno", "tpa-2", "tpa-3"],
};

/// The fast bottleneck, with longer runs for changes over time.
pub(crate) static VARYING: Bottleneck = Bottleneck {
    part: Part::Varying,
    rate: 20_000_000,
    queue: 100,
    seeds: 5,
    parallel: 6,
    seconds: 20.0,
    quick_seconds: 8.0,
    absent: &["tpa-2", "tpa-3"],
};

/// The fast bottleneck, for crowds of flows.
pub(crate) static CROWDED: Bottleneck = Bottleneck {
    part: Part::Crowds,
    rate: 20_000_000,
    queue: 100,
    seeds: 3,
    parallel: 3,
    seconds: 20.0,
    quick_seconds: 8.0,
    absent: &["tpa-2", "tpa-3"],
};

/// Half of [`CROWDED`].
pub(crate) static CROWDED_SLOW: Bottleneck = Bottleneck { rate: 10_000_000, ..CROWDED };

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
    /// Change over time.
    pub(crate) variation: Variation,
    /// Flows that begin together.
    pub(crate) flows: u16,
}

impl Condition {
    const fn clean(bottleneck: &'static Bottleneck, delay_ms: u64) -> Self {
        Self {
            bottleneck,
            delay_ms,
            loss: 0.0,
            burst: None,
            reorder: 0.0,
            ack_loss: 0.0,
            variation: Variation::Constant,
            flows: 1,
        }
    }

    /// Returns rate and delay, as in tables.
    pub(crate) fn link_name(&self) -> String {
        format!("{} Mb/s, {} ms one way", self.bottleneck.rate / 1_000_000, self.delay_ms)
    }

    /// Returns its name in tables: without rate and delay, where a table has one of them.
    pub(crate) fn name(&self) -> String {
        match self.bottleneck.part {
            Part::Varying => self.variation.name(self.bottleneck.rate, self.delay_ms),
            Part::Crowds => format!("{} flows, {} Mb/s", self.flows, self.bottleneck.rate / 1_000_000),
            Part::Links | Part::Cable => self.impairment_name(),
        }
    }

    fn impairment_name(&self) -> String {
        let percent = |share: f64| (share * 100.0).round();
        let data = match (self.burst, self.reorder > 0.0) {
            (_, true) => format!("reorder {} %", percent(self.reorder)),
            (Some(_), _) => format!("bursts {} %", percent(self.loss)),
            (None, _) => format!("loss {} %", percent(self.loss)),
        };
        if self.ack_loss > 0.0 { format!("{data}, ACKs {} %", percent(self.ack_loss)) } else { data }
    }

    /// Returns the link: forward and backward. A variation by a trace has `trace`.
    pub(crate) fn link(&self, trace: &Arc<Opportunities>) -> [Emulation; 2] {
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
        self.variation.apply([forth, clean.with_loss(self.ack_loss)], trace)
    }
}

/// The whole plan.
pub(crate) struct Plan {
    /// Links, those of a part and of a bottleneck together.
    pub(crate) conditions: Vec<Condition>,
    /// Duration of each run in seconds, connection set-up included, in place of those of the bottlenecks.
    pub(crate) seconds: Option<f64>,
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
    pub(crate) fn full(seconds: Option<f64>, effort: Effort) -> Self {
        let conditions = [5, 25].into_iter().flat_map(slow).chain(fast()).chain(varying()).chain(crowds());
        Self { conditions: conditions.collect(), seconds, effort }
    }

    /// Returns a short plan with a few links.
    pub(crate) fn quick(seconds: Option<f64>) -> Self {
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
        let conditions = conditions.chain(varying().take(1)).chain(crowds().take(1));
        Self { conditions: conditions.collect(), seconds, effort: Effort::Quick }
    }

    /// Returns the links of a part.
    pub(crate) fn links_of(&self, part: Part) -> Vec<Condition> {
        self.conditions.iter().filter(|condition| condition.bottleneck.part == part).copied().collect()
    }

    /// Returns the duration of a run over `bottleneck` in seconds.
    pub(crate) fn seconds(&self, bottleneck: &Bottleneck) -> f64 {
        self.seconds.unwrap_or(match self.effort {
            Effort::Quick => bottleneck.quick_seconds,
            Effort::AsPlanned | Effort::Seeds(_) => bottleneck.seconds,
        })
    }

    /// Returns the number of runs of a steady transport over each link of `bottleneck`.
    pub(crate) const fn seeds(&self, bottleneck: &Bottleneck) -> u64 {
        match self.effort {
            Effort::AsPlanned => bottleneck.seeds,
            Effort::Seeds(seeds) => seeds,
            Effort::Quick => 1,
        }
    }

    /// Returns the number of runs of `peer` under `condition`.
    pub(crate) fn runs(&self, peer: &dyn Peer, condition: &Condition) -> u64 {
        if condition.bottleneck.absent.contains(&peer.name()) {
            return 0;
        }
        let steady = self.seeds(condition.bottleneck);
        let erratic = match self.effort {
            Effort::AsPlanned | Effort::Seeds(_) => steady.max(8),
            Effort::Quick => 3,
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

fn varying() -> impl Iterator<Item = Condition> {
    let variations = [
        (Variation::RateSteps, 25),
        (Variation::RandomWalk, 25),
        (Variation::Trace, 25),
        (Variation::Outages(OutageLength::Short), 25),
        (Variation::Outages(OutageLength::Long), 25),
        (Variation::DelayStep, 10),
    ];
    variations
        .into_iter()
        .map(|(variation, delay_ms)| Condition { variation, ..Condition::clean(&VARYING, delay_ms) })
}

fn crowds() -> impl Iterator<Item = Condition> {
    let crowds = [(&CROWDED, 16), (&CROWDED, 32), (&CROWDED_SLOW, 32)];
    crowds.into_iter().map(|(bottleneck, flows)| Condition { flows, ..Condition::clean(bottleneck, 25) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::peers;

    fn full() -> Plan {
        Plan::full(None, Effort::AsPlanned)
    }

    #[test]
    fn every_link_has_a_name_of_its_own() {
        for plan in [full(), Plan::quick(None)] {
            let mut names: Vec<_> = plan.conditions.iter().map(|c| (c.link_name(), c.name())).collect();
            let n = names.len();
            names.sort();
            names.dedup();
            assert_eq!(names.len(), n);
        }
    }

    #[test]
    fn links_of_a_bottleneck_stand_together() {
        for plan in [full(), Plan::quick(None)] {
            let groups = plan.conditions.chunk_by(|a, b| a.bottleneck == b.bottleneck);
            let groups: Vec<_> = groups.map(|group| group[0].bottleneck).collect();
            let all = [&SLOW, &FAST, &VARYING, &CROWDED, &CROWDED_SLOW];
            assert_eq!(groups, all[..groups.len()]);
        }
    }

    #[test]
    fn each_part_has_its_links_and_the_short_plan_one_varying_link_and_one_crowd() {
        let names = |plan: &Plan, part| plan.links_of(part).iter().map(Condition::name).collect::<Vec<_>>();
        let (full, quick) = (full(), Plan::quick(None));
        assert_eq!(
            names(&full, Part::Varying),
            [
                "steps 20 ↔ 2 Mb/s",
                "random walk",
                "trace",
                "outages of 0.5 s",
                "outage of 3 s",
                "delay 10 → 100 ms"
            ]
        );
        assert_eq!(
            names(&full, Part::Crowds),
            ["16 flows, 20 Mb/s", "32 flows, 20 Mb/s", "32 flows, 10 Mb/s"]
        );
        assert_eq!(names(&quick, Part::Varying), ["steps 20 ↔ 2 Mb/s"]);
        assert_eq!(names(&quick, Part::Crowds), ["16 flows, 20 Mb/s"]);
        assert_eq!((full.links_of(Part::Cable).len(), quick.links_of(Part::Links).len()), (0, 10));
    }

    #[test]
    fn only_a_crowd_has_several_flows_and_only_a_varying_link_changes() {
        for condition in full().conditions {
            let part = condition.bottleneck.part;
            assert_eq!(condition.flows > 1, part == Part::Crowds);
            assert_eq!(condition.variation != Variation::Constant, part == Part::Varying);
        }
    }

    #[test]
    fn the_durations_are_those_of_the_bottleneck_unless_one_is_given() {
        let all = [&SLOW, &VARYING, &CROWDED];
        let of = |plan: Plan| all.map(|bottleneck| plan.seconds(bottleneck));
        assert_eq!(of(full()), [12.0, 20.0, 20.0]);
        assert_eq!(of(Plan::quick(None)), [5.0, 8.0, 8.0]);
        assert_eq!(of(Plan::full(Some(3.0), Effort::AsPlanned)), [3.0; 3]);
    }

    /// The measurement should not take much over an hour, of which the fixed links and the cable take 40 minutes.
    #[test]
    fn varying_links_and_crowds_take_less_than_half_an_hour() {
        let plan = full();
        let seconds = |condition: &Condition| {
            let runs: u64 = peers::all().iter().map(|peer| plan.runs(peer.as_ref(), condition)).sum();
            runs as f64 * plan.seconds(condition.bottleneck) / condition.bottleneck.parallel as f64
        };
        let sum: f64 = [Part::Varying, Part::Crowds]
            .into_iter()
            .flat_map(|part| plan.links_of(part))
            .map(|c| seconds(&c))
            .sum();
        assert!((600.0..1800.0).contains(&sum), "{sum} s");
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
        let few = Plan::full(None, Effort::Seeds(3));
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
        let trace = Arc::new("1".parse().expect("a trace"));
        for condition in full().conditions {
            let [forth, back] = condition.link(&trace);
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
