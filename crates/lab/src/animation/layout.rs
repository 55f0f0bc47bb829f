//! Layout of events: rows of whole numbers, written column by column.
//!
//! A chunk holds all events of a stretch of time. For each stream of [`STREAMS`], in their order, it has the
//! number of rows, and then the values of all rows of each column: as they are, or as differences to the row
//! before, which may lie in an earlier chunk. All are varints of seven bits a byte, the lowest first;
//! differences have their sign in the lowest bit. The reader in a browser is templates/network/read.js, which
//! has the same table.

/// Coding of the values of a column.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Coding {
    /// As they are: none is negative.
    Plain,
    /// As the difference to the row before.
    Delta,
}

use Coding::{Delta, Plain};

/// A kind of event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stream {
    /// A frame on the air, or a packet on a wire.
    Frames,
    /// A frame that did not come through.
    Losses,
    /// Frames that were on the air with a lost one, as many rows as it says.
    Others,
    /// A packet that was dropped.
    Drops,
    /// A change of the number of packets in a node's queues.
    Queues,
    /// A change of a node's next hop for a flow.
    Routes,
}

/// All streams, and the coding of their columns. Times are in µs since the window began. "From 1" means that
/// 0 is none.
pub(super) const STREAMS: [(Stream, &[Coding]); 6] = [
    // Start, sender, receiver (from 1), kind, duration in µs, flow (from 1), bytes, number of the packet.
    (Stream::Frames, &[Delta, Plain, Plain, Plain, Plain, Plain, Plain, Delta]),
    // Time, node, frame, reason, number of other frames.
    (Stream::Losses, &[Delta, Plain, Delta, Plain, Plain]),
    // Frame.
    (Stream::Others, &[Delta]),
    // Time, node, reason, kind, flow (from 1), number of the packet, bytes, source and destination (from 1),
    // next hop (from 1), frame of the last try (from 1).
    (Stream::Drops, &[Delta, Plain, Plain, Plain, Plain, Delta, Plain, Plain, Plain, Plain, Delta]),
    // Time, node, packets.
    (Stream::Queues, &[Delta, Plain, Plain]),
    // Time, flow, node, next hop (from 1).
    (Stream::Routes, &[Delta, Plain, Plain, Plain]),
];

/// Rows of all streams that wait to be written.
#[derive(Debug, Default)]
pub(super) struct Rows {
    columns: [Vec<Vec<u8>>; STREAMS.len()],
    counts: [u64; STREAMS.len()],
    /// The row before, of each stream.
    before: [Vec<i64>; STREAMS.len()],
}

impl Rows {
    /// Adds a row to a stream, with a value for each of its columns.
    pub(super) fn add<const N: usize>(&mut self, stream: Stream, row: [i64; N]) {
        let at = stream as usize;
        let codings = STREAMS[at].1;
        debug_assert_eq!((STREAMS[at].0, codings.len()), (stream, N));
        self.columns[at].resize(N, Vec::new());
        self.before[at].resize(N, 0);
        for (column, value) in row.into_iter().enumerate() {
            let before = std::mem::replace(&mut self.before[at][column], value);
            let written = match codings[column] {
                Plain => value as u64,
                Delta => zigzag(value - before),
            };
            varint(&mut self.columns[at][column], written);
        }
        self.counts[at] += 1;
    }

    /// Returns the number of waiting rows.
    pub(super) fn len(&self) -> u64 {
        self.counts.iter().sum()
    }

    /// Takes the waiting rows as a chunk.
    pub(super) fn take(&mut self) -> Vec<u8> {
        let mut chunk = Vec::new();
        for (count, columns) in self.counts.iter_mut().zip(&mut self.columns) {
            varint(&mut chunk, std::mem::take(count));
            columns.iter_mut().for_each(|column| chunk.append(column));
        }
        chunk
    }
}

const fn zigzag(value: i64) -> u64 {
    ((value << 1) ^ (value >> 63)) as u64
}

fn varint(out: &mut Vec<u8>, mut value: u64) {
    while value >= 0x80 {
        out.push(value as u8 | 0x80);
        value >>= 7;
    }
    out.push(value as u8);
}

/// Reader of chunks, for tests.
#[cfg(test)]
pub(super) mod reading {
    use super::*;

    /// Rows by stream.
    pub(in super::super) type Tables = [Vec<Vec<i64>>; STREAMS.len()];

    /// Returns all rows of `chunks`.
    pub(in super::super) fn read(chunks: &[Vec<u8>]) -> Tables {
        let mut tables = Tables::default();
        for chunk in chunks {
            let mut rest = chunk.as_slice();
            for (table, (_, codings)) in tables.iter_mut().zip(STREAMS) {
                let rows = number(&mut rest) as usize;
                let first = table.len();
                table.resize(first + rows, vec![0; codings.len()]);
                for (column, coding) in codings.iter().enumerate() {
                    for row in first..first + rows {
                        let written = number(&mut rest);
                        let before = if row > 0 { table[row - 1][column] } else { 0 };
                        table[row][column] = match coding {
                            Plain => written as i64,
                            Delta => before + ((written >> 1) as i64 ^ -((written & 1) as i64)),
                        };
                    }
                }
            }
            assert!(rest.is_empty(), "{} bytes are left", rest.len());
        }
        tables
    }

    fn number(rest: &mut &[u8]) -> u64 {
        let len = rest.iter().position(|byte| byte & 0x80 == 0).unwrap() + 1;
        let (head, tail) = rest.split_at(len);
        *rest = tail;
        head.iter().rev().fold(0, |value, byte| value << 7 | u64::from(byte & 0x7f))
    }
}

#[cfg(test)]
mod tests {
    use super::reading::read;
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn streams_are_listed_in_the_order_of_their_numbers() {
        for (at, (stream, _)) in STREAMS.iter().enumerate() {
            assert_eq!(*stream as usize, at);
        }
    }

    proptest! {
        #[test]
        fn rows_round_trip_in_chunks(
            rows in prop::collection::vec((0i64..1 << 50, 0i64..1 << 32, 0i64..9), 0..200),
            cut in 0usize..200,
        ) {
            let (mut waiting, mut chunks) = (Rows::default(), Vec::new());
            for (i, &(at, node, packets)) in rows.iter().enumerate() {
                waiting.add(Stream::Queues, [at, node, packets]);
                if i % 3 == 0 {
                    waiting.add(Stream::Routes, [-at, packets, node, 0]);
                }
                if i == cut {
                    chunks.push(waiting.take());
                }
            }
            chunks.push(waiting.take());
            prop_assert_eq!(waiting.len(), 0);
            let tables = read(&chunks);
            let expected: Vec<Vec<i64>> = rows.iter().map(|&(a, b, c)| vec![a, b, c]).collect();
            prop_assert_eq!(&tables[Stream::Queues as usize], &expected);
            let expected: Vec<Vec<i64>> = rows.iter().step_by(3).map(|&(a, b, c)| vec![-a, c, b, 0]).collect();
            prop_assert_eq!(&tables[Stream::Routes as usize], &expected);
        }
    }
}
