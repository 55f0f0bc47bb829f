//! TPA as published, over UDP ([`hopline_net::tpa`]), with a largest window of so many segments.

use crate::peer::{Failure, LOOK, Peer, Session};
use hopline_net::tpa::{Config, TpaListener, TpaStream, config};
use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

/// MTU − IP and UDP headers − TPA header − connection tag and receipt.
const PAYLOAD: f64 = 1448.0;

pub(crate) struct Tpa {
    config: Config,
    name: String,
}

impl Tpa {
    pub(crate) fn new(window: u8) -> Self {
        Self { config: config(window), name: format!("tpa-{window}") }
    }
}

impl Peer for Tpa {
    fn name(&self) -> &str {
        &self.name
    }

    fn payload(&self) -> f64 {
        PAYLOAD
    }

    fn receive(&self, session: &Session) -> Result<(), Failure> {
        let listener = TpaListener::bind(session.address, &self.config)?;
        listener.set_nonblocking(true);
        session.listening();
        let Some(mut stream) = accept(&listener, session)? else { return Ok(()) };
        stream.set_read_timeout(Some(LOOK));
        let mut buffer = vec![0; 1 << 16];
        while !session.is_closed() {
            match stream.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(n) => session.received(n),
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                // How the sender stops.
                Err(e) if e.kind() == ErrorKind::ConnectionReset => return Ok(()),
                Err(e) => return Err(e.into()),
            }
        }
        // Closed in order it would go on by itself, over a link that is gone.
        stream.abort();
        Ok(())
    }

    fn send(&self, session: &Session) -> Result<Option<Duration>, Failure> {
        let limit = Duration::from_secs(30);
        let mut stream = TpaStream::connect_timeout(session.address, &self.config, limit)?;
        stream.set_write_timeout(Some(LOOK));
        let data = vec![0x5a; 1 << 14];
        while !session.is_over() {
            match stream.write(&data) {
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => return Err(e.into()),
            }
        }
        let srtt = stream.info().srtt;
        stream.abort();
        Ok(srtt.map(|srtt| Duration::from_nanos(srtt.as_nanos())))
    }
}

fn accept(listener: &TpaListener, session: &Session) -> Result<Option<TpaStream>, Failure> {
    while !session.is_closed() {
        match listener.accept() {
            Ok((stream, _)) => return Ok(Some(stream)),
            Err(e) if e.kind() == ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(1)),
            Err(e) => return Err(e.into()),
        }
    }
    Ok(None)
}
