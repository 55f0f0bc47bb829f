//! Options of `hopline send` and `hopline recv`.

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

If the connection breaks, hopline reconnects and resumes the file. To resume after a kill, repeat the command. \
hopline retries while the receiver is stopped or unreachable, its name does not resolve or its disk is full, until \
--patience has passed without progress. If a file is refused, the remaining files are still sent. The receiver \
checks each file by BLAKE3 before storing it under its name.
Exit codes: 0 done, 1 failed or refused, 2 wrong usage or input, 130 interrupted.";

pub(super) const RECV_EXAMPLES: &str = "\
Examples:
  hopline recv -o incoming --known-peers senders
  hopline recv -o incoming --psk key --once --force
  hopline recv -o incoming --anyone --quota 10G --expire 7
  hopline recv -o incoming --clean

--known-peers, --psk or --anyone is required and selects the permitted senders. From a sender with an unknown key, \
unusual names such as those that begin with a dot are refused, and files lose execute permission. Existing files are \
replaced only with --force, and nothing is written outside the directory. SIGTERM and Ctrl-C stop the receiver. It \
notifies the senders, which retry until it runs again.
Exit codes: 0 done, or stopped by SIGTERM, 1 failed or refused, 2 wrong usage, 130 stopped by Ctrl-C during a \
transfer.";

/// Default of `--silence`, seconds, as in TPA.
const DEFAULT_IDLE_TIMEOUT: u32 = 120;
const DEFAULT_CONVERSATIONS: NonZeroU16 = NonZeroU16::new(64).expect("it is above zero");

/// Output of a transfer.
#[derive(Clone, Copy, Debug, Arguments)]
pub(crate) struct OutputArgs {
    /// Print events as JSON lines on stdout: state (every second), begun, deferred, ended, failed, summary
    #[arg(long)]
    pub(crate) json: bool,
    /// Print no progress on stderr
    #[arg(short, long)]
    pub(crate) quiet: bool,
}

/// Transport protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Transport {
    /// Encrypted and authenticated by the keys of both ends; for paths of any rate
    TpaWide,
    /// For wireless multi-hop paths, with few packets in flight; not encrypted: attackers on the path can read and change data
    Tpa,
}

/// Transport protocol, own key and keys of peers.
#[derive(Debug, Arguments)]
pub(crate) struct IdentityArgs {
    /// Transport protocol; both ends must have the same
    #[arg(long, value_name = "PROTOCOL", default_value = "tpa-wide")]
    pub(crate) transport: Transport,
    /// File with the own private key [default: key in hopline's settings directory, generated if missing]
    #[arg(long, value_name = "FILE", conflicts_with = "psk")]
    pub(crate) key: Option<PathBuf>,
    /// File with a pre-shared key, in place of key pairs
    #[arg(long, value_name = "FILE")]
    pub(crate) psk: Option<PathBuf>,
    /// File of permitted peers and their public keys [default of send: known_peers in hopline's settings directory]
    #[arg(long, value_name = "FILE", conflicts_with = "psk")]
    pub(crate) known_peers: Option<PathBuf>,
}

#[derive(Debug, Arguments)]
pub(crate) struct Send {
    /// File or directory; - for standard input
    #[arg(value_name = "FILE")]
    pub(crate) source: PathBuf,
    /// Host name or address of the receiver
    #[arg(value_name = "HOST[:PORT]")]
    pub(crate) peer: Peer,
    /// Name under which the receiver stores the file or directory [default: its own name]
    #[arg(long, value_name = "NAME", required_if_eq("source", "-"))]
    pub(crate) name: Option<String>,
    /// Give up after this many seconds without progress
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    #[arg(value_parser = whole::<u32>(0..=u32::MAX.into()), allow_negative_numbers = true)]
    pub(crate) patience: u32,
    /// Reconnect after this many seconds without a packet from the receiver; limited to half of --patience
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_IDLE_TIMEOUT, value_parser = whole::<u32>(1..=86_400), allow_negative_numbers = true)]
    pub(crate) silence: u32,
    /// TPA's cwndmax: maximum number of segments in flight; above 6, goodput falls over several wireless hops
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = whole::<u8>(1..=12), allow_negative_numbers = true)]
    pub(crate) window: u8,
    #[command(flatten)]
    pub(crate) identity: IdentityArgs,
    /// Accept a receiver that is not in the known peers if its key has this fingerprint
    #[arg(long, value_name = "FINGERPRINT", conflicts_with_all = ["psk", "trust_on_first_use"])]
    pub(crate) trust: Option<Fingerprint>,
    /// Accept a receiver that is not in the known peers, and add it
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
    /// Accept files of any sender; senders that are not in --known-peers have fewer permissions
    #[arg(long, conflicts_with = "psk")]
    pub(crate) anyone: bool,
    /// Replace existing files
    #[arg(long)]
    pub(crate) force: bool,
    /// Maximum number of simultaneous senders, at most half of them from one host or with one key; further ones retry
    #[arg(long, value_name = "N", default_value_t = DEFAULT_CONVERSATIONS)]
    #[arg(value_parser = count, allow_negative_numbers = true)]
    pub(crate) conversations: NonZeroU16,
    /// Close a connection after this many seconds without a packet from the sender; received data are kept
    #[arg(long, value_name = "SECONDS", default_value_t = DEFAULT_IDLE_TIMEOUT, value_parser = whole::<u32>(1..=86_400), allow_negative_numbers = true)]
    pub(crate) silence: u32,
    /// Maximum number of bytes stored: all partial files in DIR, and complete files received since the start
    #[arg(long, value_name = "BYTES[KMG]", value_parser = bytes)]
    pub(crate) quota: Option<u64>,
    /// Remove a partial file (of an unfinished transfer) this many days after the last write to it; 0: never
    #[arg(long, value_name = "DAYS", default_value_t = 30)]
    #[arg(value_parser = whole::<u32>(0..=u32::MAX.into()), allow_negative_numbers = true)]
    pub(crate) expire: u32,
    /// List and remove the partial files in DIR that are not being received, and exit
    #[arg(long)]
    pub(crate) clean: bool,
    /// Exit after one sender, with the result of its transfer as exit code
    #[arg(long)]
    pub(crate) once: bool,
    /// TPA's cwndmax for packets of the receiver; data are limited by the sender's --window
    #[arg(long, value_name = "N", default_value_t = 6, value_parser = whole::<u8>(1..=12), allow_negative_numbers = true)]
    pub(crate) window: u8,
    #[command(flatten)]
    pub(crate) identity: IdentityArgs,
    #[command(flatten)]
    pub(crate) show: OutputArgs,
}
