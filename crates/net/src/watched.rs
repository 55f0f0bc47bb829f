//! Interfaces that a service needs: one that vanishes and returns is another one to the kernel, so that sockets and queues of the former see
//! nothing any more.

use crate::error::Error;
use rustix::net::netdevice::name_to_index;
use rustix::net::{AddressFamily, SocketType, socket};
use std::io;
use std::os::fd::OwnedFd;

/// Interfaces by name, and the numbers that the kernel had for them when the value was made.
#[derive(Debug)]
pub(crate) struct Watched {
    /// Of any kind: it says which namespace is meant.
    any: OwnedFd,
    interfaces: Vec<(String, u32)>,
}

impl Watched {
    /// All of these must be there now.
    pub(crate) fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Result<Self, Error> {
        let any = socket(AddressFamily::INET, SocketType::DGRAM, None);
        let any = any.map_err(|e| Error::new("opening a socket", e))?;
        let of = |name: &str| {
            let index = name_to_index(&any, name).map_err(|e| Error::of_interface(name, e))?;
            Ok((name.to_owned(), index))
        };
        let interfaces = names.into_iter().map(of).collect::<Result<_, Error>>()?;
        Ok(Self { any, interfaces })
    }

    /// Returns whether all of them are still there.
    ///
    /// # Errors
    /// [`io::ErrorKind::NotFound`] if one has gone, or another one has its name.
    pub(crate) fn check(&self) -> io::Result<()> {
        match self.interfaces.iter().find(|(name, index)| self.number(name) != Some(*index)) {
            None => Ok(()),
            Some((name, _)) => {
                let text = format!("the interface {name} has gone");
                Err(io::Error::new(io::ErrorKind::NotFound, text))
            }
        }
    }

    /// The number of the first of them as it is now. `None`: there is none of its name.
    pub(crate) fn first_number(&self) -> Option<u32> {
        self.number(&self.interfaces.first()?.0)
    }

    fn number(&self, name: &str) -> Option<u32> {
        name_to_index(&self.any, name).ok()
    }
}
