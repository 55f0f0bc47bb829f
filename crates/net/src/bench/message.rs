//! Messages as bytes. `docs/bench.md` has the layout.

use super::error::{Reason, Refusal};
use super::plan::{CongestionControl, Direction, Limit, MAX_NAME, MAX_STREAMS, Plan, Transport};
use super::report::{Cpu, RttSummary, SendingReport, SideReport, StreamReport};
use crate::printable::printable;
use std::time::Duration;

/// The version that is spoken here.
pub(super) const VERSION: u8 = 1;
/// Bytes before the body: kind, and length of the body.
pub(super) const HEADER: usize = 4;
/// Most bytes of words in a message; longer ones are cut.
const MAX_TEXT: usize = 512;
const MAGIC: &[u8; 13] = b"hopline bench";
/// Bytes of a stream in a RESULTS.
const STREAM: usize = 8 + 1 + 3 * 8 + 3 * 4;
const MAX_RESULTS: usize = 8 + 2 * 4 + 1 + MAX_NAME + 1 + MAX_STREAMS as usize * STREAM;
/// No round-trip time was seen.
const NO_RTT: u32 = u32::MAX;

/// What makes data streams part of a test: nobody else can guess it.
pub(super) type Cookie = [u8; 16];

/// One unit of the conversation.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum Message {
    /// Client, first on the control connection: this is to be measured.
    Plan(Plan),
    /// Client, first on a data stream: it belongs to the test with this cookie.
    Join { cookie: Cookie, stream: u8 },
    /// Server: so be it.
    Accept { cookie: Cookie },
    /// Server: all streams are there.
    Ready,
    /// Client: it begins.
    Start,
    /// Client: its user wants it to end now.
    Stop,
    /// Both: what this side counted.
    Results(SideReport),
    /// Both: I am still here.
    Alive,
    /// Both: it cannot go on.
    Fail(Refusal),
}

/// Why bytes are no message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum MessageProblem {
    #[error("{0} is no kind of message")]
    Kind(u8),
    #[error("a message of kind {kind} with {len} bytes")]
    Length { kind: u8, len: usize },
    #[error("a message of kind {0} that contradicts itself")]
    Malformed(u8),
    #[error("version {0}")]
    Version(u8),
}

const PLAN: u8 = 1;
const JOIN: u8 = 2;
const ACCEPT: u8 = 3;
const READY: u8 = 4;
const START: u8 = 5;
const STOP: u8 = 6;
const RESULTS: u8 = 7;
const ALIVE: u8 = 8;
const FAIL: u8 = 9;

impl Message {
    /// Length of the body that a header announces.
    pub(super) fn body_len(header: [u8; HEADER]) -> Result<usize, MessageProblem> {
        let [kind, length @ ..] = header;
        let len = length.iter().fold(0, |len, &byte| len << 8 | usize::from(byte));
        let bound = match kind {
            PLAN => 128,
            JOIN => 17,
            ACCEPT => 16,
            READY | START | STOP | ALIVE => 0,
            RESULTS => MAX_RESULTS,
            FAIL => 1 + MAX_TEXT,
            _ => return Err(MessageProblem::Kind(kind)),
        };
        if len <= bound { Ok(len) } else { Err(MessageProblem::Length { kind, len }) }
    }

    /// The message of `kind` with this body.
    pub(super) fn decode(kind: u8, body: &[u8]) -> Result<Self, MessageProblem> {
        let mut from = Reader(body);
        if kind == PLAN
            && let version = read_version(&mut from).ok_or(MessageProblem::Malformed(kind))?
            && version != VERSION
        {
            return Err(MessageProblem::Version(version));
        }
        let message = Self::read(kind, &mut from).filter(|_| from.0.is_empty());
        message.ok_or(MessageProblem::Malformed(kind))
    }

    fn read(kind: u8, from: &mut Reader<'_>) -> Option<Self> {
        Some(match kind {
            PLAN => Self::Plan(read_plan(from)?),
            JOIN => Self::Join { cookie: from.array()?, stream: from.u8()? },
            ACCEPT => Self::Accept { cookie: from.array()? },
            READY => Self::Ready,
            START => Self::Start,
            STOP => Self::Stop,
            RESULTS => Self::Results(read_results(from)?),
            ALIVE => Self::Alive,
            FAIL => {
                let reason = Reason::of(from.u8()?);
                Self::Fail(Refusal { reason, text: printable(std::mem::take(&mut from.0)) })
            }
            _ => return None,
        })
    }

    /// Header and body.
    pub(super) fn encode(&self) -> Vec<u8> {
        let mut to = vec![0; HEADER];
        to[0] = match self {
            Self::Plan(plan) => {
                write_plan(&mut to, plan);
                PLAN
            }
            Self::Join { cookie, stream } => {
                to.extend(cookie);
                to.push(*stream);
                JOIN
            }
            Self::Accept { cookie } => {
                to.extend(cookie);
                ACCEPT
            }
            Self::Ready => READY,
            Self::Start => START,
            Self::Stop => STOP,
            Self::Results(report) => {
                write_results(&mut to, report);
                RESULTS
            }
            Self::Alive => ALIVE,
            Self::Fail(refusal) => {
                to.push(refusal.reason as u8);
                to.extend(cut(&refusal.text).bytes());
                FAIL
            }
        };
        let len = (to.len() - HEADER) as u32; // far below 2²⁴
        to[1..HEADER].copy_from_slice(&len.to_be_bytes()[1..]);
        to
    }

    /// For messages to people.
    pub(super) const fn name(&self) -> &'static str {
        match self {
            Self::Plan(_) => "PLAN",
            Self::Join { .. } => "JOIN",
            Self::Accept { .. } => "ACCEPT",
            Self::Ready => "READY",
            Self::Start => "START",
            Self::Stop => "STOP",
            Self::Results(_) => "RESULTS",
            Self::Alive => "ALIVE",
            Self::Fail(_) => "FAIL",
        }
    }
}

fn cut(text: &str) -> &str {
    &text[..text.floor_char_boundary(MAX_TEXT)]
}

fn read_version(from: &mut Reader<'_>) -> Option<u8> {
    (from.array()? == *MAGIC).then(|| from.u8())?
}

fn write_plan(to: &mut Vec<u8>, plan: &Plan) {
    to.extend(MAGIC);
    to.push(VERSION);
    match &plan.transport {
        Transport::Tpa { cwnd_max } => to.extend([0, *cwnd_max, 0]),
        Transport::Tcp { congestion_control } => {
            to.extend([1, 0]);
            write_name(to, congestion_control.as_ref());
        }
    }
    to.push(match plan.direction {
        Direction::Forward => 0,
        Direction::Reverse => 1,
    });
    let (kind, limit) = match plan.limit {
        Limit::Time(time) => (0, nanoseconds(time)),
        Limit::Bytes(bytes) => (1, bytes),
    };
    to.push(kind);
    to.extend(limit.to_be_bytes());
    to.extend(nanoseconds(plan.omit).to_be_bytes());
    to.push(plan.streams);
    to.extend(plan.length.to_be_bytes());
}

fn read_plan(from: &mut Reader<'_>) -> Option<Plan> {
    let (kind, cwnd_max, name) = (from.u8()?, from.u8()?, from.name()?);
    let transport = match (kind, name) {
        (0, None) => Transport::Tpa { cwnd_max },
        (1, congestion_control) => Transport::Tcp { congestion_control },
        _ => return None,
    };
    let direction = match from.u8()? {
        0 => Direction::Forward,
        1 => Direction::Reverse,
        _ => return None,
    };
    let limit = match (from.u8()?, from.u64()?) {
        (0, time) => Limit::Time(Duration::from_nanos(time)),
        (1, bytes) => Limit::Bytes(bytes),
        _ => return None,
    };
    let (omit, streams, length) = (Duration::from_nanos(from.u64()?), from.u8()?, from.u32()?);
    Some(Plan { transport, direction, limit, omit, streams, length })
}

fn write_results(to: &mut Vec<u8>, report: &SideReport) {
    to.extend(nanoseconds(report.elapsed).to_be_bytes());
    for share in [report.cpu.user, report.cpu.system] {
        to.extend(((share * 1e6).round() as u32).to_be_bytes());
    }
    write_name(to, report.congestion_control.as_ref());
    to.push(report.streams.len() as u8); // at most MAX_STREAMS
    for stream in &report.streams {
        to.extend(stream.bytes.to_be_bytes());
        to.push(u8::from(stream.sending.is_some()));
        let sending = stream.sending.unwrap_or_default();
        for number in [sending.retransmits, sending.max_cwnd, sending.max_peer_window] {
            to.extend(number.to_be_bytes());
        }
        let rtt = sending.rtt.map_or([NO_RTT; 3], |rtt| [rtt.min, rtt.mean, rtt.max].map(microseconds));
        rtt.iter().for_each(|number| to.extend(number.to_be_bytes()));
    }
}

fn read_results(from: &mut Reader<'_>) -> Option<SideReport> {
    let elapsed = Duration::from_nanos(from.u64()?);
    let cpu = Cpu { user: f64::from(from.u32()?) / 1e6, system: f64::from(from.u32()?) / 1e6 };
    let congestion_control = from.name()?;
    let streams = (0..from.u8()?).map(|_| read_stream(from)).collect::<Option<_>>()?;
    Some(SideReport { elapsed, cpu, congestion_control, streams })
}

fn read_stream(from: &mut Reader<'_>) -> Option<StreamReport> {
    let (bytes, sends) = (from.u64()?, from.u8()?);
    let (retransmits, max_cwnd, max_peer_window) = (from.u64()?, from.u64()?, from.u64()?);
    let rtt = match [from.u32()?, from.u32()?, from.u32()?] {
        micros if micros.contains(&NO_RTT) => None,
        micros => {
            let [min, mean, max] = micros.map(|us| Duration::from_micros(us.into()));
            Some(RttSummary { min, mean, max })
        }
    };
    let sending = SendingReport { retransmits, max_cwnd, max_peer_window, rtt };
    match sends {
        0 => Some(StreamReport { bytes, sending: None }),
        1 => Some(StreamReport { bytes, sending: Some(sending) }),
        _ => None,
    }
}

fn write_name(to: &mut Vec<u8>, control: Option<&CongestionControl>) {
    let name = control.map_or("", CongestionControl::name);
    to.push(name.len() as u8); // at most MAX_NAME
    to.extend(name.bytes());
}

fn nanoseconds(span: Duration) -> u64 {
    u64::try_from(span.as_nanos()).unwrap_or(u64::MAX)
}

fn microseconds(span: Duration) -> u32 {
    u32::try_from(span.as_micros()).unwrap_or(NO_RTT - 1).min(NO_RTT - 1)
}

/// What is left of a body.
struct Reader<'a>(&'a [u8]);

impl Reader<'_> {
    fn array<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn u8(&mut self) -> Option<u8> {
        self.array().map(u8::from_be_bytes)
    }

    fn u32(&mut self) -> Option<u32> {
        self.array().map(u32::from_be_bytes)
    }

    fn u64(&mut self) -> Option<u64> {
        self.array().map(u64::from_be_bytes)
    }

    /// The name of a congestion control, with its length before it; empty: none.
    fn name(&mut self) -> Option<Option<CongestionControl>> {
        let len = usize::from(self.u8()?);
        let (name, rest) = self.0.split_at_checked(len)?;
        self.0 = rest;
        if len == 0 { Some(None) } else { Some(Some(CongestionControl::new(str::from_utf8(name).ok()?)?)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(transport: Transport, direction: Direction, limit: Limit) -> Message {
        Message::Plan(Plan {
            transport,
            direction,
            limit,
            omit: Duration::from_secs(2),
            streams: 3,
            length: 131_072,
        })
    }

    fn report() -> SideReport {
        let rtt = RttSummary {
            min: Duration::from_micros(1),
            mean: Duration::from_micros(2),
            max: Duration::from_secs(4000),
        };
        let sending =
            SendingReport { retransmits: 7, max_cwnd: 17_424, max_peer_window: 1 << 40, rtt: Some(rtt) };
        SideReport {
            elapsed: Duration::from_nanos(10_000_000_001),
            cpu: Cpu { user: 0.25, system: 1.5 },
            congestion_control: CongestionControl::new("bbr"),
            streams: vec![
                StreamReport { bytes: u64::MAX, sending: Some(sending) },
                StreamReport { bytes: 5, sending: Some(SendingReport { rtt: None, ..sending }) },
                StreamReport { bytes: 0, sending: None },
            ],
        }
    }

    fn every_message() -> Vec<Message> {
        let cubic = CongestionControl::new("cubic");
        let seconds = Limit::Time(Duration::from_secs(10));
        vec![
            plan(Transport::Tpa { cwnd_max: 12 }, Direction::Forward, seconds),
            plan(Transport::Tcp { congestion_control: None }, Direction::Reverse, Limit::Bytes(1)),
            plan(Transport::Tcp { congestion_control: cubic }, Direction::Reverse, Limit::Bytes(u64::MAX)),
            Message::Join { cookie: [7; 16], stream: 2 },
            Message::Accept { cookie: [9; 16] },
            Message::Ready,
            Message::Start,
            Message::Stop,
            Message::Results(report()),
            Message::Alive,
            Message::Fail(Refusal::new(Reason::Busy, "später")),
        ]
    }

    fn decode(bytes: &[u8]) -> Result<Message, MessageProblem> {
        let (header, body) = bytes.split_first_chunk().unwrap();
        assert_eq!(Message::body_len(*header)?, body.len());
        Message::decode(header[0], body)
    }

    #[test]
    fn what_is_written_is_read_back() {
        for message in every_message() {
            assert_eq!(decode(&message.encode()).as_ref(), Ok(&message), "{}", message.name());
        }
    }

    #[test]
    fn a_body_too_short_or_too_long_is_none() {
        for message in every_message() {
            let bytes = message.encode();
            let (kind, body) = (bytes[0], &bytes[HEADER..]);
            // The words of a FAIL may be of any length.
            if matches!(message, Message::Fail(_)) {
                assert!(Message::decode(kind, &[]).is_err());
                continue;
            }
            for cut in 0..body.len() {
                assert!(Message::decode(kind, &body[..cut]).is_err(), "{} at {cut}", message.name());
            }
            let longer = [body, &[0]].concat();
            assert!(Message::decode(kind, &longer).is_err(), "{}", message.name());
        }
    }

    #[test]
    fn whatever_a_byte_is_changed_to_is_read_as_what_it_says_or_not_at_all() {
        for message in every_message() {
            let bytes = message.encode();
            for (at, byte) in (HEADER..bytes.len()).flat_map(|at| (0..=255).map(move |byte| (at, byte))) {
                let mut changed = bytes.clone();
                changed[at] = byte;
                if let Ok(read) = Message::decode(changed[0], &changed[HEADER..]) {
                    assert_eq!(
                        decode(&read.encode()).as_ref(),
                        Ok(&read),
                        "{} at {at}: {byte}",
                        message.name()
                    );
                }
            }
        }
    }

    #[test]
    fn lengths_are_bounded_before_anything_is_waited_for() {
        assert_eq!(Message::body_len([0, 0, 0, 0]), Err(MessageProblem::Kind(0)));
        assert_eq!(Message::body_len([10, 0, 0, 0]), Err(MessageProblem::Kind(10)));
        let largest = |kind| {
            (0..1 << 13).rev().find(|len| {
                let [_, rest @ ..] = u32::to_be_bytes(*len);
                Message::body_len([kind, rest[0], rest[1], rest[2]]).is_ok()
            })
        };
        let bounds: Vec<_> = (PLAN..=FAIL).map(|kind| largest(kind).unwrap()).collect();
        assert_eq!(bounds, [128, 17, 16, 0, 0, 0, 5793, 0, 513]);
        assert_eq!(
            Message::body_len([START, 255, 255, 255]),
            Err(MessageProblem::Length { kind: START, len: (1 << 24) - 1 })
        );
    }

    #[test]
    fn most_streams_fit_and_no_more_words_than_may() {
        let streams = vec![report().streams[0]; MAX_STREAMS.into()];
        let many = Message::Results(SideReport {
            streams,
            congestion_control: CongestionControl::new(&"x".repeat(15)),
            ..report()
        });
        assert_eq!(decode(&many.encode()), Ok(many));
        let long = Message::Fail(Refusal::new(Reason::System, "ü".repeat(400))).encode();
        let Ok(Message::Fail(refusal)) = decode(&long) else { panic!() };
        assert_eq!(refusal.text, "ü".repeat(256));
    }

    #[test]
    fn what_a_later_version_says_is_not_taken_for_nonsense() {
        let mut later = every_message()[0].encode();
        later[HEADER + MAGIC.len()] = 2;
        assert_eq!(decode(&later), Err(MessageProblem::Version(2)));
        assert_eq!(decode(&[FAIL, 0, 0, 2, 77, b'?']), Ok(Message::Fail(Refusal::new(Reason::Unknown, "?"))));
    }

    #[test]
    fn words_of_the_peer_do_nothing_to_a_terminal() {
        let fail = Message::decode(FAIL, b"\x04\x1b[2J");
        assert_eq!(fail, Ok(Message::Fail(Refusal::new(Reason::System, "\\u{1b}[2J"))));
    }

    #[test]
    fn values_that_do_not_exist_are_refused() {
        let good = every_message()[1].encode();
        // Transport, direction, kind of limit.
        for at in [HEADER + 14, HEADER + 17, HEADER + 18] {
            let mut bytes = good.clone();
            bytes[at] = 2;
            assert_eq!(decode(&bytes), Err(MessageProblem::Malformed(PLAN)), "{at}");
        }
        let mut magic = good;
        magic[HEADER] ^= 1;
        assert_eq!(decode(&magic), Err(MessageProblem::Malformed(PLAN)));
    }
}
