//! A radio with its MAC and its interface queue.

use super::arp::ArpCache;
use crate::alarm::WakeUp;
use crate::packet::Handle;
use crate::queue_access::{QueuedPacket, new_queue};
use crate::spec::{AddressResolution, CustomAlgorithms, RadioInterface, RadioSpec};
use hopline_core::{Instant, NodeId, Purpose, RandomStream, StateMachine};
use hopline_queue::InterfaceQueue;
use hopline_radio::mac::config::Tap;
use hopline_radio::mac::{self, Mac, RadioState, Signal};
use hopline_radio::phy::errors::ErrorProcess;
use hopline_radio::phy::reception::Receiver;
use hopline_wire::dot11::MacAddr;
use std::collections::VecDeque;

/// Laid out as written: what every signal touches comes first.
#[derive(Debug)]
#[repr(C)]
pub(super) struct Station {
    pub(super) receiver: Receiver,
    /// The carrier as last reported to the MAC.
    carrier: RadioState,
    pub(super) node: NodeId,
    /// The MAC's.
    pub(super) alarm: WakeUp,
    pub(super) mac: Mac<Handle>,
    pub(super) queue: InterfaceQueue<QueuedPacket>,
    /// Between the network layer and the queue.
    pub(super) sending_delay: VecDeque<QueuedPacket>,
    /// Between the MAC and the network layer.
    pub(super) receiving_delay: VecDeque<(Handle, MacAddr)>,
    /// `None`: all addresses are known.
    pub(super) arp_cache: Option<Box<ArpCache>>,
    pub(super) errors: ErrorProcess,
    pub(super) error_stream: RandomStream,
    pub(super) address: MacAddr,
}

impl Station {
    pub(super) fn new(
        spec: &RadioSpec,
        radio: &RadioInterface,
        tap: Tap,
        machines: &CustomAlgorithms,
        (seed, run): (u64, u64),
    ) -> Self {
        let stream = |purpose| RandomStream::keyed(seed, run, radio.key(), purpose);
        let mac = mac::Config { tap, ..spec.mac.clone() };
        Self {
            node: radio.node,
            address: radio.address,
            mac: Mac::new(mac, radio.address, stream(Purpose::Backoff)),
            receiver: Receiver::default(),
            carrier: RadioState::Idle,
            alarm: WakeUp::OFF,
            queue: new_queue(&spec.queue, machines, || stream(Purpose::Queue)),
            sending_delay: VecDeque::new(),
            receiving_delay: VecDeque::new(),
            arp_cache: match spec.address_resolution {
                AddressResolution::Known => None,
                AddressResolution::Arp => {
                    Some(Box::new(ArpCache::new(spec.arp_jitter, stream(Purpose::Arp))))
                }
            },
            errors: ErrorProcess::new(spec.errors),
            error_stream: stream(Purpose::Errors),
        }
    }

    /// Tells the MAC if the carrier has changed.
    pub(super) fn report_carrier(&mut self, now: Instant) {
        let carrier = self.receiver.activity();
        if carrier != self.carrier {
            self.carrier = carrier;
            self.mac.handle_signal(now, Signal::Carrier(carrier));
        }
    }

    /// Returns the number of packets that it has, those for the network layer included.
    pub(super) fn held_packets(&self) -> usize {
        let unresolved = self.arp_cache.as_ref().map_or(0, |addresses| addresses.waiting_packets());
        self.sending_delay.len()
            + self.queue.len()
            + self.receiving_delay.len()
            + self.mac.stored_bodies()
            + unresolved
    }

    /// Returns the packets that wait here, each with its next hop: on the way to the interface queue, in it,
    /// and with the MAC, which holds a packet until it is acknowledged or given up.
    pub(super) fn waiting_packets(&self) -> impl Iterator<Item = (Handle, MacAddr)> {
        let queued =
            self.sending_delay.iter().chain(self.queue.iter()).map(|queued| (queued.handle, queued.to));
        queued.chain(self.mac.pending_msdus().map(|msdu| (msdu.body, msdu.to)))
    }
}
