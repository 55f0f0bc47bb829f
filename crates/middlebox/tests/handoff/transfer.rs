//! The kernel's TCP CUBIC from the server to the mobile host.

use crate::handoff::world::{HOST, World};
use hopline_linux::tcp;
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::{Duration, Instant};

/// Longer than anything here is silent.
const PATIENCE: Duration = Duration::from_secs(30);

/// Result of a transfer.
pub(crate) struct Transfer {
    pub(crate) goodput_mbps: f64,
    /// Segments that the sender has sent again.
    pub(crate) retransmitted: u32,
    /// Bytes in a full segment, at the end.
    pub(crate) mss: u32,
}

/// Sends so many bytes, and compares what arrives.
pub(crate) fn transfer(world: &World, bytes: usize) -> Transfer {
    let to = SocketAddr::from((HOST, 5001));
    let listener = world.mobile.run(|| TcpListener::bind(to)).unwrap().unwrap();
    let mut sender = world.server.run(|| connect(to)).unwrap();
    let mut receiver = listener.accept().unwrap().0;
    sender.set_write_timeout(Some(PATIENCE)).unwrap();
    receiver.set_read_timeout(Some(PATIENCE)).unwrap();
    let content: Vec<u8> = (0..bytes).map(|i| (i * i / 251) as u8).collect();
    let (sent, begun) = (blake3::hash(&content), Instant::now());
    let arrived = thread::scope(|scope| {
        let receiving = scope.spawn(move || {
            let (mut hasher, mut buffer) = (blake3::Hasher::new(), vec![0; 65_536]);
            loop {
                match receiver.read(&mut buffer).unwrap() {
                    0 => return hasher.finalize(),
                    len => hasher.update(&buffer[..len]),
                };
            }
        });
        sender.write_all(&content).unwrap();
        sender.shutdown(std::net::Shutdown::Write).unwrap();
        receiving.join().unwrap()
    });
    assert_eq!(arrived, sent);
    let goodput_mbps = bytes as f64 * 8e-6 / begun.elapsed().as_secs_f64();
    let info = tcp::info(&sender).unwrap();
    Transfer { goodput_mbps, retransmitted: info.retransmitted, mss: info.mss }
}

fn connect(to: SocketAddr) -> TcpStream {
    let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
    tcp::set_congestion_control(&socket, "cubic").unwrap();
    socket.connect(&to.into()).unwrap();
    TcpStream::from(socket)
}
