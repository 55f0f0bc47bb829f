//! Running gateways, applications, and data with recognisable positions.

use hopline_core::Duration as Span;
use hopline_middlebox::gateway::{
    Allowed, Entrance, EntranceConfig, Exit, ExitConfig, Key, ListenerConfig, Name, Peer, Transport,
};
use hopline_streams::tpa;
use hopline_testkit::namespace::RunningService;
use std::cell::Cell;
use std::io::{self, Read, Write};
use std::net::{IpAddr, Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::thread;
use std::time::Duration;

pub(crate) const V4: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
pub(crate) const V6: IpAddr = IpAddr::V6(std::net::Ipv6Addr::LOCALHOST);
/// Interval of keep-alive probes to a silent peer.
const ALIVE: Span = Span::from_millis(300);
/// Idle timeout of a peer.
const SILENT: Span = Span::from_millis(1500);
/// Timeout after which a test has failed.
const PATIENCE: Duration = Duration::from_secs(60);

/// Returns whether a condition becomes true within a minute.
pub(crate) fn eventually(mut is_so: impl FnMut() -> bool) -> bool {
    let step = Duration::from_millis(20);
    (0..PATIENCE.as_millis() / step.as_millis()).any(|_| {
        is_so() || {
            thread::sleep(step);
            false
        }
    })
}

pub(crate) fn key(of: u8) -> Key {
    Key::new(&[of; 32])
}

pub(crate) fn name() -> Name {
    "entrance".parse().unwrap()
}

pub(crate) fn peer() -> Peer {
    Peer { name: name(), key: key(1) }
}

/// Transport of the trunks of a test.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Carrier {
    Tpa,
    TpaWide,
}

thread_local! {
    static CARRIER: Cell<Carrier> = const { Cell::new(Carrier::Tpa) };
}

/// Uses the transport `carrier` for all gateways that `body` starts on this thread.
pub(crate) fn with_carrier(carrier: Carrier, body: impl FnOnce()) {
    /// Guard that restores the transport for further tests, also after a panic.
    struct RestoreCarrier;
    impl Drop for RestoreCarrier {
        fn drop(&mut self) {
            CARRIER.set(Carrier::Tpa);
        }
    }
    let _until = RestoreCarrier;
    CARRIER.set(carrier);
    body();
}

pub(crate) fn carrier() -> Carrier {
    CARRIER.get()
}

/// Defines tests that run twice: over TPA, and over TPA-wide.
macro_rules! over_both {
    ($needs:expr; $($body:path),+ $(,)?) => {
        hopline_harness::tests!($needs; $($body),+).into_iter().chain([$(
            hopline_harness::Test::new(concat!(stringify!($body), "_over_tpa_wide"), $needs, || {
                crate::gateway::helpers::with_carrier(crate::gateway::helpers::Carrier::TpaWide, $body);
            })
        ),+]).collect()
    };
}
pub(crate) use over_both;

/// Returns the usual parameters, with a short idle timeout.
pub(crate) fn transport() -> Transport {
    match (carrier(), Transport::tpa_wide()) {
        (Carrier::TpaWide, Transport::TpaWide(config)) => {
            Transport::TpaWide(config.with_keep_alive(Some(ALIVE)).with_silence_limit(Some(SILENT)))
        }
        _ => Transport::Tpa(trunk()),
    }
}

/// Returns the parameters of TPA.
pub(crate) fn trunk() -> tpa::Config {
    tpa::config(12)
        .with_keep_alive(Some(ALIVE))
        .with_silence_limit(Some(SILENT))
        .with_time_wait(Span::from_millis(20))
}

/// Returns an exit on the loopback interface, which permits loopback destinations.
pub(crate) fn exit_config(ip: IpAddr) -> ExitConfig {
    ExitConfig {
        listen: (ip, 0).into(),
        allowed: Allowed::Listed(vec!["127.0.0.0/8".parse().unwrap(), "::1".parse().unwrap()]),
        transport: transport(),
        ..ExitConfig::new(vec![peer()])
    }
}

pub(crate) fn entrance_config(way: ListenerConfig, exit: SocketAddr) -> EntranceConfig {
    EntranceConfig { transport: transport(), ..EntranceConfig::new(way, exit, name(), key(1)) }
}

pub(crate) fn start_exit(config: &ExitConfig) -> (RunningService, SocketAddr) {
    let exit = Exit::open(config).unwrap();
    let address = exit.local_addr().unwrap();
    (RunningService::new(exit), address)
}

pub(crate) fn start_entrance(config: &EntranceConfig) -> (RunningService, SocketAddr) {
    let entrance = Entrance::open(config).unwrap();
    let address = entrance.local_addrs().unwrap()[0];
    (RunningService::new(entrance), address)
}

/// An entrance and an exit. All connections to `address` go to the server.
pub(crate) struct Pair {
    pub(crate) exit: RunningService,
    pub(crate) exit_address: SocketAddr,
    pub(crate) entrance: RunningService,
    pub(crate) address: SocketAddr,
}

pub(crate) fn forward(server: SocketAddr) -> ListenerConfig {
    ListenerConfig::Forward { listen: (server.ip(), 0).into(), to: server.to_string().parse().unwrap() }
}

pub(crate) fn pair_to(server: SocketAddr) -> Pair {
    pair(forward(server), &exit_config(server.ip()))
}

pub(crate) fn pair(way: ListenerConfig, exit: &ExitConfig) -> Pair {
    let (exit, exit_address) = start_exit(exit);
    let (entrance, address) = start_entrance(&entrance_config(way, exit_address));
    Pair { exit, exit_address, entrance, address }
}

/// Returns a server on `ip`.
pub(crate) fn server(ip: IpAddr) -> (TcpListener, SocketAddr) {
    let listener = TcpListener::bind((ip, 0)).unwrap();
    let address = listener.local_addr().unwrap();
    (listener, address)
}

/// Returns an address without a listener.
pub(crate) fn address_without_listener(ip: IpAddr) -> SocketAddr {
    server(ip).1
}

pub(crate) fn connect(address: SocketAddr) -> TcpStream {
    with_timeouts(TcpStream::connect(address).unwrap())
}

/// Accepts a connection. If none comes for [`PATIENCE`], because the client has failed, this fails too and does not hang.
pub(crate) fn accept(listener: &TcpListener) -> TcpStream {
    listener.set_nonblocking(true).unwrap();
    let step = Duration::from_millis(5);
    let accepted = (0..PATIENCE.as_millis() / step.as_millis()).find_map(|_| match listener.accept() {
        Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
            thread::sleep(step);
            None
        }
        done => Some(done.unwrap().0),
    });
    listener.set_nonblocking(false).unwrap();
    let stream = accepted.expect("a client connects");
    stream.set_nonblocking(false).unwrap();
    with_timeouts(stream)
}

/// Sets timeouts on a stream.
pub(crate) fn with_timeouts(stream: TcpStream) -> TcpStream {
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Returns data that depend on position and stream.
pub(crate) fn pattern(seed: usize, len: usize) -> Vec<u8> {
    (0..len).map(|i| ((i * 31 + i / 251) ^ seed.wrapping_mul(97)) as u8).collect()
}

/// Returns the BLAKE3 hash and the number of all bytes received.
pub(crate) fn hash_of(mut stream: &TcpStream) -> io::Result<(blake3::Hash, u64)> {
    let (mut hasher, mut len, mut buffer) = (blake3::Hasher::new(), 0, vec![0; 1 << 16]);
    loop {
        match stream.read(&mut buffer)? {
            0 => return Ok((hasher.finalize(), len)),
            read => {
                hasher.update(&buffer[..read]);
                len += read as u64;
            }
        }
    }
}

pub(crate) fn hash(data: &[u8]) -> (blake3::Hash, u64) {
    (blake3::hash(data), data.len() as u64)
}

/// Sends from both ends at the same time. The client closes first, the server after it has received everything.
pub(crate) fn exchange(client: &TcpStream, server: &TcpStream, len: usize) {
    let (there, back) = (pattern(1, len), pattern(2, len));
    thread::scope(|scope| {
        scope.spawn(|| send(client, &there));
        scope.spawn(|| {
            let receiving = scope.spawn(|| hash_of(server).unwrap());
            (&mut &*server).write_all(&back).unwrap();
            assert_eq!(receiving.join().unwrap(), hash(&there));
            server.shutdown(Shutdown::Write).unwrap();
        });
        assert_eq!(hash_of(client).unwrap(), hash(&back));
    });
}

/// Sends data and closes the sending direction.
pub(crate) fn send(mut stream: &TcpStream, data: &[u8]) {
    stream.write_all(data).unwrap();
    stream.shutdown(Shutdown::Write).unwrap();
}

/// Makes closing the stream a reset from now on.
pub(crate) fn set_reset_on_close(stream: &TcpStream) {
    socket2::SockRef::from(stream).set_linger(Some(Duration::ZERO)).unwrap();
}

/// Reads to the end, which must be a reset.
pub(crate) fn assert_reset(stream: &TcpStream) {
    let ended = hash_of(stream);
    assert_eq!(ended.unwrap_err().kind(), io::ErrorKind::ConnectionReset);
}
