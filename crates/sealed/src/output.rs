//! Next output of a connection.

use crate::conn::{Conn, Owed};
use crate::event::Path;
use crate::link::{Link, Open};
use bytes::Bytes;
use hopline_core::{Instant, Machine};
use hopline_secure::Opener;
use hopline_transport::wide::Endpoint;
use hopline_wire::ipv4::Ecn;
use hopline_wire::wide::{Content, Control, Packet};

/// A datagram that was appended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Appended {
    pub(crate) path: Path,
    pub(crate) len: usize,
    pub(crate) ecn: Ecn,
}

impl Conn {
    /// Appends the next datagram. Messages of the handshake come first, then frames about paths, then packets.
    pub(crate) fn next_datagram(&mut self, now: Instant, buffer: &mut Vec<u8>) -> Option<Appended> {
        if let Some(message) = self.link.opener().and_then(Opener::poll_transmit) {
            buffer.extend_from_slice(&message);
            return Some(Appended { path: self.path, len: message.len(), ecn: Ecn::NotCapable });
        }
        let Link::Open(open) = &mut self.link else { return None };
        let appended = next_sealed(now, open, &mut self.endpoint, (self.path, &mut self.owed), buffer);
        if let Some(Err(NumbersUsedUp)) = appended {
            self.endpoint.abort(now);
        }
        let appended = appended?.ok()?;
        Some(Appended { path: self.leaving(appended.path), ..appended })
    }
}

/// The connection has sent 2⁶² datagrams.
struct NumbersUsedUp;

fn next_sealed(
    now: Instant,
    open: &mut Open,
    endpoint: &mut Endpoint<Bytes>,
    (path, owed): (Path, &mut Owed),
    buffer: &mut Vec<u8>,
) -> Option<Result<Appended, NumbersUsedUp>> {
    open.rekey_in_time(now, endpoint);
    if let Some((to, frame)) = open.paths.poll_control(now) {
        let number = endpoint.skip_number();
        let path = open.path_to(to);
        let appended = seal(open, number, &Content::Path(frame), (path, Ecn::NotCapable), buffer);
        if let Ok(Appended { len, .. }) = appended {
            open.paths.sent(to, len);
        }
        return Some(appended);
    }
    let packet = match endpoint.poll_transmit(now) {
        Some(packet) => packet,
        None => match core::mem::replace(owed, Owed::Nothing) {
            Owed::Nothing => return None,
            Owed::Proof => {
                let number = endpoint.skip_number();
                return Some(seal(open, number, &Content::Nothing, (path, Ecn::NotCapable), buffer));
            }
            Owed::End => {
                Packet { number: endpoint.skip_number(), control: Control::Reset, ..Packet::default() }
            }
        },
    };
    *owed = Owed::Nothing;
    let (number, ecn) = (packet.number, packet.ecn);
    Some(seal(open, number, &Content::Packet(packet), (path, ecn), buffer))
}

fn seal(
    open: &mut Open,
    number: u64,
    content: &Content<Bytes>,
    (path, ecn): (Path, Ecn),
    buffer: &mut Vec<u8>,
) -> Result<Appended, NumbersUsedUp> {
    let (sealed, len) = open.seal(content, buffer).ok_or(NumbersUsedUp)?;
    debug_assert_eq!(sealed, number, "the transport's numbers are the encryption's");
    Ok(Appended { path, len, ecn })
}
