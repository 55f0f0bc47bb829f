//! Cost of sealing and opening full datagrams, against the same cipher of ring alone: by turns in the same
//! run.

mod ends;
mod ratio;

use core::time::Duration;
use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ends::{credentials, handshake, responder};
use hopline_secure::{Cipher, Method, ResponderConfig, Sealer, Session};
use ratio::timed;
use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

/// Payload that fits into 1500 bytes with the headers of IPv4, UDP and this protocol.
const PAYLOAD: usize = 1444;
const HEADER: usize = 12;
const DATAGRAM: usize = PAYLOAD + Sealer::OVERHEAD;
/// Datagrams that are made before they are opened: they stay in the cache.
const BATCH: usize = 64;

fn sessions(cipher: Cipher) -> [Session; 2] {
    let [ours, theirs] = credentials(Method::SharedKey);
    let (initiator, first) = ends::open(cipher, &ours, [1; 32]);
    let mut responder = responder(ResponderConfig::default(), &theirs);
    let (established, accepted) = handshake(initiator, &first, &mut responder);
    [established.session, accepted.established.session]
}

fn key(cipher: Cipher) -> LessSafeKey {
    let algorithm = match cipher {
        Cipher::ChaCha20Poly1305 => &CHACHA20_POLY1305,
        Cipher::Aes256Gcm => &AES_256_GCM,
    };
    LessSafeKey::new(UnboundKey::new(algorithm, &[7; 32]).expect("32 bytes"))
}

fn nonce(number: u64) -> Nonce {
    let mut bytes = [0; 12];
    bytes[4..].copy_from_slice(&number.to_le_bytes());
    Nonce::assume_unique_for_key(bytes)
}

/// The header stands before what is sealed, the tag behind it.
fn seal_by_ring(key: &LessSafeKey, number: u64, datagram: &mut [u8]) {
    let (header, rest) = datagram.split_at_mut(HEADER);
    let (content, tag) = rest.split_at_mut(PAYLOAD);
    let sealed = key.seal_in_place_separate_tag(nonce(number), Aad::from(header), content);
    tag.copy_from_slice(sealed.expect("it is short").as_ref());
}

/// One way to seal and to open.
trait Implementation {
    fn seal(&mut self, datagram: &mut [u8]);
    /// Seals what is opened next.
    fn prepare(&mut self, datagram: &mut [u8]);
    fn open(&mut self, datagram: &mut [u8]) -> bool;
}

struct Ring {
    key: LessSafeKey,
    sealed: u64,
    opened: u64,
}

struct Own {
    near: Session,
    far: Session,
}

impl Implementation for Ring {
    fn seal(&mut self, datagram: &mut [u8]) {
        self.sealed += 1;
        seal_by_ring(&self.key, self.sealed, datagram);
        self.opened = self.sealed;
    }

    fn prepare(&mut self, datagram: &mut [u8]) {
        self.sealed += 1;
        seal_by_ring(&self.key, self.sealed, datagram);
    }

    fn open(&mut self, datagram: &mut [u8]) -> bool {
        self.opened += 1;
        let (header, content) = datagram.split_at_mut(HEADER);
        self.key.open_in_place(nonce(self.opened), Aad::from(header), content).is_ok()
    }
}

impl Implementation for Own {
    fn seal(&mut self, datagram: &mut [u8]) {
        self.near.sealer.seal(datagram).expect("there is room");
    }

    fn prepare(&mut self, datagram: &mut [u8]) {
        self.far.sealer.seal(datagram).expect("there is room");
    }

    fn open(&mut self, datagram: &mut [u8]) -> bool {
        self.near.unsealer.open(datagram).is_ok()
    }
}

fn seal(way: &mut impl Implementation, count: u64) -> Duration {
    let mut datagram = [0; DATAGRAM];
    timed(|| (0..count).for_each(|_| way.seal(&mut datagram)))
}

fn open(way: &mut impl Implementation, count: u64) -> Duration {
    let mut batch = vec![[0; DATAGRAM]; BATCH];
    let mut time = Duration::ZERO;
    let mut left = count as usize;
    while left > 0 {
        let batch = &mut batch[..left.min(BATCH)];
        batch.iter_mut().for_each(|datagram| way.prepare(datagram));
        time += timed(|| assert!(batch.iter_mut().all(|datagram| way.open(datagram))));
        left -= batch.len();
    }
    time
}

fn datagrams(c: &mut Criterion) {
    for cipher in [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
        let mut ring = Ring { key: key(cipher), sealed: 0, opened: 0 };
        let [near, far] = sessions(cipher);
        let mut ours = Own { near, far };
        let mut group = c.benchmark_group(format!("datagram of 1444 bytes, {cipher:?}"));
        group.throughput(Throughput::Bytes(PAYLOAD as u64));
        group.bench_function("sealed by ring", |bencher| bencher.iter_custom(|count| seal(&mut ring, count)));
        group.bench_function("sealed", |bencher| bencher.iter_custom(|count| seal(&mut ours, count)));
        group.bench_function("opened by ring", |bencher| bencher.iter_custom(|count| open(&mut ring, count)));
        group.bench_function("opened", |bencher| bencher.iter_custom(|count| open(&mut ours, count)));
        group.finish();
        ratio::print(
            &format!("{cipher:?}, seal"),
            |count| seal(&mut ring, count),
            |count| seal(&mut ours, count),
        );
        ratio::print(
            &format!("{cipher:?}, open"),
            |count| open(&mut ring, count),
            |count| open(&mut ours, count),
        );
    }
}

criterion_group!(benches, datagrams);
criterion_main!(benches);
