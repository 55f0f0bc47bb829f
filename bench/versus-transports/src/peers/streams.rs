//! TPA as published and TPA-wide, over UDP ([`hopline_streams`]).

use crate::peer::{Failure, LOOK, Peer, Session};
use hopline_streams::tpa::{self, Tpa};
use hopline_streams::wide::{self, Credentials, PreSharedKey, Wide};
use hopline_streams::{Listener, Protocol, Stream};
use std::io::{ErrorKind, Read, Write};
use std::time::Duration;

pub(crate) struct Over<P: Protocol> {
    name: String,
    config: P::Config,
    payload: f64,
    srtt: fn(P::Info) -> Option<hopline_core::Duration>,
}

impl Over<Tpa> {
    /// Creates TPA with this maximum window, segments.
    pub(crate) fn tpa(window: u8) -> Self {
        Self {
            name: format!("tpa-{window}"),
            config: tpa::config(window),
            // MTU − IP and UDP headers − TPA header − connection tag and receipt.
            payload: 1448.0,
            srtt: |info| info.srtt,
        }
    }
}

impl Over<Wide> {
    /// Creates TPA-wide with a pre-shared key, as with `hopline send --psk`.
    pub(crate) fn wide() -> Self {
        let config = wide::config(Credentials::Shared(PreSharedKey::new([7; 32])));
        let payload = config.transport().mss().into();
        Self { name: "tpa-wide".to_owned(), config, payload, srtt: |info| info.srtt }
    }
}

impl<P: Protocol> Peer for Over<P>
where
    P::Config: Send + Sync,
{
    fn name(&self) -> &str {
        &self.name
    }

    fn payload(&self) -> f64 {
        self.payload
    }

    fn receive(&self, session: &Session) -> Result<(), Failure> {
        let listener = Listener::<P>::bind(session.address, &self.config)?;
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
                // The sender ends with a reset.
                Err(e) if e.kind() == ErrorKind::ConnectionReset => return Ok(()),
                Err(e) => return Err(e.into()),
            }
        }
        // An orderly close would continue in the background, over a link that is gone.
        stream.abort();
        Ok(())
    }

    fn send(&self, session: &Session) -> Result<Option<Duration>, Failure> {
        let limit = Duration::from_secs(30);
        let mut stream = Stream::<P>::connect_timeout(session.address, &self.config, limit)?;
        stream.set_write_timeout(Some(LOOK));
        let data = vec![0x5a; 1 << 14];
        while !session.is_over() {
            match stream.write(&data) {
                Ok(_) => {}
                Err(e) if e.kind() == ErrorKind::WouldBlock => {}
                Err(e) => return Err(e.into()),
            }
        }
        let srtt = (self.srtt)(stream.info());
        stream.abort();
        Ok(srtt.map(|srtt| Duration::from_nanos(srtt.as_nanos())))
    }
}

fn accept<P: Protocol>(listener: &Listener<P>, session: &Session) -> Result<Option<Stream<P>>, Failure> {
    while !session.is_closed() {
        match listener.accept() {
            Ok((stream, _)) => return Ok(Some(stream)),
            Err(e) if e.kind() == ErrorKind::WouldBlock => std::thread::sleep(Duration::from_millis(1)),
            Err(e) => return Err(e.into()),
        }
    }
    Ok(None)
}
