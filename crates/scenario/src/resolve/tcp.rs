//! `[tcp]` and `flow.tcp`: a preset, and what is put over it.

use super::super::keys;
use super::super::schema::Section;
use super::super::user_defined::{ScenarioWithMachines, named};
use super::{door, feedback, pacing, reject_foreign_keys, seconds};
use hopline_config::source::Problem;
use hopline_core::Duration;
use hopline_sim::custom::{AlgorithmKind, CustomAlgorithms};
use hopline_transport::tcp::{
    AckPolicy, BbrConfig, BbrVersion, Config, CongestionControl, CubicConfig, DsackReports, EcnMode,
    FastConvergence, InitialWindow, OptionOffer, PolicerDetection, RouteFeedback, SpuriousDetector, Variant,
};

/// Returns the configuration of a flow over `transport`: preset, then what the transport is, then `[tcp]` of
/// the `scenario`, then that of `flow`; TCP-DOOR from `[door]` of both.
pub(super) fn resolve(
    transport: &str,
    whole: ScenarioWithMachines<'_>,
    flow: Section<'_>,
) -> Result<Config, Problem> {
    let scenario = whole.scenario;
    let (general, own) = (scenario.section("tcp"), flow.section("tcp"));
    let door = [scenario.section("door"), flow.section("door")];
    let usual: keys::Preset = match transport {
        "tcp-cubic" | "tcp-bbr" | "tcp-bbr3" => Config::linux,
        _ => Config::modern,
    };
    let mut config = own.get(keys::tcp::PRESET).or(general.get(keys::tcp::PRESET)).unwrap_or(usual)();
    config = match if transport == "tcp-door" { door::base_transport(door) } else { transport } {
        "tcp-newreno" | "tcp-ap" => config.with_newreno(),
        "tcp-sack" | "tcp-cubic" | "tcp-f" | "tcp-elfn" | "atcp" | "tcp-bus" | "tcp-fixed-rto" => {
            config.with_sack()
        }
        "tcp-bbr" | "tcp-bbr3" => config.with_rack(),
        "tcp-reno" => config.with_reno(),
        other => unreachable!("the key table knows no transport {other}"),
    };
    config.congestion_control =
        congestion_control(transport, config.congestion_control, (general, own), whole.machines)?;
    if let CongestionControl::Bbr(_) = config.congestion_control {
        config.ecn = EcnMode::Never; // it makes nothing of marks
    }
    apply_recovery(&mut config, general, own)?;
    if pacing::is_paced(transport, general, own)? {
        config = config.with_adaptive_pacing(pacing::resolve(scenario)?);
    }
    config.feedback = feedback::resolve(transport, scenario, flow)?;
    if let RouteFeedback::Atcp(_) = config.feedback {
        config.ecn = EcnMode::Request; // what it tells congestion by
    }
    apply(&mut config, general);
    apply(&mut config, own);
    if transport == "tcp-door" {
        config.door = Some(door::resolve(door, config.timestamps)?);
    }
    let section = if own.is_given() { own } else { general };
    config
        .validate()
        .map_err(|e| Problem::new(format!("TCP parameters do not fit together: {e}")).at(section.origin))?;
    Ok(config)
}

/// Keys of each congestion control algorithm. In `[tcp]` they are for those flows that have use for them.
const CUBIC_KEYS: &[&str] = &["cubic_c", "cubic_beta", "cubic_arithmetic", "fast_convergence"];
const BBR_KEYS: &[&str] =
    &["bbr_cwnd_gain", "bbr_pacing_margin", "bbr_probe_rtt_interval_s", "bbr_probe_rtt_s"];
const BBR1_KEYS: &[&str] = &["bbr_policer"];
const BBR3_KEYS: &[&str] = &["bbr_loss_threshold", "bbr_beta", "bbr_headroom"];

/// Returns the congestion control algorithm. Names of transports that say neither CUBIC nor BBR mean RFC
/// 5681, whatever the preset.
fn congestion_control(
    transport: &str,
    preset: CongestionControl,
    (general, own): (Section<'_>, Section<'_>),
    machines: &CustomAlgorithms,
) -> Result<CongestionControl, Problem> {
    let default = match transport {
        "tcp-cubic" => "cubic",
        "tcp-bbr" => "bbr",
        "tcp-bbr3" => "bbr3",
        _ => "aimd",
    };
    let chosen = own.word("congestion_control").or(general.word("congestion_control")).unwrap_or(default);
    let saying = if own.has("congestion_control") { own } else { general };
    let brought = named(saying, "congestion_control", machines, AlgorithmKind::CongestionControl, |name| {
        machines.congestion_control(name)
    })?;
    reject_foreign_keys(
        &own,
        "congestion_control",
        chosen,
        &[
            (&["cubic"], CUBIC_KEYS),
            (&["bbr", "bbr3"], BBR_KEYS),
            (&["bbr"], BBR1_KEYS),
            (&["bbr3"], BBR3_KEYS),
        ],
    )?;
    Ok(match chosen {
        "cubic" => CongestionControl::Cubic(cubic(preset, (general, own))),
        "bbr" => CongestionControl::Bbr(bbr(BbrConfig::V1, (general, own))),
        "bbr3" => CongestionControl::Bbr(bbr(BbrConfig::V3, (general, own))),
        _ => brought.map_or(CongestionControl::Reno, CongestionControl::Custom),
    })
}

fn cubic(preset: CongestionControl, (general, own): (Section<'_>, Section<'_>)) -> CubicConfig {
    let mut cubic = match preset {
        CongestionControl::Cubic(cubic) => cubic,
        CongestionControl::Reno | CongestionControl::Bbr(_) | CongestionControl::Custom(_) => {
            CubicConfig::RFC9438
        }
    };
    for section in [general, own] {
        cubic.c = section.number("cubic_c").unwrap_or(cubic.c);
        cubic.beta = section.number("cubic_beta").unwrap_or(cubic.beta);
        section.set_if_given(keys::tcp::CUBIC_ARITHMETIC, &mut cubic.arithmetic);
        match section.flag("fast_convergence") {
            Some(true) => cubic.fast_convergence = FastConvergence::On,
            Some(false) => cubic.fast_convergence = FastConvergence::Off,
            None => {}
        }
    }
    cubic
}

fn bbr(mut bbr: BbrConfig, (general, own): (Section<'_>, Section<'_>)) -> BbrConfig {
    for section in [general, own] {
        bbr.cwnd_gain = section.number("bbr_cwnd_gain").unwrap_or(bbr.cwnd_gain);
        bbr.pacing_margin = section.number("bbr_pacing_margin").unwrap_or(bbr.pacing_margin);
        bbr.probe_rtt_interval =
            seconds(&section, "bbr_probe_rtt_interval_s").unwrap_or(bbr.probe_rtt_interval);
        bbr.probe_rtt_duration = seconds(&section, "bbr_probe_rtt_s").unwrap_or(bbr.probe_rtt_duration);
        match &mut bbr.version {
            BbrVersion::V1 { policer } => match section.flag("bbr_policer") {
                Some(true) => *policer = PolicerDetection::On,
                Some(false) => *policer = PolicerDetection::Off,
                None => {}
            },
            BbrVersion::V3 { loss_threshold, beta, headroom } => {
                *loss_threshold = section.number("bbr_loss_threshold").unwrap_or(*loss_threshold);
                *beta = section.number("bbr_beta").unwrap_or(*beta);
                *headroom = section.number("bbr_headroom").unwrap_or(*headroom);
            }
        }
    }
    bbr
}

/// Sets the reduction of the window in recovery, which needs SACK.
fn apply_recovery(config: &mut Config, general: Section<'_>, own: Section<'_>) -> Result<(), Problem> {
    let Variant::Sack(sack) = &mut config.variant else {
        return match own.has("recovery_window") {
            true => Err(Problem::new("`recovery_window` is a matter of SACK")
                .at(own.origin_of("recovery_window"))
                .help("transport = \"tcp-sack\" or \"tcp-cubic\", or remove it")),
            false => Ok(()),
        };
    };
    general.set_if_given(keys::tcp::RECOVERY_WINDOW, &mut sack.reduction);
    own.set_if_given(keys::tcp::RECOVERY_WINDOW, &mut sack.reduction);
    Ok(())
}

fn apply(config: &mut Config, section: Section<'_>) {
    if section.has("window") {
        config.window_clamp = section.integer_u32("window");
    }
    if let Some(mss) = section.integer_u32("mss_bytes") {
        config.mss = mss;
    }
    match (section.word("delayed_ack_ms"), section.integer("delayed_ack_ms")) {
        (Some(_off), _) => config.ack_policy = AckPolicy::EverySegment,
        (None, Some(ms)) => config.ack_policy = AckPolicy::Delayed { timer: Duration::from_millis(ms) },
        (None, None) => {}
    }
    config.ack_every = section.integer_as("ack_every").unwrap_or(config.ack_every);
    match (section.word("initial_window"), section.integer_u32("initial_window")) {
        (Some("rfc3390"), _) => config.initial_window = InitialWindow::Rfc3390,
        (Some(_rfc6928), _) => config.initial_window = InitialWindow::Rfc6928,
        (None, Some(n)) => config.initial_window = InitialWindow::Segments(n),
        (None, None) => {}
    }
    if let Some(n) = section.integer_u32("dup_ack_threshold") {
        config.dup_ack_threshold = n;
    }
    section.set_if_given(keys::tcp::LOSS_DETECTION, &mut config.loss_detection);
    apply_detectors(config, section);
    section.set_if_given(keys::tcp::LIMITED_TRANSMIT, &mut config.limited_transmit);
    if let Some(on) = section.flag("dsack") {
        config.dsack = if on { DsackReports::On } else { DsackReports::Off };
    }
    if let Some(on) = section.flag("timestamps") {
        config.timestamps = if on { OptionOffer::Offered } else { OptionOffer::NotOffered };
    }
    section.set_if_given(keys::tcp::TIMESTAMP_ECHO, &mut config.timestamp_echo);
    section.set_if_given(keys::tcp::ECN, &mut config.ecn);
    section.set_if_given(keys::tcp::RECOVERY_TIMEOUT, &mut config.recovery_timeout);
    section.set_if_given(keys::tcp::CLOSED_WINDOW, &mut config.closed_window);
    if let Some(bytes) = section.integer_u32("receive_buffer_bytes") {
        config.receive_buffer = bytes;
    }
    apply_rto(config, section);
}

/// Sets the detectors of spurious reductions.
fn apply_detectors(config: &mut Config, section: Section<'_>) {
    section.set_if_given(keys::tcp::FRTO, &mut config.spurious.frto);
    let detector = |on: bool| if on { SpuriousDetector::On } else { SpuriousDetector::Off };
    if let Some(on) = section.flag("eifel") {
        config.spurious.eifel = detector(on);
    }
    if let Some(on) = section.flag("dsack_undo") {
        config.spurious.dsack = detector(on);
    }
}

fn apply_rto(config: &mut Config, section: Section<'_>) {
    let rto = &mut config.rto;
    section.set_if_given(keys::tcp::RTO_FLOOR, &mut rto.floor);
    if section.has("backoff_limit") {
        rto.backoff_limit = section.integer_u32("backoff_limit");
    }
    let fields = [
        ("initial_rto_s", &mut rto.initial),
        ("min_rto_s", &mut rto.min),
        ("max_rto_s", &mut rto.max),
        ("clock_granularity_s", &mut rto.granularity),
    ];
    for (key, field) in fields {
        if let Some(value) = seconds(&section, key) {
            *field = value;
        }
    }
}
