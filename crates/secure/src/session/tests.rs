use super::*;

const WIDTH: u64 = 1024;

fn id(first: u8) -> ConnectionId {
    ConnectionId::new([first; 8]).unwrap()
}

/// Returns a sealer and the unsealer of its datagrams; keys change every 1024 numbers.
fn pair(cipher: Cipher) -> (Sealer, Unsealer) {
    pair_with(cipher, WIDTH)
}

fn pair_with(cipher: Cipher, rekey_after: u64) -> (Sealer, Unsealer) {
    let config = SessionConfig { window: WIDTH as u32, rekey_after, ..SessionConfig::default() };
    let agreed = |local, remote, sending, receiving| NegotiatedKeys {
        cipher,
        config,
        local,
        remote,
        sending: Zeroizing::new([sending; KEY_LEN]),
        receiving: Zeroizing::new([receiving; KEY_LEN]),
    };
    let sender = Session::new(&agreed(id(1), id(2), 3, 4));
    let receiver = Session::new(&agreed(id(2), id(1), 4, 3));
    (sender.sealer, receiver.unsealer)
}

fn sealed(sealer: &mut Sealer, payload: &[u8]) -> Vec<u8> {
    let mut datagram = vec![0; Sealer::OVERHEAD + payload.len()];
    datagram[HEADER_LEN..][..payload.len()].copy_from_slice(payload);
    sealer.seal(&mut datagram).unwrap();
    datagram
}

/// Advances the sealer as if that many datagrams had been sealed; keys have changed as often as they would
/// have.
fn leap(sealer: &mut Sealer, next: u64) {
    while sealer.rekey_at < next {
        sealer.key = sealer.key.next();
        sealer.rekey_at += sealer.rekey_after;
    }
    sealer.next = next;
}

/// Advances the unsealer as if this had been the highest number that came.
fn leap_after(unsealer: &mut Unsealer, highest: u64) {
    while unsealer.keys.start + unsealer.keys.span <= highest {
        let next = unsealer.keys.start + unsealer.keys.span;
        unsealer.keys.advance(next);
    }
    unsealer.window.record(highest);
}

#[test]
fn a_sealed_datagram_opens_and_reveals_nothing() {
    for cipher in [Cipher::ChaCha20Poly1305, Cipher::Aes256Gcm] {
        let (mut sealer, mut unsealer) = pair(cipher);
        for payload in [&b"a payload that is long enough to be found"[..], b"", &[7; 1444]] {
            let mut datagram = sealed(&mut sealer, payload);
            assert_eq!(datagram.len(), payload.len() + 28);
            assert_eq!(datagram[..8], id(2).bytes());
            if payload.len() > 8 {
                assert!(!datagram.windows(8).any(|window| window == &payload[..8]));
            }
            let number = sealer.next_number() - 1;
            let opened = unsealer.open(&mut datagram).unwrap();
            assert_eq!((opened.number, opened.order, &*opened.payload), (number, Order::Newest, payload));
        }
        assert_eq!(unsealer.rejections().total(), 0);
    }
}

#[test]
fn every_changed_bit_and_every_truncation_is_detected() {
    let (mut sealer, mut unsealer) = pair(Cipher::Aes256Gcm);
    let datagram = sealed(&mut sealer, b"payload");
    for bit in 0..datagram.len() * 8 {
        let mut changed = datagram.clone();
        changed[bit / 8] ^= 1 << (bit % 8);
        let rejection = unsealer.open(&mut changed).unwrap_err();
        assert!(
            matches!(rejection, Rejection::Foreign | Rejection::Forged | Rejection::TooFarAhead),
            "bit {bit}: {rejection:?}"
        );
    }
    for len in 0..datagram.len() {
        let rejection = unsealer.open(&mut datagram[..len].to_vec()).unwrap_err();
        let expected = if len < 28 { Rejection::Truncated } else { Rejection::Forged };
        assert_eq!(rejection, expected, "{len} bytes");
    }
    assert!(unsealer.open(&mut datagram.clone()).is_ok(), "none of it has done any harm");
}

#[test]
fn replays_and_datagrams_of_other_connections_are_counted() {
    let (mut sealer, mut unsealer) = pair(Cipher::Aes256Gcm);
    let datagram = sealed(&mut sealer, b"once");
    assert!(unsealer.open(&mut datagram.clone()).is_ok());
    assert_eq!(unsealer.open(&mut datagram.clone()), Err(Rejection::Repeated));
    sealer.remote = id(9);
    assert_eq!(unsealer.open(&mut sealed(&mut sealer, b"foreign")), Err(Rejection::Foreign));
    assert_eq!(unsealer.open(&mut b"TPAW of a handshake, long enough".to_vec()), Err(Rejection::Foreign));
    assert_eq!(unsealer.rejections().of(Rejection::Repeated), 1);
    assert_eq!(unsealer.rejections().of(Rejection::Foreign), 2);
    assert_eq!(format!("{:?}", unsealer.rejections()), "{Foreign: 2, Repeated: 1}");
}

#[test]
fn each_direction_has_its_own_key() {
    let (mut sealer, _) = pair(Cipher::Aes256Gcm);
    let (_, mut unsealer) = pair(Cipher::Aes256Gcm);
    sealer.key = Key::new(Cipher::Aes256Gcm, &[4; KEY_LEN]);
    assert_eq!(unsealer.open(&mut sealed(&mut sealer, b"reflected")), Err(Rejection::Forged));
}

#[test]
fn a_whole_window_may_arrive_in_reverse_across_a_key_change() {
    let (mut sealer, mut unsealer) = pair(Cipher::ChaCha20Poly1305);
    let half = WIDTH as usize / 2;
    for _ in 0..half {
        assert!(unsealer.open(&mut sealed(&mut sealer, b"in order")).is_ok());
    }
    let mut datagrams: Vec<Vec<u8>> = (0..WIDTH).map(|_| sealed(&mut sealer, b"in reverse")).collect();
    datagrams.reverse();
    for (at, datagram) in datagrams.iter_mut().enumerate() {
        let order = unsealer.open(datagram).unwrap().order;
        assert_eq!(order, if at == 0 { Order::Newest } else { Order::Older });
    }
    assert_eq!(unsealer.rejections().total(), 0);
}

#[test]
fn keys_change_at_their_numbers_and_old_ones_are_dropped() {
    let (mut sealer, mut unsealer) = pair(Cipher::Aes256Gcm);
    let mut first = sealed(&mut sealer, b"under the first key");
    let mut kept = Vec::new();
    for number in 1..5 * WIDTH {
        let datagram = sealed(&mut sealer, b"content");
        if number % WIDTH == WIDTH - 1 {
            kept.push(datagram);
        } else {
            assert_eq!(unsealer.open(&mut datagram.clone()).unwrap().number, number);
        }
    }
    assert_eq!(unsealer.keys.start, 4 * WIDTH);
    assert_eq!(unsealer.open(&mut first), Err(Rejection::TooOld));
    let late: Vec<bool> = kept.iter_mut().map(|datagram| unsealer.open(datagram).is_ok()).collect();
    assert_eq!(late, [false, false, false, true, true], "those within the window are still opened");
    assert_eq!(unsealer.rejections().of(Rejection::Forged), 0);
}

#[test]
fn one_lost_generation_is_survived_and_two_are_detected() {
    let (mut sealer, mut unsealer) = pair(Cipher::Aes256Gcm);
    leap(&mut sealer, 2 * WIDTH - 1);
    assert!(unsealer.open(&mut sealed(&mut sealer, b"all before were lost")).is_ok());
    leap(&mut sealer, 3 * WIDTH + 1);
    assert_eq!(unsealer.open(&mut sealed(&mut sealer, b"too many were lost")), Err(Rejection::TooFarAhead));
}

#[test]
fn the_transmitted_half_of_numbers_wraps_around() {
    let (mut sealer, mut unsealer) = pair_with(Cipher::Aes256Gcm, 1 << 23);
    let wrap = 1 << 32;
    leap(&mut sealer, wrap - 3);
    leap_after(&mut unsealer, wrap - 4);
    let mut datagrams: Vec<Vec<u8>> = (0..6).map(|_| sealed(&mut sealer, b"around")).collect();
    assert_eq!(datagrams[3][8..12], [0; 4]);
    let numbers = [1, 4, 0, 3, 5, 2].map(|at: usize| unsealer.open(&mut datagrams[at]).unwrap().number);
    assert_eq!(numbers, [1, 4, 0, 3, 5, 2].map(|at| wrap - 3 + at));
}

#[test]
fn exhausted_numbers_and_buffers_are_errors() {
    let (mut sealer, _) = pair(Cipher::Aes256Gcm);
    assert_eq!(sealer.seal(&mut [0; 27]), Err(SealError::NoRoom));
    assert_eq!(sealer.next_number(), 0);
    sealer.next = NUMBER_MAX;
    assert_eq!(sealer.seal(&mut [0; 28]), Ok(NUMBER_MAX));
    let mut datagram = [9; 28];
    assert_eq!(sealer.seal(&mut datagram), Err(SealError::Exhausted));
    assert_eq!(datagram, [9; 28]);
}

#[test]
fn an_early_key_change_skips_the_rest_of_its_numbers() {
    for cipher in [Cipher::ChaCha20Poly1305, Cipher::Aes256Gcm] {
        let (mut sealer, mut unsealer) = pair(cipher);
        let mut late = sealed(&mut sealer, b"under the first key");
        assert_eq!((sealer.key_since(), sealer.rekey(), sealer.key_since()), (0, WIDTH, WIDTH));
        for number in [WIDTH, WIDTH + 1] {
            assert_eq!(unsealer.open(&mut sealed(&mut sealer, b"under the second")).unwrap().number, number);
        }
        assert_eq!(
            unsealer.open(&mut late),
            Err(Rejection::TooOld),
            "further behind than the window is wide"
        );
        // By number it changes as ever.
        leap(&mut sealer, 2 * WIDTH);
        assert_eq!(unsealer.open(&mut sealed(&mut sealer, b"under the third")).unwrap().number, 2 * WIDTH);
        assert_eq!(sealer.key_since(), 2 * WIDTH);
        assert_eq!((sealer.rekey(), sealer.rekey()), (3 * WIDTH, 4 * WIDTH));
        assert_eq!(unsealer.open(&mut sealed(&mut sealer, b"twice at once")), Err(Rejection::TooFarAhead));
    }
}
