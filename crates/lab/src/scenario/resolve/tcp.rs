//! `[tcp]` and `flow.tcp`: a preset, and what is put over it.

use super::super::schema::Section;
use super::super::source::Problem;
use super::{door, pacing, seconds};
use hopline_core::Duration;
use hopline_transport::tcp::{
    AckPolicy, Config, Dsack, InitialWindow, LimitedTransmit, LossDetection, Offer, RackConfig, TailProbe,
    TimestampEcho,
};

/// The configuration of a flow over `transport`: preset, then what the transport is, then `[tcp]` of the `scenario`, then that
/// of `flow`; TCP-DOOR from `[door]` of both.
pub(super) fn resolve(transport: &str, scenario: Section<'_>, flow: Section<'_>) -> Result<Config, Problem> {
    let (general, own) = (scenario.section("tcp"), flow.section("tcp"));
    let door = [scenario.section("door"), flow.section("door")];
    let mut config = match own.word("preset").or(general.word("preset")) {
        None | Some("modern") => Config::modern(),
        Some("ns2-2.35") => Config::ns2_235(),
        Some("ns2-2006") => Config::ns2_2006(),
        Some("ns2-2001") => Config::ns2_2001(),
        Some(other) => unreachable!("the key table knows no preset {other}"),
    };
    config = match if transport == "tcp-door" { door::below(door) } else { transport } {
        "tcp-newreno" | "tcp-ap" => config.with_newreno(),
        "tcp-sack" => config.with_sack(),
        "tcp-reno" => config.with_reno(),
        other => unreachable!("the key table knows no transport {other}"),
    };
    if pacing::is_paced(transport, general, own)? {
        config = config.with_adaptive_pacing(pacing::resolve(scenario.section("pacing")));
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
    if let Some(bytes) = section.small("receive_buffer_bytes") {
        config.receive_buffer = bytes;
    }
    apply_rto(config, section);
}

fn apply_rto(config: &mut Config, section: Section<'_>) {
    let rto = &mut config.rto;
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
