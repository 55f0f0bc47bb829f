//! Two ends of a connection.

use bytes::Bytes;
use core::net::SocketAddr;
use hopline_core::Instant;
use hopline_secure::{
    Accepted, Cipher, Credentials, Established, Initiator, InitiatorConfig, InitiatorEvent, Method,
    PreSharedKey, PrivateKey, Responder, ResponderConfig, ResponderEvent, Sealer, Seed, Trust,
};

/// Address of an initiator.
pub(crate) const ADDRESS: ([u8; 4], u16) = ([10, 0, 0, 1], 1000);

/// Returns the credentials of an initiator and a responder.
pub(crate) fn credentials(method: Method) -> [Credentials; 2] {
    match method {
        Method::SharedKey => [(); 2].map(|()| Credentials::Shared(PreSharedKey::new([7; 32]))),
        Method::PublicKeys => {
            let keys = [1, 2].map(|key| PrivateKey::new([key; 32]));
            let [a, b] = [0, 1].map(|end: usize| {
                let trust = Trust::Only(vec![keys[1 - end].public()]);
                Credentials::Keys { private: keys[end].clone(), trust }
            });
            [a, b]
        }
    }
}

/// An initiator, and its first message.
pub(crate) fn open(cipher: Cipher, credentials: &Credentials, seed: [u8; 32]) -> (Initiator, Bytes) {
    let config = InitiatorConfig::default().with_cipher(cipher);
    let opened = Initiator::open(Instant::ZERO, config, credentials.clone(), Bytes::new(), &Seed::new(seed));
    let mut initiator = opened.expect("defaults are right");
    let first = initiator.poll_transmit().expect("it begins");
    (initiator, first)
}

/// A responder.
pub(crate) fn responder(config: ResponderConfig, credentials: &Credentials) -> Responder {
    let made = Responder::new(config, credentials.clone(), Bytes::new(), &Seed::new([2; 32]));
    made.expect("the settings are right")
}

/// A whole handshake.
pub(crate) fn handshake(
    mut initiator: Initiator,
    first: &Bytes,
    responder: &mut Responder,
) -> (Established, Accepted) {
    let at = SocketAddr::from(ADDRESS);
    responder.handle_datagram(Instant::ZERO, at, &mut first.to_vec());
    let (_, second) = responder.poll_transmit().expect("it is answered");
    initiator.handle_datagram(Instant::ZERO, &second);
    let Some(InitiatorEvent::Completed(mut established)) = initiator.poll_event() else { panic!("no keys") };
    let mut last = match initiator.poll_transmit() {
        Some(third) => third.to_vec(),
        None => {
            let mut empty = vec![0; Sealer::OVERHEAD];
            established.session.sealer.seal(&mut empty).expect("there is room");
            empty
        }
    };
    responder.handle_datagram(Instant::ZERO, at, &mut last);
    let Some(ResponderEvent::Accepted(accepted)) = responder.poll_event() else { panic!("not accepted") };
    (established, accepted)
}
