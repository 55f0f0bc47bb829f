//! Nothing a neighbour says makes the machine panic, stall, grow or lose a packet.

use crate::aodv::fuzzing::drive;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_machine_keeps_its_contract_whatever_happens(data in prop::collection::vec(any::<u8>(), 0..600)) {
        drive(&data);
    }
}

#[test]
fn no_bytes_are_no_life() {
    drive(&[]);
}
