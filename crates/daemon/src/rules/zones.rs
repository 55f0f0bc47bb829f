//! Zones of conntrack for onward connections.

use super::diverted::DiversionMark;
use hopline_linux::transparent::ONWARD_MARK;

/// Source ports of onward connections: clients choose theirs from 10,000 on or above.
const PORTS: &str = "1024-9999";

/// Returns chains that keep conntrack from mistaking the two connections of a client for one: both have the same addresses
/// and ports.
///
/// The original direction of the onward connection has a zone of its own. Its replies stay in the zone of all other
/// connections, so that the ports that the router translates to stay unique. Without translation both replies would look
/// alike. So a rule gives onward connections other source ports, which clients do not choose: the kernel resolves clashes
/// with confirmed connections alone. The connection of a client with a waiting SYN is not confirmed. A later one, from the
/// port of an onward connection, would be dropped or reset.
pub(super) fn chains(capture: DiversionMark) -> String {
    format!(
        "  chain onward {{\n    type filter hook output priority raw; policy accept;\n    \
         meta mark {ONWARD_MARK:#x} ct original zone set {} meta mark set 0\n  }}\n  \
         chain unique {{\n    type nat hook postrouting priority srcnat + 1; policy accept;\n    \
         ct original zone {} meta l4proto tcp snat to :{PORTS} fully-random\n  }}\n",
        capture.mark, capture.mark
    )
}
