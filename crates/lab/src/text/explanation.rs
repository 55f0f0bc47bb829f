//! Text of one claim for a terminal: the paper's words, the set-up, the values and the verdict.

use crate::claims::{Evidence, Figure, Measure, Mechanism, Register, Test};
use crate::comparison::Comparison;
use crate::counted::count_text;
use crate::view;

/// Describes the basis of a verdict. `made`: the runs of the plans of [`Register::plans_of`]; `command`: the
/// command that repeats it.
#[must_use]
pub fn describe(
    register: &Register,
    made: &[(usize, &Comparison)],
    evidence: &Evidence<'_>,
    command: &str,
) -> String {
    let claim = evidence.claim;
    let mut lines = vec![format!("{} of {}", claim.id, register.paper), String::new()];
    let mut line = |name: &str, text: &str| {
        if !text.is_empty() {
            lines.push(format!("{name:<13}  {text}"));
        }
    };
    line("claim", &claim.statement);
    line("where", &claim.place);
    line("kind", claim.kind.word());
    line("note", &claim.note);
    if let Test::Measure(measure) = &claim.test {
        for figure in made.iter().map(|(number, _)| &register.figures[*number]) {
            line("figure", &format!("{}: {}", figure.id, figure.title));
        }
        line("metric", &view::metric_of(measure));
        for (name, settings) in settings(register, made, measure) {
            line(name, &settings);
        }
    }
    line("claimed", &evidence.claimed());
    line("measured", &measured(evidence));
    line("mechanism off", &mechanism_off(evidence));
    for axis in register.axes_of(claim) {
        let answers = axis.answers.iter().map(|answer| answer.name.as_str()).collect::<Vec<_>>().join(" | ");
        line("left open", &format!("{}: {answers}", axis.id));
    }
    if let Some((agree, all)) = evidence.holds_in() {
        let runs = evidence.reading_runs();
        let runs = if runs.is_empty() { runs } else { format!("; {runs}") };
        line("readings", &format!("holds in {agree} of {all}{runs}"));
    }
    for read in evidence.other_readings.iter().filter(|read| read.verdict != evidence.verdict) {
        let value = view::measurement_text(claim, read.measurement.as_ref());
        line("otherwise", &format!("{}: {value}: {}", read.name, read.verdict.word()));
    }
    let why = if evidence.why.is_empty() { String::new() } else { format!(": {}", evidence.why) };
    line("verdict", &format!("{}{why}", evidence.verdict.word()));
    if let Test::Measure(measure) = &claim.test {
        lines.extend([String::new(), format!("{}.", register.rule.describe_for(measure))]);
    }
    lines.extend([String::new(), command.to_owned()]);
    lines.join("\n") + "\n"
}

fn measured(evidence: &Evidence<'_>) -> String {
    let Some(measurement) = &evidence.measurement else { return String::new() };
    let runs = evidence.runs();
    let more = if runs.is_empty() { String::new() } else { format!("; {runs}") };
    let n = count_text(measurement.n, "run");
    format!("{}, {n}, {}{more}", view::measured(evidence), evidence.scenario())
}

fn mechanism_off(evidence: &Evidence<'_>) -> String {
    match &evidence.mechanism {
        Mechanism::Unknown => String::new(),
        Mechanism::Absent => {
            "no point of the claim has the mechanism: the claim is about what it is compared with".to_owned()
        }
        Mechanism::Removed(sham) => {
            let value = view::measurement_text(evidence.claim, sham.measurement.as_ref());
            let place = sham.measurement.as_ref().map(|m| match &m.against {
                Some(against) => format!(", {} against {against}", m.point),
                None => format!(", {}", m.point),
            });
            format!("{value}{}: {}", place.unwrap_or_default(), sham.verdict.word())
        }
    }
}

/// Returns the settings of each point that was run, with its role as the name.
fn settings(
    register: &Register,
    made: &[(usize, &Comparison)],
    measure: &Measure,
) -> Vec<(&'static str, String)> {
    let of_figure = |(number, comparison): &(usize, &Comparison)| {
        let figure: &Figure = &register.figures[*number];
        let roles = measure.roles(figure, comparison);
        let points = comparison.description.points.iter().zip(roles);
        points
            .map(|(point, role)| {
                let settings = point.settings.iter().map(|(key, value)| format!("{key} = {value}"));
                let settings = settings.collect::<Vec<_>>().join(", ");
                (role, format!("{}: {settings}", point.label).trim_end_matches(": ").to_owned())
            })
            .collect::<Vec<_>>()
    };
    made.iter().flat_map(of_figure).collect()
}
