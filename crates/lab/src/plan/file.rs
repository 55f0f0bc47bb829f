//! Plan files.

use super::keys::PLAN;
use super::{Difference, Keep, KeepNodes, KeepSeries, MOST_POINTS, Plan, Runs, product, resolve, steps};
use crate::metrics::{self, Level};
use crate::scenario::document::{self, Node, Setting};
use crate::scenario::schema::{Section, check_document};
use crate::scenario::source::{Problem, Problems, Source, nearest};
use crate::scenario::{Axis, Scenario, axes, settings};
use crate::stats::{Confidence, PercentError};
use std::path::Path;
use std::sync::Arc;

/// How much of a plan is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// As the plan says.
    Full,
    /// `quick_runs` runs of each point, however imprecise.
    Quick,
}

impl Plan {
    /// Reads a plan file and the scenario that it names, and puts `over` over every point.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the plan, with the scenario, or with any point.
    pub fn load(path: &Path, over: &[Setting], effort: Effort) -> Result<Self, Problems> {
        let source = Source::read(path)?;
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        Self::parse(&source, path.parent().unwrap_or(Path::new("")), &stem, over, effort)
    }

    /// Reads a plan from `source`; the scenario is named relative to `folder`, and the plan is called `name` if it does
    /// not say.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it.
    pub fn parse(
        source: &Arc<Source>,
        folder: &Path,
        name: &str,
        over: &[Setting],
        effort: Effort,
    ) -> Result<Self, Problems> {
        let document = document::parse(source)?;
        check_document(&document, "the plan", PLAN)?;
        let plan = Section::new(&document, PLAN);
        let scenario = base(plan, folder, over)?;
        let variants = variants(plan);
        let rest = product(&[Difference::default()], &rest(plan)?)?;
        let points = product(&variants, std::slice::from_ref(&rest))?;
        // Points of one combination stand together: its variants are compared with each other.
        let (across, count) = (variants.len(), rest.len());
        let grouped: Vec<Difference> =
            (0..points.len()).map(|i| points[(i % across) * count + i / across].clone()).collect();
        let named = plan.has("variant");
        let baseline = |number: usize| if named { number - number % across } else { 0 };
        Ok(Self {
            name: plan.word("name").unwrap_or(name).to_owned(),
            title: plan.word("title").map(str::to_owned),
            points: resolve(&scenario, &grouped, baseline)?,
            runs: runs(plan, &scenario, effort)?,
            confidence: plan
                .number("confidence")
                .and_then(Confidence::new)
                .expect("the key's range lies within (0, 1), and it has a default"),
            keep: keep(plan),
        })
    }
}

/// The scenario with everything over it that holds at every point.
fn base(plan: Section<'_>, folder: &Path, over: &[Setting]) -> Result<Scenario, Problems> {
    let path = folder.join(plan.word("scenario").expect("is required"));
    let mut set: Vec<Setting> = plan.node("set").map(settings).unwrap_or_default();
    set.extend(plan.node("seed").map(|node| Setting {
        path: "seed".into(),
        key: node.origin.clone(),
        node: node.clone(),
    }));
    set.extend_from_slice(over);
    if !path.exists() {
        let missing = Problem::new(format!("{}: there is no such file", path.display()));
        let help = "the scenario is named relative to the folder of the plan";
        return Err(missing.at(plan.origin_of("scenario")).help(help).into());
    }
    Scenario::load(&path, &set)
}

fn variants(plan: Section<'_>) -> Vec<Difference> {
    let difference = |variant: Section<'_>| Difference {
        variant: variant.word("name").map(str::to_owned),
        settings: variant.node("set").map(settings).unwrap_or_default(),
    };
    let variants: Vec<Difference> = plan.sections("variant").into_iter().map(difference).collect();
    if variants.is_empty() { vec![Difference::default()] } else { variants }
}

/// What is combined with the variants: the rows of `[zip]`, then the axes of `[grid]`.
fn rest(plan: Section<'_>) -> Result<Vec<Vec<Difference>>, Problem> {
    let zipped = plan.node("zip").map(rows).transpose()?;
    let grid = plan.node("grid").map(|node| axes(node, "grid")).transpose()?.unwrap_or_default();
    Ok(zipped.into_iter().chain(steps(&grid)?).collect())
}

/// The rows of `[zip]`: the first values of all its keys, the second, and so on.
fn rows(node: &Node) -> Result<Vec<Difference>, Problem> {
    let axes = axes(node, "zip")?;
    let Some(first) = axes.first() else {
        return Err(Problem::new("`zip` is empty").at(&node.origin).help("give it lists, or remove it"));
    };
    if let Some(other) = axes.iter().find(|axis| axis.len() != first.len()) {
        let (a, b) = (&first[0].path, &other[0].path);
        return Err(Problem::new(format!(
            "`zip.{b}` has {} values, but `zip.{a}` has {}",
            other.len(),
            first.len()
        ))
        .at(&other[0].key)
        .help("lists under [zip] are of equal length; under [grid] they are combined instead"));
    }
    if first.len() > MOST_POINTS {
        return Err(Problem::new(format!("more than {MOST_POINTS} points")).at(&node.origin));
    }
    let row = |i: usize| Difference {
        variant: None,
        settings: axes.iter().map(|axis: &Axis| axis[i].clone()).collect(),
    };
    Ok((0..first.len()).map(row).collect())
}

fn runs(plan: Section<'_>, scenario: &Scenario, effort: Effort) -> Result<Runs, Problem> {
    let first = plan.integer("runs").unwrap_or(scenario.runs());
    if effort == Effort::Quick {
        return Ok(Runs::Fixed(plan.integer("quick_runs").expect("has a default").min(first)));
    }
    let Some(precision) = plan.word("precision") else { return Ok(Runs::Fixed(first)) };
    let precision = precision
        .parse()
        .map_err(|e: PercentError| Problem::new(e.to_string()).at(plan.origin_of("precision")))?;
    let metric = plan.word("precision_metric").expect("has a default");
    metrics::find(Level::Run, metric).ok_or_else(|| unknown_metric(plan, metric))?;
    let most = plan.integer("max_runs").expect("has a default").max(first);
    Ok(Runs::Until { precision, metric: metric.to_owned(), first: first.max(2), most: most.max(2) })
}

fn unknown_metric(plan: Section<'_>, metric: &str) -> Problem {
    let known = || metrics::CATALOGUE.iter().filter(|m| m.level() == Level::Run).map(|m| m.name);
    let guess = nearest(metric, known()).map(|near| format!("did you mean \"{near}\"? "));
    Problem::new(format!("no run has a metric \"{metric}\""))
        .at(plan.origin_of("precision_metric"))
        .help(format!("{}there are {}", guess.unwrap_or_default(), known().collect::<Vec<_>>().join(", ")))
}

fn keep(plan: Section<'_>) -> Keep {
    Keep {
        series: match plan.word("series") {
            Some("all") => KeepSeries::All,
            Some("none") => KeepSeries::None,
            _first_run => KeepSeries::FirstRun,
        },
        nodes: match plan.word("nodes") {
            Some("drop") => KeepNodes::Drop,
            _keep => KeepNodes::Keep,
        },
    }
}
