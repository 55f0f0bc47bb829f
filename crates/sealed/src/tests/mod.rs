//! Hosts with each other, over whatever the network does.

mod acceptance;
mod attacks;
mod deferred;
mod dialogues;
mod driven;
mod life;
mod memory;
mod moves;
mod net;
mod rekeying;
mod schedules;

use crate::{Credentials, PreSharedKey, PrivateKey, Trust};

fn shared() -> [Credentials; 2] {
    [7, 7].map(|key| Credentials::Shared(PreSharedKey::new([key; 32])))
}

fn private(key: u8) -> PrivateKey {
    PrivateKey::new([key; 32])
}

fn keys_of(key: u8, trusted: u8) -> Credentials {
    Credentials::Keys { private: private(key), trust: Trust::Only(vec![private(trusted).public()]) }
}

/// Returns the credentials of an initiator and a responder that know each other.
fn keys() -> [Credentials; 2] {
    [keys_of(1, 2), keys_of(2, 1)]
}
