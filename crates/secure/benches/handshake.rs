//! Handshakes a second, both ends together, and what first messages cost that come to nothing.

mod ends;
mod minimum;

use core::net::SocketAddr;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ends::{ADDRESS, credentials, handshake, open, responder};
use hopline_core::Instant;
use hopline_secure::{Cipher, Credentials, Method, PreSharedKey, ResponderConfig};

fn handshakes(c: &mut Criterion) {
    let mut group = c.benchmark_group("handshake");
    group.throughput(Throughput::Elements(1));
    for method in [Method::SharedKey, Method::PublicKeys] {
        let [ours, theirs] = credentials(method);
        let mut responder = responder(ResponderConfig::default(), &theirs);
        let mut number = 0_u64;
        let mut once = || {
            number += 1;
            let mut seed = [1; 32];
            seed[..8].copy_from_slice(&number.to_be_bytes());
            let (initiator, first) = open(Cipher::Aes256Gcm, &ours, seed);
            handshake(initiator, &first, &mut responder)
        };
        let name = format!("{method:?}, both ends");
        group.bench_function(&name, |bencher| bencher.iter(&mut once));
        minimum::print(&name, once);
    }
    group.finish();
}

fn floods(c: &mut Criterion) {
    let mut group = c.benchmark_group("flood");
    group.throughput(Throughput::Elements(1));
    let mut flood = |name: &str, config: ResponderConfig, [caller, called]: [Credentials; 2]| {
        let mut responder = responder(config, &called);
        let (_, first) = open(Cipher::Aes256Gcm, &caller, [1; 32]);
        let mut once = || {
            responder.handle_datagram(Instant::ZERO, SocketAddr::from(ADDRESS), &mut first.to_vec());
            responder.poll_transmit()
        };
        group.bench_function(name, |bencher| bencher.iter(&mut once));
        minimum::print(name, once);
    };
    let always = ResponderConfig::default().with_cookie_threshold(0);
    flood("first message answered by a cookie", always, credentials(Method::PublicKeys));
    let [_, called] = credentials(Method::SharedKey);
    let caller = Credentials::Shared(PreSharedKey::new([8; 32]));
    flood("first message under another shared key", ResponderConfig::default(), [caller, called]);
    group.finish();
}

criterion_group!(benches, handshakes, floods);
criterion_main!(benches);
