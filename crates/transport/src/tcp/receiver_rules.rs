//! Rules of a receiver where RFC 9293 leaves a choice, or hosts differ from it.

/// Rules of a receiver for its window and for the peer's FIN.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReceiverRules {
    /// Data beyond the announced window are cut off (RFC 9293 §3.10.7.4). The ACK of a FIN reports data that its segment repeats
    /// (RFC 2883 §4).
    Rfc9293,
    /// As a Linux host:
    ///
    /// - The window of a SYN-ACK is a whole number of segments.
    /// - A segment that begins in the window and ends beyond it is taken whole if no data wait for the user, and acknowledged
    ///   after the delay. It is dropped whole otherwise.
    /// - A FIN discards reports of repeated data.
    Linux,
}
