//! Metrics of one end of a link.

use super::Opaque;
use crate::service::Figure;
use hopline_proxy::Peer;

impl Opaque {
    pub(super) fn figures(&self) -> Vec<Figure> {
        [&self.of_peer()[..], &self.of_packets(), &self.of_datagrams(), &self.of_queue()].concat()
    }

    fn of_peer(&self) -> [Figure; 7] {
        let (stats, gone) = (self.tunnel.stats(), self.socket.unreachable);
        let ready = (self.tunnel.peer() == Peer::Present).into();
        [
            Figure::gauge("peer_ready", "Whether the other end is there: 1 or 0", ready),
            Figure::gauge("routes_refused", "Routes that the system refuses to change", self.leads.missing()),
            Figure::counter("unrouted", "Tries to change routes that were refused", self.counts.unrouted),
            Figure::counter("peer_unreachable", "Times that the network said that nobody is there", gone),
            Figure::counter("sessions", "Sessions begun: one for each life of the other end", stats.sessions),
            Figure::counter("greetings_sent", "Greetings sent", stats.greetings),
            // The peer has another key, or an attacker forges messages.
            Figure::counter("greetings_forged", "Greetings without the right proof", stats.forged_greetings),
        ]
    }

    fn of_packets(&self) -> [Figure; 8] {
        let (stats, left) = (self.tunnel.stats(), self.counts.tun_refused);
        let given_up = self.tunnel.recovery().map_or(0, |recovery| recovery.given_up);
        [
            Figure::counter("packets", "Packets that were to cross the link", stats.packets),
            Figure::counter("packets_delivered", "Packets that have come over the link", stats.delivered),
            Figure::counter("packets_sent_again", "Packets sent over the link again", stats.sent_again),
            Figure::counter("packets_restored", "Packets made again from parity", stats.restored),
            Figure::counter("packets_refused", "Packets that found no room at this end", stats.refused),
            Figure::counter("packets_without_peer", "Packets dropped for want of a peer", stats.without_peer),
            Figure::counter("packets_interface_refused", "Packets that the interface would not take", left),
            Figure::gauge("session_holes_given_up", "Packets given up as lost in this session", given_up),
        ]
    }

    fn of_datagrams(&self) -> [Figure; 6] {
        let (stats, counts) = (self.tunnel.stats(), &self.counts);
        let malformed = stats.malformed + self.socket.cut;
        [
            Figure::counter("datagrams_sent", "Datagrams sent to the other end", counts.datagrams_sent),
            Figure::counter("datagrams_sent_bytes", "Bytes of these with IP headers", counts.bytes_sent),
            Figure::counter("datagrams_received", "Datagrams from its address", counts.datagrams_received),
            Figure::counter("datagrams_malformed", "Datagrams that are none of this link", malformed),
            // Forged or damaged, or of a former session.
            Figure::counter("datagrams_forged", "Frames without the right proof", stats.forged),
            Figure::counter("datagrams_replayed", "Frames that had come before", stats.replays_refused),
        ]
    }

    fn of_queue(&self) -> Vec<Figure> {
        let Some(shaper) = &self.shaper else { return Vec::new() };
        vec![
            Figure::gauge("queue_packets", "Packets that wait for the rate", shaper.len() as u64),
            Figure::counter("queue_full_dropped", "Packets that found the queue full", shaper.refused),
            Figure::counter(
                "queue_late_dropped",
                "Packets dropped by CoDel: they waited long",
                shaper.late(),
            ),
        ]
    }
}
