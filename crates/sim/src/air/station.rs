//! A radio with its MAC and its interface queue.

use super::arp::Addresses;
use crate::alarm::Alarm;
use crate::packet::Handle;
use crate::queueing::{Queued, queue};
use crate::spec::{AddressResolution, Machines, RadioInterface, RadioSpec};
use hopline_core::{Instant, Machine, NodeId, Purpose, Stream};
use hopline_queue::InterfaceQueue;
use hopline_radio::mac::config::Tap;
use hopline_radio::mac::{self, Activity, Mac, Signal};
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
    carrier: Activity,
    pub(super) node: NodeId,
    /// The MAC's.
    pub(super) alarm: Alarm,
    pub(super) mac: Mac<Handle>,
    pub(super) queue: InterfaceQueue<Queued>,
    /// Between the network layer and the queue.
    pub(super) down: VecDeque<Queued>,
    /// Between the MAC and the network layer.
    pub(super) up: VecDeque<(Handle, MacAddr)>,
    /// `None`: all addresses are known.
    pub(super) addresses: Option<Box<Addresses>>,
    pub(super) errors: ErrorProcess,
    pub(super) error_stream: Stream,
    pub(super) address: MacAddr,
}

impl Station {
    pub(super) fn new(
        spec: &RadioSpec,
        radio: &RadioInterface,
        tap: Tap,
        machines: &Machines,
        (seed, run): (u64, u64),
    ) -> Self {
        let stream = |purpose| Stream::keyed(seed, run, radio.key(), purpose);
        let mac = mac::Config { tap, ..spec.mac.clone() };
        Self {
            node: radio.node,
            address: radio.address,
            mac: Mac::new(mac, radio.address, stream(Purpose::Backoff)),
            receiver: Receiver::default(),
            carrier: Activity::Quiet,
            alarm: Alarm::OFF,
            queue: queue(&spec.queue, machines, || stream(Purpose::Queue)),
            down: VecDeque::new(),
            up: VecDeque::new(),
            addresses: match spec.address_resolution {
                AddressResolution::Known => None,
                AddressResolution::Arp => {
                    Some(Box::new(Addresses::new(spec.arp_jitter, stream(Purpose::Arp))))
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
    pub(super) fn held(&self) -> usize {
        let unresolved = self.addresses.as_ref().map_or(0, |addresses| addresses.held());
        self.down.len() + self.queue.len() + self.up.len() + self.mac.bodies() + unresolved
    }

    /// Returns the packets that wait here, each with its next hop: on the way to the interface queue, in it,
    /// and with the MAC, which holds a packet until it is acknowledged or given up.
    pub(super) fn waiting(&self) -> impl Iterator<Item = (Handle, MacAddr)> {
        let queued = self.down.iter().chain(self.queue.iter()).map(|queued| (queued.handle, queued.to));
        queued.chain(self.mac.held().map(|msdu| (msdu.body, msdu.to)))
    }
}
