//! Proxies on a router of IPv6: routed, translated (NAT66), and behind a stateful firewall.

use crate::proxy::gateways::reach;
use crate::proxy::nat::{Calls, Nat, resets, translating};
use crate::proxy::start::BOTH;
use crate::proxy::transfer::transfer;
use crate::proxy::world::{Ground, Version, shell, until_or};

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

/// As in many containers.
pub(crate) fn a_router_without_ipv6_serves_ipv4() {
    let ground = Ground::new();
    shell(
        &ground.router,
        "for of in all default lo mobile fixed; do echo 1 > /proc/sys/net/ipv6/conf/$of/disable_ipv6; done",
    );
    let before = ground.listing();
    let file = ground.write(&format!("{BOTH}subnets = [\"10.9.0.0/24\", \"fd09::/64\"]\n"));
    let check = ground.proxy("check", &file);
    let said = String::from_utf8(check.stderr).unwrap();
    assert!(
        said.contains("the proxy \"split\" is to serve fd09::/64, and this machine has no IPv6"),
        "{said}"
    );
    let mut daemon = ground.start_file(&file);
    for port in [5001, 5002] {
        transfer([&ground.mobile, &ground.server], (Version::V4.server(), port), 100_000);
    }
    let accepted = || daemon.figure("split", "connections_accepted");
    until_or(|| panic!("{}", daemon.status()), || accepted() == 1);
    assert!(daemon.ended_by("TERM").success());
    ground.is_as_before(&before, "told to end");
}
