//! Notifications from a base station to a middlebox in the path to its mobile hosts.

use bytes::Bytes;
use hopline_core::{Instant, Payload, Seq32};
use hopline_proxy::{Connection, Filter, OnTheWay, Packet, Transmit, Verdict};
use hopline_wire::ipv4::{Header, Protocol};
use hopline_wire::tcp::Segment;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

/// Most that a machine has not taken notice of.
const MOST: usize = 1024;

/// A machine in the path, such as Snoop, that knows what the station beside it knows: it forgets hosts that have gone, and with
/// [`Cold::No`](super::Cold::No) sees what hosts have received elsewhere. It takes notice at the next packet or timer.
#[derive(Debug)]
pub struct Informed<M> {
    machine: M,
    news: Receiver<News>,
}

/// Sending end of the notifications, for the station.
#[derive(Debug)]
pub(super) struct Teller(SyncSender<News>);

#[derive(Debug)]
pub(super) enum News {
    /// Nothing more is forwarded to the host from here.
    Parted(Ipv4Addr),
    /// A packet that the host has.
    Shown(Vec<u8>),
}

/// Returns the sending end for the station, and the middlebox that takes the notifications.
pub(super) fn informed<M>(machine: M) -> (Teller, Informed<M>) {
    let (teller, news) = sync_channel(MOST);
    (Teller(teller), Informed { machine, news })
}

impl Teller {
    /// Sends a notification. Returns `false` if too many wait already, or the middlebox is gone.
    pub(super) fn tell(&self, news: News) -> bool {
        self.0.try_send(news).is_ok()
    }
}

impl<M: Filter<Bytes>> Informed<M> {
    /// The machine.
    #[must_use]
    pub const fn machine(&self) -> &M {
        &self.machine
    }

    fn take_notice(&mut self, now: Instant) {
        while let Ok(news) = self.news.try_recv() {
            match news {
                News::Parted(mobile) => self.machine.forget_mobile(mobile.into()),
                News::Shown(packet) => self.look_at(now, packet.into()),
            }
        }
    }

    /// Shows a TCP segment to the middlebox. Packets of other protocols are ignored.
    fn look_at(&mut self, now: Instant, packet: Bytes) {
        let Ok((ip, payload)) = Header::parse(&packet) else { return };
        if ip.protocol == Protocol::Tcp
            && let Ok(segment) = Segment::parse(&ip, &payload)
        {
            // The host has it: whatever becomes of it here.
            let _ = self.machine.pass_to_mobile(now, Packet::new(&ip, &segment), || packet.clone());
        }
    }
}

impl<M: Filter<Bytes>> Filter<Bytes> for Informed<M> {
    type Stats = M::Stats;

    fn pass_to_mobile<P: Payload>(
        &mut self,
        now: Instant,
        packet: Packet<'_, P>,
        keep: impl FnOnce() -> Bytes,
    ) -> Verdict {
        self.take_notice(now);
        self.machine.pass_to_mobile(now, packet, keep)
    }

    fn pass_from_mobile<P: Payload>(&mut self, now: Instant, packet: Packet<'_, P>) -> Verdict {
        self.take_notice(now);
        self.machine.pass_from_mobile(now, packet)
    }

    fn note(&mut self, now: Instant, connection: Connection, seq: Seq32, way: OnTheWay) {
        self.machine.note(now, connection, seq, way);
    }

    fn forget_mobile(&mut self, mobile: IpAddr) {
        self.machine.forget_mobile(mobile);
    }

    fn handle_timeout(&mut self, now: Instant) {
        self.take_notice(now);
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
