//! Choices of an operating system that the RFCs leave open, and that a script for it demands.

use crate::connection::Connection;
use crate::script::SegmentSpec;
use crate::settings::{Settings, System};
use hopline_core::Length;
use hopline_transport::tcp::State;
use hopline_wire::tcp::{Flags, Segment};

/// Returns the choice that a script demands with the segment `spec`, where the host has sent `actual`, with the script's
/// numbers, or nothing.
pub(crate) fn own_choice(
    settings: &Settings,
    connection: &Connection,
    spec: &SegmentSpec,
    actual: Option<&Segment<Length>>,
) -> Option<&'static str> {
    if settings.system != System::FreeBsd {
        return None;
    }
    match actual {
        Some(actual) if repeats_fin(connection, spec, actual) => {
            Some("FreeBSD's choice to acknowledge a FIN with a FIN in CLOSING")
        }
        None if challenges_reset_in_buffer(connection, spec) => {
            Some("FreeBSD's receive window beyond what the field announces")
        }
        _ => None,
    }
}

/// Returns whether FreeBSD would send its FIN again in CLOSING, to acknowledge the peer's. RFC 9293 §3.10.7.4 wants an
/// acknowledgment, and leaves open in which segment.
fn repeats_fin(connection: &Connection, spec: &SegmentSpec, actual: &Segment<Length>) -> bool {
    connection.endpoint.state() == State::Closing
        && spec.flags == Flags::FIN | Flags::ACK
        && actual.flags == Flags::ACK
        && spec.len == 0
        && actual.payload == Length(0)
        && spec.ack == Some(actual.ack.0)
        && actual.seq.0 == spec.seq + 1
}

/// Returns whether FreeBSD would challenge a reset that lies beyond the announced window, and within a receive buffer rounded
/// up to whole segments. Without window scaling, the field cannot announce such a buffer (RFC 7323 §2.3).
fn challenges_reset_in_buffer(connection: &Connection, spec: &SegmentSpec) -> bool {
    let Some((seq, flags)) = connection.last_received else { return false };
    let info = connection.endpoint.info();
    let next = connection.endpoint.next_expected();
    let beyond = i64::from(seq.distance_from(next)) - 0xffff;
    flags.contains(Flags::RST)
        && info.window_scales.is_none()
        && spec.flags == Flags::ACK
        && spec.len == 0
        && (0..i64::from(info.advertised_mss)).contains(&beyond)
}
