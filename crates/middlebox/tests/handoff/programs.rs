//! Programs that know nothing of handoffs.

use crate::handoff::world::{Deployment, HOST, Reception, SERVER, World};
use hopline_core::Duration as Span;
use hopline_linux::{Namespace, tcp};
use hopline_middlebox::handoff::Scheme;
use hopline_testkit::streams::until;
use socket2::{Domain, Socket, Type};
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener};
use std::process::{Command, Output, Stdio};
use std::thread;

const BYTES: usize = 2_000_000;

/// A host that changes its station twice a second.
fn moving_host() -> (World, Deployment) {
    let world = World::new(Reception::CurrentStation);
    let all = world.deployment(Scheme::Multicast, Span::from_millis(500));
    until("a first station", || world.air.station().is_some());
    (world, all)
}

fn run(host: &Namespace, command: &str) -> Output {
    let mut words = command.split(' ');
    let mut program = Command::new(words.next().unwrap());
    program.args(words).stdout(Stdio::piped()).stderr(Stdio::null());
    host.spawn(program).unwrap().wait_with_output().unwrap()
}

pub(crate) fn iperf3_measures() {
    let (world, _all) = moving_host();
    thread::scope(|scope| {
        scope.spawn(|| assert!(run(&world.mobile, &format!("iperf3 -s -1 -B {HOST}")).status.success()));
        // It ends when all is written: what its buffers hold then is not received, and with these it is less than a tenth.
        let measure = format!("iperf3 -c {HOST} -n {BYTES} -w 64K -C cubic --json");
        let mut said = Vec::new();
        until("iperf3", || {
            let Output { status, stdout, .. } = run(&world.server, &measure);
            said = stdout;
            status.success()
        });
        let said: serde_json::Value = serde_json::from_slice(&said).unwrap();
        let received = said["end"]["sum_received"]["bytes"].as_u64().unwrap();
        assert!(received >= BYTES as u64 * 9 / 10, "{received}");
    });
    assert!(world.air.changes().len() > 2);
}

pub(crate) fn curl_fetches() {
    let (world, _all) = moving_host();
    let content: Vec<u8> = (0..BYTES).map(|i| (i * i / 249) as u8).collect();
    let listener = world.server.run(|| {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None).unwrap();
        tcp::set_congestion_control(&socket, "cubic").unwrap();
        socket.bind(&SocketAddr::from((SERVER, 8000)).into()).unwrap();
        socket.listen(1).unwrap();
        TcpListener::from(socket)
    });
    let listener = listener.unwrap();
    let fetched = thread::scope(|scope| {
        scope.spawn(|| {
            let mut client = listener.accept().unwrap().0;
            let _ = client.read(&mut [0; 4096]).unwrap();
            write!(client, "HTTP/1.0 200 OK\r\nContent-Length: {BYTES}\r\n\r\n").unwrap();
            client.write_all(&content).unwrap();
        });
        run(&world.mobile, &format!("curl -sS http://{SERVER}:8000/"))
    });
    assert!(fetched.status.success());
    assert_eq!(blake3::hash(&fetched.stdout), blake3::hash(&content));
    assert!(world.air.changes().len() > 2);
}
