//! Made-up results over the shipped scenarios.

use hopline_lab::Scenario;
use hopline_lab::record::distribution::{PERCENT, Times};
use hopline_lab::report::{
    Better, Claim, ClaimCount, Claims, Distributed, Experiment, Family, FamilyMember, FlowRow, FlowSeries,
    Map, Measured, Metric, ReadAxis, ReadOtherwise, Report, Reproduce, RunSeries, Value, Variant, Verdict,
    Versus,
};
use hopline_lab::stats::Confidence;
use serde_json::{Value as Json, json};
use std::path::Path;

/// Returns a deterministic pseudo-random number from 0 to 1.
pub(crate) fn noise(n: u64) -> f64 {
    let mut x = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    ((x ^ (x >> 31)) >> 11) as f64 / (1u64 << 53) as f64
}

/// Returns a value that was compared with `baseline`.
pub(crate) fn value(runs: Vec<f64>, baseline: Option<&[f64]>) -> Value {
    let versus = baseline.map(|baseline| {
        let differences: Vec<f64> = runs.iter().zip(baseline).map(|(x, b)| x - b).collect();
        let mean = Measured::of(baseline.to_vec()).mean;
        let percent =
            (mean != 0.0).then(|| Measured::of(differences.iter().map(|d| 100.0 * d / mean).collect()));
        let difference = Measured::of(differences);
        let p = difference.interval.map(|_| if difference.excludes_zero() { 0.0004 } else { 0.31 });
        Versus { difference, percent, p }
    });
    Value { measured: Measured::of(runs), versus }
}

/// Label, settings and the means of the metrics of a variant.
type Row<'a> = (&'a str, Vec<(String, Json)>, [f64; 4]);

/// Returns variants with metrics around the given means; the first is the baseline.
pub(crate) fn variants(rows: &[Row<'_>], runs: u64) -> Vec<Variant> {
    let one = |v: usize, m: usize| -> Vec<f64> {
        let mean = rows[v].2[m];
        (0..runs)
            .map(|run| {
                mean * (1.0
                    + 0.08 * (noise(run * 7 + m as u64) - 0.5)
                    + 0.04 * (noise(run * 31 + v as u64) - 0.5))
            })
            .collect()
    };
    (0..rows.len())
        .map(|v| {
            let values = (0..4).map(|m| Some(value(one(v, m), (v > 0).then(|| one(0, m)).as_deref())));
            Variant {
                done: runs,
                label: rows[v].0.to_owned(),
                settings: rows[v].1.clone(),
                values: values.collect(),
                fingerprint: format!("{:016x}", (noise(v as u64) * 1e19) as u64),
                cpu_s: 3.0 + noise(v as u64),
            }
        })
        .collect()
}

pub(crate) fn metrics() -> Vec<Metric> {
    vec![
        Metric::new("goodput", "kb/s", Better::Higher),
        Metric::new("retransmission index", "%", Better::Lower),
        Metric::new("timeouts", "", Better::Lower),
        Metric::new("delay, median", "ms", Better::Lower),
    ]
}

pub(crate) fn series(variant: usize, run: u64, flows: usize, seconds: usize) -> RunSeries {
    let flow = |f: usize| {
        let key = (variant * 1000 + f) as u64 * 100_000 + run * 10_000;
        let level = 400.0 + 120.0 * variant as f64 - 150.0 * f as f64 / flows as f64;
        FlowSeries {
            name: format!("f{f}"),
            goodput_kbps: (0..seconds)
                .map(|i| (level + 160.0 * (noise(key + i as u64) - 0.5)).round())
                .collect(),
            cwnd_segments: (0..seconds).map(|i| 1.0 + ((i + 5 * f) % (9 + 3 * variant)) as f64).collect(),
            delay_ms: (0..seconds).map(|i| 20.0 + 30.0 * noise(key + 7 * i as u64)).collect(),
            queue_packets: (0..seconds).map(|i| ((i + f + 3 * variant) % 12) as f64).collect(),
        }
    };
    RunSeries { variant, run, step_s: 1.0, flows: (0..flows).map(flow).collect(), queues: Vec::new() }
}

pub(crate) fn scenario(name: &str) -> Scenario {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../scenarios").join(name).join("scenario.toml");
    Scenario::load(&path, &[]).unwrap()
}

fn flow_row(flow: usize, variants: usize) -> FlowRow {
    let value = |v: usize| Some(Measured::of(vec![(100 + 10 * v) as f64, (120 + flow) as f64]));
    FlowRow {
        name: format!("f{flow}"),
        ends: "n0 → n4".into(),
        carrier: "bulk, tcp-newreno".into(),
        values: vec![(0..variants).map(value).collect()],
    }
}

fn distributed(variant: usize) -> Distributed {
    let quantiles_ms = PERCENT.iter().map(|percent| 10.0 + (1.0 + variant as f64) * percent).collect();
    Distributed { variant, run: 1, times: Times::Delay, of: String::new(), quantiles_ms }
}

fn experiment(name: &str, variants: Vec<Variant>, runs: u64, flows: usize) -> Experiment {
    let scenario = scenario(name);
    let count = variants.len();
    Experiment {
        limit: None,
        confidence: Confidence::P95,
        flow: String::new(),
        flow_metrics: vec![Metric::new("goodput", "kb/s", Better::Higher)],
        flow_rows: (0..flows).map(|f| flow_row(f, count)).collect(),
        distributions: (0..count).map(distributed).collect(),
        name: name.into(),
        intro: String::new(),
        runs,
        duration_s: 120.0,
        metrics: metrics(),
        series: (0..count).flat_map(|v| (1..=2).map(move |run| series(v, run, flows, 120))).collect(),
        variants,
        families: Vec::new(),
        played: Vec::new(),
        map: Some(Map::of(&scenario.spec(1).unwrap())),
        parameters: scenario.parameters(),
        reproduce: Reproduce {
            command: format!(
                "hopline compare scenarios/{name}/scenario.toml --vary tcp.window=2,3,8,32 --runs {runs}"
            ),
            scenario_sha256: "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08".into(),
            seed: 1,
            kernel: String::new(),
        },
    }
}

fn windows(runs: u64) -> Vec<Variant> {
    let row = |w: u64, means| (["tcp.window=2", "tcp.window=3", "tcp.window=8", "tcp.window=32"], w, means);
    let rows = [
        row(2, [211.0, 0.11, 0.4, 41.0]),
        row(3, [248.0, 0.14, 0.4, 63.0]),
        row(8, [246.0, 2.9, 6.1, 121.0]),
        row(32, [204.0, 3.8, 9.3, 212.0]),
    ];
    let rows = rows
        .iter()
        .enumerate()
        .map(|(i, (labels, w, means))| (labels[i], vec![("tcp.window".to_owned(), json!(w))], *means));
    variants(&rows.collect::<Vec<_>>(), runs)
}

/// Returns the normal case: four windows over the chain.
pub(crate) fn normal(runs: u64) -> Report {
    let mut experiment = experiment("chain", windows(runs), runs, 1);
    experiment.families = vec![family(&experiment.variants)];
    Report {
        title: "chain".into(),
        version: "0.1.0".into(),
        experiments: vec![experiment],
        ..Report::default()
    }
}

/// Returns the variants except the first as settings of one mechanism.
fn family(variants: &[Variant]) -> Family {
    let member = |(variant, v): (usize, &Variant)| FamilyMember {
        variant,
        setting: vec![v.settings[0].1.clone()],
        gain: Some(Measured::of(vec![10.0, 12.0, 20.0 * variant as f64])),
        deviation: Some(Measured::of(vec![4.0, 5.0 * variant as f64])),
        positive: 9,
        runs: 10,
        excluded: variant,
    };
    Family {
        name: "tuned".into(),
        flow: "f0".into(),
        keys: vec!["tcp.window".into()],
        members: variants.iter().enumerate().skip(1).map(member).collect(),
    }
}

/// Returns a report like that of `reproduce`: claims and several experiments; moving nodes, several flows,
/// numbers and words.
pub(crate) fn several() -> Report {
    let mut rows = Vec::new();
    for (b, rate) in [0.0, 0.75e-6, 1.5e-6, 3e-6, 7.5e-6, 1.5e-5].into_iter().enumerate() {
        for (t, transport) in ["tcp-reno", "tcp-newreno", "tcp-sack"].into_iter().enumerate() {
            let settings =
                vec![("error_rate".to_owned(), json!(rate)), ("transport".to_owned(), json!(transport))];
            let label: &str = format!("error_rate={rate:e} transport={transport}").leak();
            let goodput = 1800.0 - 230.0 * (b * (3 - t)) as f64 / 2.0;
            rows.push((label, settings, [goodput, 0.4 * b as f64 + 0.1, b as f64, 20.0 + 9.0 * b as f64]));
        }
    }
    let mut wired = experiment("wired", variants(&rows, 5), 5, 1);
    wired.intro = "A fast wired link and a slow one that damages bits.".into();
    wired.series.retain(|s| s.variant < 2);
    let words = ["tcp-reno", "tcp-newreno", "tcp-sack"].map(|t| vec![("transport".to_owned(), json!(t))]);
    let [reno, newreno, sack] = words;
    let rows = [
        ("transport=tcp-reno", reno, [200.0, 1.0, 3.0, 60.0]),
        ("transport=tcp-newreno", newreno, [201.0, 1.0, 3.0, 60.0]),
        ("transport=tcp-sack", sack, [203.0, 1.0, 3.0, 60.0]),
    ];
    let walk = experiment("walk", variants(&rows, 8), 8, 11);
    let lanes = experiment("three-lanes", windows(10), 10, 3);
    let read = |name: &str, verdict, mean| ReadOtherwise {
        name: name.into(),
        answers: vec![
            name.contains("ACKs").then(|| "ACKs at once".into()),
            name.contains("adds").then(|| "all interference adds up".into()),
        ],
        measured: Some(Measured::of(vec![mean - 2.0, mean, mean + 2.0])),
        verdict,
    };
    let claim = |id: &str, verdict, measured: Option<Measured>| Claim {
        id: id.into(),
        scenario: "wired".into(),
        metric: "goodput gain".into(),
        claimed: "at least 50 %".into(),
        measured,
        unit: "%".into(),
        mechanism_off: String::new(),
        verdict,
        statement: "twice as much arrives".into(),
        experiment: Some(0),
        readings: match verdict {
            Verdict::CannotBeJudged => Vec::new(),
            _ => vec![
                read("ACKs at once", Verdict::Differs, 5.0),
                read("all interference adds up", verdict, 51.0),
                read("ACKs at once, all interference adds up", Verdict::Agrees, 60.0),
            ],
        },
    };
    let axis = |id: &str, first: &str, other: &str| ReadAxis {
        id: id.into(),
        words: "the text does not say".into(),
        first: first.into(),
        others: vec![other.into()],
    };
    let claims = vec![
        claim("T1", Verdict::Agrees, Some(Measured::of(vec![52.0, 55.0, 58.0]))),
        claim("T2", Verdict::DirectionOnly, Some(Measured::of(vec![12.0, 15.0, 18.0]))),
        claim("T3", Verdict::Differs, Some(Measured::of(vec![-3.0, -5.0, -8.0]))),
        claim("T4", Verdict::CannotBeJudged, None),
    ];
    Report {
        title: "A paper, reproduced".into(),
        intro: vec!["Figures and tables of a paper, with the published value beside ours.".into()],
        version: "0.1.0".into(),
        evaluation: None,
        claims: Some(Claims {
            headline: "Of the paper's 4 claims about its system 3 are tested: 1 of them hold.".into(),
            note: "Quick: 5 runs instead of 50.".into(),
            counts: vec![ClaimCount { heading: "signs and ranges".into(), of_verdicts: [1, 1, 1, 1, 0] }],
            axes: vec![
                axis("acks", "delayed", "ACKs at once"),
                axis("reception", "pairwise", "all interference adds up"),
            ],
            reading_runs: "first reading: 3 runs, other readings: 3 runs".into(),
            claims,
        }),
        experiments: vec![wired, walk, lanes],
    }
}
