//! Names of variants that are as short as possible: `newreno` in place of `transport=tcp-newreno`.

use crate::description::Description;
use serde_json::Value as Json;
use std::collections::BTreeSet;

/// Returns the names of `points`; the given ones if shorter ones would not be distinct.
pub(super) fn short(description: &Description, points: &[usize]) -> Vec<String> {
    let full = || points.iter().map(|&point| description.points[point].label.clone()).collect::<Vec<_>>();
    if points.iter().any(|&point| description.points[point].variant.is_some()) {
        return full();
    }
    let alone = description.keys.len() == 1;
    let last = |key: &str| key.rsplit('.').next().map(str::to_owned);
    let lasts: BTreeSet<_> = description.keys.iter().map(|key| last(key)).collect();
    if lasts.len() < description.keys.len() {
        return full();
    }
    let name = |&point: &usize| {
        let settings = &description.points[point].settings;
        // Settings are unordered; the description has an order.
        let parts = description.keys.iter().filter_map(|key| Some(part(key, settings.get(key)?, alone)));
        parts.collect::<Vec<_>>().join(" ")
    };
    let short: Vec<String> = points.iter().map(name).collect();
    let different = short.iter().collect::<BTreeSet<_>>().len() == short.len();
    if different && short.iter().all(|name| !name.is_empty()) { short } else { full() }
}

/// Returns a setting as text: a word alone if only its key is varied, a number with its key.
fn part(key: &str, value: &Json, alone: bool) -> String {
    let last = key.rsplit('.').next().unwrap_or(key);
    match value {
        Json::String(word) if key == "transport" || key.ends_with(".transport") => {
            word.strip_prefix("tcp-").unwrap_or(word).to_owned()
        }
        Json::String(word)
            if alone && word.chars().any(char::is_alphabetic) && word != "unclamped" && word != "never" =>
        {
            word.clone()
        }
        Json::String(word) => format!("{last}={word}"),
        other => format!("{last}={other}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::Plan;
    use crate::testing::{TWO_HOPS, scenario};
    use hopline_scenario::parse_vary;

    fn names(vary: &[&str]) -> Vec<String> {
        let axes: Vec<_> = vary.iter().map(|text| parse_vary(text).unwrap()).collect();
        let plan = Plan::new(&scenario(TWO_HOPS), &axes).unwrap();
        let description = Description::of(&plan, Vec::new()).unwrap();
        short(&description, &(0..plan.points.len()).collect::<Vec<_>>())
    }

    #[test]
    fn keys_lose_their_section_and_transports_their_key() {
        assert_eq!(names(&["transport=tcp-newreno,tcp-sack,tpa"]), ["newreno", "sack", "tpa"]);
        assert_eq!(names(&["tcp.window=2,unclamped"]), ["window=2", "window=unclamped"]);
        assert_eq!(names(&["queue.discipline=drop-tail,fq-codel"]), ["drop-tail", "fq-codel"]);
        assert_eq!(
            names(&["transport=tcp-reno,tpa", "queue.discipline=drop-tail,red"])[..2],
            ["reno discipline=drop-tail", "reno discipline=red"]
        );
    }

    #[test]
    fn names_stay_distinct() {
        assert_eq!(names(&["flow.0.start_s=0,1", "tcp.window=2,4"])[0], "start_s=0 window=2");
        let presets = names(&["radio.preset=ns2-wavelan,dot11b", "tcp.preset=modern,linux"]);
        assert_eq!(presets[0], "radio.preset=ns2-wavelan tcp.preset=modern");
        assert_eq!(names(&["nodes.spacing_m=100,150"]), ["spacing_m=100", "spacing_m=150"]);
        assert_eq!(names(&[]), ["two hops"]);
    }
}
