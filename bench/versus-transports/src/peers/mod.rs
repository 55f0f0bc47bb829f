//! The compared transports. To add one, add a file here and a line below.

mod block_on;
mod kcp;
mod quic;
mod streams;

use crate::peer::Peer;
use versus::Kernel;

/// Returns all transports, in the order of the tables.
pub(crate) fn all() -> Vec<Box<dyn Peer>> {
    vec![
        Box::new(Kernel::new("reno")),
        Box::new(Kernel::new("cubic")),
        Box::new(Kernel::new("bbr")),
        Box::new(quic::Quinn::new(quic::Control::Cubic)),
        Box::new(quic::Quinn::new(quic::Control::Bbr)),
        Box::new(kcp::Fast),
        Box::new(streams::Over::tpa(2)),
        Box::new(streams::Over::tpa(3)),
        Box::new(streams::Over::tpa(12)),
        Box::new(streams::Over::wide()),
    ]
}

pub(crate) use versus::kernel::default_congestion_control;
