//! `[tcp]` and `flow.tcp`: a preset, and what is put over it.

use super::super::keys;
use super::super::own::{Whole, named};
use super::super::schema::Section;
use super::{door, feedback, pacing, refuse_foreign, seconds};
use hopline_config::source::Problem;
use hopline_core::Duration;
use hopline_sim::own::{Kind, Machines};
use hopline_transport::tcp::{
    AckPolicy, BbrConfig, BbrVersion, Config, CubicConfig, Detector, Dsack, EcnUse, FastConvergence,
    Feedback, InitialWindow, Offer, PolicerDetection, Variant, WindowLaw,
};

/// Returns the configuration of a flow over `transport`: preset, then what the transport is, then `[tcp]` of
/// the `scenario`, then that of `flow`; TCP-DOOR from `[door]` of both.
pub(super) fn resolve(transport: &str, whole: Whole<'_>, flow: Section<'_>) -> Result<Config, Problem> {
    let scenario = whole.scenario;
    let (general, own) = (scenario.section("tcp"), flow.section("tcp"));
    let door = [scenario.section("door"), flow.section("door")];
    let usual: keys::Preset = match transport {
        "tcp-cubic" | "tcp-bbr" | "tcp-bbr3" => Config::linux,
        _ => Config::modern,
    };
    let mut config = own.get(keys::tcp::PRESET).or(general.get(keys::tcp::PRESET)).unwrap_or(usual)();
    config = match if transport == "tcp-door" { door::below(door) } else { transport } {
        "tcp-newreno" | "tcp-ap" => config.with_newreno(),
        "tcp-sack" | "tcp-cubic" | "tcp-f" | "tcp-elfn" | "atcp" | "tcp-bus" | "tcp-fixed-rto" => {
            config.with_sack()
        }
        "tcp-bbr" | "tcp-bbr3" => config.with_rack(),
        "tcp-reno" => config.with_reno(),
        other => unreachable!("the key table knows no transport {other}"),
    };
    config.law = law(transport, config.law, (general, own), whole.machines)?;
    if let WindowLaw::Bbr(_) = config.law {
        config.ecn = EcnUse::Never; // it makes nothing of marks
    }
    apply_recovery(&mut config, general, own)?;
    if pacing::is_paced(transport, general, own)? {
        config = config.with_adaptive_pacing(pacing::resolve(scenario)?);
    }
    config.feedback = feedback::resolve(transport, scenario, flow)?;
    if let Feedback::Atcp(_) = config.feedback {
        config.ecn = EcnUse::Ask; // what it tells congestion by
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
const OF_CUBIC: &[&str] = &["cubic_c", "cubic_beta", "cubic_arithmetic", "fast_convergence"];
const OF_BBR: &[&str] =
    &["bbr_cwnd_gain", "bbr_pacing_margin", "bbr_probe_rtt_interval_s", "bbr_probe_rtt_s"];
const OF_BBR1: &[&str] = &["bbr_policer"];
const OF_BBR3: &[&str] = &["bbr_loss_threshold", "bbr_beta", "bbr_headroom"];

/// Returns the congestion control algorithm. Names of transports that say neither CUBIC nor BBR mean RFC
/// 5681, whatever the preset.
fn law(
    transport: &str,
    preset: WindowLaw,
    (general, own): (Section<'_>, Section<'_>),
    machines: &Machines,
) -> Result<WindowLaw, Problem> {
    let default = match transport {
        "tcp-cubic" => "cubic",
        "tcp-bbr" => "bbr",
        "tcp-bbr3" => "bbr3",
        _ => "aimd",
    };
    let chosen = own.word("congestion_control").or(general.word("congestion_control")).unwrap_or(default);
    let saying = if own.has("congestion_control") { own } else { general };
    let brought = named(saying, "congestion_control", machines, Kind::Law, |name| machines.law(name))?;
    refuse_foreign(
        &own,
        "congestion_control",
        chosen,
        &[(&["cubic"], OF_CUBIC), (&["bbr", "bbr3"], OF_BBR), (&["bbr"], OF_BBR1), (&["bbr3"], OF_BBR3)],
    )?;
    Ok(match chosen {
        "cubic" => WindowLaw::Cubic(cubic(preset, (general, own))),
        "bbr" => WindowLaw::Bbr(bbr(BbrConfig::V1, (general, own))),
        "bbr3" => WindowLaw::Bbr(bbr(BbrConfig::V3, (general, own))),
        _ => brought.map_or(WindowLaw::Aimd, WindowLaw::Own),
    })
}

fn cubic(preset: WindowLaw, (general, own): (Section<'_>, Section<'_>)) -> CubicConfig {
    let mut cubic = match preset {
        WindowLaw::Cubic(cubic) => cubic,
        WindowLaw::Aimd | WindowLaw::Bbr(_) | WindowLaw::Own(_) => CubicConfig::RFC9438,
    };
    for section in [general, own] {
        cubic.c = section.number("cubic_c").unwrap_or(cubic.c);
        cubic.beta = section.number("cubic_beta").unwrap_or(cubic.beta);
        section.set(keys::tcp::CUBIC_ARITHMETIC, &mut cubic.arithmetic);
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
    general.set(keys::tcp::RECOVERY_WINDOW, &mut sack.window);
    own.set(keys::tcp::RECOVERY_WINDOW, &mut sack.window);
    Ok(())
}

fn apply(config: &mut Config, section: Section<'_>) {
    if section.has("window") {
        config.window_clamp = section.small("window");
    }
    if let Some(mss) = section.small("mss_bytes") {
        config.mss = mss;
    }
    match (section.word("delayed_ack_ms"), section.integer("delayed_ack_ms")) {
        (Some(_off), _) => config.ack_policy = AckPolicy::EverySegment,
        (None, Some(ms)) => config.ack_policy = AckPolicy::Delayed { timer: Duration::from_millis(ms) },
        (None, None) => {}
    }
    config.ack_every = section.narrow("ack_every").unwrap_or(config.ack_every);
    match (section.word("initial_window"), section.small("initial_window")) {
        (Some("rfc3390"), _) => config.initial_window = InitialWindow::Rfc3390,
        (Some(_rfc6928), _) => config.initial_window = InitialWindow::Rfc6928,
        (None, Some(n)) => config.initial_window = InitialWindow::Segments(n),
        (None, None) => {}
    }
    if let Some(n) = section.small("dup_ack_threshold") {
        config.dup_ack_threshold = n;
    }
    section.set(keys::tcp::LOSS_DETECTION, &mut config.loss_detection);
    apply_detectors(config, section);
    section.set(keys::tcp::LIMITED_TRANSMIT, &mut config.limited_transmit);
    if let Some(on) = section.flag("dsack") {
        config.dsack = if on { Dsack::Report } else { Dsack::Silent };
    }
    if let Some(on) = section.flag("timestamps") {
        config.timestamps = if on { Offer::Yes } else { Offer::No };
    }
    section.set(keys::tcp::TIMESTAMP_ECHO, &mut config.timestamp_echo);
    section.set(keys::tcp::ECN, &mut config.ecn);
    section.set(keys::tcp::RECOVERY_TIMEOUT, &mut config.recovery_timeout);
    section.set(keys::tcp::CLOSED_WINDOW, &mut config.closed_window);
    if let Some(bytes) = section.small("receive_buffer_bytes") {
        config.receive_buffer = bytes;
    }
    apply_rto(config, section);
}

/// Sets the detectors of spurious reductions.
fn apply_detectors(config: &mut Config, section: Section<'_>) {
    section.set(keys::tcp::FRTO, &mut config.spurious.frto);
    let detector = |on: bool| if on { Detector::On } else { Detector::Off };
    if let Some(on) = section.flag("eifel") {
        config.spurious.eifel = detector(on);
    }
    if let Some(on) = section.flag("dsack_undo") {
        config.spurious.dsack = detector(on);
    }
}

fn apply_rto(config: &mut Config, section: Section<'_>) {
    let rto = &mut config.rto;
    section.set(keys::tcp::RTO_FLOOR, &mut rto.floor);
    if section.has("backoff_limit") {
        rto.backoff_limit = section.small("backoff_limit");
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
