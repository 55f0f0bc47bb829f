// What the page can do beyond being read: point at values, move nodes through time; timeline.js has the charts over time.
(function () {
  'use strict';
  var all = function (root, selector) { return Array.prototype.slice.call(root.querySelectorAll(selector)); };
  document.documentElement.classList.add('js');

  var tip = document.querySelector('.tip');
  all(document, '.spot').forEach(function (spot) {
    var title = spot.querySelector('title');
    spot.tip = title.textContent;
    title.remove(); // Else the browser shows it, too.
  });

  function show(text, event) {
    tip.textContent = text;
    tip.hidden = false;
    var left = Math.min(event.clientX + 14, window.innerWidth - tip.offsetWidth - 8);
    var above = event.clientY - tip.offsetHeight - 12;
    tip.style.left = Math.max(4, left) + 'px';
    tip.style.top = (above < 4 ? event.clientY + 18 : above) + 'px';
  }

  // Where the pointer is in the units of a picture, and how many of them make a pixel of the screen.
  function place(svg, event) {
    var matrix = svg.getScreenCTM();
    return { x: (event.clientX - matrix.e) / matrix.a, y: (event.clientY - matrix.f) / matrix.d, pixel: 1 / matrix.a };
  }

  function nearest(candidates, at, reach) {
    var best = null, closest = reach * reach;
    candidates.forEach(function (candidate) {
      var dx = candidate.x - at.x, dy = candidate.y - at.y, d = dx * dx + dy * dy;
      if (d < closest) { closest = d; best = candidate; }
    });
    return best;
  }

  function spots(svg) {
    return svg.spots || (svg.spots = all(svg, '.spot').map(function (s) {
      return { x: +s.getAttribute('cx'), y: +s.getAttribute('cy'), tip: s.tip };
    }));
  }

  function vertices(svg) {
    if (svg.vertices) return svg.vertices;
    var names = JSON.parse(svg.getAttribute('data-flows') || '[]');
    var axis = function (name) { return (svg.getAttribute(name) || '0 1 0 1').split(' ').map(Number); };
    var x = axis('data-x'), y = axis('data-y'), unit = svg.getAttribute('data-unit');
    var value = function (axis, at) { return axis[2] + (at - axis[0]) / (axis[1] - axis[0]) * (axis[3] - axis[2]); };
    svg.vertices = [];
    all(svg, '.flow').forEach(function (line) {
      var name = names[+line.getAttribute('data-flow')];
      line.getAttribute('points').trim().split(/\s+/).forEach(function (pair) {
        var p = pair.split(',').map(Number);
        var text = name + ', ' + value(x, p[0]).toFixed(1) + ' s: ' + Number(value(y, p[1]).toPrecision(3)) + ' ' + unit;
        svg.vertices.push({ x: p[0], y: p[1], tip: text, line: line });
      });
    });
    return svg.vertices;
  }

  document.addEventListener('pointermove', function (event) {
    var svg = event.target.closest && event.target.closest('svg');
    var found = null;
    if (svg && svg.classList.contains('chart')) {
      var at = place(svg, event);
      var seen = vertices(svg).filter(function (v) { return !v.line.classList.contains('faded'); });
      found = nearest(spots(svg), at, 14 * at.pixel) || nearest(seen, at, 28 * at.pixel);
    } else if (svg && svg.nodeAt) {
      found = svg.nodeAt(event);
    }
    if (found) { show(found.tip, event); } else { tip.hidden = true; }
  });
  document.addEventListener('pointerleave', function () { tip.hidden = true; });

  all(document, '.network').forEach(function (figure) {
    var svg = figure.querySelector('.map'), data = JSON.parse(figure.querySelector('script').textContent);
    var circles = all(svg, '.node'), labels = all(svg, '.name'), wires = all(svg, '.wire'), routes = all(svg, '.route');
    var arrows = all(svg, '.arrow'), flowNames = all(svg, '.flow-name'), ranges = all(svg, '.reach, .sense');
    var slider = figure.querySelector('input'), output = figure.querySelector('output');
    var button = figure.querySelector('.play'), choice = figure.querySelector('select');
    var selected = data.selected, places = data.paths.map(function (path) { return at(path, 0); });

    // The place on a path [t, x, y, t, x, y, …]: straight lines between its corners.
    function at(path, t) {
      var i = 0;
      while (i + 3 < path.length && path[i + 3] <= t) i += 3;
      if (i + 3 >= path.length) return { x: path[i + 1], y: path[i + 2] };
      var share = Math.max(0, (t - path[i]) / (path[i + 3] - path[i] || 1));
      return {
        x: path[i + 1] + share * (path[i + 4] - path[i + 1]),
        y: path[i + 2] + share * (path[i + 5] - path[i + 2])
      };
    }

    function set(element, attributes) {
      Object.keys(attributes).forEach(function (key) { element.setAttribute(key, attributes[key]); });
    }

    function draw() {
      var t = slider ? +slider.value : 0;
      if (output) output.textContent = t.toFixed(1) + ' s';
      places = data.paths.map(function (path) { return at(path, t); });
      circles.forEach(function (circle, i) { set(circle, { cx: places[i].x, cy: places[i].y }); });
      labels.forEach(function (label, i) { set(label, { x: places[i].x, y: places[i].y + 19 }); });
      ranges.forEach(function (range) { set(range, { cx: places[selected].x, cy: places[selected].y }); });
      data.links.forEach(function (link, i) {
        var a = places[link[0]], b = places[link[1]];
        set(wires[i], { x1: a.x, y1: a.y, x2: b.x, y2: b.y });
      });
      data.routes.forEach(function (route, i) {
        set(routes[i], { points: route.map(function (n) { return places[n].x + ',' + places[n].y; }).join(' ') });
      });
      data.flows.forEach(function (flow, i) {
        var a = places[flow[1]], b = places[flow[2]], dx = b.x - a.x, dy = b.y - a.y;
        var bent = function (by) { return { x: a.x + dx / 2 + dy * by, y: a.y + dy / 2 - dx * by }; };
        var q = bent(0.18);
        set(arrows[i], { d: 'M' + a.x + ' ' + a.y + 'Q' + q.x + ' ' + q.y + ' ' + b.x + ' ' + b.y });
        if (flowNames[i]) set(flowNames[i], bent(0.12));
      });
    }

    function select(node) {
      circles[selected].classList.remove('selected');
      selected = node;
      circles[selected].classList.add('selected');
      choice.value = node;
      draw();
    }

    svg.nodeAt = function (event) {
      var p = place(svg, event);
      var spots = places.map(function (q, i) { return { x: q.x, y: q.y, node: i, tip: data.names[i] }; });
      var found = nearest(spots, p, 16 * p.pixel);
      if (found && data.metres && found.node !== selected) {
        var d = Math.hypot(found.x - places[selected].x, found.y - places[selected].y) * data.metres;
        found.tip += ', ' + d.toFixed(0) + ' m from ' + data.names[selected];
      }
      return found;
    };
    if (choice) {
      svg.addEventListener('click', function (event) {
        var found = svg.nodeAt(event);
        if (found) select(found.node);
      });
      data.names.forEach(function (name, i) { choice.add(new Option(name, i, false, i === selected)); });
      choice.addEventListener('change', function () { select(+choice.value); });
    }
    if (!slider) return;
    // The crosshair of the charts and the slider are one time.
    var section = figure.closest('section');
    section.addEventListener('hopline:time', function (event) {
      if (event.detail.kind !== 'seek' || event.detail.from === figure || event.detail.t === null) return;
      slider.value = event.detail.t;
      draw();
    });
    slider.addEventListener('input', function () {
      draw();
      section.dispatchEvent(new CustomEvent('hopline:time', { detail: { t: +slider.value, kind: 'seek', from: figure } }));
    });
    draw(); // A reloaded page may remember where the slider was.

    // The whole run in twenty seconds.
    var before = null;
    function step(now) {
      if (before === null) return;
      var t = +slider.value + (now - before) / 20000 * +slider.max;
      before = now;
      slider.value = t >= +slider.max ? 0 : t;
      draw();
      requestAnimationFrame(step);
    }
    button.addEventListener('click', function () {
      var playing = before !== null;
      button.textContent = playing ? '▶' : '❚❚';
      button.setAttribute('aria-label', playing ? 'Play' : 'Pause');
      before = playing ? null : performance.now();
      if (!playing) requestAnimationFrame(step);
    });
  });
})();
