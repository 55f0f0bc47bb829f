//! Cost of a megabyte from one host to the other, with acknowledgments and both ends: alone, and beside many
//! idle connections.

use core::net::SocketAddr;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use hopline_core::{Duration, Instant};
use hopline_sealed::{
    ConnectionKey, Credentials, Host, HostConfig, HostEvent, Path, PreSharedKey, Seed, TransportConfig,
};

const BYTES: usize = 1 << 20;
/// One-way delay of a datagram.
const DELAY: Duration = Duration::from_millis(1);

struct Bench {
    hosts: [Host; 2],
    keys: [ConnectionKey; 2],
    now: Instant,
}

fn shared() -> Credentials {
    Credentials::Shared(PreSharedKey::new([7; 32]))
}

fn address(of: usize) -> SocketAddr {
    SocketAddr::from(([10, 0, 0, 1], 4000 + of as u16))
}

impl Bench {
    /// Two hosts with so many connections beside the one that is used.
    fn new(others: usize) -> Self {
        let host = |seed| Host::new(HostConfig::default().with_connections(1 << 14), Seed::new([seed; 32]));
        let mut hosts = [1, 2].map(|seed| host(seed).expect("the settings are right"));
        hosts[1].listen(shared(), TransportConfig::DEFAULT, 1 << 14).expect("new");
        let mut bench = Self { hosts, keys: [0; 2].map(|_| never()), now: Instant::ZERO };
        for _ in 0..=others {
            bench.keys = bench.open();
        }
        bench
    }

    fn open(&mut self) -> [ConnectionKey; 2] {
        let to = Path::to(address(1));
        let key = self.hosts[0].connect(self.now, to, shared(), TransportConfig::DEFAULT).expect("room");
        loop {
            self.carry();
            let accepted = core::iter::from_fn(|| self.hosts[1].poll_event()).find_map(|event| match event {
                HostEvent::Accepted(key) => Some(key),
                _ => None,
            });
            while self.hosts[0].poll_event().is_some() {}
            if let Some(accepted) = accepted {
                self.carry();
                return [key, accepted];
            }
        }
    }

    /// Delivers the outstanding datagrams of both hosts, once each way.
    fn carry(&mut self) {
        let mut buffer = Vec::with_capacity(1500);
        for from in [0, 1] {
            let [a, b] = &mut self.hosts;
            let (sender, receiver) = if from == 0 { (a, b) } else { (b, a) };
            self.now += DELAY;
            while let Some(transmit) = sender.poll_transmit(self.now, &mut buffer) {
                receiver.handle_datagram(self.now, Path::to(address(from)), transmit.ecn, &mut buffer);
                buffer.clear();
            }
        }
    }

    fn transfer(&mut self) -> u64 {
        let before = self.hosts[0].stats().datagrams_sent;
        let conn = self.hosts[0].connection_mut(self.keys[0]).expect("it is there");
        conn.send(self.now, vec![7; BYTES].into()).expect("there is room");
        let mut received = 0;
        while received < BYTES {
            self.carry();
            let conn = self.hosts[1].connection_mut(self.keys[1]).expect("it is there");
            received += core::iter::from_fn(|| conn.recv()).map(|data| data.len()).sum::<usize>();
            self.hosts.iter_mut().for_each(|host| {
                host.handle_timeout(self.now);
                while host.poll_event().is_some() {}
            });
        }
        self.hosts[0].stats().datagrams_sent - before
    }
}

/// A key of no connection, until there is one.
fn never() -> ConnectionKey {
    let mut host = Host::new(HostConfig::default(), Seed::new([0; 32])).expect("the settings are right");
    host.connect(Instant::ZERO, Path::to(address(1)), shared(), TransportConfig::DEFAULT).expect("room")
}

fn megabyte(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a megabyte from host to host");
    group.throughput(Throughput::Bytes(BYTES as u64));
    for others in [0, 100, 10_000] {
        let mut bench = Bench::new(others);
        // The rate is found first.
        for _ in 0..20 {
            bench.transfer();
        }
        group.bench_function(format!("beside {others} connections"), |bencher| {
            bencher.iter(|| bench.transfer())
        });
    }
}

criterion_group!(benches, megabyte);
criterion_main!(benches);
