//! XML of movement files, piece by piece, with the place of each.

use super::text_error::{TextError, shorten};
use crate::separated::byte_order_mark_len;
use core::fmt::Display;
use core::ops::Range;
use quick_xml::escape::unescape;
use quick_xml::events::{BytesStart, Event};
use quick_xml::reader::Reader;

/// A document that is being read.
pub(super) struct Xml<'a> {
    text: &'a str,
    reader: Reader<&'a [u8]>,
    /// Bytes of the text before what the reader reads.
    mark: usize,
    /// Name of such a file.
    kind: &'static str,
}

impl<'a> Xml<'a> {
    /// Creates a document that should be `kind`, such as "SUMO's FCD output".
    pub(super) fn new(text: &'a str, kind: &'static str) -> Self {
        let mark = byte_order_mark_len(text);
        let mut reader = Reader::from_str(&text[mark..]);
        reader.config_mut().trim_markup_names_in_closing_tags = true;
        Self { text, reader, mark, kind }
    }

    /// Returns the next piece, and the bytes that it takes. A document type is refused: entities could make a
    /// short text long.
    pub(super) fn next(&mut self) -> Result<(Event<'a>, Range<usize>), TextError> {
        let begin = self.offset(self.reader.buffer_position());
        let event = self.reader.read_event().map_err(|error| {
            let at = self.offset(self.reader.error_position()).min(self.text.len());
            let message = format!("invalid XML: {}", shorten(&error.to_string()));
            TextError::new(at..at, message, format!("expected {}", self.kind))
        })?;
        let range = begin..self.offset(self.reader.buffer_position());
        if let Event::DocType(_) = event {
            let help = format!("remove it: {} has none, and entities are not resolved", self.kind);
            return Err(TextError::new(range, "a document type", help));
        }
        Ok((event, range))
    }

    /// quick-xml counts bytes of the text, which is in memory.
    fn offset(&self, position: u64) -> usize {
        self.mark + usize::try_from(position).expect("a text in memory is addressable")
    }
}

/// A value in the text.
pub(super) struct Attribute {
    /// Without entities and blanks around it.
    pub(super) value: String,
    /// The bytes of the text that it takes, as written.
    pub(super) range: Range<usize>,
}

/// Returns the attributes with those names of a tag of `text` that takes `range`, resolved. Further
/// attributes are skipped.
pub(super) fn attributes<const N: usize>(
    text: &str,
    tag: &BytesStart<'_>,
    range: &Range<usize>,
    names: [&str; N],
) -> Result<[Option<Attribute>; N], TextError> {
    let invalid = |error: &dyn Display| {
        let help =
            "attributes are written `name=\"value\"`, and only &amp; &lt; &gt; &quot; &apos; are entities";
        TextError::new(range.clone(), format!("invalid XML: {}", shorten(&error.to_string())), help)
    };
    let mut found = [const { None }; N];
    // Looking for doubles among all takes time for their number squared.
    for attribute in tag.attributes().with_checks(false) {
        let attribute = attribute.map_err(|error| invalid(&error))?;
        let name = attribute.key.into_inner();
        let Some(slot) = names.iter().position(|known| *known == name) else { continue };
        let value = unescape(&attribute.value).map_err(|error| invalid(&error))?.trim().to_owned();
        let range = range_of(text, &attribute.value).unwrap_or_else(|| range.clone());
        if found[slot].is_some() {
            return Err(TextError::new(range, format!("a second `{name}`"), "keep one of the two"));
        }
        found[slot] = Some(Attribute { value, range });
    }
    Ok(found)
}

/// Returns the range of the bytes of `text` that the part `value` takes.
fn range_of(text: &str, value: &str) -> Option<Range<usize>> {
    let start = (value.as_ptr() as usize).checked_sub(text.as_ptr() as usize)?;
    let range = start..start + value.len();
    (text.get(range.clone()) == Some(value)).then_some(range)
}
