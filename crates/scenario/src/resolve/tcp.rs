//! `[tcp]` and `flow.tcp`: a preset, and what is put over it.

use super::super::schema::Section;
use super::super::source::Problem;
use super::{door, feedback, pacing, refuse_foreign, seconds};
use hopline_core::Duration;
use hopline_transport::tcp::{
    AckPolicy, Config, CubicArithmetic, CubicConfig, Detector, Dsack, EcnUse, FastConvergence, Feedback,
    Frto, InitialWindow, LimitedTransmit, LossDetection, Offer, PrrBound, RackConfig, RecoveryTimeout,
    RecoveryWindow, RtoFloor, TailProbe, TimestampEcho, Variant, WindowLaw,
};

/// The configuration of a flow over `transport`: preset, then what the transport is, then `[tcp]` of the `scenario`, then that
/// of `flow`; TCP-DOOR from `[door]` of both.
pub(super) fn resolve(transport: &str, scenario: Section<'_>, flow: Section<'_>) -> Result<Config, Problem> {
    let (general, own) = (scenario.section("tcp"), flow.section("tcp"));
    let door = [scenario.section("door"), flow.section("door")];
    let mut config = match own.word("preset").or(general.word("preset")) {
        None if transport == "tcp-cubic" => Config::linux(),
        Some("linux") => Config::linux(),
        None | Some("modern") => Config::modern(),
        Some("ns2-2.35") => Config::ns2_235(),
        Some("ns2-2006") => Config::ns2_2006(),
        Some("ns2-2001") => Config::ns2_2001(),
        Some("qualnet") => Config::qualnet(),
        Some(other) => unreachable!("the key table knows no preset {other}"),
    };
    config = match if transport == "tcp-door" { door::below(door) } else { transport } {
        "tcp-newreno" | "tcp-ap" => config.with_newreno(),
        "tcp-sack" | "tcp-cubic" | "tcp-f" | "tcp-elfn" | "atcp" | "tcp-bus" | "tcp-fixed-rto" => {
            config.with_sack()
        }
        "tcp-reno" => config.with_reno(),
        other => unreachable!("the key table knows no transport {other}"),
    };
    config.law = law(transport, config.law, general, own)?;
    apply_recovery(&mut config, general, own)?;
    if pacing::is_paced(transport, general, own)? {
        config = config.with_adaptive_pacing(pacing::resolve(scenario.section("pacing")));
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

/// The window law. Names of transports that do not say CUBIC mean RFC 5681, whatever the preset.
fn law(
    transport: &str,
    preset: WindowLaw,
    general: Section<'_>,
    own: Section<'_>,
) -> Result<WindowLaw, Problem> {
    let default = if transport == "tcp-cubic" { "cubic" } else { "aimd" };
    if own.word("law").or(general.word("law")).unwrap_or(default) == "cubic" {
        let mut cubic = match preset {
            WindowLaw::Cubic(cubic) => cubic,
            WindowLaw::Aimd => CubicConfig::RFC9438,
        };
        for section in [general, own] {
            cubic.c = section.number("cubic_c").unwrap_or(cubic.c);
            cubic.beta = section.number("cubic_beta").unwrap_or(cubic.beta);
            match section.word("cubic_arithmetic") {
                Some("real") => cubic.arithmetic = CubicArithmetic::Real,
                Some(_linux) => cubic.arithmetic = CubicArithmetic::Linux,
                None => {}
            }
            match section.flag("fast_convergence") {
                Some(true) => cubic.fast_convergence = FastConvergence::On,
                Some(false) => cubic.fast_convergence = FastConvergence::Off,
                None => {}
            }
        }
        return Ok(WindowLaw::Cubic(cubic));
    }
    // In `[tcp]` they are for those flows that have use for them.
    refuse_foreign(
        &own,
        "law",
        "aimd",
        &[(&["cubic"], &["cubic_c", "cubic_beta", "cubic_arithmetic", "fast_convergence"])],
    )?;
    Ok(WindowLaw::Aimd)
}

/// How the window comes down in recovery: a matter of SACK.
fn apply_recovery(config: &mut Config, general: Section<'_>, own: Section<'_>) -> Result<(), Problem> {
    let Variant::Sack(sack) = &mut config.variant else {
        return match own.has("recovery_window") {
            true => Err(Problem::new("`recovery_window` is a matter of SACK")
                .at(own.origin_of("recovery_window"))
                .help("transport = \"tcp-sack\" or \"tcp-cubic\", or remove it")),
            false => Ok(()),
        };
    };
    match own.word("recovery_window").or(general.word("recovery_window")) {
        Some("at-once") => sack.window = RecoveryWindow::AtOnce,
        Some("prr") => sack.window = RecoveryWindow::Prr(PrrBound::SafeAck),
        Some("prr-conservative") => sack.window = RecoveryWindow::Prr(PrrBound::Conservative),
        Some(_prr_slow_start) => sack.window = RecoveryWindow::Prr(PrrBound::SlowStart),
        None => {}
    }
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
    match (section.word("initial_window"), section.small("initial_window")) {
        (Some("rfc3390"), _) => config.initial_window = InitialWindow::Rfc3390,
        (Some(_rfc6928), _) => config.initial_window = InitialWindow::Rfc6928,
        (None, Some(n)) => config.initial_window = InitialWindow::Segments(n),
        (None, None) => {}
    }
    if let Some(n) = section.small("dup_ack_threshold") {
        config.dup_ack_threshold = n;
    }
    match section.word("loss_detection") {
        Some("dup-acks") => config.loss_detection = LossDetection::DupAcks,
        Some("rack") => config.loss_detection = LossDetection::Rack(RackConfig::RFC8985),
        Some(_without_tlp) => {
            let rack = RackConfig { tail_probe: TailProbe::Off, ..RackConfig::RFC8985 };
            config.loss_detection = LossDetection::Rack(rack);
        }
        None => {}
    }
    apply_detectors(config, section);
    match section.word("limited_transmit") {
        Some("off") => config.limited_transmit = LimitedTransmit::Off,
        Some("new-data") => config.limited_transmit = LimitedTransmit::NewData,
        Some(_next_data) => config.limited_transmit = LimitedTransmit::NextData,
        None => {}
    }
    if let Some(on) = section.flag("dsack") {
        config.dsack = if on { Dsack::Report } else { Dsack::Silent };
    }
    if let Some(on) = section.flag("timestamps") {
        config.timestamps = if on { Offer::Yes } else { Offer::No };
    }
    match section.word("timestamp_echo") {
        Some("earliest") => config.timestamp_echo = TimestampEcho::Earliest,
        Some(_latest) => config.timestamp_echo = TimestampEcho::Latest,
        None => {}
    }
    match section.word("ecn") {
        Some("off") => config.ecn = EcnUse::Never,
        Some("if-asked") => config.ecn = EcnUse::IfAsked,
        Some(_ask) => config.ecn = EcnUse::Ask,
        None => {}
    }
    match section.word("recovery_timeout") {
        Some("reduce") => config.recovery_timeout = RecoveryTimeout::Reduce,
        Some(_keep) => config.recovery_timeout = RecoveryTimeout::Keep,
        None => {}
    }
    if let Some(bytes) = section.small("receive_buffer_bytes") {
        config.receive_buffer = bytes;
    }
    apply_rto(config, section);
}

/// What finds out that a reduction was wrong.
fn apply_detectors(config: &mut Config, section: Section<'_>) {
    match section.word("frto") {
        Some("off") => config.spurious.frto = Frto::Off,
        Some("first-timeout") => config.spurious.frto = Frto::FirstTimeout,
        Some(_every_timeout) => config.spurious.frto = Frto::EveryTimeout,
        None => {}
    }
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
    match section.word("rto_floor") {
        Some("rto") => rto.floor = RtoFloor::Rto,
        Some(_variance) => rto.floor = RtoFloor::Variance,
        None => {}
    }
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
