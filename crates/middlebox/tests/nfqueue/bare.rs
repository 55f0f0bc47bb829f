//! A machine that everything passes.

use bytes::Bytes;
use hopline_core::{Instant, Payload, Seq32};
use hopline_proxy::{Connection, Filter, OnTheWay, Packet, Transmit, Verdict};
use std::net::IpAddr;

/// It does nothing, and has seen how long packets to mobile hosts are.
#[derive(Debug, Default)]
pub(crate) struct Bare {
    /// The longest packet to a mobile host, in bytes.
    pub(crate) longest: usize,
}

impl Filter<Bytes> for Bare {
    type Stats = ();

    fn pass_to_mobile<P: Payload>(
        &mut self,
        _now: Instant,
        _packet: Packet<'_, P>,
        keep: impl FnOnce() -> Bytes,
    ) -> Verdict {
        self.longest = self.longest.max(keep().len());
        Verdict::Forward
    }

    fn pass_from_mobile<P: Payload>(&mut self, _now: Instant, _packet: Packet<'_, P>) -> Verdict {
        Verdict::Forward
    }

    fn note(&mut self, _now: Instant, _connection: Connection, _seq: Seq32, _way: OnTheWay) {}

    fn forget_mobile(&mut self, _mobile: IpAddr) {}

    fn handle_timeout(&mut self, _now: Instant) {}

    fn poll_transmit(&mut self) -> Option<Transmit<Bytes>> {
        None
    }

    fn poll_timeout(&self) -> Option<Instant> {
        None
    }

    fn stats(&self) {}

    fn connections(&self) -> usize {
        0
    }
}
