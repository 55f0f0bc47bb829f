//! Answers to SYNs for a server to which the proxy cannot connect.

use hopline_linux::Error;
use hopline_linux::sys;
use hopline_wire::icmp::{Unreachable, UnreachableCode};
use socket2::{Domain, Protocol, Socket, Type};
use std::io::{self, ErrorKind};
use std::net::{IpAddr, SocketAddr};

/// Answer to a client in place of a SYN with ACK.
///
/// A SYN that is sent to this machine with the code of a refusal is answered by a rule: by a reset with the sequence numbers of
/// RFC 9293 §3.10.7.1, or by ICMPv6. ICMP for IPv4 is sent from here, as the kernel would send it under the address of the server, and does not.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Refusal {
    /// The server refuses the connection: a reset.
    Reset,
    /// The server does not answer the router before it: ICMP host unreachable (RFC 792), ICMPv6 address unreachable (RFC 4443 §3.1).
    HostUnreachable,
    /// There is no route: ICMP network unreachable, ICMPv6 no route to destination.
    NetworkUnreachable,
    /// A router forbids it: ICMPv6 communication administratively prohibited. Of IPv4 it is [`Refusal::HostUnreachable`] to the socket layer.
    Prohibited,
}

impl Refusal {
    /// All of them.
    pub const ALL: [Self; 4] =
        [Self::Reset, Self::HostUnreachable, Self::NetworkUnreachable, Self::Prohibited];

    /// Lower half of the priority of a SYN that a rule is to answer so. No listener has a port so low.
    #[must_use]
    pub const fn code(self) -> u16 {
        1 + self as u16
    }

    /// Returns the refusal for an onward connection that failed with `error`; `None` if the network said nothing about the server.
    pub(super) fn from_error(error: &io::Error) -> Option<Self> {
        match error.kind() {
            ErrorKind::ConnectionRefused | ErrorKind::ConnectionReset => Some(Self::Reset),
            ErrorKind::HostUnreachable => Some(Self::HostUnreachable),
            ErrorKind::NetworkUnreachable => Some(Self::NetworkUnreachable),
            // Of a route that says so, or of ICMPv6 (RFC 4443 §3.1, codes 1, 5 and 6).
            _ => (error.raw_os_error() == Some(libc::EACCES)).then_some(Self::Prohibited),
        }
    }
}

/// Of linux/icmp.h, which libc lacks.
const SOL_RAW: libc::c_int = 255;
const ICMP_FILTER: libc::c_int = 1;

/// Sends what rules cannot.
#[derive(Debug)]
pub(super) struct Icmp(Socket);

impl Icmp {
    pub(super) fn open() -> Result<Self, Error> {
        let open = || {
            let socket = Socket::new(Domain::IPV4, Type::RAW, Some(Protocol::ICMPV4))?;
            // It receives nothing (raw(7), ICMP_FILTER).
            sys::set_option(&socket, SOL_RAW, ICMP_FILTER, -1)?;
            socket.set_nonblocking(true)?;
            Ok::<_, io::Error>(Self(socket))
        };
        open().map_err(|e| Error::new("opening a raw socket for ICMP", e))
    }

    /// Tells the client of a SYN. Returns whether that is done: a rule must do it otherwise.
    pub(super) fn send(&self, refusal: Refusal, client: IpAddr, syn: &[u8]) -> bool {
        let reason = match refusal {
            Refusal::Reset => return false,
            Refusal::NetworkUnreachable => UnreachableCode::Network,
            Refusal::HostUnreachable | Refusal::Prohibited => UnreachableCode::Host,
        };
        let Ok(message) = Unreachable::for_packet(reason, syn) else { return false };
        let mut bytes = Vec::with_capacity(Unreachable::LEN);
        message.emit(&mut bytes);
        // The client repeats a SYN that has no answer.
        let _ = self.0.send_to(&bytes, &SocketAddr::new(client, 0).into());
        true
    }
}
