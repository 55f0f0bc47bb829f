//! Assertions about `TCP_INFO`: the part of Python that scripts use for them.
//!
//! A statement is `assert EXPRESSION, message`. Expressions have `and`, `or`, `not`, comparisons with chains, sums,
//! products, integers, and the names of `TCP_INFO`.

use crate::connection::Connection;
use crate::options::bsd_name;
use hopline_core::{Duration, Instant};
use hopline_transport::tcp::{Activity, CaState, Info};

/// Values that a script may assert.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Facts {
    info: Info,
    activity: Activity,
    /// Time since data of the peer last arrived, or the connection opened.
    since_data: Option<Duration>,
    /// Bytes of data received in order.
    received: u64,
    /// Largest segment received, bytes of data.
    largest_received: u64,
}

impl Facts {
    pub(crate) fn of(connection: &Connection, now: Instant) -> Self {
        let endpoint = &connection.endpoint;
        Self {
            info: endpoint.info(),
            activity: endpoint.activity(now),
            since_data: endpoint.last_data_received().map(|at| now.since(at)),
            received: endpoint.stats().bytes_received,
            largest_received: connection.largest_received,
        }
    }

    /// Returns the bits of `tcpi_options`.
    fn options(&self) -> u32 {
        let bits = [
            (self.info.timestamps, TIMESTAMPS),
            (self.info.sack, SACK),
            (self.info.window_scales.is_some(), WINDOW_SCALE),
            (self.info.ecn, ECN),
        ];
        bits.iter().filter(|(is_on, _)| *is_on).map(|(_, bit)| bit).sum()
    }
}

/// Bits of `tcpi_options`.
const TIMESTAMPS: u32 = 1;
const SACK: u32 = 2;
const WINDOW_SCALE: u32 = 4;
const ECN: u32 = 8;
/// Data of a SYN were acknowledged: never here.
const SYN_DATA: u32 = 32;

/// Outcome of the assertions of one event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Outcome {
    /// All hold.
    True,
    /// One does not hold: its text, and the values of the names in it.
    False(String, String),
    /// A name or a construct that is not known.
    Unknown(String),
}

/// Evaluates the statements.
pub(crate) fn check(code: &str, facts: &Facts) -> Outcome {
    for statement in statements(code) {
        // A constant of Linux that scripts define for themselves, and output for people.
        if statement.starts_with("print") || statement.starts_with("TCP_INFINITE_SSTHRESH =") {
            continue;
        }
        let Some(text) = statement.strip_prefix("assert") else {
            return Outcome::Unknown(format!("the statement `{statement}`"));
        };
        let mut parser = Parser { rest: text, facts, names: Vec::new(), depth: 0 };
        match parser.parse_or() {
            Err(reason) => return Outcome::Unknown(reason),
            Ok(value) if value != 0.0 => {}
            Ok(_) => {
                let expression = text[..text.len() - parser.rest.len()].trim().to_owned();
                return Outcome::False(expression, parser.names.join(", "));
            }
        }
    }
    Outcome::True
}

/// Splits code into statements, one a line; lines within parentheses continue, comments are dropped.
fn statements(code: &str) -> Vec<String> {
    let mut statements: Vec<String> = Vec::new();
    let mut depth = 0i32;
    for line in code.lines().flat_map(|line| line.split(';')) {
        let line = line.split('#').next().unwrap_or_default().trim().trim_end_matches('\\').trim();
        if line.is_empty() {
            continue;
        }
        match statements.last_mut() {
            Some(last) if depth > 0 => *last += &format!(" {line}"),
            _ => statements.push(line.to_owned()),
        }
        depth += line.matches('(').count() as i32 - line.matches(')').count() as i32;
    }
    statements
}

struct Parser<'c> {
    rest: &'c str,
    facts: &'c Facts,
    /// Names that occurred, with their values.
    names: Vec<String>,
    /// Number of expressions around the rest.
    depth: usize,
}

/// Most expressions within one another.
const DEEPEST_NESTING: usize = 64;

type Comparison = fn(f64, f64) -> bool;
type Value = Result<f64, String>;

impl Parser<'_> {
    fn take(&mut self, token: &str) -> bool {
        self.rest = self.rest.trim_start();
        let is_word = token.ends_with(|c: char| c.is_ascii_alphabetic());
        match self.rest.strip_prefix(token) {
            Some(rest) if !(is_word && rest.starts_with(is_name)) => {
                self.rest = rest;
                true
            }
            _ => false,
        }
    }

    /// Calls `parse` for an expression within another one.
    fn nested(&mut self, parse: impl FnOnce(&mut Self) -> Value) -> Value {
        if self.depth == DEEPEST_NESTING {
            return Err("deeply nested assertions".to_owned());
        }
        self.depth += 1;
        let value = parse(self)?;
        self.depth -= 1;
        Ok(value)
    }

    fn parse_or(&mut self) -> Value {
        let mut value = self.parse_and()?;
        while self.take("or") {
            let next = self.parse_and()?;
            value = truth(value != 0.0 || next != 0.0);
        }
        Ok(value)
    }

    fn parse_and(&mut self) -> Value {
        let mut value = self.parse_comparison()?;
        while self.take("and") {
            let next = self.parse_comparison()?;
            value = truth(value != 0.0 && next != 0.0);
        }
        Ok(value)
    }

    fn parse_comparison(&mut self) -> Value {
        if self.take("not") {
            return self.nested(Self::parse_comparison).map(|value| truth(value == 0.0));
        }
        let mut left = self.parse_sum()?;
        let mut holds = None;
        while let Some(compare) = self.take_comparison() {
            let right = self.parse_sum()?;
            holds = Some(holds.unwrap_or(true) && compare(left, right));
            left = right;
        }
        Ok(holds.map_or(left, truth))
    }

    fn take_comparison(&mut self) -> Option<Comparison> {
        let operators: [(&str, Comparison); 6] = [
            ("==", |a, b| a == b),
            ("!=", |a, b| a != b),
            ("<=", |a, b| a <= b),
            (">=", |a, b| a >= b),
            ("<", |a, b| a < b),
            (">", |a, b| a > b),
        ];
        operators.into_iter().find(|(token, _)| self.take(token)).map(|(_, compare)| compare)
    }

    fn parse_sum(&mut self) -> Value {
        let mut value = self.parse_product()?;
        loop {
            if self.take("+") {
                value += self.parse_product()?;
            } else if self.take("-") {
                value -= self.parse_product()?;
            } else {
                return Ok(value);
            }
        }
    }

    fn parse_product(&mut self) -> Value {
        let mut value = self.parse_term()?;
        loop {
            if self.take("*") {
                value *= self.parse_term()?;
            } else if self.take("//") {
                value = (value / self.parse_term()?).floor();
            } else if self.take("/") {
                value /= self.parse_term()?;
            } else if self.take("&") {
                value = ((value as u64) & (self.parse_term()? as u64)) as f64;
            } else if self.take("|") {
                value = ((value as u64) | (self.parse_term()? as u64)) as f64;
            } else {
                return Ok(value);
            }
        }
    }

    fn parse_term(&mut self) -> Value {
        if self.take("-") {
            return self.nested(Self::parse_term).map(|value| -value);
        }
        if self.take("(") {
            let value = self.nested(Self::parse_or)?;
            return if self.take(")") { Ok(value) } else { Err(format!("`{}` in an assertion", self.rest)) };
        }
        let len = self.rest.find(|c: char| !is_name(c) && c != '.').unwrap_or(self.rest.len());
        let (word, rest) = self.rest.split_at(len);
        self.rest = rest;
        if let Some(hex) = word.strip_prefix("0x") {
            return u64::from_str_radix(hex, 16).map(|value| value as f64).map_err(|_| unknown(word));
        }
        if let Ok(number) = word.parse::<f64>() {
            return Ok(number);
        }
        let value = value_of(word, self.facts).ok_or_else(|| unknown(word))?;
        if word.starts_with("tcpi_") {
            self.names.push(format!("{word} = {value}"));
        }
        Ok(value)
    }
}

fn unknown(word: &str) -> String {
    format!("`{word}` in an assertion")
}

fn is_name(c: char) -> bool {
    c.is_ascii_alphanumeric() || c == '_'
}

fn truth(holds: bool) -> f64 {
    f64::from(u8::from(holds))
}

/// Returns the value of a name of `TCP_INFO`.
fn value_of(name: &str, facts: &Facts) -> Option<f64> {
    let info = &facts.info;
    Some(match name {
        "tcpi_ca_state" => f64::from(ca_number(info.ca_state)),
        "TCP_INFINITE_SSTHRESH" => f64::from(0x7fff_ffff),
        "TCP_CA_Open" | "False" => 0.0,
        "TCP_CA_Disorder" | "True" => 1.0,
        "TCP_CA_CWR" => 2.0,
        "TCP_CA_Recovery" => 3.0,
        "TCP_CA_Loss" => 4.0,
        "tcpi_snd_cwnd" => f64::from(info.cwnd),
        "tcpi_snd_ssthresh" => f64::from(info.ssthresh),
        "tcpi_snd_mss" => f64::from(info.mss),
        "tcpi_advmss" => f64::from(info.advertised_mss),
        "tcpi_state" => state_number(bsd_name(info.state))?,
        "tcpi_unacked" => info.unacked as f64,
        "tcpi_sacked" => info.sacked as f64,
        "tcpi_lost" => info.lost as f64,
        "tcpi_retrans" => info.retransmitted as f64,
        "tcpi_rtt" => info.srtt.as_micros() as f64,
        "tcpi_min_rtt" => info.min_rtt?.as_micros() as f64,
        "tcpi_backoff" => f64::from(info.backoff),
        "tcpi_probes" => f64::from(info.probes),
        "tcpi_reordering" => f64::from(info.reordering),
        "tcpi_snd_wscale" => f64::from(info.window_scales.map_or(0, |(peers, _)| peers)),
        "tcpi_rcv_wscale" => f64::from(info.window_scales.map_or(0, |(_, ours)| ours)),
        "tcpi_rcv_mss" => facts.largest_received as f64,
        "tcpi_bytes_received" => facts.received as f64,
        "tcpi_last_data_recv" => facts.since_data?.as_millis() as f64,
        "tcpi_busy_time" => facts.activity.busy.as_micros() as f64,
        "tcpi_rwnd_limited" => facts.activity.window_limited.as_micros() as f64,
        "tcpi_options" => f64::from(facts.options()),
        "TCPI_OPT_TIMESTAMPS" => f64::from(TIMESTAMPS),
        "TCPI_OPT_SACK" => f64::from(SACK),
        "TCPI_OPT_WSCALE" => f64::from(WINDOW_SCALE),
        "TCPI_OPT_ECN" => f64::from(ECN),
        "TCPI_OPT_SYN_DATA" => f64::from(SYN_DATA),
        _ => return state_number(name),
    })
}

/// Returns the number of a state by its name, with the prefix of Linux or of FreeBSD. The numbers of the two systems differ;
/// those of FreeBSD stand for both.
fn state_number(name: &str) -> Option<f64> {
    let names = [
        "CLOSED",
        "LISTEN",
        "SYN_SENT",
        "SYN_RECEIVED",
        "ESTABLISHED",
        "CLOSE_WAIT",
        "FIN_WAIT_1",
        "CLOSING",
        "LAST_ACK",
        "FIN_WAIT_2",
        "TIME_WAIT",
    ];
    let short = name
        .strip_prefix("TCPS_")
        .or_else(|| name.strip_prefix("TCPI_"))
        .or_else(|| name.strip_prefix("TCP_"))?;
    names.iter().position(|known| *known == short).map(|number| number as f64)
}

fn ca_number(state: CaState) -> u8 {
    match state {
        CaState::Open => 0,
        CaState::Disorder => 1,
        CaState::Cwr => 2,
        CaState::Recovery => 3,
        _ => 4,
    }
}
