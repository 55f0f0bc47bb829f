//! TPA data from one endpoint to the other: what a data segment costs, out and in, with its share of ACKs.

mod pair;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hopline_core::{Duration, Length};
use hopline_transport::tpa::{Config, Endpoint};
use pair::{connect, deliver_all};

type End = Endpoint<Length>;

fn exchange(c: &mut Criterion) {
    let mut group = c.benchmark_group("tpa");
    // A block of twelve: a sample is what one data segment costs times twelve, blocks and ACKs included.
    group.throughput(Throughput::Elements(12));
    for (name, config) in
        [("TPA-2", Config::tpa(2)), ("TPA-3", Config::tpa(3)), ("TPA*-3", Config::tpa_star(3))]
    {
        let [mut a, mut b] = [(); 2].map(|()| End::new(config).expect("valid"));
        let mut now = connect(&mut a, &mut b);
        group.bench_function(format!("block of 12 segments and its ACKs, {name}"), |bencher| {
            bencher.iter(|| {
                let (mut data, mut back) = (0, 0);
                while data < 12 {
                    now += Duration::from_millis(1);
                    data += deliver_all(&mut a, &mut b, now);
                    // A round trip takes time: of zeros the mean would become denormal, which is slow and no path's.
                    now += Duration::from_millis(1);
                    back += deliver_all(&mut b, &mut a, now);
                }
                assert!(data >= 12 && back >= 4, "{data} segments and {back} ACKs");
            });
        });
    }
    group.finish();
}

criterion_group!(benches, exchange);
criterion_main!(benches);
