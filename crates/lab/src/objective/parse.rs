//! Parser of questions: `response_p95 subject http`, `delay_p95 subject voice < 50 ms`.

use super::{Constraint, MetricSelection, Objective, Side};
use crate::metrics::{self, Better, Level};
use crate::record::FlowEnds;
use hopline_config::source::{Origin, Problem, nearest};

/// Maximum number of names in a message.
const MAX_LISTED: usize = 20;

impl Objective {
    /// Parses the question `written` about `flows`; unspecified parts are the [defaults](Objective::default_for).
    ///
    /// # Errors
    /// If it is invalid, or about flows or metrics that do not exist.
    pub fn parse(written: &hopline_scenario::Objective, flows: &[FlowEnds]) -> Result<Self, Problem> {
        let asked =
            written.metric.as_ref().map(|(text, origin)| parse_decisive(text, origin, flows)).transpose()?;
        let bound = written
            .bound
            .as_ref()
            .map(|(text, origin)| Constraint::parse(text, origin, flows))
            .transpose()?;
        Ok(Self { asked: asked.unwrap_or_else(|| Self::default_for(flows).asked), bound })
    }
}

/// Parses a metric that has a better direction.
fn parse_decisive(text: &str, origin: &Origin, flows: &[FlowEnds]) -> Result<MetricSelection, Problem> {
    let asked = MetricSelection::parse(text, origin, flows)?;
    if asked.metric.better == Better::Neither {
        let why = format!("`{}` cannot decide: neither more of it is better, nor less", asked.metric.name);
        return Err(Problem::new(why).at(origin).help(
            "ask for one that docs/metrics.md calls better one way, as goodput, delay_p95, response_p95",
        ));
    }
    Ok(asked)
}

impl MetricSelection {
    /// Parses `METRIC` or `METRIC subject SUBJECT`, where SUBJECT is a flow, a kind or a class of `flows`.
    ///
    /// # Errors
    /// If it is invalid, or about flows or metrics that do not exist.
    pub fn parse(text: &str, origin: &Origin, flows: &[FlowEnds]) -> Result<Self, Problem> {
        let (name, who) = text.split_once(" of ").unwrap_or((text, "all"));
        let (name, who) = (name.trim(), who.trim());
        let (level, of) = subject(who, origin, flows)?;
        Ok(Self { metric: metrics::find_at(level, name, origin)?, subject: of })
    }
}

/// Returns level and name of a subject.
fn subject(who: &str, origin: &Origin, flows: &[FlowEnds]) -> Result<(Level, String), Problem> {
    if ["all", "all flows"].contains(&who) {
        return Ok((Level::Run, String::new()));
    }
    let (sort, name) = match who.split_once(' ') {
        Some((sort @ ("flow" | "kind" | "class"), name)) => (Some(sort), name.trim()),
        _ => (None, who),
    };
    let may_be = |what: &str| sort.is_none_or(|sort| sort == what);
    let is_kind = may_be("kind") && flows.iter().any(|flow| flow.kind == name);
    if is_kind || may_be("class") && !name.is_empty() && flows.iter().any(|flow| flow.class == name) {
        return Ok((Level::Group, name.to_owned()));
    }
    if may_be("flow") && flows.iter().any(|flow| flow.id == name) {
        return Ok((Level::Flow, name.to_owned()));
    }
    Err(unknown_subject(name, sort.unwrap_or("flow, kind or class"), origin, flows))
}

fn unknown_subject(name: &str, sort: &str, origin: &Origin, flows: &[FlowEnds]) -> Problem {
    if flows.is_empty() {
        return Problem::new(
            "these results do not say which flows they are of, so that only all of them can be asked about",
        )
        .at(origin)
        .help("they were made before there were questions; run the plan again");
    }
    let mut known: Vec<&str> = Vec::new();
    let of = |flow: &'_ FlowEnds| [flow.kind.clone(), flow.class.clone(), flow.id.clone()];
    let all: Vec<[String; 3]> = flows.iter().map(of).collect();
    for part in 0..3 {
        known.extend(all.iter().map(|names| names[part].as_str()).filter(|name| !name.is_empty()));
    }
    let mut seen = std::collections::BTreeSet::new();
    known.retain(|name| seen.insert(*name));
    let guess = nearest(name, known.iter().copied()).map(|near| format!("did you mean \"{near}\"? "));
    let listed = known.iter().take(MAX_LISTED).copied().collect::<Vec<_>>().join(", ");
    Problem::new(format!("there is no {sort} \"{name}\""))
        .at(origin)
        .help(guess.unwrap_or_default() + "there are " + &listed)
}

/// Operators of a bound.
const SIDES: [(&str, Side); 6] = [
    ("<=", Side::AtMost),
    (">=", Side::AtLeast),
    ("<", Side::Below),
    (">", Side::Above),
    (" under ", Side::Below),
    (" over ", Side::Above),
];

impl Constraint {
    /// Parses `ASKED < NUMBER UNIT`, or with another operator.
    ///
    /// # Errors
    /// If it is invalid, or about flows or metrics that do not exist.
    pub fn parse(text: &str, origin: &Origin, flows: &[FlowEnds]) -> Result<Self, Problem> {
        let wrong = |what: String| {
            Problem::new(what)
                .at(origin)
                .help("for example: \"delay_p95 < 50 ms\", \"goodput of bulk > 1 Mb/s\"")
        };
        let parts = SIDES.iter().find_map(|&(word, side)| Some((text.rsplit_once(word)?, side)));
        let Some(((asked, limit), side)) = parts else {
            return Err(wrong(format!("\"{text}\" is no bound: it has neither < nor >")));
        };
        let asked = MetricSelection::parse(asked, origin, flows)?;
        let limit = limit.trim();
        let end = limit.find(|c: char| !(c.is_ascii_digit() || ".-+eE".contains(c))).unwrap_or(limit.len());
        let (number, unit) = (&limit[..end], limit[end..].trim());
        let number: f64 = number
            .parse()
            .ok()
            .filter(|x: &f64| x.is_finite())
            .ok_or_else(|| wrong(format!("\"{limit}\" is no number with a unit")))?;
        let units = units(asked.metric.unit);
        let factor = units.iter().find(|(word, _)| *word == unit).map(|(_, factor)| *factor);
        let factor = factor.ok_or_else(|| {
            let known: Vec<&str> =
                units.iter().map(|(word, _)| *word).filter(|word| !word.is_empty()).collect();
            wrong(match (unit, known.as_slice()) {
                ("", known) => {
                    format!("the limit of `{}` has no unit: one of {}", asked.metric.name, known.join(", "))
                }
                (unit, []) => {
                    format!("`{}` has no unit, so \"{unit}\" does not belong there", asked.metric.name)
                }
                (unit, known) => {
                    format!("`{}` is not in \"{unit}\", but in {}", asked.metric.name, known.join(", "))
                }
            })
        })?;
        Ok(Self { asked, side, limit: number * factor })
    }
}

/// Returns the accepted units for one of the catalogue, each with its factor.
fn units(of_catalogue: &str) -> &[(&str, f64)] {
    match of_catalogue {
        "bit/s" => &[
            ("kb/s", 1e3),
            ("Mb/s", 1e6),
            ("bit/s", 1.0),
            ("kbit/s", 1e3),
            ("Mbit/s", 1e6),
            ("kbps", 1e3),
            ("Mbps", 1e6),
        ],
        "s" => &[("ms", 1e-3), ("s", 1.0), ("us", 1e-6), ("µs", 1e-6)],
        "%" => &[("%", 1.0)],
        "B" => &[("kB", 1e3), ("B", 1.0), ("MB", 1e6)],
        "J" => &[("J", 1.0)],
        "s/MB" => &[("s/MB", 1.0)],
        "J/MB" => &[("J/MB", 1.0)],
        _ => &[("", 1.0)],
    }
}
