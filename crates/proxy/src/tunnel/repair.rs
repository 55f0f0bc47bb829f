//! Loss recovery of a tunnel.

use crate::arq;
use crate::dproxy::opaque;

/// Loss recovery of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Repair {
    /// Missing packets are requested ([`opaque`]).
    Asking(opaque::Config),
    /// Each frame is acknowledged ([`arq`]). Parity is never sent, whatever the configuration says.
    Acknowledging(arq::Config),
}
