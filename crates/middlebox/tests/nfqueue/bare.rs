//! A machine that everything passes.

use bytes::Bytes;
use hopline_core::{Instant, Payload, Seq32};
use hopline_proxy::{Connection, LastHopProgress, Packet, Pep, Transmit, Verdict};
use std::net::IpAddr;

/// It does nothing, and has seen how long packets to mobile hosts are.
#[derive(Debug, Default)]
pub(crate) struct PassAll {
    /// The longest packet to a mobile host, in bytes.
    pub(crate) max_len: usize,
}

impl Pep<Bytes> for PassAll {
    type Stats = ();

    fn handle_packet_to_mobile<P: Payload>(
        &mut self,
        _now: Instant,
        _packet: Packet<'_, P>,
        keep: impl FnOnce() -> Bytes,
    ) -> Verdict {
        self.max_len = self.max_len.max(keep().len());
        Verdict::Forward
    }

    fn handle_packet_from_mobile<P: Payload>(&mut self, _now: Instant, _packet: Packet<'_, P>) -> Verdict {
        Verdict::Forward
    }

    fn handle_progress(
        &mut self,
        _now: Instant,
        _connection: Connection,
        _seq: Seq32,
        _way: LastHopProgress,
    ) {
    }

    fn handle_departure(&mut self, _mobile: IpAddr) {}

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
