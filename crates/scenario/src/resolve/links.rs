//! `[[link]]` and the error models of links and radio.

use super::super::keys::{self, ErrorKind};
use super::super::middlebox;
use super::super::schema::Section;
use super::super::user_defined::ScenarioWithMachines;
use super::rate_traces::bps;
use super::{Files, Names, OwnedKeys, node_named, queue, rate_traces, reject_foreign_keys, seconds};
use hopline_config::source::Problem;
use hopline_core::{Duration, Instant};
use hopline_radio::phy::errors::{ErrorModel, GilbertElliott, GilbertPackets, Probability};
use hopline_sim::custom::CustomAlgorithms;
use hopline_sim::spec::links::{LinkImpairments, Policer, Reordering, Shaper};
use hopline_sim::spec::{LinkSpec, arq};
use std::num::NonZeroU32;

/// Returns all wired links.
pub(super) fn resolve(
    scenario: ScenarioWithMachines<'_>,
    names: &Names,
    files: &Files,
) -> Result<Vec<LinkSpec>, Problem> {
    scenario.sections("link").iter().map(|section| link(section, names, scenario.machines, files)).collect()
}

fn link(
    section: &Section<'_>,
    names: &Names,
    own: &CustomAlgorithms,
    files: &Files,
) -> Result<LinkSpec, Problem> {
    let a = node_named(section, keys::link::A, names)?;
    let b = node_named(section, keys::link::B, names)?;
    if a == b {
        return Err(Problem::new("a link from a node to itself")
            .at(section.origin_of("b"))
            .help("a and b are different nodes"));
    }
    let rate_traces = rate_traces::resolve(section, files)?;
    let delay_ms = section.get(keys::link::DELAY_MS);
    Ok(LinkSpec {
        a,
        b,
        rate_bps: rate_traces::constant_rate(section, &rate_traces)?,
        delay: Duration::from_secs_f64(delay_ms * 1e-3),
        queue: queue::resolve(queue::PLAIN, section.section("queue"), own)?,
        errors: by_direction(section.section("errors"))?,
        arq: arq(&section.section("arq")),
        impairments: LinkImpairments { rate_traces, ..quirks(section)? },
    })
}

/// Returns the properties of a link beyond carrying packets at one rate.
fn quirks(section: &Section<'_>) -> Result<LinkImpairments, Problem> {
    let late = section.section("reordering");
    let jitter = section.section("jitter");
    let policer = section.section("policer");
    let slots = section.section("slots");
    let slots_each = slots.number("interval_ms").map(|ms| Duration::from_secs_f64(ms * 1e-3));
    let jitter_each = jitter.number("max_ms").map(|ms| Duration::from_secs_f64(ms * 1e-3));
    let late_each = late
        .number("fraction")
        .zip(late.number("extra_delay_ms"))
        .map(|(share, by_ms)| Reordering { share, extra_delay: Duration::from_secs_f64(by_ms * 1e-3) });
    let policer_each = policer
        .number("rate_mbps")
        .zip(policer.integer("burst_bytes"))
        .map(|(rate_mbps, burst_bytes)| Policer { rate_bps: bps(rate_mbps), burst_bytes });
    Ok(LinkImpairments {
        jitter: per_direction(&jitter, jitter_each).map(Option::unwrap_or_default),
        slots: per_direction(&slots, slots_each).map(Option::unwrap_or_default),
        reordering: per_direction(&late, late_each),
        policer: per_direction(&policer, policer_each),
        shaper: shaper(&section.section("shaper")),
        rates: changes(section, "rate", "rate_mbps", bps)?,
        rate_traces: [None, None],
        delays: changes(section, "delay", "delay_ms", |ms| Duration::from_secs_f64(ms * 1e-3))?,
    })
}

/// Returns the shaper of each direction.
fn shaper(section: &Section<'_>) -> [Option<Shaper>; 2] {
    let short = |bytes| u32::try_from(bytes).expect("the key's range is below 2^32");
    let each = section.number("rate_mbps").map(|rate_mbps| Shaper {
        rate_bps: bps(rate_mbps),
        burst_bytes: section.get(keys::shaper::BURST_BYTES),
        overhead_bytes: short(section.get(keys::shaper::OVERHEAD_BYTES)),
        mpu_bytes: short(section.get(keys::shaper::MPU_BYTES)),
    });
    per_direction(section, each)
}

/// Returns `what` for each direction to which the section applies.
fn per_direction<T: Copy>(section: &Section<'_>, what: Option<T>) -> [Option<T>; 2] {
    match section.get(keys::DIRECTION) {
        "a-to-b" => [what, None],
        "b-to-a" => [None, what],
        _both => [what; 2],
    }
}

/// Returns the values of `key` in the tables `name`, each with the time from which on it holds.
fn changes<T>(
    section: &Section<'_>,
    name: &str,
    key: &str,
    value: impl Fn(f64) -> T,
) -> Result<Vec<(Instant, T)>, Problem> {
    let mut changes: Vec<(Instant, T)> = Vec::new();
    for step in section.sections(name) {
        let (Some(from_s), Some(number)) = (step.number("from_s"), step.number(key)) else {
            continue;
        };
        let from = Instant::ZERO + Duration::from_secs_f64(from_s);
        if changes.last().is_some_and(|&(before, _)| before >= from) {
            return Err(Problem::new(format!("a {name} from a moment that is not after the one before"))
                .at(step.origin_of("from_s"))
                .help(format!("{name}s stand in the order of their times")));
        }
        changes.push((from, value(number)));
    }
    Ok(changes)
}

/// Returns the link-layer retransmission of a link, if it has any.
fn arq(section: &Section<'_>) -> Option<arq::Config> {
    if section.get(keys::arq::KIND) == keys::ArqKind::None {
        return None;
    }
    Some(middlebox::arq(section))
}

/// Returns the errors on what `a` sends, and on what `b` sends.
fn by_direction(section: Section<'_>) -> Result<[ErrorModel; 2], Problem> {
    let model = keys::errors::MODEL.word(&section);
    reject_foreign_keys(&section, "model", model, &[(MODELS, &["direction"])])?;
    let errors = errors(section)?;
    Ok(match section.get(keys::link_errors::DIRECTION) {
        "a-to-b" => [errors, ErrorModel::None],
        "b-to-a" => [ErrorModel::None, errors],
        _both => [errors; 2],
    })
}

/// Error models that lose packets.
const MODELS: &[&str] = &["bit", "packet", "every-nth", "gilbert-packet", "gilbert-elliott"];

/// The keys of each error model.
const KEYS: [OwnedKeys; 5] = [
    (&["every-nth"], &["nth"]),
    (&["bit"], &["bit_error_rate"]),
    (&["packet"], &["packet_loss"]),
    (&["gilbert-packet"], &["good_to_bad", "bad_to_good", "loss_good", "loss_bad"]),
    (&["gilbert-elliott"], &["mean_good_s", "mean_bad_s", "bit_error_rate_good", "bit_error_rate_bad"]),
];

/// Returns an error model.
pub(super) fn errors(section: Section<'_>) -> Result<ErrorModel, Problem> {
    reject_foreign_keys(&section, "model", keys::errors::MODEL.word(&section), &KEYS)?;
    Ok(match section.get(keys::errors::MODEL) {
        ErrorKind::None => ErrorModel::None,
        ErrorKind::Bit => ErrorModel::BitErrors(probability(&section, "bit_error_rate")?),
        ErrorKind::Packet => ErrorModel::PacketLoss(probability(&section, "packet_loss")?),
        ErrorKind::EveryNth => {
            let nth = section.integer_u32("nth").and_then(NonZeroU32::new);
            ErrorModel::EveryNth(nth.ok_or_else(|| missing(&section, "nth"))?)
        }
        ErrorKind::GilbertPacket => ErrorModel::GilbertPackets(GilbertPackets {
            good_to_bad: probability(&section, "good_to_bad")?,
            bad_to_good: probability(&section, "bad_to_good")?,
            loss_good: probability(&section, "loss_good")?,
            loss_bad: probability(&section, "loss_bad")?,
        }),
        ErrorKind::GilbertElliott => ErrorModel::GilbertElliott(GilbertElliott {
            mean_good: seconds(&section, "mean_good_s").ok_or_else(|| missing(&section, "mean_good_s"))?,
            mean_bad: seconds(&section, "mean_bad_s").ok_or_else(|| missing(&section, "mean_bad_s"))?,
            ber_good: probability(&section, "bit_error_rate_good")?,
            ber_bad: probability(&section, "bit_error_rate_bad")?,
        }),
    })
}

fn probability(section: &Section<'_>, key: &str) -> Result<Probability, Problem> {
    let p = section.number(key).ok_or_else(|| missing(section, key))?;
    Ok(Probability::new(p).expect("the key's range is 0 to 1"))
}

fn missing(section: &Section<'_>, key: &str) -> Problem {
    let model = keys::errors::MODEL.word(section);
    Problem::new(format!("error model \"{model}\" needs `{key}`")).at(section.origin_of("model"))
}
