//! One TCP segment exchange: a data segment out and in, its acknowledgment back.

mod pair;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hopline_core::{Duration, Length, Seq32};
use hopline_transport::tcp::{AckPolicy, Config, Endpoint, Ports};
use pair::{connect, deliver_all};

type End = Endpoint<Length>;

fn exchange(c: &mut Criterion) {
    let mut group = c.benchmark_group("tcp");
    group.throughput(Throughput::Elements(1));
    for (name, mut config) in [("modern", Config::modern()), ("ns2-2.35", Config::ns2_235())] {
        config = config.with_ack_policy(AckPolicy::EverySegment).with_window_clamp(Some(1));
        let end = |local, remote| End::new(config, Ports { local, remote }, Seq32(1)).expect("valid");
        let (mut a, mut b) = (end(1, 2), end(2, 1));
        let mut now = connect(&mut a, &mut b);
        group.bench_function(format!("segment and ACK, {name}"), |bencher| {
            bencher.iter(|| {
                now += Duration::from_millis(1);
                let sent = deliver_all(&mut a, &mut b, now) + deliver_all(&mut b, &mut a, now);
                assert_eq!(sent, 2, "one segment and its ACK");
            });
        });
    }
    group.finish();
}

criterion_group!(benches, exchange);
criterion_main!(benches);
