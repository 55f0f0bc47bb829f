//! Proxies on an IPv6 router: routed, translated (NAT66), and behind a stateful firewall.

use crate::proxy::gateways::reach;
use crate::proxy::nat::{
    Calls, MIDDLEBOXES, Nat, check_middlebox, link_translated, repairs, resets, run_concurrently,
    translating_ground,
};
use crate::proxy::start::BOTH;
use crate::proxy::transfer::run_transfer;
use crate::proxy::uploads::asks_and_is_answered;
use crate::proxy::world::{Ground, Version, shell, until_or};

/// Common use of IPv6: routed, with a firewall.
const ROUTED: Nat = Nat {
    name: "a firewall",
    version: Version::V6,
    rules: "nft 'table inet router { chain filter { type filter hook forward priority filter; ct state invalid drop; \
            ct state established accept; iifname mobile accept; drop; }; }'",
    calls: Calls::FromMobile,
};

pub(crate) const NATS: [Nat; 4] = [
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
    Nat {
        name: "SNAT of nftables",
        version: Version::V6,
        rules: "nft 'table ip6 router { chain post { type nat hook postrouting priority srcnat; oifname fixed snat to fd08::254; }; }'",
        calls: Calls::FromMobile,
    },
    Nat {
        name: "DNAT of ip6tables",
        version: Version::V6,
        rules: "ip6tables -w -t nat -A PREROUTING -i fixed -p tcp --dport 80 -j DNAT --to-destination fd09::1",
        calls: Calls::ToMobile,
    },
];

pub(crate) fn middleboxes_work_over_ipv6() {
    run_concurrently(&MIDDLEBOXES, |middlebox| check_middlebox(middlebox, &routed(), &ROUTED));
}

pub(crate) fn requests_reach_a_mobile_host_over_ipv6() {
    run_concurrently(&[None, Some(&NATS[0])], |nat| {
        asks_and_is_answered(&nat.map_or_else(routed, translating_ground), Version::V6);
    });
}

fn routed() -> Ground {
    let ground = Ground::new();
    shell(&ground.router, ROUTED.rules);
    ground
}

pub(crate) fn snoop_repairs_translated_ipv6() {
    run_concurrently(&NATS, |nat| check_middlebox(&MIDDLEBOXES[0], &translating_ground(nat), nat));
}

pub(crate) fn other_middleboxes_work_with_translated_ipv6() {
    let cases = [(1, 0), (2, 1), (2, 3)].map(|(middlebox, nat)| (&MIDDLEBOXES[middlebox], &NATS[nat]));
    run_concurrently(&cases, |(middlebox, nat)| check_middlebox(middlebox, &translating_ground(nat), nat));
}

/// The ends of the link use either IP version between them.
pub(crate) fn d_proxy_repairs_ipv6() {
    run_concurrently(&[Version::V4, Version::V6], |&ends| match ends {
        Version::V4 => repairs(&Ground::new(), Version::V6, ends),
        Version::V6 => repairs(&link_translated(Version::V6), Version::V6, ends),
    });
}

pub(crate) fn a_server_receives_the_reset_of_a_connection_over_ipv6() {
    NATS[..2].iter().for_each(resets);
}

pub(crate) fn a_gateway_accepts_translated_connections_over_ipv6() {
    reach(&translating_ground(&NATS[1]), Version::V6);
}

/// IPv6 is off in many containers.
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
        run_transfer([&ground.mobile, &ground.server], (Version::V4.server(), port), 100_000);
    }
    let accepted = || daemon.metric("split", "connections_accepted");
    until_or(|| panic!("{}", daemon.status()), || accepted() == 1);
    assert!(daemon.ended_by("TERM").success());
    ground.is_as_before(&before, "told to end");
}
