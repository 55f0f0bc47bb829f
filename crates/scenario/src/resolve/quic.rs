//! `[quic]` and `flow.quic`.

use super::super::schema::Section;
use super::super::user_defined::{ScenarioWithMachines, named};
use hopline_config::source::Problem;
use hopline_sim::custom::AlgorithmKind;
use hopline_transport::quic::{Config, CongestionControl};

/// `true` if QUIC is in this program. Tests of this crate resolve scenarios and run none.
pub(super) const IS_BUILT: bool = cfg!(any(feature = "quic", test));

/// `true` if the algorithms of s2n-quic are in this program.
const HAS_S2N_QUIC: bool = cfg!(any(feature = "s2n-quic", test));

/// Returns an error if a flow of `section` needs QUIC and the program has none.
pub(super) fn check_built(is_built: bool, section: Section<'_>) -> Result<(), Problem> {
    if is_built {
        return Ok(());
    }
    Err(Problem::new("transport `quic` is not in this program").at(section.origin_of("transport")).help(
        "it is built with `cargo build --release -p hopline-cli --features quic`; see docs/protocols/quic.md",
    ))
}

/// Returns an error if `section` names an algorithm of s2n-quic and the program has none.
fn check_algorithm(has_s2n_quic: bool, section: Section<'_>) -> Result<(), Problem> {
    match section.word("congestion_control") {
        Some(word) if word.starts_with("s2n-") && !has_s2n_quic => {
            let problem = Problem::new(format!("algorithm `{word}` is not in this program"));
            Err(problem.at(section.origin_of("congestion_control")).help(
                "it is built with `cargo build --release -p hopline-cli --features s2n-quic`; see docs/protocols/quic.md",
            ))
        }
        _ => Ok(()),
    }
}

/// Returns the configuration of a flow over QUIC: the defaults, then `[quic]` of the scenario, then `own` (`flow.quic`).
pub(super) fn resolve(whole: ScenarioWithMachines<'_>, own: Section<'_>) -> Result<Config, Problem> {
    [whole.section("quic"), own]
        .into_iter()
        .try_fold(Config::DEFAULT, |config, section| apply(config, section, whole))
}

/// Returns the configuration with the keys of a section. A key that is left out keeps the value of `config`.
fn apply(config: Config, section: Section<'_>, whole: ScenarioWithMachines<'_>) -> Result<Config, Problem> {
    check_algorithm(HAS_S2N_QUIC, section)?;
    let machines = whole.machines;
    let kind = AlgorithmKind::QuicCongestionControl;
    let custom = named(section, "congestion_control", machines, kind, |name| machines.quic_controller(name))?;
    let congestion_control = match (section.word("congestion_control"), custom) {
        (_, Some(id)) => CongestionControl::Custom(id),
        (Some("cubic"), None) => CongestionControl::Cubic,
        (Some("newreno"), None) => CongestionControl::NewReno,
        (Some("bbr"), None) => CongestionControl::Bbr,
        (Some("s2n-cubic"), None) => CongestionControl::S2nCubic,
        (Some("s2n-bbr"), None) => CongestionControl::S2nBbr,
        (_, None) => config.congestion_control(),
    };
    Ok(config
        .with_congestion_control(congestion_control)
        .with_max_datagram(section.integer_as("max_datagram_bytes").unwrap_or(config.max_datagram()))
        .with_receive_window(section.integer("receive_window_bytes").unwrap_or(config.receive_window())))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Scenario;
    use hopline_config::source::Source;
    use std::path::PathBuf;
    use std::sync::Arc;

    #[test]
    fn a_program_without_quic_says_how_to_build_it() {
        let text = "duration_s = 1\ntransport = \"quic\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[link]]\na = \"a\"\nb = \"b\"\nrate_mbps = 1\ndelay_ms = 1\n[[flow]]\nsrc = \"a\"\ndst = \"b\"\n";
        let source = Arc::new(Source { name: "test.toml".into(), text: text.into() });
        let scenario = Scenario::parse(source, PathBuf::new(), &[]).expect("a scenario");
        assert_eq!(check_built(true, scenario.section()), Ok(()));
        let said = check_built(false, scenario.section()).expect_err("it is not there").to_string();
        assert_eq!(
            said,
            "test.toml:2:13: transport `quic` is not in this program (it is built with `cargo build --release -p hopline-cli --features quic`; see docs/protocols/quic.md)"
        );
    }

    #[test]
    fn a_program_without_s2n_quic_says_how_to_build_it() {
        let text = "duration_s = 1\n[quic]\ncongestion_control = \"s2n-bbr\"\n[[node]]\nname = \"a\"\n[[node]]\nname = \"b\"\n[[link]]\na = \"a\"\nb = \"b\"\nrate_mbps = 1\ndelay_ms = 1\n[[flow]]\nsrc = \"a\"\ndst = \"b\"\n";
        let source = Arc::new(Source { name: "test.toml".into(), text: text.into() });
        let scenario = Scenario::parse(source, PathBuf::new(), &[]).expect("a scenario");
        let section = scenario.section().section("quic");
        assert_eq!(check_algorithm(true, section), Ok(()));
        let said = check_algorithm(false, section).expect_err("it is not there").to_string();
        assert_eq!(
            said,
            "test.toml:3:22: algorithm `s2n-bbr` is not in this program (it is built with `cargo build --release -p hopline-cli --features s2n-quic`; see docs/protocols/quic.md)"
        );
    }
}
