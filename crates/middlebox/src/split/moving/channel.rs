//! Conversation of two stations: frames over a TCP connection, each with a proof that the other station has sent it in this connection.
//!
//! ```text
//!  claimant                         holder
//!     │── 32 random bytes ────────────▶│
//!     │◀──────────── 32 random bytes ──│
//!     │── frame: length, kind, bytes, proof ──▶ …
//! ```
//!
//! Of both random numbers and the network's key follow the keys of the two directions, so that nothing of another connection is taken.
//! Frames are counted, so that none is taken twice or out of order. The proof is BLAKE3 with a key, of 128 bits. Nothing is encrypted: the
//! bytes cross the wired network as they do in packets.

use super::MoveKey;
use crate::split::worker::now;
use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

/// Most bytes of a frame: what is not proved yet costs no more.
pub(super) const MAX_FRAME: usize = 1 << 16;
const NONCE_LEN: usize = 32;
const PROOF_LEN: usize = 16;
/// Length and kind.
const HEADER_LEN: usize = 5;

/// Meaning of a frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Kind {
    /// The claimant names a mobile host that has come to it: an address, and behind a space the number of the host's last request to it.
    Claim = 1,
    /// The holder has a connection of the host. Its state has this many bytes.
    Offer = 2,
    /// Bytes of that state.
    Bytes = 3,
    /// The claimant could hold the connection.
    Ready = 4,
    /// The claimant cannot hold the connection. The holder goes on with it.
    Refuse = 5,
    /// The claimant holds the connection. From here on the holder does not go on with it, whatever comes.
    Commit = 6,
    /// The holder goes on with it.
    Abandon = 7,
    /// The claimant goes on with it.
    Done = 8,
    /// The claimant has reset it.
    Failed = 9,
    /// There are no more connections of the host.
    End = 10,
    /// The host has asked the holder since: it has come back, and its connections stay.
    Returned = 11,
}

impl Kind {
    const ALL: [Self; 11] = [
        Self::Claim,
        Self::Offer,
        Self::Bytes,
        Self::Ready,
        Self::Refuse,
        Self::Commit,
        Self::Abandon,
        Self::Done,
        Self::Failed,
        Self::End,
        Self::Returned,
    ];

    fn of(code: u8) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| *kind as u8 == code)
    }
}

/// End of a connection between stations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    Claimant,
    Holder,
}

/// One direction: its key, and the number of its next frame.
#[derive(Debug)]
struct Direction {
    key: [u8; 32],
    next_frame: u64,
}

#[derive(Debug)]
pub(super) struct Channel {
    stream: TcpStream,
    sending: Direction,
    receiving: Direction,
}

impl Channel {
    /// Agrees on the keys, within `patience`. The other end has proved nothing before its first frame.
    pub(super) fn open(
        mut stream: TcpStream,
        role: Role,
        key: &MoveKey,
        patience: Duration,
    ) -> io::Result<Self> {
        let deadline = now() + patience;
        stream.set_nodelay(true)?;
        stream.set_write_timeout(Some(patience))?;
        let mut ours = [0; NONCE_LEN];
        getrandom::fill(&mut ours).map_err(io::Error::from)?;
        stream.write_all(&ours)?;
        let mut theirs = [0; NONCE_LEN];
        read(&mut stream, &mut theirs, deadline)?;
        let both = match role {
            Role::Claimant => [ours, theirs],
            Role::Holder => [theirs, ours],
        };
        let session = blake3::keyed_hash(&key.0, both.as_flattened());
        let of = |role: Role| Direction {
            key: *blake3::keyed_hash(session.as_bytes(), &[role as u8]).as_bytes(),
            next_frame: 0,
        };
        let (sends, receives) = match role {
            Role::Claimant => (of(Role::Claimant), of(Role::Holder)),
            Role::Holder => (of(Role::Holder), of(Role::Claimant)),
        };
        Ok(Self { stream, sending: sends, receiving: receives })
    }

    pub(super) fn send(&mut self, kind: Kind, bytes: &[u8]) -> io::Result<()> {
        let mut frame = Vec::with_capacity(HEADER_LEN + bytes.len() + PROOF_LEN);
        frame.extend_from_slice(&(bytes.len() as u32).to_be_bytes());
        frame.push(kind as u8);
        frame.extend_from_slice(bytes);
        let proof = self.sending.frame_proof(&frame);
        frame.extend_from_slice(&proof);
        self.stream.write_all(&frame)
    }

    /// Receives a frame within `patience`.
    pub(super) fn receive(&mut self, patience: Duration) -> io::Result<(Kind, Vec<u8>)> {
        let deadline = now() + patience;
        let mut frame = vec![0; HEADER_LEN];
        read(&mut self.stream, &mut frame, deadline)?;
        let len = u32::from_be_bytes([frame[0], frame[1], frame[2], frame[3]]) as usize;
        if len > MAX_FRAME {
            return Err(ErrorKind::InvalidData.into());
        }
        frame.resize(HEADER_LEN + len + PROOF_LEN, 0);
        read(&mut self.stream, &mut frame[HEADER_LEN..], deadline)?;
        let proof = frame.split_off(HEADER_LEN + len);
        let differs =
            self.receiving.frame_proof(&frame).iter().zip(&proof).fold(0, |all, (a, b)| all | (a ^ b));
        let kind = Kind::of(frame[4]).filter(|_| differs == 0).ok_or(ErrorKind::InvalidData)?;
        frame.drain(..HEADER_LEN);
        Ok((kind, frame))
    }
}

impl Direction {
    fn frame_proof(&mut self, frame: &[u8]) -> [u8; PROOF_LEN] {
        let mut hasher = blake3::Hasher::new_keyed(&self.key);
        hasher.update(&self.next_frame.to_be_bytes()).update(frame);
        self.next_frame += 1;
        let mut proof = [0; PROOF_LEN];
        hasher.finalize_xof().fill(&mut proof);
        proof
    }
}

/// Fills `bytes` before the deadline, however slowly they come.
fn read(stream: &mut TcpStream, mut bytes: &mut [u8], deadline: Instant) -> io::Result<()> {
    while !bytes.is_empty() {
        let left = deadline.saturating_duration_since(now());
        if left.is_zero() {
            return Err(ErrorKind::TimedOut.into());
        }
        stream.set_read_timeout(Some(left))?;
        match stream.read(bytes) {
            Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
            Ok(len) => bytes = &mut bytes[len..],
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Err(ErrorKind::TimedOut.into()),
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{Ipv4Addr, TcpListener};
    use std::thread;

    const PATIENCE: Duration = Duration::from_secs(5);

    fn streams() -> [TcpStream; 2] {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let ours = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
        [ours, listener.accept().unwrap().0]
    }

    fn channels(keys: [[u8; 16]; 2]) -> [Channel; 2] {
        let [claimant, holder] = streams();
        let [ours, theirs] = keys.map(|key| MoveKey::of(&hopline_proxy::handoff::Key::new(key)).unwrap());
        thread::scope(|scope| {
            let holder = scope.spawn(move || Channel::open(holder, Role::Holder, &theirs, PATIENCE).unwrap());
            let claimant = Channel::open(claimant, Role::Claimant, &ours, PATIENCE).unwrap();
            [claimant, holder.join().unwrap()]
        })
    }

    #[test]
    fn frames_round_trip() {
        let [mut claimant, mut holder] = channels([[1; 16]; 2]);
        claimant.send(Kind::Claim, b"host").unwrap();
        claimant.send(Kind::Ready, b"").unwrap();
        holder.send(Kind::Bytes, &vec![7; MAX_FRAME]).unwrap();
        assert_eq!(holder.receive(PATIENCE).unwrap(), (Kind::Claim, b"host".to_vec()));
        assert_eq!(holder.receive(PATIENCE).unwrap(), (Kind::Ready, Vec::new()));
        assert_eq!(claimant.receive(PATIENCE).unwrap(), (Kind::Bytes, vec![7; MAX_FRAME]));
    }

    #[test]
    fn a_frame_with_another_key_is_rejected() {
        let [mut claimant, mut holder] = channels([[1; 16], [2; 16]]);
        claimant.send(Kind::Claim, b"host").unwrap();
        assert_eq!(holder.receive(PATIENCE).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn a_repeated_or_changed_frame_is_rejected() {
        let changes: [fn(&mut Vec<u8>); 3] = [|frame| frame[HEADER_LEN] ^= 1, |frame| frame[4] = 2, |_| {}];
        for change in changes {
            let [mut claimant, mut holder] = channels([[1; 16]; 2]);
            claimant.send(Kind::Claim, b"host").unwrap();
            let mut frame = vec![0; HEADER_LEN + 4 + PROOF_LEN];
            holder.stream.peek(&mut frame).unwrap();
            assert!(holder.receive(PATIENCE).is_ok());
            change(&mut frame);
            claimant.stream.write_all(&frame).unwrap();
            assert_eq!(holder.receive(PATIENCE).unwrap_err().kind(), ErrorKind::InvalidData);
        }
    }

    #[test]
    fn a_frame_that_is_too_long_is_rejected_before_it_is_read() {
        let [claimant, mut holder] = channels([[1; 16]; 2]);
        { &claimant.stream }.write_all(&[0xff; HEADER_LEN]).unwrap();
        assert_eq!(holder.receive(PATIENCE).unwrap_err().kind(), ErrorKind::InvalidData);
    }

    #[test]
    fn silence_ends_at_the_deadline() {
        let [claimant, mut holder] = channels([[1; 16]; 2]);
        { &claimant.stream }.write_all(&[0, 0]).unwrap();
        let error = holder.receive(Duration::from_millis(30)).unwrap_err();
        assert_eq!(error.kind(), ErrorKind::TimedOut);
    }
}
