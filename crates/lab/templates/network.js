// Plays a run on the map. What a run did comes as columns of numbers: crates/lab/src/animation/layout.rs has the same table.
(function () {
  'use strict';
  const STREAMS = [
    ['frames', ['+at', 'from', 'to', 'kind', 'air', 'flow', 'bytes', '+serial']],
    ['losses', ['+at', 'node', '+frame', 'why', 'others']],
    ['others', ['+frame']],
    ['drops', ['+at', 'node', 'why', 'kind', 'flow', '+serial', 'bytes', 'src', 'dst', 'next', '+frame']],
    ['queues', ['+at', 'node', 'packets']],
    ['routes', ['+at', 'flow', 'node', 'next']]
  ];
  const KINDS = ['RTS', 'CTS', 'ACK', 'data', 'TCP ACK', 'routing', 'others'];
  const LEGEND = [
    'RTS: asks to send', 'CTS: may be sent', 'ACK of a frame', 'data', 'ACK of the transport', 'routing', 'others'
  ];
  const WIRED = 8, CTS = 1, ACK = 2;
  const COLLISION = 0, SENDING = 1, WEAK = 2;
  const SPEEDS = [1 / 1000, 1 / 300, 1 / 100, 1 / 30, 1 / 10, 1 / 3, 1, 3, 10];
  // How long things stay visible after they have ended, in seconds of the beholder.
  const FRAME_TRAIL = 0.14, MARK_TRAIL = 0.9;
  // A picture shows no more frames than this, nor circles around senders, nor words beside frames.
  const MOST_FRAMES = 4000, MOST_CIRCLES = 24, MOST_WORDS = 10;
  const NAMED_NODES = 40;

  // ---- Reading ----

  function bytesOf(text) {
    const binary = atob(text), bytes = new Uint8Array(binary.length);
    for (let i = 0; i < binary.length; i++) bytes[i] = binary.charCodeAt(i);
    return bytes;
  }

  function inflate(bytes) {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('deflate-raw'));
    return new Response(stream).arrayBuffer().then(function (buffer) { return new Uint8Array(buffer); });
  }

  function tables(chunks) {
    const all = {};
    STREAMS.forEach(function (stream) {
      const table = all[stream[0]] = { count: 0 };
      stream[1].forEach(function (column) { table[column.replace('+', '')] = []; });
    });
    chunks.forEach(function (bytes) {
      let at = 0;
      function number() {
        let byte = bytes[at++];
        if (byte < 128) return byte;
        let value = byte & 127, unit = 128;
        do { byte = bytes[at++]; value += (byte & 127) * unit; unit *= 128; } while (byte >= 128);
        return value;
      }
      STREAMS.forEach(function (stream) {
        const table = all[stream[0]], rows = number();
        table.count += rows;
        stream[1].forEach(function (column) {
          const values = table[column.replace('+', '')];
          let before = values.length ? values[values.length - 1] : 0;
          for (let i = 0; i < rows; i++) {
            let value = number();
            if (column[0] === '+') before = value = before + (value % 2 ? -(value + 1) / 2 : value / 2);
            values.push(value);
          }
        });
      });
    });
    return all;
  }

  // What is looked up while a run is played.
  function index(all) {
    let first = 0;
    all.losses.first = all.losses.others.map(function (count) { first += count; return first - count; });
    all.longest = all.frames.air.reduce(function (a, b) { return Math.max(a, b); }, 0);
    const histories = function (table, key, value) {
      const found = new Map();
      for (let i = 0; i < table.count; i++) {
        const name = key(i);
        if (!found.has(name)) found.set(name, { at: [], value: [] });
        found.get(name).at.push(table.at[i]);
        found.get(name).value.push(table[value][i]);
      }
      return found;
    };
    all.queueOf = histories(all.queues, function (i) { return all.queues.node[i]; }, 'packets');
    all.nextOf = histories(all.routes, function (i) { return all.routes.flow[i] + ' ' + all.routes.node[i]; }, 'next');
    return all;
  }

  // How many of the rising `times` are not after `t`.
  function countUntil(times, t) {
    let low = 0, high = times.length;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (times[middle] <= t) low = middle + 1; else high = middle;
    }
    return low;
  }

  function latest(history, t) {
    const count = history ? countUntil(history.at, t) : 0;
    return count ? history.value[count - 1] : 0;
  }

  // ---- Words ----

  function element(name, content, className) {
    const made = document.createElement(name);
    if (className) made.className = className;
    (Array.isArray(content) ? content : [content]).forEach(function (part) { if (part != null) made.append(part); });
    return made;
  }

  function spaced(digits) { return digits.replace(/\B(?=(\d{3})+$)/g, '\u202f'); }

  function duration(us) { return us < 1000 ? us + ' µs' : (us / 1000).toPrecision(3) + ' ms'; }

  function kindWord(kind) { return KINDS[kind % WIRED] || KINDS[6]; }

  // ---- A player ----

  function Player(figure) {
    const q = function (selector) { return figure.querySelector(selector); };
    const head = JSON.parse(q('script[type="application/json"]').textContent);
    const texts = Array.from(figure.querySelectorAll('script[type="application/octet-stream"]'));
    const section = figure.closest('.experiment') || figure;
    const air = q('.air'), strip = q('.strip'), stripCanvas = strip.querySelector('canvas');
    const pen = air.getContext('2d'), stripPen = stripCanvas.getContext('2d');
    const told = q('.told'), late = q('.late ol'), clock = q('.clock'), playButton = q('[data-do=play]');
    const runs = head.runs;
    const shows = KINDS.map(function () { return true; }).concat([true, true, true]);
    const HITS = 7, LOST = 8, DROPS = 9;
    let run = runs[0], scene = head.scenes[run.scene], data = null, bins = null;
    // Time is in µs since the window began.
    let t = 0, speed = 1 / 100, playing = false, before = 0, hover = null, dirty = false;
    let chosen = null, node = null, flow = 0;
    let width = 0, height = 0, ratio = 1, view = { scale: 1, x: 0, y: 0 }, fitted = 1;
    let places = [], marks = [], colours = {}, lateTimer = 0;
    const stats = { draws: 0, frames: 0, nodes: 0, marks: 0 };

    function span() { return Math.max(1, Math.round((run.to - run.from) * 1e6)); }
    function seconds(us) { return run.from + us / 1e6; }
    function clockText(us) {
      const parts = seconds(us).toFixed(6).split('.');
      return parts[0] + '.' + parts[1].slice(0, 3) + '\u202f' + parts[1].slice(3) + ' s';
    }
    function name(i) { return scene.names[i]; }
    function flowName(number) { return number && scene.flows[number - 1] ? scene.flows[number - 1][0] : ''; }

    // -- Places --

    function placeAt(path, s) {
      let i = 0;
      while (i + 3 < path.length && path[i + 3] <= s) i += 3;
      if (i + 3 >= path.length) return [path[i + 1], path[i + 2]];
      const share = Math.max(0, (s - path[i]) / (path[i + 3] - path[i] || 1));
      return [path[i + 1] + share * (path[i + 4] - path[i + 1]), path[i + 2] + share * (path[i + 5] - path[i + 2])];
    }
    function place(i, us) { return placeAt(scene.paths[i], seconds(us)); }
    function distance(a, b, us) {
      const p = place(a, us), r = place(b, us);
      return Math.hypot(p[0] - r[0], p[1] - r[1]);
    }
    function X(p) { return (p[0] - view.x) * view.scale + width / 2; }
    function Y(p) { return height / 2 - (p[1] - view.y) * view.scale; }

    function bounds() {
      let left = Infinity, right = -Infinity, low = Infinity, high = -Infinity;
      scene.paths.forEach(function (path) {
        for (let i = 0; i < path.length; i += 3) {
          left = Math.min(left, path[i + 1]); right = Math.max(right, path[i + 1]);
          low = Math.min(low, path[i + 2]); high = Math.max(high, path[i + 2]);
        }
      });
      const extent = Math.max(right - left, high - low, 1), reach = scene.reach || 0;
      const pad = Math.max(Math.min(extent * (scene.names.length <= 12 ? 0.3 : 0.08), 1.05 * reach), 0.08 * extent);
      return { x: (left + right) / 2, y: (low + high) / 2, w: right - left + 2 * pad, h: high - low + 2 * pad };
    }
    function fit() {
      const all = bounds();
      fitted = Math.min(width / all.w, height / all.h);
      view = { scale: fitted, x: all.x, y: all.y };
      air.classList.remove('zoomed');
      redraw();
    }
    function zoom(by, x, y) {
      if (x === undefined) { x = width / 2; y = height / 2; }
      const scale = Math.min(Math.max(view.scale * by, fitted / 2), fitted * 60);
      view.x += (x - width / 2) * (1 / view.scale - 1 / scale);
      view.y -= (y - height / 2) * (1 / view.scale - 1 / scale);
      view.scale = scale;
      air.classList.toggle('zoomed', scale > fitted * 1.01);
      redraw();
    }
    function pan(dx, dy) {
      view.x -= dx / view.scale;
      view.y += dy / view.scale;
      redraw();
    }
    function resize() {
      const all = bounds(), aspect = Math.min(Math.max(all.h / all.w, 0.36), 0.62);
      const wide = figure.querySelector('.stage').clientWidth;
      const high = Math.round(Math.max(Math.min(wide * aspect, window.innerHeight * 0.75), Math.min(300, wide)));
      if (!wide || (wide === width && high === height && ratio === window.devicePixelRatio)) return;
      const kept = width ? view.scale / fitted : 1, at = { x: view.x, y: view.y };
      width = wide; height = high; ratio = window.devicePixelRatio || 1;
      air.style.height = high + 'px';
      air.width = Math.round(wide * ratio); air.height = Math.round(high * ratio);
      stripCanvas.width = Math.round(strip.clientWidth * ratio); stripCanvas.height = Math.round(strip.clientHeight * ratio);
      fit();
      if (kept !== 1) { view = { scale: fitted * kept, x: at.x, y: at.y }; air.classList.toggle('zoomed', kept > 1.01); }
      bins = null;
      redraw();
    }

    // -- Colours --

    function readColours() {
      const style = getComputedStyle(figure);
      ['ground', 'card', 'ink', 'muted', 'line', 'grid', 'hit', 'gone', 'k0', 'k1', 'k2', 'k3', 'k4', 'k5', 'k6'].forEach(function (key) {
        colours[key] = style.getPropertyValue('--' + key).trim();
      });
      bins = null;
      redraw();
    }
    function kindColour(kind) { return colours['k' + Math.min(kind % WIRED, 6)]; }

    // -- Drawing --

    function redraw() {
      if (dirty) return;
      dirty = true;
      requestAnimationFrame(function () { dirty = false; draw(); });
    }

    function text(words, x, y, colour, align) {
      pen.textAlign = align || 'center';
      pen.lineWidth = 3.5;
      pen.strokeStyle = colours.ground;
      pen.strokeText(words, x, y);
      pen.fillStyle = colour;
      pen.fillText(words, x, y);
    }

    function circle(x, y, r) { pen.moveTo(x + r, y); pen.arc(x, y, r, 0, 2 * Math.PI); }

    function radius(i) {
      const small = scene.names.length > NAMED_NODES ? 3.5 : 6;
      const grown = Math.min(Math.max(view.scale / fitted, 1), 2);
      return Math.min(small * grown * (1 + 0.45 * Math.sqrt(latest(data && data.queueOf.get(i), t))), 26);
    }

    // Frames on the air, and those that have just been: [frame, how visible].
    function visible() {
      const frames = data.frames, found = [], trail = FRAME_TRAIL * speed * 1e6;
      let i = countUntil(frames.at, t) - 1;
      for (; i >= 0 && found.length < MOST_FRAMES && frames.at[i] + data.longest >= t - trail; i--) {
        const end = frames.at[i] + frames.air[i];
        if (end < t - trail || !shows[Math.min(frames.kind[i] % WIRED, 6)]) continue;
        found.push([i, end >= t ? 1 : 1 - (t - end) / trail]);
      }
      return found;
    }

    function drawFrames() {
      const frames = data.frames, found = visible();
      const now = found.filter(function (f) { return f[1] === 1; });
      stats.frames = found.length;
      if (scene.reach && now.length <= MOST_CIRCLES) {
        now.forEach(function (f) {
          const i = f[0];
          if (frames.kind[i] >= WIRED) return;
          const p = places[frames.from[i]], colour = kindColour(frames.kind[i]);
          pen.beginPath(); circle(X(p), Y(p), scene.reach * view.scale);
          pen.globalAlpha = 0.07; pen.fillStyle = colour; pen.fill();
          pen.globalAlpha = 0.4; pen.strokeStyle = colour; pen.lineWidth = 1; pen.stroke();
        });
      }
      // Whatever has one colour and visibility is one path: thousands of frames are a few dozen strokes.
      const paths = new Map();
      found.forEach(function (f) {
        const i = f[0], kind = Math.min(frames.kind[i] % WIRED, 6), shade = Math.ceil(f[1] * 3);
        const key = kind * 4 + shade;
        if (!paths.has(key)) paths.set(key, []);
        paths.get(key).push(i);
      });
      pen.lineCap = 'round';
      paths.forEach(function (list, key) {
        const shade = key % 4;
        pen.strokeStyle = colours['k' + (key >> 2)];
        [[false, 0.28, 2], [true, 1, 3]].forEach(function (pass) {
          pen.globalAlpha = pass[1] * [0, 0.3, 0.6, 1][shade];
          pen.lineWidth = pass[2];
          pen.beginPath();
          list.forEach(function (i) {
            const p = places[frames.from[i]], share = Math.min((t - frames.at[i]) / frames.air[i], 1);
            const x = X(p), y = Y(p);
            if (frames.to[i]) {
              const r = places[frames.to[i] - 1], part = pass[0] ? share : 1;
              pen.moveTo(x, y);
              pen.lineTo(x + (X(r) - x) * part, y + (Y(r) - y) * part);
            } else if (pass[0] && scene.reach) {
              circle(x, y, Math.max(scene.reach * view.scale * share, 1));
            }
          });
          pen.stroke();
        });
      });
      pen.globalAlpha = 1;
      return now;
    }

    function arrowHead(a, b, colour, back) {
      const angle = Math.atan2(b[1] - a[1], b[0] - a[0]), x = b[0] - back * Math.cos(angle), y = b[1] - back * Math.sin(angle);
      pen.beginPath(); pen.moveTo(x, y);
      pen.lineTo(x - 9 * Math.cos(angle - 0.45), y - 9 * Math.sin(angle - 0.45));
      pen.lineTo(x - 9 * Math.cos(angle + 0.45), y - 9 * Math.sin(angle + 0.45));
      pen.closePath(); pen.fillStyle = colour; pen.fill();
    }

    // The nodes of the way that a flow takes now, as far as it is known.
    function route(number) {
      const way = [scene.flows[number][1]], end = scene.flows[number][2];
      while (way[way.length - 1] !== end && way.length <= scene.names.length) {
        const next = latest(data.nextOf.get(number + ' ' + way[way.length - 1]), t);
        if (!next || way.indexOf(next - 1) >= 0) break;
        way.push(next - 1);
      }
      return way;
    }

    function drawRoutes() {
      const all = flow < 0 ? scene.flows.slice(0, 60).map(function (_, i) { return i; }) : [flow];
      all.filter(function (i) { return scene.flows[i]; }).forEach(function (i) {
        const way = route(i), end = scene.flows[i][2];
        pen.lineCap = pen.lineJoin = 'round';
        pen.strokeStyle = colours.k3; pen.lineWidth = flow < 0 ? 5 : 9; pen.globalAlpha = flow < 0 ? 0.1 : 0.18;
        pen.beginPath();
        way.forEach(function (n, k) { const p = places[n]; if (k) pen.lineTo(X(p), Y(p)); else pen.moveTo(X(p), Y(p)); });
        pen.stroke();
        if (flow < 0) return;
        pen.globalAlpha = 0.75;
        for (let k = 1; k < way.length; k++) {
          const a = places[way[k - 1]], b = places[way[k]];
          arrowHead([X(a), Y(a)], [X(b), Y(b)], colours.k3, radius(way[k]) + 3);
        }
        if (way[way.length - 1] !== end) {
          const a = places[way[way.length - 1]], b = places[end];
          pen.setLineDash([3, 6]); pen.lineWidth = 1.5; pen.beginPath(); pen.moveTo(X(a), Y(a)); pen.lineTo(X(b), Y(b)); pen.stroke();
          pen.setLineDash([]);
        }
        pen.globalAlpha = 0.9; pen.lineWidth = 1.5;
        [scene.flows[i][1], end].forEach(function (n) {
          pen.beginPath(); circle(X(places[n]), Y(places[n]), radius(n) + 4); pen.stroke();
        });
      });
      pen.globalAlpha = 1;
    }

    function drawNodes(now) {
      const sending = new Map();
      now.forEach(function (f) { sending.set(data.frames.from[f[0]], data.frames.kind[f[0]]); });
      const outer = 40;
      const seen = [];
      for (let i = 0; i < places.length; i++) {
        const x = X(places[i]), y = Y(places[i]);
        if (x > -outer && y > -outer && x < width + outer && y < height + outer) seen.push([i, x, y, radius(i)]);
      }
      stats.nodes = seen.length;
      pen.fillStyle = colours.ink; pen.beginPath();
      seen.forEach(function (s) { if (!sending.has(s[0]) && !scene.wired[s[0]]) circle(s[1], s[2], s[3]); });
      pen.fill();
      pen.fillStyle = colours.ground; pen.strokeStyle = colours.ink; pen.lineWidth = 2; pen.beginPath();
      seen.forEach(function (s) { if (scene.wired[s[0]]) circle(s[1], s[2], s[3]); });
      pen.fill(); pen.stroke();
      seen.forEach(function (s) {
        if (!sending.has(s[0])) return;
        pen.beginPath(); circle(s[1], s[2], s[3]);
        pen.fillStyle = kindColour(sending.get(s[0])); pen.fill();
      });
      if (node !== null) {
        const p = places[node];
        pen.strokeStyle = colours.ink; pen.lineWidth = 2;
        pen.beginPath(); circle(X(p), Y(p), radius(node) + 3); pen.stroke();
        pen.lineWidth = 1;
        [[scene.reach, []], [scene.sense, [5, 4]]].forEach(function (range) {
          if (!range[0] || scene.wired[node]) return;
          pen.setLineDash(range[1]); pen.beginPath(); circle(X(p), Y(p), range[0] * view.scale); pen.stroke();
        });
        pen.setLineDash([]);
      }
      const named = scene.names.length <= NAMED_NODES || view.scale > fitted * 3;
      pen.font = '12px system-ui, sans-serif'; pen.textBaseline = 'middle';
      seen.forEach(function (s) {
        const packets = latest(data.queueOf.get(s[0]), t);
        if (s[3] >= 9.5 && packets) {
          pen.font = '600 11px system-ui, sans-serif'; pen.textAlign = 'center';
          pen.fillStyle = scene.wired[s[0]] ? colours.ink : colours.ground;
          pen.fillText(packets, s[1], s[2] + 0.5);
          pen.font = '12px system-ui, sans-serif';
        }
        if (named || s[0] === node) text(name(s[0]), s[1], s[2] + s[3] + 11, colours.ink);
      });
    }

    function drawWords(now) {
      if (now.length > MOST_WORDS) return;
      const frames = data.frames;
      pen.font = '600 12px system-ui, sans-serif';
      now.forEach(function (f) {
        const i = f[0], p = places[frames.from[i]], x = X(p), y = Y(p), r = frames.to[i] && places[frames.to[i] - 1];
        const words = kindWord(frames.kind[i]) + (frames.flow[i] && scene.flows.length > 1 ? ' ' + flowName(frames.flow[i]) : '');
        if (r) text(words, (x + X(r)) / 2, (y + Y(r)) / 2 - 11, kindColour(frames.kind[i]));
        else text(words + ' to all', x, y - radius(frames.from[i]) - 11, kindColour(frames.kind[i]));
      });
    }

    function star(x, y, r, colour, hollow) {
      pen.beginPath();
      for (let k = 0; k < 16; k++) {
        const angle = k * Math.PI / 8 - Math.PI / 2, at = k % 2 ? r * 0.48 : r;
        pen[k ? 'lineTo' : 'moveTo'](x + at * Math.cos(angle), y + at * Math.sin(angle));
      }
      pen.closePath();
      pen.lineWidth = 1.6; pen.strokeStyle = hollow ? colour : colours.ground; pen.fillStyle = hollow ? colours.ground : colour;
      pen.fill(); pen.stroke();
    }

    function cross(x, y, r, colour) {
      pen.lineCap = 'round';
      [[colours.ground, 6], [colour, 3]].forEach(function (look) {
        pen.strokeStyle = look[0]; pen.lineWidth = look[1];
        pen.beginPath(); pen.moveTo(x - r, y - r); pen.lineTo(x + r, y + r); pen.moveTo(x + r, y - r); pen.lineTo(x - r, y + r); pen.stroke();
      });
    }

    function isHit(why) { return why === COLLISION || why === SENDING; }
    function showsLoss(i) { return shows[isHit(data.losses.why[i]) ? HITS : LOST]; }

    function drawMarks() {
      const trail = Math.max(MARK_TRAIL * speed * 1e6, 1), at = new Map(), found = [];
      [['losses', showsLoss], ['drops', function () { return shows[DROPS]; }]].forEach(function (kind) {
        const table = data[kind[0]];
        for (let i = countUntil(table.at, t) - 1; i >= 0 && table.at[i] >= t - trail && found.length < 600; i--) {
          if (kind[1](i)) found.push({ table: kind[0], i: i, node: table.node[i], shade: 1 - (t - table.at[i]) / trail * 0.75 });
        }
      });
      if (chosen && chosen.table !== 'frames' && !found.some(function (m) { return m.table === chosen.table && m.i === chosen.i; })) {
        found.push({ table: chosen.table, i: chosen.i, node: data[chosen.table].node[chosen.i], shade: 1 });
      }
      marks = found.map(function (m) {
        const p = places[m.node], before = at.get(m.node) || 0, r = radius(m.node);
        at.set(m.node, before + 1);
        const turn = -Math.PI / 3 + Math.min(before, 11) * 0.62, off = r + 8 + (before > 9 ? 8 : 0);
        m.x = X(p) + off * Math.cos(turn); m.y = Y(p) + off * Math.sin(turn);
        return m;
      });
      marks.slice().reverse().forEach(function (m) {
        pen.globalAlpha = m.shade;
        const big = chosen && chosen.table === m.table && chosen.i === m.i ? 1.5 : 1;
        if (m.table === 'drops') cross(m.x, m.y, 5 * big, colours.gone);
        else star(m.x, m.y, 9 * big, colours.hit, !isHit(data.losses.why[m.i]));
      });
      pen.globalAlpha = 1;
      stats.marks = marks.length;
    }

    // Who collided: from the sender of what was lost, and from all others that were on the air, to where it was lost.
    function drawChosen() {
      if (!chosen || chosen.table !== 'losses') return;
      const losses = data.losses, frames = data.frames, to = places[losses.node[chosen.i]];
      const line = function (from, words, dash) {
        const p = places[from];
        pen.setLineDash(dash); pen.strokeStyle = colours.hit; pen.lineWidth = 2; pen.globalAlpha = 0.9;
        pen.beginPath(); pen.moveTo(X(p), Y(p)); pen.lineTo(X(to), Y(to)); pen.stroke();
        pen.setLineDash([]); pen.globalAlpha = 1;
        arrowHead([X(p), Y(p)], [X(to), Y(to)], colours.hit, radius(losses.node[chosen.i]) + 3);
        pen.font = '600 12px system-ui, sans-serif';
        text(words, X(p) + (X(to) - X(p)) * 0.3, Y(p) + (Y(to) - Y(p)) * 0.3 + 12, colours.hit);
      };
      othersOf(chosen.i).forEach(function (f) {
        if (frames.from[f] !== losses.node[chosen.i]) line(frames.from[f], kindWord(frames.kind[f]), [4, 5]);
      });
      line(frames.from[losses.frame[chosen.i]], kindWord(frames.kind[losses.frame[chosen.i]]) + ', lost', []);
    }

    function drawScale() {
      if (!scene.reach) return;
      const wanted = 120 / view.scale, power = Math.pow(10, Math.floor(Math.log10(wanted)));
      const metres = [5, 2, 1].map(function (m) { return m * power; }).find(function (m) { return m <= wanted; }) || power;
      pen.strokeStyle = colours.muted; pen.lineWidth = 1; pen.beginPath();
      pen.moveTo(14, height - 18); pen.lineTo(14, height - 14); pen.lineTo(14 + metres * view.scale, height - 14); pen.lineTo(14 + metres * view.scale, height - 18);
      pen.stroke();
      pen.font = '12px system-ui, sans-serif'; pen.textBaseline = 'middle';
      text(spaced(String(+metres.toPrecision(3))) + ' m', 20 + metres * view.scale, height - 15, colours.muted, 'left');
    }

    function draw() {
      if (!width) return;
      pen.setTransform(ratio, 0, 0, ratio, 0, 0);
      pen.fillStyle = colours.ground; pen.fillRect(0, 0, width, height);
      places = scene.paths.map(function (path) { return placeAt(path, seconds(t)); });
      pen.strokeStyle = colours.muted; pen.lineWidth = 3; pen.beginPath();
      scene.links.forEach(function (link) {
        const a = places[link[0]], b = places[link[1]];
        pen.moveTo(X(a), Y(a)); pen.lineTo(X(b), Y(b));
      });
      pen.stroke();
      stats.draws++;
      if (data) {
        drawRoutes();
        const now = drawFrames();
        drawChosen();
        drawNodes(now);
        drawMarks();
        drawWords(now);
      }
      drawScale();
      drawStrip();
      clock.textContent = clockText(t);
      strip.setAttribute('aria-valuenow', seconds(t).toFixed(6));
      strip.setAttribute('aria-valuetext', clockText(t));
    }

    function drawStrip() {
      const w = stripCanvas.width, h = stripCanvas.height;
      if (!w || !data) return;
      if (!bins) bins = histogram(w, h);
      stripPen.clearRect(0, 0, w, h);
      stripPen.drawImage(bins, 0, 0);
      const line = function (us, colour, wide) {
        stripPen.fillStyle = colour;
        stripPen.fillRect(Math.round(us / span() * w - wide / 2), 0, wide, h);
      };
      if (hover !== null && hover >= 0 && hover <= span()) line(hover, colours.muted, ratio);
      line(t, colours.ink, 2 * ratio);
    }

    function histogram(w, h) {
      const made = document.createElement('canvas'), p = made.getContext('2d'), step = 3 * ratio, count = Math.ceil(w / step);
      made.width = w; made.height = h;
      const bin = function (table, wanted) {
        const sums = new Array(count).fill(0);
        for (let i = 0; i < table.count; i++) if (wanted(i)) sums[Math.min(Math.floor(table.at[i] / span() * count), count - 1)]++;
        return sums;
      };
      const yes = function () { return true; };
      const all = bin(data.frames, yes), hits = bin(data.losses, function (i) { return isHit(data.losses.why[i]); }), drops = bin(data.drops, yes);
      const most = function (sums) { return Math.max.apply(null, sums) || 1; };
      [[all, colours.line, 1, 0], [hits, colours.hit, 0.62, 0], [drops, colours.gone, 0.3, 0]].forEach(function (row) {
        const top = most(row[0]);
        p.fillStyle = row[1];
        row[0].forEach(function (sum, i) {
          const high = sum ? Math.max(Math.sqrt(sum / top) * h * 0.92 * row[2], 2 * ratio) : 0;
          p.fillRect(i * step, h - high, step - ratio * 0.75, high);
        });
      });
      return made;
    }

    // -- What happened, in words --

    function othersOf(loss) {
      const first = data.losses.first[loss];
      return data.others.frame.slice(first, first + data.losses.others[loss]);
    }

    function frameWords(i) {
      const f = data.frames, parts = [kindWord(f.kind[i])];
      if (f.flow[i]) parts.push(' of ' + flowName(f.flow[i]));
      parts.push(' from ' + name(f.from[i]) + (f.to[i] ? ' to ' + name(f.to[i] - 1) : ' to all'));
      return parts.join('');
    }

    function frameDetails(i) {
      const f = data.frames;
      const size = f.bytes[i] ? ', ' + spaced(String(f.bytes[i])) + ' bytes' : '';
      return frameWords(i) + size + ', since ' + clockText(f.at[i]) + ', for ' + duration(f.air[i]);
    }

    function lossTitle(i) {
      const l = data.losses;
      return (isHit(l.why[i]) ? 'collision' : 'lost') + ' at ' + name(l.node[i]);
    }

    function lossWhy(i) {
      const l = data.losses, f = l.frame[i], others = othersOf(i);
      const names = others.map(frameWords);
      if (l.why[i] === COLLISION) return 'it collided there with ' + (names.join(' and ') || 'another signal');
      if (l.why[i] === SENDING) {
        const own = others.filter(function (o) { return data.frames.from[o] === l.node[i]; });
        return name(l.node[i]) + ' was itself sending (' + own.map(frameWords).join(', ') + ')';
      }
      if (l.why[i] === WEAK) {
        const far = Math.round(distance(data.frames.from[f], l.node[i], l.at[i]));
        const reach = scene.reach ? '; frames are understood up to ' + Math.round(scene.reach) + ' m' : '';
        return 'it was too weak: the sender is ' + far + ' m away' + reach;
      }
      return head.losses[l.why[i]];
    }

    function capital(words) { return words[0].toUpperCase() + words.slice(1); }

    function tellLoss(i) {
      const l = data.losses, f = l.frame[i], others = othersOf(i);
      const parts = [
        element('h4', capital(lossTitle(i))),
        element('p', [clockText(l.at[i]) + ': ' + frameDetails(f) + ', did not come through at ' + name(l.node[i]) + '. ', element('b', capital(lossWhy(i)) + '.')])
      ];
      if (others.length) {
        parts.push(element('p', 'Also on the air at ' + name(l.node[i]) + ' meanwhile:'));
        parts.push(element('ul', others.map(function (o) { return element('li', frameDetails(o)); })));
      }
      return parts;
    }

    // Losses of a frame: they are told when it ends, a little later where it is far.
    function lossesOf(frame) {
      const end = data.frames.at[frame] + data.frames.air[frame], found = [];
      for (let i = countUntil(data.losses.at, end - 3); i < data.losses.count && data.losses.at[i] < end + 200; i++) {
        if (data.losses.frame[i] === frame) found.push(i);
      }
      return found;
    }

    // The answer to a frame: a CTS or an ACK the other way, soon after.
    function answerTo(frame) {
      const f = data.frames, end = f.at[frame] + f.air[frame];
      for (let i = countUntil(f.at, end - 1); i < f.count && f.at[i] < end + 100; i++) {
        const kind = f.kind[i];
        if ((kind === CTS || kind === ACK) && f.to[i] - 1 === f.from[frame] && f.from[i] === f.to[frame] - 1) return i;
      }
      return null;
    }

    function lastTry(frame) {
      const told = 'The last try was ' + frameDetails(frame) + '. ', lost = lossesOf(frame);
      if (lost.length) return told + 'It did not come through: ' + lossWhy(lost[0]) + '.';
      const answer = answerTo(frame);
      if (answer === null) return told + 'It was not answered: the receiver held its medium for busy, or was gone.';
      const answerLost = lossesOf(answer);
      const why = answerLost.length ? ': ' + lossWhy(answerLost[0]) : '';
      return told + 'It came through, and the answer, ' + frameWords(answer) + ', did not' + why + '.';
    }

    function tellDrop(i) {
      const d = data.drops, reason = run.reasons[d.why[i]];
      const ends = d.src[i] && d.dst[i] ? ', ' + name(d.src[i] - 1) + ' → ' + name(d.dst[i] - 1) : d.src[i] ? ', from ' + name(d.src[i] - 1) : '';
      const what = kindWord(d.kind[i]) + (d.flow[i] ? ' of ' + flowName(d.flow[i]) : '') + ' (packet ' + d.serial[i] + ends + ', ' + spaced(String(d.bytes[i])) + ' bytes)';
      const next = d.next[i] ? ' Its next hop would have been ' + name(d.next[i] - 1) + '.' : '';
      const parts = [
        element('h4', 'Drop at ' + name(d.node[i]) + ': ' + reason),
        element('p', [clockText(d.at[i]) + ': ' + what + ' was dropped. ', element('b', 'Why: ' + reason + '.'), next])
      ];
      const packets = latest(data.queueOf.get(d.node[i]), d.at[i]);
      if (d.frame[i]) parts.push(element('p', lastTry(d.frame[i] - 1)));
      if (packets) parts.push(element('p', packets + (packets === 1 ? ' packet waits' : ' packets wait') + ' there at that moment.'));
      return parts;
    }

    function tellFrame(i) {
      const f = data.frames, lost = lossesOf(i);
      const parts = [element('h4', frameWords(i)), element('p', capital(frameDetails(i)) + (f.kind[i] >= WIRED ? ', over a wire' : '') + '.')];
      if (lost.length) {
        parts.push(element('ul', lost.slice(0, 6).map(function (l) { return element('li', 'It is lost at ' + name(data.losses.node[l]) + ': ' + lossWhy(l) + '.'); })));
        if (lost.length > 6) parts.push(element('p', 'So it is at ' + (lost.length - 6) + ' more.'));
      }
      return parts;
    }

    function tellNode(i) {
      const packets = latest(data.queueOf.get(i), t), p = place(i, t);
      const parts = [element('h4', 'Node ' + name(i)), element('p', (packets === 1 ? '1 packet waits' : packets + ' packets wait') + ' in its queue.')];
      if (!scene.wired[i]) parts.push(element('p', 'It is at ' + p[0].toFixed(0) + ' m, ' + p[1].toFixed(0) + ' m.' + (scene.sense ? ' Inner circle: ' + scene.reach.toFixed(0) + ' m, up to which it is understood; outer: ' + scene.sense.toFixed(0) + ' m, up to which it keeps the medium busy.' : '')));
      return parts;
    }

    function tell() {
      let parts;
      if (!data) parts = [element('p', 'Reading the run …', 'dim')];
      else if (chosen) parts = { losses: tellLoss, drops: tellDrop, frames: tellFrame }[chosen.table](chosen.i);
      else if (node !== null) parts = tellNode(node);
      else {
        const d = data, hits = d.losses.why.filter(isHit).length;
        parts = [
          element('p', spaced(String(d.frames.count)) + ' frames, ' + spaced(String(hits)) + ' collisions, ' + spaced(String(d.drops.count)) + ' drops in the time shown.'),
          element('p', 'Click a star (a collision) or a cross (a drop) on the map to see who collided or why, or a node to see its queue and its range. Step from event to event with |◀ and ▶|.', 'dim')
        ];
      }
      told.replaceChildren.apply(told, parts);
      late.querySelectorAll('button').forEach(function (b) {
        b.classList.toggle('chosen', !!chosen && b.event.table === chosen.table && b.event.i === chosen.i);
      });
    }

    function choose(event) {
      chosen = event;
      node = null;
      tell();
      redraw();
    }

    function listLate() {
      lateTimer = 0;
      if (!data) return;
      const found = [];
      [['losses', showsLoss], ['drops', function () { return shows[DROPS]; }]].forEach(function (kind) {
        const table = data[kind[0]];
        let left = 7;
        for (let i = countUntil(table.at, t) - 1; i >= 0 && left > 0; i--) {
          if (kind[1](i)) { found.push({ table: kind[0], i: i, at: table.at[i] }); left--; }
        }
      });
      found.sort(function (a, b) { return b.at - a.at; });
      late.replaceChildren.apply(late, found.slice(0, 7).map(function (event) {
        const i = event.i, d = data.drops, drop = event.table === 'drops';
        const title = drop ? '✕ drop at ' + name(d.node[i]) : (isHit(data.losses.why[i]) ? '✸ ' : '☆ ') + lossTitle(i);
        const words = drop ? ': ' + run.reasons[d.why[i]] : ': ' + frameWords(data.losses.frame[i]);
        const button = element('button', [seconds(event.at).toFixed(4) + ' s ', element('b', title, drop ? 'drop' : ''), words]);
        button.type = 'button';
        button.event = event;
        button.addEventListener('click', function () { go(event.at); choose({ table: event.table, i: i }); });
        return element('li', button);
      }));
      if (!found.length) late.append(element('li', 'none yet', 'dim'));
      tellChosenInList();
    }
    function tellChosenInList() {
      late.querySelectorAll('button').forEach(function (b) {
        b.classList.toggle('chosen', !!chosen && b.event.table === chosen.table && b.event.i === chosen.i);
      });
    }
    function listSoon() { if (!lateTimer) lateTimer = setTimeout(listLate, 200); }

    // -- Time --

    function send(kind) {
      section.dispatchEvent(new CustomEvent('hopline:time', { detail: { t: seconds(t), kind: kind, from: figure } }));
    }

    function move(us) {
      t = Math.min(Math.max(us, 0), span());
      if (node !== null && data) tell();
      redraw();
      listSoon();
    }

    function go(us) {
      move(us);
      send('seek');
    }

    function play(on) {
      if (on === playing || !data) return;
      playing = on;
      playButton.textContent = on ? '❚❚' : '▶';
      playButton.setAttribute('aria-label', on ? 'Pause' : 'Play');
      if (!on) return;
      if (chosen) choose(null);
      if (t >= span()) move(0);
      before = performance.now();
      requestAnimationFrame(tick);
    }

    function tick(now) {
      if (!playing) return;
      // Who was away for a while goes on where they were.
      const passed = Math.min(Math.max(now - before, 0), 100);
      before = now;
      t = Math.min(t + passed * 1000 * speed, span());
      if (node !== null) listSoonTell();
      draw();
      send('play');
      listSoon();
      if (t >= span()) return play(false);
      requestAnimationFrame(tick);
    }
    let nodeTimer = 0;
    function listSoonTell() { if (!nodeTimer) nodeTimer = setTimeout(function () { nodeTimer = 0; tell(); }, 200); }

    // The next event from now on, or the one before: of what is shown, or of one table.
    function event(forward, only) {
      let best = null;
      [['frames', function (i) { return shows[Math.min(data.frames.kind[i] % WIRED, 6)]; }],
        ['losses', only ? function (i) { return isHit(data.losses.why[i]); } : showsLoss],
        ['drops', function () { return only || shows[DROPS]; }]].forEach(function (kind) {
        if (only && only !== kind[0]) return;
        const table = data[kind[0]];
        let i = forward ? countUntil(table.at, t) : countUntil(table.at, t - 1) - 1;
        const same = chosen && chosen.table === kind[0] && table.at[chosen.i] === t;
        // Of several at one moment each has its turn.
        if (same && forward) i = Math.min(i, chosen.i + 1);
        while (i >= 0 && i < table.count && !kind[1](i)) i += forward ? 1 : -1;
        if (i < 0 || i >= table.count) return;
        if (!best || (forward ? table.at[i] < best.at : table.at[i] > best.at)) best = { table: kind[0], i: i, at: table.at[i] };
      });
      return best;
    }

    function step(forward, only) {
      if (!data) return;
      play(false);
      const found = event(forward, only);
      if (!found) {
        chosen = null;
        told.replaceChildren(element('p', 'There is none ' + (forward ? 'after' : 'before') + ' this in the time shown.'));
        return;
      }
      go(found.at);
      choose({ table: found.table, i: found.i });
    }

    function setSpeed(value) {
      speed = value;
      q('[name=speed]').value = String(SPEEDS.indexOf(value));
      redraw();
    }
    function faster(by) { setSpeed(SPEEDS[Math.min(Math.max(SPEEDS.indexOf(speed) + by, 0), SPEEDS.length - 1)]); }

    // -- Controls --

    SPEEDS.forEach(function (value, i) {
      q('[name=speed]').add(new Option((value < 1 ? '1/' + Math.round(1 / value) : value) + ' ×', i, false, value === speed));
    });
    q('[name=speed]').addEventListener('change', function (e) { setSpeed(SPEEDS[+e.target.value]); });
    runs.forEach(function (r, i) { q('[name=run]').add(new Option(r.label || 'run ' + r.run, i)); });
    q('.several').hidden = runs.length < 2;
    q('[name=run]').addEventListener('change', function (e) { load(+e.target.value); });
    q('[name=flow]').addEventListener('change', function (e) { flow = +e.target.value; redraw(); });

    function listFlows() {
      const select = q('[name=flow]');
      select.replaceChildren();
      scene.flows.forEach(function (f, i) { select.add(new Option(f[0] + ' (' + name(f[1]) + ' → ' + name(f[2]) + ')', i)); });
      if (scene.flows.length > 1) select.add(new Option('all flows', -1));
      flow = Math.min(flow, scene.flows.length - 1);
      select.value = String(flow);
      select.parentNode.hidden = !scene.flows.length;
    }

    const looks = ['<path d="M2 7H20" stroke="C" stroke-width="4" stroke-linecap="round"/>', '<path d="M11 0l2 4 4-2-1 4 5 1-5 2 1 4-4-2-2 3-2-3-4 2 1-4-5-2 5-1-1-4 4 2z" fill="C"/>', '<path d="M11 1l2 3 4-1-1 3 4 1-4 2 1 3-4-1-2 3-2-3-4 1 1-3-4-2 4-1-1-3 4 1z" fill="none" stroke="C" stroke-width="1.5"/>', '<path d="M6 2l10 10M16 2L6 12" stroke="C" stroke-width="3" stroke-linecap="round"/>'];
    LEGEND.concat(['collision', 'lost otherwise', 'drop']).forEach(function (words, i) {
      const label = document.createElement('label'), box = document.createElement('input');
      const look = looks[i < HITS ? 0 : i - HITS + 1], colour = i < HITS ? 'var(--k' + i + ')' : i === DROPS ? 'var(--gone)' : 'var(--hit)';
      box.type = 'checkbox'; box.checked = true;
      box.addEventListener('change', function () { shows[i] = box.checked; listLate(); redraw(); });
      label.append(box);
      label.insertAdjacentHTML('beforeend', '<svg viewBox="0 0 22 14" aria-hidden="true">' + look.replace('C', colour) + '</svg>');
      label.append(words);
      q('.legend').append(label);
    });

    const actions = {
      play: function () { play(!playing); },
      next: function () { step(true); },
      back: function () { step(false); },
      collision: function () { step(true, 'losses'); },
      drop: function () { step(true, 'drops'); },
      in: function () { zoom(1.5); },
      out: function () { zoom(1 / 1.5); },
      fit: fit
    };
    figure.addEventListener('click', function (e) {
      const button = e.target.closest('[data-do]');
      if (button) actions[button.dataset.do]();
    });

    const keys = {
      ' ': actions.play, ArrowRight: actions.next, ArrowLeft: actions.back, c: actions.collision, d: actions.drop,
      '+': actions.in, '=': actions.in, '-': actions.out, '0': fit,
      ',': function () { faster(-1); }, '.': function () { faster(1); },
      Home: function () { go(0); }, End: function () { go(span()); },
      Escape: function () { node = null; choose(null); },
      w: function () { pan(0, 60); }, z: function () { pan(0, -60); }, a: function () { pan(60, 0); }, s: function () { pan(-60, 0); }
    };
    figure.addEventListener('keydown', function (e) {
      if (e.ctrlKey || e.metaKey || e.altKey || e.target.closest('select, summary') || !data) return;
      // A button or a box that has the focus takes the space for itself.
      if (e.key === ' ' && e.target.closest('button, input')) return;
      let action = keys[e.key];
      const share = { ArrowRight: 1, ArrowLeft: -1, PageUp: 10, PageDown: -10 }[e.key];
      if (share && (e.shiftKey || e.target === strip)) action = function () { play(false); go(t + share * span() / 100); };
      if (!action) return;
      e.preventDefault();
      action();
    });

    // -- Pointers --

    const held = new Map();
    let dragged = false, gap = 0;
    function at(e) { const box = air.getBoundingClientRect(); return { x: e.clientX - box.x, y: e.clientY - box.y }; }
    function under(p) {
      let best = null, closest = 15 * 15;
      marks.forEach(function (m) {
        const d = (m.x - p.x) * (m.x - p.x) + (m.y - p.y) * (m.y - p.y);
        if (d < closest) { closest = d; best = m; }
      });
      if (best) return { event: { table: best.table, i: best.i } };
      places.forEach(function (place, i) {
        const r = Math.max(radius(i) + 4, 12), dx = X(place) - p.x, dy = Y(place) - p.y, d = dx * dx + dy * dy;
        if (d < r * r && d < closest * 4) { closest = d / 4; best = i; }
      });
      return best === null ? null : { node: best };
    }
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
      if (!last) { air.classList.toggle('over', !!(data && under(p))); return; }
      if (!dragged && held.size === 1 && Math.hypot(p.x - last.x, p.y - last.y) < 4) return;
      dragged = true;
      held.set(e.pointerId, p);
      air.classList.add('held');
      if (held.size === 1 && (e.pointerType !== 'touch' || air.classList.contains('zoomed'))) pan(p.x - last.x, p.y - last.y);
      if (held.size === 2) {
        const now = spread(), both = Array.from(held.values());
        zoom(now / gap, (both[0].x + both[1].x) / 2, (both[0].y + both[1].y) / 2);
        gap = now;
      }
    });
    function let_go(e) {
      const was = held.delete(e.pointerId);
      air.classList.remove('held');
      if (!was || dragged || e.type === 'pointercancel' || !data) return;
      const found = under(at(e));
      node = null;
      if (found && found.event) { play(false); return choose(found.event); }
      chosen = null;
      node = found ? found.node : null;
      tell();
      redraw();
    }
    air.addEventListener('pointerup', let_go);
    air.addEventListener('pointercancel', let_go);
    air.addEventListener('wheel', function (e) {
      if (!e.ctrlKey && document.activeElement !== air) return;
      e.preventDefault();
      const p = at(e);
      zoom(Math.exp(-e.deltaY * (e.ctrlKey ? 0.01 : 0.0015)), p.x, p.y);
    }, { passive: false });

    let scrubbing = false;
    function scrub(e) {
      const box = strip.getBoundingClientRect();
      if (chosen) choose(null);
      go((e.clientX - box.x) / box.width * span());
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
      const us = detail.t === null ? null : Math.round((detail.t - run.from) * 1e6);
      if (detail.kind === 'hover') { hover = us; redraw(); }
      if (detail.kind === 'seek' && us !== null) { play(false); if (chosen) choose(null); move(us); }
    });

    // -- A run --

    function load(number) {
      play(false);
      const moment = seconds(t);
      run = runs[number]; scene = head.scenes[run.scene];
      data = bins = chosen = null; node = null;
      q('.shown').textContent = run.shown;
      strip.setAttribute('aria-valuemin', run.from);
      strip.setAttribute('aria-valuemax', run.to);
      listFlows();
      t = number || moment !== run.from ? Math.min(Math.max(Math.round((moment - run.from) * 1e6), 0), span()) : 0;
      width = 0;
      resize();
      tell();
      const lines = texts[number].textContent.split('\n').filter(Boolean);
      return Promise.all(lines.map(function (line) { return inflate(bytesOf(line)); })).then(function (chunks) {
        if (run !== runs[number]) return; // Another one was chosen meanwhile.
        data = index(tables(chunks));
        tell();
        listLate();
        redraw();
        figure.classList.add('ready');
      });
    }

    new ResizeObserver(resize).observe(q('.stage'));
    window.matchMedia('(prefers-color-scheme: dark)').addEventListener('change', readColours);
    readColours();
    // For whoever wants to look from outside, as tests do.
    figure.player = {
      ready: load(0), play: play, go: function (s) { go(Math.round((s - run.from) * 1e6)); }, step: step, draw: draw, stats: stats,
      time: function () { return seconds(t); },
      at: function (i) { return { x: X(places[i]), y: Y(places[i]) }; },
      marks: function () { return marks; },
      data: function () { return data; },
      speed: function (value) { setSpeed(value); },
      load: load
    };
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
})();
