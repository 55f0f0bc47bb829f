//! TCP-DOOR option (Wang and Zhang, MobiHoc 2002): the order in which packets were sent.
//!
//! The paper gives the fields and their widths but no kind. Here they share one option under an experimental kind (RFC 4727,
//! RFC 6994), with an unregistered experiment identifier of hopline:
//!
//! ```text
//!  0                   1                   2                   3
//!  0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1 2 3 4 5 6 7 8 9 0 1
//! +---------------+---------------+-------------------------------+
//! |   Kind 253    |    Length     |          ExID 0xD002          |
//! +-+-------+-+-+-+---------------+-------------------------------+
//! |N|   0   |O|T|A|  ADSN, if A   |          TPSN, if T           |
//! +-+-------+-+-+-+---------------+-------------------------------+
//! ```
//!
//! With N it is an offer, on a SYN, and ends behind the flags: the sender supports ADSN (A), TPSN (T), feedback (O). Without
//! N it is a report: A and T announce the fields that follow, O means that data arrived out of order.

/// Kind of the option: an experiment (RFC 4727 §2.2).
pub(super) const EXPERIMENTAL_KIND: u8 = 253;
/// Experiment identifier (RFC 6994 §3).
const EXID: [u8; 2] = [0xd0, 0x02];

const OFFER: u8 = 0x80;
const OUT_OF_ORDER: u8 = 0x04;
const TPSN: u8 = 0x02;
const ADSN: u8 = 0x01;

/// Kind, length and identifier.
const HEADER_LEN: usize = 4;
/// Bytes that the option takes beside other options, padding included, whatever its content.
pub const DOOR_LEN: usize = 8;

/// TCP-DOOR option.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DoorOption {
    /// On a SYN: features that the sender supports; on a SYN-ACK: those of them that are enabled.
    Offer(DoorFeatures),
    /// Ordering information, on any other segment.
    Report(DoorReport),
    /// An option with hopline's identifier that is neither. Emitted, it has no flags.
    Malformed,
}

/// DOOR features of one end, or those that both ends have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct DoorFeatures {
    /// ADSN on duplicate acknowledgments.
    pub adsn: bool,
    /// TPSN on data packets.
    pub tpsn: bool,
    /// Feedback in acknowledgments about data that arrived out of order.
    pub feedback: bool,
}

/// Ordering information of a segment.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Default)]
pub struct DoorReport {
    /// ACK duplication sequence number: earlier acknowledgments with this acknowledgment number, modulo 256.
    pub adsn: Option<u8>,
    /// TCP packet sequence number: earlier data packets, retransmissions included, modulo 2¹⁶.
    pub tpsn: Option<u16>,
    /// `true` if data arrived out of order.
    pub out_of_order: bool,
}

impl DoorOption {
    /// Length without padding, in bytes: 4 to 8.
    #[must_use]
    #[expect(clippy::len_without_is_empty, reason = "never empty")]
    pub const fn len(&self) -> usize {
        match self {
            Self::Malformed => HEADER_LEN,
            Self::Offer(_) => HEADER_LEN + 1,
            Self::Report(r) => HEADER_LEN + 1 + r.adsn.is_some() as usize + 2 * r.tpsn.is_some() as usize,
        }
    }

    /// Appends the option, without padding.
    pub(super) fn emit(&self, out: &mut Vec<u8>) {
        out.extend([EXPERIMENTAL_KIND, self.len() as u8]);
        out.extend(EXID);
        match self {
            Self::Malformed => {}
            Self::Offer(f) => out.push(OFFER | flags(f.feedback, f.tpsn, f.adsn)),
            Self::Report(r) => {
                out.push(flags(r.out_of_order, r.tpsn.is_some(), r.adsn.is_some()));
                out.extend(r.adsn);
                out.extend(r.tpsn.iter().flat_map(|n| n.to_be_bytes()));
            }
        }
    }

    /// Parses the data behind kind and length. `None`: another experiment.
    pub(super) fn parse(data: &[u8]) -> Option<Self> {
        let fields = data.strip_prefix(&EXID)?;
        Some(Self::parse_fields(fields).unwrap_or(Self::Malformed))
    }

    fn parse_fields(data: &[u8]) -> Option<Self> {
        let (&flags, rest) = data.split_first()?;
        let has = |bit| flags & bit != 0;
        if flags & !(OFFER | OUT_OF_ORDER | TPSN | ADSN) != 0 {
            return None;
        }
        match (has(OFFER), has(TPSN), has(ADSN), rest) {
            (true, tpsn, adsn, []) => {
                Some(Self::Offer(DoorFeatures { adsn, tpsn, feedback: has(OUT_OF_ORDER) }))
            }
            (false, false, false, []) => Some(report(None, None, has(OUT_OF_ORDER))),
            (false, false, true, &[adsn]) => Some(report(Some(adsn), None, has(OUT_OF_ORDER))),
            (false, true, false, &[a, b]) => Some(report(None, Some([a, b]), has(OUT_OF_ORDER))),
            (false, true, true, &[adsn, a, b]) => Some(report(Some(adsn), Some([a, b]), has(OUT_OF_ORDER))),
            _ => None,
        }
    }
}

fn report(adsn: Option<u8>, tpsn: Option<[u8; 2]>, out_of_order: bool) -> DoorOption {
    DoorOption::Report(DoorReport { adsn, tpsn: tpsn.map(u16::from_be_bytes), out_of_order })
}

fn flags(out_of_order: bool, tpsn: bool, adsn: bool) -> u8 {
    OUT_OF_ORDER * u8::from(out_of_order) + TPSN * u8::from(tpsn) + ADSN * u8::from(adsn)
}
