//! All shipped papers: their claims parse, their plans load, their figures run.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on fails")]

use hopline_config::document::Setting;
use hopline_lab::claims::{Kind, Register, Test, evaluate};
use hopline_lab::experiment::{RunOptions, in_memory};
use hopline_lab::plan::{Effort, Runs};
use hopline_lab::run::NoObserver;
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

fn papers() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../papers")
}

fn registers() -> Vec<Register> {
    let folders = std::fs::read_dir(papers()).unwrap().map(|e| e.unwrap().path());
    let mut folders: Vec<PathBuf> = folders.filter(|path| path.is_dir()).collect();
    folders.sort();
    folders.iter().map(|folder| Register::load(folder).unwrap_or_else(|e| panic!("{e}"))).collect()
}

fn register(paper: &str) -> Register {
    Register::load(&papers().join(paper)).unwrap_or_else(|e| panic!("{e}"))
}

/// Returns the digest numbers of a paper's claims, without those of this project: the ids without the letters
/// of their parts, except letters in the digest itself.
fn numbers(register: &Register, of_the_digest: &[&str]) -> BTreeSet<String> {
    let is_part_of = |id: &str, number: &str| {
        id.strip_prefix(number).is_some_and(|part| part.chars().all(|c| c.is_ascii_lowercase()))
    };
    let number_of = |id: &str| {
        let numbers = of_the_digest.iter().filter(|number| is_part_of(id, number));
        numbers.max_by_key(|number| number.len()).map_or(id, |number| number).to_owned()
    };
    register.claims.iter().filter(|c| c.kind != Kind::Own).map(|c| number_of(&c.id)).collect()
}

fn all_of(of_the_digest: &[&str]) -> BTreeSet<String> {
    of_the_digest.iter().map(|&id| id.to_owned()).collect()
}

#[test]
fn every_claim_of_every_paper_is_registered() {
    const DOOR: &[&str] = &["D-1", "D-2", "D-3", "D-4", "D-5", "D-6", "D-7", "D-8", "D-9", "D-10", "D-11"];
    const NRED: &[&str] = &[
        "N-1", "N-2", "N-3", "N-4", "N-5", "N-6", "N-7", "N-8", "N-9", "N-10", "N-11", "N-12", "N-13",
        "N-14", "N-15", "N-16", "N-17", "N-18", "N-19", "N-20", "N-21",
    ];
    const TPA: &[&str] = &[
        "E-1", "E-2", "E-3", "E-4", "E-5", "E-6", "E-7", "E-8", "E-9", "E-10", "E-11", "E-12", "E-13",
        "E-14", "E-15", "E-16", "S-1", "S-2", "S-2a", "S-2b", "S-3", "S-4", "S-5", "S-5a", "S-6", "S-7",
        "S-7a", "S-8", "S-9", "S-10", "K-1", "B-1",
    ];
    const SNOOP: &[&str] = &[
        "H-1", "H-2", "H-3", "H-4", "H-5", "H-6", "H-7", "H-8", "H-9", "H-10", "I-1", "Z-1", "Z-2", "Z-3",
        "Z-4", "Z-5", "Z-6", "Z-7", // and by a second reading:
        "F-1", "H-11", "H-12", "I-2", "L-1", "Z-8",
    ];
    const DPROXY: &[&str] = &[
        "Q-1", "Q-2", "Q-3", "Q-4", "Q-5", "Q-6", "Q-7", "Q-8", "X-1", "X-2", "X-3", "X-4", "X-5", "X-6",
        "X-7", // and by a second reading:
        "Q-9", "Q-10", "Q-11", "Q-12",
    ];
    // All claims of these papers are this project's.
    const OURS: &[&str] = &[];
    let papers = [
        ("coexistence", OURS),
        ("door", DOOR),
        ("dproxy", DPROXY),
        ("nred", NRED),
        ("snoop", SNOOP),
        ("tpa", TPA),
        ("wide", OURS),
    ];
    for (paper, expected) in papers {
        assert_eq!(numbers(&register(paper), expected), all_of(expected), "{paper}");
    }
    assert_eq!(registers().len(), papers.len(), "a new paper lists its claims here");
}

#[test]
fn every_plan_loads_and_every_claim_selects_its_points() {
    for register in registers() {
        assert!(!register.figures.is_empty(), "{}", register.id);
        for figure in &register.figures {
            for effort in [Effort::Full, Effort::Quick] {
                let plan = register.plan(figure, &[], effort).unwrap_or_else(|e| panic!("{e}"));
                assert!(plan.title.is_some(), "{} {} asks no question", register.id, figure.id);
                if effort == Effort::Quick {
                    assert!(matches!(plan.runs, Runs::Fixed(5..=10)), "{}: {:?}", figure.id, plan.runs);
                }
            }
        }
    }
}

#[test]
fn every_reading_changes_a_point_of_a_judged_claim() {
    for register in registers() {
        for figure in &register.figures {
            for reading in register.readings(figure).iter().skip(1) {
                let plan = register.plan_in_reading(figure, reading, &[], Effort::Quick);
                assert!(!plan.unwrap_or_else(|e| panic!("{e}")).points.is_empty());
            }
        }
    }
}

#[test]
fn every_plan_file_belongs_to_a_figure_and_every_scenario_to_a_plan() {
    for register in registers() {
        let folder = papers().join(&register.id);
        let plans: BTreeSet<PathBuf> = register.figures.iter().map(|f| f.plan.clone()).collect();
        assert_eq!(plans.len(), register.figures.len(), "a figure, a plan");
        let mut files = toml_files(&folder);
        assert!(files.remove(&folder.join("claims.toml")));
        assert_eq!(files, plans);
        let texts: Vec<String> = plans.iter().map(|plan| std::fs::read_to_string(plan).unwrap()).collect();
        for scenario in toml_files(&folder.join("scenarios")) {
            let name = format!("\"scenarios/{}\"", scenario.file_name().unwrap().to_string_lossy());
            assert!(texts.iter().any(|text| text.contains(&name)), "no plan of {} has {name}", register.id);
        }
        assert!(folder.join("README.md").is_file(), "{} is not explained", register.id);
    }
}

fn toml_files(folder: &Path) -> BTreeSet<PathBuf> {
    let files = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path());
    files.filter(|path| path.extension().is_some_and(|e| e == "toml")).collect()
}

#[test]
fn an_untestable_claim_states_what_is_missing_and_others_their_source() {
    for register in registers() {
        for claim in &register.claims {
            assert!(!claim.statement.is_empty() && !claim.place.is_empty(), "{}", claim.id);
            if let Test::Missing(needs) = &claim.test {
                assert!(!needs.is_empty(), "{}", claim.id);
            }
        }
    }
}

/// Checks not what the figures show, but that all of their points run, and that claims find their metrics.
#[test]
fn every_figure_runs() {
    let short = ["duration_s=0.3", "warmup_s=0"].map(|text| Setting::parse("--set", text).unwrap());
    for register in registers() {
        let mut comparisons = Vec::new();
        for (number, figure) in register.figures.iter().enumerate() {
            let plan = |settings: &[Setting]| register.plan(figure, settings, Effort::Quick);
            // A figure that varies the duration itself keeps it.
            let mut plan = plan(&short).or_else(|_| plan(&[])).unwrap_or_else(|e| panic!("{e}"));
            plan.runs = Runs::Fixed(2);
            let how = RunOptions { jobs: None, command: &[], watch: &NoObserver };
            let (comparison, _) = in_memory(&plan, how).unwrap();
            assert_eq!(comparison.failed(), 0, "{} {}", register.id, figure.id);
            comparisons.push((number, comparison));
        }
        let made: Vec<_> = comparisons.iter().map(|(number, comparison)| (*number, comparison)).collect();
        let evidence = evaluate(&register, &made).unwrap_or_else(|e| panic!("{e}"));
        assert_eq!(evidence.len(), register.claims.len(), "{}", register.id);
    }
}
