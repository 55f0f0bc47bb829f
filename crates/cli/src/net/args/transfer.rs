//! `send` and `recv`.

use super::bench::bytes;
use super::peer::Peer;
use crate::args::number::{count, whole};
use clap::{Args as Arguments, ValueEnum};
use hopline_secure::Fingerprint;
use std::net::IpAddr;
use std::num::NonZeroU16;
use std::path::PathBuf;

pub(super) const SEND_EXAMPLES: &str = "\
Examples:
  hopline send video.mp4 192.168.4.7 --trust-on-first-use
  hopline send logs/ drone-3:7172 --patience 3600
  tar c data | hopline send - base --name data.tar

A connection that breaks is made again and goes on where it stopped; so does the same command given again, at \
once, whatever became of the first. A receiver that is stopped or gone, a name without an address and a disk that \
is full are waited for, as long as --patience lasts; what is refused keeps nothing else from being \
sent. Every file is checked by BLAKE3 at the other end before it takes its place.
Exit codes: 0 done, 1 failed or refused, 2 wrong usage or input, 130 interrupted.";

pub(super) const RECV_EXAMPLES: &str = "\
Examples:
  hopline recv -o incoming --known-peers senders
  hopline recv -o incoming --psk key --once --force
  hopline recv -o incoming --anyone --quota 10G --expire 7
  hopline recv -o incoming --clean

--known-peers, --psk or --anyone says which senders may send. A sender whose key is not known sends no odd names, \
such as those that begin with a dot, and its files lose execute permission. Nothing is replaced without --force, and nothing is written \
outside the directory. SIGTERM and Ctrl-C stop it: senders are told, and wait for it to be started again.
Exit codes: 0 done, or stopped by SIGTERM, 1 failed or refused, 2 wrong usage, 130 stopped by Ctrl-C while something \
arrived.";

/// TPA's default silence limit, seconds.
const DEFAULT_IDLE_TIMEOUT: u32 = 120;
const DEFAULT_CONVERSATIONS: NonZeroU16 = NonZeroU16::new(64).expect("it is above zero");

/// Output of a transfer.
#[derive(Clone, Copy, Debug, Arguments)]
pub(crate) struct OutputArgs {
    /// Print JSON lines on stdout: state every second, begun, deferred, ended, failed, summary
    #[arg(long)]
    pub(crate) json: bool,
    /// No progress on stderr
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// Encrypted, both ends known to each other by keys; for paths of any speed
    TpaWide,
    /// Few packets in flight, for wireless hops; not encrypted: an attacker on the path may read and change everything
    Tpa,
}

/// Transport protocol, and keys of both ends.
#[derive(Debug, Arguments)]
pub(crate) struct IdentityArgs {
    /// Transport protocol; both ends must have the same
    #[arg(long, value_name = "PROTOCOL", default_value = "tpa-wide")]
    pub(crate) transport: Transport,
    /// Own private key [default: key in the folder of hopline's settings, made if it is not there]
    #[arg(long, value_name = "FILE", conflicts_with = "psk")]
    pub(crate) key: Option<PathBuf>,
    /// Secret key that only both ends share
    #[arg(long, value_name = "FILE")]
    pub(crate) psk: Option<PathBuf>,
    /// Peers and their public keys [default of send: known_peers in the folder of hopline's settings]
    #[arg(long, value_name = "FILE", conflicts_with = "psk")]
    pub(crate) known_peers: Option<PathBuf>,
}

#[derive(Debug, Arguments)]
pub(crate) struct Send {
    /// File or directory; - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) source: PathBuf,
    /// Receiver
    #[arg(value_name = "HOST[:PORT]")]
    pub(crate) peer: Peer,
    /// Name of the file or directory at the receiver
    #[arg(long, value_name = "NAME", required_if_eq("source", "-"))]
    pub(crate) name: Option<String>,
    /// Seconds without progress after which no further attempt is made
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    #[arg(value_parser = whole::<u32>(0..=u32::MAX.into()), allow_negative_numbers = true)]
    pub(crate) patience: u32,
    /// Seconds of silence of the receiver before a new connection is made; at most half of --patience counts
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_IDLE_TIMEOUT, value_parser = whole::<u32>(1..=86_400), allow_negative_numbers = true)]
    pub(crate) silence: u32,
    /// TPA's cwndmax: segments in flight; over several wireless hops more than 6 cost goodput
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = whole::<u8>(1..=12), allow_negative_numbers = true)]
    pub(crate) window: u8,
    #[command(flatten)]
    pub(crate) identity: IdentityArgs,
    /// Send if the receiver has the key with this fingerprint
    #[arg(long, value_name = "FINGERPRINT", conflicts_with_all = ["psk", "trust_on_first_use"])]
    pub(crate) trust: Option<Fingerprint>,
    /// Accept a receiver that is not known, and add it to the known peers
    #[arg(long, conflicts_with = "psk")]
    pub(crate) trust_on_first_use: bool,
    #[command(flatten)]
    pub(crate) show: OutputArgs,
}

#[derive(Debug, Arguments)]
pub(crate) struct Recv {
    /// Directory for received files; created if it does not exist
    #[arg(short, long, value_name = "DIR", default_value = "hopline-incoming")]
    pub(crate) output: PathBuf,
    /// UDP port
    #[arg(short, long, value_name = "PORT", default_value_t = hopline_wire::tpa::PORT)]
    #[arg(value_parser = whole::<u16>(0..=65_535), allow_negative_numbers = true)]
    pub(crate) port: u16,
    /// Listen on this address only [default: all, of IPv4 and IPv6]
    #[arg(long, value_name = "ADDRESS")]
    pub(crate) bind: Option<IpAddr>,
    /// Accept files of any sender; those in the file of --known-peers count as known
    #[arg(long, conflicts_with = "psk")]
    pub(crate) anyone: bool,
    /// Replace existing files
    #[arg(long)]
    pub(crate) force: bool,
    /// Senders served at the same time, half of them at one host or with one key; the rest have to try again
    #[arg(long, value_name = "N", default_value_t = DEFAULT_CONVERSATIONS)]
    #[arg(value_parser = count, allow_negative_numbers = true)]
    pub(crate) conversations: NonZeroU16,
    /// Seconds of silence of a sender before its connection is closed; what has arrived is kept
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_IDLE_TIMEOUT, value_parser = whole::<u32>(1..=86_400), allow_negative_numbers = true)]
    pub(crate) silence: u32,
    /// Limit of stored bytes: partial files, including existing ones, and all files stored from now on
    #[arg(long, value_name = "BYTES[KMG]", value_parser = bytes)]
    pub(crate) quota: Option<u64>,
    /// Remove partial files without a write for this long; 0: never
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    #[arg(value_parser = whole::<u32>(0..=u32::MAX.into()), allow_negative_numbers = true)]
    pub(crate) expire: u32,
    /// List and remove the partial files in DIR that are not being received, and leave
    #[arg(long)]
    pub(crate) clean: bool,
    /// Leave after one conversation, with its result as exit code
    #[arg(long)]
    pub(crate) once: bool,
    /// TPA's cwndmax for replies; that of the sender applies to its data
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = whole::<u8>(1..=12), allow_negative_numbers = true)]
    pub(crate) window: u8,
    #[command(flatten)]
    pub(crate) identity: IdentityArgs,
    #[command(flatten)]
    pub(crate) show: OutputArgs,
}
