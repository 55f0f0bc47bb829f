  // The map: where things are, and how they look.
  function Stage(figure, state) {
    const q = function (selector) { return figure.querySelector(selector); };
    const air = q('.air'), strip = q('.strip'), stripCanvas = strip.querySelector('canvas');
    const pen = air.getContext('2d'), stripPen = stripCanvas.getContext('2d');
    const stats = { draws: 0, frames: 0, nodes: 0, marks: 0 }, colours = {};
    let sprites = {};
    let bins = null, dirty = false, places = [], marks = [];
    let width = 0, height = 0, ratio = 1, view = { scale: 1, x: 0, y: 0 }, fitted = 1;

    function X(p) { return (p[0] - view.x) * view.scale + width / 2; }
    function Y(p) { return height / 2 - (p[1] - view.y) * view.scale; }

    function bounds() {
      let left = Infinity, right = -Infinity, low = Infinity, high = -Infinity;
      state.scene.paths.forEach(function (path) {
        for (let i = 0; i < path.length; i += 3) {
          left = Math.min(left, path[i + 1]); right = Math.max(right, path[i + 1]);
          low = Math.min(low, path[i + 2]); high = Math.max(high, path[i + 2]);
        }
      });
      const extent = Math.max(right - left, high - low, 1), reach = state.scene.reach || 0;
      const pad = Math.max(Math.min(extent * (state.scene.names.length <= 12 ? 0.3 : 0.08), 1.05 * reach), 0.08 * extent);
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
      sprites = {};
      redraw();
    }

    // -- Colours --

    function readColours() {
      const style = getComputedStyle(figure);
      ['ground', 'card', 'ink', 'muted', 'line', 'grid', 'hit', 'gone', 'k0', 'k1', 'k2', 'k3', 'k4', 'k5', 'k6'].forEach(function (key) {
        colours[key] = style.getPropertyValue('--' + key).trim();
      });
      bins = null;
      sprites = {};
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
      const small = state.scene.names.length > NAMED_NODES ? 3.5 : 6;
      const grown = Math.min(Math.max(view.scale / fitted, 1), 2);
      return Math.min(small * grown * (1 + 0.45 * Math.sqrt(latest(state.data && state.data.queueOf.get(i), state.t))), 26);
    }

    // Frames on the air, and those that have just been: [frame, how visible]. Of those of one kind from one node to another the
    // latest stands for all.
    function visible() {
      const frames = state.data.frames, found = [], trail = FRAME_TRAIL * state.speed * 1e6, seen = new Set();
      let i = countUntil(frames.at, state.t) - 1;
      stats.frames = 0;
      for (; i >= 0 && found.length < MOST_FRAMES && frames.at[i] + state.data.longest >= state.t - trail; i--) {
        const end = frames.at[i] + frames.air[i];
        if (end < state.t - trail || !state.showsFrame(i)) continue;
        stats.frames++;
        const key = (frames.from[i] * (state.scene.names.length + 1) + frames.to[i]) * 16 + frames.kind[i];
        if (seen.has(key)) continue;
        seen.add(key);
        found.push([i, end >= state.t ? 1 : 1 - (state.t - end) / trail]);
      }
      return found;
    }

    function drawFrames() {
      const frames = state.data.frames, found = visible();
      const now = found.filter(function (f) { return f[1] === 1; });
      if (state.scene.reach && now.length <= MOST_CIRCLES) {
        now.forEach(function (f) {
          const i = f[0];
          if (frames.kind[i] >= WIRED) return;
          const p = places[frames.from[i]], colour = kindColour(frames.kind[i]);
          pen.beginPath(); circle(X(p), Y(p), state.scene.reach * view.scale);
          pen.globalAlpha = 0.07; pen.fillStyle = colour; pen.fill();
          pen.globalAlpha = 0.4; pen.strokeStyle = colour; pen.lineWidth = 1; pen.stroke();
        });
      }
      // Single lines: a path of hundreds would cost many times as much without a graphics processor.
      pen.lineCap = 'butt';
      found.forEach(function (f) {
        const i = f[0], shade = f[1], p = places[frames.from[i]];
        let x = X(p), y = Y(p);
        const share = Math.min((state.t - frames.at[i]) / frames.air[i], 1);
        pen.strokeStyle = kindColour(frames.kind[i]);
        if (!frames.to[i]) {
          if (!state.scene.reach || (share === 1 && found.length > MOST_RINGS)) return;
          pen.globalAlpha = 0.8 * shade; pen.lineWidth = 1.5;
          pen.beginPath(); circle(x, y, Math.max(state.scene.reach * view.scale * share, 1)); pen.stroke();
          return;
        }
        const r = places[frames.to[i] - 1], dx = X(r) - x, dy = Y(r) - y;
        if (frames.kind[i] >= WIRED) {
          // Both directions of a wire are side by side.
          const far = Math.hypot(dx, dy) || 1;
          x += dy / far * 3; y -= dx / far * 3;
        }
        if (share < 1) {
          pen.globalAlpha = 0.28; pen.lineWidth = 2;
          pen.beginPath(); pen.moveTo(x, y); pen.lineTo(x + dx, y + dy); pen.stroke();
        }
        pen.globalAlpha = shade; pen.lineWidth = 3;
        pen.beginPath(); pen.moveTo(x, y); pen.lineTo(x + dx * share, y + dy * share); pen.stroke();
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
      const way = [state.scene.flows[number][1]], end = state.scene.flows[number][2];
      while (way[way.length - 1] !== end && way.length <= state.scene.names.length) {
        const next = latest(state.data.nextOf.get(number + ' ' + way[way.length - 1]), state.t);
        if (!next || way.indexOf(next - 1) >= 0) break;
        way.push(next - 1);
      }
      return way;
    }

    function drawRoutes() {
      const all = state.flow < 0 ? state.scene.flows.slice(0, 60).map(function (_, i) { return i; }) : [state.flow];
      all.filter(function (i) { return state.scene.flows[i]; }).forEach(function (i) {
        const way = route(i), end = state.scene.flows[i][2];
        pen.lineCap = pen.lineJoin = 'round';
        pen.strokeStyle = colours.k3; pen.lineWidth = state.flow < 0 ? 5 : 9; pen.globalAlpha = state.flow < 0 ? 0.1 : 0.18;
        pen.beginPath();
        way.forEach(function (n, k) { const p = places[n]; if (k) pen.lineTo(X(p), Y(p)); else pen.moveTo(X(p), Y(p)); });
        pen.stroke();
        if (state.flow < 0) return;
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
        [state.scene.flows[i][1], end].forEach(function (n) {
          pen.beginPath(); circle(X(places[n]), Y(places[n]), radius(n) + 4); pen.stroke();
        });
      });
      pen.globalAlpha = 1;
    }

    function drawNodes(now) {
      const sending = new Map();
      now.forEach(function (f) { sending.set(state.data.frames.from[f[0]], state.data.frames.kind[f[0]]); });
      const outer = 40;
      const seen = [];
      for (let i = 0; i < places.length; i++) {
        const x = X(places[i]), y = Y(places[i]);
        if (x > -outer && y > -outer && x < width + outer && y < height + outer) seen.push([i, x, y, radius(i)]);
      }
      stats.nodes = seen.length;
      pen.fillStyle = colours.ink; pen.beginPath();
      seen.forEach(function (s) { if (!sending.has(s[0]) && !state.scene.wired[s[0]]) circle(s[1], s[2], s[3]); });
      pen.fill();
      pen.fillStyle = colours.ground; pen.strokeStyle = colours.ink; pen.lineWidth = 2; pen.beginPath();
      seen.forEach(function (s) { if (state.scene.wired[s[0]]) circle(s[1], s[2], s[3]); });
      pen.fill(); pen.stroke();
      seen.forEach(function (s) {
        if (!sending.has(s[0])) return;
        pen.beginPath(); circle(s[1], s[2], s[3]);
        pen.fillStyle = kindColour(sending.get(s[0])); pen.fill();
      });
      if (state.node !== null) {
        const p = places[state.node];
        pen.strokeStyle = colours.ink; pen.lineWidth = 2;
        pen.beginPath(); circle(X(p), Y(p), radius(state.node) + 3); pen.stroke();
        pen.lineWidth = 1;
        [[state.scene.reach, []], [state.scene.sense, [5, 4]]].forEach(function (range) {
          if (!range[0] || state.scene.wired[state.node]) return;
          pen.setLineDash(range[1]); pen.beginPath(); circle(X(p), Y(p), range[0] * view.scale); pen.stroke();
        });
        pen.setLineDash([]);
      }
      const named = state.scene.names.length <= NAMED_NODES || view.scale > fitted * 3;
      pen.font = '12px system-ui, sans-serif'; pen.textBaseline = 'middle';
      seen.forEach(function (s) {
        const packets = latest(state.data.queueOf.get(s[0]), state.t);
        if (s[3] >= 9.5 && packets) {
          pen.font = '600 11px system-ui, sans-serif'; pen.textAlign = 'center';
          pen.fillStyle = state.scene.wired[s[0]] && !sending.has(s[0]) ? colours.ink : colours.ground;
          pen.fillText(packets, s[1], s[2] + 0.5);
          pen.font = '12px system-ui, sans-serif';
        }
        if (named || s[0] === state.node) text(state.name(s[0]), s[1], s[2] + s[3] + 11, colours.ink);
      });
    }

    function drawWords(now) {
      // Who collided has words of its own.
      if (now.length > MOST_WORDS || (state.chosen && state.chosen.table === 'losses')) return;
      const frames = state.data.frames;
      pen.font = '600 12px system-ui, sans-serif';
      now.forEach(function (f) {
        const i = f[0], p = places[frames.from[i]], x = X(p), y = Y(p), r = frames.to[i] && places[frames.to[i] - 1];
        const words = kindWord(frames.kind[i]) + (frames.flow[i] && state.scene.flows.length > 1 ? ' ' + state.flowName(frames.flow[i]) : '');
        if (r) {
          // Beside the line, to the left of whoever goes along it: what comes the other way has its words on the other side.
          const dx = X(r) - x, dy = Y(r) - y, far = Math.hypot(dx, dy) || 1, wide = pen.measureText(words).width / 2;
          const off = 11 + Math.abs(dy / far) * wide;
          text(words, x + dx / 2 + dy / far * off, y + dy / 2 - dx / far * 11, kindColour(frames.kind[i]));
        }
        else text(words + ' to all', x, y - radius(frames.from[i]) - 11, kindColour(frames.kind[i]));
      });
    }

    // Marks are drawn once, and copied from there.
    function mark(look, big) {
      const key = look + big;
      if (!sprites[key]) {
        const canvas = document.createElement('canvas'), p = canvas.getContext('2d');
        canvas.width = canvas.height = Math.ceil(MARK * big * ratio);
        p.setTransform(ratio * big, 0, 0, ratio * big, canvas.width / 2, canvas.height / 2);
        if (look === 'drop') cross(p); else star(p, look === 'lost');
        sprites[key] = canvas;
      }
      return sprites[key];
    }

    function star(p, hollow) {
      p.beginPath();
      for (let k = 0; k < 16; k++) {
        const angle = k * Math.PI / 8 - Math.PI / 2, at = k % 2 ? 4.3 : 9;
        p[k ? 'lineTo' : 'moveTo'](at * Math.cos(angle), at * Math.sin(angle));
      }
      p.closePath();
      p.lineWidth = 1.6; p.strokeStyle = hollow ? colours.hit : colours.ground; p.fillStyle = hollow ? colours.ground : colours.hit;
      p.fill(); p.stroke();
    }

    function cross(p) {
      p.lineCap = 'round';
      [[colours.ground, 6], [colours.gone, 3]].forEach(function (look) {
        p.strokeStyle = look[0]; p.lineWidth = look[1];
        p.beginPath(); p.moveTo(-5, -5); p.lineTo(5, 5); p.moveTo(5, -5); p.lineTo(-5, 5); p.stroke();
      });
    }

    function drawMarks() {
      const trail = Math.max(Math.min(MARK_TRAIL * state.speed, 0.3 + 0.05 * state.speed) * 1e6, 1), at = new Map(), crowd = new Map();
      let found = [];
      [['losses', state.showsLoss], ['drops', function () { return state.shows[DROPS]; }]].forEach(function (kind) {
        const table = state.data[kind[0]];
        for (let i = countUntil(table.at, state.t) - 1; i >= 0 && table.at[i] >= state.t - trail && found.length < 900; i--) {
          const node = table.node[i], before = crowd.get(node) || 0;
          if (!kind[1](i) || before >= MOST_MARKS_OF_NODE) continue;
          crowd.set(node, before + 1);
          found.push({ table: kind[0], i: i, node: node, shade: 1 - (state.t - table.at[i]) / trail * 0.75 });
        }
      });
      if (found.length > MOST_MARKS) {
        const once = new Set();
        found = found.filter(function (m) { return !once.has(m.node) && once.add(m.node); });
      }
      if (state.chosen && state.chosen.table !== 'frames' && !found.some(function (m) { return m.table === state.chosen.table && m.i === state.chosen.i; })) {
        found.push({ table: state.chosen.table, i: state.chosen.i, node: state.data[state.chosen.table].node[state.chosen.i], shade: 1 });
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
        const big = state.chosen && state.chosen.table === m.table && state.chosen.i === m.i ? 1.5 : 1;
        const look = m.table === 'drops' ? 'drop' : state.isHit(state.data.losses.why[m.i]) ? 'hit' : 'lost';
        pen.drawImage(mark(look, big), m.x - MARK * big / 2, m.y - MARK * big / 2, MARK * big, MARK * big);
      });
      pen.globalAlpha = 1;
      stats.marks = marks.length;
    }

    // Who collided: from the sender of what was lost, and from all others that were on the air, to where it was lost.
    function drawChosen() {
      if (!state.chosen || state.chosen.table !== 'losses') return;
      const losses = state.data.losses, frames = state.data.frames, to = places[losses.node[state.chosen.i]];
      const line = function (from, words, dash) {
        const p = places[from];
        pen.setLineDash(dash); pen.strokeStyle = colours.hit; pen.lineWidth = 2; pen.globalAlpha = 0.9;
        pen.beginPath(); pen.moveTo(X(p), Y(p)); pen.lineTo(X(to), Y(to)); pen.stroke();
        pen.setLineDash([]); pen.globalAlpha = 1;
        arrowHead([X(p), Y(p)], [X(to), Y(to)], colours.hit, radius(losses.node[state.chosen.i]) + 3);
        pen.font = '600 12px system-ui, sans-serif';
        text(words, X(p) + (X(to) - X(p)) * 0.3, Y(p) + (Y(to) - Y(p)) * 0.3 + 12, colours.hit);
      };
      state.othersOf(state.chosen.i).forEach(function (f) {
        if (frames.from[f] !== losses.node[state.chosen.i]) line(frames.from[f], kindWord(frames.kind[f]), [4, 5]);
      });
      line(frames.from[losses.frame[state.chosen.i]], kindWord(frames.kind[losses.frame[state.chosen.i]]) + ', lost', []);
    }

    function drawScale() {
      if (!state.scene.reach) return;
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
      places = state.scene.paths.map(function (path) { return placeAt(path, state.seconds(state.t)); });
      pen.strokeStyle = colours.muted; pen.lineWidth = 3; pen.beginPath();
      state.scene.links.forEach(function (link) {
        const a = places[link[0]], b = places[link[1]];
        pen.moveTo(X(a), Y(a)); pen.lineTo(X(b), Y(b));
      });
      pen.stroke();
      stats.draws++;
      if (state.data) {
        drawRoutes();
        const now = drawFrames();
        drawChosen();
        drawNodes(now);
        drawMarks();
        drawWords(now);
      }
      drawScale();
      drawStrip();
      q('.clock').textContent = state.clockText(state.t);
      strip.setAttribute('aria-valuenow', state.seconds(state.t).toFixed(6));
      strip.setAttribute('aria-valuetext', state.clockText(state.t));
    }

    function drawStrip() {
      const w = stripCanvas.width, h = stripCanvas.height;
      if (!w || !state.data) return;
      if (!bins) bins = histogram(w, h);
      stripPen.clearRect(0, 0, w, h);
      stripPen.drawImage(bins, 0, 0);
      const line = function (us, colour, wide) {
        stripPen.fillStyle = colour;
        stripPen.fillRect(Math.round(us / state.span() * w - wide / 2), 0, wide, h);
      };
      if (state.hover !== null && state.hover >= 0 && state.hover <= state.span()) line(state.hover, colours.muted, ratio);
      line(state.t, colours.ink, 2 * ratio);
    }

    function histogram(w, h) {
      const made = document.createElement('canvas'), p = made.getContext('2d'), step = 3 * ratio, count = Math.ceil(w / step);
      made.width = w; made.height = h;
      const bin = function (table, wanted) {
        const sums = new Array(count).fill(0);
        for (let i = 0; i < table.count; i++) if (wanted(i)) sums[Math.min(Math.floor(table.at[i] / state.span() * count), count - 1)]++;
        return sums;
      };
      const yes = function () { return true; };
      const all = bin(state.data.frames, yes), hits = bin(state.data.losses, function (i) { return state.isHit(state.data.losses.why[i]); }), drops = bin(state.data.drops, yes);
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

    // What is under a point of the map: a mark, or a node.
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

    return {
      air: air, draw: draw, redraw: redraw, fit: fit, zoom: zoom, pan: pan, resize: resize, under: under,
      readColours: readColours, stats: stats,
      renew: function () { width = 0; bins = null; resize(); },
      forget: function () { bins = null; redraw(); },
      at: function (i) { return { x: X(places[i]), y: Y(places[i]) }; },
      marks: function () { return marks; }
    };
  }
