//! AccECN option (RFC 9768 §3.2.3): byte counters of the data that arrived with each ECN codepoint.
//!
//! ```text
//! +------------+----------+--------------+--------------+--------------+
//! | Kind 172   |  Length  |  EE0B (24)   |  ECEB (24)   |  EE1B (24)   |  order 0
//! +------------+----------+--------------+--------------+--------------+
//! | Kind 174   |  Length  |  EE1B (24)   |  ECEB (24)   |  EE0B (24)   |  order 1
//! +------------+----------+--------------+--------------+--------------+
//! ```
//!
//! Fields may be missing at the end.

/// Kind of the option in order 0 (RFC 9768 §7).
pub(super) const KIND_ORDER_0: u8 = 172;
/// Kind of the option in order 1.
pub(super) const KIND_ORDER_1: u8 = 174;
/// Length of kind and length, bytes.
const HEADER_LEN: usize = 2;
/// Length of a field, bytes.
const FIELD_LEN: usize = 3;
/// Number of fields.
const FIELDS: usize = 3;

/// Order of the fields of an AccECN option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum AccEcnOrder {
    /// EE0B, ECEB, EE1B: kind 172.
    Zero,
    /// EE1B, ECEB, EE0B: kind 174.
    One,
}

/// Byte counters of a receiver, of which the option carries the 24 least significant bits.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct AccEcnCounters {
    /// Payload bytes that arrived as ECT(0): `r.e0b`.
    pub e0b: u32,
    /// Payload bytes that arrived as CE: `r.ceb`.
    pub ceb: u32,
    /// Payload bytes that arrived as ECT(1): `r.e1b`.
    pub e1b: u32,
}

/// AccECN option (RFC 9768 §3.2.3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct AccEcnOption {
    order: AccEcnOrder,
    /// Number of fields.
    count: u8,
    /// Fields in the order of the option; absent ones are zero.
    fields: [[u8; FIELD_LEN]; FIELDS],
}

impl AccEcnOption {
    /// Largest length of the option, bytes.
    pub const MAX_LEN: usize = HEADER_LEN + FIELD_LEN * FIELDS;

    /// Creates an option with the first `count` fields of the order, at most three.
    #[must_use]
    pub const fn new(order: AccEcnOrder, counters: AccEcnCounters, count: u8) -> Self {
        let AccEcnCounters { e0b, ceb, e1b } = counters;
        let values = match order {
            AccEcnOrder::Zero => [e0b, ceb, e1b],
            AccEcnOrder::One => [e1b, ceb, e0b],
        };
        let count = if count as usize > FIELDS { FIELDS as u8 } else { count };
        let mut fields = [[0; FIELD_LEN]; FIELDS];
        let mut i = 0;
        while i < count as usize {
            let [_, a, b, c] = values[i].to_be_bytes();
            fields[i] = [a, b, c];
            i += 1;
        }
        Self { order, count, fields }
    }

    /// Returns the order of the fields.
    #[must_use]
    pub const fn order(&self) -> AccEcnOrder {
        self.order
    }

    /// Returns the field EE0B: the 24 least significant bits of the counter of ECT(0) bytes.
    #[must_use]
    pub fn e0b(&self) -> Option<u32> {
        self.field(if self.order == AccEcnOrder::Zero { 0 } else { 2 })
    }

    /// Returns the field ECEB: the 24 least significant bits of the counter of CE bytes.
    #[must_use]
    pub fn ceb(&self) -> Option<u32> {
        self.field(1)
    }

    /// Returns the field EE1B: the 24 least significant bits of the counter of ECT(1) bytes.
    #[must_use]
    pub fn e1b(&self) -> Option<u32> {
        self.field(if self.order == AccEcnOrder::One { 0 } else { 2 })
    }

    /// Returns the length without padding, bytes.
    #[must_use]
    pub const fn len(&self) -> usize {
        HEADER_LEN + FIELD_LEN * self.count as usize
    }

    /// Returns whether the option has no fields, as where it only tests the path.
    #[must_use]
    pub const fn is_empty(&self) -> bool {
        self.count == 0
    }

    fn field(&self, at: u8) -> Option<u32> {
        let [a, b, c] = self.fields[usize::from(at)];
        (at < self.count).then(|| u32::from_be_bytes([0, a, b, c]))
    }

    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        let kind = match self.order {
            AccEcnOrder::Zero => KIND_ORDER_0,
            AccEcnOrder::One => KIND_ORDER_1,
        };
        out.extend([kind, self.len() as u8]);
        self.fields[..usize::from(self.count)].iter().for_each(|field| out.extend(field));
    }

    /// Parses the fields behind kind and length. Whole fields count, and the rest is padding (§3.2.3).
    pub(super) fn parse(order: AccEcnOrder, data: &[u8]) -> Self {
        let mut fields = [[0; FIELD_LEN]; FIELDS];
        let mut count = 0;
        for (field, bytes) in fields.iter_mut().zip(data.chunks_exact(FIELD_LEN)) {
            field.copy_from_slice(bytes);
            count += 1;
        }
        Self { order, count, fields }
    }
}
