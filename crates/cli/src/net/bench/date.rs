//! Dates.

/// Returns the time `seconds` after 1970 as `Sun, 22 Nov 2026 05:50:30 GMT`.
pub(super) fn date(seconds: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec", "Jan", "Feb"];
    let (days, time) = (seconds / 86_400, seconds % 86_400);
    // A year that begins in March has its leap day at the end. Days are counted from 1 March of year 0, in periods of 400
    // years.
    let since_march = days + 719_468;
    let (period, day) = (since_march / 146_097, since_march % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day_of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day_of_month = day_of_year - (153 * month + 2) / 5 + 1;
    let calendar_year = period * 400 + year + u64::from(month >= 10);
    let (weekday, month) = (DAYS[(days % 7) as usize], MONTHS[month as usize]);
    let (hour, minute, second) = (time / 3600, time / 60 % 60, time % 60);
    format!("{weekday}, {day_of_month:02} {month} {calendar_year} {hour:02}:{minute:02}:{second:02} GMT")
}

#[cfg(test)]
mod tests {
    use super::date;

    #[test]
    fn dates_match_the_calendar() {
        for (seconds, expected) in [
            (0, "Thu, 01 Jan 1970 00:00:00 GMT"),
            (951_782_400, "Tue, 29 Feb 2000 00:00:00 GMT"),
            (1_795_326_630, "Sun, 22 Nov 2026 05:50:30 GMT"),
            (4_107_542_399, "Sun, 28 Feb 2100 23:59:59 GMT"),
            (4_107_542_400, "Mon, 01 Mar 2100 00:00:00 GMT"),
        ] {
            assert_eq!(date(seconds), expected);
        }
    }
}
