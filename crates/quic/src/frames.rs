//! Position of the stream data in a datagram, for statistics: packets are not encrypted here.

use std::ops::Range;

/// Bytes of the tag behind each packet.
pub(crate) const TAG_BYTES: usize = 16;
/// Bytes of each connection ID that an endpoint gives out.
pub(crate) const CONNECTION_ID_BYTES: usize = 8;

/// Stream data of a datagram.
#[derive(Debug, Default, PartialEq, Eq)]
pub(crate) struct StreamPieces {
    /// Number of bytes.
    pub(crate) bytes: u64,
    /// Part of the sender's stream from the first to the last of them.
    pub(crate) span: Range<u64>,
}

impl StreamPieces {
    fn add(&mut self, piece: Range<u64>) {
        if piece.is_empty() {
            return;
        }
        self.span = match self.bytes {
            0 => piece.clone(),
            _ => self.span.start.min(piece.start)..self.span.end.max(piece.end),
        };
        self.bytes += piece.end - piece.start;
    }
}

/// Returns the stream data that a datagram carries, as far as it can be read.
pub(crate) fn stream_pieces(datagram: &[u8]) -> StreamPieces {
    let mut pieces = StreamPieces::default();
    let payload = short_packet(datagram).unwrap_or_default();
    let mut reader = Reader(payload.split_at(payload.len().saturating_sub(TAG_BYTES)).0);
    while !reader.0.is_empty() {
        match reader.frame() {
            Some(Frame::Stream(piece)) => pieces.add(piece),
            Some(_) => {}
            None => break,
        }
    }
    pieces
}

/// Returns what follows the header of the packet with a short header (RFC 9000 §17.3), which is the last in a datagram.
fn short_packet(datagram: &[u8]) -> Option<&[u8]> {
    let mut rest = Reader(datagram);
    while rest.0.first()? & 0x80 != 0 {
        // RFC 9000 §17.2: flags, version, both connection IDs, then of Initial packets a token, and the length.
        let is_initial = rest.0.first()? & 0x30 == 0;
        rest.skip(5)?;
        for _ in 0..2 {
            let length = rest.byte()?;
            rest.skip(length.into())?;
        }
        if is_initial {
            rest.skip_counted()?;
        }
        rest.skip_counted()?;
    }
    let number_bytes = usize::from(rest.0.first()? & 3) + 1;
    rest.skip((1 + CONNECTION_ID_BYTES + number_bytes) as u64)?;
    Some(rest.0)
}

/// Frame (RFC 9000 §19), as far as this crate reads it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "s2n-quic"),
    allow(dead_code, reason = "its controllers alone read acknowledgments")
)]
pub(crate) enum Frame {
    /// Range of a STREAM frame.
    Stream(Range<u64>),
    Ack(AckFrame),
    ConnectionClose,
    Other,
}

/// Fields of an ACK frame (RFC 9000 §19.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[cfg_attr(
    not(feature = "s2n-quic"),
    allow(dead_code, reason = "its controllers alone read acknowledgments")
)]
pub(crate) struct AckFrame {
    /// ACK Delay, in units that the peer chooses.
    pub(crate) delay: u64,
    /// Packets received with the mark CE so far; 0 without counts.
    pub(crate) ecn_ce: u64,
}

pub(crate) struct Reader<'a>(pub(crate) &'a [u8]);

impl Reader<'_> {
    pub(crate) fn skip(&mut self, bytes: u64) -> Option<()> {
        self.0 = self.0.get(usize::try_from(bytes).ok()?..)?;
        Some(())
    }

    pub(crate) fn byte(&mut self) -> Option<u8> {
        let byte = *self.0.first()?;
        self.skip(1)?;
        Some(byte)
    }

    /// Reads an integer of variable length (RFC 9000 §16).
    pub(crate) fn integer(&mut self) -> Option<u64> {
        let first = *self.0.first()?;
        let bytes = self.0.get(..1 << (first >> 6))?;
        let value =
            bytes[1..].iter().fold(u64::from(first & 0x3f), |value, &byte| value << 8 | u64::from(byte));
        self.skip(bytes.len() as u64)?;
        Some(value)
    }

    fn skip_integers(&mut self, count: u64) -> Option<()> {
        (0..count).try_for_each(|_| self.integer().map(|_| ()))
    }

    /// Skips a length and so many bytes.
    pub(crate) fn skip_counted(&mut self) -> Option<()> {
        let bytes = self.integer()?;
        self.skip(bytes)
    }

    /// Reads a frame; `None` if the rest cannot be read.
    pub(crate) fn frame(&mut self) -> Option<Frame> {
        let kind = self.integer()?;
        match kind {
            // PADDING, PING, HANDSHAKE_DONE, IMMEDIATE_ACK.
            0x00 | 0x01 | 0x1e | 0x1f => {}
            // ACK, with counts of ECN marks if odd.
            0x02 | 0x03 => {
                self.skip_integers(1)?;
                let delay = self.integer()?;
                let ranges = self.integer()?;
                self.skip_integers(1)?;
                self.skip_integers(ranges.checked_mul(2)?)?;
                self.skip_integers(if kind == 0x03 { 2 } else { 0 })?;
                let ecn_ce = if kind == 0x03 { self.integer()? } else { 0 };
                return Some(Frame::Ack(AckFrame { delay, ecn_ce }));
            }
            // RESET_STREAM, STOP_SENDING.
            0x04 => self.skip_integers(3)?,
            0x05 => self.skip_integers(2)?,
            // CRYPTO, NEW_TOKEN.
            0x06 => {
                self.skip_integers(1)?;
                self.skip_counted()?;
            }
            0x07 => self.skip_counted()?,
            0x08..=0x0f => {
                self.skip_integers(1)?;
                let offset = if kind & 4 != 0 { self.integer()? } else { 0 };
                let length = if kind & 2 != 0 { self.integer()? } else { self.0.len() as u64 };
                self.skip(length)?;
                return Some(Frame::Stream(offset..offset.checked_add(length)?));
            }
            // Limits of flow control and of streams, and reports that one is reached.
            0x10 | 0x12..=0x14 | 0x16 | 0x17 | 0x19 => self.skip_integers(1)?,
            0x11 | 0x15 => self.skip_integers(2)?,
            // NEW_CONNECTION_ID, with its reset token.
            0x18 => {
                self.skip_integers(2)?;
                let length = self.byte()?;
                self.skip(u64::from(length) + 16)?;
            }
            // PATH_CHALLENGE, PATH_RESPONSE.
            0x1a | 0x1b => self.skip(8)?,
            // CONNECTION_CLOSE.
            0x1c | 0x1d => {
                self.skip_integers(if kind == 0x1c { 2 } else { 1 })?;
                self.skip_counted()?;
                return Some(Frame::ConnectionClose);
            }
            // ACK_FREQUENCY.
            0xaf => self.skip_integers(4)?,
            _ => return None,
        }
        Some(Frame::Other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn short(frames: &[u8]) -> Vec<u8> {
        // Packet number of two bytes.
        [&[0x41][..], &[7; CONNECTION_ID_BYTES], &[0, 9], frames, &[0xee; TAG_BYTES]].concat()
    }

    fn one(bytes: u64, span: Range<u64>) -> StreamPieces {
        StreamPieces { bytes, span }
    }

    #[test]
    fn a_stream_frame_is_found_behind_others() {
        let frames = [
            &[0x02, 0x40, 0x80, 0x00, 0x01, 0x00, 0x02, 0x03][..], // ACK of two ranges
            &[0x01],                                               // PING
            &[0x0c, 0x02, 0x50, 0x00],                             // STREAM at 4096, to the end
            &[0; 100],
        ]
        .concat();
        assert_eq!(stream_pieces(&short(&frames)), one(100, 4096..4196));
        let long = [&[0xc0, 0, 0, 0, 1, 1, 5, 1, 6, 0, 3, 9, 9, 9][..], &short(&frames)].concat();
        assert_eq!(stream_pieces(&long), one(100, 4096..4196), "behind an Initial packet");
    }

    #[test]
    fn a_datagram_without_data_has_no_pieces() {
        assert_eq!(stream_pieces(&short(&[0x01, 0x00, 0x00])), StreamPieces::default());
        let end_alone = short(&[0x0b, 0x02, 0x00]);
        assert_eq!(stream_pieces(&end_alone), StreamPieces::default());
    }

    #[test]
    fn several_pieces_are_added_up() {
        let frames = [0x0e, 0x02, 0x05, 0x02, 1, 2, 0x0e, 0x02, 0x20, 0x03, 1, 2, 3];
        assert_eq!(stream_pieces(&short(&frames)), one(5, 5..35));
    }

    #[test]
    fn cut_datagrams_are_read_as_far_as_they_go() {
        let whole = short(&[0x0a, 0x02, 0x02, 1, 2]);
        assert_eq!(stream_pieces(&whole), one(2, 0..2));
        for length in 0..whole.len() {
            let _ = stream_pieces(&whole[..length]);
        }
    }
}
