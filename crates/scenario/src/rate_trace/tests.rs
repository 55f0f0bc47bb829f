use super::*;
use hopline_core::Instant;

fn parse(text: &str) -> Result<TraceFile, Problem> {
    TraceFile::parse(Arc::new(Source { name: "t".into(), text: text.into() }))
}

fn trace(text: &str, interval_ms: u64) -> RateTrace {
    parse(text).unwrap().rates(interval_ms, Duration::ZERO).unwrap()
}

fn expected(rates: &[(u64, u64)], period_ms: u64) -> RateTrace {
    let rates = rates.iter().map(|&(from, rate)| (Duration::from_millis(from), rate)).collect();
    RateTrace::new(rates, Duration::from_millis(period_ms), Duration::ZERO).unwrap()
}

#[test]
fn opportunities_become_mean_rates_of_intervals() {
    // 12 032 bits each.
    assert_eq!(trace("1\n", 20), expected(&[(0, 12_032_000)], 1));
    assert_eq!(trace("1", 1), expected(&[(0, 12_032_000)], 1));
    // One in (0, 2], none up to 6, two in (6, 8], and one in the rest of 1 ms.
    let text = "2\n7\n8\n9\n";
    assert_eq!(
        trace(text, 2),
        expected(&[(0, 6_016_000), (2, 0), (6, 12_032_000)], 9),
        "two of 2 ms and one of 1 ms are one rate"
    );
    assert_eq!(trace(text, 9), expected(&[(0, 4 * 12_032_000 / 9)], 9));
    assert_eq!(trace("0\n0\n4\n", 2), expected(&[(0, 12_032_000), (2, 6_016_000)], 4), "time 0");
    assert_eq!(trace("5\n5\n5\n", 5), expected(&[(0, 3 * 12_032_000 / 5)], 5), "several at once");
}

#[test]
fn every_opportunity_counts_whatever_the_interval() {
    let text = "0\n3\n3\n14\n15\n92\n92\n92\n653\n";
    for interval_ms in [1, 2, 5, 7, 20, 100, 652, 653, 3_600_000] {
        let trace = trace(text, interval_ms);
        let bits = trace.mean_bps() * 653 / 1000;
        let nine = 9 * OPPORTUNITY_BITS;
        assert!((nine - 10..=nine).contains(&bits), "{interval_ms}: {bits} of {nine}");
    }
}

#[test]
fn with_intervals_of_a_millisecond_an_opportunity_carries_its_packet() {
    let trace = trace("3\n3\n10\n", 1);
    let sent = |bits| trace.sent_at(Instant::ZERO, bits);
    assert_eq!(sent(OPPORTUNITY_BITS), Instant::from_nanos(2_500_000));
    assert_eq!(sent(2 * OPPORTUNITY_BITS), Instant::from_millis(3));
    assert_eq!(sent(3 * OPPORTUNITY_BITS), Instant::from_millis(10));
    assert_eq!(sent(5 * OPPORTUNITY_BITS), Instant::from_millis(13), "repeated from the last time on");
}

#[test]
fn rates_of_a_csv_hold_until_the_next_time() {
    let text = "time_s,rate_mbps\n1700000000,8\n1700000001.5,0\n1700000002,2.5\n";
    assert_eq!(trace(text, 20), expected(&[(0, 8_000_000), (1500, 0), (2000, 2_500_000)], 2500));
    assert_eq!(trace("# measured\ntime_s; rate_mbps\n3;1\n", 20), expected(&[(0, 1_000_000)], 1000));
}

#[test]
fn blank_lines_comments_and_line_ends_of_windows_are_accepted() {
    assert_eq!(trace("\u{feff}# a\r\n 2\r\n\r\n4 \r\n", 2), trace("2\n4\n", 2));
}

#[track_caller]
fn assert_rejected(text: &str, expected: &str) {
    assert_eq!(parse(text).unwrap_err().to_string(), expected);
}

#[test]
fn errors_have_their_position() {
    let formats = "(lines are times in milliseconds, as mahimahi has them, or a CSV with the header `time_s,rate_mbps`)";
    assert_rejected("", &format!("t:1:1: an empty file {formats}"));
    assert_rejected("# no line\n\n", &format!("t:1:1: an empty file {formats}"));
    assert_rejected(
        "hello\n",
        &format!("t:1:1: `hello` is not the first line of a trace of rates {formats}"),
    );
    assert_rejected("{\n", &format!("t:1:1: `{{` is not the first line of a trace of rates {formats}"));
    assert_rejected("-1\n", &format!("t:1:1: `-1` is not the first line of a trace of rates {formats}"));
    let whole = "(a whole number of milliseconds from 0 to 10000000000)";
    for word in ["x", "1.5", "-1", "10000000001", "99999999999999999999999"] {
        assert_rejected(
            &format!("1\n {word}\n"),
            &format!("t:2:2: `{word}` is not a time of an opportunity {whole}"),
        );
    }
    assert_rejected("1\n5\n4\n", "t:3:1: time 4 after time 5 (times do not decrease)");
    assert_rejected(
        "0\n0\n",
        "t:2:1: a trace that ends at time 0 (the last time is above 0: the trace repeats from then on)",
    );
    let long = "9".repeat(1000);
    assert!(parse(&long).unwrap_err().to_string().len() < 200, "a long word is cut");
}

#[test]
fn errors_of_a_csv_have_their_position() {
    let row = |row: &str| format!("time_s,rate_mbps\n0,1\n{row}\n");
    let formats = "(lines are times in milliseconds, as mahimahi has them, or a CSV with the header `time_s,rate_mbps`)";
    assert_rejected("0,5\n", &format!("t:1:1: `0,5` is not the first line of a trace of rates {formats}"));
    assert_rejected("time_s,rate_mbps\n", &format!("t:1:1: a trace that never has a rate above 0 {formats}"));
    assert_rejected(
        "time_s,rate_mbps\n0,0\n",
        &format!("t:1:1: a trace that never has a rate above 0 {formats}"),
    );
    assert_rejected(&row("1"), "t:3:1: 2 columns in the header, 1 here (every line has a time and a rate)");
    assert_rejected(&row("x,1"), "t:3:1: `x` is not a time (a number of seconds, from 0 to 10000000000)");
    for rate in ["-1", "nan", "inf", "1e7", ""] {
        assert_rejected(
            &row(&format!("1,{rate}")),
            &format!("t:3:3: `{rate}` is not a rate (a number of megabits per second, from 0 to 1000000)"),
        );
    }
    assert_rejected(&row("0,2"), "t:3:1: a time that is not after the one before (times increase)");
    assert_rejected(
        &row("10000001,2"),
        "t:3:1: a trace that is too long (at most 10000000 seconds after the first time)",
    );
}

#[test]
fn a_mean_below_a_bit_per_second_is_no_rate() {
    assert!(parse("10000000000\n").unwrap().rates(20, Duration::ZERO).is_none());
    assert!(parse("time_s,rate_mbps\n0,0.000001\n1,0\n").unwrap().rates(20, Duration::ZERO).is_none());
}
