//! `send` and `recv`.

use clap::Args as Arguments;
use std::net::IpAddr;
use std::path::PathBuf;

pub(super) const SEND_EXAMPLES: &str = "\
Examples:
  hopline send video.mp4 192.168.4.7
  hopline send logs/ drone-3:7172 --patience 3600
  tar c data | hopline send - base --name data.tar

A connection that breaks is made again and goes on where it stopped; so does the same command given again. Every file
is checked by BLAKE3 at the other end before it takes its place.
Exit codes: 0 done, 1 failed or refused, 2 wrong usage or input, 130 interrupted.";

pub(super) const RECV_EXAMPLES: &str = "\
Examples:
  hopline recv -o incoming
  hopline recv -o incoming --once --force

Anyone who reaches the port may send; nothing is replaced without --force, and nothing is written outside the directory.
Exit codes: 0 done, 1 failed or refused, 2 wrong usage, 130 interrupted.";

/// How a transfer is shown.
#[derive(Clone, Copy, Debug, Arguments)]
pub(crate) struct Show {
    /// Print JSON lines on stdout: begun, ended, summary
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress on stderr
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

#[derive(Debug, Arguments)]
pub(crate) struct Send {
    /// File or directory; - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) source: PathBuf,
    /// Who receives
    #[arg(value_name = "HOST[:PORT]")]
    pub(crate) peer: String,
    /// What it is called there
    #[arg(long, value_name = "NAME", required_if_eq("source", "-"))]
    pub(crate) name: Option<String>,
    /// How long to try again after the connection broke or could not be made
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    pub(crate) patience: u32,
    /// TPA's cwndmax: segments in flight; over several wireless hops more than 6 cost goodput
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u8).range(1..=12))]
    pub(crate) window: u8,
    #[command(flatten)]
    pub(crate) show: Show,
}

#[derive(Debug, Arguments)]
pub(crate) struct Recv {
    /// Directory where files go; made if it is not there
    #[arg(short, long, value_name = "DIR", default_value = ".")]
    pub(crate) output: PathBuf,
    /// UDP port
    #[arg(short, long, value_name = "PORT", default_value_t = hopline_wire::tpa::PORT)]
    pub(crate) port: u16,
    /// Listen on this address only
    #[arg(long, value_name = "ADDRESS", default_value = "0.0.0.0")]
    pub(crate) bind: IpAddr,
    /// Replace files that are there
    #[arg(long)]
    pub(crate) force: bool,
    /// Leave after one conversation, with its result as exit code
    #[arg(long)]
    pub(crate) once: bool,
    /// TPA's cwndmax for what goes back; the sender's own decides on its data
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = clap::value_parser!(u8).range(1..=12))]
    pub(crate) window: u8,
    #[command(flatten)]
    pub(crate) show: Show,
}
