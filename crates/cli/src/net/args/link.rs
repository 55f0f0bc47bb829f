//! Options of `hopline link`.

use crate::args::number::whole;
use clap::Args as Arguments;
use hopline_core::{Duration, Instant};
use hopline_linux::Network;
use std::path::PathBuf;
use std::str::FromStr;

pub(super) const EXAMPLES: &str = "\
Examples:
  hopline link --rate 20mbit --delay 25ms --loss 5% --far 'hopline bench -s' \\
    -- sh -c 'hopline bench -c $HOPLINE_FAR'
  hopline link --delay 100ms --far 'hopline recv -o in --anyone' \\
    -- sh -c 'hopline send video.mp4 $HOPLINE_FAR'
  hopline link --rate 2mbit --outage 10s..30s -- ping -c 40 10.80.0.2
  hopline link --loss 10% --loss-burst 4   # a shell; on the far host:
  nsenter --net=$HOPLINE_FAR_NETNS iperf3 -s
  hopline link --loss 5% --near-router 'hopline proxy run snoop.toml' --far 'iperf3 -s' \
    -- sh -c 'iperf3 -c $HOPLINE_FAR -R'

Environment of all commands: HOPLINE_NEAR and HOPLINE_FAR (IPv4 addresses), HOPLINE_NEAR6 and HOPLINE_FAR6 (IPv6 \
addresses), HOPLINE_FAR_NETNS and HOPLINE_LINK_SEED. The commands of --far, --near-router and --far-router start \
300 ms before COMMAND and are stopped after it. Their output goes to stderr. Needs /dev/net/tun, and root or user \
namespaces.
Exit codes: that of COMMAND, or 128 plus the number of the signal that ended it; 1 with --strict if the emulation \
was late; 2 wrong usage.";

#[derive(Debug, Arguments)]
pub(crate) struct Link {
    /// Rate of the link each way, such as 20mbit or 500kbit [default: no limit]
    #[arg(long, value_name = "RATE")]
    pub(crate) rate: Option<Rate>,
    /// mahimahi trace: times at which one packet may leave, in place of a rate
    #[arg(long, value_name = "FILE", conflicts_with = "rate")]
    pub(crate) rate_trace: Option<PathBuf>,
    /// File with delays, losses and rates over time: CSV or JSON with time_s, delay_ms, loss, rate_mbps
    #[arg(long, value_name = "FILE")]
    pub(crate) replay: Option<PathBuf>,
    /// Propagation delay each way, such as 25ms
    #[arg(long, value_name = "TIME", default_value = "0ms")]
    pub(crate) delay: Time,
    /// Maximum of a random additional delay of each packet, such as 5ms; packets are not reordered
    #[arg(long, value_name = "TIME", default_value = "0ms")]
    pub(crate) jitter: Time,
    /// Let a packet overtake earlier ones if --jitter or --replay delays it less, as after a route change
    #[arg(long)]
    pub(crate) overtake: bool,
    /// Share of packets lost each way, such as 5%
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub(crate) loss: Share,
    /// Mean number of consecutive packets lost in a burst [default: losses are independent]
    #[arg(long, value_name = "N", value_parser = burst)]
    pub(crate) loss_burst: Option<f64>,
    /// Share of packets delayed so that later ones overtake them, and the delay, such as 5%:30ms [default delay: 30ms]
    #[arg(long, value_name = "SHARE[:TIME]", default_value = "0%")]
    pub(crate) reorder: Reorder,
    /// Share of packets that arrive twice
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub(crate) duplicate: Share,
    /// Share of packets with a flipped bit
    #[arg(long, value_name = "SHARE", default_value = "0%")]
    pub(crate) corrupt: Share,
    /// Length of the queue before the link, packets
    #[arg(long, value_name = "PACKETS", default_value_t = 100)]
    #[arg(value_parser = whole::<u32>(0..=u32::MAX.into()), allow_negative_numbers = true)]
    pub(crate) queue: u32,
    /// MTU of a router on the path; it drops longer packets that must not be fragmented, without an ICMP message
    #[arg(long, value_name = "BYTES", value_parser = whole::<u16>(68..=65_535), allow_negative_numbers = true)]
    pub(crate) mtu: Option<u16>,
    /// Drop all packets between these times since the start, such as 60s..2min; may be repeated
    #[arg(long, value_name = "FROM..TO")]
    pub(crate) outage: Vec<Outage>,
    /// Rate from far to near [default: as from near to far]
    #[arg(long, value_name = "RATE")]
    pub(crate) rate_back: Option<Rate>,
    /// mahimahi trace from far to near [default: as from near to far]
    #[arg(long, value_name = "FILE", conflicts_with = "rate_back")]
    pub(crate) rate_trace_back: Option<PathBuf>,
    /// File of --replay from far to near [default: as from near to far]
    #[arg(long, value_name = "FILE")]
    pub(crate) replay_back: Option<PathBuf>,
    /// Delay from far to near [default: as from near to far]
    #[arg(long, value_name = "TIME")]
    pub(crate) delay_back: Option<Time>,
    /// Share of packets lost from far to near [default: as from near to far]
    #[arg(long, value_name = "SHARE")]
    pub(crate) loss_back: Option<Share>,
    /// Seed of the random numbers that select lost packets
    #[arg(long, value_name = "N", default_value_t = 1)]
    #[arg(value_parser = whole::<u64>(0..=u64::MAX), allow_negative_numbers = true)]
    pub(crate) seed: u64,
    /// Shell command to run on the far host; it is stopped when COMMAND ends
    #[arg(long, value_name = "COMMAND")]
    pub(crate) far: Option<String>,
    /// Put a router between the near host and the link, and run this shell command on it; `true`: only forward
    #[arg(long, value_name = "COMMAND")]
    pub(crate) near_router: Option<String>,
    /// Put a router between the link and the far host, and run this shell command on it; `true`: only forward
    #[arg(long, value_name = "COMMAND")]
    pub(crate) far_router: Option<String>,
    /// Network behind the near host, such as 10.9.0.0/24 or fd09::/64; the far host gets a route to it; may be repeated
    #[arg(long, value_name = "NETWORK")]
    pub(crate) near_net: Vec<Network>,
    /// Network behind the far host; the near host gets a route to it; may be repeated
    #[arg(long, value_name = "NETWORK")]
    pub(crate) far_net: Vec<Network>,
    /// Exit with 1 if the emulation sent more than 2 % of the packets over 1 ms late, even if COMMAND succeeded
    #[arg(long)]
    pub(crate) strict: bool,
    /// Write the counters of the link to this file as JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) json: Option<PathBuf>,
    /// Command on the near host [default: a shell]
    #[arg(last = true, value_name = "COMMAND")]
    pub(crate) command: Vec<String>,
}

/// Rate, bits per second.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Rate(pub(crate) u64);

/// Span of time.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Time(pub(crate) Duration);

/// Share of packets, 0 to 1.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Share(pub(crate) f64);

/// Share of packets that are delayed so that later ones overtake them, and the delay.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Reorder(pub(crate) Share, pub(crate) Time);

/// Start and end of an outage, as times since the start of the link.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Outage(pub(crate) Instant, pub(crate) Instant);

/// Splits a number from its unit.
fn split(text: &str) -> Option<(f64, &str)> {
    let unit = text.find(|c: char| c.is_ascii_alphabetic() || c == '%').unwrap_or(text.len());
    let (number, unit) = text.split_at(unit);
    let number = number.trim().parse().ok().filter(|number: &f64| number.is_finite() && *number >= 0.0)?;
    Some((number, unit))
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split(text).ok_or("a number and a unit: 20mbit")?;
        if unit.is_empty() {
            return Err(format!("`{text}` has no unit: {text}bit, {text}kbit or {text}mbit"));
        }
        let unit = unit.strip_suffix("/s").or(unit.strip_suffix("ps")).unwrap_or(unit);
        if unit.ends_with('B') {
            return Err("B means bytes; the unit must be bit, kbit, mbit or gbit: 20mbit".into());
        }
        let factor = match unit.to_ascii_lowercase().as_str() {
            "bit" | "b" => 1.0,
            "kbit" | "kb" | "k" => 1e3,
            "mbit" | "mb" | "m" => 1e6,
            "gbit" | "gb" | "g" => 1e9,
            _ => return Err("the unit is bit, kbit, mbit or gbit: 20mbit".into()),
        };
        let rate = number * factor;
        if (1.0..=1e12).contains(&rate) { Ok(Self(rate as u64)) } else { Err("from 1bit to 1000gbit".into()) }
    }
}

impl FromStr for Time {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (number, unit) = split(text).ok_or("a number and a unit: 25ms")?;
        let seconds = match unit {
            "us" => number * 1e-6,
            "ms" => number * 1e-3,
            "s" => number,
            "min" | "m" => number * 60.0,
            "" if number == 0.0 => 0.0,
            "" => return Err(format!("`{text}` has no unit: {text}ms or {text}s")),
            _ => return Err("the unit is us, ms, s or min: 25ms".into()),
        };
        if seconds <= 86_400.0 {
            Ok(Self(Duration::from_secs_f64(seconds)))
        } else {
            Err("at most a day".into())
        }
    }
}

impl FromStr for Share {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let share = match split(text) {
            Some((number, "%")) => number / 100.0,
            Some((number, "")) if number <= 1.0 => number,
            Some((_, "")) => {
                return Err(format!("a share without % is from 0 to 1; use {text}% for a percentage"));
            }
            _ => return Err("a percentage: 5%".into()),
        };
        if share <= 1.0 { Ok(Self(share)) } else { Err("at most 100%".into()) }
    }
}

impl FromStr for Reorder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (share, time) = text.split_once(':').unwrap_or((text, "30ms"));
        Ok(Self(share.parse()?, time.parse()?))
    }
}

impl FromStr for Outage {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (from, until) = text.split_once("..").ok_or("a start and an end: 60s..120s")?;
        let [Time(from), Time(until)] = [from.parse()?, until.parse()?];
        if from >= until {
            return Err("the end must be after the start".into());
        }
        Ok(Self(Instant::ZERO + from, Instant::ZERO + until))
    }
}

fn burst(text: &str) -> Result<f64, String> {
    text.parse().ok().filter(|&n| (1.0..=1e6).contains(&n)).ok_or_else(|| "from 1 to 1000000 packets".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn quantities_are_parsed_in_usual_notations() {
        for (text, bits) in [
            ("20mbit", 20_000_000),
            ("2Mbit", 2_000_000),
            ("1.5gbit", 1_500_000_000),
            ("500kbit/s", 500_000),
            ("54Mbps", 54_000_000),
            ("54Mb/s", 54_000_000),
        ] {
            assert_eq!(text.parse(), Ok(Rate(bits)), "{text}");
        }
        for (text, us) in
            [("25ms", 25_000), ("1s", 1_000_000), ("0", 0), ("0.5ms", 500), ("2min", 120_000_000)]
        {
            assert_eq!(text.parse(), Ok(Time(Duration::from_micros(us))), "{text}");
        }
        assert_eq!(("5%".parse(), "0.05".parse()), (Ok(Share(0.05)), Ok(Share(0.05))));
        assert_eq!("5%:10ms".parse(), Ok(Reorder(Share(0.05), Time(Duration::from_millis(10)))));
        assert_eq!("5%".parse(), Ok(Reorder(Share(0.05), Time(Duration::from_millis(30)))));
        assert_eq!("60s..2min".parse(), Ok(Outage(Instant::from_secs(60), Instant::from_secs(120))));
    }

    #[test]
    fn invalid_quantities_are_rejected_with_a_valid_example() {
        let said = |error: Result<(), String>| error.unwrap_err();
        assert_eq!(said("20".parse::<Rate>().map(drop)), "`20` has no unit: 20bit, 20kbit or 20mbit");
        for bytes in ["20MB", "20MB/s", "20MBps", "20B"] {
            let error = "B means bytes; the unit must be bit, kbit, mbit or gbit: 20mbit";
            assert_eq!(said(bytes.parse::<Rate>().map(drop)), error, "{bytes}");
        }
        assert_eq!(said("20ps".parse::<Rate>().map(drop)), "the unit is bit, kbit, mbit or gbit: 20mbit");
        assert_eq!(said("fast".parse::<Rate>().map(drop)), "a number and a unit: 20mbit");
        assert_eq!(said("25".parse::<Time>().map(drop)), "`25` has no unit: 25ms or 25s");
        assert_eq!(
            said("5".parse::<Share>().map(drop)),
            "a share without % is from 0 to 1; use 5% for a percentage"
        );
        assert_eq!(said("101%".parse::<Share>().map(drop)), "at most 100%");
        assert_eq!(said("9s..3s".parse::<Outage>().map(drop)), "the end must be after the start");
        for wrong in ["-5%", "nan%", "inf", "5 percent", ""] {
            assert!(wrong.parse::<Share>().is_err(), "{wrong}");
        }
    }
}
