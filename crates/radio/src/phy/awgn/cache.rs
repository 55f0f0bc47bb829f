//! Error rates that a receiver has met before: where nothing moves, the same few ratios come again and again.

use super::{frame_error_rate_of, symbol_error_rate};
use crate::phy::errors::Probability;
use crate::rate::Rate;

/// Places in the table, 6 KB; a power of two. With 64, three lanes of a hop take two and a half times as long; with 1024 nothing is won.
const CACHE_SLOTS: usize = 256;

/// Table entry: the rate, the bits of the SINR, and the symbol error rate for these.
type CacheEntry = (Rate, u64, Probability);

/// [`frame_error_rate`](super::frame_error_rate), to the last bit, from a table of what was asked for last.
#[derive(Clone, Debug, Default)]
pub struct ErrorRateCache {
    /// Empty until the first question.
    slots: Vec<Option<CacheEntry>>,
}

impl ErrorRateCache {
    /// As [`frame_error_rate`](super::frame_error_rate).
    pub fn frame_error_rate(&mut self, rate: Rate, sinr: f64, bits: u64) -> f64 {
        frame_error_rate_of(rate, self.symbol_error_rate(rate, sinr), bits)
    }

    fn symbol_error_rate(&mut self, rate: Rate, sinr: f64) -> Probability {
        if self.slots.is_empty() {
            self.slots.resize(CACHE_SLOTS, None);
        }
        let key = sinr.to_bits();
        let place = &mut self.slots[slot_of(rate, key)];
        match *place {
            Some((of, at, known)) if of == rate && at == key => known,
            _ => {
                let found = symbol_error_rate(rate, sinr);
                *place = Some((rate, key, found));
                found
            }
        }
    }
}

/// Multiplicative hashing (Knuth, The Art of Computer Programming 3, §6.4): the upper bits of a product with 2⁶⁴/φ.
fn slot_of(rate: Rate, key: u64) -> usize {
    let mixed = (key ^ rate.bps()).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> (u64::BITS - CACHE_SLOTS.trailing_zeros())) as usize
}
