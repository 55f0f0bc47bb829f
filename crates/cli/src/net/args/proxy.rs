//! Arguments of `hopline proxy`.

use clap::{Args as Arguments, Subcommand};
use std::net::Ipv4Addr;
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  hopline proxy check proxy.toml
  hopline proxy setup proxy.toml --dry-run
  sudo hopline proxy run proxy.toml
  hopline proxy status
  hopline proxy status --follow
  hopline proxy top
  hopline proxy host-key cells.key 10.9.0.7 > host-7.key

A file has a table [[proxy]] for each: docs/proxy.md, and `hopline schema proxy` for editors. `run` sets up \
what it needs and takes it back when it ends, or is killed; SIGHUP has it read its file again without losing a \
connection.
Exit codes: 0 done, 1 failed while it ran, 2 wrong usage or wrong input: nothing was set up.";

/// Run Snoop, split connections, D-Proxy, gateways and agents on real packets
#[derive(Debug, Arguments)]
pub(crate) struct Proxy {
    #[command(subcommand)]
    pub(crate) command: ProxyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProxyCommand {
    /// Check a file of proxies, and change nothing
    Check(ProxyFile),
    /// Make the rules that a file needs, without running it
    Setup(ProxySetup),
    /// Remove the rules that were made
    Undo(ProxyUndo),
    /// Run the proxies of a file until SIGTERM or Ctrl-C
    Run(ProxyFile),
    /// Print the status of a running daemon
    Status(ProxyStatus),
    /// Show the rates of each proxy of a daemon, every second
    Top(ProxyTop),
    /// Print the key of a mobile host, made from the key of its network
    HostKey(ProxyHostKey),
    /// Remove the rules of a daemon when standard input ends
    #[command(hide = true)]
    Keep(ProxyKeep),
}

/// Configuration file of proxies.
#[derive(Debug, Arguments)]
pub(crate) struct ProxyFile {
    /// The file (TOML)
    #[arg(value_name = "FILE")]
    pub(crate) file: PathBuf,
}

#[derive(Debug, Arguments)]
pub(crate) struct ProxySetup {
    #[command(flatten)]
    pub(crate) file: ProxyFile,
    /// Print the commands, and change nothing
    #[arg(long)]
    pub(crate) dry_run: bool,
}

#[derive(Debug, Arguments)]
pub(crate) struct ProxyUndo {
    #[command(flatten)]
    pub(crate) file: ProxyFile,
    /// Remove the TUN interfaces of tunnels too, which otherwise stay for the next daemon
    #[arg(long)]
    pub(crate) tunnels: bool,
}

/// Daemon to query.
#[derive(Debug, Arguments)]
pub(crate) struct DaemonArgs {
    /// Configuration file of the daemon, for its name and folder [default: the daemon called hopline, or the only one, in
    /// /run/hopline]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
    /// Name of the daemon, in /run/hopline; for users that may not read its file
    #[arg(long, value_name = "NAME", conflicts_with = "file")]
    pub(crate) name: Option<String>,
}

#[derive(Debug, Arguments)]
pub(crate) struct ProxyTop {
    #[command(flatten)]
    pub(crate) asked: DaemonArgs,
    /// Measure for a second, print it and end, as without a terminal
    #[arg(long)]
    pub(crate) once: bool,
    /// Print a JSON object in a line each second, until Ctrl-C
    #[arg(long)]
    pub(crate) json: bool,
}

#[derive(Debug, Arguments)]
pub(crate) struct ProxyStatus {
    #[command(flatten)]
    pub(crate) asked: DaemonArgs,
    /// Print one JSON object instead of a table
    #[arg(long)]
    pub(crate) json: bool,
    /// Show it again every second, with rates, until Ctrl-C
    #[arg(short, long, conflicts_with = "json")]
    pub(crate) follow: bool,
}

#[derive(Debug, Arguments)]
pub(crate) struct ProxyHostKey {
    /// The file with the network's key, which home agents and base stations have
    #[arg(value_name = "FILE")]
    pub(crate) network: String,
    /// The home address of the mobile host
    #[arg(value_name = "ADDRESS")]
    pub(crate) home: Ipv4Addr,
}

#[derive(Debug, Arguments)]
pub(crate) struct ProxyKeep {
    /// Name of the daemon
    pub(crate) name: String,
    /// Folder of the daemon
    pub(crate) folder: PathBuf,
}
