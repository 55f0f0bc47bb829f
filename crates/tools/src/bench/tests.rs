//! Tests with clients that violate the protocol: the server hangs up, and carries out the next test.

use super::protocol::UDP_CONNECT;
use super::{
    ConnectOptions, Error, Limit, Observer, Plan, Report, Role, Server, TestCount, Transport, measure, now,
};
use hopline_testkit::streams::until;
use socket2::{Domain, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

const COOKIE: &[u8; 37] = b"lkbkflypniop5vcgazn3itll7ghnvjtqjb2t\0";

/// Observer that interrupts once the flag is set.
struct InterruptFlag<'a>(&'a AtomicBool);

impl Observer for InterruptFlag<'_> {
    fn interrupted(&self) -> bool {
        self.0.load(Relaxed)
    }
}

fn small(transport: Transport, address: SocketAddr) -> Result<Report, Error> {
    let plan = Plan { limit: Limit::Bytes(100_000), ..Plan::new(transport) };
    measure(&plan, &ConnectOptions { peers: vec![address], ..ConnectOptions::default() }, None, &mut ())
}

/// Runs `what` against a server, and then three tests, which must succeed.
fn assert_survives(what: impl FnOnce(SocketAddr)) {
    let server = Server::bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).unwrap();
    let address = server.local_addr().unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let serving = scope.spawn(|| server.serve(TestCount::All, None, &mut InterruptFlag(&over)));
        // A failed assertion must not leave the server waiting.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            what(address);
            // After a test over TPA-wide, TPA has its port again.
            for transport in [
                Transport::TpaWide,
                Transport::Tpa { cwnd_max: 12 },
                Transport::Tcp { congestion_control: None },
            ] {
                let report = small(transport, address).unwrap();
                assert_eq!(report.remote.unwrap().bytes(Role::Receives), 100_000);
            }
        }));
        over.store(true, Relaxed);
        assert!(matches!(serving.join().unwrap(), Err(Error::Interrupted)));
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
    });
}

/// Returns the server's answer to `words`, read until it hangs up or is silent.
fn answer(address: SocketAddr, words: &[u8]) -> Vec<u8> {
    let mut stream = TcpStream::connect(address).unwrap();
    stream.write_all(words).unwrap();
    stream.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut heard = Vec::new();
    // The server may reset the connection if it has not read everything.
    let _ = stream.take(10).read_to_end(&mut heard);
    heard
}

/// Opens a control connection.
fn control_at(address: SocketAddr) -> TcpStream {
    let control = TcpStream::connect(address).unwrap();
    control.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    control
}

/// Sends `said` and returns the state that the server answers with.
fn state_after(control: &mut TcpStream, said: &[u8]) -> u8 {
    control.write_all(said).unwrap();
    let mut byte = [0];
    control.read_exact(&mut byte).unwrap();
    byte[0]
}

#[test]
fn noise_and_other_protocols_are_disconnected() {
    assert_survives(|address| {
        for noise in [&b"GET / HTTP/1.1\r\n\r\n"[..], &[0; 64], &[b'a'; 40], b"\xff"] {
            assert_eq!(answer(address, noise), b"", "{noise:?}");
        }
        let _half_open = TcpStream::connect(address).unwrap();
        drop(TcpStream::connect(address).unwrap());
    });
}

#[test]
fn silent_connections_of_two_addresses_do_not_block_a_test() {
    let mut silent = Vec::new();
    assert_survives(|address| {
        for at in 0..80 {
            let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
            socket.bind(&SocketAddr::from(([127, 0, 0, 2 + at % 2], 0)).into()).unwrap();
            socket.connect(&address.into()).unwrap();
            silent.push(TcpStream::from(socket));
        }
        let is_open = |stream: &&TcpStream| {
            stream.set_nonblocking(true).unwrap();
            matches!((&mut { *stream }).read(&mut [0]), Err(e) if e.kind() == ErrorKind::WouldBlock)
        };
        // The rest have been closed.
        until("48 are closed", || silent.iter().filter(is_open).count() == 32);
    });
}

#[test]
fn malformed_parameters_are_a_server_error() {
    assert_survives(|address| {
        for wrong in ["", "{", "{}", r#"{"sctp":true,"time":1}"#, r#"{"tcp":true,"time":1,"parallel":500}"#] {
            let len = (wrong.len() as u32).to_be_bytes();
            let heard = answer(address, &[&COOKIE[..], &len, wrong.as_bytes()].concat());
            // PARAM_EXCHANGE, SERVER_ERROR.
            assert_eq!(heard[..2], [9, 254], "{wrong}: {heard:?}");
        }
        let heard = answer(address, &[&COOKIE[..], &[255; 4]].concat());
        assert_eq!(heard[..2], [9, 254], "4 GiB of parameters");
    });
}

#[test]
fn a_receiving_client_gets_data_until_the_end_of_the_test() {
    assert_survives(|address| {
        let mut control = control_at(address);
        let mut state = |said: &[u8]| state_after(&mut control, said);
        let plan = br#"{"tcp":true,"time":1,"parallel":1,"len":131072,"reverse":true}"#;
        assert_eq!(state(COOKIE), 9, "PARAM_EXCHANGE");
        assert_eq!(state(&[&(plan.len() as u32).to_be_bytes(), &plan[..]].concat()), 10, "CREATE_STREAMS");
        let mut data = TcpStream::connect(address).unwrap();
        data.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
        data.write_all(COOKIE).unwrap();
        assert_eq!([state(&[]), state(&[])], [1, 2], "TEST_START, TEST_RUNNING");
        // Simulates a client with a late clock: far more data arrive now than the socket buffers hold.
        thread::sleep(Duration::from_millis(1300));
        let mut rest = vec![0; 64 << 20];
        data.read_exact(&mut rest).unwrap();
        assert_eq!(state(&[4]), 13, "TEST_END, EXCHANGE_RESULTS");
        // The server waits for the receipt of all its data before it says or does anything else.
        while data.read(&mut rest).unwrap() > 0 {}
    });
}

#[test]
fn waiting_for_lost_datagrams_is_not_part_of_the_test() {
    assert_survives(|address| {
        let mut control = control_at(address);
        let mut state = |said: &[u8]| state_after(&mut control, said);
        // After an omission the server waits for half a second, otherwise for three.
        let plan = br#"{"udp":true,"omit":0.01,"time":0,"num":100000,"parallel":1,"len":100}"#;
        assert_eq!(state(COOKIE), 9, "PARAM_EXCHANGE");
        assert_eq!(state(&[&(plan.len() as u32).to_be_bytes(), &plan[..]].concat()), 10, "CREATE_STREAMS");
        let data = UdpSocket::bind("127.0.0.1:0").unwrap();
        data.connect(address).unwrap();
        data.send(&UDP_CONNECT.to_ne_bytes()).unwrap();
        data.recv(&mut [0; 4]).unwrap();
        assert_eq!(state(&[]), 1, "TEST_START");
        let began = now();
        assert_eq!(state(&[]), 2, "TEST_RUNNING");
        thread::sleep(Duration::from_millis(100));
        data.send(&[0; 100]).unwrap();
        let sent_for = began.elapsed();
        assert_eq!(state(&[4]), 13, "TEST_END, EXCHANGE_RESULTS");
        let ours = br#"{"cpu_util_total":0,"cpu_util_user":0,"cpu_util_system":0,"sender_has_retransmits":0,"streams":[
            {"id":1,"bytes":100000,"retransmits":-1,"jitter":0,"errors":0,"packets":1000}]}"#;
        control.write_all(&[&(ours.len() as u32).to_be_bytes(), &ours[..]].concat()).unwrap();
        let mut len = [0; 4];
        control.read_exact(&mut len).unwrap();
        let mut theirs = vec![0; u32::from_be_bytes(len) as usize];
        control.read_exact(&mut theirs).unwrap();
        let theirs: serde_json::Value = serde_json::from_slice(&theirs).unwrap();
        let elapsed = theirs["streams"][0]["end_time"].as_f64().unwrap();
        assert!(elapsed < sent_for.as_secs_f64() + 0.5, "{elapsed} s of {sent_for:?}");
    });
}

#[test]
fn a_second_client_is_told_that_the_server_is_busy_until_the_first_leaves() {
    assert_survives(|address| {
        let mut first = TcpStream::connect(address).unwrap();
        first.write_all(COOKIE).unwrap();
        first.read_exact(&mut [0]).unwrap();
        assert!(matches!(small(Transport::Tcp { congestion_control: None }, address), Err(Error::Busy)));
        assert!(matches!(small(Transport::Tpa { cwnd_max: 6 }, address), Err(Error::Busy)));
    });
}
