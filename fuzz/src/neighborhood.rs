//! Input of a node with Neighborhood RED: messages of its driver, and frames of any sender.

use hopline_middlebox::neighborhood::survey::Survey;
use hopline_middlebox::neighborhood::{Frame, FrameContent, NoReading};
use hopline_wire::ncn::{Notice, PORT};

/// Message of nl80211, from its command on. A survey has the counters of the driver, and is rejected if one is missing.
pub fn survey(data: &[u8]) {
    let Ok(survey) = Survey::parse(data) else { return };
    assert_eq!(Survey::parse(data), Ok(survey));
    let received = survey.receiving_own_ms.or(survey.receiving_ms);
    let parts = [survey.time_ms, survey.busy_ms, received, survey.transmitting_ms];
    match survey.reading() {
        Ok(reading) => {
            let read = [reading.time_ms, reading.busy_ms, reading.receiving_ms, reading.transmitting_ms];
            assert_eq!((read.map(Some), reading.channel), (parts, survey.frequency_mhz));
        }
        Err(why) => assert_eq!((why, parts.contains(&None)), (NoReading::Incomplete, true)),
    }
}

/// Beginning of an Ethernet frame. The source is never a group address, and a notice in it can be encoded again.
pub fn notice_frame(data: &[u8]) {
    let Some(Frame { from, content: says }) = Frame::of(data, PORT) else { return };
    assert_eq!((&from.0[..], from.0[0] & 1), (&data[6..12], 0));
    if let FrameContent::Notice { notice, .. } = says {
        let mut bytes = Vec::new();
        notice.emit(&mut bytes);
        assert_eq!(Notice::parse(&bytes), Ok(notice));
        assert!(data.windows(4).any(|part| part == &bytes[4..8]), "it says what is there");
    }
}
