//! The block in transmission: choice of the next segment, segments in flight, segments that have timed out (TPA §3.2).

use super::config::RoundStart;
use super::nonces::Nonces;
use hopline_core::{Duration, Instant};
use hopline_wire::tpa::{Bitmap, POSITIONS};

/// Number of transmissions with a recorded time: a whole largest window, and as many before it.
const LOG_LEN: usize = 2 * POSITIONS as usize;

/// State of a block in transmission.
#[derive(Clone, Debug)]
pub(super) struct Block {
    /// Stream offset of the first byte.
    pub(super) start: u64,
    /// Number of bytes.
    pub(super) bytes: u64,
    /// Number of segments.
    pub(super) segments: u8,
    /// Bytes of each segment except the last.
    mss: u16,
    /// Content after the last segment.
    pub(super) end: BlockEnd,
    /// Nonces of the segments, which the peer needs to acknowledge them.
    pub(super) nonces: Nonces,
    acked: Bitmap,
    /// Segments sent at least once.
    sent: Bitmap,
    /// Segments in flight: sent, and neither acknowledged nor timed out.
    in_flight: Bitmap,
    /// Segments to send in this round.
    round: Bitmap,
    /// Retransmission stream: timed-out segments, to be sent in the next round.
    timed_out: Bitmap,
    /// Retransmission deadline of each segment in flight.
    deadlines: [Instant; POSITIONS as usize],
    /// Segments sent as probes of the path.
    probes: Bitmap,
    send_times: SendTimes,
    /// TxSeqNumber of the next transmission.
    next_tx: u8,
}

/// Content after the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum BlockEnd {
    /// Further data may follow.
    Open,
    /// The stream ends: the last segment carries the FIN.
    Fin,
}

/// Sending times of the latest transmissions, for round-trip time samples; indexed by the transmission number modulo the
/// size.
#[derive(Clone, Copy, Debug, Default)]
struct SendTimes {
    tx: [u8; LOG_LEN],
    /// Sending time; `None`: no such transmission, or its sample was taken.
    sent: [Option<Instant>; LOG_LEN],
}

impl SendTimes {
    fn record(&mut self, tx: u8, now: Instant) {
        let at = usize::from(tx) % LOG_LEN;
        (self.tx[at], self.sent[at]) = (tx, Some(now));
    }

    fn take(&mut self, tx: u8) -> Option<Instant> {
        let at = usize::from(tx) % LOG_LEN;
        if self.tx[at] == tx { self.sent[at].take() } else { None }
    }
}

/// Segment of the block.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BlockSegment {
    pub(super) position: u8,
    /// Stream offset.
    pub(super) start: u64,
    pub(super) len: u16,
    pub(super) is_last: bool,
}

/// Purpose of a transmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum TransmissionPurpose {
    /// Data.
    Data,
    /// Data and a probe of the path.
    Probe,
}

/// Age of an ACK, by the segments that it covers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum AckAge {
    /// It covers all segments known to have arrived: no later ACK is known.
    Latest,
    /// It covers fewer: a later ACK has overtaken it.
    Older,
}

/// Number of a transmission: the first of its segment, or a retransmission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Transmission {
    First,
    Retransmission,
}

impl Block {
    /// Creates the block of the `bytes` from offset `start`, at most as many as fit.
    pub(super) fn new(start: u64, bytes: u64, mss: u16, end: BlockEnd, nonces: Nonces) -> Self {
        let segments = bytes.div_ceil(u64::from(mss)).clamp(1, u64::from(POSITIONS)) as u8;
        Self {
            start,
            bytes,
            segments,
            mss,
            end,
            nonces,
            acked: Bitmap::EMPTY,
            sent: Bitmap::EMPTY,
            in_flight: Bitmap::EMPTY,
            round: Bitmap::first(segments),
            timed_out: Bitmap::EMPTY,
            deadlines: [Instant::FAR_FUTURE; POSITIONS as usize],
            probes: Bitmap::EMPTY,
            send_times: SendTimes::default(),
            next_tx: 0,
        }
    }

    /// Returns the segment to send next, and starts a new round if it is due.
    pub(super) fn next(&mut self, rounds: RoundStart) -> Option<BlockSegment> {
        if self.round.is_empty() && (rounds == RoundStart::AllSent || self.in_flight.is_empty()) {
            self.round = core::mem::take(&mut self.timed_out);
        }
        self.round.lowest().map(|position| self.segment(position))
    }

    fn segment(&self, position: u8) -> BlockSegment {
        let offset = u64::from(position) * u64::from(self.mss);
        let len = (self.bytes - offset).min(u64::from(self.mss)) as u16;
        BlockSegment { position, start: self.start + offset, len, is_last: position + 1 == self.segments }
    }

    /// Records the transmission of `position` at `now` with the retransmission timeout `timeout`. Returns its
    /// TxSeqNumber.
    pub(super) fn transmit(
        &mut self,
        now: Instant,
        position: u8,
        purpose: TransmissionPurpose,
        timeout: Duration,
    ) -> (u8, Transmission) {
        let time =
            if self.sent.contains(position) { Transmission::Retransmission } else { Transmission::First };
        let tx = self.next_tx;
        self.next_tx = tx.wrapping_add(1);
        self.send_times.record(tx, now);
        self.round.remove(position);
        self.sent.insert(position);
        self.in_flight.insert(position);
        match purpose {
            TransmissionPurpose::Data => self.probes.remove(position),
            TransmissionPurpose::Probe => self.probes.insert(position),
        }
        self.deadlines[usize::from(position)] = now + timeout;
        (tx, time)
    }

    /// Processes a BitmapAck. Returns the segments that it acknowledges for the first time; `None` if it covers segments
    /// that were never sent.
    pub(super) fn acknowledge(&mut self, bitmap: Bitmap) -> Option<Bitmap> {
        if !bitmap.without(self.sent).is_empty() {
            return None;
        }
        let news = bitmap.without(self.acked);
        self.acked = self.acked.or(news);
        self.in_flight = self.in_flight.without(news);
        self.round = self.round.without(news);
        self.timed_out = self.timed_out.without(news);
        Some(news)
    }

    /// Returns the age of `bitmap`, which was passed to [`acknowledge`](Self::acknowledge) before.
    pub(super) fn ack_age(&self, bitmap: Bitmap) -> AckAge {
        if self.acked.without(bitmap).is_empty() { AckAge::Latest } else { AckAge::Older }
    }

    /// Returns whether no segment is acknowledged.
    pub(super) fn is_unacknowledged(&self) -> bool {
        self.acked.is_empty()
    }

    /// Returns the round-trip time sample of transmission `tx`, once.
    pub(super) fn rtt_sample(&mut self, now: Instant, tx: u8) -> Option<Duration> {
        self.send_times.take(tx).map(|sent| now - sent)
    }

    /// Returns whether `tx` is the latest transmission.
    pub(super) fn is_latest(&self, tx: u8) -> bool {
        tx == self.next_tx.wrapping_sub(1)
    }

    /// Moves one timed-out segment from the window to the retransmission stream. Call until `None`.
    pub(super) fn take_timed_out(&mut self, now: Instant) -> Option<TransmissionPurpose> {
        let position = self.in_flight.positions().find(|&p| self.deadlines[usize::from(p)] <= now)?;
        self.in_flight.remove(position);
        self.timed_out.insert(position);
        Some(if self.probes.contains(position) {
            TransmissionPurpose::Probe
        } else {
            TransmissionPurpose::Data
        })
    }

    /// Returns the earliest retransmission deadline.
    pub(super) fn next_timeout(&self) -> Option<Instant> {
        self.in_flight.positions().map(|p| self.deadlines[usize::from(p)]).min()
    }

    /// Returns the number of segments in flight. They fill the window; timed-out ones do not (B4).
    pub(super) fn in_flight(&self) -> u8 {
        self.in_flight.count()
    }

    /// Returns the bytes in flight.
    pub(super) fn bytes_in_flight(&self) -> u64 {
        self.in_flight.positions().map(|p| u64::from(self.segment(p).len)).sum()
    }

    /// Returns the bytes of the segments in `set`.
    pub(super) fn bytes_of(&self, set: Bitmap) -> u64 {
        set.positions().map(|p| u64::from(self.segment(p).len)).sum()
    }

    pub(super) fn is_acknowledged(&self) -> bool {
        self.acked == Bitmap::first(self.segments)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const RTO: Duration = Duration::from_millis(200);

    fn at(ms: u64) -> Instant {
        Instant::from_millis(ms)
    }

    fn block_of(start: u64, bytes: u64, mss: u16, end: BlockEnd) -> Block {
        Block::new(start, bytes, mss, end, Nonces::default())
    }

    fn send(block: &mut Block, now: u64) -> Option<u8> {
        let piece = block.next(RoundStart::AllSent)?;
        block.transmit(at(now), piece.position, TransmissionPurpose::Data, RTO);
        Some(piece.position)
    }

    #[test]
    fn a_block_is_cut_into_full_segments_and_a_rest() {
        let mut block = block_of(5000, 2500, 1000, BlockEnd::Open);
        let mut pieces = Vec::new();
        while let Some(piece) = block.next(RoundStart::AllSent) {
            block.transmit(at(0), piece.position, TransmissionPurpose::Data, RTO);
            pieces.push((piece.start, piece.len, piece.is_last));
        }
        assert_eq!(pieces, [(5000, 1000, false), (6000, 1000, false), (7000, 500, true)]);
        assert_eq!((block.in_flight(), block.bytes_in_flight()), (3, 2500));
        let fin = block_of(9, 0, 1000, BlockEnd::Fin).segment(0);
        assert_eq!(fin, BlockSegment { position: 0, start: 9, len: 0, is_last: true });
    }

    #[test]
    fn timed_out_segments_wait_for_the_end_of_the_round() {
        let mut block = block_of(0, 4000, 1000, BlockEnd::Open);
        assert_eq!((send(&mut block, 0), send(&mut block, 10)), (Some(0), Some(1)));
        assert_eq!(block.take_timed_out(at(199)), None);
        assert_eq!(block.take_timed_out(at(200)), Some(TransmissionPurpose::Data));
        assert_eq!(block.in_flight(), 1);
        let sent: Vec<_> = (0..4).map(|_| send(&mut block, 200)).collect();
        assert_eq!(sent, [Some(2), Some(3), Some(0), None]);
        // The strict reading waits until all of the round is settled.
        let mut strict = block_of(0, 2000, 1000, BlockEnd::Open);
        send(&mut strict, 0);
        send(&mut strict, 10);
        strict.take_timed_out(at(200));
        assert!(strict.next(RoundStart::AllResolved).is_none());
        strict.acknowledge(Bitmap::single(1));
        assert_eq!(strict.next(RoundStart::AllResolved).map(|p| p.position), Some(0));
    }

    #[test]
    fn an_acknowledged_segment_leaves_the_retransmission_stream() {
        let mut block = block_of(0, 3000, 1000, BlockEnd::Open);
        (0..3).for_each(|_| {
            send(&mut block, 0);
        });
        while block.take_timed_out(at(200)).is_some() {}
        assert_eq!(block.acknowledge(Bitmap::first(2)), Some(Bitmap::first(2)));
        assert_eq!((send(&mut block, 201), send(&mut block, 201)), (Some(2), None));
        assert_eq!(block.acknowledge(Bitmap::first(3)), Some(Bitmap::single(2)));
        assert!(block.is_acknowledged());
    }

    #[test]
    fn an_acknowledgment_of_what_was_never_sent_is_refused() {
        let mut block = block_of(0, 3000, 1000, BlockEnd::Open);
        send(&mut block, 0);
        assert_eq!(block.acknowledge(Bitmap::first(2)), None);
        assert_eq!(block.acknowledge(Bitmap::first(1)), Some(Bitmap::single(0)));
        assert_eq!(block.acknowledge(Bitmap::first(1)), Some(Bitmap::EMPTY));
    }

    #[test]
    fn each_transmission_gives_one_sample_also_when_it_was_sent_again() {
        let mut block = block_of(0, 1000, 1000, BlockEnd::Open);
        send(&mut block, 0);
        block.take_timed_out(at(200));
        send(&mut block, 200);
        assert!(block.is_latest(1) && !block.is_latest(0));
        assert_eq!(block.rtt_sample(at(250), 0), Some(Duration::from_millis(250)));
        assert_eq!(block.rtt_sample(at(250), 0), None);
        assert_eq!(block.rtt_sample(at(260), 1), Some(Duration::from_millis(60)));
        assert_eq!(block.rtt_sample(at(260), 9), None);
    }

    #[test]
    fn transmission_numbers_wrap_around() {
        let mut block = block_of(0, 1000, 1000, BlockEnd::Open);
        for i in 0..300u64 {
            send(&mut block, i * 200);
            assert!(block.is_latest(i as u8));
            block.take_timed_out(at(i * 200 + 200));
        }
        assert_eq!(block.rtt_sample(at(60_000), (299 % 256) as u8), Some(Duration::from_millis(200)));
        assert_eq!(block.rtt_sample(at(60_000), 0), None, "forgotten");
    }
}
