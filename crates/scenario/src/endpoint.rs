//! TCP of a real connection, by the keys of scenarios.

use crate::document::Setting;
use crate::{Scenario, keys};
use hopline_config::source::{Problem, Problems, Source};
use hopline_sim::spec::{Traffic, Transport};
use hopline_transport::pacing::Pacing;
use hopline_transport::tcp::{Config, RouteFeedback};
use std::path::Path;
use std::sync::Arc;

/// Tables of scenarios that say something of a TCP endpoint.
const TABLES: [&str; 4] = ["tcp", "door", "pacing", "feedback"];

/// Returns the names of transports that are TCP.
pub fn tcp_transports() -> impl Iterator<Item = &'static str> {
    keys::TRANSPORTS.iter().copied().filter(|name| !name.starts_with("tpa") && *name != "quic")
}

/// Returns the configuration that an endpoint of a flow over `transport` has in a scenario with `settings`.
/// Their keys are those of `[tcp]`, `[door]`, `[pacing]` and `[feedback]`: `tcp.mss_bytes`.
///
/// # Errors
/// A key of another table, an unknown one, a value that it does not take, or values that do not fit together.
pub fn tcp_config(transport: &str, settings: &[Setting]) -> Result<Config, Problems> {
    for setting in settings {
        let table = setting.path.split('.').next().unwrap_or_default();
        if !TABLES.contains(&table) {
            let what = format!("`{}` says nothing of a TCP endpoint", setting.path);
            return Err(Problem::new(what)
                .at(&setting.key)
                .help("keys of tcp, door, pacing and feedback do: tcp.mss_bytes=1200")
                .into());
        }
    }
    let text = format!(
        "duration_s = 1\ntransport = \"{transport}\"\n[routing]\nfailure_notification = \"elfn\"\n\
         [[node]]\nname = \"a\"\ninterface = \"wired\"\n[[node]]\nname = \"b\"\ninterface = \"wired\"\n\
         [[link]]\na = \"a\"\nb = \"b\"\nrate_mbps = 1\ndelay_ms = 1\n[[flow]]\nsrc = \"a\"\ndst = \"b\"\n"
    );
    let source = Arc::new(Source { name: "--transport".into(), text });
    let spec = Scenario::parse(source, Path::new(""), settings)?.spec(1)?;
    match spec.flows.first().map(|flow| &flow.traffic) {
        Some(Traffic::Bulk { over: Transport::Tcp(config), .. }) => settings
            .iter()
            .try_for_each(|setting| check_applies(setting, transport, config))
            .map(|()| *config),
        _ => Err(Problem::new(format!("`{transport}` is not TCP")).into()),
    }
}

/// Refuses a key of a mechanism that the transport does not have.
fn check_applies(setting: &Setting, transport: &str, config: &Config) -> Result<(), Problems> {
    let (is_used, users) = match setting.path.split('.').next().unwrap_or_default() {
        "door" => (config.door().is_some(), "tcp-door"),
        "pacing" => (config.pacing() != Pacing::None, "tcp-ap"),
        "feedback" => (config.feedback() != RouteFeedback::None, "tcp-f, tcp-elfn, atcp and tcp-bus"),
        _ => (true, ""),
    };
    if is_used {
        return Ok(());
    }
    let what = format!("`{}` changes nothing with {transport}", setting.path);
    Err(Problem::new(what).at(&setting.key).help(format!("{users} would use it")).into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use hopline_transport::tcp::{BbrVersion, CongestionControl};

    fn config(transport: &str, settings: &[&str]) -> Result<Config, String> {
        let settings: Vec<_> = settings.iter().map(|text| Setting::parse("--set", text).unwrap()).collect();
        tcp_config(transport, &settings).map_err(|problems| problems.to_string())
    }

    #[test]
    fn every_transport_of_scenarios_exists_for_real_connections() {
        for transport in tcp_transports() {
            config(transport, &[]).unwrap().validate().unwrap();
        }
        assert!(config("tcp-door", &["door.t1=3"]).unwrap().door().is_some());
        let bbr = config("tcp-bbr3", &[]).unwrap().congestion_control();
        assert!(matches!(bbr, CongestionControl::Bbr(bbr) if matches!(bbr.version(), BbrVersion::V3 { .. })));
        assert!(config("tcp-ap", &[]).unwrap().pacing() != hopline_transport::pacing::Pacing::None);
    }

    #[test]
    fn keys_have_the_same_meaning_as_in_scenarios() {
        let config =
            config("tcp-sack", &["tcp.mss_bytes=1200", "tcp.eifel=true", "tcp.ecn=\"ask\""]).unwrap();
        assert_eq!(config.mss(), 1200);
        assert_eq!(config.spurious().eifel(), hopline_transport::tcp::SpuriousDetector::On);
    }

    #[test]
    fn keys_of_other_tables_and_invalid_values_are_rejected() {
        for (setting, said) in [
            ("radio.preset=\"dot11b\"", "says nothing of a TCP endpoint"),
            ("duration_s=3", "says nothing of a TCP endpoint"),
            ("tcp.mss=3", "mss"),
            ("tcp.mss_bytes=3", "mss_bytes"),
            ("door.t1=3", "`door.t1` changes nothing with tcp-sack"),
            ("pacing.contention_factor=2", "`pacing.contention_factor` changes nothing with tcp-sack"),
        ] {
            let error = config("tcp-sack", &[setting]).unwrap_err();
            assert!(error.contains(said), "{setting}: {error}");
        }
    }
}
