//! User-defined algorithms that a key names: [`CustomAlgorithms`] that the program supplies.

use super::schema::{Section, user_defined_name};
use hopline_config::source::{Problem, nearest};
use hopline_sim::custom::{AlgorithmKind, CustomAlgorithms};

/// The scenario, and the machines that it may name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ScenarioWithMachines<'a> {
    /// The scenario.
    pub(crate) scenario: Section<'a>,
    /// The machines.
    pub(crate) machines: &'a CustomAlgorithms,
    /// Its use.
    pub(crate) used_for: ScenarioUse,
}

/// Use of a scenario, which decides on what it must have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ScenarioUse {
    /// Flows alone send: there must be one, and no programs.
    Simulation,
    /// Programs send: there may be none of either.
    Emulation,
}

impl<'a> std::ops::Deref for ScenarioWithMachines<'a> {
    type Target = Section<'a>;

    fn deref(&self) -> &Section<'a> {
        &self.scenario
    }
}

/// Returns the number of the machine that `key` of `section` names; `None`: the key says something else, or
/// nothing.
pub(crate) fn named<T>(
    section: Section<'_>,
    key: &str,
    machines: &CustomAlgorithms,
    kind: AlgorithmKind,
    find: impl Fn(&str) -> Option<T>,
) -> Result<Option<T>, Problem> {
    let Some(name) = section.word(key).and_then(user_defined_name) else { return Ok(None) };
    let unknown = || {
        let what = match kind {
            AlgorithmKind::CongestionControl => "law",
            AlgorithmKind::Discipline => "queue discipline",
            AlgorithmKind::QuicCongestionControl => "controller of quinn",
        };
        let names = machines.names(kind);
        let known = if names.is_empty() { "none".to_owned() } else { names.join(", ") };
        let guess = nearest(name, names).map(|near| format!("did you mean `{near}`? "));
        let help = "own machines come with the program that runs the scenario, in Python or Rust; known: ";
        Problem::new(format!("there is no own {what} `{name}`"))
            .at(section.origin_of(key))
            .help(guess.unwrap_or_default() + help + &known)
    };
    find(name).map(Some).ok_or_else(unknown)
}
