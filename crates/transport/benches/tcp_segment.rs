//! One TCP segment exchange: a data segment out and in, its acknowledgment back.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hopline_core::{Duration, Instant, Length, LinkId, Machine, Payload, Seq32};
use hopline_transport::tcp::{AckPolicy, Config, Endpoint, Ports};
use std::hint::black_box;

type End = Endpoint<Length>;

fn connected(config: Config) -> (End, End, Instant) {
    let ports = |local, remote| Ports { local, remote };
    let mut a = End::new(config, ports(1, 2), Seq32(1)).expect("valid");
    let mut b = End::new(config, ports(2, 1), Seq32(1)).expect("valid");
    b.listen().expect("closed before");
    a.connect(Instant::ZERO).expect("closed before");
    let now = Instant::from_millis(1);
    for _ in 0..3 {
        pass(&mut a, &mut b, now);
        pass(&mut b, &mut a, now);
    }
    a.send(now, Length(1 << 60)).expect("unlimited");
    (a, b, now)
}

/// Hands over everything `from` has to send, as a driver would; returns the number of segments.
fn pass(from: &mut End, to: &mut End, now: Instant) -> u64 {
    let mut n = 0;
    while let Some(segment) = from.poll_transmit(now) {
        to.handle_packet(now, LinkId::ONLY, segment);
        while let Some(event) = to.poll_event() {
            black_box(event);
        }
        while let Some(data) = to.recv() {
            black_box(data.len());
        }
        black_box(to.poll_timeout());
        n += 1;
    }
    n
}

fn exchange(c: &mut Criterion) {
    let mut group = c.benchmark_group("tcp");
    group.throughput(Throughput::Elements(1));
    for (name, mut config) in [("modern", Config::modern()), ("ns2-2.35", Config::ns2_235())] {
        config.ack_policy = AckPolicy::EverySegment;
        config.window_clamp = Some(1);
        let (mut a, mut b, mut now) = connected(config);
        group.bench_function(format!("segment and ACK, {name}"), |bencher| {
            bencher.iter(|| {
                now += Duration::from_millis(1);
                let sent = pass(&mut a, &mut b, now) + pass(&mut b, &mut a, now);
                assert_eq!(sent, 2, "one segment and its ACK");
            });
        });
    }
    group.finish();
}

criterion_group!(benches, exchange);
criterion_main!(benches);
