//! The wireless side of the world: frames in the air, receivers, MACs and interface queues.

use crate::fingerprint::Observed;
use crate::medium::Link;
use crate::node::{Queued, Radio};
use crate::packet::Handle;
use crate::queueing::Owner;
use crate::trace::{Place, TraceEvent, Tracer};
use crate::world::{Air, Event, World};
use hopline_core::{Instant, LinkId, Machine, NodeId};
use hopline_radio::mac::{self, Msdu, Reception, Signal, Transmission};
use hopline_radio::phy::reception::{Arrival, Verdict};
use hopline_wire::dot11::{Frame, MacAddr};

impl<T: Tracer> World<T> {
    /// Hands a packet to the interface of `node`, as soon as the address that it is for is known.
    pub(crate) fn send_over_radio(&mut self, node: u32, queued: Queued) {
        if self.is_resolved(node, queued) {
            self.descend(node, queued);
        }
    }

    /// Hands a packet to the interface of `node`, through the link layer.
    pub(crate) fn descend(&mut self, node: u32, queued: Queued) {
        let delay = self.air().link_layer_delay;
        if delay.is_zero() {
            self.enqueue(node, queued);
        } else {
            self.radio(node).down.push_back(queued);
            self.scheduler.schedule(self.now + delay, Event::LinkLayerDown { node });
        }
    }

    /// A packet has crossed the link layer downward.
    pub(crate) fn link_layer_down(&mut self, node: u32) {
        if let Some(queued) = self.radio(node).down.pop_front() {
            self.enqueue(node, queued);
        }
    }

    /// A packet has crossed the link layer upward.
    pub(crate) fn link_layer_up(&mut self, node: u32) {
        if let Some((handle, from)) = self.radio(node).up.pop_front() {
            self.receive_from_radio(node, handle, from);
        }
    }

    /// Who decodes what `node` sends, were there nothing else on the air now.
    pub(crate) fn in_range(&mut self, node: u32) -> Vec<u32> {
        let now = self.now;
        self.air.as_mut().map_or_else(Vec::new, |air| air.medium.in_range(now, NodeId(node)))
    }

    /// Takes the packets for `next_hop` out of the queue of `node`.
    pub(crate) fn purge_queue(&mut self, node: u32, next_hop: MacAddr) -> Vec<Handle> {
        let mut purged = Vec::new();
        let (now, packets) = (self.now, &self.packets);
        let queue = &mut radio_of(&mut self.nodes, node).queue;
        queue.remove_matching(
            now,
            |q| q.to == next_hop,
            |q| purged.push(q.handle),
            |q| packets.len(q.handle),
        );
        purged
    }

    /// A transmission begins at its receivers from number `next` on, one after the other as long as nothing else
    /// happens in between.
    pub(crate) fn flight_begins(&mut self, flight: u32, mut next: u32) {
        loop {
            let air = self.air.as_ref().expect("there is a flight, so there is air");
            let in_flight = air.medium.flight(flight);
            let Some(&heard) = in_flight.heard.get(next as usize) else { return };
            let at = in_flight.start + heard.delay;
            if at > self.now && !self.nothing_until(at) {
                self.scheduler.schedule_as(in_flight.order, at, Event::FlightBegins { flight, next });
                return;
            }
            let arrival = Arrival {
                id: flight,
                power_w: heard.power_w,
                end: in_flight.end + heard.delay,
                rate: in_flight.rate,
                bits: in_flight.bits,
            };
            let radio = radio_of(&mut self.nodes, heard.node);
            let masked = radio.receiver.begin(&air.thresholds, at, arrival);
            if let Some(until) = masked {
                radio.mac.handle_signal(at, Signal::Masked { until });
            }
            radio.report_carrier(at);
            self.now = at;
            self.events += 1;
            next += 1;
        }
    }

    /// A transmission ends at its sender, and goes on ending at its receivers.
    pub(crate) fn flight_ends(&mut self, flight: u32, sender: u32) {
        let now = self.now;
        let radio = self.radio(sender);
        radio.receiver.transmit_end();
        radio.mac.handle_signal(now, Signal::TransmitEnd);
        radio.report_carrier(now);
        self.drive_mac(sender);
        let order = self.scheduler.reserve();
        self.air.as_mut().expect("there is a flight, so there is air").medium.end(flight, order);
        self.flight_lands(flight, 0);
    }

    /// A transmission ends at its receivers from number `next` on, one after the other as long as nothing else happens
    /// in between.
    pub(crate) fn flight_lands(&mut self, flight: u32, mut next: u32) {
        loop {
            let in_flight = self.air().medium.flight(flight);
            let Some(&heard) = in_flight.heard.get(next as usize) else { break };
            let at = in_flight.end + heard.delay;
            if at > self.now && !self.nothing_until(at) {
                let order = in_flight.order;
                self.scheduler.schedule_as(order, at, Event::FlightLands { flight, next });
                return;
            }
            self.now = at;
            self.events += 1;
            self.land_at(flight, heard.node, heard.link);
            next += 1;
        }
        let medium = &mut self.air.as_mut().expect("there is a flight, so there is air").medium;
        medium.land(flight);
        if let Some(&body) = medium.flight(flight).frame.body() {
            self.packets.release(body);
        }
    }

    /// A MAC's wake-up is due.
    pub(crate) fn wake_mac(&mut self, node: u32) {
        let now = self.now;
        let radio = self.radio(node);
        if radio.alarm.rings(now) {
            radio.mac.handle_timeout(now);
            self.drive_mac(node);
        }
    }

    fn land_at(&mut self, flight: u32, node: u32, link: Link) {
        let now = self.now;
        let air = self.air.as_ref().expect("there is a flight, so there is air");
        let in_flight = air.medium.flight(flight);
        let radio = radio_of(&mut self.nodes, node);
        let verdict = radio.receiver.end(&air.thresholds, now, flight);
        let reception = match verdict {
            Verdict::Missed => None,
            Verdict::Damaged => Some(Reception::Undecodable),
            Verdict::Decodable { probability } => {
                let airtime = in_flight.end - in_flight.start;
                // The outage last: errors are drawn as without it.
                let intact = (probability >= 1.0 || radio.error_stream.bernoulli(probability))
                    && !radio.errors.corrupts(now, in_flight.bits.into(), airtime, &mut radio.error_stream)
                    && link == Link::Up;
                Some(if intact { Reception::Frame(in_flight.frame) } else { Reception::Undecodable })
            }
        };
        if let Some(reception) = reception {
            let what = match reception {
                Reception::Frame(_) => Observed::Decoded,
                Reception::Undecodable => Observed::Damaged,
            };
            self.fingerprint.observe(now, what, node, in_flight.bits);
            if T::ENABLED && what == Observed::Decoded {
                let frame = in_flight.frame.map(|body| self.packets.view(body));
                self.tracer.note(now, NodeId(node), TraceEvent::FrameReceived(&frame));
            }
            radio.mac.handle_packet(now, LinkId::ONLY, reception);
        }
        radio.report_carrier(now);
        self.drive_mac(node);
    }

    /// Drains a MAC: frames into the air, packets upward, and the next packet from the queue; then arms its wake-up.
    fn drive_mac(&mut self, node: u32) {
        let now = self.now;
        let radio = radio_of(&mut self.nodes, node);
        // Most stations only overhear, and have nothing to say.
        if !radio.mac.is_drained() || (radio.mac.is_ready() && !radio.queue.is_empty()) {
            self.drain_mac(node);
        }
        let radio = radio_of(&mut self.nodes, node);
        let wanted = radio.mac.poll_timeout().map(|(at, _)| at);
        radio.alarm.set(now, wanted, &mut self.scheduler, Event::Mac { node });
    }

    #[inline(never)] // Keeps its large frame off the path that most receptions take.
    fn drain_mac(&mut self, node: u32) {
        let now = self.now;
        loop {
            let radio = radio_of(&mut self.nodes, node);
            if let Some(transmission) = radio.mac.poll_transmit(now) {
                self.transmit(node, transmission);
            } else if let Some(event) = radio.mac.poll_event() {
                self.handle_mac_event(node, event);
            } else if !(radio.mac.is_ready() && self.feed_mac(node)) {
                break;
            }
        }
    }

    fn feed_mac(&mut self, node: u32) -> bool {
        let now = self.now;
        let mut owner = Owner::new(&self.packets);
        let queued = radio_of(&mut self.nodes, node).queue.dequeue(now, &mut owner);
        let told = owner.told();
        self.note_told((Place::Radio, node), told);
        let Some(queued) = queued else { return false };
        let radio = radio_of(&mut self.nodes, node);
        let len_bytes = self.packets.len(queued.handle);
        radio.mac.send(now, Msdu { body: queued.handle, len_bytes, to: queued.to });
        true
    }

    fn enqueue(&mut self, node: u32, queued: Queued) {
        let mut owner = Owner::new(&self.packets);
        let enqueued = radio_of(&mut self.nodes, node).queue.enqueue(self.now, queued, &mut owner);
        let told = owner.told();
        self.note_enqueued((Place::Radio, node), enqueued, told);
        if self.radio(node).mac.is_ready() {
            self.drive_mac(node);
        }
    }

    fn transmit(&mut self, node: u32, transmission: Transmission<Handle>) {
        let Transmission { frame, rate, len_bytes, airtime } = transmission;
        let now = self.now;
        let frames = &mut self.nodes[node as usize].frames;
        let (what, count) = match frame {
            Frame::Rts { .. } => (Observed::TransmitRts, &mut frames.rts),
            Frame::Cts { .. } => (Observed::TransmitCts, &mut frames.cts),
            Frame::Ack { .. } => (Observed::TransmitAck, &mut frames.ack),
            Frame::Data { body, .. } | Frame::QosData { body, .. } => {
                self.packets.retain(body);
                (Observed::TransmitData, &mut frames.data)
            }
            Frame::BlockAckReq { .. } => (Observed::TransmitBlockAckReq, &mut frames.block_ack_req),
            Frame::BlockAck { .. } => (Observed::TransmitBlockAck, &mut frames.block_ack),
        };
        *count += 1;
        self.fingerprint.observe(now, what, node, len_bytes);
        if T::ENABLED {
            let frame = frame.map(|body| self.packets.view(body));
            self.tracer.note(now, NodeId(node), TraceEvent::FrameSent(&frame));
        }
        let radio = radio_of(&mut self.nodes, node);
        radio.receiver.transmit_begin();
        radio.report_carrier(now);
        let medium = &mut self.air.as_mut().expect("a radio transmits into air").medium;
        let order = self.scheduler.reserve();
        let flight = medium.launch(now, NodeId(node), frame, (rate, 8 * len_bytes), airtime, order);
        if let Some(first) = medium.flight(flight).heard.first() {
            self.scheduler.schedule_as(order, now + first.delay, Event::FlightBegins { flight, next: 0 });
        }
        self.scheduler.schedule(now + airtime, Event::FlightEnds { flight, sender: node });
    }

    fn handle_mac_event(&mut self, node: u32, event: mac::Event<Handle>) {
        match event {
            mac::Event::Deliver { body, from, .. } => {
                self.packets.retain(body);
                self.deliver_upward(node, body, from);
            }
            mac::Event::Held { body } => self.packets.retain(body),
            mac::Event::DeliverHeld { body, from } => self.deliver_upward(node, body, from),
            mac::Event::Sent(msdu) => self.packets.release(msdu.body),
            mac::Event::Failed(msdu) => self.link_failed(node, msdu.body, msdu.to),
            mac::Event::Overheard { body, from, to } => self.overhear(node, body, from, to),
        }
    }

    /// Hands a packet upward, through the link layer, and with it the share that was taken in it.
    fn deliver_upward(&mut self, node: u32, handle: Handle, from: MacAddr) {
        let delay = self.air().link_layer_delay;
        if delay.is_zero() {
            self.receive_from_radio(node, handle, from);
        } else {
            self.radio(node).up.push_back((handle, from));
            self.scheduler.schedule(self.now + delay, Event::LinkLayerUp { node });
        }
    }

    /// Whether no event is due before or at `at`, which is within the horizon.
    fn nothing_until(&self, at: Instant) -> bool {
        at <= self.horizon && at < self.scheduler.next_at()
    }

    fn air(&self) -> &Air {
        self.air.as_ref().expect("only radios ask for air, and a world with radios has it")
    }

    fn radio(&mut self, node: u32) -> &mut Radio {
        radio_of(&mut self.nodes, node)
    }
}

impl Radio {
    /// Tells the MAC if the carrier has changed.
    fn report_carrier(&mut self, now: Instant) {
        let carrier = self.receiver.activity();
        if carrier != self.carrier {
            self.carrier = carrier;
            self.mac.handle_signal(now, Signal::Carrier(carrier));
        }
    }
}

fn radio_of(nodes: &mut [crate::node::Node], node: u32) -> &mut Radio {
    nodes[node as usize].radio.as_mut().expect("events of a radio go to nodes that have one")
}
