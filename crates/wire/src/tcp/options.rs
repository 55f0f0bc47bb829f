//! TCP options as bytes: RFC 9293 §3.1, RFC 2018, RFC 7323, RFC 9768; an experiment (RFC 6994).

use super::acc_ecn::{self, AccEcnOption, AccEcnOrder};
use super::door::{self, DOOR_LEN, DoorOption};
use super::{Options, SackBlock, SackBlocks, Timestamps};
use crate::emit::{be16, be32};
use crate::error::ParseError;
use hopline_core::Seq32;

/// Maximum length of the options in a header, in bytes.
pub const MAX_OPTIONS_LEN: usize = 40;

const END: u8 = 0;
const NOP: u8 = 1;
const MSS: u8 = 2;
const WINDOW_SCALE: u8 = 3;
const SACK_PERMITTED: u8 = 4;
const SACK: u8 = 5;
const TIMESTAMPS: u8 = 8;

const MSS_LEN: usize = 4;
const WINDOW_SCALE_LEN: usize = 3;
const SACK_PERMITTED_LEN: usize = 2;
const SACK_HEADER_LEN: usize = 2;
/// Kind, length and experiment identifier (RFC 6994 §3), which is hopline's own and unregistered.
const NACK_HEADER_LEN: usize = 4;
const NACK_EXID: [u8; 2] = [0x4e, 0x4b];
const SACK_BLOCK_LEN: usize = 8;
const TIMESTAMPS_LEN: usize = 10;

impl Options {
    /// Length on the wire in bytes, padding included: a multiple of 4, at most 40.
    ///
    /// Options stand at the places stacks give them: SACK-permitted right before the timestamps where both are, window
    /// scale behind one NOP, anything else of uneven length behind two (RFC 7323 appendix A), those of TCP-DOOR and AccECN
    /// behind what fills them up to whole words. What would not fit that way is packed without NOPs.
    #[must_use]
    pub const fn len(&self) -> usize {
        let sack = self.blocks_len(self.sack_sent());
        let aligned = self.aligned_len(sack);
        if aligned <= MAX_OPTIONS_LEN { aligned } else { (self.packed_len() + sack).next_multiple_of(4) }
    }

    /// Returns whether there is no option.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the number of SACK blocks that fit beside the other options: 4, or 3 with timestamps (RFC 2018 §3). Later
    /// blocks of [`Options::sack`], which are older, are not sent.
    #[must_use]
    pub const fn sack_room(&self) -> usize {
        let taken = self.blocks_header_len() + self.packed_len();
        let room = MAX_OPTIONS_LEN.saturating_sub(taken) / SACK_BLOCK_LEN;
        if room < SackBlocks::MAX { room } else { SackBlocks::MAX }
    }

    const fn sack_sent(&self) -> usize {
        let room = self.sack_room();
        if self.sack.len() < room { self.sack.len() } else { room }
    }

    const fn blocks_header_len(&self) -> usize {
        if self.nack { NACK_HEADER_LEN } else { SACK_HEADER_LEN }
    }

    /// Returns the length of the option with this number of blocks.
    const fn blocks_len(&self, blocks: usize) -> usize {
        len_if(blocks > 0 || self.nack, self.blocks_header_len() + SACK_BLOCK_LEN * blocks)
    }

    /// Length without SACK and without NOPs.
    const fn packed_len(&self) -> usize {
        self.packed_len_without_acc_ecn() + self.acc_ecn_len()
    }

    const fn packed_len_without_acc_ecn(&self) -> usize {
        len_if(self.mss.is_some(), MSS_LEN)
            + len_if(self.window_scale.is_some(), WINDOW_SCALE_LEN)
            + len_if(self.sack_permitted, SACK_PERMITTED_LEN)
            + len_if(self.timestamps.is_some(), TIMESTAMPS_LEN)
            + match &self.door {
                Some(door) => door.len(),
                None => 0,
            }
    }

    /// Returns the AccECN option, unless all other options and the header of a NACK leave no room for it.
    pub(super) const fn acc_ecn_sent(&self) -> Option<&AccEcnOption> {
        let room = MAX_OPTIONS_LEN - self.packed_len_without_acc_ecn() - len_if(self.nack, NACK_HEADER_LEN);
        match &self.acc_ecn {
            Some(option) if option.len() <= room => Some(option),
            _ => None,
        }
    }

    const fn acc_ecn_len(&self) -> usize {
        match self.acc_ecn_sent() {
            Some(option) => option.len(),
            None => 0,
        }
    }

    /// Returns the length with `sack` bytes of SACK option and NOPs that align every option to 32 bits.
    const fn aligned_len(&self, sack: usize) -> usize {
        let permitted_and_timestamps = match (self.sack_permitted, self.timestamps.is_some()) {
            (false, false) => 0,
            (true, false) => 2 + SACK_PERMITTED_LEN,
            (_, true) => 2 + TIMESTAMPS_LEN,
        };
        len_if(self.mss.is_some(), MSS_LEN)
            + permitted_and_timestamps
            + len_if(self.window_scale.is_some(), 1 + WINDOW_SCALE_LEN)
            + len_if(self.door.is_some(), DOOR_LEN)
            + self.acc_ecn_len().next_multiple_of(4)
            + sack.next_multiple_of(4)
    }

    /// Appends the options with their padding: exactly [`len`](Self::len) bytes.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let start = out.len();
        let sack = &self.sack.as_slice()[..self.sack_sent()];
        let aligned = self.aligned_len(self.blocks_len(sack.len())) <= MAX_OPTIONS_LEN;
        let align = |out: &mut Vec<u8>, nops: usize| out.extend(&[NOP; 4][..if aligned { nops } else { 0 }]);

        if let Some(mss) = self.mss {
            out.extend([MSS, MSS_LEN as u8]);
            out.extend(mss.to_be_bytes());
        }
        if self.sack_permitted != self.timestamps.is_some() {
            align(out, 2);
        }
        if self.sack_permitted {
            out.extend([SACK_PERMITTED, SACK_PERMITTED_LEN as u8]);
        }
        if let Some(timestamps) = self.timestamps {
            out.extend([TIMESTAMPS, TIMESTAMPS_LEN as u8]);
            out.extend(timestamps.value.to_be_bytes());
            out.extend(timestamps.echo.to_be_bytes());
        }
        if let Some(shift) = self.window_scale {
            align(out, 1);
            out.extend([WINDOW_SCALE, WINDOW_SCALE_LEN as u8, shift]);
        }
        if let Some(door) = &self.door {
            align(out, DOOR_LEN - door.len());
            door.emit(out);
        }
        if let Some(option) = self.acc_ecn_sent() {
            align(out, option.len().next_multiple_of(4) - option.len());
            option.emit(out);
        }
        if self.nack || !sack.is_empty() {
            let len = self.blocks_len(sack.len()) as u8;
            if self.nack {
                out.extend([door::EXPERIMENTAL_KIND, len]);
                out.extend(NACK_EXID);
            } else {
                align(out, 2);
                out.extend([SACK, len]);
            }
            for block in sack {
                out.extend(block.left.0.to_be_bytes());
                out.extend(block.right.0.to_be_bytes());
            }
        }
        out.resize(start + (out.len() - start).next_multiple_of(4), END);
    }

    /// Parses an option area. Unknown options and other experiments are skipped. The last of repeated options counts, and
    /// SACK blocks add up.
    pub(super) fn parse(mut area: &[u8]) -> Result<Self, ParseError> {
        let mut options = Self::default();
        loop {
            let len = match area {
                [] | [END, ..] => return Ok(options),
                [NOP, ..] => 1,
                [_, len, ..] => usize::from(*len),
                [_] => return Err(ParseError::Truncated { needed: 2, got: 1 }),
            };
            if area[0] != NOP {
                // RFC 9293 §3.1 (MUST-7): be prepared for an illegal option length.
                if len < 2 {
                    return Err(ParseError::BadLength { what: "tcp option", value: len });
                }
                if len > area.len() {
                    return Err(ParseError::Truncated { needed: len, got: area.len() });
                }
                options.parse_option(area[0], &area[2..len])?;
            }
            area = &area[len..];
        }
    }

    /// Handles the option of this kind with this data.
    fn parse_option(&mut self, kind: u8, data: &[u8]) -> Result<(), ParseError> {
        match kind {
            MSS => {
                expect_len("mss option", data, MSS_LEN)?;
                self.mss = Some(be16(data, 0));
            }
            WINDOW_SCALE => {
                expect_len("window scale option", data, WINDOW_SCALE_LEN)?;
                self.window_scale = Some(data[0]);
            }
            SACK_PERMITTED => {
                expect_len("sack-permitted option", data, SACK_PERMITTED_LEN)?;
                self.sack_permitted = true;
            }
            TIMESTAMPS => {
                expect_len("timestamps option", data, TIMESTAMPS_LEN)?;
                self.timestamps = Some(Timestamps { value: be32(data, 0), echo: be32(data, 4) });
            }
            SACK => self.parse_sack(data)?,
            acc_ecn::KIND_ORDER_0 => self.acc_ecn = Some(AccEcnOption::parse(AccEcnOrder::Zero, data)),
            acc_ecn::KIND_ORDER_1 => self.acc_ecn = Some(AccEcnOption::parse(AccEcnOrder::One, data)),
            door::EXPERIMENTAL_KIND if data.starts_with(&NACK_EXID) => {
                self.parse_nack(&data[NACK_EXID.len()..])
            }
            door::EXPERIMENTAL_KIND => self.door = DoorOption::parse(data).or(self.door),
            _ => {}
        }
        Ok(())
    }

    fn parse_sack(&mut self, data: &[u8]) -> Result<(), ParseError> {
        if data.is_empty() || !data.len().is_multiple_of(SACK_BLOCK_LEN) {
            return Err(ParseError::BadLength { what: "sack option", value: SACK_HEADER_LEN + data.len() });
        }
        if !self.nack {
            self.parse_blocks(data);
        }
        Ok(())
    }

    /// Takes the ranges of a NACK option: the segments that a base station misses. They take precedence over SACK blocks.
    /// Without ranges, the option announces that a host keeps the segments it sends. An option of another length is ignored.
    fn parse_nack(&mut self, data: &[u8]) {
        if data.len().is_multiple_of(SACK_BLOCK_LEN) {
            (self.nack, self.sack) = (true, SackBlocks::default());
            self.parse_blocks(data);
        }
    }

    fn parse_blocks(&mut self, data: &[u8]) {
        for block in data.chunks_exact(SACK_BLOCK_LEN) {
            // 40 bytes of options cannot hold more than four blocks.
            self.sack.push(SackBlock { left: Seq32(be32(block, 0)), right: Seq32(be32(block, 4)) });
        }
    }
}

const fn len_if(present: bool, len: usize) -> usize {
    if present { len } else { 0 }
}

fn expect_len(what: &'static str, data: &[u8], len: usize) -> Result<(), ParseError> {
    if data.len() + 2 == len { Ok(()) } else { Err(ParseError::BadLength { what, value: data.len() + 2 }) }
}
