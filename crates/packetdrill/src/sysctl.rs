//! `sysctl` values as parameters of a connection. Values without an effect on a TCP endpoint are accepted.

use hopline_core::Duration;
use hopline_transport::tcp::congestion::NewRenoConfig;
use hopline_transport::tcp::{
    AckPolicy, BbrConfig, Config, CongestionControl, CubicConfig, DsackReports, EcnMode, Frto, HyStartConfig,
    IdleRestart, LossDetection, OptionOffer, RackRttSource, SlowStart, SpuriousDetection, SpuriousDetector,
    TailProbe, TimeWaitReset, Variant,
};

/// Returns the parameters after Linux's `net.ipv4.NAME = value`.
///
/// # Errors
/// The reason for which the value cannot apply.
pub(crate) fn linux(config: Config, name: &str, value: &str) -> Result<Config, String> {
    let number = || first_number(value).ok_or_else(|| bad_value(name, value));
    let is_on = || Ok::<_, String>(number()? > 0);
    Ok(match name {
        "tcp_timestamps" => with_timestamps(config, is_on()?),
        "tcp_window_scaling" => config.with_window_scale(offer(is_on()?)),
        "tcp_sack" if !is_on()? => without_sack(config),
        "tcp_dsack" => config.with_dsack(if is_on()? { DsackReports::On } else { DsackReports::Off }),
        "tcp_ecn" => config.with_ecn(ecn_mode(number()?)?),
        "tcp_congestion_control" => with_algorithm(config, value)?,
        "tcp_reordering" => config.with_dup_ack_threshold(number()?.clamp(1, 255) as u32),
        "tcp_slow_start_after_idle" => {
            config.with_idle_restart(if is_on()? { IdleRestart::InitialWindow } else { IdleRestart::Never })
        }
        "tcp_early_retrans" if number()? < 3 => without_tail_probe(config),
        "tcp_recovery" if number()? & 1 == 0 => config.with_loss_detection(LossDetection::DupAcks),
        "tcp_frto" if !is_on()? => config.with_spurious(config.spurious().with_frto(Frto::Off)),
        "tcp_syn_retries" | "tcp_synack_retries" => config.with_syn_retries(Some(number()? as u32)),
        "tcp_retries2" => config.with_data_retries(Some(number()? as u32)),
        "tcp_rmem" => {
            let largest = value.split_whitespace().filter_map(arithmetic).next_back();
            config.with_receive_buffer(buffer(largest.ok_or_else(|| bad_value(name, value))?))
        }
        "tcp_rto_min_us" => config.with_rto(config.rto().with_min(Duration::from_micros(number()?))),
        "tcp_rto_max_ms" => config.with_rto(config.rto().with_max(Duration::from_millis(number()?))),
        "tcp_notsent_lowat" if number()? < u64::from(u32::MAX) => return Err("TCP_NOTSENT_LOWAT".to_owned()),
        "tcp_mtu_probing" if is_on()? => return Err("path MTU probing".to_owned()),
        "tcp_syncookies" if number()? > 1 => return Err("SYN cookies".to_owned()),
        "tcp_thin_linear_timeouts" | "tcp_thin_dupack" if is_on()? => return Err("thin streams".to_owned()),
        "tcp_rfc1337" => {
            config.with_time_wait_reset(if is_on()? { TimeWaitReset::Ignored } else { TimeWaitReset::Ends })
        }
        _ if name.starts_with("tcp_") || name.starts_with("ip_") || name.starts_with("conf.") => config,
        _ => return Err(format!("the sysctl net.ipv4.{name}")),
    })
}

/// Returns the parameters of FreeBSD before its `sysctl` values.
pub(crate) fn freebsd_defaults(config: Config) -> Config {
    let modern = Config::modern();
    config
        .with_growth(modern.growth())
        .with_growth_condition(modern.growth_condition())
        .with_reduction(modern.reduction())
        .with_nagle(modern.nagle())
        .with_quick_acks(modern.quick_acks())
        .with_tolerated_lost_syns(modern.tolerated_lost_syns())
        .with_missing_timestamp(modern.missing_timestamp())
        .with_window_probe(modern.window_probe())
        .with_slow_start(modern.slow_start())
        .with_mark_reduction(modern.mark_reduction())
        .with_receiver_rules(modern.receiver_rules())
        .with_loss_detection(with_rtt_of_last_sent(config.loss_detection()))
        .with_time_wait_reset(TimeWaitReset::Ignored)
        .with_rto(config.rto().with_min(Duration::from_millis(230)))
        .with_challenge_ack_interval(Duration::ZERO)
        .with_receive_buffer(65_536)
}

/// Returns the parameters after FreeBSD's `NAME = value`.
///
/// # Errors
/// The reason for which the value cannot apply.
pub(crate) fn freebsd(config: Config, name: &str, value: &str) -> Result<Config, String> {
    let number = || first_number(value).ok_or_else(|| bad_value(name, value));
    let refused = |reason: &str| Err(reason.to_owned());
    let Some(name) = name.strip_prefix("net.inet.tcp.") else { return Ok(config) };
    Ok(match name {
        "rfc1323" => {
            let value = number()?;
            with_timestamps(
                config.with_window_scale(offer(value == 1 || value == 2)),
                value == 1 || value == 3,
            )
        }
        "sack.enable" if number()? == 0 => without_sack(config),
        "ecn.enable" => config.with_ecn(ecn_mode(number()?)?),
        "recvspace" => config.with_receive_buffer(buffer(number()?)),
        "rexmit_initial" => config.with_rto(config.rto().with_initial(Duration::from_millis(number()?))),
        "delacktime" => config.with_ack_policy(match number()? {
            0 => AckPolicy::EverySegment,
            ms => AckPolicy::Delayed { timer: Duration::from_millis(ms) },
        }),
        "keepinit" | "keepidle" | "keepintvl" | "keepcnt" => {
            return refused("keep-alive settings of FreeBSD");
        }
        "mssdflt" | "v6mssdflt" | "pmtud_blackhole_detection" | "path_mtu_discovery" => {
            return refused("path MTU settings of FreeBSD");
        }
        _ => match switched_on(name) {
            Some(reason) if number()? > 0 => return refused(reason),
            _ => config,
        },
    })
}

/// Returns the feature that a switch of FreeBSD turns on, if the endpoint lacks it.
fn switched_on(name: &str) -> Option<&'static str> {
    Some(match name {
        "insecure_rst" | "insecure_syn" => "RFC 5961 switched off",
        "blackhole" => "a silent closed port",
        "drop_synfin" => "SYN with FIN dropped",
        "syncookies_only" => "SYN cookies",
        "udp_tunneling_port" => "UDP encapsulation",
        "fastopen.client_enable" | "fastopen.server_enable" => "TCP Fast Open",
        "rexmit_drop_options" => "a SYN without options after repeated losses",
        _ => return None,
    })
}

fn bad_value(name: &str, value: &str) -> String {
    format!("`{value}` for {name}")
}

fn offer(wanted: bool) -> OptionOffer {
    if wanted { OptionOffer::Offered } else { OptionOffer::NotOffered }
}

fn buffer(bytes: u64) -> u32 {
    bytes.clamp(1, 1 << 30) as u32
}

fn ecn_mode(value: u64) -> Result<EcnMode, String> {
    match value {
        0 => Ok(EcnMode::Never),
        1 => Ok(EcnMode::Request),
        2 => Ok(EcnMode::Accept),
        _ => Err("AccECN".to_owned()),
    }
}

/// Sets the use of timestamps, and of the detection that needs them.
fn with_timestamps(config: Config, on: bool) -> Config {
    let config = config.with_timestamps(offer(on));
    if on { config } else { config.with_spurious(config.spurious().with_eifel(SpuriousDetector::Off)) }
}

/// Returns a host without SACK: NewReno, and no detection that needs SACK.
fn without_sack(config: Config) -> Config {
    config
        .with_variant(Variant::NewReno(NewRenoConfig::RFC6582))
        .with_loss_detection(LossDetection::DupAcks)
        .with_dsack(DsackReports::Off)
        .with_spurious(SpuriousDetection::NONE)
}

/// Sets the algorithm. HyStart is a part of Linux's CUBIC alone.
fn with_algorithm(config: Config, name: &str) -> Result<Config, String> {
    let (algorithm, slow_start) = match name.trim() {
        "reno" => (CongestionControl::Reno, SlowStart::Rfc5681),
        "cubic" => (CongestionControl::Cubic(CubicConfig::LINUX), SlowStart::HyStart(HyStartConfig::LINUX)),
        "bbr" => (CongestionControl::Bbr(BbrConfig::V1), SlowStart::Rfc5681),
        other => return Err(format!("congestion control `{other}`")),
    };
    Ok(config.with_congestion_control(algorithm).with_slow_start(slow_start))
}

fn with_rtt_of_last_sent(detection: LossDetection) -> LossDetection {
    match detection {
        LossDetection::Rack(rack) => LossDetection::Rack(rack.with_rtt_source(RackRttSource::LastSent)),
        LossDetection::DupAcks => LossDetection::DupAcks,
    }
}

fn without_tail_probe(config: Config) -> Config {
    match config.loss_detection() {
        LossDetection::Rack(rack) => {
            config.with_loss_detection(LossDetection::Rack(rack.with_tail_probe(TailProbe::Off)))
        }
        LossDetection::DupAcks => config,
    }
}

fn first_number(value: &str) -> Option<u64> {
    let number = value.split_whitespace().next().and_then(arithmetic);
    // As milliseconds, 35 years.
    number.map(|number| number.min(1 << 40))
}

/// Evaluates a number, with the products that scripts have: `$((256*1024))`.
fn arithmetic(text: &str) -> Option<u64> {
    let text = text.trim_start_matches("$((").trim_end_matches("))");
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    let factors = text.split('*').map(|factor| factor.trim().parse::<u64>().ok());
    factors.into_iter().try_fold(1u64, |product, factor| product.checked_mul(factor?))
}
