//! Transfers with recognisable bytes, and their results.

use crate::proxy::world::{PATIENCE, POLL_INTERVAL, now};
use hopline_linux::Namespace;
use hopline_testkit::namespace::host::open_with_retries;
use socket2::{Domain, Socket, Type};
use std::io::{self, Read, Write};
use std::net::{IpAddr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// End of a transfer at the receiver. A wrong byte causes a panic instead.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    /// All bytes, and then the end of the stream.
    Whole,
    /// An error after so many bytes.
    Broken(usize),
    /// The end of the stream after so many bytes, as if they were all.
    Short(usize),
}

/// Pace of the sender.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Pace {
    AtOnce,
    /// 16 KiB in each interval of this length.
    Chunks(Duration),
}

/// Transfer in progress.
pub(crate) struct Transfer {
    arrived: Arc<AtomicU64>,
    writer: JoinHandle<io::Result<()>>,
    reader: JoinHandle<End>,
}

const CHUNK: usize = 16 << 10;

/// Returns byte `i` of a transfer. No two transfers have a long common part; 251 is not a multiple of any length in use.
pub(crate) fn byte(seed: u64, i: usize) -> u8 {
    let mixed = (i as u64 ^ seed.rotate_left(17)).wrapping_mul(0x9e37_79b9_7f4a_7c15);
    (mixed >> 56) as u8 ^ (i % 251) as u8
}

pub(crate) fn content(seed: u64, len: usize) -> Vec<u8> {
    (0..len).map(|i| byte(seed, i)).collect()
}

impl Transfer {
    /// Sends `len` bytes from one host to another, at its address and port.
    pub(crate) fn start(hosts: [&Namespace; 2], to: (&str, u16), len: usize, pace: Pace) -> io::Result<Self> {
        Self::start_by(hosts, to, to, len, pace)
    }

    /// Sends `len` bytes in a connection to `by`, which leads to `to`.
    pub(crate) fn start_by(
        hosts: [&Namespace; 2],
        by: (&str, u16),
        to: (&str, u16),
        len: usize,
        pace: Pace,
    ) -> io::Result<Self> {
        let [sender, receiver] = connected(hosts, by, to)?;
        Self::between(sender, receiver, len, pace)
    }

    /// Lets the called host send: a client, a server, and the server's address and port.
    pub(crate) fn download(hosts: [&Namespace; 2], from: (&str, u16), len: usize) -> io::Result<Self> {
        let [receiver, sender] = connected(hosts, from, from)?;
        Self::between(sender, receiver, len, Pace::AtOnce)
    }

    /// Sends `len` bytes over an existing connection.
    pub(crate) fn between(
        mut sender: TcpStream,
        mut receiver: TcpStream,
        len: usize,
        pace: Pace,
    ) -> io::Result<Self> {
        sender.set_write_timeout(Some(PATIENCE))?;
        receiver.set_read_timeout(Some(3 * PATIENCE))?;
        let seed = u64::from(sender.local_addr()?.port());
        let arrived = Arc::new(AtomicU64::new(0));
        let seen = Arc::clone(&arrived);
        Ok(Self {
            arrived,
            writer: in_a_thread(move || write(&mut sender, &content(seed, len), pace)),
            reader: in_a_thread(move || read(&mut receiver, &content(seed, len), &seen)),
        })
    }

    /// Returns the number of bytes that have arrived.
    pub(crate) fn arrived(&self) -> u64 {
        self.arrived.load(Relaxed)
    }

    /// Waits until `bytes` bytes have arrived, or the transfer has ended.
    pub(crate) fn until_arrived(&self, bytes: u64) {
        let since = now();
        while self.arrived() < bytes && !self.reader.is_finished() {
            assert!(since.elapsed() < 3 * PATIENCE, "{} bytes of {bytes}", self.arrived());
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits for the end. Returns the results of the receiver and the sender.
    pub(crate) fn ends(self) -> (End, io::Result<()>) {
        (self.reader.join().unwrap(), self.writer.join().unwrap())
    }

    /// Checks that all bytes arrive.
    pub(crate) fn arrives(self, what: &str) {
        let (end, sent) = self.ends();
        assert_eq!(end, End::Whole, "{what}: {sent:?}");
        sent.unwrap();
    }
}

/// Performs a whole transfer.
pub(crate) fn run_transfer(hosts: [&Namespace; 2], to: (&str, u16), len: usize) {
    Transfer::start(hosts, to, len, Pace::AtOnce).unwrap().arrives("a transfer");
}

/// Opens a connection to `by`, which leads to `to`. Returns the ends of the calling and the called host.
pub(crate) fn connected(
    hosts: [&Namespace; 2],
    by: (&str, u16),
    to: (&str, u16),
) -> io::Result<[TcpStream; 2]> {
    let [by, to] = [by, to].map(|(address, port)| SocketAddr::new(address.parse::<IpAddr>().unwrap(), port));
    let listener = open_with_retries(hosts[1], || listen(to));
    let caller = hosts[0].run(|| TcpStream::connect_timeout(&by, PATIENCE)).unwrap()?;
    listener.set_nonblocking(true)?;
    Ok([caller, accepted(&listener)?])
}

fn listen(at: SocketAddr) -> io::Result<TcpListener> {
    let socket = Socket::new(Domain::for_address(at), Type::STREAM, None)?;
    socket.set_reuse_address(true)?;
    socket.bind(&at.into())?;
    socket.listen(16)?;
    Ok(socket.into())
}

fn accepted(listener: &TcpListener) -> io::Result<TcpStream> {
    let since = now();
    loop {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(stream);
            }
            Err(error) if error.kind() != io::ErrorKind::WouldBlock || since.elapsed() > PATIENCE => {
                return Err(error);
            }
            Err(_) => thread::sleep(POLL_INTERVAL),
        }
    }
}

fn write(stream: &mut TcpStream, content: &[u8], pace: Pace) -> io::Result<()> {
    match pace {
        Pace::AtOnce => stream.write_all(content)?,
        Pace::Chunks(time) => {
            for chunk in content.chunks(CHUNK) {
                stream.write_all(chunk)?;
                thread::sleep(time);
            }
        }
    }
    stream.shutdown(Shutdown::Write)?;
    // The result of the sender is known only when the other end has ended too.
    stream.set_read_timeout(Some(3 * PATIENCE))?;
    match stream.read(&mut [0])? {
        0 => Ok(()),
        _ => Err(io::Error::other("the receiver says something")),
    }
}

fn read(stream: &mut TcpStream, content: &[u8], arrived: &AtomicU64) -> End {
    let (mut buffer, mut at) = (vec![0; 1 << 16], 0);
    loop {
        match stream.read(&mut buffer) {
            Ok(0) if at == content.len() => return End::Whole,
            Ok(0) => return End::Short(at),
            Ok(len) => {
                assert!(content.get(at..at + len) == Some(&buffer[..len]), "wrong bytes after {at}");
                at += len;
                arrived.store(at as u64, Relaxed);
            }
            Err(_) => return End::Broken(at),
        }
    }
}

pub(crate) fn in_a_thread<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    thread::Builder::new().name("host".into()).spawn(what).unwrap()
}
