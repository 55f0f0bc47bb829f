//! Delay and loss of links as a file of `hopline link --replay`.

use hopline_emulate::{LinkSecond, RecordedLink};
use hopline_lab::Spec;
use serde_json::{Map, Value, json};

/// Returns the links by name, each with a row for each second in which frames were sent over it.
pub(super) fn json(spec: &Spec, links: &[RecordedLink]) -> String {
    let name = |link: &RecordedLink| {
        let [from, to] = [link.from, link.to].map(|node| spec.nodes[node.index()].name.as_str());
        format!("{from}-{to}")
    };
    let rows = |link: &RecordedLink| link.seconds.iter().map(row).collect::<Vec<_>>();
    let all: Map<String, Value> = links.iter().map(|link| (name(link), rows(link).into())).collect();
    // A row a line.
    let lists = all.iter().map(|(name, rows)| {
        let rows = rows.as_array().into_iter().flatten().map(Value::to_string).collect::<Vec<_>>();
        format!("{}: [\n  {}\n]", Value::from(name.as_str()), rows.join(",\n  "))
    });
    format!("{{{}}}\n", lists.collect::<Vec<_>>().join(",\n"))
}

fn row(second: &LinkSecond) -> Value {
    let rounded = |value: f64, digits: f64| (value * digits).round() / digits;
    let mut row = json!({ "time_s": second.second, "loss": rounded(second.loss(), 1e6) });
    if let Some(delay) = second.delay() {
        row["delay_ms"] = rounded(1e3 * delay.as_secs_f64(), 1e6).into();
    }
    row
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::net::link::{Condition, replay};
    use hopline_core::{Duration, Instant, NodeId};
    use hopline_lab::Scenario;

    #[test]
    fn what_is_recorded_is_replayed() {
        let folder = tempfile::tempdir().unwrap();
        let scenario = folder.path().join("pair.toml");
        std::fs::write(
            &scenario,
            "duration_s = 1\n[radio]\n[nodes]\nlayout = \"chain\"\ncount = 3\nspacing_m = 9\n",
        )
        .unwrap();
        let spec = Scenario::load_network(&scenario, &[]).unwrap().spec(1).unwrap();
        let second = |second, received, lost, ms| LinkSecond {
            second,
            received,
            lost,
            delay_sum: Duration::from_millis(ms) * received,
        };
        let link = |from, to, seconds| RecordedLink { from: NodeId(from), to: NodeId(to), seconds };
        let there = link(0, 1, vec![second(0, 8, 2, 5), second(3, 0, 4, 0)]);
        let back = link(1, 0, vec![second(1, 5, 0, 7)]);
        let file = folder.path().join("links.json");
        std::fs::write(&file, json(&spec, &[there.clone(), back])).unwrap();
        let named = |name: &str| replay(format!("{}#{name}", file.display()).as_ref());
        let condition = |at, ms, loss| {
            Condition::starting_at(Instant::from_secs(at))
                .with_latency(Some(Duration::from_millis(ms)))
                .with_loss(Some(loss))
        };
        assert_eq!(named("n0-n1").unwrap(), [condition(0, 5, 0.2), condition(3, 5, 1.0)]);
        assert_eq!(named("n1-n0").unwrap(), [condition(1, 7, 0.0)]);
        let unknown = named("n0-n2").unwrap_err().to_string();
        assert!(unknown.contains("there is no link `n0-n2`") && unknown.contains("n0-n1"), "{unknown}");
        let several = replay(&file).unwrap_err().to_string();
        assert!(several.contains("has 2 links") && several.contains("links.json#n0-n1"), "{several}");
        // A single link needs no name.
        std::fs::write(&file, json(&spec, &[there])).unwrap();
        assert_eq!(replay(&file).unwrap().len(), 2);
        std::fs::write(&file, json(&spec, &[])).unwrap();
        assert!(replay(&file).unwrap_err().to_string().contains("there is no link"));
    }
}
