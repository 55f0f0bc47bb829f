//! System calls: `write(4, ..., 1000) = -1 EAGAIN (Resource temporarily unavailable)`.

use super::cursor::Cursor;
use super::error::Stop;
use crate::script::{Call, Expression};
use hopline_core::Duration;

/// Parses a call, which returns at `returns_at` if it blocks.
pub(super) fn parse(cursor: &mut Cursor<'_>, returns_at: Option<Duration>) -> Result<Call, Stop> {
    let Some(name) = cursor.word()? else {
        return cursor.error("`<`, `>`, a system call, `%{` or a command in back quotes");
    };
    cursor.require("(")?;
    let arguments = parse_list(cursor, ")")?;
    cursor.require("=")?;
    let result = parse_expression(cursor)?;
    let errno = if matches!(result, Expression::Integer(value) if value < 0) {
        cursor.word()?.map(str::to_owned)
    } else {
        None
    };
    if cursor.take("(")? {
        cursor.until(")")?;
    }
    Ok(Call { name: name.to_owned(), arguments, returns_at, result, errno })
}

fn parse_list(cursor: &mut Cursor<'_>, close: &str) -> Result<Vec<Expression>, Stop> {
    let mut items = Vec::new();
    while !cursor.take(close)? {
        items.push(parse_expression(cursor)?);
        if !cursor.take(",")? {
            cursor.require(close)?;
            break;
        }
    }
    Ok(items)
}

fn parse_expression(cursor: &mut Cursor<'_>) -> Result<Expression, Stop> {
    let first = parse_term(cursor)?;
    if !cursor.take("|")? {
        return Ok(first);
    }
    let mut bits = vec![first];
    loop {
        bits.push(parse_term(cursor)?);
        if !cursor.take("|")? {
            return Ok(Expression::Bits(bits));
        }
    }
}

fn parse_term(cursor: &mut Cursor<'_>) -> Result<Expression, Stop> {
    cursor.skip()?;
    cursor.enter()?;
    let term = parse_value(cursor)?;
    cursor.leave();
    Ok(term)
}

fn parse_value(cursor: &mut Cursor<'_>) -> Result<Expression, Stop> {
    if cursor.take("...")? {
        return Ok(Expression::Ellipsis);
    }
    match cursor.peek() {
        Some('"') => {
            cursor.require("\"")?;
            let text = cursor.until("\"")?.to_owned();
            cursor.take("...")?;
            Ok(Expression::Text(text))
        }
        Some('[') => {
            cursor.require("[")?;
            parse_list(cursor, "]").map(Expression::Array)
        }
        Some('{') => {
            cursor.require("{")?;
            parse_record(cursor)
        }
        Some('-') => {
            cursor.require("-")?;
            Ok(Expression::Integer(-cursor.integer::<i64>("an integer")?))
        }
        Some(c) if c.is_ascii_digit() => cursor.integer("an integer").map(Expression::Integer),
        _ => parse_symbol(cursor),
    }
}

/// Parses a symbol, or a macro such as `htons(8080)`, which counts as its argument.
fn parse_symbol(cursor: &mut Cursor<'_>) -> Result<Expression, Stop> {
    let Some(name) = cursor.word()? else { return cursor.error("an argument") };
    if cursor.take("(")? {
        let arguments = parse_list(cursor, ")")?;
        return Ok(arguments.into_iter().next().unwrap_or(Expression::Ellipsis));
    }
    Ok(Expression::Symbol(name.to_owned()))
}

fn parse_record(cursor: &mut Cursor<'_>) -> Result<Expression, Stop> {
    let mut members = Vec::new();
    while !cursor.take("}")? {
        members.push(parse_member(cursor)?);
        if !cursor.take(",")? {
            cursor.require("}")?;
            break;
        }
    }
    Ok(Expression::Record(members))
}

/// Parses `fd=3`, `msg_iov(1)=[…]`, or a value without a name.
fn parse_member(cursor: &mut Cursor<'_>) -> Result<(String, Expression), Stop> {
    let mut ahead = *cursor;
    if let Some(name) = ahead.word()? {
        if ahead.take("(")? {
            ahead.until(")")?;
        }
        if ahead.take("=")? {
            *cursor = ahead;
            return Ok((name.to_owned(), parse_expression(cursor)?));
        }
    }
    Ok((String::new(), parse_expression(cursor)?))
}
