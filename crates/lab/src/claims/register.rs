//! Register of a paper's claims: figures, claims and plans.

use super::ablation::Ablations;
use super::axis::Axis;
use super::claim::{Claim, Test};
use super::figure::Figure;
use super::keys;
use super::rule::Rule;
use crate::evaluation::Law;
use crate::plan::{Effort, Overrides, Plan, Purpose};
use hopline_config::document::{self, Setting};
use hopline_config::schema::{Section, check_document};
use hopline_config::source::{Problem, Problems, Source, nearest};
use hopline_scenario::CustomAlgorithms;
use std::path::Path;

/// Name of the file of claims in a paper's folder.
pub const FILE: &str = "claims.toml";

/// Register of a paper's claims.
#[derive(Clone, Debug)]
pub struct Register {
    /// Name of the paper's folder.
    pub id: String,
    /// Authors, title, venue, year.
    pub paper: String,
    /// Rule by which a measurement agrees.
    pub rule: Rule,
    /// Questions that the paper leaves open.
    pub axes: Vec<Axis>,
    /// Figures that can be reproduced.
    pub figures: Vec<Figure>,
    /// Claims.
    pub claims: Vec<Claim>,
    /// Comparison on random networks.
    pub draws: Option<RandomNetworks>,
}

/// Comparison on random networks: [`crate::draws`].
#[derive(Clone, Debug)]
pub struct RandomNetworks {
    /// Algorithms, the one of interest first.
    pub laws: Vec<Law>,
    /// Number of networks.
    pub networks: usize,
}

impl RandomNetworks {
    /// Name of the comparison, in place of that of a figure.
    pub const FIGURE: &str = "draws";

    fn of(section: &Section<'_>) -> Result<Self, Problem> {
        let laws = section.texts("algorithms").into_iter().map(Law::parse);
        let laws = laws.collect::<Result<_, _>>().map_err(|p| p.at(section.origin_of("algorithms")))?;
        Ok(Self { laws, networks: section.get(keys::draws::NETWORKS) as usize })
    }
}

impl Register {
    /// Reads the claims of the paper in `folder`.
    ///
    /// # Errors
    ///
    /// All errors of the file. Plans are read by [`Register::plan`].
    pub fn load(folder: &Path) -> Result<Self, Problems> {
        let source = Source::read(&folder.join(FILE))?;
        let document = document::parse(&source)?;
        check_document(&document, "the claims", keys::CLAIMS)?;
        let file = Section::new(&document, keys::CLAIMS);
        let figures: Vec<Figure> = file
            .sections("figure")
            .iter()
            .map(|section| Figure::of(section, folder))
            .collect::<Result<_, _>>()?;
        let rule = Rule::of(&file.section("rule"))?;
        let axes = file
            .sections("axis")
            .iter()
            .map(|section| Axis::of(section, &figures))
            .collect::<Result<_, _>>()?;
        let sections = file.sections("claim");
        let claims = sections.iter().map(|section| Claim::of(section, &figures, &rule));
        let claims = claims.collect::<Result<Vec<_>, _>>()?;
        unique(&sections)?;
        let id = folder.file_name().map(|name| name.to_string_lossy().into_owned()).unwrap_or_default();
        let paper = file.get(keys::claims::PAPER).to_owned();
        let draws = file.has("draws").then(|| RandomNetworks::of(&file.section("draws"))).transpose()?;
        Ok(Self { id, paper, rule, axes, figures, claims, draws })
    }

    /// Returns the numbers of the chosen figures: of the one called `figure`, or of all.
    ///
    /// # Errors
    ///
    /// If there is no such figure.
    pub fn chosen(&self, figure: Option<&str>) -> Result<Vec<usize>, Problem> {
        let Some(asked) = figure else { return Ok((0..self.figures.len()).collect()) };
        let found = self.figures.iter().position(|f| f.id == asked);
        found.map(|number| vec![number]).ok_or_else(|| {
            let random = self.draws.as_ref().map(|_| RandomNetworks::FIGURE);
            let known: Vec<&str> = self.figures.iter().map(|f| f.id.as_str()).chain(random).collect();
            let guess = nearest(asked, known.iter().copied());
            let guess = guess.map(|near| format!("did you mean `{near}`? ")).unwrap_or_default();
            Problem::new(format!("{} has no figure `{asked}`", self.id))
                .help(format!("{guess}its figures are {}", known.join(", ")))
        })
    }

    /// Returns the plan of a figure.
    ///
    /// # Errors
    ///
    /// All errors of the plan, including a claim that picks none or several of its points.
    pub fn plan(&self, figure: &Figure, over: &[Setting], effort: Effort) -> Result<Plan, Problems> {
        self.plan_with_overrides(figure, Overrides { user: over, ..Overrides::default() }, effort)
    }

    pub(super) fn plan_with_overrides(
        &self,
        figure: &Figure,
        over: Overrides<'_>,
        effort: Effort,
    ) -> Result<Plan, Problems> {
        let plan =
            Plan::load_over(&figure.plan, over, effort, Purpose::Simulation(CustomAlgorithms::default()))?;
        let measures = self.claims.iter().filter_map(|claim| match &claim.test {
            Test::Missing(_) => None,
            Test::Measure(measure) => Some(measure),
        });
        for selector in measures.flat_map(|measure| measure.selectors_in(&figure.id)) {
            let labels =
                plan.points.iter().map(|p| (p.variant.as_deref(), p.settings_json(), p.label.as_str()));
            selector.find_all(labels)?;
        }
        let of_claims = self.claims_of(&figure.id).filter_map(|claim| claim.ablations.as_ref());
        figure.ablations.iter().chain(of_claims).try_for_each(|shams| shams.check(&plan.points))?;
        Ok(plan)
    }

    /// Returns the claim of this id.
    ///
    /// # Errors
    /// If there is no such claim.
    pub fn claim(&self, id: &str) -> Result<&Claim, Problem> {
        self.claims.iter().find(|claim| claim.id == id).ok_or_else(|| {
            let ids = || self.claims.iter().map(|claim| claim.id.as_str());
            let parts: Vec<&str> = ids().filter(|known| known.starts_with(id)).collect();
            let help = match nearest(id, ids()) {
                _ if !parts.is_empty() && !id.is_empty() => format!("its parts are {}", parts.join(", ")),
                Some(near) => format!("did you mean `{near}`?"),
                None => format!("`hopline reproduce {} --list` lists its claims", self.id),
            };
            Problem::new(format!("{} has no claim `{id}`", self.id)).help(help)
        })
    }

    /// Returns the runs that are needed to judge a claim: numbers of figures, each with a plan of the points
    /// that are measured, compared, or stand in for those with the mechanism off. Empty if the claim cannot
    /// be judged yet.
    ///
    /// # Errors
    /// As [`plan`](Self::plan).
    pub fn plans_of(
        &self,
        claim: &Claim,
        over: &[Setting],
        effort: Effort,
    ) -> Result<Vec<(usize, Plan)>, Problems> {
        let mut plans = Vec::new();
        for (number, figure) in self.figures.iter().enumerate() {
            let is_judged_by = match &claim.test {
                Test::Measure(measure) => !measure.selectors_in(&figure.id).is_empty(),
                Test::Missing(_) => false,
            };
            if is_judged_by {
                let plan = self.plan(figure, over, effort)?;
                let points = self.points_of(claim, figure, &plan)?;
                plans.push((number, plan.reduced_to(&points)?));
            }
        }
        Ok(plans)
    }

    /// Returns the numbers of the points of a figure's plan by which a claim is judged, including those with
    /// the mechanism off; in order.
    pub(super) fn points_of(
        &self,
        claim: &Claim,
        figure: &Figure,
        plan: &Plan,
    ) -> Result<Vec<usize>, Problem> {
        let Test::Measure(measure) = &claim.test else { return Ok(Vec::new()) };
        let mut points = Vec::new();
        for selector in measure.selectors_in(&figure.id) {
            let named = plan.points.iter();
            let found = selector
                .find_all(named.map(|p| (p.variant.as_deref(), p.settings_json(), p.label.as_str())))?;
            if let Some(shams) = self.ablations_of(claim, figure) {
                points.extend(shams.ablation_points(&plan.points, &found)?);
            }
            points.extend(found);
        }
        points.sort_unstable();
        points.dedup();
        Ok(points)
    }

    /// Returns the claims that are judged by the runs of a figure.
    pub fn claims_of<'a>(&'a self, figure: &'a str) -> impl Iterator<Item = &'a Claim> {
        self.claims.iter().filter(move |claim| match &claim.test {
            Test::Missing(_) => false,
            Test::Measure(measure) => measure.figure == figure,
        })
    }

    /// Returns the stand-ins of the variants of `figure` in a claim, if known.
    pub(super) fn ablations_of<'a>(&self, claim: &'a Claim, figure: &'a Figure) -> Option<&'a Ablations> {
        claim.ablations.as_ref().or(figure.ablations.as_ref())
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
