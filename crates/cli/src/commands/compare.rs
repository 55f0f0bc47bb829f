//! `hopline compare`.

use crate::args::Compare as Args;
use crate::console;
use crate::problems::Failure;
use crate::progress::Progress;
use crate::table::{Align, render};
use hopline_lab::compare::{CompareError, VariantResult, compare};
use hopline_lab::scenario::document::Setting;
use hopline_lab::scenario::{Axis, parse_vary};
use hopline_lab::{Comparison, Estimate, Plan};

/// Compares variants of a scenario.
pub(crate) fn execute(args: &Args) -> Result<(), Failure> {
    let runs = args.runs.map(|n| Setting::of_option("--runs", "runs", n));
    let scenario = super::load(&args.common, runs.as_slice())?;
    let axes: Vec<Axis> = match args.vary.is_empty() {
        true => scenario.sweep()?,
        false => args.vary.iter().map(|text| parse_vary(text)).collect::<Result<_, _>>()?,
    };
    let mut plan = Plan::new(&scenario, &axes)?;
    plan.jobs = args.jobs.map(usize::from);
    console::catch_interrupts()?;
    let progress = Progress::new(plan.total_s(), args.common.quiet);
    let done = compare(&plan, &progress);
    drop(progress);
    let comparison = done.map_err(|error| match error {
        CompareError::Interrupted => Failure::Interrupted,
        CompareError::Problems(problems) => Failure::Input(problems),
        CompareError::Threads(_) => Failure::Other(error.to_string()),
    })?;
    if args.common.json {
        return console::print(&format!("{}\n", comparison.json()));
    }
    let mut text = describe(&comparison);
    if args.common.verbose {
        text.push_str(&every_run(&comparison));
    }
    console::print(&text)
}

fn describe(comparison: &Comparison) -> String {
    let Comparison { scenario, seed, runs, variants } = comparison;
    let paired =
        if *runs > 1 { "; ± is the 95 % interval of the mean" } else { "; one run has no interval" };
    let count = counted(variants.len(), "variant");
    let runs = counted(*runs as usize, "paired run");
    format!("{scenario}: {count}, {runs}, seed {seed}{paired}\n\n") + &variants_table(variants)
}

/// "1 run", "2 runs".
fn counted(n: usize, what: &str) -> String {
    format!("{n} {what}{}", if n == 1 { "" } else { "s" })
}

fn variants_table(variants: &[VariantResult]) -> String {
    let fair = variants.iter().any(|v| v.jain.is_some());
    let mut header = vec![
        ("variant", Align::Left),
        ("goodput kb/s", Align::Right),
        ("gain %", Align::Right),
        ("rtx index %", Align::Right),
        ("timeouts", Align::Right),
    ];
    header.extend(fair.then_some(("Jain", Align::Right)));
    header.extend([("CPU s", Align::Right), ("fingerprint", Align::Left)]);
    let row = |v: &VariantResult| {
        let gain = match (&v.gain_bps, &v.gain_pct) {
            (None, _) => "baseline".to_owned(),
            (Some(_), Some(gain)) => with_sign(gain),
            (Some(_), None) => "-".to_owned(),
        };
        let mut row = vec![
            v.label.clone(),
            with_interval(&v.goodput_bps.scaled(1e-3), 1),
            gain,
            with_interval(&v.rtx_index_pct, 2),
            with_interval(&v.timeouts, 1),
        ];
        if fair {
            row.push(v.jain.as_ref().map_or_else(|| "-".to_owned(), |jain| with_interval(jain, 3)));
        }
        row.extend([format!("{:.2}", v.cpu_s), format!("{:016x}", v.fingerprint)]);
        row
    };
    render(&header, &variants.iter().map(row).collect::<Vec<_>>())
}

fn with_interval(e: &Estimate, digits: usize) -> String {
    match e.half_width {
        Some(half) => format!("{:.digits$} ± {half:.digits$}", e.mean),
        None => format!("{:.digits$}", e.mean),
    }
}

fn with_sign(e: &Estimate) -> String {
    match e.half_width {
        Some(half) => format!("{:+.1} ± {half:.1}", e.mean),
        None => format!("{:+.1}", e.mean),
    }
}

fn every_run(comparison: &Comparison) -> String {
    let header = [
        ("variant", Align::Left),
        ("run", Align::Right),
        ("goodput kb/s", Align::Right),
        ("rtx index %", Align::Right),
        ("CPU s", Align::Right),
        ("fingerprint", Align::Left),
    ];
    let rows = comparison.variants.iter().flat_map(|v| {
        v.runs.iter().map(|r| {
            vec![
                v.label.clone(),
                r.run.to_string(),
                crate::table::kbps(r.summary.aggregate_goodput_bps),
                format!("{:.2}", r.rtx_index_pct),
                format!("{:.2}", r.summary.cpu_s),
                r.summary.fingerprint.clone(),
            ]
        })
    });
    format!("\n{}", render(&header, &rows.collect::<Vec<_>>()))
}
