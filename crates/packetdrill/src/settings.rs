//! Settings of the host under test: script options, and the `sysctl` values of its commands.

use crate::sysctl;
use hopline_core::Duration;
use hopline_transport::tcp::Config;

/// Operating system that a script was written for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum System {
    /// Linux: the default.
    Linux,
    /// FreeBSD: scripts that set `net.inet.*`.
    FreeBsd,
}

/// Longest time of an option, microseconds: eleven days.
const MOST_MICROS: u64 = 1_000_000_000_000;
/// Least segment of an endpoint, bytes.
const MIN_MSS: u32 = 48;

/// Settings of the host under test.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    /// Parameters of new connections.
    pub(crate) config: Config,
    /// Largest deviation of an outbound segment or of a return from its time. Default 4 ms.
    pub(crate) tolerance: Duration,
    /// MTU of the interface, bytes. Default 1500.
    pub(crate) mtu: u32,
    /// Largest segment of the peer, bytes, as `--mss` says: a longer one in the script stands for several.
    pub(crate) peer_mss: Option<u32>,
    /// `true`: a message of ICMP ends an attempt to connect.
    pub(crate) icmp_ends_handshake: bool,
    /// `true`: IPv6, with a header that is 20 bytes longer.
    pub(crate) ipv6: bool,
    /// `true`: an option states the IP version.
    states_ip_version: bool,
    /// Tick of the host's timestamp clock, as `--tcp_ts_tick_usecs` says; zero: the values of its timestamps are not compared.
    pub(crate) timestamp_tick: Duration,
    /// `true`: each outbound segment of the script is one segment; otherwise it may be several, as one GSO packet.
    pub(crate) strict_segments: bool,
    /// Operating system that the script was written for.
    pub(crate) system: System,
    /// Window scale that the script expects of the host. It depends on the memory of the machine that the script was
    /// written on; `None`: the smallest that expresses the receive buffer.
    pub(crate) window_scale: Option<u8>,
}

impl Settings {
    /// Returns the settings before the first line of a script.
    pub(crate) fn new(config: Config) -> Self {
        Self {
            config,
            tolerance: Duration::from_millis(4),
            mtu: 1500,
            peer_mss: None,
            icmp_ends_handshake: true,
            ipv6: false,
            states_ip_version: false,
            timestamp_tick: Duration::ZERO,
            strict_segments: false,
            system: System::Linux,
            window_scale: None,
        }
    }

    /// Returns the largest payload of a segment without options, bytes.
    pub(crate) fn mss(&self) -> u32 {
        self.mtu.saturating_sub(self.header_len()).clamp(MIN_MSS, 65_495)
    }

    /// Returns the length of the headers of IP and TCP without options, bytes.
    pub(crate) fn header_len(&self) -> u32 {
        if self.ipv6 { 60 } else { 40 }
    }

    /// Checks the settings together, after all options.
    ///
    /// # Errors
    /// The reason for which they cannot apply.
    pub(crate) fn check(&self) -> Result<(), String> {
        let least = MIN_MSS + self.header_len();
        if self.mtu < least { Err(format!("an MTU below {least} bytes")) } else { Ok(()) }
    }

    /// Applies an option of the first lines.
    ///
    /// # Errors
    /// The reason for which the option cannot apply.
    pub(crate) fn apply_option(&mut self, name: &str, value: &str) -> Result<(), String> {
        let micros = || {
            let number = value.parse::<u64>().map_err(|_| bad_value(name, value))?;
            Ok::<_, String>(Duration::from_micros(number.min(MOST_MICROS)))
        };
        match name {
            "tolerance_usecs" => self.tolerance = micros()?,
            "tcp_ts_tick_usecs" => self.timestamp_tick = micros()?,
            "mss" => self.peer_mss = Some(value.parse().map_err(|_| bad_value(name, value))?),
            "mtu" => self.mtu = value.parse().map_err(|_| bad_value(name, value))?,
            "ip_version" => {
                let ipv6 = match value {
                    "ipv4" => false,
                    "ipv6" => true,
                    other => return Err(format!("IP version `{other}`")),
                };
                if self.states_ip_version && self.ipv6 != ipv6 {
                    return Err("another IP version".to_owned());
                }
                (self.ipv6, self.states_ip_version) = (ipv6, true);
            }
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
    pub(crate) fn apply_sysctl(&mut self, name: &str, value: &str) -> Result<(), String> {
        let name = &name.replace('/', ".");
        if name.starts_with("net.inet") || name.starts_with("kern.") {
            self.use_freebsd();
            if name == "net.inet.tcp.icmp_may_rst" {
                self.icmp_ends_handshake = value.trim() != "0";
            }
            self.config = sysctl::freebsd(self.config, name, value)?;
        } else if let Some(name) = name.strip_prefix("net.ipv4.") {
            self.config = sysctl::linux(self.config, name, value)?;
        } else if !name.starts_with("net.ipv6.") && !name.starts_with("net.core.") {
            return Err(format!("the sysctl {name}"));
        }
        Ok(())
    }

    /// Takes over what differs in FreeBSD without a `sysctl`.
    fn use_freebsd(&mut self) {
        if self.system == System::Linux {
            self.system = System::FreeBsd;
            self.config = sysctl::freebsd_defaults(self.config);
        }
    }

    /// Returns the receive buffer of a connection with segments of `mss` bytes: FreeBSD rounds it up to whole segments.
    pub(crate) fn receive_buffer(&self, bytes: u32, mss: u32) -> u32 {
        match self.system {
            System::Linux => bytes,
            System::FreeBsd => bytes.next_multiple_of(mss.max(1)),
        }
    }
}

fn bad_value(name: &str, value: &str) -> String {
    format!("`{value}` for {name}")
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
        assert_eq!(settings.config.timestamps(), OptionOffer::NotOffered);
        assert!(matches!(settings.config.variant(), Variant::NewReno(_)));
        assert_eq!((settings.config.receive_buffer(), settings.system), (15 << 20, System::Linux));
    }

    #[test]
    fn a_value_of_freebsd_selects_its_behaviour() {
        let mut settings = Settings::new(Config::linux());
        settings.apply_sysctl("net.inet.tcp.rexmit_initial", "3000").unwrap();
        assert_eq!(
            (settings.system, settings.config.rto().initial()),
            (System::FreeBsd, Duration::from_secs(3))
        );
    }

    #[test]
    fn a_value_that_cannot_apply_is_refused_by_name() {
        let mut settings = Settings::new(Config::linux());
        assert_eq!(settings.apply_sysctl("net.ipv4.tcp_ecn", "3"), Err("AccECN".to_owned()));
        assert_eq!(settings.apply_sysctl("vm.swappiness", "1"), Err("the sysctl vm.swappiness".to_owned()));
        assert_eq!(settings.apply_option("mtu", "big"), Err("`big` for mtu".to_owned()));
    }
}
