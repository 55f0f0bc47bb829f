//! Monitoring of the interfaces that a service needs. For the kernel, an interface that disappears and returns is a new
//! one: sockets and queues of the old one receive nothing any more.

use crate::error::Error;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};
use std::io;
use std::os::fd::OwnedFd;

/// Interfaces by name, with their indices at the creation of the value.
#[derive(Debug)]
pub struct WatchedInterfaces {
    /// Socket of any kind: it determines the namespace.
    namespace_socket: OwnedFd,
    interfaces: Vec<(String, u32)>,
}

impl WatchedInterfaces {
    /// Looks up the interfaces, all of which must exist.
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let any = socket(AddressFamily::INET, SocketType::DGRAM, None);
        let any = any.map_err(|e| Error::new("opening a socket", e))?;
        let of = |name: &str| {
            let index = name_to_index(&any, name).map_err(|e| Error::of_interface(name, e))?;
            Ok((name.to_owned(), index))
        };
        let interfaces = names.into_iter().map(of).collect::<Result<_, Error>>()?;
        Ok(Self { namespace_socket: any, interfaces })
    }

    /// Checks that all interfaces still exist.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if one has disappeared, or its name belongs to a new one.
    pub fn check(&self) -> io::Result<()> {
        match self.interfaces.iter().find(|(name, index)| self.index_of(name) != Some(*index)) {
            None => Ok(()),
            Some((name, _)) => {
                let text = format!("the interface {name} has gone");
                Err(io::Error::new(io::ErrorKind::NotFound, text))
            }
        }
    }

    /// Returns the current index of the first interface; `None` if it does not exist.
    pub fn first_index(&self) -> Option<u32> {
        self.index_of(&self.interfaces.first()?.0)
    }

    fn index_of(&self, name: &str) -> Option<u32> {
        name_to_index(&self.namespace_socket, name).ok()
    }
}
