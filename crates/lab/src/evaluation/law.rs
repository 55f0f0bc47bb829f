//! Congestion control algorithms under evaluation, by name.

use hopline_config::document::Setting;
use hopline_config::source::{Problem, nearest};
use hopline_scenario::Scenario;
use hopline_scenario::keys::TRANSPORTS;
use serde_json::Value as Json;

/// Class of the flows that run over the evaluated algorithm.
pub const LAW_CLASS: &str = "law";

/// Prefix of user-defined algorithms.
const USER_DEFINED: &str = "own:";

/// Transports that do not ask for ECN marks of RFC 3168: BBR makes nothing of marks, and Prague asks for accurate ECN.
const WITHOUT_CLASSIC_ECN: [&str; 3] = ["tcp-bbr", "tcp-bbr3", "tcp-prague"];

/// Tables of a scenario that a flow can have for itself.
const TABLES_OF_FLOWS: [&str; 5] = ["tcp", "door", "tpa", "wide", "quic"];

/// Further tables of a scenario with parameters of algorithms.
const OTHER_TABLES: [&str; 2] = ["pacing", "feedback"];

/// Congestion control algorithm, or a whole transport, under evaluation.
#[derive(Clone, Debug)]
pub struct Law {
    /// Name in tables, as it was given.
    pub name: String,
    /// Settings of the scenario that select it.
    pub settings: Vec<Setting>,
}

impl Law {
    /// Parses `NAME` or `NAME@KEY=VALUE,KEY=VALUE`. `NAME` is one of these:
    ///
    /// - a transport of scenarios: `tpa-wide`, `tcp-cubic`; of those that begin with `tcp-` the prefix may be left out;
    /// - `reno`: RFC 5681 with SACK and RACK;
    /// - `quic-cubic`, `quic-newreno`, `quic-bbr`: the algorithms of QUIC, in a build with it;
    /// - `quic-s2n-cubic`, `quic-s2n-bbr`: those of s2n-quic, in a build with them;
    /// - `own:NAME`: a user-defined algorithm, over TCP with the loss detection of Linux;
    /// - `quic-own:NAME`: a user-defined algorithm of QUIC.
    ///
    /// # Errors
    /// If there is no such algorithm, or a setting is malformed.
    pub fn parse(text: &str) -> Result<Self, Problem> {
        let (name, more) = text.split_once('@').map_or((text, None), |(name, more)| (name, Some(more)));
        let selecting = selecting(name)?;
        let selecting = selecting.iter().map(|setting| Setting::parse(text, setting));
        let given = more.into_iter().flat_map(|more| more.split(',')).map(|setting| parameter(text, setting));
        Ok(Self { name: text.to_owned(), settings: selecting.chain(given).collect::<Result<_, _>>()? })
    }

    /// Returns the settings that select it in `scenario`; `marks`: whether TCP asks for ECN marks, if it reacts to them.
    /// Parameters of a transport are set for the evaluated flows alone, where they are listed one by one.
    pub(crate) fn settings_on(&self, scenario: &Scenario, marks: bool) -> Result<Vec<Setting>, Problem> {
        let transport = self.settings.iter().find(|setting| setting.path == "transport");
        let reacts = transport.is_none_or(|setting| !WITHOUT_CLASSIC_ECN.contains(&setting.text().as_str()));
        let ask = (marks && reacts).then(|| Setting::parse(&self.name, "tcp.ecn=ask")).transpose()?;
        let flows = law_flows(scenario);
        let mut settings = Vec::new();
        for setting in ask.iter().chain(&self.settings) {
            let table = setting.path.split('.').next().unwrap_or_default();
            if flows.is_empty() || !TABLES_OF_FLOWS.contains(&table) {
                settings.push(setting.clone());
                continue;
            }
            for flow in &flows {
                let text = format!("flow.{flow}.{}={}", setting.path, setting.text());
                settings.push(Setting::parse(&self.name, &text)?);
            }
        }
        Ok(settings)
    }
}

/// Returns the places in `[[flow]]` of flows of the class [`LAW_CLASS`].
fn law_flows(scenario: &Scenario) -> Vec<usize> {
    let written = scenario.as_written();
    // Flows of a file or a rule have no place to set a key for them alone.
    if written["flows"].is_object() {
        return Vec::new();
    }
    let flows = written["flow"].as_array().cloned().unwrap_or_default();
    let is_law = |(place, flow): (usize, &Json)| (flow["class"] == LAW_CLASS).then_some(place);
    flows.iter().enumerate().filter_map(is_law).collect()
}

/// Parses a parameter of the algorithm `law`. All algorithms run on one network, so keys of the network are refused.
fn parameter(law: &str, text: &str) -> Result<Setting, Problem> {
    if !text.contains('=') {
        return Err(Problem::new(format!("`{law}`: \"{text}\" is not of the form KEY=VALUE"))
            .help("for example: cubic@tcp.initial_window=32"));
    }
    let setting = Setting::parse(law, text)?;
    let table = setting.path.split('.').next().unwrap_or_default();
    if TABLES_OF_FLOWS.contains(&table) || OTHER_TABLES.contains(&table) {
        return Ok(setting);
    }
    let tables = [TABLES_OF_FLOWS.as_slice(), &OTHER_TABLES].concat().join(", ");
    Err(Problem::new(format!("`{}` is no parameter of an algorithm", setting.path)).at(&setting.key).help(
        format!("parameters are keys of {tables}; `--set {text}` changes the network, for all algorithms"),
    ))
}

/// Returns the settings that select the algorithm `name`.
fn selecting(name: &str) -> Result<Vec<String>, Problem> {
    let transport = |transport: &str| Ok(vec![format!("transport={transport}")]);
    let with_prefix = format!("tcp-{name}");
    match name {
        "" => {
            Err(Problem::new("an algorithm without a name").help("for example: cubic@tcp.initial_window=32"))
        }
        "reno" => transport("tcp-sack"),
        _ if TRANSPORTS.contains(&name) => transport(name),
        _ if TRANSPORTS.contains(&with_prefix.as_str()) => transport(&with_prefix),
        _ if name.starts_with(USER_DEFINED) => {
            Ok(vec!["transport=tcp-cubic".into(), format!("tcp.congestion_control={name}")])
        }
        _ => match name.strip_prefix("quic-").filter(|_| TRANSPORTS.contains(&"quic")) {
            Some(control) => Ok(vec!["transport=quic".into(), format!("quic.congestion_control={control}")]),
            None => Err(unknown(name)),
        },
    }
}

fn unknown(name: &str) -> Problem {
    let short = |name: &&'static str| name.strip_prefix("tcp-").unwrap_or(name);
    let mut known: Vec<&str> = TRANSPORTS.iter().map(short).collect();
    known.sort_unstable();
    known.dedup();
    let guess = nearest(name, known.iter().copied()).map(|near| format!("did you mean `{near}`? "));
    Problem::new(format!("there is no congestion control algorithm `{name}`")).help(format!(
        "{}there are {}",
        guess.unwrap_or_default(),
        known.join(", ")
    ))
}
