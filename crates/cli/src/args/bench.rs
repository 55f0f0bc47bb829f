//! `bench`.

use clap::{ArgGroup, Args as Arguments};
use hopline_net::bench::{MAX_LENGTH, MAX_STREAMS, PORT, Transport};
use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

pub(super) const EXAMPLES: &str = "\
Examples:
  hopline bench -s
  hopline bench -c drone-3
  hopline bench -c drone-3 --transport tcp:cubic -t 30 -P 4
  hopline bench -c drone-3 --window 12 -R -J | jq .end.sum_received.bits_per_second

Options and JSON keys are iperf3's, but the protocol is not: both ends must be hopline's.
The server serves TPA (UDP) and TCP at one port number, one test at a time.
Exit codes: 0 done, 1 failed, 2 wrong usage, 130 interrupted.";

const DAY: i64 = 86_400;

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
    pub(crate) port: u16,
    /// Time between reports; 0: none
    #[arg(short, long, value_name = "SECONDS", default_value = "1")]
    pub(crate) interval: Period,
    /// Server: listen on this address only [default: 0.0.0.0]
    #[arg(short = 'B', long, value_name = "ADDRESS", conflicts_with = "client")]
    pub(crate) bind: Option<IpAddr>,
    /// Server: leave after one test, with its result as exit code
    #[arg(short = '1', long, conflicts_with = "client")]
    pub(crate) one_off: bool,
    #[command(flatten)]
    pub(crate) test: Test,
}

/// What a client says of its test.
#[derive(Debug, Arguments)]
pub(crate) struct Test {
    /// How long to measure [default: 10]
    #[arg(short, long, value_name = "SECONDS", conflicts_with_all = ["bytes", "server"])]
    #[arg(value_parser = clap::value_parser!(u32).range(1..=DAY))]
    pub(crate) time: Option<u32>,
    /// Measure until so much has arrived; K, M, G: 2^10, 2^20, 2^30
    #[arg(short = 'n', long, value_name = "BYTES[KMG]", value_parser = bytes, conflicts_with = "server")]
    pub(crate) bytes: Option<u64>,
    /// Streams at the same time
    #[arg(short = 'P', long, value_name = "N", default_value_t = 1, conflicts_with = "server")]
    #[arg(value_parser = clap::value_parser!(u8).range(1..=i64::from(MAX_STREAMS)))]
    pub(crate) parallel: u8,
    /// The server sends
    #[arg(short = 'R', long, conflicts_with = "server")]
    pub(crate) reverse: bool,
    /// Print one JSON object, with iperf3's keys
    #[arg(short = 'J', long, conflicts_with = "server")]
    pub(crate) json: bool,
    /// Bytes handed over at once
    #[arg(short, long, value_name = "BYTES[KMG]", default_value = "128K", value_parser = length)]
    #[arg(conflicts_with = "server")]
    pub(crate) length: u32,
    /// tpa, tcp or tcp:CONGESTION-CONTROL
    #[arg(long, value_name = "TRANSPORT", default_value = "tpa", conflicts_with = "server")]
    pub(crate) transport: Transport,
    /// TPA's cwndmax: segments in flight; over several wireless hops more than 6 cost goodput [default: 6]
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u8).range(1..=12), conflicts_with = "server")]
    pub(crate) window: Option<u8>,
    /// Let so much pass before anything counts
    #[arg(short = 'O', long, value_name = "SECONDS", default_value_t = 0, conflicts_with_all = ["bytes", "server"])]
    #[arg(value_parser = clap::value_parser!(u32).range(..=DAY))]
    pub(crate) omit: u32,
}

/// Of reports; `None`: none.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Period(pub(crate) Option<Duration>);

impl FromStr for Period {
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

fn length(text: &str) -> Result<u32, String> {
    let length = bytes(text)?.try_into().ok().filter(|&length| length <= MAX_LENGTH);
    length.ok_or_else(|| "at most 1M".into())
}

/// `1`, `64K`, `10M`, `2G`, as iperf3 reads them.
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
    fn an_interval_of_0_is_none() {
        assert_eq!("0".parse(), Ok(Period(None)));
        assert_eq!("0.5".parse(), Ok(Period(Some(Duration::from_millis(500)))));
        for wrong in ["", "-1", "0.01", "3601", "nan", "inf", "1s"] {
            assert!(wrong.parse::<Period>().is_err(), "{wrong}");
        }
    }
}
