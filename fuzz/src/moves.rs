//! Split connections between stations.

use hopline_middlebox::split::moved_state;

/// State of a split connection that moves: what was understood survives writing and reading again, and is as long as what was read.
pub fn moved(data: &[u8]) {
    if let Some(written) = moved_state(data) {
        assert_eq!(written.len(), data.len());
        assert_eq!(moved_state(&written), Some(written));
    }
}
