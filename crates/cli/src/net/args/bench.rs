//! `bench`.

use crate::args::number::whole;
use clap::{ArgGroup, Args as Arguments};
use hopline_tools::bench::{DEFAULT_MAX_STREAMS, MAX_LENGTH, MAX_STREAMS, PORT, Rate, Transport};
use std::net::IpAddr;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

pub(super) const EXAMPLES: &str = "\
Examples:
  hopline bench -s
  hopline bench -c drone-3
  hopline bench -c drone-3 -C cubic -t 30 -P 4
  hopline bench -c drone-3 -u -b 5M --bidir
  hopline bench -c drone-3 -R -J | jq .end.sum_received.bits_per_second
  hopline link --rate 20mbit --delay 25ms --loss 5% --far 'hopline bench -s' \\
    -- sh -c 'hopline bench -c $HOPLINE_FAR'
  iperf3 -c drone-3   # to hopline bench -s; the other way round with -u or -C

Options, JSON keys and the conversation are iperf3's: over TCP and UDP either end may be iperf3. TPA needs \
hopline at both. The server serves TPA (UDP), TCP and UDP at one port number, one test at a time.
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.";

const DAY: u64 = 86_400;

#[derive(Debug, Arguments)]
#[command(group(ArgGroup::new("side").required(true).args(["server", "client"])))]
pub(crate) struct Bench {
    /// Wait for clients
    #[arg(short, long)]
    pub(crate) server: bool,
    /// Measure with the server at HOST
    #[arg(short, long, value_name = "HOST")]
    pub(crate) client: Option<String>,
    /// Port of the server, UDP and TCP
    #[arg(short, long, value_name = "PORT", default_value_t = PORT)]
    #[arg(value_parser = whole::<u16>(0..=65_535), allow_negative_numbers = true)]
    pub(crate) port: u16,
    /// Time between reports; 0: none
    #[arg(short, long, value_name = "SECONDS", default_value = "1")]
    pub(crate) interval: Interval,
    /// Listen on this address only [default: 0.0.0.0]; client: connect from it
    #[arg(short = 'B', long, value_name = "ADDRESS")]
    pub(crate) bind: Option<IpAddr>,
    /// IPv4 only
    #[arg(short = '4', long, conflicts_with = "version6")]
    pub(crate) version4: bool,
    /// IPv6 only; server: both
    #[arg(short = '6', long)]
    pub(crate) version6: bool,
    /// Unit of bit rates: k, m, g, t bits or K, M, G, T bytes per second [default: what fits]
    #[arg(short, long, value_name = "UNIT")]
    pub(crate) format: Option<Unit>,
    /// Append output to this file instead of writing to standard output
    #[arg(long, value_name = "FILE")]
    pub(crate) logfile: Option<PathBuf>,
    /// Accepted for compatibility with iperf3; every line is flushed anyway
    #[arg(long)]
    pub(crate) forceflush: bool,
    /// Server: exit after one test, with its result as exit code
    #[arg(short = '1', long, conflicts_with = "client")]
    pub(crate) one_off: bool,
    /// Server: most streams of a test, both directions together
    #[arg(long, value_name = "N", default_value_t = DEFAULT_MAX_STREAMS, conflicts_with = "client")]
    #[arg(value_parser = whole::<u16>(1..=2 * MAX_STREAMS as u64), allow_negative_numbers = true)]
    pub(crate) max_streams: u16,
    #[command(flatten)]
    pub(crate) test: Test,
}

/// Parameters of a client's test.
#[derive(Debug, Arguments)]
pub(crate) struct Test {
    /// Duration of the measurement [default: 10]
    #[arg(short, long, value_name = "SECONDS", conflicts_with_all = ["bytes", "server"])]
    #[arg(value_parser = whole::<u32>(1..=DAY), allow_negative_numbers = true)]
    pub(crate) time: Option<u32>,
    /// Measure until this much has arrived; K, M, G: 2^10, 2^20, 2^30
    #[arg(short = 'n', long, value_name = "BYTES[KMG]", value_parser = bytes, conflicts_with = "server")]
    pub(crate) bytes: Option<u64>,
    /// Streams at the same time
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, conflicts_with = "server")]
    #[arg(value_parser = whole::<u8>(1..=MAX_STREAMS.into()), allow_negative_numbers = true)]
    pub(crate) parallel: u8,
    /// The server sends
    #[arg(short = 'R', long, conflicts_with = "server")]
    pub(crate) reverse: bool,
    /// Print one JSON object, with iperf3's keys
    #[arg(short = 'J', long, conflicts_with = "server")]
    pub(crate) json: bool,
    /// Print JSON as the test goes: an object a line, with `event` and `data`
    #[arg(long, conflicts_with_all = ["server", "json"])]
    pub(crate) json_stream: bool,
    /// Bytes of each write [default: 128K; UDP: a segment of the path]
    #[arg(short, long, value_name = "BYTES[KMG]", value_parser = length)]
    #[arg(conflicts_with = "server")]
    pub(crate) length: Option<u32>,
    /// tpa, tpa-wide, udp, tcp or tcp:CONGESTION-CONTROL [default: tpa]
    #[arg(long, value_name = "TRANSPORT", conflicts_with = "server")]
    pub(crate) transport: Option<Transport>,
    /// UDP
    #[arg(short, long, conflicts_with_all = ["server", "transport", "congestion"])]
    pub(crate) udp: bool,
    /// TCP with this congestion control
    #[arg(short = 'C', long, value_name = "NAME", conflicts_with_all = ["server", "transport"])]
    pub(crate) congestion: Option<String>,
    /// Bits per second of each stream, and blocks sent at once; 0: no limit [default: 0; UDP: 1M]
    #[arg(short, long, value_name = "RATE[KMG][/N]", conflicts_with = "server")]
    pub(crate) bitrate: Option<BitRate>,
    /// Both ends send, over streams of their own
    #[arg(long, conflicts_with_all = ["server", "reverse"])]
    pub(crate) bidir: bool,
    /// Buffers of sockets; TCP and UDP
    #[arg(short = 'w', long = "socket-buffer", value_name = "BYTES[KMG]", value_parser = buffer)]
    #[arg(conflicts_with = "server")]
    pub(crate) socket_buffer: Option<u32>,
    /// Data of a segment; TCP
    #[arg(short = 'M', long, value_name = "BYTES", conflicts_with = "server")]
    #[arg(value_parser = whole::<u16>(88..=32_767), allow_negative_numbers = true)]
    pub(crate) set_mss: Option<u16>,
    /// Send small segments at once (TCP_NODELAY)
    #[arg(short = 'N', long, conflicts_with = "server")]
    pub(crate) no_delay: bool,
    /// Send without copying (sendfile); TCP
    #[arg(short = 'Z', long, conflicts_with = "server")]
    pub(crate) zerocopy: bool,
    /// Type of service: 0 to 255, 0x10, 020; TCP and UDP
    #[arg(short = 'S', long, value_name = "N", value_parser = tos, conflicts_with = "server")]
    pub(crate) tos: Option<u8>,
    /// Prefix of every line
    #[arg(short = 'T', long, value_name = "WORDS", conflicts_with = "server")]
    pub(crate) title: Option<String>,
    /// Milliseconds that an attempt to connect may take [default: 10000]
    #[arg(long, value_name = "MS", conflicts_with = "server")]
    #[arg(value_parser = whole::<u32>(1..=DAY * 1000), allow_negative_numbers = true)]
    pub(crate) connect_timeout: Option<u32>,
    /// Show the output of the server too
    #[arg(long, conflicts_with = "server")]
    pub(crate) get_server_output: bool,
    /// Measure latency for this time before and after the load, and during it; 0: not at all
    #[arg(long, value_name = "SECONDS", default_value = "0.5", value_parser = latency)]
    #[arg(conflicts_with = "server")]
    pub(crate) latency: Duration,
    /// TPA's cwndmax: segments in flight; over several wireless hops more than 6 cost goodput [default: 6]
    #[arg(long, value_name = "N", conflicts_with = "server")]
    #[arg(value_parser = whole::<u8>(1..=12), allow_negative_numbers = true)]
    pub(crate) window: Option<u8>,
    /// Omit this time at the beginning from the results
    #[arg(short = 'O', long, value_name = "SECONDS", default_value_t = 0, conflicts_with = "server")]
    #[arg(value_parser = whole::<u32>(0..=DAY), allow_negative_numbers = true)]
    pub(crate) omit: u32,
}

/// Interval between reports; `None`: no reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Interval(pub(crate) Option<Duration>);

impl FromStr for Interval {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text.parse::<f64>() {
            Ok(0.0) => Ok(Self(None)),
            Ok(seconds) if (0.1..=3600.0).contains(&seconds) => {
                Ok(Self(Some(Duration::from_secs_f64(seconds))))
            }
            _ => Err("from 0.1 to 3600 seconds, or 0 for none".into()),
        }
    }
}

/// Unit of bit rates.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unit {
    /// Bits of one unit.
    pub(crate) bits: u64,
    /// Name.
    pub(crate) name: &'static str,
}

impl FromStr for Unit {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let (bits, name) = match text {
            "k" => (1_000, "kb/s"),
            "m" => (1_000_000, "Mb/s"),
            "g" => (1_000_000_000, "Gb/s"),
            "t" => (1_000_000_000_000, "Tb/s"),
            "K" => (8 << 10, "KiB/s"),
            "M" => (8 << 20, "MiB/s"),
            "G" => (8 << 30, "GiB/s"),
            "T" => (8 << 40, "TiB/s"),
            _ => return Err("one of k, m, g, t (bits) and K, M, G, T (bytes)".into()),
        };
        Ok(Self { bits, name })
    }
}

/// Bit rate as iperf3 parses it: K, M and G are 10^3, 10^6 and 10^9.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct BitRate(pub(crate) Rate);

impl FromStr for BitRate {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || {
            String::from("bits per second, perhaps with K, M or G, and a number of blocks: 500K, 1.5M, 10M/5")
        };
        let (rate, burst) = match text.split_once('/') {
            None => (text, 0),
            Some((rate, burst)) => (rate, burst.parse().ok().filter(|n| *n <= 1000).ok_or_else(wrong)?),
        };
        let unit = match rate.as_bytes().last() {
            Some(b'k' | b'K') => 1e3,
            Some(b'm' | b'M') => 1e6,
            Some(b'g' | b'G') => 1e9,
            _ => 1.0,
        };
        let number = if unit == 1.0 { rate } else { &rate[..rate.len() - 1] };
        let bps = number.parse::<f64>().map_err(|_| wrong())? * unit;
        if (0.0..=1e15).contains(&bps) { Ok(Self(Rate { bps: bps as u64, burst })) } else { Err(wrong()) }
    }
}

fn buffer(text: &str) -> Result<u32, String> {
    let bytes = bytes(text)?.try_into().ok().filter(|&bytes: &u32| bytes <= 512 << 20);
    bytes.ok_or_else(|| "at most 512M".into())
}

fn tos(text: &str) -> Result<u8, String> {
    let digits = text.strip_prefix("0x").map(|digits| (digits, 16));
    let octal = || text.strip_prefix('0').filter(|rest| !rest.is_empty()).map(|digits| (digits, 8));
    let (digits, radix) = digits.or_else(octal).unwrap_or((text, 10));
    u8::from_str_radix(digits, radix).map_err(|_| "0 to 255, as 16, 0x10 or 020".into())
}

fn latency(text: &str) -> Result<Duration, String> {
    let seconds = text.parse::<f64>().ok().filter(|seconds| (0.0..=10.0).contains(seconds));
    seconds.map(Duration::from_secs_f64).ok_or_else(|| "0 to 10 seconds".into())
}

fn length(text: &str) -> Result<u32, String> {
    let length = bytes(text)?.try_into().ok().filter(|&length| length <= MAX_LENGTH);
    length.ok_or_else(|| "at most 1M".into())
}

/// Parses a number of bytes as iperf3 does: `1`, `64K`, `10M`, `2G`.
pub(super) fn bytes(text: &str) -> Result<u64, String> {
    let wrong = || String::from("a whole number of bytes above 0, perhaps with K, M or G: 64K, 10M");
    let unit = match text.as_bytes().last() {
        Some(b'k' | b'K') => 10,
        Some(b'm' | b'M') => 20,
        Some(b'g' | b'G') => 30,
        _ => 0,
    };
    let digits = if unit == 0 { text } else { &text[..text.len() - 1] };
    let number = digits.parse::<u64>().ok().filter(|&number| number > 0).ok_or_else(wrong)?;
    number.checked_mul(1 << unit).ok_or_else(|| "less than 2^64 bytes".into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_have_iperf3s_units() {
        for (text, expected) in
            [("1", 1), ("64K", 65_536), ("64k", 65_536), ("10M", 10_485_760), ("2g", 1 << 31)]
        {
            assert_eq!(bytes(text), Ok(expected), "{text}");
        }
        for wrong in ["", "0", "0K", "K", "1.5M", "-1", "1T", "1KK", "99999999999G", "1é"] {
            assert!(bytes(wrong).is_err(), "{wrong}");
        }
        assert_eq!((length("1M"), length("1048577").is_err()), (Ok(1 << 20), true));
    }

    #[test]
    fn bit_rates_have_iperf3s_units() {
        let rate = |bps, burst| Ok(BitRate(Rate { bps, burst }));
        for (text, expected) in [
            ("0", rate(0, 0)),
            ("10M", rate(10_000_000, 0)),
            ("1.5k", rate(1_500, 0)),
            ("2G/5", rate(2_000_000_000, 5)),
        ] {
            assert_eq!(text.parse(), expected, "{text}");
        }
        for wrong in ["", "M", "-1", "1T", "1M/", "1M/1001", "nan", "inf", "1é"] {
            assert!(wrong.parse::<BitRate>().is_err(), "{wrong}");
        }
        assert_eq!(["0", "16", "0x10", "020", "255"].map(tos), [0, 16, 16, 16, 255].map(Ok));
        assert!(["", "256", "0x", "09", "-1"].iter().all(|wrong| tos(wrong).is_err()));
    }

    #[test]
    fn an_interval_of_0_means_no_reports() {
        assert_eq!("0".parse(), Ok(Interval(None)));
        assert_eq!("0.5".parse(), Ok(Interval(Some(Duration::from_millis(500)))));
        for wrong in ["", "-1", "0.01", "3601", "nan", "inf", "1s"] {
            assert!(wrong.parse::<Interval>().is_err(), "{wrong}");
        }
    }
}
