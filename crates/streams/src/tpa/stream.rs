//! Operations of TPA streams only.

use super::TpaStream;
use std::io::{self, ErrorKind};

impl TpaStream {
    /// Limits the congestion window to this many segments from now on.
    ///
    /// # Errors
    /// `InvalidInput` if it is not 1 to 12.
    pub fn set_cwnd_max(&self, cwnd_max: u8) -> io::Result<()> {
        let set = self.call_endpoint(|endpoint| endpoint.set_cwnd_max(cwnd_max));
        set.unwrap_or(Ok(())).map_err(|error| io::Error::new(ErrorKind::InvalidInput, error))
    }
}
