//! The map player of a run: in the file, and in a browser.

use crate::chromium::{Scheme, browser_errors, chromium_with, colour};
use crate::sample;
use hopline_config::document::Setting;
use hopline_core::{Instant, NodeId};
use hopline_lab::animation::{self, Window};
use hopline_lab::report::{Animation, Played, Report, html};
use hopline_lab::run::NoObserver;
use hopline_sim::trace::TraceEvent;
use hopline_sim::{Spec, Tracer, World};

fn spec(name: &str, settings: &[&str]) -> Spec {
    let settings: Vec<Setting> = settings.iter().map(|s| Setting::parse("--set", s).unwrap()).collect();
    sample::scenario(name).with(&settings).unwrap().spec(1).unwrap()
}

/// Returns a specification of four nodes in a line with two hidden terminals as senders, from the time at
/// which they begin.
fn hidden(range_m: u32) -> Spec {
    spec("hidden", &["duration_s=12", &format!("radio.carrier_sense_range_m={range_m}")])
}

fn recorded(spec: &Spec, window: &str) -> Animation {
    animation::record(spec, 1, window.parse::<Window>().unwrap(), &NoObserver).unwrap()
}

fn playing(animations: Vec<Animation>) -> Report {
    let mut report = sample::normal(3);
    let experiment = &mut report.experiments[0];
    experiment.map = Some(animations[0].map.clone());
    let played = animations.into_iter().enumerate();
    experiment.played = played.map(|(variant, animation)| Played { variant, animation }).collect();
    report
}

/// Opens the page in a browser and runs `script`, an asynchronous function of the figure `f` and its player
/// `P`. Returns its results, one on each line. `before` runs before the page's own script.
fn seen_after(report: &Report, before: &str, script: &str) -> Vec<String> {
    let folder = tempfile::tempdir().unwrap();
    let page = html(report).replace("<main>", &format!("<main><script>{before}</script>"));
    let asked = format!(
        "<script>(async function () {{
          // The browser writes down the page when it has loaded, and waits with that for a document within that is still written.
          const within = document.body.appendChild(document.createElement('iframe')).contentDocument;
          within.open();
          const f = document.querySelector('.alive'), P = f.player, seen = [];
          const told = () => f.querySelector('.told').textContent;
          const tick = () => new Promise(done => requestAnimationFrame(done));
          try {{ if (P) await P.ready; await tick(); {script} }} catch (error) {{ seen.push('FAILED ' + error.stack); }}
          within.close();
          document.body.textContent = 'SEEN¦' + seen.join('¦') + '¦END';
        }})();</script></body>"
    );
    let path = folder.path().join("report.html");
    std::fs::write(&path, page.replace("</body>", &asked)).unwrap();
    let (dom, stderr) = chromium_with(&path, Scheme::Light, &["--dump-dom"]);
    assert_eq!(browser_errors(&stderr), [""; 0]);
    let seen = dom.split("SEEN¦").nth(1).unwrap().split("¦END").next().unwrap();
    seen.split('¦').map(|line| line.replace("&gt;", ">")).collect()
}

/// Expected counts in the browser.
#[derive(Default)]
struct Count {
    from: Instant,
    frames: usize,
    losses: usize,
    others: usize,
    drops: usize,
}

impl Tracer for Count {
    fn trace(&mut self, now: Instant, _node: NodeId, event: TraceEvent<'_>) {
        if now < self.from {
            return;
        }
        match event {
            TraceEvent::FrameSent { .. } => self.frames += 1,
            TraceEvent::Dropped { .. } => self.drops += 1,
            TraceEvent::FrameLost { signal, others, .. } if signal.since >= self.from => {
                self.losses += 1;
                self.others += others.iter().filter(|other| other.since >= self.from).count();
            }
            _ => {}
        }
    }
}

pub(crate) fn the_browser_reads_all_events() {
    let spec = hidden(367);
    let from = Instant::ZERO + hopline_core::Duration::from_secs(10);
    let mut world = World::new(&spec, 1, Count { from, ..Count::default() });
    world.run_until(Instant::ZERO + spec.duration);
    let (_, count) = world.finish();
    let seen = seen_after(
        &playing(vec![recorded(&spec, "10s..")]),
        "",
        "const d = P.data();
         seen.push([d.frames, d.losses, d.others, d.drops].map(t => t.count).join(' '));
         seen.push([d.frames, d.losses, d.drops].every(t => t.at.every((at, i) => at >= (t.at[i - 1] || 0))));",
    );
    let Count { frames, losses, others, drops, .. } = count;
    assert!(losses > 20 && drops > 0 && others > 0);
    assert_eq!(seen, [format!("{frames} {losses} {others} {drops}"), "true".into()]);
}

pub(crate) fn nodes_are_at_their_positions_and_frames_in_flight_move() {
    let report = playing(vec![recorded(&hidden(367), "10s..11s")]);
    let seen = seen_after(
        &report,
        "",
        "const air = f.querySelector('.air'), pen = document.createElement('canvas').getContext('2d', { willReadFrequently: true });
         P.go(10.5); P.draw();
         pen.canvas.width = air.width; pen.canvas.height = air.height; pen.drawImage(air, 0, 0);
         const pixel = p => Array.from(pen.getImageData(p.x * devicePixelRatio, p.y * devicePixelRatio, 1, 1).data.slice(0, 3)).join(',');
         const d = P.data().frames, sends = i => d.at.some((at, k) => d.from[k] === i && at <= 5e5 && at + d.air[k] >= 5e5);
         seen.push([0, 1, 2, 3].every(i => pixel({ x: P.at(i).x, y: P.at(i).y - 4 }) !== pixel({ x: 2, y: 2 })));
         seen.push(sends(2) ? 'n2 sends' : pixel(P.at(2)), pixel({ x: 2, y: 2 }));
         seen.push(P.at(0).x < P.at(1).x && P.at(1).x < P.at(2).x && P.at(0).y === P.at(3).y);
         const before = air.toDataURL(), then = P.time();
         P.play(true); for (let i = 0; i < 12; i++) await tick(); P.play(false);
         seen.push(P.time() > then, air.toDataURL() !== before);
         const still = P.time(), picture = air.toDataURL(); await tick(); await tick();
         seen.push(P.time() === still, air.toDataURL() === picture);
         f.querySelector('[data-do=in]').click(); await tick();
         seen.push(air.toDataURL() !== picture); f.querySelector('[data-do=fit]').click(); await tick();
         seen.push(air.toDataURL() === picture);",
    );
    let page = html(&report);
    let text = |variable| colour(&page, variable, Scheme::Light).map(|c| c.to_string()).join(",");
    // Every node is a disc in the text colour, or in that of the frame it sends; n2 has no queue length in
    // its middle.
    assert_eq!(seen[0], "true", "{seen:?}");
    assert_eq!(seen[1..3], [text("--ink"), text("--ground")], "{seen:?}");
    assert_eq!(seen[3..], ["true"; 7], "{seen:?}");
}

/// Script that clicks at a mark.
const CLICK: &str = "function click(m) {
  const air = f.querySelector('.air'), box = air.getBoundingClientRect();
  ['pointerdown', 'pointerup'].forEach(type => air.dispatchEvent(new PointerEvent(type,
    { bubbles: true, pointerId: 1, clientX: box.x + m.x, clientY: box.y + m.y })));
}";

pub(crate) fn a_click_on_a_collision_names_the_senders_and_on_a_drop_the_reason() {
    let seen = seen_after(
        &playing(vec![recorded(&hidden(367), "10s..")]),
        "",
        &format!(
            "{CLICK}
             const d = P.data(), losses = d.losses, frames = d.frames;
             const hit = losses.why.findIndex((why, i) => why === 0 && losses.others[i] === 1);
             P.go(10 + losses.at[hit] / 1e6); P.draw();
             click(P.marks().find(m => m.table === 'losses' && m.i === hit));
             const lost = frames.from[losses.frame[hit]], other = frames.from[d.others.frame[losses.first[hit]]];
             seen.push(told()); seen.push(told().includes('from n' + lost) && told().includes('from n' + other) && lost !== other);
             P.go(10 + d.drops.at[0] / 1e6); P.draw();
             click(P.marks().find(m => m.table === 'drops' && m.i === 0));
             seen.push(told());
             P.go(10.9); P.draw(); click(P.at(0)); seen.push(told());
             click({{ x: 3, y: 3 }}); seen.push(told());"
        ),
    );
    assert!(seen[0].starts_with("Collision at n") && seen[0].contains("It collided there with"), "{seen:?}");
    assert_eq!(seen[1], "true", "{seen:?}");
    assert!(seen[2].contains("Why: retry limit reached."), "{seen:?}");
    assert!(seen[2].contains("The last try was") && seen[2].contains("collided there with"), "{seen:?}");
    assert!(seen[3].starts_with("Node n0") && seen[3].contains("in its queue"), "{seen:?}");
    assert!(seen[4].contains("frames,") && seen[4].contains("collisions"), "{seen:?}");
}

pub(crate) fn the_player_is_usable_by_keyboard() {
    let seen = seen_after(
        &playing(vec![recorded(&hidden(367), "10s..")]),
        "",
        "const air = f.querySelector('.air');
         const key = (key, more) => (more && more.on || air).dispatchEvent(new KeyboardEvent('keydown', Object.assign({ key, bubbles: true, cancelable: true }, more)));
         const label = () => f.querySelector('.play').getAttribute('aria-label');
         key(' '); seen.push(label()); key(' '); seen.push(label());
         P.go(10); key('ArrowRight'); const first = P.time(), words = told(); key('ArrowRight'); const second = P.time();
         // Two senders may begin together: then each has its turn.
         seen.push(10 < first && first <= second && told() !== words); key('ArrowLeft'); seen.push(P.time() < second);
         key('c'); seen.push(told().slice(0, 12)); key('d'); seen.push(told().slice(0, 9));
         key('Home'); seen.push(P.time()); key('ArrowRight', { shiftKey: true }); seen.push(P.time().toFixed(3));
         key('End'); seen.push(P.time()); key('d'); seen.push(told());
         key('.'); seen.push(f.querySelector('[name=speed]').selectedOptions[0].textContent);
         key('ArrowLeft', { on: f.querySelector('.strip') }); seen.push(P.time().toFixed(3));",
    );
    assert_eq!(seen[..2], ["Pause", "Play"]);
    assert_eq!(seen[2..4], ["true", "true"], "{seen:?}");
    assert!(seen[4].starts_with("Collision at") && seen[5] == "Drop at n", "{seen:?}");
    assert_eq!(seen[6..9], ["10", "10.020", "12"], "{seen:?}");
    assert_eq!(seen[9], "There is none after this in the time shown.");
    assert_eq!(seen[10..], ["1/30 ×", "11.980"], "{seen:?}");
}

pub(crate) fn time_is_shared_with_the_charts_of_the_section() {
    let seen = seen_after(
        &playing(vec![recorded(&hidden(367), "10s..")]),
        "",
        "const section = f.closest('.experiment'), heard = [];
         section.addEventListener('hopline:time', e => heard.push(e.detail));
         const send = (t, kind) => section.dispatchEvent(new CustomEvent('hopline:time', { detail: { t, kind, from: section } }));
         send(11.25, 'seek'); seen.push(P.time());
         send(99, 'seek'); seen.push(P.time(), told()); send(1, 'seek'); seen.push(P.time());
         send(11, 'hover'); send(null, 'hover'); send(11, 'play'); send(null, 'seek'); seen.push(P.time());
         seen.push(heard.filter(d => d.from === f).length); heard.length = 0;
         P.go(10.5); seen.push(heard.map(d => d.kind + ' ' + d.t).join());
         heard.length = 0; P.play(true); for (let i = 0; i < 6; i++) await tick(); P.play(false);
         seen.push(heard.length >= 4 && heard.length <= 7 && heard.every(d => d.kind === 'play' && d.from === f && d.t >= 10.5));",
    );
    let outside = "The map plays 10 s to 12 s: 99.0 s is not in it.";
    assert_eq!(seen, ["11.25", "12", outside, "10", "10", "0", "seek 10.5", "true"]);
}

pub(crate) fn variants_are_played_from_the_same_moment() {
    let report = playing(vec![recorded(&hidden(367), "10s.."), recorded(&hidden(807), "10s..11s")]);
    let seen = seen_after(
        &report,
        "",
        "const select = f.querySelector('[name=run]');
         seen.push(Array.from(select.options).map(o => o.textContent).join());
         P.go(10.75); const first = P.data();
         select.value = 1; select.dispatchEvent(new Event('change', { bubbles: true }));
         for (let i = 0; i < 50 && !P.data(); i++) await tick();
         seen.push(P.data() !== first && P.data().frames.count > 0, P.time(), f.querySelector('.shown').textContent);",
    );
    assert_eq!(seen, ["tcp.window=2,tcp.window=3", "true", "10.75", "Shown: 10 s to 11 s of run 1."]);
}

pub(crate) fn two_hundred_nodes_are_drawn_once_an_animation_frame() {
    let settings =
        ["duration_s=6", "nodes.count=200", "nodes.width_m=1980", "nodes.height_m=1980", "flows.random=20"];
    let seen = seen_after(
        &playing(vec![recorded(&spec("random-400", &settings), "5s..")]),
        "",
        "P.speed(1); P.go(5.5); P.draw();
         const d = P.data().frames, trail = 0.14e6;
         const there = d.at.filter((at, i) => at <= 5e5 && at + d.air[i] >= 5e5 - trail).length;
         seen.push(P.stats.nodes, there > 20 && P.stats.frames === there, P.stats.marks <= 200);
         const before = P.stats.draws; let ticks = 0;
         P.speed(1 / 100); P.play(true); for (; ticks < 30; ticks++) await tick(); P.play(false);
         const drawn = P.stats.draws - before; seen.push(drawn >= 29 && drawn <= 32 || drawn);",
    );
    assert_eq!(seen, ["200", "true", "true", "true"]);
}

pub(crate) fn a_browser_without_playback_shows_the_map_and_a_note() {
    let report = playing(vec![recorded(&hidden(367), "10s..11s")]);
    let script = "const shown = q => { const e = f.querySelector(q); return !!e && getComputedStyle(e).display !== 'none'; };
         seen.push(shown('svg.map'), shown('.player'), f.querySelector('figcaption').textContent.includes('too old to play'));";
    let seen = seen_after(&report, "delete window.DecompressionStream;", script);
    assert_eq!(seen, ["true", "false", "true"]);
    assert_eq!(seen_after(&report, "", script), ["false", "true", "false"]);
}

pub(crate) fn the_played_part_and_omissions_are_noted() {
    let whole = recorded(&hidden(367), "10s..");
    let page = html(&playing(vec![whole.clone()]));
    assert!(page.contains("Shown: 10 s to 12 s of run 1."));
    assert!(page.contains("<svg class=\"map\""), "what is printed");
    let busy = spec("random-400", &["duration_s=60"]);
    let mut cut = [recorded(&busy, "5s..")];
    animation::fit(&mut cut, animation::BUDGET_BYTES);
    let [cut] = cut;
    assert!(cut.is_cut() && cut.to_s() < 60.0 && cut.to_s() > 6.0, "{}", cut.to_s());
    let page = html(&playing(vec![cut]));
    assert!(page.contains("3 MB hold no more (asked for: up to 60 s)."));
    assert!(page.len() < animation::BUDGET_BYTES + 300_000, "{}", page.len());
}

pub(crate) fn hostile_names_in_the_player_are_escaped() {
    const HOSTILE: &str = "</script><b onclick=\"alert('x')\">\u{2028}{{ 1 }} -->";
    let mut animation = recorded(&hidden(367), "10s..10.1s");
    animation.map.nodes.iter_mut().for_each(|node| node.name = HOSTILE.into());
    animation.map.flows.iter_mut().for_each(|flow| flow.name = HOSTILE.into());
    let mut report = playing(vec![animation]);
    report.experiments[0].variants[0].label = HOSTILE.into();
    let page = html(&report);
    assert!(!page.contains("<b onclick"), "markup from a name");
    assert_eq!(page.matches("</script>").count(), page.matches("<script").count());
}

pub(crate) fn a_page_without_animations_has_no_player() {
    let page = html(&sample::normal(3));
    assert!(!page.contains("class=\"alive\"") && !page.contains("DecompressionStream"));
}
