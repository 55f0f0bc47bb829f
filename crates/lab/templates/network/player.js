  // What a beholder can do: time, choices, keys and pointers.
  function Player(figure) {
    const q = function (selector) { return figure.querySelector(selector); };
    const head = JSON.parse(q('script[type="application/json"]').textContent);
    const texts = Array.from(figure.querySelectorAll('script[type="application/octet-stream"]'));
    const section = figure.closest('.experiment') || figure, strip = q('.strip'), playButton = q('[data-do=play]');
    const state = State(head), stage = Stage(figure, state);
    const story = Story(figure, head, state, function (at, event) { go(at); choose(event); });
    const air = stage.air, runs = state.runs;
    let before = 0;

    function choose(event) {
      state.chosen = event;
      state.node = null;
      story.tell();
      stage.redraw();
    }

    // -- Time --

    function send(kind) {
      section.dispatchEvent(new CustomEvent('hopline:time', { detail: { t: state.seconds(state.t), kind: kind, from: figure } }));
    }

    function move(us) {
      state.t = Math.min(Math.max(us, 0), state.span());
      if (state.node !== null && state.data) story.tell();
      stage.redraw();
      story.listSoon();
    }

    // To another moment: what was chosen at this one is over.
    function go(us) {
      if (state.chosen) choose(null);
      move(us);
      send('seek');
    }

    function play(on) {
      if (on === state.playing || !state.data) return;
      state.playing = on;
      playButton.textContent = on ? '❚❚' : '▶';
      playButton.setAttribute('aria-label', on ? 'Pause' : 'Play');
      if (!on) return;
      if (state.chosen) choose(null);
      if (state.t >= state.span() && !head.live) move(0);
      before = performance.now();
      requestAnimationFrame(tick);
    }

    function tick(now) {
      if (!state.playing) return;
      // Who was away for a while goes on where they were.
      const passed = Math.min(Math.max(now - before, 0), 100);
      before = now;
      state.t = Math.min(state.t + passed * 1000 * state.speed, state.span());
      // Live, and at its own speed: no more behind than need be.
      if (head.live && state.speed === 1 && state.span() - state.t > 5 * LAG) state.t = state.span() - LAG;
      if (state.node !== null) story.tellSoon();
      stage.draw();
      send('play');
      story.listSoon();
      if (state.t >= state.span() && !head.live) return play(false);
      requestAnimationFrame(tick);
    }

    // The next event from now on, or the one before: of what is shown, or of one table.
    function event(forward, only) {
      let best = null;
      [['frames', state.showsFrame],
        ['losses', only ? function (i) { return state.isHit(state.data.losses.why[i]); } : state.showsLoss],
        ['drops', function () { return only || state.shows[DROPS]; }]].forEach(function (kind) {
        if (only && only !== kind[0]) return;
        const table = state.data[kind[0]];
        let i = forward ? countUntil(table.at, state.t) : countUntil(table.at, state.t - 1) - 1;
        const same = state.chosen && state.chosen.table === kind[0] && table.at[state.chosen.i] === state.t;
        // Of several at one moment each has its turn.
        if (same && forward) i = Math.min(i, state.chosen.i + 1);
        while (i >= 0 && i < table.count && !kind[1](i)) i += forward ? 1 : -1;
        if (i < 0 || i >= table.count) return;
        if (!best || (forward ? table.at[i] < best.at : table.at[i] > best.at)) best = { table: kind[0], i: i, at: table.at[i] };
      });
      return best;
    }

    function step(forward, only) {
      if (!state.data) return;
      play(false);
      const found = event(forward, only);
      if (!found) {
        state.chosen = null;
        story.say('There is none ' + (forward ? 'after' : 'before') + ' this in the time shown.');
        return;
      }
      go(found.at);
      choose({ table: found.table, i: found.i });
    }

    function setSpeed(value) {
      state.speed = value;
      q('[name=speed]').value = String(SPEEDS.indexOf(value));
      stage.redraw();
    }
    function faster(by) { setSpeed(SPEEDS[Math.min(Math.max(SPEEDS.indexOf(state.speed) + by, 0), SPEEDS.length - 1)]); }

    // -- Controls --

    SPEEDS.forEach(function (value, i) {
      q('[name=speed]').add(new Option((value < 1 ? '1/' + Math.round(1 / value) : value) + ' ×', i, false, value === state.speed));
    });
    q('[name=speed]').addEventListener('change', function (e) { setSpeed(SPEEDS[+e.target.value]); });
    runs.forEach(function (r, i) { q('[name=run]').add(new Option(r.label || 'run ' + r.run, i)); });
    q('.several').hidden = runs.length < 2;
    q('[name=run]').addEventListener('change', function (e) { load(+e.target.value); });
    q('[name=flow]').addEventListener('change', function (e) { state.flow = +e.target.value; stage.redraw(); });

    function listFlows() {
      const select = q('[name=flow]');
      select.replaceChildren();
      state.scene.flows.forEach(function (f, i) { select.add(new Option(f[0] + ' (' + state.name(f[1]) + ' → ' + state.name(f[2]) + ')', i)); });
      if (state.scene.flows.length > 1) select.add(new Option('all flows', -1));
      state.flow = Math.min(state.flow, state.scene.flows.length - 1);
      select.value = String(state.flow);
      select.parentNode.hidden = !state.scene.flows.length;
    }

    // A line of a kind of frame; a star, a hollow star and a cross, as on the map.
    const looks = [
      '<path d="M2 7H20" stroke="C" stroke-width="4" stroke-linecap="round"/>',
      '<path d="M11 0l2 4 4-2-1 4 5 1-5 2 1 4-4-2-2 3-2-3-4 2 1-4-5-2 5-1-1-4 4 2z" fill="C"/>',
      '<path d="M11 1l2 3 4-1-1 3 4 1-4 2 1 3-4-1-2 3-2-3-4 1 1-3-4-2 4-1-1-3 4 1z" fill="none" stroke="C" stroke-width="1.5"/>',
      '<path d="M6 2l10 10M16 2L6 12" stroke="C" stroke-width="3" stroke-linecap="round"/>'
    ];
    LEGEND.concat(['collision', 'lost otherwise', 'drop']).forEach(function (words, i) {
      const label = document.createElement('label'), box = document.createElement('input');
      const look = looks[i < HITS ? 0 : i - HITS + 1], colour = i < HITS ? 'var(--k' + i + ')' : i === DROPS ? 'var(--gone)' : 'var(--hit)';
      box.type = 'checkbox'; box.checked = true;
      box.addEventListener('change', function () { state.shows[i] = box.checked; story.listLate(); stage.redraw(); });
      label.append(box);
      label.insertAdjacentHTML('beforeend', '<svg viewBox="0 0 22 14" aria-hidden="true">' + look.replace('C', colour) + '</svg>');
      label.append(words);
      q('.legend').append(label);
    });

    const actions = {
      play: function () { play(!state.playing); },
      next: function () { step(true); },
      back: function () { step(false); },
      collision: function () { step(true, 'losses'); },
      drop: function () { step(true, 'drops'); },
      in: function () { stage.zoom(1.5); },
      out: function () { stage.zoom(1 / 1.5); },
      fit: stage.fit
    };
    figure.addEventListener('click', function (e) {
      const button = e.target.closest('[data-do]');
      if (button) actions[button.dataset.do]();
    });

    const keys = {
      ' ': actions.play, ArrowRight: actions.next, ArrowLeft: actions.back, c: actions.collision, d: actions.drop,
      '+': actions.in, '=': actions.in, '-': actions.out, '0': stage.fit,
      ',': function () { faster(-1); }, '.': function () { faster(1); },
      Home: function () { go(0); }, End: function () { go(state.span()); },
      Escape: function () { state.node = null; choose(null); },
      w: function () { stage.pan(0, 60); }, z: function () { stage.pan(0, -60); }, a: function () { stage.pan(60, 0); }, s: function () { stage.pan(-60, 0); }
    };
    figure.addEventListener('keydown', function (e) {
      if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest('select, summary') || !state.data) return;
      // A button or a box that has the focus takes the space for itself.
      if (e.key === ' ' && e.target.closest('button, input')) return;
      let action = keys[e.key];
      const share = { ArrowRight: 1, ArrowLeft: -1, PageUp: 10, PageDown: -10 }[e.key];
      if (share && (e.shiftKey || e.target === strip)) action = function () { play(false); go(state.t + share * state.span() / 100); };
      if (!action) return;
      e.preventDefault();
      action();
    });

    // -- Pointers --

    const held = new Map();
    let dragged = false, gap = 0;
    function at(e) { const box = air.getBoundingClientRect(); return { x: e.clientX - box.x, y: e.clientY - box.y }; }
    air.addEventListener('pointerdown', function (e) {
      held.set(e.pointerId, at(e));
      dragged = false;
      if (held.size === 2) gap = spread();
      try { air.setPointerCapture(e.pointerId); } catch (_) { /* The pointer is gone already. */ }
    });
    function spread() {
      const p = Array.from(held.values());
      return Math.hypot(p[0].x - p[1].x, p[0].y - p[1].y) || 1;
    }
    air.addEventListener('pointermove', function (e) {
      const p = at(e), last = held.get(e.pointerId);
      if (!last) { air.classList.toggle('over', !!(state.data && stage.under(p))); return; }
      if (!dragged && held.size === 1 && Math.hypot(p.x - last.x, p.y - last.y) < 4) return;
      dragged = true;
      held.set(e.pointerId, p);
      air.classList.add('held');
      if (held.size === 1 && (e.pointerType !== 'touch' || air.classList.contains('zoomed'))) stage.pan(p.x - last.x, p.y - last.y);
      if (held.size === 2) {
        const now = spread(), both = Array.from(held.values());
        stage.zoom(now / gap, (both[0].x + both[1].x) / 2, (both[0].y + both[1].y) / 2);
        gap = now;
      }
    });
    function letGo(e) {
      const was = held.delete(e.pointerId);
      air.classList.remove('held');
      if (!was || dragged || e.type === 'pointercancel' || !state.data) return;
      const found = stage.under(at(e));
      state.node = null;
      if (found && found.event) { play(false); return choose(found.event); }
      state.chosen = null;
      state.node = found ? found.node : null;
      story.tell();
      stage.redraw();
    }
    air.addEventListener('pointerup', letGo);
    air.addEventListener('pointercancel', letGo);
    air.addEventListener('wheel', function (e) {
      if (!e.ctrlKey && document.activeElement !== air) return;
      e.preventDefault();
      const p = at(e);
      stage.zoom(Math.exp(-e.deltaY * (e.ctrlKey ? 0.01 : 0.0015)), p.x, p.y);
    }, { passive: false });

    let scrubbing = false;
    function scrub(e) {
      const box = strip.getBoundingClientRect();
      go((e.clientX - box.x) / box.width * state.span());
    }
    strip.addEventListener('pointerdown', function (e) {
      scrubbing = true;
      play(false);
      try { strip.setPointerCapture(e.pointerId); } catch (_) { /* The pointer is gone already. */ }
      scrub(e);
    });
    strip.addEventListener('pointermove', function (e) { if (scrubbing) scrub(e); });
    ['pointerup', 'pointercancel'].forEach(function (type) { strip.addEventListener(type, function () { scrubbing = false; }); });

    section.addEventListener('hopline:time', function (e) {
      const detail = e.detail;
      if (!detail || detail.from === figure) return;
      const us = detail.t === null ? null : Math.round((detail.t - state.run.from) * 1e6);
      if (detail.kind === 'hover') { state.hover = us; stage.redraw(); }
      if (detail.kind !== 'seek' || us === null) return;
      play(false);
      if (state.chosen) choose(null);
      move(us);
      if (us < 0 || us > state.span()) story.say('The map plays ' + state.run.from + ' s to ' + state.run.to + ' s: ' + detail.t.toFixed(1) + ' s is not in it.');
    });

    // -- A run --

    function load(number) {
      play(false);
      const moment = state.seconds(state.t);
      state.run = runs[number]; state.scene = head.scenes[state.run.scene];
      state.data = state.chosen = state.node = null;
      q('.shown').textContent = state.run.shown;
      strip.setAttribute('aria-valuemin', state.run.from);
      strip.setAttribute('aria-valuemax', state.run.to);
      listFlows();
      state.t = number || moment !== state.run.from ? Math.min(Math.max(Math.round((moment - state.run.from) * 1e6), 0), state.span()) : 0;
      stage.renew();
      story.tell();
      const lines = texts[number].textContent.split('\n').filter(Boolean);
      return Promise.all(lines.map(function (line) { return inflate(bytesOf(line)); })).then(function (chunks) {
        if (state.run !== runs[number]) return; // Another one was chosen meanwhile.
        state.data = index(tables(chunks));
        story.tell();
        story.listLate();
        stage.forget();
        figure.classList.add('ready');
      });
    }

    new ResizeObserver(function () { requestAnimationFrame(stage.resize); }).observe(q('.stage'));
    window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', stage.readColours);
    stage.readColours();
    // For whoever wants to look from outside, as tests do.
    figure.player = {
      ready: load(0), load: load, play: play, step: step, speed: setSpeed, data: function () { return state.data; },
      go: function (s) { go(Math.round((s - state.run.from) * 1e6)); },
      time: function () { return state.seconds(state.t); },
      draw: stage.draw, stats: stage.stats, at: stage.at, marks: stage.marks
    };
    if (head.live) figure.player.ready.then(function () { Live(figure, head, state, stage, story); setSpeed(1); play(true); });
    return figure.player;
  }

  document.querySelectorAll('.alive').forEach(function (figure) {
    // Without this the static map stays.
    if (typeof DecompressionStream === 'undefined') {
      figure.classList.add('stuck');
      figure.querySelector('figcaption').append(' This browser is too old to play the run.');
      return;
    }
    Player(figure).ready.catch(function (error) {
      figure.classList.add('stuck');
      figure.querySelector('figcaption').append(' The run cannot be played: ' + error + '.');
    });
  });
