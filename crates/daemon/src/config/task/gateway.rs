//! Tasks of gateways between TCP and TPA.

use super::super::keys::{KindKey, gateway as keys, proxy, split};
use super::super::values;
use super::{in_path, secret};
use crate::rules::{ConnectionMatch, DivertedConnections, HandshakeQueue};
use crate::subnet::Subnet;
use hopline_config::schema::Section;
use hopline_config::source::Problem;
use hopline_linux::transparent::LegOptions;
use hopline_middlebox::announce::{self, Role};
use hopline_middlebox::diversion::Diversion;
use hopline_middlebox::gateway::destination::{Destination, Rule};
use hopline_middlebox::gateway::key::{Key, Name, Peer};
use hopline_middlebox::gateway::{Allowed, EntranceConfig, ExitConfig, ListenerConfig, Transport};
use std::fmt::Display;
use std::net::SocketAddr;
use std::str::FromStr;

/// Entrance of a gateway, and the connections that are diverted to it.
#[derive(Clone, Debug, PartialEq)]
pub struct EntranceTask {
    /// Incoming interface of diverted connections; `None`: no connection is diverted.
    pub divert: Option<String>,
    /// Destinations of diverted connections; empty: all.
    pub destinations: Vec<Subnet>,
    /// Destination ports of diverted connections; empty: all.
    pub ports: Vec<u16>,
    /// Diversion to the listener.
    pub diversion: Diversion,
    /// Discovery of hosts that support TPA; `None`: all hosts are reached through the exit.
    pub announce: Option<announce::Config>,
    /// Configuration of the entrance.
    pub config: EntranceConfig,
}

/// Exit of a gateway.
#[derive(Clone, Debug, PartialEq)]
pub struct ExitTask {
    /// Announcement that the hosts behind it support TPA; `None`: nothing is announced.
    pub announce: Option<announce::Config>,
    /// Configuration of the exit.
    pub config: ExitConfig,
}

/// Port of the listener for diverted connections of the first proxy of a file.
const FIRST_PORT: u16 = 7070;
/// NFQUEUE for SYNs of diverted connections, of the first proxy of a file. Announcements have another queue.
const FIRST_QUEUE: u16 = 27_735;

impl EntranceTask {
    pub(super) fn resolve(section: &Section<'_>, number: u16) -> Result<Self, Problem> {
        let kind = KindKey::Gateway;
        let port = section.integer_as(split::LISTEN_PORT.name).unwrap_or(FIRST_PORT + number);
        let divert = section
            .word(keys::DIVERT.name)
            .map(|name| values::interface(section, keys::DIVERT.name, name))
            .transpose()?;
        let mut ways = forwards(section)?;
        ways.extend(socks(section)?);
        if divert.is_some() {
            let listeners = values::diverted_to(port).into_iter();
            ways.extend(listeners.map(|listen| ListenerConfig::Transparent { listen }));
        }
        let Some(first) = ways.first().cloned() else {
            return Err(Problem::new("a gateway by which nothing comes")
                .at(section.origin)
                .help("add forward = [\"127.0.0.1:8080 = server.example:80\"], socks = \"127.0.0.1:1080\" or divert = \"eth1\""));
        };
        let exit: Destination =
            required(kind, section, keys::EXIT.name, "address or name with a port", "192.0.2.7:7172")?;
        let name: Name = required(kind, section, keys::IDENTITY.name, "name", "drone-7")?;
        let key = Key::new(&secret::key(kind, section)?);
        let mut config = EntranceConfig { listeners: ways, ..EntranceConfig::new(first, exit, name, key) };
        config.transport = transport(section)?;
        if section.word(keys::FALLBACK.key.name).is_some() {
            let mut fallback = config.fallback();
            section.set_if_given(keys::FALLBACK, &mut fallback);
            config.fallback = Some(fallback);
        }
        config.allowed = values::parsed_list(section, keys::ALLOWED.name, "rule", "10.0.0.0/8 80-443")?;
        section.set_if_given(keys::SOURCES, &mut config.source_address);
        for (key, field) in [
            (keys::FALLBACK_AFTER_S, &mut config.fallback_after),
            (keys::RETRY_AFTER_S, &mut config.retry_after),
            (keys::RESET_AFTER_S, &mut config.reset_after),
            (keys::MAX_WAIT_S, &mut config.max_wait),
            (split::CONNECT_TIMEOUT_S, &mut config.connect_timeout),
        ] {
            *field = values::seconds(section, key.name).unwrap_or(*field);
        }
        config.spare_connections =
            section.integer_u32(keys::SPARE_CONNECTIONS.name).unwrap_or(config.spare_connections);
        config.tcp = leg(section)?;
        config.max_connections =
            section.integer_u32(split::MAX_CONNECTIONS.name).unwrap_or(config.max_connections);
        config.buffer = section.integer_u32(split::BUFFER_BYTES.name).unwrap_or(config.buffer);
        config.validate().map_err(|error| wrong(section, error))?;
        let announce = announce(section, Role::Client, number)?;
        if announce.is_some() && config.transport.encrypts() && !config.may_fall_back_unencrypted() {
            let wrong =
                "announce has connections to other hosts go by TCP, in clear, beside an encrypted trunk";
            return Err(Problem::new(wrong)
                .at(section.origin_of(keys::ANNOUNCE.name))
                .help("leave out announce, or add fallback = \"tcp\" if that is meant"));
        }
        Ok(Self {
            divert,
            destinations: values::parsed_list(section, keys::DESTINATIONS.name, "network", "10.1.0.0/16")?,
            ports: in_path::ports(section),
            diversion: Diversion {
                queue: section.integer_as(keys::DIVERT_QUEUE.name).unwrap_or(FIRST_QUEUE + number),
                mark: 0,
                port,
            },
            announce,
            config,
        })
    }

    /// Sets the mark that diverts connections to this machine.
    pub(super) const fn set_mark(&mut self, mark: u16) {
        self.diversion.mark = mark;
    }

    /// Returns the diversion of connections. `None` if no connection is diverted.
    pub(crate) fn diverted(&self) -> Option<Diversion> {
        self.divert.is_some().then_some(self.diversion)
    }

    pub(super) fn announced(&self) -> Option<HandshakeQueue> {
        self.announce.as_ref().map(announced)
    }

    /// Returns the transparently captured connections.
    pub(super) fn captured(&self) -> Vec<DivertedConnections> {
        let Self { divert: Some(interface), destinations, ports, diversion, .. } = self else {
            return Vec::new();
        };
        let calls = ConnectionMatch::ArrivingOn {
            interface: interface.clone(),
            sources: Vec::new(),
            destinations: destinations.clone(),
        };
        let Diversion { port, queue, .. } = *diversion;
        vec![DivertedConnections { port, connections: calls, ports: ports.clone(), queue }]
    }
}

impl ExitTask {
    pub(super) fn resolve(section: &Section<'_>, number: u16) -> Result<Self, Problem> {
        Ok(Self { announce: announce(section, Role::Server, number)?, config: exit(section)? })
    }

    pub(super) fn announced(&self) -> Option<HandshakeQueue> {
        self.announce.as_ref().map(announced)
    }
}

/// Returns the discovery (client) or the announcement (server) of hosts that support TPA.
fn announce(section: &Section<'_>, role: Role, number: u16) -> Result<Option<announce::Config>, Problem> {
    let Some(name) = section.word(keys::ANNOUNCE.name) else { return Ok(None) };
    let interface = values::interface(section, keys::ANNOUNCE.name, name)?;
    Ok(Some(announce::Config::new(role, interface, in_path::queue(section, number))))
}

/// Returns the queue of TCP handshakes for the service of this configuration.
fn announced(config: &announce::Config) -> HandshakeQueue {
    HandshakeQueue { queue: config.queue, interface: config.interface.clone(), role: config.machine.role }
}

/// Returns the configuration of the exit in a section.
fn exit(section: &Section<'_>) -> Result<ExitConfig, Problem> {
    let mut config = ExitConfig::new(peers(section)?);
    config.listen = values::parsed(section, keys::LISTEN.name, "address with a port", "0.0.0.0:7172")?
        .unwrap_or(config.listen);
    let allowed: Vec<Rule> = values::parsed_list(section, keys::ALLOWED.name, "rule", "10.0.0.0/8 80-443")?;
    if !allowed.is_empty() {
        config.allowed = Allowed::Listed(allowed);
    }
    section.set_if_given(keys::SOURCES, &mut config.source_address);
    config.connect_timeout =
        values::seconds(section, split::CONNECT_TIMEOUT_S.name).unwrap_or(config.connect_timeout);
    config.max_wait = values::seconds(section, keys::MAX_WAIT_S.name).unwrap_or(config.max_wait);
    config.transport = transport(section)?;
    config.tcp = leg(section)?;
    config.max_connections =
        section.integer_u32(split::MAX_CONNECTIONS.name).unwrap_or(config.max_connections);
    config.max_trunks = section.integer_u32(keys::MAX_TRUNKS.name).unwrap_or(config.max_trunks);
    config.buffer = section.integer_u32(split::BUFFER_BYTES.name).unwrap_or(config.buffer);
    config.validate().map_err(|error| wrong(section, error))?;
    Ok(config)
}

fn forwards(section: &Section<'_>) -> Result<Vec<ListenerConfig>, Problem> {
    let origin = section.origin_of(keys::FORWARD.name);
    let forward = |text: &str| {
        let parsed = text.split_once('=').and_then(|(listen, to)| {
            Some(ListenerConfig::Forward {
                listen: listen.trim().parse().ok()?,
                to: to.trim().parse::<Destination>().ok()?,
            })
        });
        parsed.ok_or_else(|| {
            Problem::new(format!("\"{text}\" is no forward"))
                .at(origin)
                .help("where it listens = where it leads: \"127.0.0.1:8080 = server.example:80\"")
        })
    };
    section.texts(keys::FORWARD.name).into_iter().map(forward).collect()
}

fn socks(section: &Section<'_>) -> Result<Option<ListenerConfig>, Problem> {
    let listen: Option<SocketAddr> =
        values::parsed(section, keys::SOCKS.name, "address with a port", "127.0.0.1:1080")?;
    let Some(listen) = listen else { return Ok(None) };
    let origin = section.origin_of(keys::SOCKS_LOGIN_FILE.name);
    let login = |path: &str| secret::login(path, origin);
    let login = section.word(keys::SOCKS_LOGIN_FILE.name).map(login).transpose()?;
    let way = ListenerConfig::Socks { listen, login };
    if way.is_open_relay() {
        return Err(Problem::new(format!("any host that reaches {listen} could have connections made to anywhere"))
            .at(section.origin_of(keys::SOCKS.name))
            .help("socks = \"127.0.0.1:1080\", or add socks_login_file = \"/etc/hopline/socks.login\", whose first line is USER:PASSWORD"));
    }
    Ok(Some(way))
}

fn peers(section: &Section<'_>) -> Result<Vec<Peer>, Problem> {
    let origin = section.origin_of(keys::PEERS.name);
    let peer = |text: &str| {
        let wrong = || {
            Problem::new(format!("\"{text}\" is no peer"))
                .at(origin)
                .help("a name = the file of its key: \"drone-7 = /etc/hopline/drone-7.key\"")
        };
        let (name, path) = text.split_once('=').ok_or_else(wrong)?;
        let name = name.trim().parse().map_err(|_| wrong())?;
        Ok(Peer { name, key: Key::new(&secret::read_secret(path.trim(), origin)?) })
    };
    let peers: Vec<Peer> = section.texts(keys::PEERS.name).into_iter().map(peer).collect::<Result<_, _>>()?;
    if let Some(twice) =
        (1..peers.len()).find(|&at| peers[..at].iter().any(|peer| peer.name == peers[at].name))
    {
        return Err(Problem::new(format!("two peers are called \"{}\"", peers[twice].name))
            .at(origin)
            .help("each entrance has a name of its own: its `identity`"));
    }
    if peers.is_empty() {
        let example = "[\"drone-7 = /etc/hopline/drone-7.key\"]";
        return Err(values::missing(section, keys::PEERS.name, KindKey::GatewayExit.word(), example));
    }
    Ok(peers)
}

fn required<T: FromStr>(
    kind: KindKey,
    section: &Section<'_>,
    key: &str,
    what: &str,
    example: &str,
) -> Result<T, Problem> {
    values::parsed(section, key, what, example)?
        .ok_or_else(|| values::missing(section, key, kind.word(), &format!("\"{example}\"")))
}

fn transport(section: &Section<'_>) -> Result<Transport, Problem> {
    let mut carrier = keys::Carrier::default();
    section.set_if_given(keys::TRANSPORT, &mut carrier);
    let mut transport = match carrier {
        keys::Carrier::Tpa => Transport::tpa(),
        keys::Carrier::TpaWide => Transport::tpa_wide(),
    };
    match (&mut transport, section.integer_as(keys::CWND_MAX.name)) {
        (_, None) => {}
        (Transport::Tpa(config), Some(cwnd_max)) => *config = config.with_cwnd_max(cwnd_max),
        (Transport::TpaWide(_), Some(_)) => {
            return Err(Problem::new("TPA-wide has no largest window in segments")
                .at(section.origin_of(keys::CWND_MAX.name))
                .help("leave out cwnd_max, or transport = \"tpa-wide\""));
        }
    }
    Ok(transport)
}

fn leg(section: &Section<'_>) -> Result<LegOptions, Problem> {
    let congestion = values::congestion_control(section, keys::CONGESTION.name)?;
    Ok(LegOptions::default().with_congestion(congestion))
}

fn wrong(section: &Section<'_>, error: impl Display) -> Problem {
    Problem::new(error.to_string()).at(section.origin_of(proxy::KIND.key.name))
}
