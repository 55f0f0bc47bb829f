//! `[[link]]` and the error models of links and radio.

use super::super::keys::{self, ErrorKind};
use super::super::machines;
use super::super::own::Whole;
use super::super::schema::Section;
use super::super::source::Problem;
use super::{Names, Owned, node_named, queue, refuse_foreign, seconds};
use hopline_core::Duration;
use hopline_radio::phy::errors::{ErrorModel, GilbertElliott, GilbertPackets, Probability};
use hopline_sim::own::Machines;
use hopline_sim::spec::{LinkSpec, arq};
use std::num::NonZeroU32;

/// All wired links.
pub(super) fn resolve(scenario: Whole<'_>, names: &Names) -> Result<Vec<LinkSpec>, Problem> {
    scenario.sections("link").iter().map(|section| link(section, names, scenario.machines)).collect()
}

fn link(section: &Section<'_>, names: &Names, own: &Machines) -> Result<LinkSpec, Problem> {
    let a = node_named(section, keys::link::A, names)?;
    let b = node_named(section, keys::link::B, names)?;
    if a == b {
        return Err(Problem::new("a link from a node to itself")
            .at(section.origin_of("b"))
            .help("a and b are different nodes"));
    }
    let rate_mbps = section.get(keys::link::RATE_MBPS);
    let delay_ms = section.get(keys::link::DELAY_MS);
    Ok(LinkSpec {
        a,
        b,
        rate_bps: libm::round(rate_mbps * 1e6) as u64,
        delay: Duration::from_secs_f64(delay_ms * 1e-3),
        queue: queue::resolve(queue::PLAIN, section.section("queue"), own)?,
        errors: by_direction(section.section("errors"))?,
        arq: arq(&section.section("arq")),
    })
}

/// How a link repairs its losses.
fn arq(section: &Section<'_>) -> Option<arq::Config> {
    if section.get(keys::arq::KIND) == keys::ArqKind::None {
        return None;
    }
    Some(machines::arq(section))
}

/// The errors on what `a` sends, and on what `b` sends.
fn by_direction(section: Section<'_>) -> Result<[ErrorModel; 2], Problem> {
    let model = keys::errors::MODEL.word(&section);
    refuse_foreign(&section, "model", model, &[(MODELS, &["direction"])])?;
    let errors = errors(section)?;
    Ok(match section.get(keys::link_errors::DIRECTION) {
        "a-to-b" => [errors, ErrorModel::None],
        "b-to-a" => [ErrorModel::None, errors],
        _both => [errors; 2],
    })
}

/// Those in which something is drawn.
const MODELS: &[&str] = &["bit", "packet", "every-nth", "gilbert-packet", "gilbert-elliott"];

/// The keys of each error model.
const KEYS: [Owned; 5] = [
    (&["every-nth"], &["nth"]),
    (&["bit"], &["bit_error_rate"]),
    (&["packet"], &["packet_loss"]),
    (&["gilbert-packet"], &["good_to_bad", "bad_to_good", "loss_good", "loss_bad"]),
    (&["gilbert-elliott"], &["mean_good_s", "mean_bad_s", "bit_error_rate_good", "bit_error_rate_bad"]),
];

/// An error model.
pub(super) fn errors(section: Section<'_>) -> Result<ErrorModel, Problem> {
    refuse_foreign(&section, "model", keys::errors::MODEL.word(&section), &KEYS)?;
    Ok(match section.get(keys::errors::MODEL) {
        ErrorKind::None => ErrorModel::None,
        ErrorKind::Bit => ErrorModel::BitErrors(probability(&section, "bit_error_rate")?),
        ErrorKind::Packet => ErrorModel::PacketLoss(probability(&section, "packet_loss")?),
        ErrorKind::EveryNth => {
            let nth = section.small("nth").and_then(NonZeroU32::new);
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
