//! Arguments of the commands that use real sockets.

mod bench;
mod emulate;
mod key;
mod link;
mod peer;
mod proxy;
mod tcp;
mod transfer;

pub(super) use bench::{Bench, BitRate, Test, Unit};
pub(crate) use emulate::SweepOverKernels;
pub(super) use emulate::{Emulate, Exec};
pub(super) use key::{Key, KeyCommand};
pub(super) use link::{Link, Rate, Share, Time};
pub(super) use peer::Peer;
pub(super) use proxy::{DaemonArgs, Proxy, ProxyCommand, ProxySetup, ProxyStatus, ProxyTop, ProxyUndo};
pub(super) use tcp::Tcp;
pub(super) use transfer::{IdentityArgs, OutputArgs, Recv, Send, Transport};

use clap::Subcommand;

/// A command that uses real sockets.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    /// Send a file, a directory or standard input to `hopline recv`
    #[command(after_help = transfer::SEND_EXAMPLES)]
    Send(Send),
    /// Receive files of `hopline send`
    #[command(after_help = transfer::RECV_EXAMPLES)]
    Recv(Recv),
    /// Measure throughput over TPA or the kernel's TCP, with iperf3's options
    #[command(after_help = bench::EXAMPLES)]
    Bench(Box<Bench>),
    /// Run a command over an emulated link between two hosts on this machine
    #[command(after_help = link::EXAMPLES)]
    Link(Box<Link>),
    /// Run programs at the nodes of a scenario, over its simulated radios, in real time
    #[command(after_help = emulate::EXAMPLES)]
    Emulate(Emulate),
    /// Run a command at a node of `hopline emulate`
    #[command(after_help = emulate::EXEC_EXAMPLES)]
    Exec(Exec),
    /// Make a run of a sweep over Linux kernels, as standard input says
    #[command(name = hopline_lab::engine::SUBCOMMAND, hide = true)]
    KernelRun,
    /// Run Snoop, split connections, D-Proxy, gateways and agents on real packets
    #[command(after_help = proxy::EXAMPLES)]
    Proxy(Proxy),
    /// Run a TCP host stack of our own behind a TUN interface: TCP-DOOR, BBR and others on real links
    #[command(after_help = tcp::EXAMPLES)]
    Tcp(Box<Tcp>),
    /// Create and show the keys by which machines authenticate each other
    #[command(after_help = key::EXAMPLES)]
    Key(Key),
}
