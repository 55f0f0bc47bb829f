//! Flows: the applications and transport endpoints at both ends, and what they measure.

use crate::fingerprint::Observed;
use crate::outcome::{Connected, FlowOutcome, FlowSample, Packets};
use crate::packet::{Arrival, Body, Handle, Packet};
use crate::spec::{FlowSpec, Traffic};
use crate::stack::header;
use crate::trace::Tracer;
use crate::world::{Event, World};
use hopline_core::{
    Duration, FlowId, Instant, Length, LinkId, Machine, NodeId, Payload, Purpose, Seq32, Stream,
};
use hopline_transport::tcp::{Config, Endpoint, Estimator, Ports};
use hopline_wire::ipv4::{HEADER_LEN, Protocol};
use hopline_wire::{tcp, udp};
use std::net::Ipv4Addr;

/// The server side of every flow listens here (RFC 862 and others use well-known ports; this is the discard port).
const SERVER_PORT: u16 = 9;
/// Client ports start here, one a flow (RFC 6335: dynamic ports).
const FIRST_CLIENT_PORT: u16 = 49_152;
/// "As many bytes as the time allows": more than any run can carry.
const UNLIMITED: u64 = 1 << 50;

/// Which end of a flow.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Side {
    /// Where the data come from.
    Source,
    /// Where they go.
    Sink,
}

/// A flow in the middle of a run.
#[derive(Debug)]
pub(crate) struct Flow {
    id: FlowId,
    pub(crate) src: NodeId,
    dst: NodeId,
    start: Instant,
    stop: Instant,
    kind: Kind,
    bytes_received: u64,
    last_delivery: Instant,
    /// By the side that sends.
    packets: [Packets; 2],
    series: Vec<FlowSample>,
}

#[derive(Debug)]
enum Kind {
    Bulk(Box<Bulk>),
    Cbr(Cbr),
}

#[derive(Debug)]
struct Bulk {
    /// Bytes to transfer; `None`: no end.
    size: Option<u64>,
    ends: [End; 2],
}

/// A TCP endpoint and when it will be woken.
#[derive(Debug)]
struct End {
    endpoint: Endpoint<Length>,
    armed: Instant,
}

#[derive(Debug)]
struct Cbr {
    packet_bytes: u32,
    interval: Duration,
    sent: u32,
    received: u64,
    /// One bit for each packet number received.
    seen: Vec<u64>,
}

impl Flow {
    pub(crate) fn new(spec: &FlowSpec, id: u32, (seed, run): (u64, u64)) -> Self {
        let kind = match &spec.traffic {
            Traffic::Bulk { tcp, bytes } => {
                let mut stream = Stream::keyed(seed, run, u64::from(id), Purpose::Transport);
                let tcp = with_clock_phase(*tcp, &mut stream);
                let client = FIRST_CLIENT_PORT + (id % 16_384) as u16;
                let mut end = |local, remote| End {
                    endpoint: Endpoint::new(tcp, Ports { local, remote }, Seq32(stream.bits() as u32))
                        .expect("a specification holds valid configurations"),
                    armed: Instant::FAR_FUTURE,
                };
                let ends = [end(client, SERVER_PORT), end(SERVER_PORT, client)];
                Kind::Bulk(Box::new(Bulk { size: *bytes, ends }))
            }
            Traffic::Cbr { packet_bytes, interval } => Kind::Cbr(Cbr {
                packet_bytes: *packet_bytes,
                interval: *interval,
                sent: 0,
                received: 0,
                seen: Vec::new(),
            }),
        };
        Self {
            id: FlowId(id),
            src: spec.src,
            dst: spec.dst,
            start: spec.start,
            stop: spec.stop,
            kind,
            bytes_received: 0,
            last_delivery: spec.start,
            packets: Default::default(),
            series: Vec::new(),
        }
    }

    /// Notes the state at `now`.
    pub(crate) fn sample(&mut self, now: Instant, queue_packets: u32) {
        let (cwnd_bytes, srtt) = match &self.kind {
            Kind::Bulk(bulk) => {
                let source = &bulk.ends[0].endpoint;
                (u64::from(source.cwnd()), source.srtt())
            }
            Kind::Cbr(_) => (0, None),
        };
        let bytes_received = self.bytes_received;
        self.series.push(FlowSample { at: now, bytes_received, cwnd_bytes, srtt, queue_packets });
    }

    /// The result at the end of the run, `now`.
    pub(crate) fn outcome(mut self, now: Instant) -> FlowOutcome {
        let [data, back] = core::mem::take(&mut self.packets);
        let bytes_received = self.bytes_received;
        let end = if self.is_complete() { self.last_delivery } else { self.stop.min(now) };
        let (segments_sent, retransmissions, timeouts, segments_received) = match &self.kind {
            Kind::Bulk(bulk) => {
                let source = &bulk.ends[0].endpoint;
                let stats = source.stats();
                let distinct = bytes_received.div_ceil(source.effective_mss().into());
                (stats.segments_sent, stats.retransmissions, stats.timeouts, distinct)
            }
            Kind::Cbr(cbr) => (u64::from(cbr.sent), 0, 0, cbr.received),
        };
        FlowOutcome {
            bytes_received,
            active: end.since(self.start),
            segments_sent,
            retransmissions,
            timeouts,
            segments_received,
            connected: if bytes_received > 0 { Connected::Yes } else { Connected::Never },
            completion: self.is_complete().then(|| self.last_delivery.since(self.start)),
            data,
            back,
            series: self.series,
        }
    }

    /// The end that has this address.
    pub(crate) fn side_of(&self, address: Ipv4Addr) -> Side {
        if address == self.src.ipv4() { Side::Source } else { Side::Sink }
    }

    /// The run is over. `held`: packets and bytes under way, by the side that sent them.
    pub(crate) fn settle(&mut self, held: [(u64, u64); 2]) {
        for (packets, (held, held_bytes)) in self.packets.iter_mut().zip(held) {
            packets.settle(held, held_bytes);
        }
    }

    /// Whether a transfer of given size has arrived whole.
    fn is_complete(&self) -> bool {
        match &self.kind {
            Kind::Bulk(bulk) => bulk.size.is_some_and(|size| self.bytes_received >= size),
            Kind::Cbr(_) => false,
        }
    }

    /// Counts what arrives, except what was still under way when the flow stopped.
    fn take_delivery(&mut self, now: Instant, bytes: u64) {
        if now < self.stop {
            self.bytes_received += bytes;
            self.last_delivery = now;
        }
    }
}

/// The configuration with the phase of a ticking clock drawn: no two hosts were started at the same moment.
fn with_clock_phase(mut config: Config, stream: &mut Stream) -> Config {
    if let Estimator::Ticks { phase } = &mut config.rto.estimator {
        *phase = stream.duration_below(config.rto.granularity);
    }
    config
}

impl Bulk {
    fn end(&mut self, side: Side) -> &mut End {
        &mut self.ends[side as usize]
    }
}

impl Cbr {
    /// Takes packet `number` with `bytes` of data. Returns how many of them are new: all or none.
    fn take(&mut self, number: u32, bytes: u64) -> u64 {
        let (word, bit) = ((number / 64) as usize, 1 << (number % 64));
        if self.seen.len() <= word {
            self.seen.resize(word + 1, 0);
        }
        if self.seen[word] & bit != 0 {
            return 0;
        }
        self.seen[word] |= bit;
        self.received += 1;
        bytes
    }
}

impl<T: Tracer> World<T> {
    /// The application of a flow starts.
    pub(crate) fn start_flow(&mut self, flow: u32) {
        let now = self.now;
        match &mut self.flows[flow as usize].kind {
            Kind::Bulk(bulk) => {
                let size = bulk.size;
                bulk.end(Side::Sink).endpoint.listen().expect("a new endpoint can listen");
                let source = &mut bulk.end(Side::Source).endpoint;
                source.connect(now).expect("a new endpoint can connect");
                source
                    .send(now, Length(size.unwrap_or(UNLIMITED)))
                    .expect("the send buffer of a simulated application is unlimited");
                if size.is_some() {
                    source.close(now).expect("an open endpoint can be closed");
                }
                self.drive_endpoint(flow, Side::Source);
            }
            Kind::Cbr(_) => self.cbr_tick(flow),
        }
    }

    /// The application of a flow stops: what was delivered before now counts, and a connection is aborted.
    pub(crate) fn stop_flow(&mut self, flow: u32) {
        let now = self.now;
        if let Kind::Bulk(bulk) = &mut self.flows[flow as usize].kind {
            bulk.end(Side::Source).endpoint.abort(now);
            self.drive_endpoint(flow, Side::Source);
        }
    }

    /// A CBR flow sends a packet.
    pub(crate) fn cbr_tick(&mut self, flow: u32) {
        let state = &mut self.flows[flow as usize];
        let Kind::Cbr(cbr) = &mut state.kind else { return };
        if self.now >= state.stop {
            return;
        }
        let (number, interval, packet_bytes) = (cbr.sent, cbr.interval, cbr.packet_bytes);
        cbr.sent += 1;
        let (id, src, dst) = (state.id, state.src, state.dst);
        let datagram = udp::Datagram {
            src_port: FIRST_CLIENT_PORT + (flow % 16_384) as u16,
            dst_port: SERVER_PORT,
            payload: Length(packet_bytes.into()),
        };
        let len_bytes = (HEADER_LEN + udp::HEADER_LEN) as u32 + packet_bytes + self.extra_header_bytes;
        let ip = header(src.ipv4(), dst.ipv4(), Protocol::Udp);
        let body = Body::Udp { datagram, number };
        self.send_of_flow(src, Packet { ip, body, len_bytes, flow: Some(id), made: self.now, serial: 0 });
        self.scheduler.schedule(self.now + interval, Event::CbrTick { flow });
    }

    /// A packet has reached the node it is for.
    pub(crate) fn deliver(&mut self, node: u32, handle: Handle) {
        let now = self.now;
        let packet = self.packets.get(handle);
        self.fingerprint.observe(now, Observed::Delivered, node, packet.len_bytes);
        let Some(flow) = packet.flow else { return };
        let state = &mut self.flows[flow.index()];
        let (len_bytes, delay) = (packet.len_bytes, now.since(packet.made));
        let forwarded = packet.ip.ttl - handle.ttl;
        let side = state.side_of(packet.ip.src);
        if self.packets.arrive(handle) == Arrival::First {
            state.packets[side as usize].receive(now, len_bytes, delay, forwarded);
        }
        let packet = self.packets.get(handle);
        match (&packet.body, &mut state.kind) {
            (Body::Tcp(segment), Kind::Bulk(bulk)) => {
                let side = if segment.dst_port == SERVER_PORT { Side::Sink } else { Side::Source };
                bulk.end(side).endpoint.handle_packet(now, LinkId::ONLY, *segment);
                self.drive_endpoint(flow.0, side);
            }
            (Body::Udp { datagram, number }, Kind::Cbr(cbr)) if now < state.stop => {
                let bytes = cbr.take(*number, datagram.payload.len());
                state.take_delivery(now, bytes);
            }
            _ => {}
        }
    }

    /// An endpoint's wake-up is due.
    pub(crate) fn wake_endpoint(&mut self, flow: u32, side: Side) {
        let now = self.now;
        let Kind::Bulk(bulk) = &mut self.flows[flow as usize].kind else { return };
        let end = bulk.end(side);
        if end.armed == now {
            end.armed = Instant::FAR_FUTURE;
            end.endpoint.handle_timeout(now);
            self.drive_endpoint(flow, side);
        }
    }

    /// Drains an endpoint: segments, data for the application, events.
    fn drive_endpoint(&mut self, flow: u32, side: Side) {
        let now = self.now;
        loop {
            let state = &mut self.flows[flow as usize];
            let Kind::Bulk(bulk) = &mut state.kind else { return };
            let endpoint = &mut bulk.end(side).endpoint;
            if let Some(segment) = endpoint.poll_transmit(now) {
                self.send_segment(flow, side, segment);
            } else if let Some(data) = endpoint.recv() {
                state.take_delivery(now, data.len());
            } else if endpoint.poll_event().is_none() {
                break;
            }
        }
        let Kind::Bulk(bulk) = &mut self.flows[flow as usize].kind else { return };
        let end = bulk.end(side);
        if let Some((at, _)) = end.endpoint.poll_timeout()
            && at < end.armed
        {
            end.armed = at;
            self.scheduler.schedule(at, Event::Endpoint { flow, side });
        }
    }

    fn send_segment(&mut self, flow: u32, side: Side, segment: tcp::Segment<Length>) {
        let state = &self.flows[flow as usize];
        let (from, to) = match side {
            Side::Source => (state.src, state.dst),
            Side::Sink => (state.dst, state.src),
        };
        let len_bytes = (HEADER_LEN + segment.header_len()) as u32 + segment.payload.len() as u32;
        let packet = Packet {
            ip: header(from.ipv4(), to.ipv4(), Protocol::Tcp),
            body: Body::Tcp(segment),
            len_bytes: len_bytes + self.extra_header_bytes,
            flow: Some(FlowId(flow)),
            made: self.now,
            serial: 0,
        };
        self.send_of_flow(from, packet);
    }

    /// Hands a packet of a flow to the IP layer of `from`, one of its ends.
    fn send_of_flow(&mut self, from: NodeId, packet: Packet) {
        let flow = packet.flow.expect("the caller names the flow");
        let flow = &mut self.flows[flow.index()];
        let side = flow.side_of(packet.ip.src);
        flow.packets[side as usize].send(self.now, packet.len_bytes);
        self.originate(from, packet);
    }
}
