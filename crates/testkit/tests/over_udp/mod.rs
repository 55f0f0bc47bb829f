//! Protocols of streams over UDP as transports of the test kit.

use hopline_streams::{Listener, Protocol, Stream};
use hopline_testkit::namespace::{READ_TIMEOUT, Sockets};
use std::io;
use std::net::{Shutdown, SocketAddr};

/// Protocol, with the configurations of initiator and responder.
pub(crate) struct OverUdp<P: Protocol> {
    pub(crate) initiator: P::Config,
    pub(crate) responder: P::Config,
}

impl<P: Protocol<Config: Sync>> Sockets for OverUdp<P> {
    type Listener = Listener<P>;
    type Stream = Stream<P>;

    fn listen(&self, address: SocketAddr) -> io::Result<Listener<P>> {
        let listener = Listener::bind(address, &self.responder)?;
        listener.set_nonblocking(true);
        Ok(listener)
    }

    fn accept(&self, listener: &Listener<P>) -> io::Result<Stream<P>> {
        let (stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(READ_TIMEOUT));
        Ok(stream)
    }

    fn connect(&self, address: SocketAddr) -> io::Result<Stream<P>> {
        Stream::connect(address, &self.initiator)
    }

    fn shutdown(&self, stream: &Stream<P>) -> io::Result<()> {
        stream.shutdown(Shutdown::Write)
    }
}
