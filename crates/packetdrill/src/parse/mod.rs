//! Parser of the language of packetdrill, for what concerns TCP.
//!
//! A script that needs another protocol ends the parse with [`Stop::NotApplicable`], since such a script cannot be run in
//! parts.

mod call;
mod conditional;
mod cursor;
mod error;
mod icmp;
mod segment;

use crate::script::{Action, Event, EventTime, Script, ScriptOption};
use cursor::Cursor;
pub use error::{ParseError, Stop};
use hopline_core::Duration;

impl Script {
    /// Parses a script.
    ///
    /// # Errors
    /// A syntax error, or a statement that cannot apply to a TCP endpoint in virtual time.
    pub fn parse(text: &str) -> Result<Self, Stop> {
        Self::parse_standard(&conditional::without_other_systems(text)).map_err(|stop| match stop {
            Stop::Error(error) => Stop::Error(error.at_character_of(text)),
            other => other,
        })
    }

    fn parse_standard(text: &str) -> Result<Self, Stop> {
        let mut cursor = Cursor::new(text);
        let options = parse_options(&mut cursor)?;
        let mut events = Vec::new();
        cursor.skip()?;
        if cursor.peek() == Some('`') {
            let line = cursor.line();
            events.push(Event {
                line,
                time: EventTime::Absolute(Duration::ZERO),
                action: parse_command(&mut cursor)?,
            });
        }
        loop {
            cursor.skip()?;
            match cursor.peek() {
                None => break,
                // The final command cleans up the machine of the test.
                Some('`') => {
                    parse_command(&mut cursor)?;
                }
                Some(_) => events.push(parse_event(&mut cursor)?),
            }
        }
        Ok(Self { options, events })
    }
}

fn parse_options(cursor: &mut Cursor<'_>) -> Result<Vec<ScriptOption>, Stop> {
    let mut options = Vec::new();
    while cursor.take("--")? {
        let line = cursor.line();
        let name = cursor.take_while(|c| !c.is_whitespace() && c != '=').to_owned();
        let value = if cursor.starts_with("=") {
            cursor.require("=")?;
            cursor.take_while(|c| !c.is_whitespace()).trim_matches('"').to_owned()
        } else {
            String::new()
        };
        options.push(ScriptOption { line, name, value });
    }
    Ok(options)
}

fn parse_event(cursor: &mut Cursor<'_>) -> Result<Event, Stop> {
    let line = cursor.line();
    cursor.skip()?;
    let start = *cursor;
    let time = parse_time(cursor)?;
    let returns_at = if cursor.take("...")? { Some(cursor.seconds()?) } else { None };
    cursor.skip()?;
    let action = match cursor.peek() {
        Some('<') => {
            cursor.require("<")?;
            if cursor.take_word("icmp")? {
                Action::Icmp(icmp::parse(cursor)?)
            } else {
                Action::Inbound(segment::parse(cursor)?)
            }
        }
        Some('>') => {
            cursor.require(">")?;
            Action::Outbound(segment::parse(cursor)?)
        }
        Some('`') => parse_command(cursor)?,
        Some('%') => {
            cursor.require("%{")?;
            Action::Code(cursor.until("}%")?.to_owned())
        }
        _ => Action::Call(call::parse(cursor, returns_at)?),
    };
    let is_exact = matches!(time, EventTime::Absolute(_) | EventTime::Relative(_));
    if !is_exact && !matches!(action, Action::Outbound(_)) {
        return start.error("one time: `*` and `~` are for outbound segments");
    }
    Ok(Event { line, time, action })
}

fn parse_time(cursor: &mut Cursor<'_>) -> Result<EventTime, Stop> {
    if cursor.take("*")? {
        return Ok(EventTime::Any);
    }
    let is_relative = cursor.take("+")?;
    let from = cursor.seconds()?;
    if !cursor.take("~")? {
        return Ok(if is_relative { EventTime::Relative(from) } else { EventTime::Absolute(from) });
    }
    if is_relative {
        cursor.take("+")?;
        return Ok(EventTime::RelativeRange(from, cursor.seconds()?));
    }
    Ok(EventTime::AbsoluteRange(from, cursor.seconds()?))
}

fn parse_command(cursor: &mut Cursor<'_>) -> Result<Action, Stop> {
    cursor.require("`")?;
    Ok(Action::Command(cursor.until("`")?.to_owned()))
}
