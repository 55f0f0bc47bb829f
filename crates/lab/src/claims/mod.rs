//! Published claims, and what our runs say of them.
//!
//! A folder a paper: `claims.toml` names its figures, each with a plan, and its claims, each with the point of a plan
//! that it is about. The rule by which a measurement agrees is part of the file.

mod evaluate;
pub mod keys;
#[cfg(test)]
mod tests;
mod verdict;

pub use evaluate::{Evidence, Measurement, evaluate};
pub use verdict::{Claimed, Direction, Verdict, judge};

use crate::metrics::{self, Better, Level, MetricInfo};
use crate::plan::{Effort, Plan};
use crate::scenario::document::{self, Setting, Value};
use crate::scenario::schema::{Section, check_document};
use crate::scenario::settings;
use crate::scenario::source::{Origin, Problem, Problems, Source, nearest};
use crate::stats::Interval;
use std::path::{Path, PathBuf};

/// Name of the file of claims in a paper's folder.
pub const FILE: &str = "claims.toml";

/// What picks a variant among the settings of a point.
const VARIANT: &str = "variant";

/// What a paper claims.
#[derive(Clone, Debug)]
pub struct Register {
    /// Name of the paper's folder.
    pub id: String,
    /// Authors, title, venue, year.
    pub paper: String,
    /// When a measurement agrees.
    pub rule: Rule,
    /// What can be reproduced.
    pub figures: Vec<Figure>,
    /// What is claimed.
    pub claims: Vec<Claim>,
}

/// When a measurement agrees with a claim.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rule {
    /// A claimed value stands for itself, give or take so many percent of it.
    pub tolerance_pct: f64,
    /// An interval whose half-width is above so many percent of the claimed value decides nothing.
    pub widest_pct: f64,
}

/// Something that can be reproduced.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Figure {
    /// What it is called on the command line.
    pub id: String,
    /// What it shows.
    pub title: String,
    /// Its plan file.
    pub plan: PathBuf,
}

/// One claim.
#[derive(Clone, Debug)]
pub struct Claim {
    /// Its number in the digest of the paper.
    pub id: String,
    /// What the paper says.
    pub statement: String,
    /// Section, figure or table of the paper; empty if not given.
    pub place: String,
    /// The set-up in words; empty: the label of the point.
    pub scenario: String,
    /// What a reader of the verdict should know; empty if nothing.
    pub note: String,
    /// How it is judged.
    pub test: Test,
}

/// How a claim is judged.
#[derive(Clone, Debug)]
pub enum Test {
    /// Not yet: this is missing.
    Needs(String),
    /// By a measurement.
    Measure(Measure),
}

/// What is measured for a claim.
#[derive(Clone, Debug)]
pub struct Measure {
    /// Id of the figure whose runs it is judged by.
    pub figure: String,
    /// The metric.
    pub metric: &'static MetricInfo,
    /// The flow whose metric it is; empty for a metric of the run.
    pub flow: String,
    /// The point that is measured.
    pub point: Selector,
    /// What it is compared with, if the claim is a gain.
    pub against: Option<Against>,
    /// What is claimed.
    pub claimed: Claimed,
}

/// What a metric is compared with: the same metric, somewhere else.
#[derive(Clone, Debug)]
pub struct Against {
    /// Id of the figure whose point it is; that of the claim, or another, whose runs do not pair with it.
    pub figure: String,
    /// Of which point.
    pub point: Selector,
    /// Of which flow; empty for a metric of the run.
    pub flow: String,
}

/// Picks a point by its settings, or one of several.
#[derive(Clone, Debug)]
pub struct Selector {
    /// The settings; `variant` is the name of a variant, or a list of names: whichever does best.
    pub settings: Vec<Setting>,
    /// Where they were written.
    pub origin: Origin,
}

impl Register {
    /// Reads the claims of the paper in `folder`.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with the file. Plans are read by [`Register::plan`].
    pub fn load(folder: &Path) -> Result<Self, Problems> {
        let source = Source::read(&folder.join(FILE))?;
        let document = document::parse(&source)?;
        check_document(&document, "the claims", keys::CLAIMS)?;
        let file = Section::new(&document, keys::CLAIMS);
        let figures: Vec<Figure> =
            file.sections("figure").iter().map(|section| Figure::of(section, folder)).collect();
        let rule = Rule::of(&file.section("rule"));
        let sections = file.sections("claim");
        let claims = sections.iter().map(|section| Claim::of(section, &figures, rule));
        let claims = claims.collect::<Result<Vec<_>, _>>()?;
        unique(&sections)?;
        let id = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let paper = file.word("paper").expect("is required").to_owned();
        Ok(Self { id, paper, rule, figures, claims })
    }

    /// The plan of a figure.
    ///
    /// # Errors
    ///
    /// Everything that is wrong with it, a claim that picks none or several of its points included.
    pub fn plan(&self, figure: &Figure, over: &[Setting], effort: Effort) -> Result<Plan, Problems> {
        let plan = Plan::load(&figure.plan, over, effort)?;
        for selector in self.claims.iter().flat_map(|claim| claim.selectors_in(&figure.id)) {
            let labels =
                plan.points.iter().map(|p| (p.variant.as_deref(), p.settings_json(), p.label.as_str()));
            selector.find_all(labels)?;
        }
        Ok(plan)
    }

    /// The claims that are judged by the runs of a figure.
    pub fn claims_of<'a>(&'a self, figure: &'a str) -> impl Iterator<Item = &'a Claim> {
        self.claims.iter().filter(move |claim| match &claim.test {
            Test::Needs(_) => false,
            Test::Measure(measure) => measure.figure == figure,
        })
    }
}

impl Rule {
    fn of(section: &Section<'_>) -> Self {
        let percent = |key| section.number(key).expect("is required");
        Self { tolerance_pct: percent("tolerance_pct"), widest_pct: percent("widest_pct") }
    }

    /// The rule in a sentence.
    #[must_use]
    pub fn describe(&self) -> String {
        format!(
            "A claimed value stands for itself ± {} %, unless the claim states another tolerance; a measurement agrees \
             if its interval meets that range, agrees in direction only if it misses the range but lies wholly on the \
             claimed side of zero, and differs otherwise; an interval that meets the range but has a half-width above \
             {} % of the claimed value cannot be judged",
            self.tolerance_pct, self.widest_pct
        )
    }
}

impl Figure {
    fn of(section: &Section<'_>, folder: &Path) -> Self {
        let text = |key| section.word(key).expect("is required");
        Self { id: text("id").to_owned(), title: text("title").to_owned(), plan: folder.join(text("plan")) }
    }
}

impl Claim {
    fn of(section: &Section<'_>, figures: &[Figure], rule: Rule) -> Result<Self, Problem> {
        let text = |key| section.word(key).unwrap_or_default().to_owned();
        let test = match section.word("needs") {
            Some(needs) => Test::Needs(needs.to_owned()),
            None => Test::Measure(Measure::of(section, figures, rule)?),
        };
        Ok(Self {
            id: text("id"),
            statement: text("statement"),
            place: text("where"),
            scenario: text("scenario"),
            note: text("note"),
            test,
        })
    }
}

impl Claim {
    /// What picks points of a figure.
    fn selectors_in<'a>(&'a self, figure: &'a str) -> impl Iterator<Item = &'a Selector> {
        let measure = match &self.test {
            Test::Needs(_) => None,
            Test::Measure(measure) => Some(measure),
        };
        let measured = measure.filter(|m| m.figure == figure).map(|m| &m.point);
        let against = measure.and_then(|m| m.against.as_ref()).filter(|a| a.figure == figure);
        measured.into_iter().chain(against.map(|a| &a.point))
    }
}

impl Measure {
    fn of(section: &Section<'_>, figures: &[Figure], rule: Rule) -> Result<Self, Problem> {
        let figure = figure(section, "figure", figures)?;
        let flow = section.word("flow").unwrap_or_default();
        let level = if flow.is_empty() { Level::Run } else { Level::Flow };
        let metric = metric(section, level)?;
        let (point, against) = (Selector::of(section, "point"), Against::of(section, figure, figures)?);
        for selector in std::iter::once(&point).chain(against.as_ref().map(|a| &a.point)) {
            selector.check(metric)?;
        }
        Ok(Self {
            figure: figure.to_owned(),
            metric,
            flow: flow.to_owned(),
            point,
            against,
            claimed: claimed(section, rule)?,
        })
    }

    /// Whether the claim is a gain or a loss, or a size.
    #[must_use]
    pub const fn direction(&self) -> Direction {
        if self.against.is_some() { Direction::Signed } else { Direction::Size }
    }
}

impl Against {
    fn of(section: &Section<'_>, figure: &str, figures: &[Figure]) -> Result<Option<Self>, Problem> {
        let (flow, other) = (section.word("flow"), section.word("against_flow"));
        if other.is_some() && flow.is_none() {
            return Err(Problem::new("`against_flow` without `flow`")
                .at(section.origin_of("against_flow"))
                .help("say which flow is compared with it"));
        }
        if section.has("against_figure") && !section.has("against") {
            return Err(Problem::new("`against_figure` without `against`")
                .at(section.origin_of("against_figure"))
                .help("say which of its points is meant"));
        }
        let figure = match section.has("against_figure") {
            true => self::figure(section, "against_figure", figures)?,
            false => figure,
        };
        let place = if section.has("against") { "against" } else { "point" };
        let flow = other.or(flow).unwrap_or_default().to_owned();
        let is_gain = section.has("against") || other.is_some();
        Ok(is_gain.then(|| Self { figure: figure.to_owned(), point: Selector::of(section, place), flow }))
    }
}

impl Selector {
    fn of(section: &Section<'_>, key: &str) -> Self {
        let settings = section.node(key).map(settings).unwrap_or_default();
        Self { settings, origin: section.origin_of(key).clone() }
    }

    /// A list of variants asks for the best of them, so there has to be one, and a better and a worse.
    fn check(&self, metric: &MetricInfo) -> Result<(), Problem> {
        let Some(variants) = self.variants() else { return Ok(()) };
        let wrong = |what: String, help: &str| Err(Problem::new(what).at(&self.origin).help(help));
        if variants.is_empty() {
            return wrong("an empty list of variants".into(), "name those of which the best is meant");
        }
        match metric.better {
            Better::Neither => wrong(
                format!("of `{}`, neither more nor less is better", metric.name),
                "name one variant in place of the list",
            ),
            Better::Higher | Better::Lower => Ok(()),
        }
    }

    /// The numbers of the points that it picks, of points given as (variant, settings, label): one, or one for each of its
    /// variants, in their order.
    ///
    /// # Errors
    ///
    /// No point is picked, or several are that no variant tells apart.
    pub(crate) fn find_all<'a>(
        &self,
        points: impl Iterator<Item = (Option<&'a str>, serde_json::Value, &'a str)>,
    ) -> Result<Vec<usize>, Problem> {
        let points: Vec<_> = points.collect();
        match self.variants() {
            None => Ok(vec![self.find(&points, None)?]),
            Some(variants) => variants.iter().map(|name| self.find(&points, Some(name))).collect(),
        }
    }

    /// The list of variants, if there is one.
    fn variants(&self) -> Option<Vec<String>> {
        let variant = self.settings.iter().find(|s| s.path == VARIANT)?;
        match &variant.node.value {
            Value::Array(names) => Some(names.iter().map(|name| name.value.to_string()).collect()),
            _ => None,
        }
    }

    /// The number of the one point that has the settings, with `of_several` in place of a list of variants.
    fn find(
        &self,
        points: &[(Option<&str>, serde_json::Value, &str)],
        of_several: Option<&str>,
    ) -> Result<usize, Problem> {
        let has = |variant: Option<&str>, of: &serde_json::Value, s: &Setting| match s.path.as_str() {
            VARIANT => variant == Some(of_several.unwrap_or(&s.text())),
            path => of.get(path) == Some(&s.json()),
        };
        let picked = |(_, (variant, of, _)): &(usize, &(Option<&str>, serde_json::Value, &str))| {
            self.settings.iter().all(|s| has(*variant, of, s))
        };
        let found: Vec<usize> = points.iter().enumerate().filter(picked).map(|(number, _)| number).collect();
        let labels = |which: &[usize]| which.iter().map(|&i| points[i].2).collect::<Vec<_>>().join("; ");
        match found[..] {
            [one] => Ok(one),
            [] => Err(Problem::new("no point of the plan has these settings")
                .at(&self.origin)
                .help(format!("the points are {}", labels(&(0..points.len()).collect::<Vec<_>>())))),
            _ => Err(Problem::new("several points of the plan have these settings")
                .at(&self.origin)
                .help(format!("add what tells them apart: {}", labels(&found)))),
        }
    }
}

fn required<'a>(section: &Section<'a>, key: &str) -> Result<&'a str, Problem> {
    section.word(key).ok_or_else(|| {
        Problem::new(format!("a claim without `{key}`"))
            .at(section.origin)
            .help("a claim that hopline cannot judge yet says what it `needs`")
    })
}

/// The id of a figure that there is.
fn figure<'a>(section: &Section<'a>, key: &str, figures: &[Figure]) -> Result<&'a str, Problem> {
    let figure = required(section, key)?;
    if figures.iter().any(|f| f.id == figure) {
        return Ok(figure);
    }
    let known: Vec<&str> = figures.iter().map(|f| f.id.as_str()).collect();
    let help = match nearest(figure, known.iter().copied()) {
        Some(near) => format!("did you mean \"{near}\"?"),
        None => format!("the figures are {}", known.join(", ")),
    };
    Err(Problem::new(format!("there is no figure \"{figure}\"")).at(section.origin_of(key)).help(help))
}

fn metric(section: &Section<'_>, level: Level) -> Result<&'static MetricInfo, Problem> {
    metrics::named(level, required(section, "metric")?, section.origin_of("metric"))
}

/// What is claimed: exactly one of a value, a range and a bound.
fn claimed(section: &Section<'_>, rule: Rule) -> Result<Claimed, Problem> {
    let [value, low, high, above, below] =
        ["claimed", "low", "high", "above", "below"].map(|key| section.number(key));
    match (value, low, high, above, below) {
        (Some(value), None, None, None, None) => {
            let tolerance = section.number("tolerance").unwrap_or(value.abs() * rule.tolerance_pct / 100.0);
            Ok(Claimed::Value { value, tolerance })
        }
        (None, Some(low), Some(high), None, None) if low <= high => {
            Ok(Claimed::Range(Interval { low, high }))
        }
        (None, None, None, Some(limit), None) => Ok(Claimed::Above(limit)),
        (None, None, None, None, Some(limit)) => Ok(Claimed::Below(limit)),
        _ => Err(Problem::new("what is claimed is not one thing")
            .at(section.origin_of("id"))
            .help("give `claimed`, or `low` and `high`, or `above`, or `below`")),
    }
}

fn unique(sections: &[Section<'_>]) -> Result<(), Problem> {
    for (i, section) in sections.iter().enumerate() {
        let id = section.word("id");
        if sections[..i].iter().any(|other| other.word("id") == id) {
            return Err(Problem::new(format!("a second claim \"{}\"", id.unwrap_or_default()))
                .at(section.origin_of("id"))
                .help("parts of a claim add a letter: \"E-4a\", \"E-4b\""));
        }
    }
    Ok(())
}
