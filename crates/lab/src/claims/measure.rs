//! Definition of the measurement for a claim.

use super::figure::{Figure, check_figure};
use super::rule::Rule;
use super::selector::{Aggregate, Selector, named_points};
use super::verdict::{Claimed, Scale, SignMeaning};
use crate::comparison::Comparison;
use crate::metrics::{self, Level, MetricInfo};
use crate::stats::{GainStatistic, Interval};
use hopline_config::schema::Section;
use hopline_config::source::Problem;

/// Definition of the measurement for a claim.
#[derive(Clone, Debug)]
pub struct Measure {
    /// Id of the figure that provides the runs.
    pub figure: String,
    /// The metric.
    pub metric: &'static MetricInfo,
    /// Flow or pair of flows of the metric; empty for a metric of the run.
    pub subject: String,
    /// The point that is measured.
    pub point: Selector,
    /// Place that it is compared with, if the claim is a gain.
    pub against: Option<ComparisonPoint>,
    /// The second ratio, if the claim is a ratio of ratios.
    pub over: Option<SecondRatio>,
    /// Quantity computed from the runs.
    pub quantity: Quantity,
    /// Claimed value, range or bound.
    pub claimed: Claimed,
    /// Scale on which it is judged.
    pub scale: Scale,
}

/// Place that a metric is compared with.
#[derive(Clone, Debug)]
pub struct ComparisonPoint {
    /// Id of its figure: that of the claim, or another one, with unpaired runs.
    pub figure: String,
    /// Its point; `None`: the measured one.
    pub point: Option<Selector>,
    /// Its flow or pair of flows; empty for a metric of the run.
    pub subject: String,
}

/// The ratio over which the ratio of a claim is taken: the same metric at two points of the same figure.
#[derive(Clone, Debug)]
pub struct SecondRatio {
    /// Its numerator.
    pub point: Selector,
    /// Its denominator.
    pub against: Selector,
    /// The flow or pair of flows of both; empty for a metric of the run.
    pub subject: String,
}

/// Quantity computed from the runs of a point, and of the one that it is compared with.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Quantity {
    /// The mean of the metric; if it is compared, the difference of the means in percent.
    Mean,
    /// A statistic of the gains of single runs, (ratio − 1) · 100.
    StatisticOfGains(GainStatistic),
    /// As `StatisticOfGains`, over the same statistic in the figure of this id.
    RatioToFigure(GainStatistic, String),
}

impl Measure {
    pub(super) fn of(section: &Section<'_>, figures: &[Figure], rule: &Rule) -> Result<Self, Problem> {
        let figure = figure(section, "figure", figures)?;
        let (level, subject) = subject(section)?;
        let metric = metric(section, level)?;
        let point = Selector::of(section, "point", Aggregate::of(section));
        let against = ComparisonPoint::of(section, &subject, figure, figures)?;
        for selector in std::iter::once(&point).chain(against.as_ref().and_then(|a| a.point.as_ref())) {
            selector.check(metric)?;
        }
        let quantity = Quantity::of(section, against.as_ref(), figure, figures)?;
        let over = SecondRatio::of(section, &subject, &quantity, metric)?;
        let is_gain_of_means = against.is_some() && over.is_none() && quantity == Quantity::Mean;
        let is_size = section.has("claimed") || section.has("low");
        let scale = match is_gain_of_means && is_size && rule.log_ratios.contains(&metric.name) {
            true => Scale::LogRatio,
            false => Scale::Linear,
        };
        let claimed = claimed(section, against.is_some(), scale, rule)?;
        Ok(Self {
            figure: figure.to_owned(),
            metric,
            subject,
            point,
            against,
            over,
            quantity,
            claimed,
            scale,
        })
    }

    /// Returns whether the claim is a gain or loss, or a size.
    #[must_use]
    pub const fn sign_meaning(&self) -> SignMeaning {
        match (&self.against, &self.quantity) {
            (None, _) => SignMeaning::Size,
            (_, Quantity::Mean | Quantity::StatisticOfGains(GainStatistic::Mean)) => SignMeaning::Signed,
            _ => SignMeaning::Size,
        }
    }

    /// Returns the unit of the measurement, as in the catalogue of metrics.
    #[must_use]
    pub const fn unit(&self) -> &'static str {
        match (&self.against, &self.quantity) {
            (None, _) => self.metric.unit,
            (_, Quantity::StatisticOfGains(GainStatistic::Deviation)) => "percentage points",
            (
                _,
                Quantity::StatisticOfGains(GainStatistic::DeviationPerMean) | Quantity::RatioToFigure(..),
            ) => "1",
            _ => "%",
        }
    }

    /// Returns the selectors of points in a figure.
    pub(super) fn selectors_in(&self, figure: &str) -> Vec<&Selector> {
        let over = matches!(&self.quantity, Quantity::RatioToFigure(_, over) if over == figure);
        let point = (self.figure == figure || over).then_some(&self.point);
        let against = self.against.as_ref().filter(|a| a.figure == figure || over);
        let second = self.over.as_ref().filter(|_| self.figure == figure);
        let of_second = second.into_iter().flat_map(|second| [&second.point, &second.against]);
        point.into_iter().chain(against.and_then(|a| a.point.as_ref())).chain(of_second).collect()
    }
}

impl Measure {
    /// Returns the role of each point of a figure's runs: measured, compared, or a stand-in.
    pub(crate) fn roles(&self, figure: &Figure, comparison: &Comparison) -> Vec<&'static str> {
        let picked = |selector: &Selector| selector.find_all(named_points(comparison)).unwrap_or_default();
        let own = if figure.id == self.figure { picked(&self.point) } else { Vec::new() };
        let against = self.against.as_ref().filter(|against| against.figure == figure.id);
        let mut compared = against.and_then(|against| against.point.as_ref()).map(picked).unwrap_or_default();
        if let Some(second) = self.over.as_ref().filter(|_| figure.id == self.figure) {
            compared.extend(picked(&second.point));
            compared.extend(picked(&second.against));
        }
        let role = |point: usize| match (own.contains(&point), compared.contains(&point)) {
            (true, _) => "point",
            (_, true) => "against",
            _ => "stand-in",
        };
        (0..comparison.description.points.len()).map(role).collect()
    }
}

impl ComparisonPoint {
    fn of(
        section: &Section<'_>,
        subject: &str,
        figure: &str,
        figures: &[Figure],
    ) -> Result<Option<Self>, Problem> {
        let other = section.word("against_flow");
        if other.is_some() && subject.is_empty() {
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
        // An average is compared with an average; otherwise a gain is over one point, or the best of a list.
        let of_several = Aggregate::of(section).filter(|of| *of == Aggregate::Mean);
        let point = section.has("against").then(|| Selector::of(section, "against", of_several));
        let subject = other.unwrap_or(subject).to_owned();
        let is_gain = point.is_some() || other.is_some();
        Ok(is_gain.then(|| Self { figure: figure.to_owned(), point, subject }))
    }
}

impl SecondRatio {
    /// Reads `over`, `over_against` and `over_flow`; `None` if none of them is given.
    fn of(
        section: &Section<'_>,
        subject: &str,
        quantity: &Quantity,
        metric: &MetricInfo,
    ) -> Result<Option<Self>, Problem> {
        let Some(key) = ["over", "over_against", "over_flow"].into_iter().find(|key| section.has(key)) else {
            return Ok(None);
        };
        let wrong = |what: String, help: &str| Err(Problem::new(what).at(section.origin_of(key)).help(help));
        if !section.has("against") || section.has("against_figure") {
            return wrong(
                format!("`{key}` without a point of the same figure that `point` is compared with"),
                "a ratio of ratios has four points: `point`, `against`, `over` and `over_against`",
            );
        }
        if *quantity != Quantity::Mean || section.has("of_several") || section.has("against_flow") {
            return wrong(
                format!("`{key}` beside `statistic`, `of_several` or `against_flow`"),
                "a ratio of ratios is made of the means of the metric",
            );
        }
        let other = section.word("over_flow");
        if other.is_some() && subject.is_empty() {
            return wrong("`over_flow` without `flow`".to_owned(), "say which flow is compared with it");
        }
        let or = |key: &str, default: &str| {
            let selector = Selector::of(section, if section.has(key) { key } else { default }, None);
            selector.check(metric).map(|()| selector)
        };
        let (point, against) = (or("over", "point")?, or("over_against", "against")?);
        Ok(Some(Self { point, against, subject: other.unwrap_or(subject).to_owned() }))
    }
}

impl Quantity {
    fn of(
        section: &Section<'_>,
        against: Option<&ComparisonPoint>,
        figure: &str,
        figures: &[Figure],
    ) -> Result<Self, Problem> {
        let wrong =
            |what: &str, key: &str, help: &str| Err(Problem::new(what).at(section.origin_of(key)).help(help));
        let statistic = match section.word("statistic") {
            Some("mean-ratio") => Some(GainStatistic::Mean),
            Some("ratio-sd") => Some(GainStatistic::Deviation),
            Some("ratio-sd-per-mean") => Some(GainStatistic::DeviationPerMean),
            Some("positive-share") => Some(GainStatistic::PositiveShare),
            _gain => None,
        };
        let over = section.has("over_figure");
        match (statistic, against) {
            (Some(_), None) => {
                wrong("a `statistic` without `against`", "statistic", "say what the runs are compared with")
            }
            (Some(_), Some(against)) if against.figure != figure => wrong(
                "a `statistic` of runs that do not pair",
                "statistic",
                "`against_figure` leaves only the gain of the means; `over_figure` compares what two figures say",
            ),
            (Some(statistic @ (GainStatistic::Deviation | GainStatistic::DeviationPerMean)), _) if over => {
                let other = self::figure(section, "over_figure", figures)?;
                Ok(Self::RatioToFigure(statistic, other.to_owned()))
            }
            _ if over => wrong(
                "`over_figure` of something that may be below zero, or is a share",
                "over_figure",
                "it goes with `statistic` = \"ratio-sd\" or \"ratio-sd-per-mean\"",
            ),
            (Some(statistic), _) => Ok(Self::StatisticOfGains(statistic)),
            (None, _) => Ok(Self::Mean),
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

/// Returns the id of a figure, which must exist.
fn figure<'a>(section: &Section<'a>, key: &str, figures: &[Figure]) -> Result<&'a str, Problem> {
    let figure = required(section, key)?;
    check_figure(figure, section.origin_of(key), figures)?;
    Ok(figure)
}

/// Returns the subject of the metric: the run, a flow, or two.
fn subject(section: &Section<'_>) -> Result<(Level, String), Problem> {
    let wrong =
        |what: &str, help: &str| Err(Problem::new(what).at(section.origin_of("with_flow")).help(help));
    match (section.word("flow"), section.word("with_flow")) {
        (None, None) => Ok((Level::Run, String::new())),
        (Some(flow), None) => Ok((Level::Flow, flow.to_owned())),
        (None, Some(_)) => wrong("`with_flow` without `flow`", "say which the other flow is"),
        (Some(flow), Some(with)) if flow == with => {
            wrong("`with_flow` names the same flow", "a pair of flows is two")
        }
        (Some(_), Some(_)) if section.has("against_flow") => {
            wrong("`with_flow` beside `against_flow`", "a pair of flows is not compared with a flow")
        }
        (Some(flow), Some(with)) => Ok((Level::Pair, metrics::pair_name(flow, with))),
    }
}

fn metric(section: &Section<'_>, level: Level) -> Result<&'static MetricInfo, Problem> {
    metrics::find_at(level, required(section, "metric")?, section.origin_of("metric"))
}

/// Returns the claimed value, range, bound or margin: exactly one is given.
fn claimed(section: &Section<'_>, is_compared: bool, scale: Scale, rule: &Rule) -> Result<Claimed, Problem> {
    let given = ["claimed", "low", "high", "above", "below", "within"].map(|key| section.number(key));
    match given {
        [Some(value), None, None, None, None, None] if scale == Scale::LogRatio => {
            let tolerance_pct = section.number("tolerance").unwrap_or(rule.tolerance_pct);
            Ok(Claimed::Ratio { value, factor: 1.0 + tolerance_pct / 100.0 })
        }
        [Some(value), None, None, None, None, None] => {
            let tolerance = section.number("tolerance").unwrap_or(value.abs() * rule.tolerance_pct / 100.0);
            Ok(Claimed::Value { value, tolerance })
        }
        [None, Some(low), Some(high), None, None, None] if low <= high => {
            Ok(Claimed::Range(Interval { low, high }))
        }
        [None, None, None, Some(limit), None, None] => Ok(Claimed::Above(limit)),
        [None, None, None, None, Some(limit), None] => Ok(Claimed::Below(limit)),
        [None, None, None, None, None, Some(margin)] if is_compared => Ok(Claimed::Within(margin)),
        [None, None, None, None, None, Some(_)] => Err(Problem::new("`within` without `against`")
            .at(section.origin_of("within"))
            .help("say from what it does not differ")),
        _ => Err(Problem::new("what is claimed is not one thing")
            .at(section.origin_of("id"))
            .help("give `claimed`, or `low` and `high`, or `above`, or `below`, or `within`")),
    }
}
