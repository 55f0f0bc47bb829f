use super::*;
use crate::draws::{Draw, Kind, Measure, generate};
use crate::evaluation::Law;
use tempfile::TempDir;

/// Returns a trace in mahimahi's format: 12.032 Mb/s for a second, then a stop of `stop_ms`.
fn opportunities(stop_ms: u64) -> String {
    let times = (1..=1000).chain([1000 + stop_ms]);
    times.map(|ms| format!("{ms}\n")).collect()
}

fn folder(files: &[(&str, &str)]) -> TempDir {
    let folder = tempfile::tempdir().expect("room");
    for (name, text) in files {
        std::fs::write(folder.path().join(name), text).expect("room");
    }
    folder
}

fn load(files: &[(&str, &str)]) -> Traces {
    Traces::load(folder(files).path()).expect("traces")
}

/// Returns the errors, without the name of the folder.
#[track_caller]
fn errors(folder: &Path) -> String {
    let problems = Traces::load(folder).expect_err("this is wrong");
    problems.to_string().replace(&folder.display().to_string(), "DIR")
}

const CSV: &str = "time_s,rate_mbps\n0,20\n30,5\n60,40\n";

#[test]
fn networks_depend_on_the_names_and_texts_of_the_files_alone() {
    let files = [("b.csv", CSV), ("a.trace", "1\n3\n"), ("C", "7\n")];
    let reversed: Vec<_> = files.iter().rev().copied().collect();
    let (one, other) = (load(&files), load(&reversed));
    let names: Vec<&str> = one.files.iter().map(|trace| trace.file_name()).collect();
    assert_eq!(names, ["C", "a.trace", "b.csv"]);
    assert_eq!(generate(3, 40, &one), generate(3, 40, &other));
}

#[test]
fn hidden_files_and_folders_do_not_count() {
    let folder = folder(&[("t", "1\n"), (".hidden", "none")]);
    std::fs::create_dir(folder.path().join("more")).expect("room");
    assert_eq!(Traces::load(folder.path()).expect("a trace").len(), 1);
}

#[test]
fn cellular_and_every_second_satellite_network_have_a_trace_and_others_stay() {
    let traces = load(&[("t", &opportunities(0)), ("u", CSV)]);
    let (with, without) = (generate(6, 80, &traces), generate(6, 80, &Traces::default()));
    for (number, (draw, plain)) in with.iter().zip(&without).enumerate() {
        let expected = match draw.kind {
            Kind::Cellular => true,
            Kind::Satellite => number == 35 || number == 75,
            _ => false,
        };
        assert_eq!(draw.stretch.is_some(), expected, "{}", draw.id);
        assert_eq!(draw == plain, !expected, "{}", draw.id);
    }
    let used: std::collections::BTreeSet<&str> =
        with.iter().filter_map(|draw| Some(draw.stretch.as_ref()?.trace.file_name())).collect();
    assert_eq!(used.len(), 2, "each file gives some network its rates");
    assert_ne!(with, generate(7, 80, &traces));
}

/// Returns the rates of the link and the outages in a network.
fn resolved(draw: &Draw) -> hopline_sim::Spec {
    let law = [Law::parse("cubic").expect("known")];
    let plan = draw.plan(&law, &[]).unwrap_or_else(|e| panic!("{e}\n{}", draw.toml));
    plan.points[0].scenario.spec(1).expect("checked")
}

#[test]
fn the_highest_goodput_is_that_of_the_stretch_of_the_trace() {
    // Rates of 20, 5 and 40 Mb/s for 30 s each.
    let traces = load(&[("t", CSV)]);
    let rate = |s: f64| [20e6, 5e6, 40e6][(s.rem_euclid(90.0) / 30.0) as usize];
    for draw in generate(9, 80, &traces).iter().filter(|draw| draw.stretch.is_some()) {
        let spec = resolved(draw);
        let rates = spec.links[0].impairments.rate_traces.each_ref().map(|trace| trace.as_deref());
        assert!(rates[0].is_some() && rates[0] == rates[1], "{}: both directions", draw.id);
        assert_eq!(rates[0].expect("a trace").period(), Duration::from_secs(90));
        let offset_s = draw.stretch.as_ref().expect("filtered").offset.as_secs_f64();
        assert!((0.0..90.0).contains(&offset_s), "{offset_s}");
        // Means of milliseconds, without those of outages.
        let outages: Vec<(f64, f64)> = draw
            .toml
            .split("[[outage]]")
            .skip(1)
            .map(|text| (key(text, "start_s"), key(text, "end_s")))
            .collect();
        assert_eq!(outages.is_empty(), draw.kind == Kind::Cellular);
        let is_silent = |s: f64| outages.iter().any(|(start, end)| (start..end).contains(&&s));
        let times = (0..40_000).map(|ms| (f64::from(ms) + 0.5) * 1e-3);
        let expected: f64 = times.filter(|s| !is_silent(*s)).map(|s| rate(offset_s + s)).sum::<f64>() / 40e3;
        let Measure::Goodput { ceiling_bps } = draw.measure else { panic!("{}", draw.id) };
        assert!((ceiling_bps / expected - 1.0).abs() < 1e-3, "{}: {ceiling_bps}, not {expected}", draw.id);
    }
}

/// Returns the first number of that key.
fn key(text: &str, name: &str) -> f64 {
    let line = text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(" = "));
    line.expect("the key").parse().expect("a number")
}

#[test]
fn no_network_lies_in_a_long_stop_of_a_trace() {
    // A second of 12.032 Mb/s, and then a stop of 1000 s.
    let traces = load(&[("t", &opportunities(1_000_000))]);
    let mean_bps = traces.files[0].rates.mean_bps() as f64;
    for seed in 0..20 {
        for draw in generate(seed, 20, &traces).iter().filter(|draw| draw.stretch.is_some()) {
            let Measure::Goodput { ceiling_bps } = draw.measure else { panic!("{}", draw.id) };
            assert!(ceiling_bps >= LEAST_SHARE * mean_bps, "{seed}: {ceiling_bps} of {mean_bps}");
        }
    }
}

#[test]
fn names_of_files_are_quoted_in_scenarios() {
    let traces = load(&[("a \"b\" \\ é.trace", "1\n")]);
    for draw in generate(1, 20, &traces).iter().filter(|draw| draw.stretch.is_some()) {
        resolved(draw);
    }
}

#[test]
fn folders_without_traces_are_refused() {
    let folder = folder(&[("file", "1\n")]);
    let help = "(--traces takes a folder whose files are traces of link rates)";
    assert_eq!(errors(&folder.path().join("no")), format!("DIR: there is no such folder {help}"));
    assert_eq!(errors(&folder.path().join("file")), format!("DIR: not a folder {help}"));
    let empty = tempfile::tempdir().expect("room");
    assert_eq!(errors(empty.path()), format!("DIR: a folder without files {help}"));
}

#[test]
fn every_file_that_is_wrong_is_reported_with_its_line() {
    let folder = folder(&[
        ("a", "1\n3\n2\n"),
        ("good", "1\n"),
        ("readme", "Traces of a drive\n"),
        ("slow", "10000000000\n"),
        ("stopped.csv", "time_s,rate_mbps\n0,0\n1,0\n"),
    ]);
    let formats =
        "lines are times in milliseconds, as mahimahi has them, or a CSV with the header `time_s,rate_mbps`";
    let expected = [
        "DIR/a:3:1: time 2 after time 3 (times do not decrease)".to_owned(),
        format!("DIR/readme:1:1: `Traces of a drive` is not the first line of a trace of rates ({formats})"),
        "DIR/slow: a trace with less than 1 bit/s on average (the trace repeats from its last time on: check the units \
         of that time)"
            .to_owned(),
        format!("DIR/stopped.csv:1:1: a trace that never has a rate above 0 ({formats})"),
    ];
    assert_eq!(errors(folder.path()), expected.join("\n"));
}

#[cfg(target_os = "linux")]
#[test]
fn names_that_no_scenario_can_contain_are_refused() {
    use std::os::unix::ffi::OsStrExt;
    let folder = folder(&[("a\tb", "1\n")]);
    std::fs::write(folder.path().join(OsStr::from_bytes(b"\xff")), "1\n").expect("room");
    let errors = errors(folder.path());
    assert_eq!(errors.matches("a name that no scenario can contain (rename the file").count(), 2, "{errors}");
}
