//! `[tcp]` and `flow.tcp`: a preset, and what is put over it.

use super::super::keys;
use super::super::schema::Section;
use super::super::user_defined::{ScenarioWithMachines, named};
use super::broken_rule::{FieldKeys, broken_rule};
use super::{door, feedback, pacing, reject_foreign_keys, seconds};
use hopline_config::source::Problem;
use hopline_core::Duration;
use hopline_sim::custom::{AlgorithmKind, CustomAlgorithms};
use hopline_transport::tcp::{
    AckPolicy, BbrConfig, BbrVersion, Config, CongestionControl, CubicConfig, DsackReports, EcnMode,
    FastConvergence, InitialWindow, OptionOffer, PolicerDetection, PragueConfig, RouteFeedback, RtoConfig,
    SpuriousDetection, SpuriousDetector, Variant,
};

/// Keys of the fields that have rules beyond the range of a key.
const RULE_KEYS: FieldKeys = &[
    ("ecn", "ecn"),
    ("pacing", "pacing"),
    ("feedback", "feedback"),
    ("loss_detection", "loss_detection"),
    ("closed_window", "closed_window"),
    ("timestamps", "timestamps"),
    ("rto.min", "min_rto_s"),
    ("rto.max", "max_rto_s"),
    ("rto.granularity", "clock_granularity_s"),
    ("rto.backoff_limit", "backoff_limit"),
    ("spurious.eifel", "eifel"),
    ("spurious.dsack", "dsack_undo"),
];

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
        "tcp-cubic" | "tcp-bbr" | "tcp-bbr3" | "tcp-prague" => Config::linux,
        _ => Config::modern,
    };
    let mut config = own.get(keys::tcp::PRESET).or(general.get(keys::tcp::PRESET)).unwrap_or(usual)();
    config = match if transport == "tcp-door" { door::base_transport(door) } else { transport } {
        "tcp-newreno" | "tcp-ap" => config.with_newreno(),
        "tcp-sack" | "tcp-cubic" | "tcp-f" | "tcp-elfn" | "atcp" | "tcp-bus" | "tcp-fixed-rto" => {
            config.with_sack()
        }
        "tcp-bbr" | "tcp-bbr3" | "tcp-prague" => config.with_rack(),
        "tcp-reno" => config.with_reno(),
        other => unreachable!("the key table knows no transport {other}"),
    };
    let control = congestion_control(transport, config.congestion_control(), (general, own), whole.machines)?;
    config = config.with_congestion_control(control);
    if let CongestionControl::Bbr(_) = control {
        config = config.with_ecn(EcnMode::Never); // it makes nothing of marks
    }
    if let CongestionControl::Prague(_) = control {
        config = config.with_ecn(EcnMode::AccEcn).with_dsack(DsackReports::On); // RFC 9331 §4.2, RFC 9768 §3.1.1
    }
    config = apply_recovery(config, general, own)?;
    if pacing::is_paced(transport, general, own)? {
        config = config.with_adaptive_pacing(pacing::resolve(scenario)?);
    }
    config = config.with_feedback(feedback::resolve(transport, scenario, flow)?);
    if let RouteFeedback::Atcp(_) = config.feedback() {
        config = config.with_ecn(EcnMode::Request); // what it tells congestion by
    }
    for section in [general, own] {
        config = apply(config, section);
    }
    if transport == "tcp-door" {
        config = config.with_door(Some(door::resolve(door, config.timestamps())?));
    }
    config.validate().map_err(|e| broken_rule(&e, RULE_KEYS, [general, own]))?;
    Ok(config)
}

/// Keys of each congestion control algorithm. In `[tcp]` they are for those flows that have use for them.
const SLOW_START_KEYS: &[&str] = &["slow_start"];
const CUBIC_KEYS: &[&str] = &["cubic_c", "cubic_beta", "cubic_arithmetic", "fast_convergence"];
const BBR_KEYS: &[&str] =
    &["bbr_cwnd_gain", "bbr_pacing_margin", "bbr_probe_rtt_interval_s", "bbr_probe_rtt_s"];
const BBR1_KEYS: &[&str] = &["bbr_policer"];
const PRAGUE_KEYS: &[&str] = &[
    "prague_gain",
    "prague_rtt_reference_ms",
    "prague_rtt_dependent_rounds",
    "prague_loss_beta",
    "prague_max_burst_ms",
];
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
        "tcp-prague" => "prague",
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
            (&["aimd", "cubic"], SLOW_START_KEYS),
            (&["cubic"], CUBIC_KEYS),
            (&["bbr", "bbr3"], BBR_KEYS),
            (&["bbr"], BBR1_KEYS),
            (&["bbr3"], BBR3_KEYS),
            (&["prague"], PRAGUE_KEYS),
        ],
    )?;
    Ok(match chosen {
        "cubic" => CongestionControl::Cubic(cubic(preset, (general, own))),
        "bbr" => CongestionControl::Bbr(bbr(BbrConfig::V1, (general, own))),
        "bbr3" => CongestionControl::Bbr(bbr(BbrConfig::V3, (general, own))),
        "prague" => CongestionControl::Prague(prague((general, own))),
        _ => brought.map_or(CongestionControl::Reno, CongestionControl::Custom),
    })
}

fn cubic(preset: CongestionControl, (general, own): (Section<'_>, Section<'_>)) -> CubicConfig {
    let mut cubic = match preset {
        CongestionControl::Cubic(cubic) => cubic,
        CongestionControl::Reno
        | CongestionControl::Bbr(_)
        | CongestionControl::Prague(_)
        | CongestionControl::Custom(_) => CubicConfig::RFC9438,
    };
    for section in [general, own] {
        cubic = cubic
            .with_c(section.number("cubic_c").unwrap_or(cubic.c()))
            .with_beta(section.number("cubic_beta").unwrap_or(cubic.beta()))
            .with_arithmetic(section.get(keys::tcp::CUBIC_ARITHMETIC).unwrap_or(cubic.arithmetic()));
        match section.flag("fast_convergence") {
            Some(true) => cubic = cubic.with_fast_convergence(FastConvergence::On),
            Some(false) => cubic = cubic.with_fast_convergence(FastConvergence::Off),
            None => {}
        }
    }
    cubic
}

fn prague((general, own): (Section<'_>, Section<'_>)) -> PragueConfig {
    let mut prague = PragueConfig::DRAFT;
    for section in [general, own] {
        let number = |key, old| section.number(key).unwrap_or(old);
        let time =
            |key, old: Duration| section.number(key).map_or(old, |ms| Duration::from_secs_f64(ms / 1e3));
        prague = prague
            .with_gain(number("prague_gain", prague.gain()))
            .with_rtt_reference(time("prague_rtt_reference_ms", prague.rtt_reference()))
            .with_rtt_dependent_rounds(
                section.integer_u32("prague_rtt_dependent_rounds").unwrap_or(prague.rtt_dependent_rounds()),
            )
            .with_loss_beta(number("prague_loss_beta", prague.loss_beta()))
            .with_max_burst(time("prague_max_burst_ms", prague.max_burst()));
    }
    prague
}

fn bbr(mut bbr: BbrConfig, (general, own): (Section<'_>, Section<'_>)) -> BbrConfig {
    for section in [general, own] {
        let number = |key, old| section.number(key).unwrap_or(old);
        let time = |key, old| seconds(&section, key).unwrap_or(old);
        let version = match bbr.version() {
            BbrVersion::V1 { policer } => BbrVersion::V1 {
                policer: match section.flag("bbr_policer") {
                    Some(true) => PolicerDetection::On,
                    Some(false) => PolicerDetection::Off,
                    None => policer,
                },
            },
            BbrVersion::V3 { loss_threshold, beta, headroom } => BbrVersion::V3 {
                loss_threshold: number("bbr_loss_threshold", loss_threshold),
                beta: number("bbr_beta", beta),
                headroom: number("bbr_headroom", headroom),
            },
        };
        bbr = bbr
            .with_version(version)
            .with_cwnd_gain(number("bbr_cwnd_gain", bbr.cwnd_gain()))
            .with_pacing_margin(number("bbr_pacing_margin", bbr.pacing_margin()))
            .with_probe_rtt_interval(time("bbr_probe_rtt_interval_s", bbr.probe_rtt_interval()))
            .with_probe_rtt_duration(time("bbr_probe_rtt_s", bbr.probe_rtt_duration()));
    }
    bbr
}

/// Sets the reduction of the window in recovery, which needs SACK.
fn apply_recovery(config: Config, general: Section<'_>, own: Section<'_>) -> Result<Config, Problem> {
    let Variant::Sack(sack) = config.variant() else {
        return match own.has("recovery_window") {
            true => Err(Problem::new("`recovery_window` is a matter of SACK")
                .at(own.origin_of("recovery_window"))
                .help("transport = \"tcp-sack\" or \"tcp-cubic\", or remove it")),
            false => Ok(config),
        };
    };
    let key = keys::tcp::RECOVERY_WINDOW;
    let reduction = own.get(key).or(general.get(key)).unwrap_or(sack.reduction());
    Ok(config.with_variant(Variant::Sack(sack.with_reduction(reduction))))
}

/// Returns the configuration with the keys of a section. A key that is left out keeps the value of `config`.
fn apply(config: Config, section: Section<'_>) -> Config {
    let window = if section.has("window") { section.integer_u32("window") } else { config.window_clamp() };
    let ack_policy = match (section.word("delayed_ack_ms"), section.integer("delayed_ack_ms")) {
        (Some(_off), _) => AckPolicy::EverySegment,
        (None, Some(ms)) => AckPolicy::Delayed { timer: Duration::from_millis(ms) },
        (None, None) => config.ack_policy(),
    };
    let initial_window = match (section.word("initial_window"), section.integer_u32("initial_window")) {
        (Some("rfc3390"), _) => InitialWindow::Rfc3390,
        (Some(_rfc6928), _) => InitialWindow::Rfc6928,
        (None, Some(n)) => InitialWindow::Segments(n),
        (None, None) => config.initial_window(),
    };
    let dsack = match section.flag("dsack") {
        Some(true) => DsackReports::On,
        Some(false) => DsackReports::Off,
        None => config.dsack(),
    };
    let timestamps = match section.flag("timestamps") {
        Some(true) => OptionOffer::Offered,
        Some(false) => OptionOffer::NotOffered,
        None => config.timestamps(),
    };
    let number = |key, old| section.integer_u32(key).unwrap_or(old);
    config
        .with_window_clamp(window)
        .with_mss(number("mss_bytes", config.mss()))
        .with_ack_policy(ack_policy)
        .with_ack_every(section.integer_as("ack_every").unwrap_or(config.ack_every()))
        .with_initial_window(initial_window)
        .with_slow_start(section.get(keys::tcp::SLOW_START).unwrap_or(config.slow_start()))
        .with_dup_ack_threshold(number("dup_ack_threshold", config.dup_ack_threshold()))
        .with_loss_detection(section.get(keys::tcp::LOSS_DETECTION).unwrap_or(config.loss_detection()))
        .with_spurious(detectors(config.spurious(), section))
        .with_limited_transmit(section.get(keys::tcp::LIMITED_TRANSMIT).unwrap_or(config.limited_transmit()))
        .with_dsack(dsack)
        .with_timestamps(timestamps)
        .with_timestamp_echo(section.get(keys::tcp::TIMESTAMP_ECHO).unwrap_or(config.timestamp_echo()))
        .with_ecn(section.get(keys::tcp::ECN).unwrap_or(config.ecn()))
        .with_recovery_timeout(section.get(keys::tcp::RECOVERY_TIMEOUT).unwrap_or(config.recovery_timeout()))
        .with_closed_window(section.get(keys::tcp::CLOSED_WINDOW).unwrap_or(config.closed_window()))
        .with_receive_buffer(number("receive_buffer_bytes", config.receive_buffer()))
        .with_rto(rto(config.rto(), section))
}

/// Returns the detectors of spurious reductions.
fn detectors(old: SpuriousDetection, section: Section<'_>) -> SpuriousDetection {
    let detector = |key, old| match section.flag(key) {
        Some(true) => SpuriousDetector::On,
        Some(false) => SpuriousDetector::Off,
        None => old,
    };
    old.with_frto(section.get(keys::tcp::FRTO).unwrap_or(old.frto()))
        .with_eifel(detector("eifel", old.eifel()))
        .with_dsack(detector("dsack_undo", old.dsack()))
}

fn rto(old: RtoConfig, section: Section<'_>) -> RtoConfig {
    let time = |key, old| seconds(&section, key).unwrap_or(old);
    let limit =
        if section.has("backoff_limit") { section.integer_u32("backoff_limit") } else { old.backoff_limit() };
    old.with_floor(section.get(keys::tcp::RTO_FLOOR).unwrap_or(old.floor()))
        .with_backoff_limit(limit)
        .with_initial(time("initial_rto_s", old.initial()))
        .with_min(time("min_rto_s", old.min()))
        .with_max(time("max_rto_s", old.max()))
        .with_granularity(time("clock_granularity_s", old.granularity()))
}
