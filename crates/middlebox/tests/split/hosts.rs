//! Actions of the hosts: connect, serve, send, and check how a connection ends.

use crate::split::router::{Ground, Ip, served};
use hopline_testkit::streams::until;
use socket2::{Domain, SockRef, Socket, Type};
use std::io::{self, ErrorKind, Read, Write};
use std::net::{Ipv4Addr, Ipv6Addr, SocketAddr, TcpListener, TcpStream};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Timeout of every operation of a host.
const PATIENCE: Duration = Duration::from_secs(10);

impl Ground {
    /// A listener of the server. Its `accept` fails if no call comes within [`PATIENCE`].
    pub(crate) fn listen(&self, ip: Ip) -> TcpListener {
        let listener = self.server.run(|| TcpListener::bind(served(ip)).unwrap()).unwrap();
        // For a listener, it is how long `accept` waits (socket(7)).
        SockRef::from(&listener).set_read_timeout(Some(PATIENCE)).unwrap();
        listener
    }

    pub(crate) fn connect(&self, to: SocketAddr) -> io::Result<TcpStream> {
        self.client.run(|| TcpStream::connect_timeout(&to, PATIENCE)).unwrap().map(with_timeouts)
    }

    /// The same, by a port of the client's that may have been used just now: connects once its last connection is over.
    pub(crate) fn connect_by(&self, port: u16, to: SocketAddr) -> TcpStream {
        let call = || {
            let mut stream = None;
            until("the last connection is over", || {
                stream = connect_unless_in_use(port, to);
                stream.is_some()
            });
            with_timeouts(stream.expect("it was connected"))
        };
        self.client.run(call).unwrap()
    }

    /// Connects through the proxy as soon as it has room: it resets connections that it has no room for. `listener` must not
    /// block.
    pub(crate) fn connect_once_there_is_room(&self, listener: &TcpListener) -> (TcpStream, TcpStream) {
        let mut both = None;
        until("there is room for a connection", || {
            both = self.connect(listener.local_addr().unwrap()).ok().and_then(|ours| {
                thread::sleep(Duration::from_millis(100));
                // Earlier ones may come late.
                let theirs = std::iter::from_fn(|| listener.accept().ok());
                let theirs = theirs.last().filter(|(_, from)| *from == ours.local_addr().unwrap())?.0;
                theirs.set_nonblocking(false).unwrap();
                Some((ours, with_timeouts(theirs)))
            });
            both.is_some()
        });
        both.expect("there was room")
    }

    /// A connection through the proxy, from both ends: the client's, and the server's.
    pub(crate) fn connect_through_proxy(&self, listener: &TcpListener) -> (TcpStream, TcpStream) {
        let client = self.connect(listener.local_addr().unwrap()).unwrap();
        (client, with_timeouts(listener.accept().unwrap().0))
    }
}

/// Nothing while the client has a connection of the same addresses and ports: it may still wait for the acknowledgment
/// of its FIN when the proxy has counted the connection as closed.
fn connect_unless_in_use(port: u16, to: SocketAddr) -> Option<TcpStream> {
    let socket = Socket::new(Domain::for_address(to), Type::STREAM, None).unwrap();
    socket.set_reuse_address(true).unwrap();
    let any = if to.is_ipv4() { Ipv4Addr::UNSPECIFIED.into() } else { Ipv6Addr::UNSPECIFIED.into() };
    socket.bind(&SocketAddr::new(any, port).into()).unwrap();
    match socket.connect(&to.into()) {
        Err(error) if error.kind() == ErrorKind::AddrNotAvailable => None,
        connected => connected.map(|()| Some(socket.into())).unwrap(),
    }
}

/// With an end to its patience.
fn with_timeouts(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Returns pseudorandom bytes that are unique to `seed`.
pub(crate) fn bytes(seed: &str, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    blake3::Hasher::new_derive_key(seed).finalize_xof().fill(&mut bytes);
    bytes
}

pub(crate) fn read_to_end(stream: &mut TcpStream) -> io::Result<blake3::Hash> {
    let (mut hasher, mut buffer) = (blake3::Hasher::new(), vec![0; 1 << 16]);
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok(hasher.finalize()),
            len => drop(hasher.update(&buffer[..len])),
        }
    }
}

/// A thread for what a host does meanwhile.
pub(crate) fn meanwhile<T: Send + 'static>(what: impl FnOnce() -> T + Send + 'static) -> JoinHandle<T> {
    thread::Builder::new().name("host".into()).spawn(what).unwrap()
}

/// Sends and ends one end of a connection, in a thread of its own, while it receives.
pub(crate) fn exchange(stream: TcpStream, sent: Vec<u8>) -> JoinHandle<blake3::Hash> {
    exchange_and_end_after(stream, sent, || ())
}

/// Like [`exchange`], but this end is ended only once `wait` has returned.
pub(crate) fn exchange_and_end_after(
    mut stream: TcpStream,
    sent: Vec<u8>,
    wait: impl FnOnce() + Send + 'static,
) -> JoinHandle<blake3::Hash> {
    meanwhile(move || {
        let mut writer = stream.try_clone().unwrap();
        let writes = meanwhile(move || {
            writer.write_all(&sent).unwrap();
            wait();
            writer.shutdown(std::net::Shutdown::Write).unwrap();
        });
        let hash = read_to_end(&mut stream).unwrap();
        writes.join().unwrap();
        hash
    })
}

/// Writes and reads a word through the proxy.
pub(crate) fn echo([from, to]: [&mut TcpStream; 2], word: &[u8]) -> io::Result<()> {
    from.write_all(word)?;
    let mut read = vec![0; word.len()];
    to.read_exact(&mut read)?;
    assert_eq!(read, word);
    Ok(())
}

/// Resets a connection.
pub(crate) fn reset(stream: TcpStream) {
    SockRef::from(&stream).set_linger(Some(Duration::ZERO)).unwrap();
}

/// Checks that reading ends with a reset, after any data before it.
pub(crate) fn assert_reset(stream: &mut TcpStream) {
    let error = read_to_end(stream).expect_err("it was cut off, and looks complete");
    assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}");
}

/// Checks that a call is reset, whether before `connect` has returned or after.
pub(crate) fn assert_refused(call: io::Result<TcpStream>) {
    match call {
        Ok(mut stream) => assert_reset(&mut stream),
        Err(error) => assert_eq!(error.kind(), ErrorKind::ConnectionReset, "{error}"),
    }
}

/// Writes until nothing more is taken for a while; how much was.
pub(crate) fn fill(stream: &mut TcpStream, chunk: &[u8]) -> usize {
    stream.set_write_timeout(Some(Duration::from_millis(300))).unwrap();
    let mut sent = 0;
    loop {
        match stream.write(&chunk[sent % chunk.len()..]) {
            Ok(len) => sent += len,
            Err(error) if error.kind() == ErrorKind::WouldBlock => break,
            Err(error) => panic!("{error}"),
        }
    }
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    sent
}

/// A line for people, past the capture of tests' output.
pub(crate) fn print_uncaptured(line: &str) {
    let mut stdout = io::stdout();
    // A failure to write cannot be reported.
    let _ = writeln!(stdout, "{line}");
}
