//! Converts the state and counters of a connection to the C struct `tpa_info`.

use crate::abi::{TPA_FINGERPRINT_LEN, tpa_info, tpa_protocol, tpa_state};
use crate::transport::Info;
use hopline_core::Duration;
use hopline_linux::tcp;
use hopline_streams::{tpa, wide};
use libc::{c_char, c_uint};

/// Returns the state and counters of a connection. `size`: number of bytes that the caller copies; it is put into the field
/// `size`.
pub(crate) fn connection_info(info: &Info, size: usize) -> tpa_info {
    let converted = match info {
        Info::Wide(info) => of_wide(info),
        Info::Tpa(info) => of_tpa(info),
        Info::Tcp(info) => of_tcp(info),
    };
    tpa_info { size, ..converted }
}

fn of_wide(info: &wide::Info) -> tpa_info {
    tpa_info {
        state: state(info.state) as c_uint,
        mss: info.mss,
        srtt_us: info.srtt.map_or(0, micros),
        // The cast truncates. Rates are far below 2⁶⁴.
        rate_bps: info.rate.unwrap_or(0.0) as u64,
        window: info.window,
        in_flight: info.in_flight,
        unacknowledged: info.unacknowledged,
        bytes_sent: info.stats.bytes_sent,
        bytes_acked: info.stats.bytes_acked,
        bytes_received: info.stats.bytes_received,
        packets_sent: info.stats.segments_sent,
        retransmissions: info.stats.retransmissions,
        packets_received: info.stats.packets_received,
        lost: info.stats.lost,
        late: info.stats.spurious_losses,
        timeouts: info.stats.timeouts,
        reductions: info.stats.reductions,
        frozen_us: micros(info.stats.frozen),
        rejected: info.rejections.total(),
        peer_fingerprint: fingerprint(info),
        ..empty(tpa_protocol::TPA_PROTOCOL_WIDE)
    }
}

/// Converts the counters of TPA. TPA declares a segment lost only when its timer expires, so `lost` equals `timeouts`.
fn of_tpa(info: &tpa::Info) -> tpa_info {
    let stats = &info.stats;
    tpa_info {
        state: state(info.state) as c_uint,
        mss: info.mss,
        srtt_us: info.srtt.map_or(0, micros),
        window: u64::from(info.cwnd) * u64::from(info.mss),
        unacknowledged: info.unacknowledged,
        bytes_sent: stats.bytes_sent,
        bytes_acked: stats.bytes_acked,
        bytes_received: stats.bytes_received,
        packets_sent: stats.segments_sent,
        retransmissions: stats.retransmissions,
        packets_received: stats.segments_received,
        lost: stats.timeouts,
        timeouts: stats.timeouts,
        reductions: stats.congested_periods,
        rejected: stats.drops.total(),
        ..empty(tpa_protocol::TPA_PROTOCOL_TPA)
    }
}

fn of_tcp(info: &tcp::Info) -> tpa_info {
    tpa_info {
        state: tpa_state::TPA_STATE_OPEN as c_uint,
        mss: info.mss,
        srtt_us: u64::try_from(info.srtt.as_micros()).unwrap_or(u64::MAX),
        window: u64::from(info.cwnd) * u64::from(info.mss),
        retransmissions: info.retransmitted.into(),
        ..empty(tpa_protocol::TPA_PROTOCOL_TCP)
    }
}

/// Returns a struct in which only the protocol is set.
fn empty(protocol: tpa_protocol) -> tpa_info {
    tpa_info {
        size: 0,
        state: 0,
        mss: 0,
        srtt_us: 0,
        rate_bps: 0,
        window: 0,
        in_flight: 0,
        unacknowledged: 0,
        bytes_sent: 0,
        bytes_acked: 0,
        bytes_received: 0,
        packets_sent: 0,
        retransmissions: 0,
        packets_received: 0,
        lost: 0,
        late: 0,
        timeouts: 0,
        reductions: 0,
        frozen_us: 0,
        rejected: 0,
        peer_fingerprint: [0; TPA_FINGERPRINT_LEN],
        protocol: protocol as c_uint,
        reserved: 0,
    }
}

fn micros(duration: Duration) -> u64 {
    duration.as_nanos() / 1000
}

fn state(state: wide::State) -> tpa_state {
    use wide::State;
    match state {
        State::SynSent | State::SynReceived => tpa_state::TPA_STATE_OPENING,
        State::Established | State::CloseWait => tpa_state::TPA_STATE_OPEN,
        State::FinWait1 | State::FinWait2 | State::LastAck | State::Closing | State::TimeWait => {
            tpa_state::TPA_STATE_CLOSING
        }
        State::Closed | State::Listen => tpa_state::TPA_STATE_CLOSED,
    }
}

/// Returns the fingerprint of the peer's key as a C string; empty without a key.
fn fingerprint(info: &wide::Info) -> [c_char; TPA_FINGERPRINT_LEN] {
    let mut text = [0; TPA_FINGERPRINT_LEN];
    if let Some(fingerprint) = info.peer.fingerprint {
        for (place, byte) in
            text.iter_mut().zip(fingerprint.to_string().bytes().take(TPA_FINGERPRINT_LEN - 1))
        {
            *place = byte as c_char;
        }
    }
    text
}
