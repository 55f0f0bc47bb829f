//! Ends of connections.

use crate::split::daemon::Daemon;
use crate::split::hosts::{assert_refused, assert_reset, bytes, echo, fill, meanwhile, read_to_end, reset};
use crate::split::router::{Ground, Ip, served};
use hopline_linux::tcp;
use hopline_testkit::namespace::host::{ip, succeed};
use std::io::{ErrorKind, Read, Write};
use std::net::Shutdown;
use std::thread::sleep;
use std::time::Duration;

pub(crate) fn a_half_closed_connection_continues() {
    let ground = Ground::diverted();
    let proxy = Daemon::start(&ground.router, &[]);
    for ip in [Ip::V4, Ip::V6] {
        let listener = ground.listen(ip);
        let (mut ours, mut theirs) = ground.connect_through_proxy(&listener);
        let (question, answer) = (bytes("question", 300_000), bytes("answer", 3_000_000));
        ours.write_all(&question).unwrap();
        ours.shutdown(Shutdown::Write).unwrap();
        assert_eq!(read_to_end(&mut theirs).unwrap(), blake3::hash(&question));
        let written = {
            let answer = answer.clone();
            meanwhile(move || theirs.write_all(&answer).unwrap())
        };
        assert_eq!(read_to_end(&mut ours).unwrap(), blake3::hash(&answer));
        written.join().unwrap();
    }
    assert_eq!(proxy.ended()["connections_ended"], 2);
}

pub(crate) fn a_server_may_close_first() {
    let ground = Ground::diverted();
    let mut proxy = Daemon::start(&ground.router, &[]);
    let listener = ground.listen(Ip::V4);
    let (mut ours, mut theirs) = ground.connect_through_proxy(&listener);
    theirs.write_all(b"go away").unwrap();
    drop(theirs);
    assert_eq!(read_to_end(&mut ours).unwrap(), blake3::hash(b"go away"));
    // The client may keep its direction open for as long as it likes.
    proxy.wait_for("connections_open", 1);
    drop(ours);
    proxy.wait_for("connections_ended", 1);
}

/// The proxy's half to the client is in TIME-WAIT then.
pub(crate) fn a_port_in_time_wait_may_be_reused() {
    let ground = Ground::diverted();
    let mut proxy = Daemon::start(&ground.router, &[]);
    let listeners = [Ip::V4, Ip::V6].map(|ip| (ip, ground.listen(ip)));
    for (round, (ip, listener)) in [1, 2, 3].into_iter().flat_map(|n| listeners.iter().map(move |l| (n, l))) {
        let ip = *ip;
        let mut ours = ground.connect_by(4000, served(ip));
        let (mut theirs, _) = listener.accept().unwrap();
        assert_eq!(tcp::info(&ours).unwrap().retransmitted, 0, "round {round}: the call had to be repeated");
        theirs.write_all(b"bye").unwrap();
        drop(theirs);
        assert_eq!(read_to_end(&mut ours).unwrap(), blake3::hash(b"bye"));
        drop(ours);
        proxy.wait_for("connections_open", 0);
    }
}

pub(crate) fn a_reset_is_forwarded_to_the_other_host() {
    let ground = Ground::diverted();
    let proxy = Daemon::start(&ground.router, &[]);
    let listener = ground.listen(Ip::V4);
    let (ours, mut theirs) = ground.connect_through_proxy(&listener);
    reset(ours);
    assert_reset(&mut theirs);
    let (mut ours, theirs) = ground.connect_through_proxy(&listener);
    reset(theirs);
    assert_reset(&mut ours);
    // While more waits than the receiver takes, too.
    let (mut ours, theirs) = ground.connect_through_proxy(&listener);
    fill(&mut ours, &[7; 1 << 16]);
    reset(theirs);
    assert_reset(&mut ours);
    let (mut ours, mut theirs) = ground.connect_through_proxy(&listener);
    fill(&mut ours, &[7; 1 << 16]);
    reset(ours);
    assert_reset(&mut theirs);
    let figures = proxy.ended();
    // The first one may have come before the proxy had seen the server's answer.
    assert_eq!(figures["connections_reset"] + figures["failed_other_connects"], 4, "{figures:?}");
}

pub(crate) fn a_refusing_server_resets_the_client() {
    let ground = Ground::diverted();
    let proxy = Daemon::start(&ground.router, &[]);
    for ip in [Ip::V4, Ip::V6] {
        // The server has no listener.
        assert_refused(ground.connect(served(ip)));
    }
    assert_eq!(proxy.ended()["failed_refused_connects"], 2);
}

pub(crate) fn an_unreachable_server_resets_the_client() {
    let ground = Ground::diverted();
    let proxy = Daemon::start(&ground.router, &[]);
    succeed(&ground.server, "iptables", "-w -A INPUT -p tcp -j REJECT --reject-with icmp-host-unreachable");
    assert_refused(ground.connect(served(Ip::V4)));
    // A route that says so itself.
    ip(&ground.router, "route add unreachable 10.7.0.0/16");
    assert_refused(ground.connect("10.7.0.1:80".parse().unwrap()));
    assert_eq!(proxy.ended()["failed_unreachable_connects"], 2);
}

pub(crate) fn an_unreachable_server_over_ipv6_resets_the_client() {
    let ground = Ground::diverted();
    let proxy = Daemon::start(&ground.router, &[]);
    for reason in ["icmp6-addr-unreachable", "icmp6-no-route", "icmp6-adm-prohibited"] {
        let rule = format!("INPUT -p tcp -j REJECT --reject-with {reason}");
        succeed(&ground.server, "ip6tables", &format!("-w -A {rule}"));
        assert_refused(ground.connect(served(Ip::V6)));
        succeed(&ground.server, "ip6tables", &format!("-w -D {rule}"));
    }
    ip(&ground.router, "-6 route add unreachable fd07::/16");
    assert_refused(ground.connect("[fd07::1]:80".parse().unwrap()));
    assert_eq!(proxy.ended()["failed_unreachable_connects"], 4);
}

pub(crate) fn a_silent_server_resets_the_client() {
    let ground = Ground::diverted();
    let proxy = Daemon::start(&ground.router, &[("connect_ms", "300")]);
    succeed(&ground.server, "iptables", "-w -A INPUT -p tcp -j DROP");
    let mut ours = ground.connect(served(Ip::V4)).unwrap();
    ours.write_all(b"is anybody there?").unwrap();
    assert_reset(&mut ours);
    assert_eq!(proxy.ended()["failed_timeout_connects"], 1);
}

pub(crate) fn a_client_that_gives_up_ends_the_onward_connection() {
    let ground = Ground::diverted();
    let mut proxy = Daemon::start(&ground.router, &[("connect_ms", "60000")]);
    succeed(&ground.server, "iptables", "-w -A INPUT -p tcp -j DROP");
    let ours = ground.connect(served(Ip::V4)).unwrap();
    proxy.wait_for("connections_open", 1);
    reset(ours);
    proxy.wait_for("connections_open", 0);
    assert_eq!(proxy.ended()["failed_other_connects"], 1);
}

/// The kernel ends what a dead process had open; a stream that was cut off must not look as if it had ended.
pub(crate) fn a_killed_proxy_never_makes_a_stream_look_complete() {
    let ground = Ground::diverted();
    let mut proxy = Daemon::start(&ground.router, &[]);
    for ip in [Ip::V4, Ip::V6] {
        let listener = ground.listen(ip);
        let mut idle = ground.connect_through_proxy(&listener);
        let (mut up, mut up_reader) = ground.connect_through_proxy(&listener);
        fill(&mut up, &[1; 1 << 16]);
        let (mut down_reader, mut down) = ground.connect_through_proxy(&listener);
        fill(&mut down, &[2; 1 << 16]);
        let (mut ended_reader, mut ended) = ground.connect_through_proxy(&listener);
        fill(&mut ended_reader, &[3; 1 << 16]);
        ended_reader.shutdown(Shutdown::Write).unwrap();
        // Nothing is on its way, and one direction has ended: what has arrived has, and the other is cut off.
        let (mut half, mut half_peer) = ground.connect_through_proxy(&listener);
        half.shutdown(Shutdown::Write).unwrap();
        assert_eq!(half_peer.read(&mut [0]).unwrap(), 0);
        echo([&mut idle.0, &mut idle.1], b"still there").unwrap();
        proxy.kill();
        for cut in [&mut idle.0, &mut idle.1, &mut up_reader, &mut down_reader, &mut ended, &mut half] {
            assert_reset(cut);
        }
        proxy = Daemon::start(&ground.router, &[]);
    }
}

pub(crate) fn a_stopped_proxy_resets_remaining_connections() {
    let ground = Ground::diverted();
    let mut proxy = Daemon::start(&ground.router, &[]);
    let listener = ground.listen(Ip::V4);
    let (mut ours, mut theirs) = ground.connect_through_proxy(&listener);
    fill(&mut ours, &[1; 1 << 16]);
    proxy.stop();
    assert_reset(&mut theirs);
    assert_reset(&mut ours);
    let figures = proxy.ended();
    assert_eq!((figures["connections_stopped"], figures["connections_open"]), (1, 0));
}

pub(crate) fn a_stopped_proxy_lets_connections_drain() {
    let ground = Ground::diverted();
    let mut proxy = Daemon::start(&ground.router, &[("drain_ms", "60000")]);
    let listener = ground.listen(Ip::V4);
    let (mut ours, mut theirs) = ground.connect_through_proxy(&listener);
    proxy.stop();
    sleep(Duration::from_millis(200));
    echo([&mut ours, &mut theirs], b"last words").unwrap();
    drop(ours);
    drop(theirs);
    // With the last connection it ends, long before the time.
    let figures = proxy.ended();
    assert_eq!((figures["connections_ended"], figures["connections_stopped"]), (1, 0));
}

pub(crate) fn a_vanished_host_is_given_up() {
    let ground = Ground::diverted();
    let mut proxy = Daemon::start(&ground.router, &[("user_timeout_ms", "700")]);
    let listener = ground.listen(Ip::V4);
    let (mut ours, mut theirs) = ground.connect_through_proxy(&listener);
    echo([&mut ours, &mut theirs], b"here").unwrap();
    ip(&ground.client, "link set mobile down");
    theirs.write_all(b"where are you?").unwrap();
    let error = theirs.read(&mut [0]).unwrap_err();
    assert_eq!(error.kind(), ErrorKind::ConnectionReset);
    proxy.wait_for("connections_reset", 1);
}
