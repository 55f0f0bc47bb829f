//! Peers that do what they should not: the server answers or hangs up, and carries out the next test.

use super::control::{Control, Side};
use super::error::{Error, Reason};
use super::message::{HEADER, Message};
use super::stream::{Dialer, Stream};
use super::{CongestionControl, Direction, Limit, Plan, Report, Server, Tests, Transport, Watch, measure};
use std::io::{ErrorKind, Read, Write};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, TcpStream};
use std::sync::atomic::{AtomicBool, Ordering::Relaxed};
use std::thread;
use std::time::Duration;

const LONG: Duration = Duration::from_secs(60);
const TPA: Transport = Transport::Tpa { cwnd_max: 12 };
const TCP: Transport = Transport::Tcp { congestion_control: None };

/// A watch that interrupts when told, and keeps what became of tests.
#[derive(Default)]
struct Until<'a> {
    over: Option<&'a AtomicBool>,
    ended: Vec<Result<Report, String>>,
}

impl Watch for Until<'_> {
    fn ended(&mut self, result: &Result<Report, Error>) {
        self.ended.push(result.as_ref().cloned().map_err(ToString::to_string));
    }

    fn interrupted(&self) -> bool {
        self.over.is_some_and(|over| over.load(Relaxed))
    }
}

fn small(transport: Transport) -> Plan {
    Plan {
        transport,
        direction: Direction::Forward,
        limit: Limit::Bytes(100_000),
        omit: Duration::ZERO,
        streams: 1,
        length: 10_000,
    }
}

/// Lets `what` happen to a server, and then two tests, which must succeed; gives what became of all tests.
fn survives(what: impl FnOnce(SocketAddr)) -> Vec<Result<Report, String>> {
    let server = Server::bind(IpAddr::V4(Ipv4Addr::LOCALHOST), 0).unwrap();
    let address = server.local_addr().unwrap();
    let over = AtomicBool::new(false);
    thread::scope(|scope| {
        let serving = scope.spawn(|| {
            let mut until = Until { over: Some(&over), ..Until::default() };
            let result = server.serve(Tests::All, None, &mut until);
            assert!(matches!(result, Err(Error::Interrupted)), "{result:?}");
            until.ended
        });
        // A test that fails must not leave the server waiting.
        let done = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            what(address);
            for transport in [TPA, TCP] {
                let report = measure(&small(transport), &[address], None, &mut ()).unwrap();
                assert_eq!(report.remote.unwrap().bytes(), 100_000);
            }
        }));
        over.store(true, Relaxed);
        let ended = serving.join().unwrap();
        done.unwrap_or_else(|panic| std::panic::resume_unwind(panic));
        ended
    })
}

fn call(address: SocketAddr, transport: &Transport) -> Control {
    let dialer = Dialer::new(transport, address).unwrap();
    Control::new(Side::Client, dialer.dial(address).unwrap()).unwrap()
}

/// What the server says next.
fn hears(control: &mut Control) -> Result<Message, Error> {
    control.expect(LONG, "answer", &|| false)
}

/// Why the server refuses `plan`.
fn refusal(address: SocketAddr, over: &Transport, plan: &Plan) -> Reason {
    let mut control = call(address, over);
    control.send(&Message::Plan(plan.clone())).unwrap();
    match hears(&mut control) {
        Err(Error::Refused(refusal)) => refusal.reason,
        other => panic!("{other:?}"),
    }
}

/// A control connection whose plan was accepted, and the cookie.
fn accepted(address: SocketAddr, plan: &Plan) -> (Control, [u8; 16]) {
    let mut control = call(address, &plan.transport);
    control.send(&Message::Plan(plan.clone())).unwrap();
    let Ok(Message::Accept { cookie }) = hears(&mut control) else { panic!() };
    (control, cookie)
}

fn join(address: SocketAddr, transport: &Transport, cookie: [u8; 16], stream: u8) -> Stream {
    let joined = Dialer::new(transport, address).unwrap().dial(address).unwrap();
    (&joined).write_all(&Message::Join { cookie, stream }.encode()).unwrap();
    (&joined).flush().unwrap();
    joined
}

/// Whether the server has hung up.
fn is_over(stream: &Stream) -> bool {
    stream.set_patience(LONG).unwrap();
    !matches!((&mut { stream }).read(&mut [0]), Ok(1..))
}

/// Of two streams for one place.
fn the_one_that_is_taken([a, b]: [Stream; 2]) -> Stream {
    let rejected = |stream: &Stream| {
        stream.set_patience(Duration::from_millis(10)).unwrap();
        !matches!((&mut { stream }).read(&mut [0]), Err(e) if e.kind() == ErrorKind::WouldBlock)
    };
    loop {
        match (rejected(&a), rejected(&b)) {
            (false, false) => {}
            (true, false) => return b,
            (false, true) => return a,
            (true, true) => panic!("neither"),
        }
    }
}

#[test]
fn noise_half_messages_and_other_protocols_are_hung_up_on() {
    let first_of_iperf3 = b"lkbkflypniop5vcgazn3itll7ghnvjtqjb2t\0";
    let ended = survives(|address| {
        let plan = Message::Plan(small(TCP)).encode();
        for noise in [&b"GET / HTTP/1.1\r\n\r\n"[..], first_of_iperf3, &[0; 64], &[1, 255, 255, 255]] {
            let mut stream = TcpStream::connect(address).unwrap();
            stream.write_all(noise).unwrap();
            assert!(!matches!(stream.read(&mut [0]), Ok(1..)), "{noise:?}");
        }
        for cut in [0, 1, HEADER, plan.len() - 1] {
            TcpStream::connect(address).unwrap().write_all(&plan[..cut]).unwrap();
        }
        let control = call(address, &TPA);
        let stream = control.into_stream();
        (&stream).write_all(b"\xff\xff\xff\xff").unwrap();
        (&stream).flush().unwrap();
        assert!(is_over(&stream));
    });
    assert_eq!(ended.len(), 2, "none of it was a test: {ended:?}");
}

#[test]
fn a_plan_that_is_none_is_refused_with_the_reason() {
    let ended = survives(|address| {
        let good = small(TCP);
        for (plan, over) in [
            (Plan { streams: 0, ..good.clone() }, TCP),
            (Plan { length: u32::MAX, ..good.clone() }, TCP),
            (Plan { limit: Limit::Time(Duration::from_secs(1_000_000)), ..good.clone() }, TCP),
            (small(Transport::Tpa { cwnd_max: 0 }), TPA),
            (small(TPA), TCP),
            (small(TCP), TPA),
        ] {
            assert_eq!(refusal(address, &over, &plan), Reason::Plan, "{plan:?}");
        }
        let mut later = Message::Plan(good).encode();
        later[HEADER + 13] = 9;
        let control = call(address, &TCP);
        let stream = control.into_stream();
        (&stream).write_all(&later).unwrap();
        let mut control = Control::new(Side::Client, stream).unwrap();
        let answer = hears(&mut control);
        assert!(matches!(&answer, Err(Error::Refused(r)) if r.reason == Reason::Version), "{answer:?}");
    });
    assert_eq!(ended.len(), 2);
}

#[test]
fn a_congestion_control_that_the_server_lacks_is_told_by_the_server() {
    let ended = survives(|address| {
        let congestion_control = CongestionControl::new("nosuch");
        let transport = Transport::Tcp { congestion_control };
        let plan = Plan { direction: Direction::Reverse, ..small(transport) };
        let mut control = call(address, &TCP);
        control.send(&Message::Plan(plan)).unwrap();
        let told = hears(&mut control).unwrap_err().to_string();
        assert!(told.starts_with("the other side says: there is no congestion control `nosuch`"), "{told}");
    });
    assert!(ended[0].is_err() && ended.len() == 3, "{ended:?}");
}

#[test]
fn only_streams_with_the_cookie_belong_to_a_test_and_each_place_is_taken_once() {
    survives(|address| {
        let plan = Plan { streams: 2, ..small(TCP) };
        let (mut control, cookie) = accepted(address, &plan);
        let mut guessed = cookie;
        guessed[15] ^= 1;
        assert!(is_over(&join(address, &TCP, guessed, 0)), "a wrong cookie");
        assert!(is_over(&join(address, &TPA, cookie, 0)), "over another transport");
        assert!(is_over(&join(address, &TCP, cookie, 2)), "no such stream");
        let first = the_one_that_is_taken([0, 1].map(|_| join(address, &TCP, cookie, 0)));
        let second = join(address, &TCP, cookie, 1);
        assert_eq!(hears(&mut control).unwrap(), Message::Ready);
        assert!(is_over(&join(address, &TCP, cookie, 1)), "it has begun");
        control.send(&Message::Start).unwrap();
        (&first).write_all(&[0; 60_000]).unwrap();
        (&second).write_all(&[0; 40_000]).unwrap();
        first.end_writing().unwrap();
        second.end_writing().unwrap();
        let Ok(Message::Results(results)) = hears(&mut control) else { panic!() };
        let bytes: Vec<u64> = results.streams.iter().map(|s| s.bytes).collect();
        assert_eq!(bytes, [60_000, 40_000]);
        control.send(&Message::Results(results)).unwrap();
        // They tell what a receiver counts, and the server has received: it does not believe them, and goes on.
        control.close();
    });
}

#[test]
fn while_a_test_goes_on_others_are_told_so() {
    survives(|address| {
        let (control, _) = accepted(address, &small(TCP));
        for (over, plan) in [(TCP, small(TCP)), (TPA, small(TPA))] {
            assert_eq!(refusal(address, &over, &plan), Reason::Busy);
        }
        control.close();
        wait_until_free(address);
    });
}

#[test]
fn a_client_that_leaves_or_talks_out_of_turn_ends_its_own_test_only() {
    let ended = survives(|address| {
        for step in 0..4 {
            let plan = small(TCP);
            let (mut control, cookie) = accepted(address, &plan);
            match step {
                // It leaves before its streams are there.
                0 => drop(control),
                // It starts before they are.
                1 => {
                    control.send(&Message::Start).unwrap();
                    assert!(
                        matches!(hears(&mut control), Err(Error::Refused(r)) if r.reason == Reason::Protocol)
                    );
                }
                // It leaves in the midst of the test.
                2 => {
                    let _stream = join(address, &TCP, cookie, 0);
                    assert_eq!(hears(&mut control).unwrap(), Message::Ready);
                    control.send(&Message::Start).unwrap();
                    drop(control);
                }
                // A data stream breaks.
                _ => {
                    let stream = join(address, &TCP, cookie, 0);
                    assert_eq!(hears(&mut control).unwrap(), Message::Ready);
                    control.send(&Message::Start).unwrap();
                    stream.abort();
                    assert!(
                        matches!(hears(&mut control), Err(Error::Refused(r)) if r.reason == Reason::System)
                    );
                }
            }
            wait_until_free(address);
        }
    });
    let failed: Vec<&str> = ended.iter().filter_map(|e| e.as_ref().err().map(String::as_str)).collect();
    assert_eq!(failed.len(), 4, "{failed:?}");
    assert!(failed[3].starts_with("data stream 1 broke: "), "{failed:?}");
}

/// A server that has just been left notices that in its own time.
fn wait_until_free(address: SocketAddr) {
    let busy =
        |result: &Result<Report, Error>| matches!(result, Err(Error::Refused(r)) if r.reason == Reason::Busy);
    for _ in 0..600 {
        if !busy(&measure(&small(TCP), &[address], None, &mut ())) {
            return;
        }
        thread::sleep(Duration::from_millis(50));
    }
    panic!("it is still busy");
}
