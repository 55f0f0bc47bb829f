//! Parameters and statistics of the kernel's TCP.

use crate::error::Error;
use crate::sys;
use rustix::io::Errno;
use rustix::net::sockopt;
use std::fs;
use std::net::TcpStream;
use std::time::Duration;

/// Kernel statistics of a connection (`TCP_INFO`).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Info {
    /// Smoothed round-trip time.
    pub srtt: Duration,
    /// Mean deviation of the round-trip time.
    pub rtt_var: Duration,
    /// Congestion window, in segments.
    pub cwnd: u32,
    /// Maximum segment size, in bytes.
    pub mss: u32,
    /// Segments retransmitted so far.
    pub retransmitted: u32,
    /// Advertised window of the peer, in bytes.
    pub peer_window: u32,
    /// Path MTU, in bytes.
    pub path_mtu: u32,
}

/// Returns the kernel's statistics of `connection`.
///
/// # Errors
/// If the system fails.
pub fn info(connection: &TcpStream) -> Result<Info, Error> {
    let info = sys::tcp_info(connection).map_err(|e| Error::system("reading TCP_INFO", e))?;
    Ok(Info {
        srtt: Duration::from_micros(info.tcpi_rtt.into()),
        rtt_var: Duration::from_micros(info.tcpi_rttvar.into()),
        cwnd: info.tcpi_snd_cwnd,
        mss: info.tcpi_snd_mss,
        retransmitted: info.tcpi_total_retrans,
        peer_window: info.tcpi_snd_wnd,
        path_mtu: info.tcpi_pmtu,
    })
}

/// Returns the time since the peer's last segment, if the peer owes an answer: to a retransmission, or to more than one
/// zero-window or keep-alive probe. `None` if it answers. A window that stays closed is an answer.
///
/// # Errors
/// If the system fails.
pub fn unanswered_time(connection: &TcpStream) -> Result<Option<Duration>, Error> {
    let info = sys::tcp_info(connection).map_err(|e| Error::system("reading TCP_INFO", e))?;
    // The kernel resets both at each acknowledgement.
    let asks = info.tcpi_retransmits > 0 || info.tcpi_probes > 1;
    let heard = info.tcpi_last_ack_recv.min(info.tcpi_last_data_recv);
    Ok(asks.then(|| Duration::from_millis(heard.into())))
}

/// Sets the congestion control algorithm of a socket, such as `cubic`.
///
/// # Errors
/// [`Error::NoSuchCongestionControl`] if this kernel does not have it, [`Error::ForbiddenCongestionControl`] if this process may not use it.
pub fn set_congestion_control(socket: &socket2::Socket, name: &str) -> Result<(), Error> {
    sockopt::set_tcp_congestion(socket, name).map_err(|e| match e {
        Errno::NOENT => {
            Error::NoSuchCongestionControl { name: name.into(), offered: offered_congestion_controls() }
        }
        Errno::PERM => Error::ForbiddenCongestionControl {
            name: name.into(),
            allowed: listed("tcp_allowed_congestion_control"),
        },
        _ => Error::system(format!("setting the congestion control {name}"), e),
    })
}

/// Returns the algorithms that this kernel has loaded, separated by spaces. Setting another one by name may load it.
#[must_use]
pub fn offered_congestion_controls() -> String {
    listed("tcp_available_congestion_control")
}

fn listed(parameter: &str) -> String {
    let path = format!("/proc/sys/net/ipv4/{parameter}");
    fs::read_to_string(path).map_or_else(|_| "(it does not say)".into(), |text| text.trim().into())
}

/// Returns the congestion control algorithm of a socket: the system's default, unless it was set.
///
/// # Errors
/// If the system fails.
pub fn congestion_control(socket: &socket2::Socket) -> Result<String, Error> {
    sockopt::tcp_congestion(socket).map_err(|e| Error::system("reading the congestion control", e))
}
