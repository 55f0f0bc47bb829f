//! Families: variants that are settings of one mechanism.

use crate::comparison::{Comparison, GOODPUT, PointResult};
use crate::metrics::{Key, Level};
use crate::report::{Family, FamilyMember, Measured};
use crate::stats::{GainStatistic, Gains};
use serde_json::Value as Json;

/// Minimum number of variants of one name that form a family.
const MIN_MEMBERS: usize = 3;

/// Returns the families among `points`, in their order: variants of one name, with the gains of their runs in
/// goodput. If there is a single connection it is its goodput, since streams beside it have a fixed rate.
pub(super) fn of(comparison: &Comparison, points: &[usize]) -> Vec<Family> {
    let name = |place: usize| comparison.description.points[points[place]].variant.as_deref();
    let mut names: Vec<&str> = (0..points.len()).filter_map(name).collect();
    names.dedup();
    let places = |of: &str| (0..points.len()).filter(|&place| name(place) == Some(of)).collect::<Vec<_>>();
    let metric = match points.first().and_then(|&point| only_connection(&comparison.points[point])) {
        Some(flow) => (Level::Flow, flow, "goodput_bps"),
        None => GOODPUT,
    };
    let families = names.into_iter().map(|name| (name, places(name)));
    families
        .filter(|(_, places)| places.len() >= MIN_MEMBERS)
        .map(|(name, places)| family(comparison, name, &places, points, metric))
        .collect()
}

/// Returns the only flow that is a connection: only connections have timeouts.
fn only_connection(point: &PointResult) -> Option<&str> {
    let mut connections =
        point.flows().into_iter().filter(|flow| point.all((Level::Flow, flow, "timeouts")).is_some());
    let first = connections.next();
    first.filter(|_| connections.next().is_none())
}

fn family(
    comparison: &Comparison,
    name: &str,
    places: &[usize],
    points: &[usize],
    metric: Key<'_>,
) -> Family {
    let setting = |place: usize, key: &str| {
        comparison.description.points[points[place]].settings.get(key).cloned().unwrap_or(Json::Null)
    };
    let differs = |key: &&String| places.iter().any(|&p| setting(p, key) != setting(places[0], key));
    let keys: Vec<String> = comparison.description.keys.iter().filter(differs).cloned().collect();
    let member = |&place: &usize| FamilyMember {
        setting: keys.iter().map(|key| setting(place, key)).collect(),
        ..member(comparison, place, points[place], metric)
    };
    let flow = metric.1.to_owned();
    Family { name: name.to_owned(), flow, members: places.iter().map(member).collect(), keys }
}

fn member(comparison: &Comparison, variant: usize, point: usize, metric: Key<'_>) -> FamilyMember {
    let baseline = comparison.description.points[point].baseline;
    let versus = comparison.versus(point, baseline, metric);
    let gains =
        versus.map_or(Gains { pct: Vec::new(), without_ratio: Vec::new() }, |versus| versus.pairs.gains());
    let signs = gains.sign_test();
    let measured = |statistic| -> Option<Measured> {
        let interval =
            gains.interval(statistic, comparison.description.seed, comparison.description.confidence());
        let interval = interval.map(|i| [i.low, i.high]);
        Some(Measured { mean: gains.value(statistic)?, interval, runs: Vec::new() })
    };
    FamilyMember {
        variant,
        setting: Vec::new(),
        gain: measured(GainStatistic::Mean),
        deviation: measured(GainStatistic::Deviation),
        positive: signs.positive,
        runs: gains.counted(GainStatistic::PositiveShare),
        excluded: gains.excluded(GainStatistic::Mean),
    }
}

#[cfg(test)]
mod tests {
    use crate::experiment::{RunOptions, in_memory};
    use crate::plan::{Effort, Plan};
    use crate::report::Family;
    use crate::run::NoObserver;
    use crate::stats::{Estimate, GainStatistic};
    use crate::testing::{TWO_HOPS, source};
    use crate::view;
    use serde_json::json;
    use std::fs;

    const STREAM: &str = "\n[[flow]]\nname = \"s\"\nkind = \"cbr\"\nsrc = \"n2\"\ndst = \"n0\"\nrate_kbps = 8\npacket_bytes = 100\n";

    /// Returns the families of a plan with one variant, `tuned`, with three windows, compared with the
    /// scenario itself.
    fn families(scenario: &str, grid: &str) -> (Vec<Family>, crate::comparison::Comparison) {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("two-hops.toml"), scenario).unwrap();
        let text = format!(
            "scenario = \"two-hops.toml\"\nruns = 4\n[[variant]]\nname = \"plain\"\nset = {{ \"tcp.window\" = 1 }}\n\
             [[variant]]\nname = \"tuned\"\ngrid = {{ {grid} }}\n"
        );
        let plan =
            Plan::parse(&source("plan.toml", &text), folder.path(), "plan", &[], Effort::Full).unwrap();
        let how = RunOptions { jobs: None, command: &[], watch: &NoObserver };
        let comparison = in_memory(&plan, how).unwrap().0;
        (view::report(&comparison).experiments.swap_remove(0).families, comparison)
    }

    #[test]
    fn three_settings_of_a_variant_form_a_family_with_its_gains() {
        let (families, comparison) = families(TWO_HOPS, "\"tcp.window\" = [2, 4, 8]");
        let [family] = &families[..] else { panic!("{} families", families.len()) };
        assert_eq!((family.name.as_str(), &family.keys[..]), ("tuned", &["tcp.window".to_owned()][..]));
        let settings: Vec<_> = family.members.iter().map(|m| (m.variant, m.setting.clone())).collect();
        assert_eq!(settings, [(1, vec![json!(2)]), (2, vec![json!(4)]), (3, vec![json!(8)])]);
        for (i, member) in family.members.iter().enumerate() {
            let gains = comparison.versus_baseline(i + 1, super::GOODPUT).unwrap().pairs.gains();
            let gain = member.gain.as_ref().unwrap();
            assert_eq!(gain.mean, gains.estimate().mean);
            assert_eq!(member.deviation.as_ref().unwrap().mean, gains.estimate().deviation.unwrap());
            let interval =
                gains.interval(GainStatistic::Mean, comparison.description.seed, crate::stats::CONFIDENCE);
            assert_eq!(gain.interval, interval.map(|i| [i.low, i.high]));
            let positive = gains.pct.iter().filter(|g| **g > 0.0).count();
            assert_eq!((member.positive, member.runs, member.excluded), (positive, 4, 0));
        }
    }

    #[test]
    fn beside_streams_the_gain_is_that_of_the_connection() {
        let (families, comparison) = families(&(TWO_HOPS.to_owned() + STREAM), "\"tcp.window\" = [2, 4, 8]");
        assert_eq!(families[0].flow, "f0");
        let of = |flow: &str| {
            let key = (crate::metrics::Level::Flow, flow, "goodput_bps");
            Estimate::of(&comparison.versus(1, 0, key).unwrap().pairs.gains().pct).mean
        };
        assert_eq!(families[0].members[0].gain.as_ref().unwrap().mean, of("f0"));
        assert_ne!(of("f0"), of("s"));
    }

    #[test]
    fn two_settings_form_no_family() {
        assert!(families(TWO_HOPS, "\"tcp.window\" = [2, 8]").0.is_empty());
    }
}
