//! Secrets, which stand in files of their own.

use super::super::keys::{KindKey, proxy};
use super::super::values;
use hopline_scenario::schema::Section;
use hopline_scenario::source::{Origin, Problem};
use std::fs;
use std::io::Read;
use std::path::Path;

/// More than any line of secrets has.
const MOST: u64 = 4096;

/// The `N` bytes in the file that `key_file` names.
pub(super) fn key<const N: usize>(kind: KindKey, section: &Section<'_>) -> Result<[u8; N], Problem> {
    let name = proxy::KEY_FILE.name;
    let path = section
        .word(name)
        .ok_or_else(|| values::missing(section, name, kind.word(), "\"/etc/hopline/link.key\""))?;
    in_file(path, section.origin_of(name))
}

/// The `N` bytes that a file has as hexadecimal digits.
pub(super) fn in_file<const N: usize>(path: &str, origin: &Origin) -> Result<[u8; N], Problem> {
    let line = first_line(path, origin)?;
    let digits = line.as_bytes();
    let bytes: Option<Vec<u8>> = digits.chunks(2).map(byte).collect();
    let made = format!("head -c {N} /dev/urandom | od -An -v -tx1 | tr -d ' \\n' > {path}");
    bytes.filter(|_| digits.len() == 2 * N).and_then(|bytes| bytes.try_into().ok()).ok_or_else(|| {
        Problem::new(format!("{path}: not {} hexadecimal digits", 2 * N))
            .at(origin)
            .help(format!("make one: {made}"))
    })
}

/// The first line of a file, without blanks around it.
pub(super) fn first_line(path: &str, origin: &Origin) -> Result<String, Problem> {
    let unreadable = |error| Problem::new(format!("{path}: {error}")).at(origin);
    let mut text = String::new();
    let file = fs::File::open(Path::new(path)).map_err(unreadable)?;
    file.take(MOST).read_to_string(&mut text).map_err(unreadable)?;
    Ok(text.lines().next().unwrap_or_default().trim().to_owned())
}

fn byte(pair: &[u8]) -> Option<u8> {
    let digit = |at: usize| char::from(*pair.get(at)?).to_digit(16);
    Some((digit(0)? << 4 | digit(1)?) as u8)
}
