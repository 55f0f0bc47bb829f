//! TPA data from one endpoint to the other: what a data segment costs, out and in, with its share of ACKs.

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hopline_core::{Duration, Instant, Length, LinkId, Machine, Payload};
use hopline_transport::tpa::{Config, Endpoint};
use std::hint::black_box;

type End = Endpoint<Length>;

fn connected(config: Config) -> (End, End, Instant) {
    let mut a = End::new(config).expect("valid");
    let mut b = End::new(config).expect("valid");
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

/// Hands over everything `from` has to send at once; returns the number of segments.
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
    let mut group = c.benchmark_group("tpa");
    // A block of twelve: a sample is what one data segment costs times twelve, blocks and ACKs included.
    group.throughput(Throughput::Elements(12));
    for (name, config) in
        [("TPA-2", Config::tpa(2)), ("TPA-3", Config::tpa(3)), ("TPA*-3", Config::tpa_star(3))]
    {
        let (mut a, mut b, mut now) = connected(config);
        group.bench_function(format!("block of 12 segments and its ACKs, {name}"), |bencher| {
            bencher.iter(|| {
                let (mut data, mut back) = (0, 0);
                while data < 12 {
                    now += Duration::from_millis(1);
                    data += pass(&mut a, &mut b, now);
                    // A round trip takes time: of zeros the mean would become denormal, which is slow and no path's.
                    now += Duration::from_millis(1);
                    back += pass(&mut b, &mut a, now);
                }
                assert!(data >= 12 && back >= 4, "{data} segments and {back} ACKs");
            });
        });
    }
    group.finish();
}

criterion_group!(benches, exchange);
criterion_main!(benches);
