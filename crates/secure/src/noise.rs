//! A handshake of Noise, by `snow`: primitives and randomness handed in, and what fails to be read leaves no trace.
//!
//! `snow` undoes a failed reading only in part: the key of its cipher stays. First and second messages begin
//! by setting that key, so that nothing is left of a failed one. A third message begins with a static key
//! that is sealed under the key of the second message. If that static key is authentic and the rest is
//! damaged, the handshake is spoilt. As everything follows from a seed, it is then made once more up to the
//! point before, when the next message comes. That is as dear as a handshake, so there is a budget for it.

use crate::aead::KEY_LEN;
use crate::credentials::Credentials;
use crate::entropy::{Entropy, Seed};
use crate::keys::PublicKey;
use bytes::Bytes;
use core::fmt;
use curve25519_dalek::MontgomeryPoint;
use hopline_core::Instant;
use hopline_core::request_admission::TokenBucket;
use hopline_wire::secure::{Cipher, Method, Suite};
use snow::params::{CipherChoice, DHChoice, HashChoice};
use snow::resolvers::{CryptoResolver, RingResolver};
use snow::types::{self, Dh, Hash, Random};
use snow::{Builder, HandshakeState};
use std::sync::Arc;
use zeroize::Zeroizing;

/// Bytes that a message has at most beside its payload: an ephemeral key, a static key with its tag, a tag.
const MESSAGE_OVERHEAD: usize = 32 + 48 + 16;

/// Bytes that a third message has beside its payload: a static key with its tag, a tag.
pub(crate) const THIRD_MESSAGE_OVERHEAD: usize = 48 + 16;

/// Most times in a second that a handshake is made once more.
const MAX_REMAKES: u32 = 8;

/// Role of an end in a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Initiator,
    Responder,
}

/// Inputs of a handshake.
#[derive(Clone)]
pub(crate) struct Setup {
    pub(crate) role: Role,
    pub(crate) suite: Suite,
    pub(crate) credentials: Arc<Credentials>,
    pub(crate) prologue: Bytes,
    pub(crate) seed: Seed,
}

/// A handshake in progress.
pub(crate) struct Handshake {
    setup: Setup,
    state: State,
    completed: Vec<Step>,
    remakes: TokenBucket,
}

enum State {
    /// State after the completed steps.
    Valid(Box<HandshakeState>),
    /// Something failed; to be made once more.
    Corrupted,
}

/// Completed step of a handshake.
enum Step {
    /// This payload was written.
    Wrote(Bytes),
    /// This message was read.
    Read(Bytes),
}

/// A message that is not what it should be; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Unauthentic;

/// Reason for which a message was not read; nothing has changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ReadFailure {
    /// It is not what it should be.
    Unauthentic,
    /// The handshake would have to be made once more, and was too often.
    OverBudget,
}

/// The keys of both directions, and what names the handshake.
pub(crate) struct Split {
    pub(crate) initiator: Zeroizing<[u8; KEY_LEN]>,
    pub(crate) responder: Zeroizing<[u8; KEY_LEN]>,
    pub(crate) binding: [u8; 32],
}

impl Handshake {
    pub(crate) fn new(setup: Setup) -> Self {
        let state = State::Valid(Box::new(setup.begin()));
        Self { setup, state, completed: Vec::new(), remakes: TokenBucket::new(MAX_REMAKES, Instant::ZERO) }
    }

    /// Returns the next message, with `payload`.
    pub(crate) fn write(&mut self, payload: Bytes) -> Result<Bytes, Unauthentic> {
        let mut message = vec![0; MESSAGE_OVERHEAD + payload.len()];
        let written = self.valid_state().write_message(&payload, &mut message);
        let Ok(len) = written else {
            // An exchange with a key of small order, which no honest peer has.
            self.state = State::Corrupted;
            return Err(Unauthentic);
        };
        message.truncate(len);
        self.completed.push(Step::Wrote(payload));
        Ok(message.into())
    }

    /// Returns the payload of the next message. If the handshake has to be made once more for it, that is
    /// taken off its own budget and, if there is one, that of all handshakes.
    pub(crate) fn read(
        &mut self,
        now: Instant,
        message: &Bytes,
        in_all: Option<&mut TokenBucket>,
    ) -> Result<Bytes, ReadFailure> {
        let within_budget = |own: &mut TokenBucket| own.take(now) && in_all.is_none_or(|all| all.take(now));
        if matches!(self.state, State::Corrupted) && !within_budget(&mut self.remakes) {
            return Err(ReadFailure::OverBudget);
        }
        let is_third = self.setup.role == Role::Responder && !self.completed.is_empty();
        let state = self.valid_state();
        let mut payload = vec![0; message.len()];
        let Ok(len) = state.read_message(message, &mut payload) else {
            if is_third && state.get_remote_static().is_some() {
                self.state = State::Corrupted;
            }
            return Err(ReadFailure::Unauthentic);
        };
        payload.truncate(len);
        self.completed.push(Step::Read(message.clone()));
        Ok(payload.into())
    }

    /// Undoes the last step.
    pub(crate) fn undo(&mut self) {
        self.completed.pop();
        self.state = State::Corrupted;
    }

    /// Returns the peer's key, if its message had it.
    pub(crate) fn peer(&mut self) -> Option<PublicKey> {
        let key = self.valid_state().get_remote_static()?;
        Some(PublicKey::new(key.try_into().expect("keys of X25519 have 32 bytes")))
    }

    /// Returns the keys, once all messages are there.
    pub(crate) fn split(&mut self) -> Split {
        let state = self.valid_state();
        debug_assert!(state.is_handshake_finished(), "keys of a handshake that is not over");
        let (of_opener, of_answerer) = state.dangerously_get_raw_split();
        let binding = state.get_handshake_hash().try_into().expect("SHA-256 has 32 bytes");
        Split { initiator: Zeroizing::new(of_opener), responder: Zeroizing::new(of_answerer), binding }
    }

    fn valid_state(&mut self) -> &mut HandshakeState {
        if matches!(self.state, State::Corrupted) {
            let mut state = self.setup.begin();
            for step in &self.completed {
                const SAME: &str = "what went well goes well again: it follows from the same seed";
                match step {
                    Step::Wrote(payload) => {
                        let mut message = vec![0; MESSAGE_OVERHEAD + payload.len()];
                        state.write_message(payload, &mut message).expect(SAME);
                    }
                    Step::Read(message) => {
                        let mut payload = vec![0; message.len()];
                        state.read_message(message, &mut payload).expect(SAME);
                    }
                }
            }
            self.state = State::Valid(Box::new(state));
        }
        match &mut self.state {
            State::Valid(state) => state,
            State::Corrupted => unreachable!("made anew above"),
        }
    }
}

impl fmt::Debug for Handshake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Handshake({:?}, {:?}, {} messages)",
            self.setup.role,
            self.setup.suite,
            self.completed.len()
        )
    }
}

impl Setup {
    fn begin(&self) -> HandshakeState {
        const RIGHT: &str = "names, keys and primitives are those of the pattern";
        let name = name(self.suite).parse().expect(RIGHT);
        let resolver = Box::new(Primitives { seed: self.seed.clone() });
        let builder = Builder::with_resolver(name, resolver).prologue(&self.prologue).expect(RIGHT);
        let builder = match &*self.credentials {
            Credentials::Shared(key) => builder.psk(0, key.bytes()).expect(RIGHT),
            Credentials::Keys { private, .. } => builder.local_private_key(private.bytes()).expect(RIGHT),
        };
        match self.role {
            Role::Initiator => builder.build_initiator(),
            Role::Responder => builder.build_responder(),
        }
        .expect(RIGHT)
    }
}

const fn name(suite: Suite) -> &'static str {
    match (suite.method, suite.cipher) {
        (Method::SharedKey, Cipher::ChaCha20Poly1305) => "Noise_NNpsk0_25519_ChaChaPoly_SHA256",
        (Method::SharedKey, Cipher::Aes256Gcm) => "Noise_NNpsk0_25519_AESGCM_SHA256",
        (Method::PublicKeys, Cipher::ChaCha20Poly1305) => "Noise_XX_25519_ChaChaPoly_SHA256",
        (Method::PublicKeys, Cipher::Aes256Gcm) => "Noise_XX_25519_AESGCM_SHA256",
    }
}

/// Cryptographic primitives of Noise: ciphers and hash by ring, X25519 by curve25519-dalek, and all
/// randomness derived from the seed.
struct Primitives {
    seed: Seed,
}

impl CryptoResolver for Primitives {
    fn resolve_rng(&self) -> Option<Box<dyn Random>> {
        Some(Box::new(Entropy::new(&self.seed)))
    }

    fn resolve_dh(&self, choice: &DHChoice) -> Option<Box<dyn Dh>> {
        (*choice == DHChoice::Curve25519).then(|| Box::new(X25519::default()) as Box<dyn Dh>)
    }

    fn resolve_hash(&self, choice: &HashChoice) -> Option<Box<dyn Hash>> {
        RingResolver.resolve_hash(choice)
    }

    fn resolve_cipher(&self, choice: &CipherChoice) -> Option<Box<dyn types::Cipher>> {
        RingResolver.resolve_cipher(choice)
    }
}

impl Random for Entropy {
    fn try_fill_bytes(&mut self, bytes: &mut [u8]) -> Result<(), snow::Error> {
        self.fill(bytes);
        Ok(())
    }
}

/// A pair of keys. The resolvers that snow brings along do not wipe theirs.
#[derive(Default)]
struct X25519 {
    private: Zeroizing<[u8; KEY_LEN]>,
    public: [u8; KEY_LEN],
}

impl Dh for X25519 {
    fn name(&self) -> &'static str {
        "25519"
    }

    fn pub_len(&self) -> usize {
        KEY_LEN
    }

    fn priv_len(&self) -> usize {
        KEY_LEN
    }

    fn set(&mut self, private: &[u8]) {
        self.private.copy_from_slice(private);
        self.public = MontgomeryPoint::mul_base_clamped(*self.private).to_bytes();
    }

    fn generate(&mut self, random: &mut dyn Random) -> Result<(), snow::Error> {
        let mut private = Zeroizing::new([0; KEY_LEN]);
        random.try_fill_bytes(&mut private[..])?;
        self.set(&private[..]);
        Ok(())
    }

    fn pubkey(&self) -> &[u8] {
        &self.public
    }

    fn privkey(&self) -> &[u8] {
        &self.private[..]
    }

    fn dh(&self, public: &[u8], out: &mut [u8]) -> Result<(), snow::Error> {
        let public = *public.first_chunk().ok_or(snow::Error::Dh)?;
        let shared = Zeroizing::new(MontgomeryPoint(public).mul_clamped(*self.private).to_bytes());
        // RFC 7748 §6.1: a public key of small order gives zeros, whatever our key.
        if *shared == [0; KEY_LEN] {
            return Err(snow::Error::Dh);
        }
        out[..KEY_LEN].copy_from_slice(&shared[..]);
        Ok(())
    }
}

#[cfg(test)]
mod tests;
