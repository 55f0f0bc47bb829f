//! Logs of the calls that controllers get, and of those that quinn makes.

use crate::support::scenario;
use hopline_quic::quinn_proto::RttEstimator as QuinnRtt;
use hopline_quic::quinn_proto::congestion::{Controller, ControllerFactory, ControllerMetrics};
use hopline_quic::s2n_quic_core::random::Generator;
use hopline_quic::s2n_quic_core::recovery::RttEstimator;
use hopline_quic::s2n_quic_core::recovery::congestion_controller::{
    CongestionController, Endpoint, PathInfo, Publisher,
};
use hopline_quic::s2n_quic_core::time::Timestamp;
use hopline_quic::{ControllerFactory as QuinnFactory, Controllers};
use hopline_scenario::CustomAlgorithms;
use hopline_sim::{Outcome, simulate};
use std::any::Any;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Call that a controller got, or quinn made.
#[derive(Clone, Copy, Debug)]
pub(super) enum Call {
    /// Packet of so many bytes; time that is still missing until the controller lets it depart.
    Sent {
        bytes: u64,
        early: Duration,
        app_limited: Option<bool>,
    },
    RttUpdate {
        latest: Duration,
        smoothed: Duration,
    },
    /// Bytes in flight by the controller after it.
    Ack {
        in_flight: u64,
        random: u64,
    },
    Lost {
        bytes: u64,
        persistent: bool,
        starts_burst: bool,
        window: u64,
    },
    Marks(u64),
    Discarded(u64),
    /// End of an ACK frame, with quinn's bytes in flight.
    QuinnEndAcks(u64),
    /// Bytes of quinn's report of losses.
    QuinnLost {
        bytes: u64,
        persistent: bool,
    },
}

/// Calls to one controller, in order.
pub(super) type Log = Arc<Mutex<Vec<Call>>>;

/// Controller of s2n-quic that logs its calls.
#[derive(Clone, Debug)]
pub(super) struct Recorder<C> {
    inner: C,
    log: Log,
}

impl<C> Recorder<C> {
    fn log(&self, call: Call) {
        self.log.lock().expect("no test panics with it").push(call);
    }
}

impl<C: CongestionController> CongestionController for Recorder<C> {
    type PacketInfo = C::PacketInfo;

    fn congestion_window(&self) -> u32 {
        self.inner.congestion_window()
    }

    fn bytes_in_flight(&self) -> u32 {
        self.inner.bytes_in_flight()
    }

    fn is_congestion_limited(&self) -> bool {
        self.inner.is_congestion_limited()
    }

    fn requires_fast_retransmission(&self) -> bool {
        self.inner.requires_fast_retransmission()
    }

    fn on_packet_sent<P: Publisher>(
        &mut self,
        sent: Timestamp,
        bytes: usize,
        app_limited: Option<bool>,
        rtt: &RttEstimator,
        publisher: &mut P,
    ) -> C::PacketInfo {
        let departure = self.inner.earliest_departure_time();
        let departure = departure.filter(|&at| at > sent);
        let early = departure.map_or(Duration::ZERO, |at| at - sent);
        self.log(Call::Sent { bytes: bytes as u64, early, app_limited });
        self.inner.on_packet_sent(sent, bytes, app_limited, rtt, publisher)
    }

    fn on_rtt_update<P: Publisher>(
        &mut self,
        sent: Timestamp,
        now: Timestamp,
        rtt: &RttEstimator,
        publisher: &mut P,
    ) {
        self.log(Call::RttUpdate { latest: rtt.latest_rtt(), smoothed: rtt.smoothed_rtt() });
        self.inner.on_rtt_update(sent, now, rtt, publisher);
    }

    fn on_ack<P: Publisher>(
        &mut self,
        sent: Timestamp,
        bytes: usize,
        info: C::PacketInfo,
        rtt: &RttEstimator,
        random: &mut dyn Generator,
        now: Timestamp,
        publisher: &mut P,
    ) {
        self.inner.on_ack(sent, bytes, info, rtt, random, now, publisher);
        let in_flight = self.inner.bytes_in_flight().into();
        let mut drawn = [0; 8];
        random.public_random_fill(&mut drawn);
        self.log(Call::Ack { in_flight, random: u64::from_le_bytes(drawn) });
    }

    fn on_packet_lost<P: Publisher>(
        &mut self,
        bytes: u32,
        info: C::PacketInfo,
        persistent: bool,
        starts_burst: bool,
        random: &mut dyn Generator,
        now: Timestamp,
        publisher: &mut P,
    ) {
        self.inner.on_packet_lost(bytes, info, persistent, starts_burst, random, now, publisher);
        let window = self.inner.congestion_window().into();
        self.log(Call::Lost { bytes: bytes.into(), persistent, starts_burst, window });
    }

    fn on_explicit_congestion<P: Publisher>(&mut self, marks: u64, now: Timestamp, publisher: &mut P) {
        self.log(Call::Marks(marks));
        self.inner.on_explicit_congestion(marks, now, publisher);
    }

    fn on_mtu_update<P: Publisher>(&mut self, datagram: u16, publisher: &mut P) {
        self.inner.on_mtu_update(datagram, publisher);
    }

    fn on_packet_discarded<P: Publisher>(&mut self, bytes: usize, publisher: &mut P) {
        self.log(Call::Discarded(bytes as u64));
        self.inner.on_packet_discarded(bytes, publisher);
    }

    fn earliest_departure_time(&self) -> Option<Timestamp> {
        self.inner.earliest_departure_time()
    }
}

/// Makes recorders around the controllers of another endpoint.
#[derive(Debug)]
pub(super) struct Recorders<E> {
    inner: E,
    log: Log,
}

impl<E> Recorders<E> {
    pub(super) const fn new(inner: E, log: Log) -> Self {
        Self { inner, log }
    }
}

impl<E: Endpoint> Endpoint for Recorders<E> {
    type CongestionController = Recorder<E::CongestionController>;

    fn new_congestion_controller(&mut self, path: PathInfo<'_>) -> Self::CongestionController {
        Recorder { inner: self.inner.new_congestion_controller(path), log: self.log.clone() }
    }
}

/// Controller of quinn's shape that logs what quinn reports, and passes it on.
struct Spy {
    inner: Box<dyn Controller>,
    log: Log,
}

impl Controller for Spy {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.inner.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, limited: bool, rtt: &QuinnRtt) {
        self.inner.on_ack(now, sent, bytes, limited, rtt);
    }

    fn on_end_acks(&mut self, now: Instant, in_flight: u64, limited: bool, largest: Option<u64>) {
        self.log.lock().expect("no test panics with it").push(Call::QuinnEndAcks(in_flight));
        self.inner.on_end_acks(now, in_flight, limited, largest);
    }

    fn on_congestion_event(&mut self, now: Instant, sent: Instant, persistent: bool, bytes: u64) {
        self.log.lock().expect("no test panics with it").push(Call::QuinnLost { bytes, persistent });
        self.inner.on_congestion_event(now, sent, persistent, bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.inner.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.inner.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.inner.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Self { inner: self.inner.clone_box(), log: self.log.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.inner.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self
    }
}

/// Makes spies around the controllers of another factory.
struct Spies {
    inner: Arc<QuinnFactory>,
    log: Log,
}

impl ControllerFactory for Spies {
    fn build(self: Arc<Self>, now: Instant, mtu: u16) -> Box<dyn Controller> {
        Box::new(Spy { inner: self.inner.clone().build(now, mtu), log: self.log.clone() })
    }
}

/// Runs a scenario with recorders at both ends of its flow. Returns the calls at the source and at the sink.
pub(super) fn recorded<E: Endpoint>(
    text: &str,
    settings: &[&str],
    inner: impl Fn() -> E + Send + Sync + 'static,
) -> (Outcome, [Vec<Call>; 2]) {
    let logs = Arc::new(Mutex::new(Vec::new()));
    let all = logs.clone();
    let machines = CustomAlgorithms::default().with_quic_controllers("recorder", "1", move |seed| {
        let log = Log::default();
        all.lock().expect("no test panics with it").push(log.clone());
        let controllers = Controllers::of_s2n_quic(Recorders::new(inner(), log.clone()), seed);
        controllers.map_factory(|inner| Arc::new(Spies { inner, log }))
    });
    let settings = [&["quic.congestion_control=own:recorder"], settings].concat();
    let spec = scenario(text, &settings, machines).spec(1).unwrap_or_else(|e| panic!("{e}"));
    let outcome = simulate(&spec, 1);
    let logs = logs.lock().expect("no test panics with it");
    // The source is made first.
    let calls = [0, 1].map(|end: usize| logs[end].lock().expect("no test panics with it").clone());
    (outcome, calls)
}
