//! Sizes and times that are drawn.

use super::super::keys::{self, DistributionKind};
use super::super::schema::Section;
use super::reject_foreign_keys;
use hopline_config::source::Problem;
use hopline_sim::spec::RandomVariable;

/// Returns the distribution that `section.key` gives; `None` if it is not given.
pub(super) fn resolve(section: &Section<'_>, key: &str) -> Result<Option<RandomVariable>, Problem> {
    if let Some(value) = section.number(key) {
        return Ok(Some(RandomVariable::Constant(value)));
    }
    if !section.has(key) {
        return Ok(None);
    }
    let section = section.section(key);
    let distribution = keys::draw::DRAW.word(&section);
    reject_foreign_keys(
        &section,
        "draw",
        distribution,
        &[
            (&["uniform", "bounded-pareto"], &["min", "max"]),
            (&["exponential", "log-normal"], &["mean"]),
            (&["log-normal"], &["deviation"]),
            (&["bounded-pareto"], &["shape"]),
        ],
    )?;
    let number = |name: &str| {
        section.number(name).ok_or_else(|| {
            Problem::new(format!("a draw of \"{distribution}\" without `{name}`"))
                .at(section.origin_of("draw"))
                .help(format!("add {name}, in the unit of `{key}`"))
        })
    };
    Ok(Some(match section.get(keys::draw::DRAW) {
        DistributionKind::Uniform => {
            let (min, max) = ordered(&section, number("min")?, number("max")?)?;
            RandomVariable::Uniform { min, max }
        }
        DistributionKind::Exponential => RandomVariable::Exponential { mean: number("mean")? },
        DistributionKind::BoundedPareto => {
            let (min, max) = ordered(&section, above_zero(&section, "min", number("min")?)?, number("max")?)?;
            RandomVariable::BoundedPareto { min, max, shape: number("shape")? }
        }
        DistributionKind::LogNormal => RandomVariable::LogNormal {
            mean: above_zero(&section, "mean", number("mean")?)?,
            deviation: number("deviation")?,
        },
    }))
}

fn ordered(section: &Section<'_>, min: f64, max: f64) -> Result<(f64, f64), Problem> {
    if min <= max {
        return Ok((min, max));
    }
    Err(Problem::new(format!("`max` = {max} is below `min` = {min}"))
        .at(section.origin_of("max"))
        .help("exchange the two"))
}

fn above_zero(section: &Section<'_>, name: &str, value: f64) -> Result<f64, Problem> {
    if value > 0.0 {
        return Ok(value);
    }
    Err(Problem::new(format!("`{name}` must be above 0 here"))
        .at(section.origin_of(name))
        .help("the distribution has logarithms of it"))
}
