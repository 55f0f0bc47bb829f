//! Reading of plan files.

use super::keys;
use super::keys::PLAN;
use super::overrides::{self, ADVICE_IN_PLAN, KeySetter, Overrides, reject_overridden};
use super::{
    Difference, Keep, KeepNodes, KeepPairs, KeepSeries, MAX_POINTS, Plan, Point, Runs, product, resolve,
    steps,
};
use crate::engine::Engine;
use crate::metrics::{self, Level};
use crate::objective::{MetricSelection, Objective};
use crate::stats::{Confidence, PercentError, Precision};
use hopline_config::document::{self, Node, Setting};
use hopline_config::schema::{Section, check_document};
use hopline_config::source::{Problem, Problems, Source, nearest};
use hopline_scenario::{Axis, CustomAlgorithms, Scenario, axes, settings};
use std::path::Path;
use std::sync::Arc;

/// Part of a plan that is run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// As many runs as the plan says.
    Full,
    /// `quick_runs` runs of each point; `precision` is ignored.
    Quick,
}

/// Purpose of the scenario of a plan.
#[derive(Clone, Debug)]
pub(crate) enum Purpose {
    /// Simulation; the scenario may name these user-defined algorithms.
    Simulation(CustomAlgorithms),
    /// Emulation.
    Emulation,
}

impl Plan {
    /// Reads a plan file and the scenario that it names, and applies the settings `over` at every point.
    ///
    /// # Errors
    ///
    /// All errors of the plan, of the scenario, and of any point. Also a key of `over` in two cases:
    ///
    /// - The plan varies the key, or sets it at some points.
    /// - The key is in a table that switches a mechanism on, and only some variants have that table.
    pub fn load(path: &Path, over: &[Setting], effort: Effort) -> Result<Self, Problems> {
        Self::load_with(path, over, effort, CustomAlgorithms::default())
    }

    /// As [`load`](Self::load), for a plan with a scenario that may name user-defined algorithms
    /// (`machines`).
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_with(
        path: &Path,
        over: &[Setting],
        effort: Effort,
        machines: CustomAlgorithms,
    ) -> Result<Self, Problems> {
        let over = Overrides { user: over, ..Overrides::default() };
        Self::load_over(path, over, effort, Purpose::Simulation(machines))
    }

    /// As [`load`](Self::load), for runs over Linux kernels: the scenario may have programs, and needs no flows.
    ///
    /// # Errors
    ///
    /// As [`load`](Self::load).
    pub fn load_network(path: &Path, over: &[Setting], effort: Effort) -> Result<Self, Problems> {
        let over = Overrides { user: over, ..Overrides::default() };
        Self::load_over(path, over, effort, Purpose::Emulation)
    }

    /// Reads a plan file. The settings `over` take precedence over those that the plan applies at every point.
    pub(crate) fn load_over(
        path: &Path,
        over: Overrides<'_>,
        effort: Effort,
        purpose: Purpose,
    ) -> Result<Self, Problems> {
        let source = Source::read(path)?;
        let stem = path.file_stem().map(|s| s.to_string_lossy().into_owned()).unwrap_or_default();
        Self::parse_over(&source, path.parent().unwrap_or(Path::new("")), &stem, over, effort, purpose)
    }

    /// Reads a plan from `source`. The path of the scenario is relative to `folder`. `name` is the default name of the plan.
    ///
    /// # Errors
    ///
    /// All errors of the plan.
    pub fn parse(
        source: &Arc<Source>,
        folder: &Path,
        name: &str,
        over: &[Setting],
        effort: Effort,
    ) -> Result<Self, Problems> {
        Self::parse_with(source, folder, name, over, effort, CustomAlgorithms::default())
    }

    /// As [`parse`](Self::parse), for a plan with a scenario that may name user-defined algorithms
    /// (`machines`).
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn parse_with(
        source: &Arc<Source>,
        folder: &Path,
        name: &str,
        over: &[Setting],
        effort: Effort,
        machines: CustomAlgorithms,
    ) -> Result<Self, Problems> {
        Self::parse_over(
            source,
            folder,
            name,
            Overrides { user: over, ..Overrides::default() },
            effort,
            Purpose::Simulation(machines),
        )
    }

    /// As [`parse`](Self::parse), for runs over Linux kernels.
    ///
    /// # Errors
    ///
    /// As [`parse`](Self::parse).
    pub fn parse_network(
        source: &Arc<Source>,
        folder: &Path,
        name: &str,
        over: &[Setting],
        effort: Effort,
    ) -> Result<Self, Problems> {
        let over = Overrides { user: over, ..Overrides::default() };
        Self::parse_over(source, folder, name, over, effort, Purpose::Emulation)
    }

    fn parse_over(
        source: &Arc<Source>,
        folder: &Path,
        name: &str,
        over: Overrides<'_>,
        effort: Effort,
        purpose: Purpose,
    ) -> Result<Self, Problems> {
        let document = document::parse(source)?;
        check_document(&document, "the plan", PLAN)?;
        let plan = Section::new(&document, PLAN);
        reject_overridden(over.user, &setters(plan)?, ADVICE_IN_PLAN)?;
        let mut variants = variants(plan)?;
        let plain = || base(plan, folder, &[], &purpose);
        let everywhere = overrides::put_into_variants(over.reading, &mut variants, plain)?;
        let without = || base(plan, folder, &everywhere, &purpose);
        overrides::reject_switches(over.user, &variants, without)?;
        let scenario = base(plan, folder, &[everywhere.as_slice(), over.user].concat(), &purpose)?;
        let rest = product(&[Difference::default()], &combinations(plan)?)?;
        let points = product(&variants, std::slice::from_ref(&rest))?;
        // The variants of one combination are adjacent points, because they are compared with each other.
        let (across, count) = (variants.len(), rest.len());
        let grouped: Vec<Difference> =
            (0..points.len()).map(|i| points[(i % across) * count + i / across].clone()).collect();
        let named = plan.has("variant");
        let baseline = |number: usize| if named { number - number % across } else { 0 };
        let points = resolve(&scenario, &grouped, baseline)?;
        let new = Self {
            name: plan.word("name").unwrap_or(name).to_owned(),
            title: plan.word("title").map(str::to_owned),
            runs: runs(plan, &scenario, &points, effort)?,
            objective_as_written: scenario.objective(),
            objective: Objective::default_for(&[]),
            flows: super::flows(&points)?,
            points,
            confidence: Confidence::new(plan.get(keys::plan::CONFIDENCE))
                .expect("the key's range lies within (0, 1)"),
            keep: keep(plan),
            engine: Engine::Simulator,
        };
        new.with_objective(hopline_scenario::Objective::of(plan))
    }
}

/// Returns the scenario with the settings that apply at every point: those of `[set]`, `seed`, and `over`.
fn base(plan: Section<'_>, folder: &Path, over: &[Setting], purpose: &Purpose) -> Result<Scenario, Problems> {
    let path = folder.join(plan.get(keys::plan::SCENARIO));
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
    match purpose {
        Purpose::Simulation(machines) => Scenario::load_with(&path, &set, machines.clone()),
        Purpose::Emulation => Scenario::load_network(&path, &set),
    }
}

/// Returns the parts of a plan with settings that override those that apply at every point. These are the variants, `[zip]`,
/// `[grid]`, and the plan's own keys that replace keys of the scenario (`runs` and the question).
fn setters(plan: Section<'_>) -> Result<Vec<KeySetter>, Problem> {
    let mut setters = Vec::new();
    let mut setter = |name: String, settings: Vec<Setting>| setters.push(KeySetter { name, settings });
    for variant in plan.sections("variant") {
        let name = format!("the variant \"{}\"", variant.get(keys::variant::NAME));
        setter(name.clone(), variant.node("set").map(settings).unwrap_or_default());
        setter(format!("`grid` of {name}"), variant.node("grid").map(settings).unwrap_or_default());
    }
    for table in ["zip", "grid"] {
        setter(format!("`[{table}]` of the plan"), plan.node(table).map(settings).unwrap_or_default());
    }
    let question = plan.section("question");
    let own = [
        ("runs", plan, "runs"),
        ("question.metric", question, "metric"),
        ("question.bound", question, "bound"),
    ];
    let own = own.into_iter().filter_map(|(path, section, key)| {
        let node = section.node(key)?.clone();
        Some(Setting { path: path.to_owned(), key: node.origin.clone(), node })
    });
    setter("the plan".to_owned(), own.collect());
    Ok(setters)
}

/// Returns the variants, in the order of the file. A variant with its own `grid` yields one for each combination of that
/// grid.
fn variants(plan: Section<'_>) -> Result<Vec<Difference>, Problem> {
    let mut all = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for variant in plan.sections("variant") {
        let name = variant.get(keys::variant::NAME);
        if names.contains(&name) {
            return Err(Problem::new(format!("two variants are called \"{name}\""))
                .at(variant.origin_of("name"))
                .help("give each a name of its own: results know them by it"));
        }
        names.push(name);
        let head = Difference {
            variant: Some(name.to_owned()),
            named: variant.node("set").map(settings).unwrap_or_default(),
            varied: Vec::new(),
        };
        let grid = variant.node("grid").map(|node| axes(node, "grid")).transpose()?.unwrap_or_default();
        all.extend(product(&[head], &steps(&grid)?)?);
    }
    Ok(if all.is_empty() { vec![Difference::default()] } else { all })
}

/// Returns the steps that are combined with the variants: one for the rows of `[zip]`, then one for each axis of `[grid]`.
fn combinations(plan: Section<'_>) -> Result<Vec<Vec<Difference>>, Problem> {
    let zipped = plan.node("zip").map(rows).transpose()?;
    let grid = plan.node("grid").map(|node| axes(node, "grid")).transpose()?.unwrap_or_default();
    Ok(zipped.into_iter().chain(steps(&grid)?).collect())
}

/// Returns the rows of `[zip]`. Row *n* has value *n* of each key.
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
    if first.len() > MAX_POINTS {
        return Err(Problem::new(format!("more than {MAX_POINTS} points")).at(&node.origin));
    }
    let row = |i: usize| Difference::varied(axes.iter().map(|axis: &Axis| axis[i].clone()).collect());
    Ok((0..first.len()).map(row).collect())
}

/// Maximum number of flows in the help of an error message.
const MAX_LISTED: usize = 20;

fn runs(plan: Section<'_>, scenario: &Scenario, points: &[Point], effort: Effort) -> Result<Runs, Problem> {
    let first = plan.integer("runs").unwrap_or(scenario.runs());
    let wanted = plan.word("precision").map(|text| precision(plan, text, points)).transpose()?;
    Ok(match (effort, wanted) {
        (Effort::Quick, _) => Runs::Fixed(plan.get(keys::plan::QUICK_RUNS).min(first)),
        (Effort::Full, None) => Runs::Fixed(first),
        (Effort::Full, Some((precision, target))) => {
            let most = plan.get(keys::plan::MAX_RUNS).max(first);
            Runs::Until { precision, target, first: first.max(2), max: most.max(2) }
        }
    })
}

/// Returns the requested precision, and the metric that it applies to.
fn precision(
    plan: Section<'_>,
    text: &str,
    points: &[Point],
) -> Result<(Precision, MetricSelection), Problem> {
    let wrong = |e: PercentError| Problem::new(e.to_string()).at(plan.origin_of("precision"));
    Ok((text.parse().map_err(wrong)?, target(plan, points)?))
}

/// Returns the metric that `precision` applies to. The default is the goodput of all flows, or of `precision_flow`.
fn target(plan: Section<'_>, points: &[Point]) -> Result<MetricSelection, Problem> {
    let flow = plan.word("precision_flow").unwrap_or_default();
    let (level, usual) =
        if flow.is_empty() { (Level::Run, "aggregate_goodput_bps") } else { (Level::Flow, "goodput_bps") };
    let name = plan.word("precision_metric").unwrap_or(usual);
    let metric = metrics::find_at(level, name, plan.origin_of("precision_metric"))?;
    if !flow.is_empty() {
        points.iter().try_for_each(|point| has_flow(plan, point, flow))?;
    }
    Ok(MetricSelection { metric, subject: flow.to_owned() })
}

fn has_flow(plan: Section<'_>, point: &Point, flow: &str) -> Result<(), Problem> {
    let spec = point.scenario.spec(1).expect("points are made of scenarios that resolve");
    let known = || spec.flows.iter().map(|f| f.name.as_str());
    if known().any(|name| name == flow) {
        return Ok(());
    }
    let guess = nearest(flow, known()).map(|near| format!("did you mean \"{near}\"? "));
    let listed: Vec<&str> = known().take(MAX_LISTED).collect();
    Err(Problem::new(format!("{} has no flow \"{flow}\"", point.label))
        .at(plan.origin_of("precision_flow"))
        .help(guess.unwrap_or_default() + "its flows are " + &listed.join(", ")))
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
        pairs: match plan.word("pairs") {
            Some("keep") => KeepPairs::Keep,
            _drop => KeepPairs::Drop,
        },
    }
}
