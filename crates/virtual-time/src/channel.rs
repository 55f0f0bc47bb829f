//! Sockets to which a kernel connects, with descriptors beside the bytes.

use rustix::net::{
    RecvAncillaryBuffer, RecvAncillaryMessage, RecvFlags, SendAncillaryBuffer, SendAncillaryMessage,
    SendFlags, recvmsg, sendmsg,
};
use std::fs::File;
use std::io::{self, IoSlice, IoSliceMut, Read, Write};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::Path;

/// Most descriptors that come with a message.
const MAX_DESCRIPTORS: usize = 8;

/// Connection of a kernel, or the socket on which it is awaited.
#[derive(Debug)]
pub(crate) enum Channel {
    /// The kernel has not connected.
    Listening(UnixListener),
    /// It has.
    Open(UnixStream),
}

impl Channel {
    /// Awaits a kernel at a socket of this name in a folder. The path of the folder may be longer than that of a socket.
    pub(crate) fn listen(folder: &Path, name: &str) -> io::Result<Self> {
        let open = File::open(folder)?;
        let path = format!("/proc/self/fd/{}/{name}", open.as_raw_fd());
        UnixListener::bind(path).map(Self::Listening)
    }

    /// Accepts the connection, if it is awaited and there.
    pub(crate) fn accept(&mut self) -> io::Result<()> {
        if let Self::Listening(listener) = self {
            *self = Self::Open(listener.accept()?.0);
        }
        Ok(())
    }

    /// Returns the connection, if the kernel has connected.
    pub(crate) fn stream(&self) -> io::Result<&UnixStream> {
        match self {
            Self::Open(stream) => Ok(stream),
            Self::Listening(_) => Err(io::ErrorKind::NotConnected.into()),
        }
    }

    /// Sends bytes.
    pub(crate) fn send(&self, bytes: &[u8]) -> io::Result<()> {
        self.stream()?.write_all(bytes)
    }

    /// Sends bytes with descriptors.
    pub(crate) fn send_with(&self, bytes: &[u8], descriptors: &[BorrowedFd<'_>]) -> io::Result<()> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = SendAncillaryBuffer::new(&mut space);
        control.push(SendAncillaryMessage::ScmRights(descriptors));
        let sent = sendmsg(self.stream()?, &[IoSlice::new(bytes)], &mut control, SendFlags::NOSIGNAL)?;
        if sent == bytes.len() { Ok(()) } else { Err(io::ErrorKind::WriteZero.into()) }
    }

    /// Receives as many bytes as the buffer has.
    pub(crate) fn receive(&self, buffer: &mut [u8]) -> io::Result<()> {
        self.stream()?.read_exact(buffer)
    }

    /// Receives as many bytes as the buffer has, and the descriptors that come with them.
    pub(crate) fn receive_with(&self, buffer: &mut [u8]) -> io::Result<Vec<OwnedFd>> {
        let mut space = [MaybeUninit::uninit(); rustix::cmsg_space!(ScmRights(MAX_DESCRIPTORS))];
        let mut control = RecvAncillaryBuffer::new(&mut space);
        let stream = self.stream()?;
        let flags = RecvFlags::CMSG_CLOEXEC;
        let received = recvmsg(stream, &mut [IoSliceMut::new(buffer)], &mut control, flags)?.bytes;
        let mut descriptors = Vec::new();
        for message in control.drain() {
            if let RecvAncillaryMessage::ScmRights(sent) = message {
                descriptors.extend(sent);
            }
        }
        if received == 0 {
            return Err(io::ErrorKind::UnexpectedEof.into());
        }
        self.receive(&mut buffer[received..])?;
        Ok(descriptors)
    }
}

impl AsFd for Channel {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Self::Listening(listener) => listener.as_fd(),
            Self::Open(stream) => stream.as_fd(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn descriptors_come_with_the_bytes() {
        let (one, other) = UnixStream::pair().expect("a pair of sockets");
        let (sender, receiver) = (Channel::Open(one), Channel::Open(other));
        let null = File::open("/dev/null").expect("/dev/null");
        sender.send_with(b"head", &[null.as_fd(), null.as_fd()]).expect("sent");
        sender.send(b"tail").expect("sent");
        let mut bytes = [0; 6];
        assert_eq!(receiver.receive_with(&mut bytes).expect("received").len(), 2);
        assert_eq!(&bytes, b"headta");
    }

    #[test]
    fn the_end_of_a_connection_is_an_error() {
        let (one, other) = UnixStream::pair().expect("a pair of sockets");
        drop(one);
        let receiver = Channel::Open(other);
        let error = receiver.receive_with(&mut [0; 6]).expect_err("nothing comes");
        assert_eq!(error.kind(), io::ErrorKind::UnexpectedEof);
    }
}
