//! Loss recovery of a tunnel.

use crate::arq;
use crate::dproxy::opaque;

/// Loss recovery of a tunnel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RecoveryScheme {
    /// Missing packets are requested ([`opaque`]).
    Nack(opaque::Config),
    /// Each frame is acknowledged ([`arq`]). Parity is never sent, whatever the configuration says.
    Arq(arq::Config),
}
