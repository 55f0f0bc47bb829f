//! Nothing a neighbour says makes the machine panic, stall, grow or lose a packet.

use hopline_testkit::fuzz;
use proptest::prelude::*;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(2_000))]

    #[test]
    fn a_machine_keeps_its_contract_whatever_happens(data in prop::collection::vec(any::<u8>(), 0..600)) {
        fuzz::dsr_machine(&data);
    }
}

#[test]
fn no_bytes_are_no_life() {
    fuzz::dsr_machine(&[]);
}
