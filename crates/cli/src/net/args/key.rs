//! Arguments of `hopline key`.

use clap::{Args as Arguments, Subcommand};
use std::path::PathBuf;

pub(super) const EXAMPLES: &str = "\
Examples:
  hopline key new
  hopline key show
  hopline key new drone-3.key
  hopline key show drone-3.key
  hopline key peers

Each machine has a key of its own. Its private half stays in a file that only its owner can read; its public \
half is given to others, who compare the fingerprint with its owner and put it into their file of known peers: \
in each line a name and a public key. Without FILE they are key and known_peers in $XDG_CONFIG_HOME/hopline, or \
else in ~/.config/hopline.
Exit codes: 0 done, 1 failed, 2 wrong usage or wrong input.";

/// Create and show the keys by which machines authenticate each other
#[derive(Debug, Arguments)]
pub(crate) struct Key {
    #[command(subcommand)]
    pub(crate) command: KeyCommand,
}

#[derive(Debug, Subcommand)]
pub(crate) enum KeyCommand {
    /// Make a private key, in a file that only you can read, and print its public half and fingerprint
    New(KeyFile),
    /// Print the public half and the fingerprint of a private key, or the fingerprint of a shared one
    Show(KeyFile),
    /// Check a file of known peers, and print their names and fingerprints
    Peers(PeersFile),
}

/// Key file.
#[derive(Debug, Arguments)]
pub(crate) struct KeyFile {
    /// The file [default: key in the folder of hopline's settings]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}

/// File of known peers.
#[derive(Debug, Arguments)]
pub(crate) struct PeersFile {
    /// The file [default: known_peers in the folder of hopline's settings]
    #[arg(value_name = "FILE")]
    pub(crate) file: Option<PathBuf>,
}
