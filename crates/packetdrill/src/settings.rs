//! Settings of the host under test: script options, and the `sysctl` values of its commands.

use hopline_core::Duration;
use hopline_transport::tcp::congestion::NewRenoConfig;
use hopline_transport::tcp::{
    AckPolicy, BbrConfig, Config, CongestionControl, CubicConfig, DsackReports, EcnMode, Frto, IdleRestart,
    LossDetection, OptionOffer, RackConfig, SpuriousDetection, SpuriousDetector, TailProbe, Variant,
};

/// Operating system whose behaviour a script expects.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum System {
    /// Linux: the default.
    Linux,
    /// FreeBSD: scripts that set `net.inet.*`.
    FreeBsd,
}

/// Settings of the host under test.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Parameters of new connections.
    pub config: Config,
    /// Largest deviation of an outbound segment or of a return from its time. Default 4 ms.
    pub tolerance: Duration,
    /// MTU of the interface, bytes. Default 1500.
    pub mtu: u32,
    /// `true`: IPv6, whose header takes 20 bytes more.
    pub ipv6: bool,
    /// Tick of the peer's timestamp clock, as `--tcp_ts_tick_usecs` says; zero: timestamps are compared by identity.
    pub timestamp_tick: Duration,
    /// `true`: each outbound segment of the script is one segment; otherwise it may be several, as one GSO packet.
    pub strict_segments: bool,
    /// Operating system that the script was written for.
    pub system: System,
    /// Window scale that the script expects of the host. It depends on the memory of the machine that the script was
    /// written on; `None`: the smallest that expresses the receive buffer.
    pub window_scale: Option<u8>,
}

impl Settings {
    /// Returns the settings before the first line of a script.
    #[must_use]
    pub fn new(config: Config) -> Self {
        Self {
            config,
            tolerance: Duration::from_millis(4),
            mtu: 1500,
            ipv6: false,
            timestamp_tick: Duration::ZERO,
            strict_segments: false,
            system: System::Linux,
            window_scale: None,
        }
    }

    /// Returns the largest payload of a segment without options, bytes.
    #[must_use]
    pub fn mss(&self) -> u32 {
        self.mtu.saturating_sub(if self.ipv6 { 60 } else { 40 }).clamp(48, 65_495)
    }

    /// Applies an option of the first lines.
    ///
    /// # Errors
    /// The reason for which the option cannot apply.
    pub fn apply_option(&mut self, name: &str, value: &str) -> Result<(), String> {
        let micros = || value.parse().map(Duration::from_micros).map_err(|_| bad_value(name, value));
        match name {
            "tolerance_usecs" => self.tolerance = micros()?,
            "tcp_ts_tick_usecs" => self.timestamp_tick = micros()?,
            "mtu" => self.mtu = value.parse().map_err(|_| bad_value(name, value))?,
            "ip_version" => match value {
                "ipv4" => self.ipv6 = false,
                "ipv6" => self.ipv6 = true,
                other => return Err(format!("IP version `{other}`")),
            },
            "strict_segments" => self.strict_segments = true,
            "send_omit_free"
            | "non_fatal"
            | "dry_run"
            | "verbose"
            | "v"
            | "debug"
            | "init_scripts"
            | "local_ip"
            | "remote_ip"
            | "netmask_ip"
            | "gateway_ip"
            | "local_linklocal_ip"
            | "live_bind_port"
            | "bind_port"
            | "connect_port"
            | "speed"
            | "tun_device"
            | "persistent_tun_device"
            | "fragmentation"
            | "so_filename"
            | "so_flags"
            | "define" => {}
            "udp_encapsulation" => return Err("UDP encapsulation".to_owned()),
            "tcp_md5_secret" => return Err("TCP MD5 signatures".to_owned()),
            other => return Err(format!("the option --{other}")),
        }
        Ok(())
    }

    /// Applies a `sysctl` value. Values without an effect on a TCP endpoint are accepted.
    ///
    /// # Errors
    /// The reason for which the value cannot apply.
    pub fn apply_sysctl(&mut self, name: &str, value: &str) -> Result<(), String> {
        let name = &name.replace('/', ".");
        if name.starts_with("net.inet") || name.starts_with("kern.") {
            return self.apply_freebsd(name, value);
        }
        match name.strip_prefix("net.ipv4.") {
            Some(name) => self.apply_linux(name, value),
            None if name.starts_with("net.ipv6.") || name.starts_with("net.core.") => Ok(()),
            None => Err(format!("the sysctl {name}")),
        }
    }

    fn apply_linux(&mut self, name: &str, value: &str) -> Result<(), String> {
        let config = &mut self.config;
        let number = || first_number(value).ok_or_else(|| bad_value(name, value));
        match name {
            "tcp_timestamps" => set_timestamps(config, number()? > 0),
            "tcp_window_scaling" => config.window_scale = offer(number()? > 0),
            "tcp_sack" if number()? == 0 => set_without_sack(config),
            "tcp_dsack" => config.dsack = if number()? > 0 { DsackReports::On } else { DsackReports::Off },
            "tcp_ecn" => {
                config.ecn = match number()? {
                    0 => EcnMode::Never,
                    1 => EcnMode::Request,
                    2 => EcnMode::Accept,
                    _ => return Err("AccECN".to_owned()),
                }
            }
            "tcp_congestion_control" => set_algorithm(config, value)?,
            "tcp_reordering" => config.dup_ack_threshold = number()?.clamp(1, 255) as u32,
            "tcp_slow_start_after_idle" if number()? == 0 => config.idle_restart = IdleRestart::Never,
            "tcp_early_retrans" => set_tail_probe(config, number()? >= 3),
            "tcp_recovery" if number()? & 1 == 0 => config.loss_detection = LossDetection::DupAcks,
            "tcp_frto" if number()? == 0 => config.spurious.frto = Frto::Off,
            "tcp_syn_retries" | "tcp_synack_retries" => config.syn_retries = Some(number()? as u32),
            "tcp_retries2" => config.data_retries = Some(number()? as u32),
            "tcp_rmem" => {
                let largest = value.split_whitespace().filter_map(arithmetic).next_back();
                let largest = largest.ok_or_else(|| bad_value(name, value))?;
                config.receive_buffer = largest.clamp(1, 1 << 30) as u32;
            }
            "tcp_notsent_lowat" if number()? < u64::from(u32::MAX) => {
                return Err("TCP_NOTSENT_LOWAT".to_owned());
            }
            "tcp_rto_min_us" => config.rto.min = Duration::from_micros(number()?),
            "tcp_rto_max_ms" => config.rto.max = Duration::from_millis(number()?),
            "tcp_mtu_probing" if number()? > 0 => return Err("path MTU probing".to_owned()),
            "tcp_thin_linear_timeouts" | "tcp_thin_dupack" if number()? > 0 => {
                return Err("thin streams".to_owned());
            }
            "tcp_rfc1337" if number()? > 0 => return Err("RFC 1337".to_owned()),
            _ if name.starts_with("tcp_") || name.starts_with("ip_") || name.starts_with("conf.") => {}
            _ => return Err(format!("the sysctl net.ipv4.{name}")),
        }
        Ok(())
    }

    fn apply_freebsd(&mut self, name: &str, value: &str) -> Result<(), String> {
        self.use_freebsd();
        let config = &mut self.config;
        let number = || first_number(value).ok_or_else(|| bad_value(name, value));
        match name {
            "net.inet.tcp.rfc1323" => {
                let value = number()?;
                config.window_scale = offer(value == 1 || value == 2);
                set_timestamps(config, value == 1 || value == 3);
            }
            "net.inet.tcp.sack.enable" if number()? == 0 => set_without_sack(config),
            "net.inet.tcp.ecn.enable" => {
                config.ecn = match number()? {
                    0 => EcnMode::Never,
                    1 => EcnMode::Request,
                    2 => EcnMode::Accept,
                    _ => return Err("AccECN".to_owned()),
                }
            }
            "net.inet.tcp.recvspace" => config.receive_buffer = number()?.clamp(1, 1 << 30) as u32,
            "net.inet.tcp.rexmit_initial" => config.rto.initial = Duration::from_millis(number()?),
            "net.inet.tcp.delacktime" => {
                config.ack_policy = match number()? {
                    0 => AckPolicy::EverySegment,
                    ms => AckPolicy::Delayed { timer: Duration::from_millis(ms) },
                }
            }
            "net.inet.tcp.insecure_rst" | "net.inet.tcp.insecure_syn" if number()? > 0 => {
                return Err("RFC 5961 switched off".to_owned());
            }
            "net.inet.tcp.blackhole" if number()? > 0 => return Err("a silent closed port".to_owned()),
            "net.inet.tcp.drop_synfin" if number()? > 0 => return Err("SYN with FIN dropped".to_owned()),
            "net.inet.tcp.syncookies_only" if number()? > 0 => return Err("SYN cookies".to_owned()),
            "net.inet.tcp.udp_tunneling_port" if number()? > 0 => return Err("UDP encapsulation".to_owned()),
            "net.inet.tcp.fastopen.client_enable" | "net.inet.tcp.fastopen.server_enable"
                if number()? > 0 =>
            {
                return Err("TCP Fast Open".to_owned());
            }
            "net.inet.tcp.keepinit"
            | "net.inet.tcp.keepidle"
            | "net.inet.tcp.keepintvl"
            | "net.inet.tcp.keepcnt" => return Err("keep-alive settings of FreeBSD".to_owned()),
            "net.inet.tcp.rexmit_drop_options" if number()? > 0 => {
                return Err("a SYN without options after repeated losses".to_owned());
            }
            "net.inet.tcp.mssdflt"
            | "net.inet.tcp.v6mssdflt"
            | "net.inet.tcp.pmtud_blackhole_detection"
            | "net.inet.tcp.path_mtu_discovery" => return Err("path MTU settings of FreeBSD".to_owned()),
            _ => {}
        }
        Ok(())
    }

    /// Returns the receive buffer of a connection with segments of `mss` bytes: FreeBSD rounds it up to whole segments.
    #[must_use]
    pub fn receive_buffer(&self, bytes: u32, mss: u32) -> u32 {
        match self.system {
            System::Linux => bytes,
            System::FreeBsd => bytes.next_multiple_of(mss.max(1)),
        }
    }

    /// Takes over what differs in FreeBSD without a `sysctl`.
    fn use_freebsd(&mut self) {
        if self.system == System::FreeBsd {
            return;
        }
        self.system = System::FreeBsd;
        self.config.rto.min = Duration::from_millis(230);
        self.config.challenge_ack_interval = Duration::ZERO;
        self.config.receive_buffer = 65_536;
    }
}

fn bad_value(name: &str, value: &str) -> String {
    format!("`{value}` for {name}")
}

fn offer(wanted: bool) -> OptionOffer {
    if wanted { OptionOffer::Offered } else { OptionOffer::NotOffered }
}

/// Sets the use of timestamps, and of the detection that needs them.
fn set_timestamps(config: &mut Config, on: bool) {
    config.timestamps = offer(on);
    if !on {
        config.spurious.eifel = SpuriousDetector::Off;
    }
}

/// Sets what a host without SACK does: NewReno, and no loss detection that needs SACK.
fn set_without_sack(config: &mut Config) {
    config.variant = Variant::NewReno(NewRenoConfig::RFC6582);
    config.loss_detection = LossDetection::DupAcks;
    config.dsack = DsackReports::Off;
    config.spurious = SpuriousDetection::NONE;
}

fn set_algorithm(config: &mut Config, name: &str) -> Result<(), String> {
    config.congestion_control = match name.trim() {
        "reno" => CongestionControl::Reno,
        "cubic" => CongestionControl::Cubic(CubicConfig::LINUX),
        "bbr" => CongestionControl::Bbr(BbrConfig::V1),
        other => return Err(format!("congestion control `{other}`")),
    };
    Ok(())
}

fn set_tail_probe(config: &mut Config, on: bool) {
    if let LossDetection::Rack(rack) = config.loss_detection
        && !on
    {
        config.loss_detection = LossDetection::Rack(RackConfig { tail_probe: TailProbe::Off, ..rack });
    }
}

fn first_number(value: &str) -> Option<u64> {
    value.split_whitespace().next().and_then(arithmetic)
}

/// Evaluates a number, with the products that scripts have: `$((256*1024))`.
fn arithmetic(text: &str) -> Option<u64> {
    let text = text.trim_start_matches("$((").trim_end_matches("))");
    if let Some(hex) = text.strip_prefix("0x") {
        return u64::from_str_radix(hex, 16).ok();
    }
    text.split('*')
        .map(|factor| factor.trim().parse::<u64>().ok())
        .try_fold(1u64, |product, factor| product.checked_mul(factor?))
}

#[cfg(test)]
mod tests {
    use super::{Settings, System};
    use hopline_core::Duration;
    use hopline_transport::tcp::{Config, OptionOffer, Variant};

    #[test]
    fn values_of_linux_are_applied_to_the_connection() {
        let mut settings = Settings::new(Config::linux());
        settings.apply_sysctl("net.ipv4.tcp_timestamps", "0").unwrap();
        settings.apply_sysctl("net.ipv4.tcp_sack", "0").unwrap();
        settings.apply_sysctl("net.ipv4.tcp_rmem", "4096 540000 $((15*1024*1024))").unwrap();
        assert_eq!(settings.config.timestamps, OptionOffer::NotOffered);
        assert!(matches!(settings.config.variant, Variant::NewReno(_)));
        assert_eq!((settings.config.receive_buffer, settings.system), (15 << 20, System::Linux));
    }

    #[test]
    fn a_value_of_freebsd_selects_its_behaviour() {
        let mut settings = Settings::new(Config::linux());
        settings.apply_sysctl("net.inet.tcp.rexmit_initial", "3000").unwrap();
        assert_eq!((settings.system, settings.config.rto.initial), (System::FreeBsd, Duration::from_secs(3)));
    }

    #[test]
    fn a_value_that_cannot_apply_is_refused_by_name() {
        let mut settings = Settings::new(Config::linux());
        assert_eq!(settings.apply_sysctl("net.ipv4.tcp_ecn", "3"), Err("AccECN".to_owned()));
        assert_eq!(settings.apply_sysctl("vm.swappiness", "1"), Err("the sysctl vm.swappiness".to_owned()));
        assert_eq!(settings.apply_option("mtu", "big"), Err("`big` for mtu".to_owned()));
    }
}
