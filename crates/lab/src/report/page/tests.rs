//! Pages of small reports.

use super::*;
use crate::report::{Better, Claim, ClaimCount, Claims, ReadAxis, ReadOtherwise, Verdict, Versus};

fn two_variants() -> Experiment {
    let measured =
        |mean: f64| Measured { mean, interval: Some([mean - 1.0, mean + 1.0]), runs: vec![mean; 3] };
    let value = |mean: f64, versus| Some(Value { measured: measured(mean), versus });
    let versus = |difference, percent: f64, p| {
        Some(Versus { difference: measured(difference), percent: Some(measured(percent)), p: Some(p) })
    };
    let variant = |label: &str, values| Variant { label: label.into(), values, ..Variant::default() };
    Experiment {
        name: "e".into(),
        runs: 3,
        duration_s: 10.0,
        metrics: vec![
            Metric::new("goodput", "kb/s", Better::Higher),
            Metric::new("Jain", "", Better::Higher),
        ],
        variants: vec![
            variant("a", vec![value(50.0, None), value(9.0, None)]),
            variant(
                "b",
                vec![value(60.0, versus(10.0, 20.0, 0.0004)), value(8.0, versus(-2.0, -20.0, 0.002))],
            ),
            variant("c", vec![value(50.0, versus(0.5, 1.0, 0.5)), None]),
        ],
        ..Experiment::default()
    }
}

#[test]
fn the_table_has_value_gain_and_p_and_marks_changes() {
    let experiment = two_variants();
    assert_eq!(heads(&experiment), ["goodput (kb/s)", "gain (%)", "p", "Jain"]);
    let rows: Vec<Vec<String>> = rows(&experiment).into_iter().map(|row| row.cells).collect();
    assert_eq!(rows[0], ["50.0 ± 1.0", "baseline", "", "9.0 ± 1.0"]);
    assert_eq!(rows[1], ["60.0 ± 1.0", "+20.0 ± 1.0", "< 0.001", "▼ 8.0 ± 1.0"]);
    assert_eq!(rows[2], ["50.0 ± 1.0", "+1.0 ± 1.0", "0.500", "–"]);
}

#[test]
fn a_gain_over_a_zero_baseline_is_in_the_unit_of_the_metric() {
    let mut experiment = two_variants();
    for variant in &mut experiment.variants[1..] {
        variant.values[0].as_mut().unwrap().versus.as_mut().unwrap().percent = None;
    }
    assert_eq!(heads(&experiment)[1], "gain (kb/s)");
    assert_eq!(rows(&experiment)[1].cells[1], "+10.0 ± 1.0");
}

#[test]
fn one_variant_has_no_gain() {
    let mut experiment = two_variants();
    experiment.variants.truncate(1);
    assert_eq!(heads(&experiment), ["goodput (kb/s)", "Jain"]);
    assert_eq!(charts(&experiment).len(), 0, "a dot alone shows nothing");
}

#[test]
fn an_empty_report_is_a_page() {
    let page = html(&Report::default());
    assert!(page.starts_with("<!DOCTYPE html>") && page.trim_end().ends_with("</html>"));
    let page = html(&Report { experiments: vec![Experiment::default()], ..Report::default() });
    assert!(page.contains("Nothing was measured."));
}

#[test]
fn claims_are_counted_listed_and_linked() {
    let claim = |verdict, experiment| Claim {
        id: "N1".into(),
        scenario: "s".into(),
        metric: "m".into(),
        claimed: "2".into(),
        measured: None,
        unit: String::new(),
        mechanism_off: String::new(),
        verdict,
        statement: "r".into(),
        experiment,
        readings: Vec::new(),
    };
    let claims =
        vec![claim(Verdict::Agrees, Some(0)), claim(Verdict::Agrees, Some(7)), claim(Verdict::Differs, None)];
    let claims =
        Some(Claims { headline: "Of 3 claims".into(), note: "Quick.".into(), claims, ..Claims::default() });
    let page = html(&Report { claims, experiments: vec![two_variants()], ..Report::default() });
    assert!(page.contains("<h1></h1>\n<p class=\"headline\">Of 3 claims</p>"), "the answer first");
    assert!(page.contains(r##"<a href="#experiment-1">N1</a>"##));
    assert!(!page.contains("#experiment-8"), "there is no such experiment");
    assert!(page.contains("</span> 2 agrees</span>") && page.contains("</span> 1 differs</span>"), "{page}");
    assert!(!page.contains("cannot be judged"));
}

#[test]
fn claims_with_alternative_readings_have_a_table_of_the_deciding_readings() {
    let read = |name: &str, mean, verdict| ReadOtherwise {
        name: name.into(),
        answers: vec![None, Some(name.into())],
        measured: Some(Measured { mean, interval: None, runs: Vec::new() }),
        verdict,
    };
    let claim = |id: &str, readings| Claim {
        id: id.into(),
        scenario: String::new(),
        metric: String::new(),
        claimed: "2".into(),
        measured: None,
        unit: "m".into(),
        mechanism_off: String::new(),
        verdict: Verdict::Agrees,
        statement: String::new(),
        experiment: None,
        readings,
    };
    let both = vec![read("sensed <far>", 5.0, Verdict::Differs), read("ACKs at once", 7.0, Verdict::Agrees)];
    let agreeing = vec![read("sensed <far>", 5.0, Verdict::Agrees)];
    let claims = vec![claim("N1", both), claim("N2", Vec::new()), claim("N3", agreeing)];
    let axis = |id: &str, other: &str| ReadAxis {
        id: id.into(),
        words: "the text does not say".into(),
        first: "as usual".into(),
        others: vec![other.into()],
    };
    let claims = Some(Claims {
        counts: vec![ClaimCount { heading: "exact values".into(), of_verdicts: [2, 0, 1, 0, 0] }],
        axes: vec![axis("acks", "ACKs at once"), axis("range", "sensed <far>")],
        reading_runs: "first reading: 9 runs, other readings: 3 runs".into(),
        claims,
        ..Claims::default()
    });
    let page = html(&Report { claims, ..Report::default() });
    let otherwise = page.split("<h3>Read otherwise</h3>").nth(1).unwrap();
    let mut tables = otherwise.split("</table>");
    let (axes, table) = (tables.next().unwrap(), tables.next().unwrap());
    assert!(axes.contains("the answers closest to the paper's words"), "{axes}");
    assert!(axes.contains("first reading: 9 runs, other readings: 3 runs."), "{axes}");
    assert!(axes.contains("the text does not say</td><td>as usual</td><td>ACKs at once"), "{axes}");
    assert!(table.contains("<th>acks</th><th>range</th><th class=\"number\">measured</th>"), "{table}");
    assert!(table.contains(">N1</td><td class=\"number\" rowspan=\"1\">2 of 3</td>"), "{table}");
    assert!(
        table.contains(
            "<td class=\"first\">first</td><td>sensed &#60;far&#62;</td><td class=\"number\">5 m</td>"
        ),
        "{table}"
    );
    assert!(table.contains("2 of 2</td><td colspan=\"4\">no reading has another verdict"), "{table}");
    assert!(!table.contains("ACKs at once"), "{table}");
    assert!(page.contains("exact values</td><td class=\"number\">2</td>"), "{page}");
    assert!(!table.contains("N2"), "{table}");
}

#[test]
fn every_variant_has_a_colour_in_light_and_in_dark() {
    let css = palette();
    for i in 0..VARIANT_COLOURS.len() {
        assert_eq!(css.matches(&format!("--v{i}:#")).count(), 2, "{css}");
        assert!(css.contains(&format!(".v{i}{{--c:var(--v{i})}}")));
    }
}

#[test]
fn a_notebook_gets_conclusion_table_charts_and_scoped_styles() {
    let named = |name: &str| Experiment { name: name.into(), ..two_variants() };
    let names = ["<one>", "two", "three", "four", "five", "six"];
    let report = Report { title: "t".into(), experiments: names.map(named).to_vec(), ..Report::default() };
    let html = notebook(&report);
    for absent in ["<script", "<html", "<one>", ":root", "body {", "id=\""] {
        assert!(!html.contains(absent), "{absent}");
    }
    assert_eq!(html.matches("<table").count(), 4, "the first four of six");
    assert!(
        html.contains("&#60;one&#62;") && html.contains("2 more") && html.contains("<svg class=\"chart\"")
    );
}
