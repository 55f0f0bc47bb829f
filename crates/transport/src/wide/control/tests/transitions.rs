//! Transitions between the states: sequences in scripted situations, and at random.

use super::driver::{AckedPackets, Driver};
use crate::wide::Config;
use crate::wide::control::state::{TRANSITIONS, Transition};
use crate::wide::controller::{Controller, SendLimit};
use crate::wide::tests::bottleneck::{Bottleneck, bulk};
use crate::wide::tests::trajectories::bottlenecks;
use hopline_core::{Duration, Instant, Purpose, RandomStream};
use proptest::prelude::*;
use std::collections::BTreeSet;

const MS: fn(u64) -> Duration = Duration::from_millis;
const AT: fn(u64) -> Instant = Instant::from_secs;

/// Returns the states that are entered from `from` on, at most `most`, with their times in seconds.
fn states(bottleneck: &Bottleneck, from: u64, most: usize) -> Vec<String> {
    let mut entered = Vec::new();
    bulk(Config::DEFAULT, bottleneck, AT(20), |now, sender| {
        for (_, to) in sender.control.take_history() {
            if now >= AT(from) && entered.len() < most {
                entered.push(format!("{:.3} {to:?}", now.as_secs_f64()));
            }
        }
    });
    entered
}

#[test]
fn startup_ends_once_the_rate_of_the_link_is_found() {
    assert_eq!(states(&Bottleneck::new(), 0, 2), ["0.105 Startup", "0.305 Cruise"]);
}

#[test]
fn a_slower_link_is_drained_at_once_and_again_until_the_queue_is_gone() {
    let bottleneck = Bottleneck { rates: vec![(AT(0), 20e6), (AT(7), 10e6)], ..Bottleneck::new() };
    assert_eq!(
        states(&bottleneck, 7, 9),
        [
            "7.013 EvaluateDrain",
            "7.076 Cruise",
            "7.105 Drain",
            "7.196 EvaluateDrain",
            "7.196 Cruise",
            "7.358 Drain",
            "7.392 EvaluateDrain",
            "7.454 Cruise",
            "7.488 Drain"
        ]
    );
}

#[test]
fn cruise_alternates_with_short_drains() {
    assert_eq!(
        states(&Bottleneck::new(), 10, 6),
        [
            "10.114 Drain",
            "10.133 EvaluateDrain",
            "10.186 Cruise",
            "10.478 Drain",
            "10.497 EvaluateDrain",
            "10.550 Cruise"
        ]
    );
}

#[test]
fn losses_above_the_baseline_are_tested() {
    // A queue that is too short to be seen drops what a policer would.
    let states = states(
        &Bottleneck { queue: Duration::from_micros(900), loss: 0.08, ..Bottleneck::new() },
        0,
        usize::MAX,
    );
    let first = states.iter().position(|state| state.ends_with("ProbeLoss")).expect("a test");
    assert_eq!(
        states[first - 1..first + 3],
        ["0.725 Cruise", "1.113 ProbeLoss", "1.219 Cruise", "2.219 ProbeLoss"]
    );
}

#[test]
fn a_short_standing_queue_is_probed_for_competing_traffic() {
    let competing = Some((AT(6)..AT(18), Duration::from_micros(2500)));
    assert_eq!(
        states(&Bottleneck { competing, ..Bottleneck::new() }, 6, 24),
        [
            "6.026 Cruise",
            "6.458 Drain",
            "6.467 EvaluateDrain",
            "6.521 Cruise",
            "6.952 Drain",
            "6.962 EvaluateDrain",
            "7.016 Cruise",
            "7.447 Drain",
            "7.457 EvaluateDrain",
            "7.511 Cruise",
            "7.942 Drain",
            "7.951 EvaluateDrain",
            "8.005 Competitive"
        ]
    );
}

#[test]
fn a_queue_that_does_not_drain_starts_competitive_mode_and_its_end_ends_it() {
    let competing = Some((AT(6)..AT(10), MS(30)));
    // The window fills the link also without the competing flow; so the link becomes faster when that ends.
    let rates = vec![(AT(0), 20e6), (AT(10), 200e6)];
    let states = states(&Bottleneck { competing, rates, ..Bottleneck::new() }, 6, usize::MAX);
    let first = states.iter().position(|state| state.ends_with("Competitive")).expect("a competing flow");
    assert_eq!(first, 12, "four drains: {states:?}");
    assert_eq!(
        states[first - 3..first + 2],
        ["6.789 Cruise", "6.831 Drain", "6.939 EvaluateDrain", "7.020 Competitive", "10.240 Cruise"]
    );
}

#[test]
fn a_long_outage_leads_back_to_startup_and_a_short_one_does_not() {
    let short = Bottleneck { outage: Some(AT(6)..AT(7)), ..Bottleneck::new() };
    assert_eq!(states(&short, 6, 4), ["7.156 Cruise", "7.397 Drain", "7.416 EvaluateDrain", "7.471 Cruise"]);
    let long = Bottleneck { outage: Some(AT(6)..AT(11)), ..Bottleneck::new() };
    assert_eq!(states(&long, 6, 4), ["11.156 Cruise", "11.156 Startup", "11.467 Cruise", "11.534 Drain"]);
}

/// Returns the transitions of a controller under random acknowledgments, outages and changes of the path.
fn at_random(seed: u64, steps: usize) -> BTreeSet<Transition> {
    let mut random = RandomStream::global(seed, 0, Purpose::Emulation);
    let mut driver = Driver::new();
    let mut sample = BTreeSet::new();
    let (mut delay_ms, mut loss) = (0, 0);
    for _ in 0..steps {
        match random.below(400) {
            0 => driver.control.restart(driver.now, driver.number + 100),
            1 => driver.control.discard_samples(),
            2 => driver.control.on_loss(random.below(20).into()),
            3..=7 => delay_ms = [0, 0, 1, 4, 40][random.below(5) as usize],
            8..=10 => loss = [0, 0, 1, 3][random.below(4) as usize],
            _ => {}
        }
        driver.acknowledge(AckedPackets {
            after: Duration::from_micros(u64::from(random.below(4000)) + 1),
            delay: MS(delay_ms) + Duration::from_micros(random.below(200).into()),
            packets: u64::from(random.below(5)),
            lost: u64::from(random.below(4) * loss / 3),
            marks: u32::from(random.below(300) == 0),
            limit: if random.below(200) == 0 { SendLimit::Application } else { SendLimit::Path },
            base_age: Duration::from_secs(if random.below(400) == 0 { 60 } else { 0 }),
        });
        sample.extend(driver.control.take_history());
    }
    sample
}

#[test]
fn every_documented_transition_occurs_and_no_other() {
    let mut sample: BTreeSet<_> = (0..8).flat_map(|seed| at_random(seed, 60_000)).collect();
    let outage_beside_competing = Bottleneck {
        competing: Some((AT(4)..AT(20), MS(30))),
        outage: Some(AT(9)..AT(14)),
        ..Bottleneck::new()
    };
    let all = bottlenecks().into_iter().map(|(_, bottleneck)| bottleneck).chain([outage_beside_competing]);
    for bottleneck in all {
        bulk(Config::DEFAULT, &bottleneck, AT(20), |_, sender| sample.extend(sender.control.take_history()));
    }
    assert_eq!(sample, BTreeSet::from(TRANSITIONS));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn no_undocumented_transition_occurs(
        config in (0.01..1.0f64, 1u32..4, 1u32..6),
        acks in proptest::collection::vec(
            (1u64..200_000, 0u64..300_000, 0u64..40, 0u64..20, 0u32..9, 0u32..200),
            1..400,
        ),
    ) {
        let mut control = Config::DEFAULT.control;
        control.drain_gain = config.0;
        (control.competing.futile_drains, control.competing.probe_rounds) = (config.1, config.2);
        let mut driver = Driver::with_config(control);
        for (after, delay, packets, lost, marks, event) in acks {
            match event {
                0 => driver.control.restart(driver.now, driver.number + 100),
                1 => driver.control.discard_samples(),
                2 => driver.control.on_loss(lost),
                3 => driver.control.on_established(),
                _ => {}
            }
            driver.acknowledge(AckedPackets {
                after: Duration::from_micros(after),
                delay: Duration::from_micros(delay / 8 * u64::from(event % 8)),
                packets,
                lost: if event % 3 == 0 { lost } else { 0 },
                marks: u32::from(marks == 0),
                limit: if event == 4 { SendLimit::Application } else { SendLimit::Path },
                base_age: Duration::from_secs(if event > 196 { 60 } else { 0 }),
            });
            for transition in driver.control.take_history() {
                prop_assert!(TRANSITIONS.contains(&transition), "{transition:?}");
            }
            let pace = driver.control.pacing_rate();
            prop_assert!(pace.is_none_or(|rate| rate.is_finite() && rate > 0.0), "{pace:?}");
        }
    }
}

#[test]
fn the_page_shows_the_picture_of_the_module() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/");
    let read = |path: &str| std::fs::read_to_string(format!("{folder}{path}")).ok();
    let module = read("src/wide/control/mod.rs").expect("the source of this test");
    // A published package has no docs.
    let Some(page) = read("../../docs/protocols/tpa-wide.md") else { return };
    let picture = |text: &str, prefix: &str| -> Vec<String> {
        let lines = text.lines().skip_while(|line| !line.contains("```text")).skip(1);
        lines
            .take_while(|line| !line.contains("```"))
            .map(|line| line.strip_prefix(prefix).unwrap_or("").trim_end().to_owned())
            .collect()
    };
    let of_module =
        picture(&module, "//!").into_iter().map(|line| line.strip_prefix(' ').unwrap_or("").to_owned());
    assert_eq!(of_module.collect::<Vec<_>>(), picture(&page, ""));
}
