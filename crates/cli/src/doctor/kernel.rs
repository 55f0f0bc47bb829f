//! Kernel features for emulation and middleboxes.

use super::finding::{Availability, Finding, State, read};
use super::program::{ProgramResult, run_program};
#[cfg(feature = "net")]
use hopline_virtual_time::kernel::KernelImage;
use std::fs::File;
use std::io::ErrorKind;
use std::path::Path;

/// Returns the findings about everything that packet processing needs.
pub(super) fn findings() -> Vec<Finding> {
    let config = config();
    vec![
        Finding::new(
            "privileges",
            privileges(),
            "hopline proxy run, tests over real links, make versus-transports",
            "run as root; for hopline proxy run, setcap cap_net_admin,cap_net_raw,cap_net_bind_service+ep hopline is enough",
        ),
        Finding::new(
            "network namespaces",
            namespaces(),
            "emulated hosts on one machine: tests and make versus-transports",
            "run as root, or allow user namespaces (on Debian: sysctl kernel.unprivileged_userns_clone=1)",
        ),
        Finding::new(
            "TUN",
            tun(),
            "hopline emulate in real time, hopline link; tunnels of hopline proxy",
            "run as root, or chmod 666 /dev/net/tun; modprobe tun; in a container: --device /dev/net/tun",
        ),
        Finding::new(
            "emulated link",
            link(),
            "hopline link, as root or in a user namespace",
            "run `hopline link -- true`, which says what it lacks",
        ),
        #[cfg(feature = "net")]
        Finding::new(
            "kernel in virtual time",
            user_mode_kernel(),
            "hopline emulate --virtual-time, which needs no privileges",
            "make uml in hopline's source folder",
        ),
        Finding::new(
            "NFQUEUE",
            queue(config.as_deref()),
            "passing packets shown to a machine of hopline proxy, such as Snoop; servers called before clients are answered (split)",
            "modprobe nfnetlink_queue; the kernel needs CONFIG_NETFILTER_NETLINK_QUEUE",
        ),
        Finding::new(
            "TPROXY",
            target(config.as_deref(), "TPROXY"),
            "passing TCP connections ended in hopline proxy, as split TCP does",
            "modprobe xt_TPROXY; the kernel needs CONFIG_NETFILTER_XT_TARGET_TPROXY",
        ),
        Finding::new(
            "rules for IPv6",
            rules_for_ipv6(),
            "TCP over IPv6 shown to a machine of hopline proxy; split connections and gateways need the kernel's IPv6 alone",
            "apt-get install iptables (OpenWrt: ip6tables-nft); no ipv6.disable=1, no net.ipv6.conf.all.disable_ipv6",
        ),
        Finding::new(
            "forwarding",
            forwarding(read("/proc/sys/net/ipv4/ip_forward").as_deref()),
            "a router, whose packets hopline proxy sees",
            "sysctl -w net.ipv4.ip_forward=1",
        ),
        Finding::new(
            "forwarding of IPv6",
            forwarding(read("/proc/sys/net/ipv6/conf/all/forwarding").as_deref()),
            "the same for IPv6",
            "sysctl -w net.ipv6.conf.all.forwarding=1",
        ),
        #[cfg(feature = "net")]
        Finding::new(
            "rules see packets",
            sees_all_packets(),
            "Snoop, M-TCP, NACK and D-Proxy on a router: a flowtable forwards packets past all rules",
            offload_advice(),
        ),
        #[cfg(feature = "net")]
        Finding::new(
            "NAT",
            nat(),
            "a router that translates addresses: Snoop, M-TCP, NACK, split and D-Proxy work on it, with rules of nft; subnets in a proxy file are those before translation",
            "apt-get install nftables; run as root to see whether rules translate",
        ),
        #[cfg(feature = "net")]
        Finding::new(
            "routes by destination",
            routes_by_destination(),
            "a router whose proxies serve everything: else they leave alone what rules of routing lead another way than packets of the router",
            "nothing must be done: `unfollowed` figures of hopline proxy status count what passes; ip rule lists the rules",
        ),
        #[cfg(feature = "net")]
        Finding::new(
            "connection tracking",
            tracking(),
            "proxies on a router with NAT or a stateful firewall: they have rules for it only where it is in use",
            "a kernel with CONFIG_NF_CONNTRACK, if this router is to translate addresses",
        ),
        #[cfg(feature = "net")]
        Finding::new(
            "Landlock",
            landlock(),
            "confines hopline proxy run to the files that it needs",
            "a kernel of Linux 6.12 or later with CONFIG_SECURITY_LANDLOCK, and landlock in its list lsm=",
        ),
        Finding::new(
            "congestion control",
            congestion_control(),
            "what the kernel's TCP does unless told otherwise: the peer to compare with",
            "read /proc/sys/net/ipv4/tcp_congestion_control",
        ),
    ]
}

#[cfg(feature = "net")]
fn user_mode_kernel() -> Availability {
    let folder = KernelImage::default_folder();
    match KernelImage::find(&folder) {
        Ok(_) => (State::Present, folder.display().to_string()),
        Err(error) => (State::Missing, error.to_string()),
    }
}

/// Bit numbers of linux/capability.h.
const CAPABILITIES: [(&str, u32); 2] = [("CAP_NET_ADMIN", 12), ("CAP_NET_RAW", 13)];

fn privileges() -> Availability {
    match read("/proc/self/status").as_deref().and_then(parse_status) {
        Some(look) => look,
        None => (State::Unknown, "/proc/self/status does not say".into()),
    }
}

/// Returns the user, and which of the capabilities are in effect.
fn parse_status(text: &str) -> Option<Availability> {
    let field = |name: &str| text.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'));
    let effective_uid: u32 = field("Uid")?.split_whitespace().nth(1)?.parse().ok()?;
    let effective = u64::from_str_radix(field("CapEff")?.trim(), 16).ok()?;
    let who = if effective_uid == 0 { "root".to_owned() } else { format!("user {effective_uid}") };
    let lacks: Vec<&str> =
        CAPABILITIES.iter().filter(|(_, bit)| effective & (1 << bit) == 0).map(|(name, _)| *name).collect();
    Some(match lacks.as_slice() {
        [] => (State::Present, format!("{who}, with {}", CAPABILITIES.map(|(name, _)| name).join(" and "))),
        lacks => (State::Missing, format!("{who}, without {}", lacks.join(" and "))),
    })
}

/// Returns whether unshare(1) succeeds with these arguments; `NotFound` if it is not installed.
fn unshare_works(arguments: &[&str]) -> Option<bool> {
    match run_program("unshare", arguments, "") {
        ProgramResult::Text(status, _) => Some(status.success()),
        ProgramResult::TimedOut | ProgramResult::NotFound => None,
    }
}

/// Creates namespaces in a process that ends at once, and they with it.
fn namespaces() -> Availability {
    match unshare_works(&["--net", "true"]) {
        Some(true) => (State::Present, "a process can have its own".into()),
        Some(false) if unshare_works(&["--user", "--map-root-user", "--net", "true"]) == Some(true) => {
            (State::Present, "with a user namespace".into())
        }
        Some(false) => (State::Missing, "not permitted".into()),
        None if !Path::new("/proc/self/ns/net").exists() => (State::Missing, "not in this kernel".into()),
        None => (State::Unknown, "in the kernel; there is no `unshare` to try them".into()),
    }
}

/// Creates a link without traffic, in a process that ends at once.
fn link() -> Availability {
    let Ok(program) = std::env::current_exe() else {
        return (State::Unknown, "this program cannot be found".into());
    };
    let as_root = unshare_works(&["--net", "true"]) == Some(true);
    match run_program(&program.to_string_lossy(), &["link", "--", "true"], "") {
        ProgramResult::Text(status, _) if status.success() && as_root => (State::Present, "works".into()),
        ProgramResult::Text(status, _) if status.success() => {
            (State::Present, "works, in a user namespace".into())
        }
        ProgramResult::Text(..) => (State::Missing, "cannot be made here".into()),
        ProgramResult::TimedOut | ProgramResult::NotFound => {
            (State::Unknown, "it did not come to an end".into())
        }
    }
}

/// Opens the device node, which creates no interface.
fn tun() -> Availability {
    match File::options().read(true).write(true).open("/dev/net/tun") {
        Ok(_) => (State::Present, "/dev/net/tun opens".into()),
        Err(error) => {
            let why = match error.kind() {
                ErrorKind::NotFound => "there is no /dev/net/tun".to_owned(),
                _ => format!("/dev/net/tun: {error}"),
            };
            (State::Missing, why)
        }
    }
}

fn queue(config: Option<&str>) -> Availability {
    if !Path::new("/proc/net/netfilter/nfnetlink_queue").exists()
        && config.and_then(|config| option(config, "CONFIG_NETFILTER_NETLINK_QUEUE")) == Some(false)
    {
        return (State::Missing, "not in this kernel".into());
    }
    target(config, "NFQUEUE")
}

/// Returns whether rules of iptables or nft can use a target.
fn target(config: Option<&str>, name: &str) -> Availability {
    let Some(config) = config else {
        // The tables of iptables list the targets used so far; further ones can yet be loaded.
        let met =
            read("/proc/net/ip_tables_targets").is_some_and(|text| text.lines().any(|line| line == name));
        return match met {
            true => (State::Present, "by iptables".into()),
            false => (State::Unknown, "this kernel does not show its configuration".into()),
        };
    };
    let has = |key: &str| option(config, key) == Some(true);
    let iptables = has(&format!("CONFIG_NETFILTER_XT_TARGET_{name}"));
    let nft = has(&format!("CONFIG_NFT_{}", name.trim_start_matches("NF")));
    match (iptables, nft) {
        (true, true) => (State::Present, "by iptables and nft".into()),
        (true, false) => (State::Present, "by iptables, not by nft".into()),
        (false, true) => (State::Present, "by nft, not by iptables".into()),
        (false, false) => (State::Missing, "not in this kernel".into()),
    }
}

/// Returns whether this host forwards packets of a version of IP, by the text of its setting.
fn forwarding(setting: Option<&str>) -> Availability {
    match setting.map(str::trim) {
        None => (State::Unknown, "the kernel does not say".into()),
        Some("0") => (State::Missing, "switched off".into()),
        Some(_) => (State::Present, "switched on".into()),
    }
}

/// Returns whether chains of iptables can be made for IPv6.
fn rules_for_ipv6() -> Availability {
    // Missing without IPv6 in the kernel, empty where it is disabled.
    if read("/proc/net/if_inet6").unwrap_or_default().is_empty() {
        return (State::Missing, "this machine has no IPv6".into());
    }
    match run_program("ip6tables", &["--version"], "") {
        ProgramResult::Text(status, version) if status.success() => {
            (State::Present, version.trim().to_owned())
        }
        ProgramResult::Text(..) | ProgramResult::NotFound => (State::Missing, "there is no ip6tables".into()),
        ProgramResult::TimedOut => (State::Unknown, "ip6tables does not answer".into()),
    }
}

/// Returns whether rules see all packets that this host forwards.
#[cfg(feature = "net")]
fn sees_all_packets() -> Availability {
    let Some(flowtables) = hopline_daemon::router::flowtables() else {
        return (State::Unknown, "nft does not say: it is missing, or this is not root".into());
    };
    let taken = flowtables.iter().filter(|flowtable| !flowtable.devices.is_empty());
    let taken: Vec<String> =
        taken.map(|it| format!("flowtable {} of {}: {}", it.name, it.table, it.devices.join(", "))).collect();
    match taken.as_slice() {
        [] => (State::Present, "no flowtable".into()),
        taken => (State::Missing, taken.join("; ")),
    }
}

/// Returns advice if packets bypass rules, or if that is not known.
#[cfg(feature = "net")]
fn offload_advice() -> &'static str {
    match hopline_daemon::router::flowtables() {
        None => "run this as root, with nft installed: then it is known whether there is a flowtable",
        Some(_) => {
            "take the interfaces of proxies out of the flowtable (OpenWrt: flow_offloading '0' in /etc/config/firewall)"
        }
    }
}

/// Returns whether rules of this machine translate addresses (NAT), and whether proxies can have their own beside them.
#[cfg(feature = "net")]
fn nat() -> Availability {
    let has_nft =
        matches!(run_program("nft", &["--version"], ""), ProgramResult::Text(status, _) if status.success());
    match hopline_daemon::rules::translates() {
        None => (
            State::Unknown,
            "rules cannot be listed: this is not root, or nft and iptables are missing".into(),
        ),
        Some(false) => (State::Present, "no rule translates addresses".into()),
        Some(true) if has_nft => (State::Present, "this router translates addresses".into()),
        Some(true) => (State::Missing, "this router translates addresses, and there is no nft".into()),
    }
}

/// Returns whether policy routing depends on the destination alone. Rules of hopline with its default mark are ignored.
#[cfg(feature = "net")]
fn routes_by_destination() -> Availability {
    let is_own =
        |rule: &&hopline_linux::policy::Rule| rule.is_from_daemon(hopline_middlebox::diversion::MAJOR);
    let Ok(rules) = hopline_linux::policy::rules() else {
        return (State::Unknown, "the kernel does not list its rules".into());
    };
    let looking = rules.iter().filter(|rule| rule.has_other_criteria() && !is_own(rule));
    let listed: Vec<String> = looking.map(ToString::to_string).collect();
    match listed.as_slice() {
        [] => (State::Present, "no rule of routing looks at more".into()),
        [first] => (State::Missing, first.clone()),
        [first, more @ ..] => (State::Missing, format!("{first}, and {} more", more.len())),
    }
}

/// Returns whether the kernel supports connection tracking, and whether anything enables it.
#[cfg(feature = "net")]
fn tracking() -> Availability {
    use hopline_daemon::rules::Tracking;
    match Tracking::detect() {
        Tracking::InUse => (State::Present, "in use".into()),
        Tracking::Absent if Path::new("/sys/module/nf_conntrack").exists() => {
            (State::Present, "not in use".into())
        }
        Tracking::Absent => (State::Unknown, "not in use, and no such module is loaded".into()),
    }
}

/// Returns the version of Landlock, and what it does not restrict.
#[cfg(feature = "net")]
fn landlock() -> Availability {
    match hopline_daemon::landlock() {
        (None, beyond) => (State::Missing, beyond.join("; ")),
        (Some(version), beyond) if beyond.is_empty() => (State::Present, format!("version {version}")),
        (Some(version), beyond) => (State::Present, format!("version {version}: {}", beyond.join("; "))),
    }
}

fn congestion_control() -> Availability {
    let setting = |name: &str| read(&format!("/proc/sys/net/ipv4/{name}")).map(|text| text.trim().to_owned());
    match (setting("tcp_congestion_control"), setting("tcp_available_congestion_control")) {
        (Some(now), Some(all)) => (State::Present, format!("{now}; available: {all}")),
        (Some(now), None) => (State::Present, now),
        (None, _) => (State::Unknown, "the kernel does not say".into()),
    }
}

/// Returns the configuration of the running kernel, if it is readable.
fn config() -> Option<String> {
    let release = read("/proc/sys/kernel/osrelease").unwrap_or_default();
    read(&format!("/boot/config-{}", release.trim())).or_else(|| {
        let ProgramResult::Text(status, text) = run_program("gzip", &["-dc", "/proc/config.gz"], "") else {
            return None;
        };
        status.success().then_some(text)
    })
}

/// Returns whether an option is set, built in or as a module; `NotFound` if the configuration does not mention it.
fn option(config: &str, key: &str) -> Option<bool> {
    config.lines().find_map(|line| {
        let unset = line.strip_prefix("# ").and_then(|rest| rest.strip_suffix(" is not set"));
        match line.strip_prefix(key).and_then(|rest| rest.strip_prefix('=')) {
            Some(value) => Some(value == "y" || value == "m"),
            None => (unset == Some(key)).then_some(false),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const CONFIG: &str = "CONFIG_NETFILTER_NETLINK_QUEUE=y\n# CONFIG_NFT_QUEUE is not set\nCONFIG_NFT_TPROXY=m\n\
                          CONFIG_NETFILTER_XT_TARGET_NFQUEUE=y\nCONFIG_NETFILTER_XT_TARGET_TPROXY=m\nCONFIG_X=\"y\"\n";

    #[test]
    fn options_are_set_built_in_or_as_modules() {
        assert_eq!(option(CONFIG, "CONFIG_NFT_TPROXY"), Some(true));
        assert_eq!(option(CONFIG, "CONFIG_NETFILTER_NETLINK_QUEUE"), Some(true));
        assert_eq!(option(CONFIG, "CONFIG_NFT_QUEUE"), Some(false));
        assert_eq!(option(CONFIG, "CONFIG_NFT"), None, "the name is compared whole");
        assert_eq!(option(CONFIG, "CONFIG_X"), Some(false));
        assert_eq!(option("", "CONFIG_X"), None);
    }

    #[test]
    fn a_target_may_exist_for_one_kind_of_rule_only() {
        assert_eq!(target(Some(CONFIG), "NFQUEUE"), (State::Present, "by iptables, not by nft".into()));
        assert_eq!(target(Some(CONFIG), "TPROXY"), (State::Present, "by iptables and nft".into()));
        assert_eq!(target(Some(""), "TPROXY").0, State::Missing);
        assert_eq!(target(Some("CONFIG_NFT_QUEUE=m\n"), "NFQUEUE").1, "by nft, not by iptables");
    }

    #[test]
    fn effective_capabilities_are_checked() {
        let status = |uid: u32, effective: &str| {
            parse_status(&format!("Name:\thopline\nUid:\t1000\t{uid}\t0\t0\nCapEff:\t{effective}\n"))
        };
        assert_eq!(
            status(0, "000001fffeffffff"),
            Some((State::Present, "root, with CAP_NET_ADMIN and CAP_NET_RAW".into()))
        );
        assert_eq!(
            status(1000, "0000000000000000"),
            Some((State::Missing, "user 1000, without CAP_NET_ADMIN and CAP_NET_RAW".into()))
        );
        assert_eq!(status(0, "0000000000001000"), Some((State::Missing, "root, without CAP_NET_RAW".into())));
        assert_eq!(status(0, "zz"), None);
        assert_eq!(parse_status(""), None);
    }
}
