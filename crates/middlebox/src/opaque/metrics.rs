//! Metrics of one end of a link.

use super::Opaque;
use crate::service::Metric;
use hopline_proxy::PeerStatus;

impl Opaque {
    pub(super) fn metrics(&self) -> Vec<Metric> {
        [&self.peer_metrics()[..], &self.packet_metrics(), &self.datagram_metrics(), &self.queue_metrics()]
            .concat()
    }

    fn peer_metrics(&self) -> [Metric; 7] {
        let (stats, gone) = (self.tunnel.stats(), self.socket.unreachable);
        let ready = (self.tunnel.peer() == PeerStatus::Present).into();
        [
            Metric::gauge("peer_ready", "Whether the other end is there: 1 or 0", ready),
            Metric::gauge(
                "routes_refused",
                "Routes that the system refuses to change",
                self.routes.missing(),
            ),
            Metric::counter(
                "unrouted",
                "Tries to change routes that were refused",
                self.counts.missing_routes,
            ),
            Metric::counter("peer_unreachable", "Times that the network said that nobody is there", gone),
            Metric::counter("sessions", "Sessions begun: one for each life of the other end", stats.sessions),
            Metric::counter("greetings_sent", "Greetings sent", stats.handshakes),
            // The peer has another key, or an attacker forges messages.
            Metric::counter("greetings_forged", "Greetings without the right proof", stats.forged_handshakes),
        ]
    }

    fn packet_metrics(&self) -> [Metric; 8] {
        let (stats, left) = (self.tunnel.stats(), self.counts.tun_write_failures);
        let given_up = self.tunnel.recovery().map_or(0, |recovery| recovery.given_up);
        [
            Metric::counter("packets", "Packets that were to cross the link", stats.packets),
            Metric::counter("packets_delivered", "Packets that have come over the link", stats.delivered),
            Metric::counter("packets_sent_again", "Packets sent over the link again", stats.retransmitted),
            Metric::counter("packets_restored", "Packets made again from parity", stats.restored),
            Metric::counter("packets_refused", "Packets that found no room at this end", stats.refused),
            Metric::counter("packets_without_peer", "Packets dropped for want of a peer", stats.without_peer),
            Metric::counter("packets_interface_refused", "Packets that the interface would not take", left),
            Metric::gauge("session_holes_given_up", "Packets given up as lost in this session", given_up),
        ]
    }

    fn datagram_metrics(&self) -> [Metric; 6] {
        let (stats, counts) = (self.tunnel.stats(), &self.counts);
        let malformed = stats.malformed + self.socket.truncated;
        [
            Metric::counter("datagrams_sent", "Datagrams sent to the other end", counts.datagrams_sent),
            Metric::counter("datagrams_sent_bytes", "Bytes of these with IP headers", counts.bytes_sent),
            Metric::counter("datagrams_received", "Datagrams from its address", counts.datagrams_received),
            Metric::counter("datagrams_malformed", "Datagrams that are none of this link", malformed),
            // Forged or damaged, or of a former session.
            Metric::counter("datagrams_forged", "Frames without the right proof", stats.forged),
            Metric::counter("datagrams_replayed", "Frames that had come before", stats.replays_refused),
        ]
    }

    fn queue_metrics(&self) -> Vec<Metric> {
        let Some(shaper) = &self.shaper else { return Vec::new() };
        vec![
            Metric::gauge("queue_packets", "Packets that wait for the rate", shaper.len() as u64),
            Metric::counter("queue_full_dropped", "Packets that found the queue full", shaper.refused),
            Metric::counter(
                "queue_late_dropped",
                "Packets dropped by CoDel: they waited long",
                shaper.codel_drops(),
            ),
        ]
    }
}
