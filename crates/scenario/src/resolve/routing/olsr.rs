//! `[routing.olsr]`.

use super::super::super::keys;
use super::super::super::schema::Section;
use super::super::seconds;
use hopline_config::source::Problem;
use hopline_routing::olsr::Config;
use hopline_routing::olsr::config::{EarlyTc, Hysteresis, Willingness};
use std::num::NonZeroU8;

pub(super) fn config(section: Section<'_>) -> Result<Config, Problem> {
    let mut config = section.get(keys::olsr::PRESET)();
    let byte = |key| section.integer_as::<u8>(key);
    let count = |key| byte(key).and_then(NonZeroU8::new);
    let times = [
        ("hello_interval_s", &mut config.hello_interval),
        ("tc_interval_s", &mut config.tc_interval),
        ("duplicate_hold_time_s", &mut config.duplicate_hold_time),
    ];
    for (key, field) in times {
        *field = seconds(&section, key).unwrap_or(*field);
    }
    config.max_jitter = seconds(&section, "max_jitter_s").or(config.max_jitter);
    let neighbours = count("neighbour_hold_intervals");
    config.neighbour_hold_intervals = neighbours.unwrap_or(config.neighbour_hold_intervals);
    let topology = count("topology_hold_intervals");
    config.topology_hold_intervals = topology.unwrap_or(config.topology_hold_intervals);
    config.willingness = byte("willingness").map_or(config.willingness, Willingness::new);
    section.set_if_given(keys::olsr::LINK_SENSING, &mut config.link_sensing);
    let spacing = seconds(&section, "early_tc_spacing_s").unwrap_or(config.tc_interval / 4);
    config.early_tc = match section.word("early_tc") {
        Some("never") => EarlyTc::Never,
        _ => EarlyTc::OnLinkFailure { spacing },
    };
    config.hysteresis = hysteresis(section)?;
    Ok(config)
}

fn hysteresis(section: Section<'_>) -> Result<Option<Hysteresis>, Problem> {
    let number = |key, default| section.number(key).unwrap_or(default);
    let standard = Hysteresis::RFC3626;
    let hysteresis = Hysteresis {
        scaling: number("hysteresis_scaling", standard.scaling),
        threshold_high: number("hysteresis_threshold_high", standard.threshold_high),
        threshold_low: number("hysteresis_threshold_low", standard.threshold_low),
    };
    if hysteresis.threshold_low > hysteresis.threshold_high {
        let key = ["hysteresis_threshold_low", "hysteresis_threshold_high"];
        let given =
            key.into_iter().find(|key| section.number(key).is_some()).expect("the defaults are in order");
        return Err(Problem::new(format!(
            "hysteresis_threshold_low ({}) is above hysteresis_threshold_high ({})",
            hysteresis.threshold_low, hysteresis.threshold_high
        ))
        .at(section.origin_of(given))
        .help("a link is used above the high threshold and given up below the low one"));
    }
    Ok((section.word("hysteresis") == Some("on")).then_some(hysteresis))
}
