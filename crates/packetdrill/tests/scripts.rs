//! Scripts of the project, and verdicts on short ones.

use hopline_packetdrill::script::Script;
use hopline_packetdrill::{Failure, Stop, Verdict, run};
use hopline_transport::tcp::Config;
use std::fs;
use std::path::Path;

/// Handshake of a server, after which descriptor 4 is open.
const HANDSHAKE: &str = "\
`sysctl -q net.ipv4.tcp_timestamps=0`
0   socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0  bind(3, ..., ...) = 0
+0  listen(3, 1) = 0
+0  < S 0:0(0) win 32792 <mss 1000,sackOK>
+0  > S. 0:0(0) ack 1 <mss 1460,nop,nop,sackOK>
+.1 < . 1:1(0) ack 1 win 30000
+0  accept(3, ..., ...) = 4
";

fn verdict(text: &str) -> Verdict {
    match Script::parse(text) {
        Ok(script) => run(&script, text, Config::linux().with_linux_host(), &|_| None),
        Err(Stop::NotApplicable { line, reason }) => Verdict::NotApplicable { line, reason },
        Err(Stop::Error(error)) => panic!("{error}"),
    }
}

/// Returns the failure of what follows the handshake.
fn failure_after_handshake(text: &str) -> Failure {
    match verdict(&format!("{HANDSHAKE}{text}")) {
        Verdict::Failed(failure) => failure,
        other => panic!("the script has to fail, and not: {other:?}"),
    }
}

#[test]
fn the_scripts_of_the_transport_pass() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../transport/tests/packetdrill");
    let mut tried = 0;
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(verdict(&text), Verdict::Passed, "{}", path.display());
        tried += 1;
    }
    assert!(tried >= 15, "{tried} scripts");
}

#[test]
fn a_segment_that_differs_fails_with_the_difference() {
    let failure = failure_after_handshake("+0 write(4, ..., 500) = 500\n+0 > P. 1:401(400) ack 1\n");
    assert_eq!((failure.line, failure.difference.as_str()), (10, "500 bytes, not 400"));
    assert_eq!(failure.expected, "+0 > P. 1:401(400) ack 1");
    assert_eq!(failure.actual, "0.100000 > P. 1:501(500) ack 1 win 65535");
}

#[test]
fn a_segment_at_another_time_fails() {
    let failure = failure_after_handshake("+0 write(4, ..., 500) = 500\n+.5 > P. 1:501(500) ack 1\n");
    assert_eq!(failure.difference, "sent at 0.100000, not at 0.600000");
}

#[test]
fn a_segment_that_is_not_sent_fails_after_the_tolerance() {
    let failure = failure_after_handshake("+1 > . 1:1(0) ack 1\n");
    assert_eq!(failure.difference, "nothing until 1.104000 was sent");
}

#[test]
fn a_result_that_differs_fails() {
    let failure = failure_after_handshake("+0 fcntl(4, F_SETFL, O_NONBLOCK) = 0\n+0 read(4, ..., 10) = 10\n");
    assert_eq!(failure.difference, "the call returned -1 EAGAIN");
    let failure = failure_after_handshake("+0 read(4, ..., 10) = 10\n");
    assert_eq!(failure.difference, "the call blocks");
    let failure =
        failure_after_handshake("+0...0.5 read(4, ..., 10) = 10\n+.1 < P. 1:11(10) ack 1 win 100\n");
    assert_eq!(failure.difference, "the call returned at 0.200000");
}

#[test]
fn an_assertion_that_does_not_hold_fails_with_the_values() {
    let failure =
        failure_after_handshake("+0 %{\nassert tcpi_snd_mss == 1000\nassert tcpi_snd_cwnd < 10, 'x'\n}%\n");
    assert_eq!(failure.difference, "`tcpi_snd_cwnd < 10` does not hold: tcpi_snd_cwnd = 10");
}

#[test]
fn several_segments_match_one_of_the_script_unless_it_is_strict() {
    let data = "+0 write(4, ..., 3000) = 3000\n+0 > P. 1:3001(3000) ack 1\n";
    assert_eq!(verdict(&format!("{HANDSHAKE}{data}")), Verdict::Passed);
    let strict = verdict(&format!("--strict_segments\n{HANDSHAKE}{data}"));
    assert!(matches!(strict, Verdict::Failed(failure) if failure.difference == "1000 bytes, not 3000"));
}

#[test]
fn a_feature_that_is_missing_is_named_with_its_line() {
    let not_applicable = |line, reason: &str| Verdict::NotApplicable { line, reason: reason.to_owned() };
    assert_eq!(verdict("0 < udp (100)\n"), not_applicable(1, "UDP"));
    let fast_open = "+0 setsockopt(4, SOL_TCP, TCP_FASTOPEN, [1], 4) = 0\n";
    assert_eq!(verdict(&format!("{HANDSHAKE}{fast_open}")), not_applicable(9, "TCP Fast Open"));
    assert_eq!(verdict("`reboot`\n"), not_applicable(1, "the command `reboot`"));
}

#[test]
fn a_syntax_error_has_line_and_column() {
    for (text, error) in [
        ("0 socket(...\n", "2:1: expected `)`, found the end of the line"),
        ("0 < S 0:0(0) win many\n", "1:18: expected an integer, found `many`"),
        ("0 < S 0:0(0) <mss>\n", "1:18: expected an integer, found `>`"),
        ("0 < XYZ 0:0(0)\n", "1:5: expected TCP flags: F, S, R, P, `.`, U, E, W or `-`, found `XYZ 0:0(0)`"),
        ("soon < S 0:0(0)\n", "1:1: expected a time in seconds, found `soon < S 0:0(0)`"),
        (
            "1000001 < S 0:0(0)\n",
            "1:1: expected a time in seconds, at most 1000000, found `1000001 < S 0:0(0)`",
        ),
        ("0 %{ assert 1\n", "1:5: expected `}%` further down, found ` assert 1`"),
        (
            "+0~+1 < S 0:0(0)\n",
            "1:1: expected one time: `*` and `~` are for outbound segments, found `+0~+1 < S 0:0(0)`",
        ),
        (
            "0 < icmp unreachable frag_needed mtu 9 1:2(1)\n",
            "1:40: expected the type or code of a message of ICMP, or `[` and the segment, found `1:2(1)`",
        ),
        ("/* never closed\n", "1:1: expected `*/` at the end of the comment, found `/* never closed`"),
    ] {
        match Script::parse(text) {
            Err(Stop::Error(found)) => assert_eq!(found.to_string(), error),
            other => panic!("`{text}` has to be an error, and not: {other:?}"),
        }
    }
}

#[test]
fn a_run_is_the_same_each_time() {
    let text = format!("{HANDSHAKE}+0 write(4, ..., 90000) = 90000\n* > P. 1:7(6) ack 1\n");
    assert_eq!(verdict(&text), verdict(&text));
}

#[test]
fn options_of_the_command_line_count_after_those_of_the_script() {
    let verdict_with = |text: &str, options: &[(&str, &str)]| {
        let mut script = Script::parse(text).unwrap();
        for (name, value) in options {
            script.add_option(name, value);
        }
        run(&script, text, Config::linux().with_linux_host(), &|_| None)
    };
    let text = "\
--mtu=1500
0  socket(..., SOCK_STREAM, IPPROTO_TCP) = 3
+0 fcntl(3, F_SETFL, O_RDWR|O_NONBLOCK) = 0
+0 connect(3, ..., ...) = -1 EINPROGRESS (Operation now in progress)
+0 > S 0:0(0) <mss 1460,sackOK,TS val 1 ecr 0,wscale 7>
";
    assert_eq!(verdict_with(text, &[("ip_version", "ipv6"), ("mtu", "1520")]), Verdict::Passed);
    let other = verdict_with(&text.replace("--mtu=1500", "--ip_version=ipv4"), &[("ip_version", "ipv6")]);
    assert_eq!(other, Verdict::NotApplicable { line: 1, reason: "another IP version".to_owned() });
}

#[test]
fn a_run_ends_whatever_the_script_wants() {
    let verdict_of = |text: &str| match verdict(text) {
        Verdict::NotApplicable { reason, .. } => reason,
        other => panic!("`{text}` has to be refused, and not: {other:?}"),
    };
    let patient = HANDSHAKE.replace(
        "tcp_timestamps=0",
        "tcp_timestamps=0 net.ipv4.tcp_rto_max_ms=1000 net.ipv4.tcp_retries2=4000000",
    );
    let unanswered = "+0 write(4, ..., 100) = 100\n+0 > P. 1:101(100) ack 1\n+1000000 close(4) = 0\n";
    assert_eq!(verdict_of(&format!("{patient}{unanswered}")), "more than 100,000 timers");
    let endless = "+0 setsockopt(4, SOL_TCP, TCP_KEEPINTVL, [0], 4) = -1 EINVAL (Invalid argument)\n";
    assert_eq!(verdict(&format!("{HANDSHAKE}{endless}")), Verdict::Passed);
    let nested = format!("{HANDSHAKE}+0 %{{ assert {}1 }}%\n", "(".repeat(100_000));
    assert_eq!(verdict_of(&nested), "deeply nested assertions");
    assert!(matches!(Script::parse(&format!("0 f({}", "[".repeat(100_000))), Err(Stop::Error(_))));
}

#[test]
fn a_choice_of_freebsd_is_not_applicable() {
    let closing = format!(
        "`sysctl -w net.inet.tcp.rfc1323=1`\n{}{}",
        HANDSHAKE.lines().skip(1).map(|line| format!("{line}\n")).collect::<String>(),
        "+.1 shutdown(4, SHUT_WR) = 0\n+0 > F. 1:1(0) ack 1\n+.1 < F. 1:1(0) ack 1 win 3000\n"
    );
    let reason = "FreeBSD's choice to acknowledge a FIN with a FIN in CLOSING".to_owned();
    let line = closing.lines().count() + 1;
    let choice = verdict(&format!("{closing}+0 > F. 1:1(0) ack 2\n"));
    assert_eq!(choice, Verdict::NotApplicable { line, reason });
    assert_eq!(verdict(&format!("{closing}+0 > . 2:2(0) ack 2\n")), Verdict::Passed);
    assert!(matches!(verdict(&format!("{closing}+0 > F. 1:1(0) ack 3\n")), Verdict::Failed(_)));
}
