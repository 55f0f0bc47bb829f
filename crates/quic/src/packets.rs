//! Packets of a datagram. They are not encrypted here, so that an endpoint reads what quinn does not tell a controller.

use crate::frames::{AckFrame, CONNECTION_ID_BYTES, Frame, Reader, TAG_BYTES};

/// Packet number space (RFC 9000 §12.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Space {
    Initial,
    Handshake,
    Data,
}

/// Packet of a datagram.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Packet<'a> {
    pub(crate) space: Space,
    /// Bytes, with header and tag.
    pub(crate) bytes: u32,
    /// Frames.
    payload: &'a [u8],
}

/// Returns the packets of a datagram (RFC 9000 §12.2), as far as it can be read.
pub(crate) const fn packets(datagram: &[u8]) -> Packets<'_> {
    Packets(datagram)
}

/// Iterator over the packets of a datagram.
#[derive(Debug)]
pub(crate) struct Packets<'a>(&'a [u8]);

impl<'a> Iterator for Packets<'a> {
    type Item = Packet<'a>;

    fn next(&mut self) -> Option<Packet<'a>> {
        let whole = self.0;
        let mut header = Reader(whole);
        let flags = *whole.first()?;
        let read = |header: &Reader<'_>| whole.len() - header.0.len();
        let (space, end) = if flags & 0x80 == 0 {
            // RFC 9000 §17.3.1: the packet extends to the end of the datagram.
            header.skip((1 + CONNECTION_ID_BYTES) as u64)?;
            (Space::Data, whole.len())
        } else {
            // RFC 9000 §17.2: flags, version, both connection IDs, then of Initial packets a token, and the length.
            let space = match flags & 0x30 {
                0x00 => Space::Initial,
                0x10 => Space::Data,
                0x20 => Space::Handshake,
                _ => return None,
            };
            header.skip(5)?;
            for _ in 0..2 {
                let length = header.byte()?;
                header.skip(length.into())?;
            }
            if space == Space::Initial {
                header.skip_counted()?;
            }
            let length = usize::try_from(header.integer()?).ok()?;
            (space, read(&header).checked_add(length)?)
        };
        let (packet, rest) = whole.split_at_checked(end)?;
        let start = read(&header) + usize::from(flags & 3) + 1;
        let payload = packet.get(start..packet.len().checked_sub(TAG_BYTES)?)?;
        self.0 = rest;
        Some(Packet { space, bytes: u32::try_from(packet.len()).ok()?, payload })
    }
}

impl Packet<'_> {
    /// Returns the bytes for which it counts as in flight at its sender: all, or none if it has ACK frames alone (RFC 9002 §2) or
    /// closes the connection.
    pub(crate) fn bytes_in_flight(&self) -> u32 {
        let mut bytes = 0;
        for frame in self.frames() {
            match frame {
                Frame::Ack(_) => {}
                Frame::ConnectionClose => return 0,
                Frame::Stream(_) | Frame::Other => bytes = self.bytes,
            }
        }
        bytes
    }

    /// Returns its ACK frame, if it has one.
    pub(crate) fn ack(&self) -> Option<AckFrame> {
        self.frames().find_map(|frame| match frame {
            Frame::Ack(ack) => Some(ack),
            Frame::Stream(_) | Frame::ConnectionClose | Frame::Other => None,
        })
    }

    fn frames(&self) -> impl Iterator<Item = Frame> {
        let mut reader = Reader(self.payload);
        std::iter::from_fn(move || if reader.0.is_empty() { None } else { reader.frame() })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(frames: &[u8]) -> Vec<u8> {
        [&[0x40][..], &[7; CONNECTION_ID_BYTES], &[9], frames, &[0xee; TAG_BYTES]].concat()
    }

    /// Handshake packet with connection IDs of one byte.
    fn handshake(frames: &[u8]) -> Vec<u8> {
        let length = 1 + frames.len() + TAG_BYTES;
        let header = [0xe0, 0, 0, 0, 1, 1, 5, 1, 6, 0x40, u8::try_from(length).expect("short"), 0];
        [&header[..], frames, &[0xee; TAG_BYTES]].concat()
    }

    #[test]
    fn packets_of_a_datagram_are_told_apart() {
        let first = handshake(&[0x06, 0x00, 0x02, 1, 2]);
        let datagram = [first.clone(), short(&[0x01])].concat();
        let seen: Vec<_> = packets(&datagram).map(|packet| (packet.space, packet.bytes as usize)).collect();
        assert_eq!(seen, [(Space::Handshake, first.len()), (Space::Data, datagram.len() - first.len())]);
    }

    #[test]
    fn acknowledgments_and_closes_are_not_in_flight() {
        let in_flight =
            |frames: &[u8]| packets(&short(frames)).map(|packet| packet.bytes_in_flight()).sum::<u32>();
        let ack = [0x02, 0x05, 0x00, 0x00, 0x00];
        assert_eq!(in_flight(&ack), 0);
        assert_eq!(in_flight(&[&ack[..], &[0x1d, 0x00, 0x00]].concat()), 0);
        let padded = [&ack[..], &[0x00]].concat();
        assert_eq!(in_flight(&padded) as usize, short(&padded).len());
        assert_ne!(in_flight(&[0x0a, 0x02, 0x01, 7]), 0);
    }

    #[test]
    fn an_ack_frame_tells_its_delay_and_marks() {
        let frames = [0x03, 0x05, 0x40, 0x99, 0x00, 0x00, 0x01, 0x02, 0x09, 0x01];
        let datagram = short(&frames);
        let ack = packets(&datagram).next().and_then(|packet| packet.ack());
        assert_eq!(ack, Some(AckFrame { delay: 0x99, ecn_ce: 9 }));
    }

    #[test]
    fn cut_datagrams_are_read_as_far_as_they_go() {
        let whole = [handshake(&[0x01]), short(&[0x01])].concat();
        for length in 0..whole.len() {
            assert!(packets(&whole[..length]).map(|packet| packet.bytes_in_flight()).sum::<u32>() < 200);
        }
    }
}
