//! Metrics of middleboxes.

use crate::service::Metric;
use hopline_proxy::driver::Counts as Driven;
use hopline_proxy::{hop_window, mtcp, nack, snoop};

/// Metrics of a middlebox, by name.
pub trait MiddleboxMetrics {
    /// Returns all metrics. Their names are stable.
    fn metrics(&self) -> Vec<Metric>;
}

impl MiddleboxMetrics for snoop::Stats {
    fn metrics(&self) -> Vec<Metric> {
        let count = Metric::counter;
        vec![
            count("kept_packets", "packets with data that were kept", self.cached),
            count(
                "not_kept_packets",
                "packets with data that came above the high-water mark",
                self.not_cached,
            ),
            count("local_retransmissions", "packets sent again from here", self.local_retransmissions),
            count("local_timeouts", "of those, brought about by a timer", self.timeouts),
            count(
                "sender_retransmissions",
                "packets that came again from the sender",
                self.sender_retransmissions,
            ),
            count("left_packets", "lost packets that were left to the sender", self.left_to_sender),
            count("absorbed_acks", "ACKs absorbed", self.acks_absorbed),
            count("edited_acks", "ACKs whose SACK blocks were cut short", self.acks_rewritten),
            count("made_acks", "ACKs made in the name of mobile hosts", self.acks_made),
            count("acks_beyond", "ACKs for what was never sent", self.acks_of_unsent_data),
            count(
                "announcements",
                "of nack-host: announcements that it keeps what this host sends",
                self.announcements,
            ),
            count(
                "unfit_questions",
                "of nack-host: questions that did not fit their connection",
                self.invalid_nacks,
            ),
            count(
                "unallowed_questions",
                "of nack-host: questions for more than is sent again",
                self.nacks_over_allowance,
            ),
            count("evicted_connections", "connections forgotten to make room", self.evicted),
            count(
                "evicted_for_bytes_connections",
                "of those, because all together kept too many bytes",
                self.evicted_for_bytes,
            ),
            count("expired_connections", "connections forgotten for silence", self.expired),
        ]
    }
}

impl<S: MiddleboxMetrics> MiddleboxMetrics for hop_window::Stats<S> {
    fn metrics(&self) -> Vec<Metric> {
        let count = Metric::counter;
        let Self { middlebox: machine, window } = self;
        let mut figures = machine.metrics();
        figures.extend([
            count("held_packets", "packets that waited here before the last hop", window.delayed),
            count(
                "held_too_many_packets",
                "packets that waited too long here, or too many of them: dropped",
                window.dropped,
            ),
            count(
                "unheard_packets",
                "packets on the last hop of which nothing was heard any more",
                window.unacknowledged,
            ),
        ]);
        figures
    }
}

impl MiddleboxMetrics for mtcp::Stats {
    fn metrics(&self) -> Vec<Metric> {
        let count = Metric::counter;
        vec![
            count("withheld_acks", "ACKs from which the last byte was kept back", self.withheld),
            count("closed_windows", "times that a sender was told to wait", self.windows_closed),
            count("reopened_windows", "times that a sender got its window back", self.windows_reopened),
            count("probes", "packets sent to find out whether a host is back", self.probes),
            count("made_acks", "ACKs made in the name of mobile hosts", self.acks_made),
            count("acks_beyond", "ACKs for what was never sent", self.acks_beyond),
            count("evicted_connections", "connections forgotten to make room", self.evicted),
            count("expired_connections", "connections forgotten for silence", self.expired),
        ]
    }
}

impl MiddleboxMetrics for nack::Stats {
    fn metrics(&self) -> Vec<Metric> {
        let count = Metric::counter;
        vec![
            count("questions", "questions sent", self.nacks),
            count("question_timeouts", "of those, brought about by a timer", self.timeouts),
            count("repaired_ranges", "ranges that came after they were asked for", self.repaired),
            count(
                "announcements",
                "announcements of hosts that keep what they send, as those with nack-host do",
                self.announcements,
            ),
            count(
                "unasked_ranges",
                "ranges not asked for: the host has not announced that it keeps what it sends",
                self.not_requested,
            ),
            count("left_ranges", "ranges that are no longer asked for", self.left_to_sender),
            count("packets_beyond", "packets beyond the window of the fixed host", self.beyond_window),
            count("evicted_connections", "connections forgotten to make room", self.evicted),
            count("expired_connections", "connections forgotten for silence", self.expired),
        ]
    }
}

impl MiddleboxMetrics for Driven {
    fn metrics(&self) -> Vec<Metric> {
        let count = Metric::counter;
        let Self { bypassed: untouched, .. } = self;
        vec![
            count("segments_to_mobile", "segments to the mobile side that the machine saw", self.to_mobile),
            count(
                "segments_from_mobile",
                "segments from the mobile side that the machine saw",
                self.from_mobile,
            ),
            count(
                "other_versions",
                "packets that passed untouched: neither IPv4 nor IPv6",
                untouched.other_versions,
            ),
            count("other_protocols", "packets that passed untouched: not TCP", untouched.other_protocols),
            count("fragments", "packets that passed untouched: fragments", untouched.fragments),
            count("bad_checksums", "packets that passed untouched: wrong checksums", untouched.bad_checksums),
            count("malformed_packets", "packets that passed untouched: malformed", untouched.malformed),
            count("rewritten_packets", "packets that went on changed", self.rewritten),
            count(
                "absorbed_packets",
                "packets that the proxy took off the path, such as repeated ACKs; normal",
                self.absorbed,
            ),
            count("sent_to_mobile_packets", "packets sent from here to the mobile side", self.sent_to_mobile),
            count("sent_to_fixed_packets", "ACKs sent from here to the fixed side", self.sent_to_fixed),
            count("refused_packets", "packets from here for which there was no way", self.no_route),
            count("dropped_packets", "packets that found the queue to the mobile side full", self.dropped),
        ]
    }
}

impl MiddleboxMetrics for super::Counts {
    fn metrics(&self) -> Vec<Metric> {
        let count = Metric::counter;
        vec![
            count("packets", "packets that the kernel brought", self.packets),
            count(
                "one_sided_packets",
                "packets passed on untouched: they do not cross between `interface` and another one; if most do not, is `interface` right?",
                self.not_crossing,
            ),
            count(
                "unfollowed_packets",
                "packets passed on untouched: rules of routing lead what this machine sends another way than what it forwards",
                self.asymmetric,
            ),
            count("cut_packets", "packets whose end was missing", self.truncated),
            count(
                "unfinished_packets",
                "packets passed on untouched: joined by the kernel (GSO), or without checksums yet; should be 0, as the proxy is of no use to them",
                self.incomplete,
            ),
            count("too_long_packets", "changed packets too long for a message", self.too_long),
            count("malformed_messages", "messages of the kernel that were none", self.malformed),
            count("refused_verdicts", "verdicts that the kernel did not take", self.refused_verdicts),
            count("queue_drops", "packets that the queue of the mobile interface dropped", self.queue_drops),
            count("queue_looks", "times that its counters were read", self.drop_counter_reads),
        ]
    }
}
