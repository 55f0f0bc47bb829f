//! Content of the report file.

use crate::sample::{self, noise};
use hopline_config::document::Setting;
use hopline_lab::report::{Experiment, FlowSeries, Map, Report, RunSeries, html};
use hopline_sim::spec::Attachment;
use quick_xml::Reader;
use quick_xml::events::Event;

/// Returns every `<svg …>…</svg>` of a page.
fn pictures(page: &str) -> Vec<&str> {
    let starts = page.match_indices("<svg ").map(|(at, _)| &page[at..]);
    starts.map(|rest| &rest[..rest.find("</svg>").unwrap() + "</svg>".len()]).collect()
}

/// Parses `xml` completely. Returns all of its text.
fn text_of(xml: &str) -> Result<String, quick_xml::Error> {
    let mut reader = Reader::from_str(xml);
    reader.config_mut().check_end_names = true;
    let mut text = String::new();
    loop {
        match reader.read_event()? {
            Event::Eof => return Ok(text),
            Event::Text(part) => text.push_str(&part),
            Event::Start(element) | Event::Empty(element) => {
                for attribute in element.attributes() {
                    attribute?;
                }
            }
            _ => {}
        }
    }
}

pub(crate) fn a_normal_run_is_far_below_a_megabyte() {
    let page = html(&sample::normal(20));
    assert!(page.len() < 300_000, "{}", page.len());
}

pub(crate) fn five_hundred_moving_nodes_and_many_runs_stay_below_a_megabyte() {
    let settings = ["duration_s=200", "nodes.count=500", "mobility.model=random-waypoint-stationary"];
    let settings: Vec<Setting> = settings.iter().map(|s| Setting::parse("--set", s).unwrap()).collect();
    let mobility = ["mobility.min_speed_mps=1", "mobility.max_speed_mps=20"];
    let mobility = mobility.iter().map(|s| Setting::parse("--set", s).unwrap());
    let settings: Vec<Setting> = settings.into_iter().chain(mobility).collect();
    let scenario = sample::scenario("random-400").with(&settings).unwrap();
    let mut report = sample::normal(200);
    let experiment = &mut report.experiments[0];
    experiment.map = Some(Map::of(&scenario.spec(1).unwrap()));
    experiment.series =
        (0..4).flat_map(|v| (1..=20).map(move |run| sample::series(v, run, 40, 200))).collect();
    experiment.parameters = scenario.parameters();
    let page = html(&report);
    assert!(page.len() < 1_000_000, "{}", page.len());
    assert!(page.contains("type=\"range\""), "there is a slider");
}

pub(crate) fn ten_thousand_variants_are_cut_and_that_is_noted() {
    let mut report = sample::normal(5);
    let experiment = &mut report.experiments[0];
    let first = experiment.variants.clone();
    experiment.variants = first.iter().cycle().take(10_000).cloned().collect();
    let page = html(&report);
    assert!(page.len() < 1_000_000, "{}", page.len());
    assert!(page.contains("Of 10000 variants the first 300 are listed."));
    assert!(page.contains("Of 10000 variants the first 60 are drawn."));
    report.experiments[0].variants.truncate(1000);
    for (i, variant) in report.experiments[0].variants.iter_mut().enumerate() {
        variant.settings[0].1 = i.into();
    }
    let page = html(&report);
    assert!(page.contains("Over tcp.window") && page.len() < 1_000_000, "{}", page.len());
}

pub(crate) fn every_picture_is_well_formed() {
    for report in [sample::normal(20), sample::normal(1), sample::several(), hostile()] {
        let page = html(&report);
        let pictures = pictures(&page);
        assert!(pictures.len() > 8, "{}", pictures.len());
        for picture in pictures {
            assert!(text_of(picture).is_ok(), "{:?}: {picture}", text_of(picture));
        }
    }
}

pub(crate) fn the_page_loads_nothing() {
    let page = html(&sample::several());
    for reference in ["http:", "https:", "//www", "@import", "url(", "src=", "<link rel=\"style"] {
        // The arrow head is defined in the page itself.
        let found = page.replace("url(#head)", "");
        assert!(!found.contains(reference), "{reference}");
    }
    assert!(page.contains("default-src 'none'"));
}

pub(crate) fn print_and_dark_styles_exist() {
    let page = html(&sample::normal(20));
    assert!(page.contains("@media print"));
    // On screens only: on paper the page stays white.
    assert_eq!(page.matches("prefers-color-scheme: dark").count(), 2);
    assert_eq!(page.matches("@media screen and (prefers-color-scheme: dark)").count(), 2);
}

pub(crate) fn the_page_is_complete_without_the_script() {
    let page = html(&sample::normal(20));
    let script = page.rfind("<script>").unwrap();
    let still = &page[..script];
    for words in [
        "tcp.window=3</b> wins",
        "gain (%)",
        "Over tcp.window",
        "Over time",
        "The network",
        "spacing_m",
        "hopline compare scenarios/chain/scenario.toml",
        "9f86d081",
        "fingerprint of its runs",
        "CPU time",
    ] {
        assert!(still.contains(words), "{words}");
    }
    for chart in ["goodput", "window", "delay", "queue", "delays"] {
        assert!(still.contains(&format!("data-chart=\"{chart}\"")), "{chart}");
    }
}

pub(crate) fn equal_reports_give_equal_pages() {
    assert_eq!(html(&sample::several()), html(&sample::several()));
}

const HOSTILE: &str =
    "</script></style><b onclick=\"alert('x')\">&amp; \u{202e}日本語 \u{0}\u{7}\u{ffff} {{ 1 }} {% x %} -->";

/// Returns a report in which every name is hostile.
fn hostile() -> Report {
    let mut report = sample::several();
    let bad = || HOSTILE.repeat(30);
    report.title = bad();
    report.intro = vec![bad()];
    report.version = bad();
    let claims = report.claims.as_mut().unwrap();
    claims.note = bad();
    for claim in &mut claims.claims {
        for field in [
            &mut claim.id,
            &mut claim.scenario,
            &mut claim.metric,
            &mut claim.claimed,
            &mut claim.unit,
            &mut claim.statement,
        ] {
            *field = bad();
        }
    }
    for experiment in &mut report.experiments {
        insert_hostile_names(experiment, &bad());
    }
    report
}

fn insert_hostile_names(experiment: &mut Experiment, bad: &str) {
    let reproduce = &mut experiment.reproduce;
    for field in
        [&mut experiment.name, &mut experiment.intro, &mut reproduce.command, &mut reproduce.scenario_sha256]
    {
        *field = bad.to_owned();
    }
    for metric in &mut experiment.metrics {
        (metric.name, metric.unit) = (bad.to_owned(), bad.to_owned());
    }
    for variant in &mut experiment.variants {
        variant.label = bad.to_owned();
        variant.fingerprint = bad.to_owned();
        for (key, value) in &mut variant.settings {
            *key = bad.to_owned();
            if value.is_string() {
                *value = format!("{bad}{value}").into();
            }
        }
    }
    for flow in experiment.series.iter_mut().flat_map(|s| &mut s.flows) {
        flow.name = bad.to_owned();
    }
    let map = experiment.map.as_mut().unwrap();
    map.nodes.iter_mut().for_each(|node| node.name = bad.to_owned());
    map.flows.iter_mut().for_each(|flow| flow.name = bad.to_owned());
    map.notes = vec![bad.to_owned()];
    experiment.parameters = serde_json::json!({ bad: bad, "section": { bad: [bad], "x": [{ bad: bad }] } });
}

pub(crate) fn hostile_names_are_escaped() {
    let page = html(&hostile());
    assert!(!page.contains("<b onclick"), "markup from a name");
    assert_eq!(page.matches("</style>").count(), 1);
    let scripts = page.matches("<script").count();
    assert_eq!(page.matches("</script>").count(), scripts);
    assert!(page.contains("{{ 1 }}"), "no template in a name");
}

pub(crate) fn nan_values_are_omitted_from_charts() {
    let mut report = sample::normal(20);
    let experiment = &mut report.experiments[0];
    let value = experiment.variants[1].values[0].as_mut().unwrap();
    value.measured.mean = f64::NAN;
    value.measured.interval = Some([f64::NEG_INFINITY, f64::INFINITY]);
    value.measured.runs[0] = f64::INFINITY;
    let wild = (0..120).map(|i| if i % 3 == 0 { f64::NAN } else { 1e300 * noise(i) }).collect();
    let flows = vec![FlowSeries {
        name: "wild".into(),
        goodput_kbps: wild,
        cwnd_segments: vec![f64::INFINITY; 9],
        delay_ms: vec![f64::NAN; 120],
        queue_packets: vec![-1e300; 3],
    }];
    experiment.distributions[0].quantiles_ms[3] = f64::INFINITY;
    experiment.series = vec![RunSeries { variant: 99, run: 0, step_s: 1e-9, flows, queues: Vec::new() }];
    let node = &mut experiment.map.as_mut().unwrap().nodes[2];
    (node.interface, node.path[0].x_m) = (Attachment::Wired, f64::NAN);
    let page = html(&report);
    for picture in pictures(&page) {
        assert!(!picture.contains("NaN") && !picture.contains("inf"), "{picture}");
    }
}
