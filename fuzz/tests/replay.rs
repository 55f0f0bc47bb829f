//! Fuzz targets on stable Rust: committed seeds, seeds with random damage, and random bytes. Every run tries the same
//! inputs, unless `PROPTEST_RNG_SEED` says otherwise (`make explore`).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use hopline_core::{Purpose, RandomStream};
use hopline_fuzz::{TARGETS, Target};
use hopline_harness::{Test, run as run_tests};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::process::ExitCode;

const DAMAGED_INPUTS: u64 = 5000;
const RANDOM_INPUTS: u64 = 9000;
/// Lengths of random inputs, in turn: short ones for parsers, long ones for machines.
const LONGEST_RANDOM_INPUTS: [u32; 3] = [120, 300, 600];

fn main() -> ExitCode {
    let complete =
        Test::new("every target has a program and seeds", [], every_target_has_a_program_and_seeds);
    let each = TARGETS.iter().flat_map(|target| {
        let named = |what: &str, body: fn(&Target)| {
            Test::new(format!("{} takes {what}", target.name), [], move || body(target))
        };
        [
            named("nothing", |target| run(target, &[])),
            named("its seeds", takes_its_seeds),
            named("damaged seeds", takes_damaged_seeds),
            named("random bytes", takes_random_bytes),
        ]
    });
    run_tests([complete].into_iter().chain(each), None)
}

fn every_target_has_a_program_and_seeds() {
    for target in TARGETS {
        assert!(root().join("targets").join(target.name).with_extension("rs").is_file(), "{target:?}");
        assert!(!seeds(target).is_empty(), "{target:?} has no seeds");
    }
    assert_eq!(std::fs::read_dir(root().join("targets")).unwrap().count(), TARGETS.len());
    assert_eq!(std::fs::read_dir(root().join("seeds")).unwrap().count(), TARGETS.len());
}

fn takes_its_seeds(target: &Target) {
    for seed in seeds(target) {
        run(target, &seed);
    }
}

fn takes_damaged_seeds(target: &Target) {
    let seeds = seeds(target);
    for case in 0..DAMAGED_INPUTS {
        let mut stream = RandomStream::keyed(seed(), case, 0, Purpose::Emulation);
        run(target, &damaged(&seeds, &mut stream));
    }
}

fn takes_random_bytes(target: &Target) {
    for case in 0..RANDOM_INPUTS {
        let mut stream = RandomStream::keyed(seed(), case, 1, Purpose::Emulation);
        let longest = LONGEST_RANDOM_INPUTS[case as usize % LONGEST_RANDOM_INPUTS.len()];
        let len = stream.below(longest);
        let bytes: Vec<u8> = (0..len).map(|_| stream.bits() as u8).collect();
        run(target, &bytes);
    }
}

/// Returns the seed of all inputs.
fn seed() -> u64 {
    std::env::var("PROPTEST_RNG_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or(1)
}

/// Runs the target; if it panics, prints the input.
fn run(target: &Target, input: &[u8]) {
    if catch_unwind(AssertUnwindSafe(|| (target.run)(input))).is_err() {
        let hex: String = input.iter().map(|byte| format!("{byte:02x}")).collect();
        panic!("target {} fails on {hex}", target.name);
    }
}

/// Returns a seed with one to eight random changes.
fn damaged(seeds: &[Vec<u8>], stream: &mut RandomStream) -> Vec<u8> {
    let pick = |stream: &mut RandomStream| seeds[stream.below(seeds.len() as u32) as usize].clone();
    let mut bytes = pick(stream);
    for _ in 0..=stream.below(8) {
        let at = stream.below(bytes.len() as u32) as usize;
        match stream.below(5) {
            _ if bytes.is_empty() => bytes = pick(stream),
            0 => bytes[at] ^= 1 << stream.below(8),
            1 => bytes[at] = stream.bits() as u8,
            2 => bytes.truncate(at),
            3 => bytes.insert(at, stream.bits() as u8),
            _ => bytes.splice(at.., pick(stream)).for_each(drop),
        }
    }
    bytes
}

/// Returns the seeds of a target, ordered by file name.
fn seeds(target: &Target) -> Vec<Vec<u8>> {
    let folder = root().join("seeds").join(target.name);
    let mut files: Vec<PathBuf> =
        std::fs::read_dir(folder).unwrap().map(|file| file.unwrap().path()).collect();
    files.sort();
    files.iter().map(|file| std::fs::read(file).unwrap()).collect()
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}
