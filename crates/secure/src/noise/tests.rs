use super::*;
use crate::credentials::Trust;
use crate::keys::{PreSharedKey, PrivateKey};

const CIPHERS: [Cipher; 2] = [Cipher::ChaCha20Poly1305, Cipher::Aes256Gcm];

fn pair(suite: Suite, keys: [u8; 2]) -> [Handshake; 2] {
    let roles = [(Role::Initiator, keys[0]), (Role::Responder, keys[1])];
    roles.map(|(role, key)| {
        let credentials = Arc::new(match suite.method {
            Method::SharedKey => Credentials::Shared(PreSharedKey::new([key; 32])),
            Method::PublicKeys => {
                Credentials::Keys { private: PrivateKey::new([key; 32]), trust: Trust::Anyone }
            }
        });
        let seed = Seed::new([100 + key; 32]);
        let seed = if role == Role::Initiator { seed } else { Entropy::new(&seed).seed() };
        let prologue = Bytes::from_static(b"prologue");
        Handshake::new(Setup { role, suite, credentials, prologue, seed })
    })
}

fn read(handshake: &mut Handshake, message: &Bytes) -> Result<Bytes, ReadFailure> {
    handshake.read(Instant::ZERO, message, None)
}

/// The same after so many seconds, so that no budget is used up.
fn read_later(handshake: &mut Handshake, seconds: usize, message: &Bytes) -> Result<Bytes, ReadFailure> {
    handshake.read(Instant::from_secs(seconds as u64), message, None)
}

fn payload(text: &'static str) -> Bytes {
    Bytes::from_static(text.as_bytes())
}

#[test]
fn both_ends_with_public_keys_derive_the_same_keys() {
    for cipher in CIPHERS {
        let [mut a, mut b] = pair(Suite { method: Method::PublicKeys, cipher }, [1, 2]);
        let first = a.write(payload("")).unwrap();
        assert_eq!(read(&mut b, &first), Ok(payload("")));
        let second = b.write(payload("two")).unwrap();
        assert_eq!(read(&mut a, &second), Ok(payload("two")));
        let third = a.write(payload("three")).unwrap();
        assert_eq!(read(&mut b, &third), Ok(payload("three")));
        assert_eq!(a.peer(), Some(PrivateKey::new([2; 32]).public()));
        assert_eq!(b.peer(), Some(PrivateKey::new([1; 32]).public()));
        let [a, b] = [a.split(), b.split()];
        assert!(a.initiator == b.initiator && a.responder == b.responder && a.binding == b.binding);
        assert!(a.initiator != a.responder);
    }
}

#[test]
fn both_ends_with_a_shared_key_derive_the_same_keys_and_others_do_not() {
    for cipher in CIPHERS {
        let suite = Suite { method: Method::SharedKey, cipher };
        let [mut a, mut b] = pair(suite, [1, 1]);
        let first = a.write(payload("one")).unwrap();
        assert_eq!(read(&mut b, &first), Ok(payload("one")));
        let second = b.write(payload("two")).unwrap();
        assert_eq!(read(&mut a, &second), Ok(payload("two")));
        assert_eq!(a.split().initiator, b.split().initiator);
        assert_eq!((a.peer(), b.peer()), (None, None));
        let [mut a, mut b] = pair(suite, [1, 2]);
        assert_eq!(read(&mut b, &a.write(payload("one")).unwrap()), Err(ReadFailure::Unauthentic));
    }
}

/// Damage that `snow` alone does not withstand: see the top of the module.
#[test]
fn a_damaged_message_changes_nothing() {
    for cipher in CIPHERS {
        let [mut a, mut b] = pair(Suite { method: Method::PublicKeys, cipher }, [1, 2]);
        read(&mut b, &a.write(payload("")).unwrap()).unwrap();
        let second = b.write(payload("two")).unwrap();
        for at in 0..second.len() {
            let mut damaged = second.to_vec();
            damaged[at] ^= 1;
            assert_eq!(read(&mut a, &damaged.into()), Err(ReadFailure::Unauthentic), "byte {at}");
            assert!(matches!(a.state, State::Valid(_)), "byte {at}");
        }
        read(&mut a, &second).unwrap();
        let third = a.write(payload("three")).unwrap();
        for at in 0..third.len() {
            let mut damaged = third.to_vec();
            damaged[at] ^= 1;
            assert_eq!(read_later(&mut b, at, &damaged.into()), Err(ReadFailure::Unauthentic), "byte {at}");
        }
        for len in 0..third.len() {
            assert_eq!(
                read_later(&mut b, third.len() + len, &third.slice(..len)),
                Err(ReadFailure::Unauthentic),
                "{len} bytes"
            );
        }
        assert_eq!(read_later(&mut b, 2 * third.len(), &third), Ok(payload("three")));
        assert_eq!(a.split().binding, b.split().binding);
    }
}

#[test]
fn an_undone_step_can_be_repeated() {
    let [mut a, mut b] = pair(Suite { method: Method::PublicKeys, cipher: Cipher::Aes256Gcm }, [1, 2]);
    read(&mut b, &a.write(payload("")).unwrap()).unwrap();
    let second = b.write(payload("two")).unwrap();
    read(&mut a, &second).unwrap();
    a.undo();
    assert_eq!(a.peer(), None);
    assert_eq!(read(&mut a, &second), Ok(payload("two")));
}

#[test]
fn keys_of_small_order_are_rejected() {
    let [_, mut b] = pair(Suite { method: Method::PublicKeys, cipher: Cipher::Aes256Gcm }, [1, 2]);
    let mut one = [0; 32];
    one[0] = 1;
    for small in [[0; 32], one] {
        read(&mut b, &Bytes::copy_from_slice(&small)).unwrap();
        assert_eq!(b.write(payload("two")), Err(Unauthentic));
        b.undo();
    }
}

#[test]
fn a_half_valid_third_message_corrupts_nothing() {
    let [mut a, mut b] = pair(Suite { method: Method::PublicKeys, cipher: Cipher::Aes256Gcm }, [1, 2]);
    read(&mut b, &a.write(payload("")).unwrap()).unwrap();
    let second = b.write(payload("two")).unwrap();
    read(&mut a, &second).unwrap();
    let third = a.write(payload("three")).unwrap();
    let mut in_all = TokenBucket::new(0, Instant::ZERO);
    for at in 0..48 {
        let mut damaged = third.to_vec();
        damaged[at] ^= 1;
        assert_eq!(
            b.read(Instant::ZERO, &damaged.into(), Some(&mut in_all)),
            Err(ReadFailure::Unauthentic),
            "byte {at}"
        );
    }
    assert_eq!(b.read(Instant::ZERO, &third, Some(&mut in_all)), Ok(payload("three")));
}

#[test]
fn a_corrupted_handshake_is_remade_a_few_times_a_second() {
    let [mut a, mut b] = pair(Suite { method: Method::PublicKeys, cipher: Cipher::Aes256Gcm }, [1, 2]);
    read(&mut b, &a.write(payload("")).unwrap()).unwrap();
    let second = b.write(payload("two")).unwrap();
    read(&mut a, &second).unwrap();
    let third = a.write(payload("three")).unwrap();
    let mut damaged = third.to_vec();
    *damaged.last_mut().unwrap() ^= 1;
    let damaged = Bytes::from(damaged);
    let mut in_all = TokenBucket::new(12, Instant::ZERO);
    let mut read_all = |b: &mut Handshake, second| {
        let read = || b.read(Instant::from_secs(second), &damaged, Some(&mut in_all));
        std::iter::repeat_with(read).take(1000).filter(|read| *read == Err(ReadFailure::Unauthentic)).count()
    };
    assert_eq!(read_all(&mut b, 0), 1 + MAX_REMAKES as usize, "the first costs no budget");
    assert_eq!(read_all(&mut b, 0), 0);
    assert_eq!(read_all(&mut b, 1), MAX_REMAKES as usize);
    assert_eq!(read_all(&mut b, 1), 0);
    assert_eq!(b.read(Instant::from_secs(2), &third, Some(&mut in_all)), Ok(payload("three")));
}
