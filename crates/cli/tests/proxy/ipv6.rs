//! Proxies on a router of IPv6: routed, translated (NAT66), and behind a stateful firewall.

use crate::proxy::gateways::reach;
use crate::proxy::nat::{Calls, Nat, resets, translating};
use crate::proxy::world::Version;

const NATS: [Nat; 2] = [
    Nat {
        name: "masquerade of ip6tables",
        version: Version::V6,
        rules: "ip6tables -w -t nat -A POSTROUTING -o fixed -j MASQUERADE; \
                ip6tables -w -A FORWARD -m conntrack --ctstate INVALID -j DROP; \
                ip6tables -w -A FORWARD -m conntrack --ctstate ESTABLISHED -j ACCEPT; \
                ip6tables -w -A FORWARD -i mobile -j ACCEPT; ip6tables -w -A FORWARD -j DROP",
        calls: Calls::FromMobile,
    },
    Nat {
        name: "masquerade of nftables, of both versions",
        version: Version::V6,
        rules: "nft 'table inet router { chain post { type nat hook postrouting priority srcnat; oifname fixed masquerade; }; \
                chain filter { type filter hook forward priority filter; ct state invalid drop; ct state established accept; \
                iifname mobile accept; drop; }; }'",
        calls: Calls::FromMobile,
    },
];

pub(crate) fn a_server_hears_the_reset_of_a_connection_over_ipv6() {
    NATS.iter().for_each(resets);
}

pub(crate) fn a_gateway_takes_calls_over_ipv6_that_are_translated() {
    reach(&translating(&NATS[1]), Version::V6);
}
