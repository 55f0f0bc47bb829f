//! Bodies of the fuzz targets, as plain functions. libFuzzer calls them under `targets/`; `tests/replay.rs` calls them on
//! stable Rust with the committed seeds and with seeded random inputs.
#![deny(unsafe_code)]

pub mod bench;
pub mod capi;
pub mod daemon;
pub mod dialogues;
pub mod emulate;
pub mod files;
pub mod gateway;
pub mod machines;
pub mod moves;
pub mod neighborhood;
pub mod queues;
pub mod scenario;
pub mod sealed;
pub mod secure;
pub mod transfer;
pub mod wire;

/// Fuzz target.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// Name of the target, of its file under `targets/` and of its folder under `seeds/`.
    pub name: &'static str,
    /// Body: accepts any bytes, and panics if an invariant is violated.
    pub run: fn(&[u8]),
}

/// All targets.
pub const TARGETS: &[Target] = &[
    Target { name: "ipv4", run: wire::ipv4 },
    Target { name: "ipv6", run: wire::ipv6 },
    Target { name: "tcp", run: wire::tcp },
    Target { name: "udp", run: wire::udp },
    Target { name: "icmp", run: wire::icmp },
    Target { name: "tpa", run: wire::tpa },
    Target { name: "dot11", run: wire::dot11 },
    Target { name: "aodv", run: wire::aodv },
    Target { name: "olsr", run: wire::olsr },
    Target { name: "dsr", run: wire::dsr },
    Target { name: "ncn", run: wire::ncn },
    Target { name: "handoff", run: wire::handoff },
    Target { name: "dproxy", run: wire::dproxy },
    Target { name: "dproxy_frame", run: wire::dproxy_frame },
    Target { name: "dproxy_tunnel", run: wire::dproxy_tunnel },
    Target { name: "arq_frame", run: wire::arq_frame },
    Target { name: "arp", run: wire::arp },
    Target { name: "ethernet", run: wire::ethernet },
    Target { name: "flow_packet", run: emulate::flow_packet },
    Target { name: "watch_request", run: emulate::watch_request },
    Target { name: "tcp_endpoint", run: machines::tcp_endpoint },
    Target { name: "host_stack", run: machines::host_stack },
    Target { name: "snoop", run: machines::snoop },
    Target { name: "mtcp", run: machines::mtcp },
    Target { name: "nack", run: machines::nack },
    Target { name: "split", run: machines::split },
    Target { name: "arq", run: machines::arq },
    Target { name: "dproxy_machine", run: machines::dproxy_machine },
    Target { name: "dproxy_opaque", run: machines::dproxy_opaque },
    Target { name: "tunnel", run: machines::tunnel },
    Target { name: "handoff_machine", run: machines::handoff_machine },
    Target { name: "tpa_endpoint", run: machines::tpa_endpoint },
    Target { name: "tpa_listener", run: machines::tpa_listener },
    Target { name: "aodv_machine", run: machines::aodv_machine },
    Target { name: "olsr_machine", run: machines::olsr_machine },
    Target { name: "dsr_machine", run: machines::dsr_machine },
    Target { name: "neighborhood_red_machine", run: machines::neighborhood_red_machine },
    Target { name: "survey", run: neighborhood::survey },
    Target { name: "notice_frame", run: neighborhood::notice_frame },
    Target { name: "nfqueue", run: queues::nfqueue },
    Target { name: "qdisc", run: queues::qdisc },
    Target { name: "moved_state", run: moves::moved },
    Target { name: "mac", run: machines::mac },
    Target { name: "receiver", run: machines::receiver },
    Target { name: "announce", run: machines::announce },
    Target { name: "bench_parameters", run: bench::bench_parameters },
    Target { name: "bench_results", run: bench::bench_results },
    Target { name: "bench_states", run: bench::bench_states },
    Target { name: "capi", run: capi::capi },
    Target { name: "daemon_file", run: daemon::daemon_file },
    Target { name: "daemon_journal", run: daemon::daemon_journal },
    Target { name: "metrics_http", run: daemon::metrics_http },
    Target { name: "ns_movements", run: files::ns_movements },
    Target { name: "bonnmotion", run: files::bonnmotion },
    Target { name: "sumo", run: files::sumo },
    Target { name: "gpx", run: files::gpx },
    Target { name: "csv_movements", run: files::csv_movements },
    Target { name: "csv", run: files::csv },
    Target { name: "rate_trace", run: files::rate_trace },
    Target { name: "packetdrill", run: dialogues::packetdrill },
    Target { name: "gateway_messages", run: gateway::gateway_messages },
    Target { name: "socks", run: gateway::socks },
    Target { name: "transfer_frame", run: transfer::transfer_frame },
    Target { name: "transfer_receiver", run: transfer::transfer_receiver },
    Target { name: "secure_message", run: secure::secure_message },
    Target { name: "secure_opener", run: secure::secure_opener },
    Target { name: "secure_answerer", run: secure::secure_answerer },
    Target { name: "secure_datagram", run: secure::secure_datagram },
    Target { name: "sealed_host", run: sealed::sealed_host },
    Target { name: "secure_files", run: secure::secure_files },
    Target { name: "scenario", run: scenario::scenario },
    Target { name: "world", run: scenario::world },
];
