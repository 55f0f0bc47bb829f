//! Initiators with first messages that wait until the rate of handshakes allows another one.

use super::keys;
use super::net::{A, B, Net, transport};
use crate::{Ecn, Host, HostConfig, Path, ResponderConfig, Seed};
use core::net::SocketAddr;
use hopline_core::{Duration, Instant};
use hopline_link::Emulation;

/// Half of 16 in a quarter of a second may begin at one host.
fn slow() -> HostConfig {
    let responder = ResponderConfig::default().with_cookie_threshold(0).with_handshakes_per_second(64);
    HostConfig { responder, ..HostConfig::default() }
}

#[test]
fn deferred_connections_open_before_the_initiator_retries_and_measure_the_round_trip() {
    let mut net = Net::new(2, &slow(), &Emulation::delay(Duration::from_millis(20)), 1);
    net.nodes[B].host.listen(keys()[B].clone(), transport(), 64).unwrap();
    let opened: Vec<_> = (0..12).map(|_| net.connect(&keys(), transport())).collect();
    net.run_for(Duration::from_millis(150));
    assert_eq!(net.nodes[B].host.stats().accepted, 8);
    net.run_for(Duration::from_millis(300));
    assert_eq!(net.nodes[B].host.stats().accepted, 12);
    for key in opened {
        let srtt = net.conn(A, key).endpoint().srtt().unwrap();
        assert!(srtt < Duration::from_millis(60), "{srtt}");
    }
}

/// Hands over what `from` sends to `to`, as having come from `peer` to our address `local`. Returns the paths
/// of what `to` answers.
fn exchange(now: Instant, initiator: &mut Host, responder: &mut Host, at_answerer: Path) -> Vec<Path> {
    let mut answers = Vec::new();
    let mut buffer = Vec::new();
    loop {
        let mut sent = false;
        while initiator.poll_transmit(now, &mut buffer).is_some() {
            responder.handle_datagram(now, at_answerer, Ecn::NotCapable, &mut core::mem::take(&mut buffer));
            sent = true;
        }
        while let Some(answer) = responder.poll_transmit(now, &mut buffer) {
            initiator.handle_datagram(
                now,
                Path::to(SERVER.into()),
                Ecn::NotCapable,
                &mut core::mem::take(&mut buffer),
            );
            answers.push(answer.path);
            sent = true;
        }
        if !sent {
            return answers;
        }
    }
}

const SERVER: ([u8; 4], u16) = ([192, 0, 2, 1], 7172);

#[test]
fn a_deferred_answer_leaves_from_the_called_address() {
    let now = Instant::from_secs(5);
    let mut responder = Host::new(slow(), Seed::new([2; 32])).unwrap();
    responder.listen(keys()[B].clone(), transport(), 64).unwrap();
    let call = |number: u8, responder: &mut Host| {
        let mut initiator = Host::new(HostConfig::default(), Seed::new([number; 32])).unwrap();
        let path = Path::to(SERVER.into());
        initiator.connect(now, path, keys()[A].clone(), transport()).unwrap();
        let at_answerer = Path {
            peer: SocketAddr::from(([10, 0, 0, 1], 1000 + u16::from(number))),
            local: Some([192, 0, 2, number].into()),
        };
        let answers = exchange(now, &mut initiator, responder, at_answerer);
        (initiator, at_answerer, answers)
    };
    let mut deferred = None;
    for number in 1..=20 {
        let (initiator, path, answers) = call(number, &mut responder);
        // One cookie, and nothing more.
        if answers.len() == 1 {
            deferred.get_or_insert((initiator, path));
        }
    }
    let (mut initiator, path) = deferred.expect("20 are more than may begin");
    let later = responder.poll_timeout().unwrap();
    assert!(later <= now + Duration::from_millis(250));
    responder.handle_timeout(later);
    let mut buffer = Vec::new();
    let answer = responder.poll_transmit(later, &mut buffer).unwrap();
    assert_eq!(answer.path, path);
    initiator.handle_datagram(later, Path::to(SERVER.into()), Ecn::NotCapable, &mut buffer);
    assert_eq!(initiator.stats().opened, 1);
}
