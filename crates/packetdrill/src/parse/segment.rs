//! Segments: `< [ect0] S. 0:0(0) ack 1 win 1000 <mss 1460,sackOK>`.

use super::cursor::Cursor;
use super::error::Stop;
use crate::script::{EcnSpec, OptionSpec, SegmentSpec};
use hopline_wire::ipv4::Ecn;
use hopline_wire::tcp::Flags;

/// Parses the segment after its direction.
pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<SegmentSpec, Stop> {
    refuse_other_protocols(cursor)?;
    let ecn = parse_ip_info(cursor)?;
    refuse_other_protocols(cursor)?;
    let ports = parse_ports(cursor)?;
    let flags = parse_flags(cursor)?;
    let seq = cursor.integer("a sequence number")?;
    cursor.require(":")?;
    cursor.integer::<u32>("a sequence number")?;
    cursor.require("(")?;
    let len = cursor.integer("a length")?;
    cursor.require(")")?;
    let ack = parse_field(cursor, "ack")?;
    let window = parse_field(cursor, "win")?;
    let urgent = parse_field(cursor, "urg")?.unwrap_or(0);
    let options = parse_option_list(cursor)?;
    if cursor.take("/udp")? {
        return not_applicable(*cursor, "UDP encapsulation");
    }
    Ok(SegmentSpec { ports, ecn, flags, seq, len, ack, window, urgent, options })
}

fn refuse_other_protocols(cursor: &mut Cursor<'_>) -> Result<(), Stop> {
    let line = cursor.line();
    for (word, name) in [
        ("icmp", "ICMP"),
        ("udp", "UDP"),
        ("udplite", "UDP-Lite"),
        ("gre", "GRE"),
        ("mpls", "MPLS"),
        ("ipv4", "a tunnel"),
        ("ipv6", "a tunnel"),
        ("sctp", "SCTP"),
        ("psp", "PSP encryption"),
    ] {
        if cursor.take_word(word)? {
            return Err(Stop::NotApplicable { line, reason: name.to_owned() });
        }
    }
    Ok(())
}

/// Parses the fields of the IP header: `[ect0]`, `(ttl 64)`.
fn parse_ip_info(cursor: &mut Cursor<'_>) -> Result<Option<EcnSpec>, Stop> {
    cursor.skip()?;
    let close = match cursor.peek() {
        Some('[') => "]",
        Some('(') => ")",
        _ => return Ok(None),
    };
    let line = cursor.line();
    cursor.take(if close == "]" { "[" } else { "(" })?;
    let info = cursor.until(close)?.trim();
    let ecn = match info {
        "noecn" => EcnSpec::Is(Ecn::NotCapable),
        "ect0" => EcnSpec::Is(Ecn::Capable0),
        "ect1" => EcnSpec::Is(Ecn::Capable1),
        "ce" => EcnSpec::Is(Ecn::CongestionExperienced),
        "ect01" => EcnSpec::EitherEct,
        other => {
            let name = other.split_whitespace().next().unwrap_or_default();
            return Err(Stop::NotApplicable { line, reason: format!("the IP field `{name}`") });
        }
    };
    Ok(Some(ecn))
}

/// Parses `8080 > 40000`.
fn parse_ports(cursor: &mut Cursor<'_>) -> Result<Option<(u16, u16)>, Stop> {
    cursor.skip()?;
    if !cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
        return Ok(None);
    }
    let source = cursor.integer("a port")?;
    cursor.require(">")?;
    Ok(Some((source, cursor.integer("a port")?)))
}

fn parse_flags(cursor: &mut Cursor<'_>) -> Result<Flags, Stop> {
    cursor.skip()?;
    let before = *cursor;
    let word = cursor.take_while(|c| !c.is_whitespace());
    let mut flags = Flags(0);
    for c in word.chars() {
        flags |= match c {
            'F' => Flags::FIN,
            'S' => Flags::SYN,
            'R' => Flags::RST,
            'P' => Flags::PSH,
            '.' => Flags::ACK,
            'U' => Flags::URG,
            'E' => Flags::ECE,
            'W' | 'C' => Flags::CWR,
            '-' => Flags(0),
            'A' | '0'..='9' => return not_applicable(before, "AccECN"),
            _ => return before.error("TCP flags: F, S, R, P, `.`, U, E, W or `-`"),
        };
    }
    if word.is_empty() { before.error("TCP flags") } else { Ok(flags) }
}

fn parse_field<T: TryFrom<u64>>(cursor: &mut Cursor<'_>, name: &str) -> Result<Option<T>, Stop> {
    if cursor.take_word(name)? { cursor.integer(name).map(Some) } else { Ok(None) }
}

/// Parses `<mss 1460,nop,wscale 7>`. Without a list, there are no options.
fn parse_option_list(cursor: &mut Cursor<'_>) -> Result<Option<Vec<OptionSpec>>, Stop> {
    let mut ahead = *cursor;
    if !ahead.take("<")? || !starts_option(ahead)? {
        return Ok(Some(Vec::new()));
    }
    *cursor = ahead;
    if cursor.take("...")? {
        cursor.require(">")?;
        return Ok(None);
    }
    let mut options = Vec::new();
    while !cursor.take(">")? {
        parse_option(cursor, &mut options)?;
        cursor.take(",")?;
    }
    Ok(Some(options))
}

/// Returns whether an option follows, and not the segment of another event without a time.
fn starts_option(mut cursor: Cursor<'_>) -> Result<bool, Stop> {
    cursor.skip()?;
    Ok(cursor.starts_with("...")
        || cursor.starts_with(">")
        || cursor.word()?.is_some_and(|word| word.len() > 2))
}

fn parse_option(cursor: &mut Cursor<'_>, options: &mut Vec<OptionSpec>) -> Result<(), Stop> {
    cursor.skip()?;
    let before = *cursor;
    let option = match cursor.word()? {
        Some("nop") => OptionSpec::Nop,
        Some("eol") => OptionSpec::Eol,
        Some("mss") => OptionSpec::Mss(cursor.integer("an MSS")?),
        Some("wscale") => OptionSpec::WindowScale(cursor.integer("a shift")?),
        Some("sackOK") => OptionSpec::SackPermitted,
        Some("sack") => return parse_sack_blocks(cursor, options),
        Some("TS") => parse_timestamps(cursor)?,
        Some("FO" | "FOEXP") => return not_applicable(before, "TCP Fast Open"),
        Some("md5") => return not_applicable(before, "TCP MD5 signatures"),
        Some("ECN" | "acc" | "accecn" | "e0b" | "e1b") => return not_applicable(before, "AccECN"),
        _ => return before.error("a TCP option: mss, wscale, sackOK, sack, TS, nop or eol"),
    };
    options.push(option);
    Ok(())
}

fn not_applicable<T>(cursor: Cursor<'_>, reason: &str) -> Result<T, Stop> {
    Err(Stop::NotApplicable { line: cursor.line(), reason: reason.to_owned() })
}

fn parse_sack_blocks(cursor: &mut Cursor<'_>, options: &mut Vec<OptionSpec>) -> Result<(), Stop> {
    loop {
        let left = cursor.integer("a sequence number")?;
        cursor.require(":")?;
        options.push(OptionSpec::Sack(left, cursor.integer("a sequence number")?));
        cursor.skip()?;
        if !cursor.peek().is_some_and(|c| c.is_ascii_digit()) {
            return Ok(());
        }
    }
}

fn parse_timestamps(cursor: &mut Cursor<'_>) -> Result<OptionSpec, Stop> {
    cursor.require("val")?;
    let value = cursor.integer("a timestamp")?;
    cursor.require("ecr")?;
    Ok(OptionSpec::Timestamps(value, cursor.integer("a timestamp")?))
}
