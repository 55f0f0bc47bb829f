//! What is counted.

/// What a [`Snoop`](super::Snoop) has done.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stats {
    /// Packets with data that were kept when they came.
    pub kept: u64,
    /// Packets with data that came above the high-water mark.
    pub not_kept: u64,
    /// Packets sent again from here.
    pub local_retransmissions: u64,
    /// Of those, the ones that a timer brought about.
    pub timeouts: u64,
    /// Packets that came again from the sender, and passed.
    pub sender_retransmissions: u64,
    /// Packets given up: lost on the last hop more often than the limit or refused by its queue.
    pub left_to_sender: u64,
    /// ACKs absorbed.
    pub acks_absorbed: u64,
    /// ACKs whose SACK blocks were cut short.
    pub acks_edited: u64,
    /// ACKs made in the name of mobile hosts.
    pub acks_made: u64,
    /// ACKs for what was never sent: forwarded, and nothing else.
    pub acks_beyond: u64,
    /// Announcements of a host that keeps what it sends.
    pub announcements: u64,
    /// Questions of stations that did not fit their connection.
    pub unfit_questions: u64,
    /// Questions of stations that asked for more than is sent again.
    pub unallowed: u64,
    /// Connections forgotten to make room for others.
    pub evicted: u64,
    /// Of those, forgotten because all together kept too many bytes.
    pub evicted_for_bytes: u64,
    /// Connections forgotten because nothing passed any more.
    pub expired: u64,
}
