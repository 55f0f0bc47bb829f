//! All shipped scenarios parse, sweep and resolve, and no input makes the parser panic.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use hopline_config::document::Setting;
use hopline_config::source::Source;
use hopline_lab::file_kinds;
use hopline_lab::{Plan, Scenario};
use hopline_scenario::parse_vary;
use proptest::prelude::*;
use std::path::{Path, PathBuf};
use std::sync::Arc;

fn shipped() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios");
    let folders = std::fs::read_dir(root).unwrap().map(|e| e.unwrap().path());
    let files = folders.map(|p| p.join("scenario.toml"));
    let mut files: Vec<PathBuf> = files.filter(|file| file.is_file()).collect();
    files.sort();
    files
}

#[test]
fn every_shipped_scenario_is_valid_named_after_its_folder_and_explained() {
    let files = shipped();
    assert!(files.len() >= 10, "{files:?}");
    for file in files {
        let scenario = Scenario::load(&file, &[]).unwrap_or_else(|e| panic!("{e}"));
        let folder = file.parent().unwrap();
        assert_eq!(Some(scenario.name().as_str()), folder.file_name().unwrap().to_str());
        assert!(folder.join("README.md").is_file(), "{} has no README.md", folder.display());
        let axes = scenario.sweep().unwrap_or_else(|e| panic!("{e}"));
        Plan::new(&scenario, &axes).unwrap_or_else(|e| panic!("{e}"));
        assert!(scenario.spec(7).is_ok());
    }
}

fn parse(text: &str) -> Result<Scenario, hopline_lab::Problems> {
    let source = Arc::new(Source { name: "fuzz.toml".into(), text: text.into() });
    Scenario::parse(source, PathBuf::from("/nonexistent"), &[])
}

/// Returns a scenario in which `line` replaces line `at`.
fn with_line(at: usize, line: &str) -> String {
    let text = std::fs::read_to_string(&shipped()[0]).unwrap();
    let mut lines: Vec<&str> = text.lines().collect();
    let at = at % lines.len();
    lines[at] = line;
    lines.join("\n")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2000))]

    #[test]
    fn any_text_is_a_scenario_or_an_error(text in any::<String>()) {
        let _ = parse(&text);
    }

    #[test]
    fn any_line_in_a_scenario_is_valid_or_an_error(at in 0usize..100, line in "[ -~\n]{0,40}") {
        let _ = parse(&with_line(at, &line));
    }

    #[test]
    fn any_value_of_any_key_is_valid_or_an_error(
        key in "(duration_s|seed|runs|transport|tcp|tcp\\.window|flow|flow\\.0\\.(src|bytes|start_s)|nodes\\.(count|layout)|\
                radio\\.(range_m|errors|preset)|mac\\.cw_min|sweep|link|zz)",
        value in prop_oneof![
            any::<i64>().prop_map(|i| i.to_string()),
            any::<f64>().prop_map(|x| format!("{x:?}")),
            "[a-z0-9\\[\\]{}=,.\" -]{0,12}",
        ],
    ) {
        // A network of 16 million nodes is valid, but too slow to build here.
        prop_assume!(key != "nodes.count" || value.len() < 4);
        let scenario = Scenario::load(&shipped()[0], &[]).unwrap();
        if let Ok(setting) = Setting::parse("--set", &format!("{key}={value}")) {
            let _ = scenario.with(&[setting]);
        }
    }

    #[test]
    fn every_problem_lies_within_its_text(at in 0usize..100, line in "[a-z_0-9 =\"\\[\\].]{0,30}") {
        if let Err(problems) = parse(&with_line(at, &line)) {
            for problem in problems.0 {
                if let Some(place) = problem.at {
                    prop_assert!(place.span.end <= place.source.text.len() && place.span.start <= place.span.end);
                }
            }
        }
    }

    #[test]
    fn any_vary_is_an_axis_or_an_error(text in any::<String>()) {
        let _ = parse_vary(&text);
    }
}

/// To bring the pages up to date: `UPDATE_REFERENCE=1 cargo test -p hopline-lab --test it scenarios::the_references`.
#[test]
fn the_references_in_the_pages_match_the_key_tables() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    for (page, heading, kind) in [
        ("docs/scenario-keys.md", "## Every key\n", "scenario"),
        ("docs/plans.md", "## Every key of a plan\n", "plan"),
        ("docs/claims.md", "## Every key of a claims file\n", "claims"),
        ("docs/evaluate.md", "## Every key of an evaluation file\n", "evaluation"),
    ] {
        let path = root.join(page);
        let text = std::fs::read_to_string(&path).unwrap();
        let (before, after) = text.split_once(heading).expect("the page has a reference");
        let expected = file_kinds::by_name(kind).unwrap().reference();
        if std::env::var_os("UPDATE_REFERENCE").is_some() {
            std::fs::write(&path, format!("{before}{heading}{expected}")).unwrap();
        } else {
            assert!(after == expected, "{page} is out of date; see the comment above this test");
        }
    }
}
