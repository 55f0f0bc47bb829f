use blake3::Hasher;
use std::io::Read;

/// Feeds at most `most` bytes of `reader` to `hasher`; how many there were.
pub(super) fn hash_into(hasher: &mut Hasher, reader: &mut impl Read, most: u64) -> std::io::Result<u64> {
    let mut buffer = vec![0; 1 << 16];
    let mut reader = reader.take(most);
    let mut total = 0;
    loop {
        match reader.read(&mut buffer) {
            Ok(0) => return Ok(total),
            Ok(read) => {
                hasher.update(&buffer[..read]);
                total += read as u64;
            }
            Err(e) if e.kind() == std::io::ErrorKind::Interrupted => {}
            Err(e) => return Err(e),
        }
    }
}
