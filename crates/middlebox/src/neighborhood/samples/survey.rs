//! Channel survey of a driver: `NL80211_CMD_GET_SURVEY` of linux/nl80211.h.

use super::{NoReading, Reading};
use hopline_linux::Error;
use hopline_linux::generic_netlink::{GENL_HEADER_LEN, GenericSocket};
use hopline_linux::netlink::{BadLength, attribute, attributes};

/// Commands and attributes of linux/nl80211.h.
const GET_SURVEY: u8 = 50;
const NEW_SURVEY_RESULTS: u8 = 51;
const ATTR_IFINDEX: u16 = 3;
const ATTR_SURVEY_INFO: u16 = 84;

/// `enum nl80211_survey_info`.
mod info {
    pub(super) const FREQUENCY: u16 = 1;
    pub(super) const NOISE: u16 = 2;
    pub(super) const IN_USE: u16 = 3;
    pub(super) const TIME: u16 = 4;
    pub(super) const TIME_BUSY: u16 = 5;
    pub(super) const TIME_EXT_BUSY: u16 = 6;
    pub(super) const TIME_RX: u16 = 7;
    pub(super) const TIME_TX: u16 = 8;
    pub(super) const TIME_SCAN: u16 = 9;
    pub(super) const TIME_BSS_RX: u16 = 11;
}

/// Survey of a channel. Times are in milliseconds since an arbitrary moment; `None` if the driver does not count them.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Survey {
    /// Centre frequency, in MHz.
    pub frequency_mhz: Option<u32>,
    /// Noise, in dBm.
    pub noise_dbm: Option<i8>,
    /// `true` if the radio is on the channel now.
    pub in_use: bool,
    /// Time on the channel.
    pub time_ms: Option<u64>,
    /// Time that the channel was sensed busy, by frames or by energy.
    pub busy_ms: Option<u64>,
    /// Time that the secondary channel was busy.
    pub secondary_busy_ms: Option<u64>,
    /// Time spent receiving frames with any destination.
    pub receiving_ms: Option<u64>,
    /// Time spent receiving frames for the own network.
    pub receiving_own_ms: Option<u64>,
    /// Time spent transmitting.
    pub transmitting_ms: Option<u64>,
    /// Time spent scanning.
    pub scanning_ms: Option<u64>,
}

/// Reason that a message is malformed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// The message is shorter than its header, or an attribute exceeds the message.
    Length,
    /// The length of an attribute's value does not match its type.
    Value,
    /// The message is not a survey of a channel.
    NoSurvey,
}

impl From<BadLength> for Malformed {
    fn from(_: BadLength) -> Self {
        Self::Length
    }
}

impl Survey {
    /// Parses a message of nl80211 from its command on. If an attribute occurs twice, the last counts, as in the kernel.
    ///
    /// # Errors
    /// The reason that the message is malformed.
    pub fn parse(message: &[u8]) -> Result<Self, Malformed> {
        let (&[command, ..], rest) =
            message.split_first_chunk::<GENL_HEADER_LEN>().ok_or(Malformed::Length)?;
        if command != NEW_SURVEY_RESULTS {
            return Err(Malformed::NoSurvey);
        }
        let mut survey = None;
        for attribute in attributes(rest) {
            if let (ATTR_SURVEY_INFO, nested) = attribute? {
                survey = Some(Self::of(nested)?);
            }
        }
        survey.ok_or(Malformed::NoSurvey)
    }

    fn of(nested: &[u8]) -> Result<Self, Malformed> {
        let mut survey = Self::default();
        for attribute in attributes(nested) {
            let (kind, value) = attribute?;
            let time = match kind {
                info::FREQUENCY => {
                    survey.frequency_mhz = Some(u32::from_ne_bytes(array(value)?));
                    continue;
                }
                info::NOISE => {
                    survey.noise_dbm = Some(i8::from_ne_bytes(array(value)?));
                    continue;
                }
                info::IN_USE => {
                    let [] = array(value)?;
                    survey.in_use = true;
                    continue;
                }
                info::TIME => &mut survey.time_ms,
                info::TIME_BUSY => &mut survey.busy_ms,
                info::TIME_EXT_BUSY => &mut survey.secondary_busy_ms,
                info::TIME_RX => &mut survey.receiving_ms,
                info::TIME_TX => &mut survey.transmitting_ms,
                info::TIME_SCAN => &mut survey.scanning_ms,
                info::TIME_BSS_RX => &mut survey.receiving_own_ms,
                // Unknown attributes, among them padding that aligns 64-bit times.
                _ => continue,
            };
            *time = Some(u64::from_ne_bytes(array(value)?));
        }
        Ok(survey)
    }

    /// Returns the counters for Neighborhood RED. The receive time covers the own network only, if the driver
    /// distinguishes it.
    ///
    /// # Errors
    /// [`NoReading::Incomplete`] if the driver does not count all of them.
    pub fn reading(&self) -> Result<Reading, NoReading> {
        let parts = || {
            Some(Reading {
                channel: self.frequency_mhz,
                time_ms: self.time_ms?,
                busy_ms: self.busy_ms?,
                receiving_ms: self.receiving_own_ms.or(self.receiving_ms)?,
                transmitting_ms: self.transmitting_ms?,
            })
        };
        parts().ok_or(NoReading::Incomplete)
    }
}

fn array<const LEN: usize>(value: &[u8]) -> Result<[u8; LEN], Malformed> {
    value.try_into().map_err(|_| Malformed::Value)
}

/// Requests surveys from the driver of an interface.
#[derive(Debug)]
pub(in super::super) struct SurveySocket {
    socket: GenericSocket,
    family: u16,
    /// Attribute that selects the interface.
    what: Vec<u8>,
}

impl SurveySocket {
    pub(super) fn open(interface: u32) -> Result<Self, Error> {
        let mut socket = GenericSocket::open()?;
        let family = socket.family("nl80211")?;
        Ok(Self { socket, family, what: attribute(ATTR_IFINDEX, &interface.to_ne_bytes()) })
    }

    /// Returns the reading of the channel in use.
    pub(super) fn read(&mut self) -> Result<Reading, NoReading> {
        let mut read = Err(NoReading::Nothing);
        self.socket
            .dump(self.family, GET_SURVEY, &self.what, |message| select(&mut read, Survey::parse(message)))
            .map_err(|_| NoReading::Nothing)?;
        read
    }
}

/// Selects the channel in use; if several are, the first.
fn select(read: &mut Result<Reading, NoReading>, survey: Result<Survey, Malformed>) {
    match (&read, survey) {
        (Err(_), Ok(survey)) if survey.in_use => *read = survey.reading(),
        (Err(NoReading::Nothing), Err(_)) => *read = Err(NoReading::Malformed),
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Returns a message as the kernel builds it: 64-bit times with padding before them, in a nested attribute with its
    /// flag.
    fn message(nested: &[Vec<u8>]) -> Vec<u8> {
        const NESTED: u16 = 1 << 15;
        let index = attribute(ATTR_IFINDEX, &3u32.to_ne_bytes());
        [&[NEW_SURVEY_RESULTS, 1, 0, 0][..], &index, &attribute(ATTR_SURVEY_INFO | NESTED, &nested.concat())]
            .concat()
    }

    fn time(kind: u16, ms: u64) -> Vec<u8> {
        const PAD: u16 = 10;
        [attribute(PAD, &[]), attribute(kind, &ms.to_ne_bytes())].concat()
    }

    fn whole() -> Vec<Vec<u8>> {
        vec![
            attribute(info::FREQUENCY, &2412u32.to_ne_bytes()),
            attribute(info::NOISE, &[(-95i8).cast_unsigned()]),
            attribute(info::IN_USE, &[]),
            time(info::TIME, 5000),
            time(info::TIME_BUSY, 3000),
            time(info::TIME_EXT_BUSY, 2000),
            time(info::TIME_RX, 1200),
            time(info::TIME_TX, 700),
            time(info::TIME_SCAN, 40),
        ]
    }

    #[test]
    fn a_survey_is_parsed() {
        let survey = Survey::parse(&message(&whole())).unwrap();
        let expected = Survey {
            frequency_mhz: Some(2412),
            noise_dbm: Some(-95),
            in_use: true,
            time_ms: Some(5000),
            busy_ms: Some(3000),
            secondary_busy_ms: Some(2000),
            receiving_ms: Some(1200),
            receiving_own_ms: None,
            transmitting_ms: Some(700),
            scanning_ms: Some(40),
        };
        assert_eq!(survey, expected);
        let reading = |receiving_ms| Reading {
            channel: Some(2412),
            time_ms: 5000,
            busy_ms: 3000,
            receiving_ms,
            transmitting_ms: 700,
        };
        assert_eq!(survey.reading(), Ok(reading(1200)));
        let own = [whole(), vec![time(info::TIME_BSS_RX, 300)]].concat();
        assert_eq!(Survey::parse(&message(&own)).unwrap().reading(), Ok(reading(300)));
    }

    #[test]
    fn a_driver_without_transmit_time_is_incomplete() {
        for missing in [info::TIME, info::TIME_BUSY, info::TIME_RX, info::TIME_TX] {
            let rest: Vec<_> = whole().into_iter().filter(|part| *part != time_like(part, missing)).collect();
            assert_eq!(rest.len(), 8);
            assert_eq!(Survey::parse(&message(&rest)).unwrap().reading(), Err(NoReading::Incomplete));
        }
    }

    /// Returns `part` if it is the time `kind`; otherwise another attribute.
    fn time_like(part: &[u8], kind: u16) -> Vec<u8> {
        if part.len() == 16 && part[6..8] == kind.to_ne_bytes() { part.to_vec() } else { Vec::new() }
    }

    #[test]
    fn the_channel_in_use_is_selected() {
        let other: Vec<_> = whole().into_iter().filter(|part| part.len() != 4).collect();
        let mut read = Err(NoReading::Nothing);
        for parts in [&other, &whole(), &other] {
            select(&mut read, Survey::parse(&message(parts)));
        }
        assert_eq!(read.unwrap().time_ms, 5000);
        let mut none = Err(NoReading::Nothing);
        select(&mut none, Survey::parse(&message(&other)));
        assert_eq!(none, Err(NoReading::Nothing));
        select(&mut none, Err(Malformed::Length));
        assert_eq!(none, Err(NoReading::Malformed));
    }

    #[test]
    fn hostile_messages_are_rejected_with_a_reason() {
        let why = |message: &[u8]| Survey::parse(message).unwrap_err();
        assert_eq!((why(&[]), why(&[51, 1, 0])), (Malformed::Length, Malformed::Length));
        assert_eq!((why(&[51, 1, 0, 0]), why(&[50, 1, 0, 0])), (Malformed::NoSurvey, Malformed::NoSurvey));
        for kind in [info::FREQUENCY, info::NOISE, info::IN_USE, info::TIME, info::TIME_TX, info::TIME_BSS_RX]
        {
            assert_eq!(why(&message(&[attribute(kind, &[1, 2, 3])])), Malformed::Value, "{kind}");
        }
        // An attribute of length 3, one that ends behind its nest, and a rest that is no header.
        for nested in [vec![3, 0, 1, 0], vec![200, 0, 1, 0], vec![0; 4], vec![1]] {
            assert_eq!(why(&message(&[nested])), Malformed::Length);
        }
        let long = message(&[vec![0; 8]]);
        assert_eq!(why(&long[..long.len() - 5]), Malformed::Length);
    }

    proptest! {
        #[test]
        fn arbitrary_bytes_do_not_panic(bytes in prop::collection::vec(any::<u8>(), 0..120)) {
            let message = [&[NEW_SURVEY_RESULTS, 1, 0, 0][..], &attribute(ATTR_SURVEY_INFO, &bytes)].concat();
            let _ = Survey::parse(&bytes);
            let _ = Survey::parse(&message).map(|survey| survey.reading());
        }
    }
}
