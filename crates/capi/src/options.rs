//! Socket options.

use crate::abi::tpa_option::{self, *};
use crate::abi::tpa_protocol;
use crate::error::{Error, Result};
use crate::identity::{Identity, OwnKey, PeerCheck, UnknownPeers};
use crate::key_files;
use crate::protocol::{Parameters, Protocol};
use hopline_secure::keys::NoFingerprint;
use hopline_streams::wide::{Fingerprint, PreSharedKey, TransportConfig};
use hopline_streams::{fallback, tpa};
use libc::c_int;
use std::ffi::OsStr;
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt;
use std::path::PathBuf;
use std::str;
use std::time::Duration;

/// Values of all options of a socket.
#[derive(Clone, Debug)]
pub(crate) struct Settings {
    pub(crate) identity: Identity,
    pub(crate) blocking: BlockingMode,
    pub(crate) connect: Option<Duration>,
    pub(crate) receive: Option<Duration>,
    pub(crate) send: Option<Duration>,
    pub(crate) close: Option<Duration>,
    pub(crate) idle_timeout: Option<Duration>,
    pub(crate) protocol: Protocol,
    /// Largest window of TPA as published, segments.
    pub(crate) cwnd_max: Option<u8>,
    pub(crate) no_delay: bool,
}

/// Largest window of the paper's measurements, segments (TPA §3.5).
const CWND_MAX: u8 = 3;

impl Default for Settings {
    fn default() -> Self {
        let silence = TransportConfig::DEFAULT.silence().limit();
        Self {
            identity: Identity::default(),
            blocking: BlockingMode::Blocking,
            connect: None,
            receive: None,
            send: None,
            close: None,
            idle_timeout: silence.map(|limit| Duration::from_nanos(limit.as_nanos())),
            protocol: Protocol::default(),
            cwnd_max: None,
            no_delay: false,
        }
    }
}

/// Blocking mode of a socket.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BlockingMode {
    Blocking,
    NonBlocking,
}

/// Value of an option.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Value {
    Number(c_int),
    Text(Vec<u8>),
}

/// Returns the option with this number.
pub(crate) fn option(number: c_int) -> Result<tpa_option> {
    const ALL: [tpa_option; 18] = [
        TPA_PSK,
        TPA_PSK_FILE,
        TPA_KEY_FILE,
        TPA_KNOWN_PEERS,
        TPA_PEER_NAME,
        TPA_TRUST,
        TPA_TRUST_ON_FIRST_USE,
        TPA_NONBLOCK,
        TPA_CONNECT_TIMEOUT,
        TPA_RECV_TIMEOUT,
        TPA_SEND_TIMEOUT,
        TPA_CLOSE_TIMEOUT,
        TPA_SILENCE,
        TPA_ERROR,
        TPA_FINGERPRINT,
        TPA_PROTOCOL,
        TPA_CWND_MAX,
        TPA_NODELAY,
    ];
    let found = ALL.into_iter().find(|option| *option as c_int == number);
    found.ok_or_else(|| Error::new(libc::ENOPROTOOPT, format!("there is no option {number}")))
}

impl Settings {
    /// Sets an option to the value in `bytes`. Files are read, and errors in them reported, at once.
    pub(crate) fn set(&mut self, option: tpa_option, bytes: &[u8]) -> Result<()> {
        let identity = &mut self.identity;
        match option {
            TPA_PSK => identity.own_key = Some(OwnKey::Shared(shared(bytes)?)),
            TPA_PSK_FILE => identity.own_key = Some(OwnKey::Shared(key_files::load_shared(&path(bytes)?)?)),
            TPA_KEY_FILE => identity.own_key = Some(OwnKey::Private(key_files::load_private(&path(bytes)?)?)),
            TPA_KNOWN_PEERS => {
                let path = path(bytes)?;
                key_files::load_peers(&path)?;
                identity.known_peers = Some(path);
            }
            TPA_PEER_NAME => {
                let name = text(bytes)?.parse();
                identity.peer_name =
                    Some(name.map_err(|error| invalid(format!("no name of a peer: {error}")))?);
            }
            TPA_TRUST => identity.trust = Some(fingerprint(bytes)?),
            TPA_TRUST_ON_FIRST_USE => {
                let believe = number(bytes)? != 0;
                identity.unknown_peers =
                    if believe { UnknownPeers::TrustOnFirstUse } else { UnknownPeers::Reject };
            }
            TPA_NONBLOCK => {
                self.blocking =
                    if number(bytes)? != 0 { BlockingMode::NonBlocking } else { BlockingMode::Blocking };
            }
            TPA_CONNECT_TIMEOUT => self.connect = duration(bytes)?,
            TPA_RECV_TIMEOUT => self.receive = duration(bytes)?,
            TPA_SEND_TIMEOUT => self.send = duration(bytes)?,
            TPA_CLOSE_TIMEOUT => self.close = duration(bytes)?,
            TPA_SILENCE => self.idle_timeout = duration(bytes)?,
            TPA_PROTOCOL => self.protocol = protocol(number(bytes)?)?,
            TPA_CWND_MAX => self.cwnd_max = Some(window(number(bytes)?)?),
            TPA_NODELAY => self.no_delay = number(bytes)? != 0,
            TPA_ERROR | TPA_FINGERPRINT => {
                return Err(Error::new(libc::ENOPROTOOPT, "this option is for tpa_getsockopt only"));
            }
        }
        Ok(())
    }

    /// Returns the value of an option, except `TPA_ERROR`, which belongs to the socket.
    pub(crate) fn get(&self, option: tpa_option) -> Result<Value> {
        let identity = &self.identity;
        let text = |set: Option<&[u8]>| {
            let unset = || Error::new(libc::ENOENT, "this option is not set");
            set.map(|set| Value::Text(set.to_vec())).ok_or_else(unset)
        };
        match option {
            TPA_PSK | TPA_PSK_FILE | TPA_KEY_FILE | TPA_ERROR => Err(Error::new(
                libc::ENOPROTOOPT,
                "keys can be set, and not read; TPA_FINGERPRINT says which it is",
            )),
            TPA_KNOWN_PEERS => text(identity.known_peers.as_ref().map(|path| path.as_os_str().as_bytes())),
            TPA_PEER_NAME => text(identity.peer_name.as_ref().map(|name| name.as_str().as_bytes())),
            TPA_TRUST => text(identity.trust.map(|trust| trust.to_string()).as_ref().map(String::as_bytes)),
            TPA_FINGERPRINT => identity.fingerprint().map(|text| Value::Text(text.into_bytes())),
            TPA_TRUST_ON_FIRST_USE => {
                Ok(Value::Number((identity.unknown_peers == UnknownPeers::TrustOnFirstUse).into()))
            }
            TPA_NONBLOCK => Ok(Value::Number((self.blocking == BlockingMode::NonBlocking).into())),
            TPA_CONNECT_TIMEOUT => Ok(milliseconds(self.connect)),
            TPA_RECV_TIMEOUT => Ok(milliseconds(self.receive)),
            TPA_SEND_TIMEOUT => Ok(milliseconds(self.send)),
            TPA_CLOSE_TIMEOUT => Ok(milliseconds(self.close)),
            TPA_SILENCE => Ok(milliseconds(self.idle_timeout)),
            TPA_PROTOCOL => Ok(Value::Number(match self.protocol {
                Protocol::Wide => tpa_protocol::TPA_PROTOCOL_WIDE,
                Protocol::Tpa => tpa_protocol::TPA_PROTOCOL_TPA,
                Protocol::TpaOrTcp => tpa_protocol::TPA_PROTOCOL_TPA_OR_TCP,
            } as c_int)),
            TPA_CWND_MAX => Ok(Value::Number(self.cwnd_max.unwrap_or(CWND_MAX).into())),
            TPA_NODELAY => Ok(Value::Number(self.no_delay.into())),
        }
    }

    /// Returns the parameters of a connection to `peer`, and the check of its key.
    pub(crate) fn to_connect(&self, peer: SocketAddr) -> Result<(Parameters, PeerCheck)> {
        if self.protocol != Protocol::Wide {
            return Ok((self.unencrypted()?, PeerCheck::None));
        }
        let (mut config, check) = self.identity.to_connect(peer)?;
        let transport = config.transport().with_silence_limit(self.idle_timeout());
        config = config.with_transport(transport);
        Ok((Parameters::Wide(Box::new(config)), check))
    }

    /// Returns the parameters of a listener.
    pub(crate) fn to_listen(&self) -> Result<Parameters> {
        if self.protocol != Protocol::Wide {
            return self.unencrypted();
        }
        let config = self.identity.to_listen()?;
        let transport = config.transport().with_silence_limit(self.idle_timeout());
        let config = config.with_transport(transport);
        Ok(Parameters::Wide(Box::new(config)))
    }

    /// Returns the parameters of TPA as published, which has no keys.
    fn unencrypted(&self) -> Result<Parameters> {
        if self.identity.has_key() {
            let what = "TPA as published and TCP have no keys, and are not encrypted: keys are for TPA_PROTOCOL_WIDE";
            return Err(invalid(what));
        }
        let config = tpa::config(self.cwnd_max.unwrap_or(CWND_MAX)).with_silence_limit(self.idle_timeout());
        Ok(match self.protocol {
            Protocol::TpaOrTcp => Parameters::TpaOrTcp(fallback::Config::default().with_tpa(config)),
            Protocol::Tpa | Protocol::Wide => Parameters::Tpa(config),
        })
    }

    fn idle_timeout(&self) -> Option<hopline_core::Duration> {
        let nanos = |limit: Duration| u64::try_from(limit.as_nanos()).unwrap_or(u64::MAX);
        self.idle_timeout.map(|limit| hopline_core::Duration::from_nanos(nanos(limit)))
    }

    /// Returns the likely reasons for a connection that was not opened in time.
    pub(crate) fn timeout_reasons(&self) -> &'static str {
        match (self.protocol, &self.identity.own_key) {
            (Protocol::Wide, Some(OwnKey::Shared(_))) => {
                "no answer in time: no program answers TPA-wide there, or it has another shared key"
            }
            (Protocol::Wide, _) => "no answer in time: no program answers TPA-wide there",
            (Protocol::Tpa, _) => "no answer in time: no program answers TPA there",
            (Protocol::TpaOrTcp, _) => "no answer in time, by TPA or by TCP",
        }
    }

    pub(crate) fn is_nonblocking(&self) -> bool {
        self.blocking == BlockingMode::NonBlocking
    }
}

fn protocol(number: c_int) -> Result<Protocol> {
    const OFFERED: [(tpa_protocol, Protocol); 3] = [
        (tpa_protocol::TPA_PROTOCOL_WIDE, Protocol::Wide),
        (tpa_protocol::TPA_PROTOCOL_TPA, Protocol::Tpa),
        (tpa_protocol::TPA_PROTOCOL_TPA_OR_TCP, Protocol::TpaOrTcp),
    ];
    let found = OFFERED.into_iter().find(|(offered, _)| *offered as c_int == number);
    found.map(|(_, protocol)| protocol).ok_or_else(|| {
        invalid(format!("{number} is no protocol to set; TPA_PROTOCOL_TPA_OR_TCP falls back to TCP"))
    })
}

/// Parses a window, 1 to 12 segments, the size of TPA's block.
fn window(segments: c_int) -> Result<u8> {
    let fitting = u8::try_from(segments).ok().filter(|segments| (1..=12).contains(segments));
    fitting.ok_or_else(|| invalid(format!("a window has 1 to 12 segments, and not {segments}")))
}

fn shared(bytes: &[u8]) -> Result<PreSharedKey> {
    let key: [u8; 32] = bytes
        .try_into()
        .map_err(|_| invalid(format!("a shared key has 32 bytes, and not {}", bytes.len())))?;
    if key == [0; 32] {
        return Err(invalid("zeros are no secret"));
    }
    Ok(PreSharedKey::new(key))
}

fn path(bytes: &[u8]) -> Result<PathBuf> {
    let bytes = unterminated(bytes);
    if bytes.is_empty() || bytes.contains(&0) {
        return Err(invalid("no path of a file: it is empty, or has a zero in it"));
    }
    Ok(OsStr::from_bytes(bytes).into())
}

fn text(bytes: &[u8]) -> Result<&str> {
    str::from_utf8(unterminated(bytes)).map_err(|_| invalid("no text: it is not UTF-8"))
}

/// Returns the text without its final NUL, if it has one.
fn unterminated(bytes: &[u8]) -> &[u8] {
    bytes.strip_suffix(&[0]).unwrap_or(bytes)
}

/// Parses a fingerprint: eight groups of four hexadecimal digits.
fn fingerprint(bytes: &[u8]) -> Result<Fingerprint> {
    text(bytes)?.parse().map_err(|error: NoFingerprint| invalid(error.to_string()))
}

fn number(bytes: &[u8]) -> Result<c_int> {
    let bytes = bytes.try_into();
    bytes.map(c_int::from_ne_bytes).map_err(|_| invalid("this option takes an int"))
}

fn duration(bytes: &[u8]) -> Result<Option<Duration>> {
    let ms = u32::try_from(number(bytes)?)
        .map_err(|_| invalid("this option takes milliseconds, up to 2147483647"))?;
    Ok((ms > 0).then(|| Duration::from_millis(ms.into())))
}

fn milliseconds(duration: Option<Duration>) -> Value {
    let ms = duration.map_or(0, |duration| duration.as_millis());
    Value::Number(c_int::try_from(ms).unwrap_or(c_int::MAX))
}

fn invalid(message: impl Into<String>) -> Error {
    Error::new(libc::EINVAL, message)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn options_round_trip() {
        let mut settings = Settings::default();
        for (option, bytes, value) in [
            (TPA_NONBLOCK, &1i32.to_ne_bytes()[..], Value::Number(1)),
            (TPA_RECV_TIMEOUT, &250i32.to_ne_bytes(), Value::Number(250)),
            (TPA_CLOSE_TIMEOUT, &0i32.to_ne_bytes(), Value::Number(0)),
            (TPA_SILENCE, &3000i32.to_ne_bytes(), Value::Number(3000)),
            (TPA_PEER_NAME, b"drone-3\0", Value::Text(b"drone-3".to_vec())),
            (TPA_PROTOCOL, &2i32.to_ne_bytes(), Value::Number(2)),
            (TPA_CWND_MAX, &12i32.to_ne_bytes(), Value::Number(12)),
            (TPA_NODELAY, &7i32.to_ne_bytes(), Value::Number(1)),
        ] {
            settings.set(option, bytes).unwrap();
            assert_eq!(settings.get(option).unwrap(), value);
        }
        assert_eq!(settings.receive, Some(Duration::from_millis(250)));
    }

    #[test]
    fn invalid_values_are_rejected() {
        let mut settings = Settings::default();
        for (option, bytes) in [
            (TPA_PSK, &[7; 31][..]),
            (TPA_PSK, &[0; 32]),
            (TPA_NONBLOCK, &[1]),
            (TPA_RECV_TIMEOUT, &(-1i32).to_ne_bytes()),
            (TPA_TRUST, b"0123"),
            (TPA_PEER_NAME, b"two words"),
            (TPA_PROTOCOL, &3i32.to_ne_bytes()),
            (TPA_PROTOCOL, &(-1i32).to_ne_bytes()),
            (TPA_CWND_MAX, &0i32.to_ne_bytes()),
            (TPA_CWND_MAX, &13i32.to_ne_bytes()),
            (TPA_KEY_FILE, b""),
            (TPA_KNOWN_PEERS, b"a\0b"),
        ] {
            assert_eq!(settings.set(option, bytes).unwrap_err().errno, libc::EINVAL, "{option:?}");
        }
        assert_eq!(settings.get(TPA_PSK).unwrap_err().errno, libc::ENOPROTOOPT);
        assert_eq!(settings.get(TPA_TRUST).unwrap_err().errno, libc::ENOENT);
        for number in [0, -1, 19] {
            assert_eq!(option(number).unwrap_err().errno, libc::ENOPROTOOPT);
        }
    }

    #[test]
    fn a_fingerprint_is_parsed_in_any_case() {
        let mut settings = Settings::default();
        settings.set(TPA_TRUST, b"00AA-1111-2222-3333-4444-5555-6666-7777").unwrap();
        let lower = b"00aa-1111-2222-3333-4444-5555-6666-7777".to_vec();
        assert_eq!(settings.get(TPA_TRUST).unwrap(), Value::Text(lower));
    }
}
