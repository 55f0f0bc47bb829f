//! Handshake of two ends, with the messages of TLS 1.3.

use super::keys::{Level, keys, packet_keys};
use quinn_proto::crypto::{self, ExportKeyingMaterialError, HeaderKey, KeyPair, Keys, PacketKey};
use quinn_proto::transport_parameters::TransportParameters;
use quinn_proto::{ConnectionId, Side, TransportError, TransportErrorCode};
use std::any::Any;

/// Sizes of messages, without the transport parameters: of a client and a server with X25519, AES-128-GCM, an ALPN name, a server
/// name, and a chain of two certificates with ECDSA.
const CLIENT_HELLO_BYTES: usize = 230;
const SERVER_HELLO_BYTES: usize = 90;
/// EncryptedExtensions, Certificate, CertificateVerify and Finished.
const SERVER_FLIGHT_BYTES: usize = 1900;
const FINISHED_BYTES: usize = 36;

/// Longest message that is accepted.
const MAX_MESSAGE_BYTES: usize = 16_000;

/// Handshake message, with its number in TLS 1.3 (RFC 8446 §4).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
enum Message {
    ClientHello = 1,
    ServerHello = 2,
    /// From EncryptedExtensions to Finished, in one message.
    ServerFlight = 8,
    Finished = 20,
}

/// Next step of a handshake.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Step {
    /// The client sends ClientHello.
    SendClientHello,
    /// The client waits for ServerHello.
    AwaitServerHello,
    /// The client takes the keys for the handshake.
    TakeHandshakeKeys,
    /// The client waits for the server's flight.
    AwaitServerFlight,
    /// The client sends Finished and takes the keys for data.
    SendFinished,
    /// The server waits for ClientHello.
    AwaitClientHello,
    /// The server sends ServerHello and takes the keys for the handshake.
    SendServerHello,
    /// The server sends its flight and takes the keys for data.
    SendServerFlight,
    /// The server waits for Finished.
    AwaitFinished,
    /// Complete.
    Complete,
}

/// Handshake of one end.
pub(super) struct Session {
    side: Side,
    step: Step,
    own_parameters: Vec<u8>,
    peer_parameters: Option<TransportParameters>,
    /// Bytes of a message that is not complete.
    input: Vec<u8>,
    /// Number of key phases handed out.
    phases: u64,
}

impl Session {
    pub(super) fn new(side: Side, parameters: &TransportParameters) -> Self {
        let mut own_parameters = Vec::new();
        parameters.write(&mut own_parameters);
        let step = match side {
            Side::Client => Step::SendClientHello,
            Side::Server => Step::AwaitClientHello,
        };
        Self { side, step, own_parameters, peer_parameters: None, input: Vec::new(), phases: 0 }
    }

    fn receive(&mut self, kind: u8, content: &[u8]) -> Result<(), TransportError> {
        self.step = match (self.step, kind) {
            (Step::AwaitClientHello, kind) if kind == Message::ClientHello as u8 => {
                self.read_parameters(content)?;
                Step::SendServerHello
            }
            (Step::AwaitServerHello, kind) if kind == Message::ServerHello as u8 => Step::TakeHandshakeKeys,
            (Step::AwaitServerFlight, kind) if kind == Message::ServerFlight as u8 => {
                self.read_parameters(content)?;
                Step::SendFinished
            }
            (Step::AwaitFinished, kind) if kind == Message::Finished as u8 => Step::Complete,
            // RFC 8446 §6.2: unexpected_message.
            _ => return Err(alert(10, "unexpected handshake message")),
        };
        Ok(())
    }

    fn read_parameters(&mut self, content: &[u8]) -> Result<(), TransportError> {
        let parameters = content
            .split_first_chunk()
            .and_then(|(length, rest)| rest.get(..usize::from(u16::from_be_bytes(*length))))
            // RFC 8446 §6.2: decode_error.
            .ok_or_else(|| alert(50, "no transport parameters"))?;
        self.peer_parameters = Some(TransportParameters::read(self.side, &mut &*parameters)?);
        Ok(())
    }

    fn next_keys(&mut self) -> KeyPair<Box<dyn PacketKey>> {
        let keys = packet_keys(Level::OneRtt(self.phases), &[], self.side);
        self.phases += 1;
        keys
    }

    fn one_rtt_keys(&mut self) -> Keys {
        Keys { packet: self.next_keys(), ..keys(Level::OneRtt(0), &[], self.side) }
    }
}

fn alert(number: u8, reason: &str) -> TransportError {
    TransportError { code: TransportErrorCode::crypto(number), frame: None, reason: reason.into() }
}

/// Appends a message of `bytes` bytes and, if it has them, the transport parameters.
fn write(message: Message, bytes: usize, parameters: Option<&[u8]>, out: &mut Vec<u8>) {
    let parameters = parameters.map_or_else(Vec::new, |parameters| {
        let length = u16::try_from(parameters.len()).expect("transport parameters take some hundred bytes");
        [&length.to_be_bytes(), parameters].concat()
    });
    let length = (bytes - 4 + parameters.len()) as u32;
    let end = out.len() + 4 + length as usize;
    out.extend_from_slice(&(u32::from(message as u8) << 24 | length).to_be_bytes());
    out.extend_from_slice(&parameters);
    out.resize(end, 0);
}

impl crypto::Session for Session {
    fn initial_keys(&self, dst_cid: &ConnectionId, side: Side) -> Keys {
        keys(Level::Initial, dst_cid, side)
    }

    fn handshake_data(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn peer_identity(&self) -> Option<Box<dyn Any>> {
        None
    }

    fn early_crypto(&self) -> Option<(Box<dyn HeaderKey>, Box<dyn PacketKey>)> {
        None
    }

    fn early_data_accepted(&self) -> Option<bool> {
        None
    }

    fn is_handshaking(&self) -> bool {
        self.step != Step::Complete
    }

    fn read_handshake(&mut self, buf: &[u8]) -> Result<bool, TransportError> {
        self.input.extend_from_slice(buf);
        while let Some(&[kind, a, b, c]) = self.input.first_chunk() {
            let length = u32::from_be_bytes([0, a, b, c]) as usize;
            if length > MAX_MESSAGE_BYTES {
                return Err(alert(50, "handshake message too long"));
            }
            let Some(content) = self.input.get(4..4 + length) else { break };
            let content = content.to_vec();
            self.input.drain(..4 + length);
            self.receive(kind, &content)?;
        }
        Ok(false)
    }

    fn transport_parameters(&self) -> Result<Option<TransportParameters>, TransportError> {
        Ok(self.peer_parameters)
    }

    fn write_handshake(&mut self, buf: &mut Vec<u8>) -> Option<Keys> {
        let own = Some(&*self.own_parameters);
        match self.step {
            Step::SendClientHello => {
                write(Message::ClientHello, CLIENT_HELLO_BYTES, own, buf);
                self.step = Step::AwaitServerHello;
                None
            }
            Step::TakeHandshakeKeys => {
                self.step = Step::AwaitServerFlight;
                Some(keys(Level::Handshake, &[], self.side))
            }
            Step::SendFinished => {
                write(Message::Finished, FINISHED_BYTES, None, buf);
                self.step = Step::Complete;
                Some(self.one_rtt_keys())
            }
            Step::SendServerHello => {
                write(Message::ServerHello, SERVER_HELLO_BYTES, None, buf);
                self.step = Step::SendServerFlight;
                Some(keys(Level::Handshake, &[], self.side))
            }
            Step::SendServerFlight => {
                write(Message::ServerFlight, SERVER_FLIGHT_BYTES, own, buf);
                self.step = Step::AwaitFinished;
                Some(self.one_rtt_keys())
            }
            Step::AwaitServerHello
            | Step::AwaitServerFlight
            | Step::AwaitClientHello
            | Step::AwaitFinished
            | Step::Complete => None,
        }
    }

    fn next_1rtt_keys(&mut self) -> Option<KeyPair<Box<dyn PacketKey>>> {
        Some(self.next_keys())
    }

    /// Endpoints here send no Retry packets, so that every one is invented.
    fn is_valid_retry(&self, _orig_dst_cid: &ConnectionId, _header: &[u8], _payload: &[u8]) -> bool {
        false
    }

    fn export_keying_material(
        &self,
        _output: &mut [u8],
        _label: &[u8],
        _context: &[u8],
    ) -> Result<(), ExportKeyingMaterialError> {
        Err(ExportKeyingMaterialError)
    }
}
