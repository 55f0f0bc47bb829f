//! The kernel's TCP, its congestion control set for each socket.

use crate::peer::{Failure, LOOK, Peer, Session, Steadiness};
use hopline_net::tcp;
use socket2::{Domain, Socket, Type};
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
    /// With this congestion control, such as `cubic`.
    #[must_use]
    pub fn new(control: &'static str) -> Self {
        Self { control, name: format!("tcp-{control}") }
    }
}

/// What this machine does unless told otherwise.
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
        let listener = TcpListener::bind(session.address)?;
        listener.set_nonblocking(true)?;
        session.listening();
        let Some(mut stream) = accept(&listener, session)? else { return Ok(()) };
        stream.set_nonblocking(false)?;
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
        let socket = Socket::new(Domain::IPV4, Type::STREAM, None)?;
        tcp::set_congestion_control(&socket, self.control)?;
        socket.connect_timeout(&session.address.into(), Duration::from_secs(30))?;
        let mut stream = TcpStream::from(socket);
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

fn accept(listener: &TcpListener, session: &Session) -> Result<Option<TcpStream>, Failure> {
    while !session.is_closed() {
        match listener.accept() {
            Ok((stream, _)) => return Ok(Some(stream)),
            Err(e) if e.kind() == ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(1)),
            Err(e) => return Err(e.into()),
        }
    }
    Ok(None)
}

fn is_timeout(error: &std::io::Error) -> bool {
    matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut)
}
