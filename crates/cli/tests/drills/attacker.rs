//! Peers that speak the handshake and the sealed datagrams of TPA-wide, and then misbehave.

use crate::drills::world::KEY;
use bytes::Bytes;
use hopline_secure::{
    Credentials, Initiator, InitiatorConfig, InitiatorEvent, PreSharedKey, PrivateKey, Sealer, Seed, Session,
    Trust,
};
use hopline_tools::transfer::{Content as Offered, Frame, Modified, Offer, VERSION};
use hopline_wire::secure::{HEADER_LEN, TAG_LEN};
use hopline_wire::wide::{Data, DatagramContent, HandshakeParameters, Opening, Packet, StreamEnd};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::thread;
use std::time::Duration;

const PATIENCE: Duration = Duration::from_secs(2);
/// Data of a packet, bytes.
const PIECE: u64 = 1400;

/// Unknown peer: the receiver's list does not contain its key.
pub(crate) struct Attacker {
    socket: UdpSocket,
    initiator: Initiator,
}

fn seed(number: u64) -> Seed {
    let mut bytes = [0xa5; 32];
    bytes[..8].copy_from_slice(&number.to_be_bytes());
    Seed::new(bytes)
}

impl Attacker {
    pub(crate) fn new(to: SocketAddr, number: u64) -> Self {
        let private = PrivateKey::new([0xa5; 32]);
        Self::with(
            to,
            Ipv4Addr::LOCALHOST.into(),
            number,
            Credentials::Keys { private, trust: Trust::Anyone },
        )
    }

    fn with(to: SocketAddr, from: IpAddr, number: u64, credentials: Credentials) -> Self {
        let socket = UdpSocket::bind((from, 0)).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        socket.connect(to).unwrap();
        let parameters =
            HandshakeParameters { opening: Opening { mss: 1437, max_data: 1 << 20 }, reset: None }.to_bytes();
        let start = hopline_core::Instant::ZERO;
        let config = InitiatorConfig::default();
        let initiator = Initiator::open(start, config, credentials, parameters, &seed(number)).unwrap();
        Self { socket, initiator }
    }

    pub(crate) fn send(&self, datagram: &[u8]) {
        // Datagrams that the socket has no room for are lost.
        let _ = self.socket.send(datagram);
    }

    fn receive(&self) -> Option<Bytes> {
        let mut buffer = [0; 2048];
        let len = self.socket.recv(&mut buffer).ok()?;
        Some(Bytes::copy_from_slice(&buffer[..len]))
    }

    /// Performs the handshake up to the session.
    fn handshake(&mut self) -> Session {
        for _ in 0..20 {
            while let Some(message) = self.initiator.poll_transmit() {
                self.send(&message);
            }
            if let Some(InitiatorEvent::Completed(established)) = self.initiator.poll_event() {
                return established.session;
            }
            if let Some(answer) = self.receive() {
                self.initiator.handle_datagram(hopline_core::Instant::ZERO, &answer);
            }
        }
        panic!("no answer");
    }

    /// Returns the third message of a handshake, not sent.
    pub(crate) fn third_message(&mut self) -> Vec<u8> {
        let first = self.initiator.poll_transmit().unwrap();
        self.send(&first);
        loop {
            let answer = self.receive().expect("an answer");
            self.initiator.handle_datagram(hopline_core::Instant::ZERO, &answer);
            let next = self.initiator.poll_transmit().unwrap();
            // With many handshakes in progress, a cookie comes first.
            if self.initiator.poll_event().is_some() {
                return next.to_vec();
            }
            self.send(&next);
        }
    }
}

/// Begins a handshake from `from`, returns the cookie, and stops there.
pub(crate) fn with_cookie(to: SocketAddr, from: IpAddr, number: u64) {
    let private = PrivateKey::new([0xa5; 32]);
    let mut attacker = Attacker::with(to, from, number, Credentials::Keys { private, trust: Trust::Anyone });
    attacker.socket.set_read_timeout(Some(Duration::from_millis(5))).unwrap();
    let first = attacker.initiator.poll_transmit().unwrap();
    attacker.send(&first);
    let Some(answer) = attacker.receive() else { return };
    attacker.initiator.handle_datagram(hopline_core::Instant::ZERO, &answer);
    if attacker.initiator.poll_event().is_none()
        && let Some(again) = attacker.initiator.poll_transmit()
    {
        attacker.send(&again);
    }
}

/// Conversation of a malicious peer with the shared key.
pub(crate) struct Conversation {
    attacker: Attacker,
    session: Session,
    /// Data of the stream, in order.
    stream: Vec<u8>,
}

impl Conversation {
    /// Bytes that the receiver reads of it.
    pub(crate) const VALID_BYTES: u64 = 1 << 20;
    /// Bytes that it sends beyond a hole: more than the window.
    const BYTES_BEYOND_HOLE: u64 = 5 << 20;

    pub(crate) fn begin(to: SocketAddr, from: Ipv4Addr, number: usize) -> Self {
        let credentials = Credentials::Shared(PreSharedKey::new(KEY));
        let mut attacker = Attacker::with(to, from.into(), number as u64, credentials);
        let session = attacker.handshake();
        attacker.socket.set_read_timeout(Some(Duration::from_millis(2))).unwrap();
        let offer = Offer {
            path: format!("hostile-{number}").into_bytes(),
            content: Offered::Stream,
            mode: 0o644,
            modified: Modified { seconds: 0, nanoseconds: 0 },
        };
        let frames = [
            Frame::Hello { version: VERSION, sender: None },
            Frame::Offer(0, offer),
            Frame::Start { number: 0, offset: 0 },
        ];
        let mut stream: Vec<u8> = frames.iter().flat_map(Frame::encode).collect();
        while (stream.len() as u64) < Self::VALID_BYTES {
            stream.extend(Frame::Data(vec![7; 1 << 14]).encode());
        }
        stream.truncate(Self::VALID_BYTES as usize);
        Self { attacker, session, stream }
    }

    /// Sends valid data, until all are acknowledged. Returns their number.
    pub(crate) fn send_valid(&mut self) -> u64 {
        let mut acknowledged = 0;
        for _ in 0..2000 {
            for piece in 0..64 {
                self.send(acknowledged + piece * PIECE);
            }
            while let Some(cumulative) = self.receive_ack() {
                acknowledged = acknowledged.max(cumulative);
            }
            if acknowledged >= Self::VALID_BYTES {
                break;
            }
        }
        acknowledged
    }

    /// Sends all but one byte of the window, and more.
    pub(crate) fn fill_beyond_hole(&mut self) {
        self.attacker.socket.set_nonblocking(true).unwrap();
        for piece in 0..Self::BYTES_BEYOND_HOLE / PIECE {
            let payload = Bytes::from(vec![7; PIECE as usize]);
            self.seal(Self::VALID_BYTES + 1 + piece * PIECE, payload);
            if piece.is_multiple_of(32) {
                // Gives the receiver's socket time to make room.
                thread::sleep(Duration::from_micros(500));
                while self.receive_ack().is_some() {}
            }
        }
    }

    fn send(&mut self, offset: u64) {
        let end = (offset + PIECE).min(Self::VALID_BYTES);
        if offset < end {
            let payload = Bytes::copy_from_slice(&self.stream[offset as usize..end as usize]);
            self.seal(offset, payload);
        }
    }

    fn seal(&mut self, offset: u64, payload: Bytes) {
        let number = self.session.sealer.next_number();
        let data = Some(Data { offset, end: StreamEnd::No, payload });
        let mut datagram = vec![0; HEADER_LEN];
        DatagramContent::Packet(Packet { number, data, ..Packet::default() }).emit(&mut datagram);
        datagram.resize(datagram.len() + TAG_LEN, 0);
        assert!(datagram.len() >= Sealer::OVERHEAD);
        self.session.sealer.seal(&mut datagram).unwrap();
        self.attacker.send(&datagram);
    }

    /// Returns the cumulative acknowledgment of the next packet.
    fn receive_ack(&mut self) -> Option<u64> {
        loop {
            let mut datagram = self.attacker.receive()?.to_vec();
            let Ok(opened) = self.session.unsealer.open(&mut datagram) else { continue };
            let (number, payload) = (opened.number, Bytes::copy_from_slice(opened.payload));
            if let Ok(DatagramContent::Packet(Packet { ack: Some(ack), .. })) =
                DatagramContent::parse(number, &payload)
            {
                return Some(ack.cumulative);
            }
        }
    }
}
