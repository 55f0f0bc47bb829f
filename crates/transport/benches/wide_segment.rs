//! TPA-wide data over a link of 100 Mb/s and 10 ms that loses every twentieth packet: what a data packet costs, out and
//! in, with its share of acknowledgments and of rate control.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hopline_core::{Duration, Instant, Length, LinkId, StateMachine};
use hopline_transport::wide::{Config, Controller, Endpoint, RateController};
use hopline_wire::wide::Packet;
use std::collections::VecDeque;
use std::hint::black_box;

const RATE: f64 = 100e6;
const DELAY: Duration = Duration::from_millis(10);
const LOSS_INTERVAL: u64 = 20;

/// Two endpoints and the link between them.
struct BenchPath<C> {
    ends: [Endpoint<Length, C>; 2],
    /// Packets in flight to each end, with their arrival.
    in_flight: [VecDeque<(Instant, Packet<Length>)>; 2],
    now: Instant,
    busy_until: Instant,
    sent: u64,
}

impl<C: Controller> BenchPath<C> {
    fn new(controller: impl Fn(u32) -> C) -> Self {
        let mut ends =
            [(); 2].map(|()| Endpoint::with_controller(Config::DEFAULT, &controller).expect("valid"));
        ends[1].listen().expect("new");
        ends[0].connect(Instant::ZERO).expect("new");
        ends[0].send(Instant::ZERO, Length(1 << 60)).expect("unlimited");
        let in_flight = [VecDeque::new(), VecDeque::new()];
        Self { ends, in_flight, now: Instant::ZERO, busy_until: Instant::ZERO, sent: 0 }
    }

    /// Lets time pass. Returns the number of packets that the sender has sent.
    fn run(&mut self, time: Duration) -> u64 {
        let (until, before) = (self.now + time, self.sent);
        while self.now < until {
            for from in [0, 1] {
                while let Some(packet) = self.ends[from].poll_transmit(self.now) {
                    self.transmit(from, packet);
                }
                while let Some(data) = self.ends[from].recv() {
                    black_box(data);
                }
                while let Some(event) = self.ends[from].poll_event() {
                    black_box(event);
                }
            }
            let timers = self.ends.iter().filter_map(|end| end.poll_timeout()).map(|(at, _)| at);
            let arrivals = self.in_flight.iter().filter_map(|packets| packets.front()).map(|(at, _)| *at);
            self.now = timers.chain(arrivals).min().expect("something is due").max(self.now);
            for (end, packets) in self.ends.iter_mut().zip(&mut self.in_flight) {
                while let Some((_, packet)) = packets.pop_front_if(|(at, _)| *at <= self.now) {
                    end.handle_packet(self.now, LinkId::ONLY, packet);
                }
                end.handle_timeout(self.now);
            }
        }
        self.sent - before
    }

    fn transmit(&mut self, from: usize, packet: Packet<Length>) {
        let mut arrives = self.now + DELAY;
        if from == 0 {
            let lasts = Duration::from_secs_f64((packet.sealed_len() + 28) as f64 * 8.0 / RATE);
            self.busy_until = self.busy_until.max(self.now) + lasts;
            arrives = self.busy_until + DELAY;
            self.sent += 1;
            if self.sent.is_multiple_of(LOSS_INTERVAL) {
                return;
            }
        }
        self.in_flight[1 - from].push_back((arrives, packet));
    }
}

fn exchange<C: Controller>(c: &mut Criterion, name: &str, controller: impl Fn(u32) -> C) {
    let mut group = c.benchmark_group("tpa-wide");
    let mut path = BenchPath::new(controller);
    path.run(Duration::from_secs(5));
    let time = Duration::from_millis(100);
    let packets = path.run(time);
    group.throughput(Throughput::Elements(packets));
    group.bench_function(name, |bencher| bencher.iter(|| path.run(time)));
    group.finish();
}

fn rate_controller(packet: u32) -> RateController {
    RateController::new(Config::DEFAULT.control(), packet)
}

// One controller: a program that has endpoints with two of them has 5 % more instructions a packet in the mean, as less is
// inlined.
fn controllers(c: &mut Criterion) {
    exchange(c, "100 ms of 100 Mb/s", rate_controller);
}

criterion_group!(benches, controllers);
criterion_main!(benches);
