//! The kernel's TCP, with a congestion control set for each socket.

use crate::peer::{Caller, Failure, LOOK, Peer, Session, Steadiness};
use hopline_linux::tcp;
use socket2::{Domain, SockRef, Socket, Type};
use std::io::{ErrorKind, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::time::Duration;

/// MTU − IP and TCP headers − timestamps.
pub const PAYLOAD: f64 = 1448.0;

/// The kernel's TCP.
pub struct Kernel {
    control: &'static str,
    name: String,
}

impl Kernel {
    /// Creates it with this congestion control, such as `cubic`.
    #[must_use]
    pub fn new(control: &'static str) -> Self {
        Self { control, name: format!("tcp-{control}") }
    }
}

/// Returns this machine's default congestion control.
pub fn default_congestion_control() -> Result<String, Failure> {
    Ok(tcp::congestion_control(&Socket::new(Domain::IPV4, Type::STREAM, None)?)?)
}

impl Peer for Kernel {
    fn name(&self) -> &str {
        &self.name
    }

    fn steadiness(&self) -> Steadiness {
        if self.control == "bbr" { Steadiness::Erratic } else { Steadiness::Steady }
    }

    fn payload(&self) -> f64 {
        PAYLOAD
    }

    fn receive(&self, session: &Session) -> Result<(), Failure> {
        let stream = match session.caller {
            Caller::A => accept(session, Session::is_closed)?,
            Caller::B => Some(self.connect(session)?),
        };
        let Some(mut stream) = stream else { return Ok(()) };
        stream.set_read_timeout(Some(LOOK))?;
        let mut buffer = vec![0; 1 << 16];
        while !session.is_closed() {
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n) => session.received(n),
                Err(e) if is_timeout(&e) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    fn send(&self, session: &Session) -> Result<Option<Duration>, Failure> {
        let stream = match session.caller {
            Caller::A => Some(self.connect(session)?),
            Caller::B => accept(session, Session::is_over)?,
        };
        let Some(mut stream) = stream else { return Ok(None) };
        tcp::set_congestion_control(&SockRef::from(&stream), self.control)?;
        stream.set_write_timeout(Some(LOOK))?;
        let data = vec![0x5a; 1 << 14];
        while !session.is_over() {
            match stream.write(&data) {
                Ok(_) => {}
                Err(e) if is_timeout(&e) => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(Some(tcp::info(&stream)?.srtt))
    }
}

impl Kernel {
    fn connect(&self, session: &Session) -> Result<TcpStream, Failure> {
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        tcp::set_congestion_control(&socket, self.control)?;
        socket.connect_timeout(&session.address.into(), Duration::from_secs(30))?;
        Ok(socket.into())
    }
}

/// Returns the incoming connection, if one arrives before the end.
fn accept(session: &Session, is_the_end: impl Fn(&Session) -> bool) -> Result<Option<TcpStream>, Failure> {
    let listener = TcpListener::bind(session.address)?;
    listener.set_nonblocking(true)?;
    session.listening();
    while !is_the_end(session) {
        match listener.accept() {
            Ok((stream, _)) => {
                stream.set_nonblocking(false)?;
                return Ok(Some(stream));
            }
            Err(e) if e.kind() == ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(1)),
            Err(e) => return Err(e.into()),
        }
    }
    Ok(None)
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
