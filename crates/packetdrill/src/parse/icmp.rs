//! Messages of ICMP: `icmp unreachable frag_needed mtu 1200 [1:1461(1460)]`.

use super::cursor::Cursor;
use super::error::Stop;
use crate::script::IcmpSpec;

/// Parses the message after `icmp`.
pub(super) fn parse(cursor: &mut Cursor<'_>) -> Result<IcmpSpec, Stop> {
    let kind = parse_name(cursor)?;
    let mut code = String::new();
    let mut mtu = None;
    while !cursor.take("[")? {
        if cursor.take_word("mtu")? {
            mtu = Some(cursor.integer("an MTU")?);
        } else {
            code = parse_name(cursor)?;
        }
    }
    let seq = cursor.integer("a sequence number")?;
    cursor.until("]")?;
    Ok(IcmpSpec { kind, code, mtu, seq })
}

fn parse_name(cursor: &mut Cursor<'_>) -> Result<String, Stop> {
    cursor.skip()?;
    let before = *cursor;
    match cursor.word()? {
        Some(word) => Ok(word.to_owned()),
        None => before.error("the type or code of a message of ICMP, or `[` and the segment"),
    }
}
