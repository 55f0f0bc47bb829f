//! Output of a connection.

use crate::conn::{Conn, PendingDatagram};
use crate::encryption::{Encryption, Open};
use crate::event::Path;
use bytes::Bytes;
use hopline_core::{Instant, StateMachine};
use hopline_secure::Initiator;
use hopline_transport::wide::Endpoint;
use hopline_wire::ipv4::Ecn;
use hopline_wire::wide::{Control, DatagramContent, Packet};

/// A datagram that was appended to the buffer.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Appended {
    pub(crate) path: Path,
    pub(crate) len: usize,
    pub(crate) ecn: Ecn,
}

impl Conn {
    /// Appends the next datagram to `buffer`. Messages of the handshake come first, then frames of path validation, then packets
    /// of the transport.
    pub(crate) fn next_datagram(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Appended> {
        if let Some(message) = self.encryption.initiator().and_then(Initiator::poll_transmit) {
            buffer.extend_from_slice(&message);
            return Some(Appended { path: self.path, len: message.len(), ecn: Ecn::NotCapable });
        }
        let Encryption::Open(open) = &mut self.encryption else { return None };
        let appended =
            next_sealed(now, open, &mut self.endpoint, (self.path, &mut self.pending_datagram), buffer);
        if let Some(Err(NumbersExhausted)) = appended {
            self.endpoint.abort(now);
        }
        let appended = appended?.ok()?;
        Some(Appended { path: self.outgoing_path(appended.path), ..appended })
    }
}

/// Error: the connection has sent 2⁶² datagrams, so that no number is left.
struct NumbersExhausted;

fn next_sealed(
    now: Instant,
    open: &mut Open,
    endpoint: &mut Endpoint<Bytes>,
    (path, owed): (Path, &mut PendingDatagram),
    buffer: &mut Vec<u8>,
) -> Option<Result<Appended, NumbersExhausted>> {
    open.update_key_if_due(now, endpoint);
    if let Some((to, frame)) = open.paths.poll_control(now) {
        let number = endpoint.skip_number();
        let path = open.path_to(to);
        let appended = seal(open, number, &DatagramContent::Path(frame), (path, Ecn::NotCapable), buffer);
        if let Ok(Appended { len, .. }) = appended {
            open.paths.record_sent(to, len);
        }
        return Some(appended);
    }
    let packet = match endpoint.poll_transmit(now) {
        Some(packet) => packet,
        None => match core::mem::replace(owed, PendingDatagram::Nothing) {
            PendingDatagram::Nothing => return None,
            PendingDatagram::Confirmation => {
                let number = endpoint.skip_number();
                return Some(seal(open, number, &DatagramContent::Empty, (path, Ecn::NotCapable), buffer));
            }
            PendingDatagram::CloseNotice => {
                Packet { number: endpoint.skip_number(), control: Control::Reset, ..Packet::default() }
            }
        },
    };
    *owed = PendingDatagram::Nothing;
    let (number, ecn) = (packet.number, packet.ecn);
    Some(seal(open, number, &DatagramContent::Packet(packet), (path, ecn), buffer))
}

fn seal(
    open: &mut Open,
    number: u64,
    content: &DatagramContent<Bytes>,
    (path, ecn): (Path, Ecn),
    buffer: &mut Vec<u8>,
) -> Result<Appended, NumbersExhausted> {
    let (sealed, len) = open.seal(content, buffer).ok_or(NumbersExhausted)?;
    debug_assert_eq!(sealed, number, "the transport's numbers are the encryption's");
    Ok(Appended { path, len, ecn })
}
