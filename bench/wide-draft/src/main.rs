use hopline_core::*;
use hopline_link::*;
use hopline_transport::any::{Endpoint, Segment, Transport};
use hopline_transport::tcp::{self, Ports};
use hopline_transport::{wide, connection::State};
use std::collections::BTreeMap;

#[derive(Clone)]
struct FlowSpec { transport: Transport, start: f64, extra_ms: u64 }
#[derive(Clone)]
struct Case { name: String, rate: u64, delay_ms: u64, queue: usize, loss: f64, burst: Option<f64>, reorder: f64, ack_loss: f64, secs: f64, flows: Vec<FlowSpec>, policer: Option<(f64,f64)>, blackout: Option<(f64,f64)> }
struct FlowOut { bytes: u64, sent: u64, retx: u64, timeouts: u64, late: u64, lost: u64, red: u64, }
struct Out { flows: Vec<FlowOut>, mean_wait: f64, p95_ms: f64, drops: u64, lost: u64 }

fn run(c: &Case, seed: u64, trace: bool) -> Out {
    let clean = Emulation { rate: Some(c.rate), queue: Some(c.queue), ..Emulation::delay(Duration::from_millis(c.delay_ms)) };
    let bo = c.blackout.map(|(a,b)| vec![(Instant::from_nanos((a*1e9) as u64), Instant::from_nanos((b*1e9) as u64))]).unwrap_or_default();
    let forth = Emulation { loss: c.loss, burst: c.burst, reorder: c.reorder, extra_delay: Duration::from_millis(30), extra: Extra::Exactly, blackouts: bo.clone(), ..clean.clone() };
    let back = Emulation { loss: c.ack_loss, blackouts: bo, ..clean };
    let mut dirs = [Direction::new(forth, seed, 0), Direction::new(back, seed, 1)];
    let n = c.flows.len();
    let mut ends: Vec<[Endpoint<Length>; 2]> = c.flows.iter().enumerate().map(|(i, f)| {
        let mut s = Stream::keyed(seed, 0, i as u64, Purpose::Transport);
        let p = |l, r| Ports { local: l, remote: r };
        [Endpoint::new(&f.transport, p(1000, 9), &mut s), Endpoint::new(&f.transport, p(9, 1000), &mut s)]
    }).collect();
    let mut started = vec![false; n];
    let starts: Vec<Instant> = c.flows.iter().map(|f| Instant::from_nanos((f.start * 1e9) as u64)).collect();
    let mut way: BTreeMap<(Instant, u64), (usize, usize, Segment<Length>)> = BTreeMap::new();
    let mut seq = 0u64;
    let mut now = Instant::ZERO;
    let end = Instant::from_nanos((c.secs * 1e9) as u64);
    let mut bytes = vec![0u64; n];
    let mut data_sent = vec![0u64; n];
    let mut waits: Vec<u64> = vec![];
    let mut waitsum = 0u64; 
    let mut tokens = c.policer.map_or(0.0, |p| p.1); let mut tok_at = Instant::ZERO;
    let mut last_tr = 0u64; let mut last_bytes = vec![0u64; n]; let mut lastw = Counts::default();
    loop {
        for i in 0..n { for side in 0..2 {
            if !started[i] { continue; }
            while let Some(seg) = ends[i][side].poll_transmit(now) {
                let len = seg.wire_len() + 20;
                if side == 0 && seg.data_len() > 0 { data_sent[i] += 1; }
                if side == 0 && let Some((r, b)) = c.policer {
                    tokens = (tokens + r/8.0*now.since(tok_at).as_secs_f64()).min(b); tok_at = now;
                    if tokens < len as f64 { continue; }
                    tokens -= len as f64;
                }
                let w0 = dirs[side].counts().waited;
                let copies = dirs[side].carry(now, len);
                if side == 0 { let w = (dirs[0].counts().waited - w0).as_nanos(); waits.push(w); waitsum += w; }
                for (at, _) in copies.into_iter().flatten() {
                    let extra = Duration::from_millis(c.flows[i].extra_ms / 2);
                    way.insert((at + extra, seq), (i, 1 - side, seg.clone())); seq += 1;
                }
            }
            while ends[i][side].poll_event().is_some() {}
            while let Some(d) = ends[i][side].recv() { if side == 1 { bytes[i] += d.0; } }
        } }
        let mut next = end;
        let mut what = 0; // 0 none 1 arrival 2 timer 3 start
        if let Some((&(at, _), _)) = way.first_key_value() && at <= next { next = at; what = 1; }
        for i in 0..n { if !started[i] { if starts[i] < next { next = starts[i]; what = 3; } continue; }
            for s in 0..2 { if let Some(t) = ends[i][s].poll_timeout() && t < next { next = t; what = 2; } } }
        if what == 0 || next >= end { break; }
        now = now.max(next);
        match what {
            1 => { let (_, (i, s, seg)) = way.pop_first().unwrap(); ends[i][s].handle_packet(now, seg); }
            2 => { for i in 0..n { for s in 0..2 { if started[i] { ends[i][s].handle_timeout(now); } } } }
            _ => { for i in 0..n { if !started[i] && starts[i] <= now { started[i] = true; ends[i][1].listen(); ends[i][0].connect(now); ends[i][0].send(now, Length(1 << 40)); } } }
        }
        if trace { let t = now.as_nanos() / 100_000_000; if t != last_tr { last_tr = t;
            let w = dirs[0].counts(); let k = (w.sent - lastw.sent).max(1);
            print!("{:6.1} wait {:6.2} drops {:4}", now.as_secs_f64(), (w.waited - lastw.waited).as_secs_f64()*1e3 / k as f64, w.queue_drops - lastw.queue_drops); lastw = w;
            for i in 0..n { let e = &ends[i][0]; 
                let r = if let Endpoint::Wide { endpoint, .. } = e { endpoint.describe() } else { String::new() };
                print!(" | {:5.2} w{:5.0} {}", (bytes[i]-last_bytes[i]) as f64*8.0/1e5, e.cwnd_bytes() as f64/1500., r); last_bytes[i]=bytes[i]; } println!(); } }
    }
    waits.sort();
    let cnt = dirs[0].counts();
    Out { flows: (0..n).map(|i| { let k = ends[i][0].counts();
            let (late, lost, red) = if let Endpoint::Wide { endpoint, .. } = &ends[i][0] { let s = endpoint.stats(); (s.late, s.lost, s.reductions) } else { (0,0,0) };
            FlowOut { bytes: bytes[i], sent: data_sent[i], retx: k.retransmissions, timeouts: k.timeouts, late, lost, red } }).collect(),
        mean_wait: waitsum as f64 / waits.len().max(1) as f64 / 1e6, p95_ms: waits.get(waits.len()*95/100).copied().unwrap_or(0) as f64/1e6, drops: cnt.queue_drops, lost: cnt.lost }
}

fn wide() -> Transport { Transport::Wide(wide::Config::DEFAULT) }
fn cubic() -> Transport { Transport::Tcp(tcp::Config::linux()) }
fn flow(t: Transport) -> FlowSpec { FlowSpec { transport: t, start: 0.0, extra_ms: 0 } }
fn base() -> Case { Case { name: String::new(), rate: 20_000_000, delay_ms: 25, queue: 100, loss: 0.0, burst: None, reorder: 0.0, ack_loss: 0.0, secs: 12.0, flows: vec![flow(wide())], policer: None, blackout: None } }

fn show(c: &Case, seeds: u64) {
    let outs: Vec<Out> = std::thread::scope(|s| { let hs: Vec<_> = (1..=seeds).map(|x| s.spawn(move || run(c, x, false))).collect(); hs.into_iter().map(|h| h.join().unwrap()).collect() });
    let med = |mut v: Vec<f64>| { v.sort_by(f64::total_cmp); v[v.len()/2] };
    print!("{:<26}", c.name);
    for i in 0..c.flows.len() {
        let secs = c.secs - c.flows[i].start;
        let g: Vec<f64> = outs.iter().map(|o| o.flows[i].bytes as f64*8.0/secs/1e6).collect();
        let min = g.iter().copied().fold(f64::MAX, f64::min);
        let mss = c.flows[i].transport.mss() as f64;
        let spd = med(outs.iter().map(|o| o.flows[i].sent as f64 / (o.flows[i].bytes as f64/mss).max(1.0)).collect());
        print!(" {:6.2} (min {:5.2}) x{:4.2}", med(g), min, spd);
        let o = &outs[0].flows[i]; print!(" [to {} late {} red {}]", o.timeouts, o.late, o.red);
        let _ = (o.retx, o.lost);
    }
    if seeds > 0 && std::env::var("V").is_ok() { for o in &outs { print!(" {:.2}", o.flows[0].bytes as f64*8.0/c.secs/1e6); } }
    println!("  wait {:5.1} p95 {:5.1} drops {:.0}", med(outs.iter().map(|o| o.mean_wait).collect()), med(outs.iter().map(|o| o.p95_ms).collect()), med(outs.iter().map(|o| o.drops as f64).collect()));
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let what = args.first().map_or("main", |s| s);
    let seeds = args.get(1).and_then(|s| s.parse().ok()).unwrap_or(8);
    let named = |name: &str, f: &dyn Fn(&mut Case)| { let mut c = base(); c.name = name.into(); f(&mut c); c };
    let mut cases: Vec<Case> = vec![];
    let all = what == "all";
    if what == "main" || all {
        for l in [0.0, 0.01, 0.05, 0.1, 0.2, 0.3] { cases.push(named(&format!("loss {l}"), &|c| c.loss = l)); }
        cases.push(named("late 5% 30ms", &|c| c.reorder = 0.05));
        cases.push(named("bursts 4, 10%", &|c| { c.loss = 0.1; c.burst = Some(4.0) }));
    }
    if what == "var" || all {
        for (r, d) in [(2_000_000u64, 25u64), (2_000_000, 5), (20_000_000, 5), (20_000_000, 100), (200_000_000, 25), (200_000_000, 100)] { for l in [0.0, 0.05, 0.2] {
            cases.push(named(&format!("{}M {}ms loss {l}", r/1_000_000, d), &|c| { c.rate = r; c.delay_ms = d; c.loss = l; c.queue = ((r as f64 * 2.0 * d as f64/1e3 / 12000.0) as usize).max(50) })); } }
        for q in [17usize, 33, 83, 332] { cases.push(named(&format!("queue {q}"), &|c| c.queue = q)); }
        for l in [0.0, 0.1] { cases.push(named(&format!("ack loss 10, loss {l}"), &|c| { c.ack_loss = 0.1; c.loss = l })); }
        cases.push(named("policer 10M 30k", &|c| c.policer = Some((10e6, 30e3))));
        cases.push(named("policer 10M 300k", &|c| c.policer = Some((10e6, 300e3))));
        cases.push(named("policer 10M 30k 5%", &|c| { c.policer = Some((10e6, 30e3)); c.loss = 0.05 }));
        cases.push(named("outage 2s", &|c| c.blackout = Some((4.0, 6.0))));
        cases.push(named("outage 5s", &|c| c.blackout = Some((4.0, 9.0))));
    }
    if what == "fair" || all {
        let two = |a: Transport, b: Transport, start: f64| vec![flow(a), FlowSpec { start, ..flow(b) }];
        for l in [0.0, 0.05] {
            for q in [33usize, 83, 332] { cases.push(named(&format!("cubic+wide q{q} loss {l}"), &|c| { c.secs = 60.0; c.loss = l; c.queue = q; c.flows = two(cubic(), wide(), 0.0) })); }
            cases.push(named(&format!("wide, wide 10s later {l}"), &|c| { c.secs = 60.0; c.loss = l; c.flows = two(wide(), wide(), 10.0) }));
            cases.push(named(&format!("wide 50, wide 150ms {l}"), &|c| { c.secs = 60.0; c.loss = l; c.flows = two(wide(), wide(), 0.0); c.flows[1].extra_ms = 100; }));
            cases.push(named(&format!("4 wide {l}"), &|c| { c.secs = 60.0; c.loss = l; c.flows = (0..4).map(|i| FlowSpec { start: i as f64, ..flow(wide()) }).collect() }));
        }
        cases.push(named("16 wide", &|c| { c.secs = 60.0; c.flows = (0..16).map(|i| FlowSpec { start: i as f64*0.3, ..flow(wide()) }).collect() }));
        cases.push(named("cubic+cubic", &|c| { c.secs = 60.0; c.flows = two(cubic(), cubic(), 0.0) }));
    }
    if let Some(f) = args.iter().position(|a| a == "-f") { let f = &args[f+1]; cases.retain(|c| c.name.contains(f.as_str())); }
    if args.iter().any(|a| a == "-t") { run(&cases[0], seeds, true); return; }
    for c in &cases { show(c, if c.secs > 20.0 { seeds.min(4) } else { seeds }); }
    let _ = State::Closed;
}
