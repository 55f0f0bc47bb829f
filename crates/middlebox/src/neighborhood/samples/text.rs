//! Readings in text form.

use super::{NoReading, Reading};

/// Maximum bytes of a line.
pub(super) const MAX_LINE: usize = 128;

/// Parses the reading in the last complete line.
pub(super) fn last(text: &[u8]) -> Result<Reading, NoReading> {
    let end = text.iter().rposition(|&byte| byte == b'\n').ok_or(NoReading::Nothing)?;
    let whole = &text[..end];
    let start = whole.iter().rposition(|&byte| byte == b'\n').map_or(0, |at| at + 1);
    line(&whole[start..])
}

/// Parses `time busy received transmitted [channel]`.
pub(super) fn line(line: &[u8]) -> Result<Reading, NoReading> {
    let mut numbers = [0; 5];
    let mut count = 0;
    let text = str::from_utf8(line).map_err(|_| NoReading::Malformed)?;
    for word in text.split_ascii_whitespace() {
        let place = numbers.get_mut(count).ok_or(NoReading::Malformed)?;
        *place = word.parse().map_err(|_| NoReading::Malformed)?;
        count += 1;
    }
    let [time_ms, busy_ms, receiving_ms, transmitting_ms, channel] = numbers;
    let channel = match count {
        4 => None,
        5 => Some(u32::try_from(channel).map_err(|_| NoReading::Malformed)?),
        _ => return Err(NoReading::Malformed),
    };
    Ok(Reading { channel, time_ms, busy_ms, receiving_ms, transmitting_ms })
}
