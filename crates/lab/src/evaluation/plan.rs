//! Files of evaluations, and the one that is built in.

use super::keys;
use super::law::Law;
use super::network::{Context, Network};
use super::verdict::{NetworkResult, judge};
use crate::built_in::unpack;
use crate::comparison::Comparison;
use crate::experiment::{ExperimentError, RunOptions};
use crate::plan::Effort;
use hopline_config::document::{self, Setting};
use hopline_config::schema::{Section, check_document};
use hopline_config::source::{Problem, Problems, Source, nearest};
use hopline_scenario::CustomAlgorithms;
use include_dir::{Dir, include_dir};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use tempfile::TempDir;

/// The repository's `evaluation/` at the time of the build.
static BUILT_IN: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/../../evaluation");

/// Name of the built-in evaluation file.
const FILE: &str = "rfc9743.toml";

/// Networks, criteria, and the algorithms that are evaluated.
#[derive(Clone, Debug)]
pub struct EvaluationPlan {
    /// Title of the report.
    pub title: String,
    /// Names of the references, the first of `laws`.
    pub references: Vec<String>,
    /// All algorithms: the references, then those that were asked for.
    pub laws: Vec<Law>,
    /// Networks.
    pub networks: Vec<Network>,
    /// Parts of the document that no network is about.
    pub not_covered: Vec<NotCovered>,
}

/// Part of an evaluation that is run, and how.
#[derive(Clone, Copy, Debug)]
pub struct Selection<'a> {
    /// Ids of networks, or beginnings of sections; empty: all networks.
    pub only: &'a [String],
    /// Number of runs of each network, in place of the file's.
    pub runs: Option<u64>,
    /// Number of runs: the file's, or its `quick_runs`.
    pub effort: Effort,
    /// Settings over every scenario.
    pub set: &'a [Setting],
}

impl Default for Selection<'_> {
    /// Everything, as the file says.
    fn default() -> Self {
        Self { only: &[], runs: None, effort: Effort::Full, set: &[] }
    }
}

/// Part of a document that no network is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotCovered {
    /// Section.
    pub clause: String,
    /// Reason.
    pub reason: String,
}

/// Place of an evaluation file.
#[derive(Debug)]
pub struct OpenPlan {
    path: PathBuf,
    /// Folder of the unpacked built-in file; removed on drop.
    _unpacked: Option<TempDir>,
}

/// Opens the evaluation file `path`, or the built-in one.
///
/// # Errors
/// If the built-in one cannot be unpacked.
pub fn open(path: Option<&Path>) -> Result<OpenPlan, Problem> {
    if let Some(path) = path {
        return Ok(OpenPlan { path: path.to_owned(), _unpacked: None });
    }
    let folder = unpack(&BUILT_IN, "evaluation")?;
    Ok(OpenPlan { path: folder.path().join(FILE), _unpacked: Some(folder) })
}

impl OpenPlan {
    /// Reads the evaluation of `laws`, which user-defined `machines` may implement.
    ///
    /// # Errors
    /// All errors of the file and of its scenarios, an unknown algorithm, and an unknown network.
    pub fn load(
        &self,
        laws: &[Law],
        selection: Selection<'_>,
        machines: &CustomAlgorithms,
    ) -> Result<EvaluationPlan, Problems> {
        let source = Source::read(&self.path)?;
        let document = document::parse(&source)?;
        check_document(&document, "the evaluation", keys::EVALUATION)?;
        let file = Section::new(&document, keys::EVALUATION);
        let references: Vec<String> = file.texts("references").into_iter().map(str::to_owned).collect();
        let parsed = references.iter().map(|name| Law::parse(name));
        let parsed = parsed.collect::<Result<Vec<_>, _>>().map_err(|p| p.at(file.origin_of("references")))?;
        if parsed.is_empty() {
            return Err(Problem::new("there are no references").at(file.origin_of("references")).into());
        }
        if let Some(twice) = (1..references.len()).find(|&n| references[..n].contains(&references[n])) {
            let problem = Problem::new(format!("the reference `{}` is named twice", references[twice]));
            return Err(problem.at(file.origin_of("references")).into());
        }
        if selection.runs == Some(0) {
            return Err(Problem::new("0 runs: a verdict needs at least one").into());
        }
        let laws = distinct(parsed, laws);
        let quick = (selection.effort == Effort::Quick).then(|| file.get(keys::evaluation::QUICK_RUNS));
        let context = Context {
            folder: self.path.parent().unwrap_or(Path::new("")),
            references: &references,
            laws: &laws,
            runs: file.get(keys::evaluation::RUNS),
            fixed_runs: selection.runs.or(quick),
            set: selection.set,
            machines,
        };
        let not_covered = file.sections("not_covered").into_iter().map(|section| NotCovered {
            clause: section.get(keys::not_covered::CLAUSE).to_owned(),
            reason: section.get(keys::not_covered::REASON).to_owned(),
        });
        let not_covered: Vec<NotCovered> = not_covered.collect();
        let sections = file.sections("network");
        if sections.is_empty() {
            return Err(Problem::new("there are no networks").at(file.origin_of("network")).into());
        }
        let sections = chosen(sections, &not_covered, selection.only)?;
        let networks = sections.iter().map(|section| Network::of(section, &context));
        let networks = networks.collect::<Result<Vec<_>, _>>()?;
        Ok(EvaluationPlan {
            title: file.get(keys::evaluation::TITLE).to_owned(),
            not_covered: if selection.only.is_empty() { not_covered } else { Vec::new() },
            references: references.clone(),
            laws: laws.clone(),
            networks,
        })
    }
}

impl EvaluationPlan {
    /// Makes the runs of all networks, in memory.
    ///
    /// # Errors
    /// If they are interrupted.
    pub fn run(&self, how: RunOptions<'_>) -> Result<Vec<Comparison>, ExperimentError> {
        self.networks.iter().map(|network| network.run(how)).collect()
    }

    /// Judges the runs of all networks, in their order.
    #[must_use]
    pub fn judge(&self, made: &[Comparison]) -> Vec<NetworkResult> {
        let networks = self.networks.iter().zip(made);
        networks.map(|(network, made)| judge(network, made, self.references.len())).collect()
    }
}

/// Returns the references, and those of `laws` that are none of them, each once.
fn distinct(references: Vec<Law>, laws: &[Law]) -> Vec<Law> {
    let mut known: BTreeSet<String> = references.iter().map(|law| law.name.clone()).collect();
    let new: Vec<Law> = laws.iter().filter(|law| known.insert(law.name.clone())).cloned().collect();
    references.into_iter().chain(new).collect()
}

/// Returns the networks with an id in `only`, or in a section that begins with a text of it; all if it is empty.
fn chosen<'a>(
    sections: Vec<Section<'a>>,
    not_covered: &[NotCovered],
    only: &[String],
) -> Result<Vec<Section<'a>>, Problem> {
    let mut ids = BTreeSet::new();
    for section in &sections {
        let id = section.get(keys::network::ID);
        for key in ["id", "clause"] {
            if section.word(key).unwrap_or_default().trim().is_empty() {
                return Err(Problem::new(format!("`{key}` of a network is empty")).at(section.origin_of(key)));
            }
        }
        if !ids.insert(id) {
            let twice = Problem::new(format!("two networks are called \"{id}\""));
            return Err(twice.at(section.origin_of("id")).help("rename one of them"));
        }
    }
    for name in only {
        if !sections.iter().any(|section| is_chosen(section, name)) {
            if let Some(part) = not_covered.iter().find(|part| is_in_section(&part.clause, name)) {
                let why = format!("no network is about section `{name}`: {}", part.reason);
                return Err(Problem::new(why).help(format!("the section is \"{}\"", part.clause)));
            }
            let near = nearest(name, ids.iter().copied()).map(|near| format!("did you mean `{near}`? "));
            let help = format!("{}the networks are {}", near.unwrap_or_default(), join(&ids));
            return Err(Problem::new(format!("there is no network or section `{name}`")).help(help));
        }
    }
    let kept = |section: &Section<'a>| only.is_empty() || only.iter().any(|name| is_chosen(section, name));
    Ok(sections.into_iter().filter(kept).collect())
}

fn is_chosen(section: &Section<'_>, name: &str) -> bool {
    section.get(keys::network::ID) == name || is_in_section(section.get(keys::network::CLAUSE), name)
}

/// Returns whether `clause`, such as `5.1.2 Protection`, is section `number` or a part of it.
fn is_in_section(clause: &str, number: &str) -> bool {
    let own = clause.split(' ').next().unwrap_or_default();
    own.strip_prefix(number).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

fn join(ids: &BTreeSet<&str>) -> String {
    ids.iter().copied().collect::<Vec<_>>().join(", ")
}
