//! Open questions of a paper, each with the answers that its text allows.

use super::figure::{Figure, check_figure};
use super::keys::{axis, reading};
use hopline_config::document::Setting;
use hopline_config::schema::Section;
use hopline_config::source::{Origin, Problem};
use hopline_scenario::settings;

/// A question that a paper leaves open, and that could decide its claims.
#[derive(Clone, Debug)]
pub struct Axis {
    /// Name.
    pub id: String,
    /// The paper's words that leave it open, and their place.
    pub words: String,
    /// Ids of the figures that it concerns; empty: all.
    pub figures: Vec<String>,
    /// `true` if it is varied from the first reading alone, and not crossed with other axes.
    pub is_varied_alone: bool,
    /// The answers, at least two, the one closest to the words first.
    pub answers: Vec<Answer>,
    pub(super) origin: Origin,
}

/// An answer to an open question.
#[derive(Clone, Debug)]
pub struct Answer {
    /// Name.
    pub name: String,
    /// Settings over every point of a figure's plan; those that would switch a mechanism on over the points alone that have it.
    pub set: Vec<Setting>,
}

impl Axis {
    pub(super) fn of(section: &Section<'_>, figures: &[Figure]) -> Result<Self, Problem> {
        let id = section.get(axis::ID).to_owned();
        let origin = section.origin.clone();
        let readings = section.sections("reading");
        if let Some(first) = readings.first().filter(|first| first.node("set").is_some()) {
            return Err(Problem::new(format!("the first reading of the axis \"{id}\" sets keys"))
                .at(first.origin_of("set"))
                .help(
                    "claims are judged by the first reading: its keys belong into the plans of the figures",
                ));
        }
        let answers: Vec<Answer> = readings.iter().map(Answer::of).collect();
        if answers.len() < 2 {
            return Err(Problem::new(format!("the axis \"{id}\" has a single reading"))
                .at(&origin)
                .help("an axis is a question with two answers or more"));
        }
        let of_figures = section.texts("figures");
        let place = section.origin_of("figures");
        of_figures.iter().try_for_each(|name| check_figure(name, place, figures))?;
        let figures = of_figures.into_iter().map(str::to_owned).collect();
        let alone = section.flag("alone").unwrap_or(false);
        Ok(Self {
            id,
            words: section.get(axis::WORDS).to_owned(),
            figures,
            is_varied_alone: alone,
            answers,
            origin,
        })
    }

    pub(super) fn concerns(&self, figure: &str) -> bool {
        self.figures.is_empty() || self.figures.iter().any(|id| id == figure)
    }
}

impl Answer {
    fn of(section: &Section<'_>) -> Self {
        let set = section.node("set").map(settings).unwrap_or_default();
        Self { name: section.get(reading::NAME).to_owned(), set }
    }
}
