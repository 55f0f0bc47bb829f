//! Bursts, and which packets go unacknowledged.

use super::errors::first_problem;
use super::*;
use hopline_radio::mac::config as mac;

fn mac(settings: &[&str]) -> mac::Config {
    spec(CHAIN, settings).radio.expect("a wireless network").mac
}

#[test]
fn every_packet_is_unacknowledged_unless_its_length_excludes_it() {
    let bytes = |settings: &[&str]| mac(&[&["mac.ack_policy=no-ack"], settings].concat()).no_ack_bytes;
    assert_eq!(bytes(&[]), 0..=u32::MAX);
    assert_eq!(bytes(&["mac.no_ack_min_bytes=200"]), 200..=u32::MAX);
    assert_eq!(bytes(&["mac.no_ack_min_bytes=40", "mac.no_ack_max_bytes=60"]), 40..=60);
}

#[test]
fn bursts_are_off_without_a_limit() {
    assert_eq!(mac(&[]).burst_limit, None);
    assert_eq!(mac(&["mac.burst_limit_us=1500"]).burst_limit, Some(Duration::from_micros(1500)));
    for policy in ["normal", "no-ack", "block-ack"] {
        let policy = format!("mac.ack_policy={policy}");
        assert!(mac(&[&policy, "mac.burst_limit_us=1500"]).burst_limit.is_some(), "{policy}");
    }
}

#[test]
fn madwifi_is_an_access_point_with_one_station_by_default() {
    let madwifi = |settings: &[&str]| mac(&[&["radio.preset=madwifi"], settings].concat());
    let (driver, standard) = (madwifi(&[]), mac(&["radio.preset=dot11a"]));
    assert_eq!((driver.cw_min, driver.cw_max, driver.difs()), (7, 1023, standard.difs()));
    assert_eq!(driver.burst_limit, Some(Duration::from_micros(2048)));
    assert_eq!((driver.data_rate, driver.basic_rate), (Rate::Ofdm54, Rate::Ofdm6));
    let back = madwifi(&["mac.cw_min=15", "mac.burst_limit_us=1"]);
    let no_bursts = Some(Duration::from_micros(1));
    assert_eq!(back, mac::Config { burst_limit: no_bursts, ..standard });
}

#[test]
fn packets_and_agreements_have_no_lifetime_by_default() {
    let times = |settings: &[&str]| {
        let mac = mac(&[&["mac.ack_policy=block-ack"], settings].concat());
        (mac.msdu_lifetime, mac.block_ack_timeout)
    };
    assert_eq!(times(&[]), (None, None));
    let given = ["mac.msdu_lifetime_ms=512", "mac.block_ack_timeout_ms=0.5"];
    assert_eq!(times(&given), (Some(Duration::from_millis(512)), Some(Duration::from_micros(500))));
}

#[test]
fn agreements_exist_from_the_start_by_default() {
    let setup = |settings: &[&str]| mac(&[&["mac.ack_policy=block-ack"], settings].concat()).block_ack_setup;
    assert_eq!(setup(&[]), mac::BlockAckSetup::None);
    assert_eq!(setup(&["mac.block_ack_setup=none"]), mac::BlockAckSetup::None);
    assert_eq!(setup(&["mac.block_ack_setup=addba"]), mac::BlockAckSetup::Addba);
    assert_eq!(
        first_problem(&(CHAIN.to_owned() + "[mac]\nblock_ack_setup = \"addba\"\n")),
        "11:19 `block_ack_setup` is used with ack_policy = \"block-ack\", not \"normal\" | set ack_policy = \"block-ack\", or remove it"
    );
}

#[test]
fn keys_of_no_ack_and_bursts_are_ignored_with_other_policies() {
    assert_eq!(mac(&["mac.no_ack_min_bytes=200"]).ack_policy, mac::AckPolicy::Normal);
    let blocks = mac(&["mac.ack_policy=block-ack", "mac.burst_limit_us=2000"]);
    assert!(matches!(blocks.ack_policy, mac::AckPolicy::BlockAck { .. }), "{blocks:?}");
}

#[test]
fn stretch_acks_require_tcp() {
    let text = CHAIN.to_owned();
    let every = |settings: &[&str]| tcp(&spec(&text, settings), 0).ack_every();
    assert_eq!(every(&[]), 2);
    assert_eq!(every(&["tcp.ack_every=8"]), 8);
}
