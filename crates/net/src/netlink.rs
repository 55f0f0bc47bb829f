//! Attributes of netlink messages (netlink(7)).

/// Bytes of an attribute before its value.
pub(crate) const ATTRIBUTE_HEADER: usize = 4;
/// Longest value of an attribute, in bytes: its length has 16 bits.
pub(crate) const LONGEST_VALUE: usize = u16::MAX as usize - ATTRIBUTE_HEADER;

/// Length, kind and value, filled up to a multiple of four.
pub(crate) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::with_capacity((ATTRIBUTE_HEADER + value.len()).next_multiple_of(4));
    put_attribute(&mut bytes, kind, value);
    bytes
}

/// Appends it to what is a multiple of four long. `value` is no longer than [`LONGEST_VALUE`].
pub(crate) fn put_attribute(out: &mut Vec<u8>, kind: u16, value: &[u8]) {
    debug_assert!(value.len() <= LONGEST_VALUE);
    out.extend(((ATTRIBUTE_HEADER + value.len()) as u16).to_ne_bytes());
    out.extend(kind.to_ne_bytes());
    out.extend(value);
    out.resize(out.len().next_multiple_of(4), 0);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn attributes_are_filled_up_but_say_how_long_they_are() {
        assert_eq!(attribute(3, b"ab\0"), [&7u16.to_ne_bytes()[..], &3u16.to_ne_bytes(), b"ab\0\0"].concat());
        assert_eq!(attribute(40, &1u32.to_ne_bytes()).len(), 8);
        assert_eq!(attribute(1, &[7; LONGEST_VALUE])[..2], u16::MAX.to_ne_bytes());
    }
}
