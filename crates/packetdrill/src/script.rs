//! Abstract syntax of a script.

use hopline_core::Duration;
use hopline_wire::ipv4::Ecn;
use hopline_wire::tcp::Flags;

/// Parsed script.
#[derive(Clone, Debug, PartialEq)]
pub struct Script {
    /// Options of the first lines, in order: `--tolerance_usecs=4000`.
    pub options: Vec<ScriptOption>,
    /// Events in the order of the script. The initial command, if there is one, is the first, at time 0.
    pub events: Vec<Event>,
}

impl Script {
    /// Adds an option of the command line, which counts after those of the script. Two different IP versions make the script
    /// not applicable.
    pub fn add_option(&mut self, name: &str, value: &str) {
        self.options.push(ScriptOption { line: 1, name: name.to_owned(), value: value.to_owned() });
    }
}

/// Option of the first lines.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ScriptOption {
    /// Line, from 1.
    pub line: usize,
    /// Name without the dashes.
    pub name: String,
    /// Text after `=`; empty if there is none.
    pub value: String,
}

/// Action at a time.
#[derive(Clone, Debug, PartialEq)]
pub struct Event {
    /// Line of the time, from 1.
    pub line: usize,
    /// Time of the action.
    pub time: EventTime,
    /// Action.
    pub action: Action,
}

/// Time of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EventTime {
    /// Time after the start of the script.
    Absolute(Duration),
    /// Time after the previous event.
    Relative(Duration),
    /// Interval after the start of the script.
    AbsoluteRange(Duration, Duration),
    /// Interval after the previous event.
    RelativeRange(Duration, Duration),
    /// Any time after the previous event.
    Any,
}

/// Action of an event.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Segment from the peer, delivered to the endpoint.
    Inbound(SegmentSpec),
    /// Message of ICMP about a segment that the endpoint has sent.
    Icmp(IcmpSpec),
    /// Segment that the endpoint has to send.
    Outbound(SegmentSpec),
    /// System call of the application.
    Call(Call),
    /// Shell commands.
    Command(String),
    /// Assertions about `TCP_INFO`.
    Code(String),
}

/// Segment as a script describes it. Sequence numbers are relative to both initial ones.
#[derive(Clone, Debug, PartialEq)]
pub struct SegmentSpec {
    /// Ports, source first; `None` if the script leaves them out.
    pub ports: Option<(u16, u16)>,
    /// ECN field; `None`: not-ECT inbound, unchecked outbound.
    pub ecn: Option<EcnSpec>,
    /// Control bits.
    pub flags: Flags,
    /// First sequence number.
    pub seq: u32,
    /// Bytes of data.
    pub len: u32,
    /// Acknowledgment number.
    pub ack: Option<u32>,
    /// Window field; `None`: zero inbound, unchecked outbound.
    pub window: Option<u16>,
    /// Urgent pointer.
    pub urgent: u16,
    /// Options; `None` for `<...>`: unchecked.
    pub options: Option<Vec<OptionSpec>>,
}

/// Message of ICMP: `icmp unreachable frag_needed mtu 1200 [1:1461(1460)]`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct IcmpSpec {
    /// Type, such as `unreachable`.
    pub kind: String,
    /// Code, such as `frag_needed`; empty if there is none.
    pub code: String,
    /// Next-hop MTU, bytes.
    pub mtu: Option<u32>,
    /// First sequence number of the segment that the message quotes.
    pub seq: u32,
}

/// ECN field of the IP header.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum EcnSpec {
    /// One value.
    Is(Ecn),
    /// ECT(0) or ECT(1): `ect01`.
    EitherEct,
}

/// TCP option.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OptionSpec {
    /// No operation.
    Nop,
    /// End of the list.
    Eol,
    /// Maximum segment size, bytes.
    Mss(u16),
    /// Window scale, shift.
    WindowScale(u8),
    /// SACK permitted.
    SackPermitted,
    /// SACK block: first sequence number, and the one after the last.
    Sack(u32, u32),
    /// Timestamps: value and echo.
    Timestamps(u32, u32),
}

/// System call with the result that it has to return.
#[derive(Clone, Debug, PartialEq)]
pub struct Call {
    /// Name.
    pub name: String,
    /// Arguments.
    pub arguments: Vec<Expression>,
    /// Time of the return, for a call that blocks: `0...0.2`.
    pub returns_at: Option<Duration>,
    /// Expected result.
    pub result: Expression,
    /// Expected error, such as `EAGAIN`.
    pub errno: Option<String>,
}

/// Expression in a system call.
#[derive(Clone, Debug, PartialEq)]
pub enum Expression {
    /// `...`: the runner chooses.
    Ellipsis,
    /// Integer.
    Integer(i64),
    /// Symbol, such as `SOL_SOCKET`.
    Symbol(String),
    /// String.
    Text(String),
    /// Alternatives of bits: `O_RDWR | O_NONBLOCK`.
    Bits(Vec<Expression>),
    /// Array: `[1]`.
    Array(Vec<Expression>),
    /// Structure: `{fd=3, events=POLLIN}`; an unnamed member has an empty name.
    Record(Vec<(String, Expression)>),
}

impl Expression {
    /// Returns the integer, also of an array of one.
    #[must_use]
    pub fn integer(&self) -> Option<i64> {
        match self {
            Self::Integer(value) => Some(*value),
            Self::Array(items) => match items.as_slice() {
                [one] => one.integer(),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns the name of a symbol, also in an array of one.
    #[must_use]
    pub fn symbol(&self) -> Option<&str> {
        match self {
            Self::Symbol(name) => Some(name),
            Self::Array(items) => match items.as_slice() {
                [one] => one.symbol(),
                _ => None,
            },
            _ => None,
        }
    }

    /// Returns whether the symbol occurs, alone or among bits.
    #[must_use]
    pub fn has(&self, symbol: &str) -> bool {
        match self {
            Self::Symbol(name) => name == symbol,
            Self::Bits(items) => items.iter().any(|item| item.has(symbol)),
            _ => false,
        }
    }

    /// Returns the member of a structure.
    #[must_use]
    pub fn member(&self, name: &str) -> Option<&Self> {
        match self {
            Self::Record(members) => members.iter().find(|(key, _)| key == name).map(|(_, value)| value),
            _ => None,
        }
    }
}
