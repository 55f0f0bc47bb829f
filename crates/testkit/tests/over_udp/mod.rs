//! TPA over UDP as a transport of the test kit.

use hopline_net::tpa::{TpaListener, TpaStream, config};
use hopline_testkit::namespace::{READ_TIMEOUT, Sockets};
use std::io;
use std::net::{Shutdown, SocketAddr};

/// TPA with a largest window of so many segments.
pub(crate) struct OverUdp {
    pub(crate) window: u8,
}

impl Sockets for OverUdp {
    type Listener = TpaListener;
    type Stream = TpaStream;

    fn listen(&self, address: SocketAddr) -> io::Result<TpaListener> {
        let listener = TpaListener::bind(address, &config(self.window))?;
        listener.set_nonblocking(true);
        Ok(listener)
    }

    fn accept(&self, listener: &TpaListener) -> io::Result<TpaStream> {
        let (stream, _) = listener.accept()?;
        stream.set_read_timeout(Some(READ_TIMEOUT));
        Ok(stream)
    }

    fn connect(&self, address: SocketAddr) -> io::Result<TpaStream> {
        TpaStream::connect(address, &config(self.window))
    }

    fn shutdown(&self, stream: &TpaStream) -> io::Result<()> {
        stream.shutdown(Shutdown::Write)
    }
}
