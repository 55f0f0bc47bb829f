//! What it costs to seal and open full datagrams, beside the same cipher of ring alone: ratios of the same run stand at the end.

mod ends;
mod ratio;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use ends::{answerer, credentials, handshake, open};
use hopline_secure::{AnswererConfig, Cipher, Method, Sealer, Session};
use ratio::{Measured, timed};
use ring::aead::{AES_256_GCM, Aad, CHACHA20_POLY1305, LessSafeKey, Nonce, UnboundKey};

/// What fits into 1500 bytes of IPv4, UDP and ours.
const PAYLOAD: usize = 1444;
const HEADER: usize = 12;
const DATAGRAM: usize = PAYLOAD + Sealer::OVERHEAD;
/// Datagrams that are made before they are opened: they stay in the cache.
const BATCH: u64 = 64;

fn sessions(cipher: Cipher) -> [Session; 2] {
    let [ours, theirs] = credentials(Method::SharedKey);
    let (opener, first) = open(cipher, &ours, [1; 32]);
    let mut answerer = answerer(AnswererConfig::default(), &theirs);
    let (established, accepted) = handshake(opener, &first, &mut answerer);
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

fn datagrams(c: &mut Criterion) {
    let mut measured = Measured::default();
    let mut group = c.benchmark_group("datagram of 1444 bytes");
    group.throughput(Throughput::Bytes(PAYLOAD as u64));
    for cipher in [Cipher::Aes256Gcm, Cipher::ChaCha20Poly1305] {
        let [mut ours, mut theirs] = sessions(cipher);
        let key = key(cipher);
        let mut datagram = [0; DATAGRAM];
        let mut number = 0;
        group.bench_function(format!("{cipher:?}: sealed by ring"), |bencher| {
            bencher.iter_custom(|count| {
                measured.note(
                    &format!("{cipher:?} seal"),
                    "ring",
                    count,
                    timed(|| {
                        for _ in 0..count {
                            number += 1;
                            seal_by_ring(&key, number, &mut datagram);
                        }
                    }),
                )
            });
        });
        group.bench_function(format!("{cipher:?}: sealed"), |bencher| {
            bencher.iter_custom(|count| {
                measured.note(
                    &format!("{cipher:?} seal"),
                    "ours",
                    count,
                    timed(|| {
                        for _ in 0..count {
                            ours.sealer.seal(&mut datagram).expect("there is room");
                        }
                    }),
                )
            });
        });
        let mut batch = vec![[0; DATAGRAM]; BATCH as usize];
        group.bench_function(format!("{cipher:?}: opened by ring"), |bencher| {
            bencher.iter_custom(|count| {
                let mut time = core::time::Duration::ZERO;
                for done in (0..count).step_by(BATCH as usize) {
                    let first = number + 1;
                    for datagram in &mut batch {
                        number += 1;
                        seal_by_ring(&key, number, datagram);
                    }
                    time += timed(|| {
                        for (at, datagram) in batch.iter_mut().enumerate().take((count - done) as usize) {
                            let (header, content) = datagram.split_at_mut(HEADER);
                            let opened =
                                key.open_in_place(nonce(first + at as u64), Aad::from(header), content);
                            assert!(opened.is_ok());
                        }
                    });
                }
                measured.note(&format!("{cipher:?} open"), "ring", count, time)
            });
        });
        group.bench_function(format!("{cipher:?}: opened"), |bencher| {
            bencher.iter_custom(|count| {
                let mut time = core::time::Duration::ZERO;
                // What was sealed for nobody before is as if it had been lost; a generation of keys at most.
                for done in (0..count).step_by(BATCH as usize) {
                    for datagram in &mut batch {
                        theirs.sealer.seal(datagram).expect("there is room");
                    }
                    time += timed(|| {
                        for datagram in batch.iter_mut().take((count - done) as usize) {
                            assert!(ours.unsealer.open(datagram).is_ok());
                        }
                    });
                }
                measured.note(&format!("{cipher:?} open"), "ours", count, time)
            });
        });
    }
    group.finish();
    measured.print("ring", "ours");
}

criterion_group!(benches, datagrams);
criterion_main!(benches);
