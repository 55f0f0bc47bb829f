//! Initiators and responders with each other, over whatever the network does.

mod attacks;
mod dialogues;
mod floods;
mod schedules;
mod world;

use crate::{Credentials, PreSharedKey, PrivateKey, Trust};

fn shared(key: u8) -> Credentials {
    Credentials::Shared(PreSharedKey::new([key; 32]))
}

fn private(key: u8) -> PrivateKey {
    PrivateKey::new([key; 32])
}

/// Returns the credentials of an end with this key that trusts the holders of those.
fn keys(key: u8, trusted: &[u8]) -> Credentials {
    let trust = Trust::Only(trusted.iter().map(|key| private(*key).public()).collect());
    Credentials::Keys { private: private(key), trust }
}
