//! One RTS, CTS, data, ACK exchange between two MACs, driven as the simulator drives them.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hopline_core::{Instant, LinkId, NodeId, Purpose, RandomStream, StateMachine};
use hopline_radio::mac::{Config, Event, Mac, Msdu, RadioState, Reception, Signal, Transmission};
use hopline_wire::dot11::MacAddr;
use std::hint::black_box;

fn station(config: &Config, id: u32) -> Mac<u32> {
    let id = NodeId(id);
    Mac::new(config.clone(), MacAddr::of_node(id), RandomStream::new(1, 1, id, Purpose::Backoff))
}

/// Wakes the station until it sends.
fn wake(mac: &mut Mac<u32>) -> (Instant, Transmission<u32>) {
    loop {
        let (at, _) = mac.poll_timeout().expect("it means to send");
        mac.handle_timeout(at);
        if let Some(transmission) = mac.poll_transmit(at) {
            return (at, transmission);
        }
    }
}

/// The next frame of `from` reaches `to` intact, without propagation delay. Returns its end.
fn pass(from: &mut Mac<u32>, to: &mut Mac<u32>) -> Instant {
    let (start, transmission) = wake(from);
    let end = start + transmission.airtime;
    to.handle_signal(start, Signal::Carrier(RadioState::Receiving));
    from.handle_signal(end, Signal::TransmitEnd);
    to.handle_packet(end, LinkId::ONLY, Reception::Frame(transmission.frame));
    to.handle_signal(end, Signal::Carrier(RadioState::Idle));
    end
}

/// Sends one MSDU. Returns when it was acknowledged.
fn exchange(a: &mut Mac<u32>, b: &mut Mac<u32>, now: Instant) -> Instant {
    a.send(now, Msdu { body: 7, len_bytes: 1500, to: MacAddr::of_node(NodeId(1)) });
    pass(a, b); // RTS
    pass(b, a); // CTS
    pass(a, b); // data
    assert!(matches!(b.poll_event(), Some(Event::Deliver { .. })));
    let end = pass(b, a); // ACK
    assert!(matches!(a.poll_event(), Some(Event::Sent(_))));
    end
}

fn mac_exchange(c: &mut Criterion) {
    let mut group = c.benchmark_group("mac");
    group.throughput(Throughput::Elements(1));
    let dot11b = Config { rts_threshold_bytes: 0, ..Config::dot11b() };
    for (name, config) in [("dot11b", dot11b), ("ns2-wavelan", Config::ns2_wavelan())] {
        let (mut a, mut b) = (station(&config, 0), station(&config, 1));
        let mut now = Instant::ZERO;
        group.bench_function(format!("RTS, CTS, data and ACK, {name}"), |bencher| {
            bencher.iter(|| {
                now = exchange(&mut a, &mut b, now);
                black_box(now)
            });
        });
    }
    group.finish();
}

criterion_group!(benches, mac_exchange);
criterion_main!(benches);
