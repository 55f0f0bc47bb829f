//! `hopline compare`.

use super::*;

fn compare_chain(more: &[&str]) -> Output {
    compare_chain_over("3", more)
}

fn compare_chain_over(runs: &str, more: &[&str]) -> Output {
    let file = scenario("chain");
    let start = ["compare", file.to_str().unwrap(), "--set", "duration_s=2", "--runs", runs];
    hopline(start.iter().chain(more))
}

#[test]
fn without_vary_the_sweep_of_the_scenario_is_compared() {
    let output = compare_chain(&[]);
    let text = stdout(&output);
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[0], "chain: 4 variants, 3 paired runs, seed 1; ± is the 95 % interval of the mean");
    assert!(lines[2].starts_with("variant ") && lines[2].ends_with("CPU s  fingerprint"), "{text}");
    let starts = ["tcp.window=2 ", "tcp.window=3 ", "tcp.window=8 ", "tcp.window=unclamped "];
    for (line, start) in lines[3..].iter().zip(starts) {
        assert!(line.starts_with(start), "{text}");
    }
    assert!(lines[3].contains("baseline") && !lines[4].contains("baseline"), "{text}");
    assert_eq!((lines.len(), stderr(&output).as_str()), (7, ""));
}

#[test]
fn vary_takes_the_place_of_the_sweep_and_multiplies() {
    let json = json(&compare_chain(&[
        "--vary",
        "transport=tcp-reno,tcp-sack",
        "--vary",
        "tcp.window=2,4",
        "--json",
    ]));
    let variants = json["variants"].as_array().unwrap();
    let labels: Vec<&str> = variants.iter().map(|v| v["variant"].as_str().unwrap()).collect();
    assert_eq!(labels[1..3], ["transport=tcp-reno tcp.window=4", "transport=tcp-sack tcp.window=2"]);
    assert_eq!((variants.len(), &json["runs"]), (4, &Json::from(3)));
    assert_eq!(
        keys(&variants[0]),
        [
            "cpu_s",
            "fingerprint",
            "gain_bps",
            "gain_pct",
            "goodput_bps",
            "jain",
            "rtx_index_pct",
            "runs",
            "settings",
            "timeouts",
            "variant"
        ]
    );
    assert_eq!(variants[0]["runs"].as_array().unwrap().len(), 3);
    assert!(variants[0]["goodput_bps"]["interval"][1].as_f64() > variants[0]["goodput_bps"]["mean"].as_f64());
}

#[test]
fn fingerprints_do_not_depend_on_jobs() {
    let fingerprints = |jobs| {
        let json = json(&compare_chain(&["--json", "--jobs", jobs]));
        json["variants"].as_array().unwrap().iter().map(|v| v["fingerprint"].clone()).collect::<Vec<_>>()
    };
    assert_eq!(fingerprints("1"), fingerprints("2"));
}

#[test]
fn a_run_of_a_comparison_is_that_run_alone() {
    let compared = json(&compare_chain(&["--vary", "tcp.window=3,8", "--json"]));
    let file = scenario("chain");
    let args = [
        "run",
        file.to_str().unwrap(),
        "--set",
        "duration_s=2",
        "--set",
        "tcp.window=8",
        "--run",
        "2",
        "--json",
    ];
    let alone = json(&hopline(args));
    let run = &compared["variants"][1]["runs"][1];
    assert_eq!((&run["fingerprint"], &run["flows"]), (&alone["fingerprint"], &alone["flows"]));
}

#[test]
fn one_run_has_no_interval_and_says_so() {
    let text = stdout(&compare_chain_over("1", &[]));
    assert!(text.starts_with("chain: 4 variants, 1 paired run, seed 1; one run has no interval\n"), "{text}");
    assert!(!text.contains('±'), "{text}");
}

#[test]
fn verbose_lists_every_run() {
    let text = stdout(&compare_chain(&["-v"]));
    assert_eq!(text.lines().filter(|l| l.starts_with("tcp.window=3 ")).count(), 1 + 3, "{text}");
}
