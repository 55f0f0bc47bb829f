//! Notifications from a base station to a middlebox in the path to its mobile hosts.

use bytes::Bytes;
use hopline_core::{Instant, Payload, Seq32};
use hopline_proxy::{Connection, LastHopProgress, Packet, Pep, Transmit, Verdict};
use hopline_wire::ipv4::{Header, Protocol};
use hopline_wire::tcp::Segment;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Most that a machine has not taken notice of.
const MAX_PENDING: usize = 1024;

/// A machine in the path, such as Snoop, that knows what the station beside it knows: it forgets hosts that have gone, and with
/// [`StartState::Warm`](super::StartState::Warm) sees what hosts have received elsewhere. It takes notice at the next packet or timer.
#[derive(Debug)]
pub struct NotifiedMiddlebox<M> {
    machine: M,
    notifications: Receiver<Notification>,
}

/// Sending end of the notifications, for the station.
#[derive(Debug)]
pub(super) struct Notifier(SyncSender<Notification>);

#[derive(Debug)]
pub(super) enum Notification {
    /// Nothing more is forwarded to the host from here.
    Departed(Ipv4Addr),
    /// A packet that the host has.
    Delivered(Vec<u8>),
}

/// Returns the sending end for the station, and the middlebox that takes the notifications.
pub(super) fn notified<M>(machine: M) -> (Notifier, NotifiedMiddlebox<M>) {
    let (teller, news) = sync_channel(MAX_PENDING);
    (Notifier(teller), NotifiedMiddlebox { machine, notifications: news })
}

impl Notifier {
    /// Sends a notification. Returns `false` if too many wait already, or the middlebox is gone.
    pub(super) fn notify(&self, news: Notification) -> bool {
        self.0.try_send(news).is_ok()
    }
}

impl<M: Pep<Bytes>> NotifiedMiddlebox<M> {
    /// The machine.
    #[must_use]
    pub const fn machine(&self) -> &M {
        &self.machine
    }

    fn handle_notifications(&mut self, now: Instant) {
        while let Ok(news) = self.notifications.try_recv() {
            match news {
                Notification::Departed(mobile) => self.machine.handle_departure(mobile.into()),
                Notification::Delivered(packet) => self.observe(now, packet.into()),
            }
        }
    }

    /// Shows a TCP segment to the middlebox. Packets of other protocols are ignored.
    fn observe(&mut self, now: Instant, packet: Bytes) {
        let Ok((ip, payload)) = Header::parse(&packet) else { return };
        if ip.protocol == Protocol::Tcp
            && let Ok(segment) = Segment::parse(&ip, &payload)
        {
            // The host has it: whatever becomes of it here.
            let _ = self.machine.handle_packet_to_mobile(now, Packet::new(&ip, &segment), || packet.clone());
        }
    }
}

impl<M: Pep<Bytes>> Pep<Bytes> for NotifiedMiddlebox<M> {
    type Stats = M::Stats;

    fn handle_packet_to_mobile<P: Payload>(
        &mut self,
        now: Instant,
        packet: Packet<'_, P>,
        keep: impl FnOnce() -> Bytes,
    ) -> Verdict {
        self.handle_notifications(now);
        self.machine.handle_packet_to_mobile(now, packet, keep)
    }

    fn handle_packet_from_mobile<P: Payload>(&mut self, now: Instant, packet: Packet<'_, P>) -> Verdict {
        self.handle_notifications(now);
        self.machine.handle_packet_from_mobile(now, packet)
    }

    fn handle_progress(&mut self, now: Instant, connection: Connection, seq: Seq32, way: LastHopProgress) {
        self.machine.handle_progress(now, connection, seq, way);
    }

    fn handle_departure(&mut self, mobile: IpAddr) {
        self.machine.handle_departure(mobile);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.handle_notifications(now);
        self.machine.handle_timeout(now);
    }

    fn poll_transmit(&mut self) -> Option<Transmit<Bytes>> {
        self.machine.poll_transmit()
    }

    fn poll_timeout(&self) -> Option<Instant> {
        self.machine.poll_timeout()
    }

    fn stats(&self) -> Self::Stats {
        self.machine.stats()
    }

    fn connections(&self) -> usize {
        self.machine.connections()
    }
}
