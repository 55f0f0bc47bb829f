// Charts over time: drawn as wide as there is room, for the variant and the flow that are picked, with one crosshair for all charts
// of a section. Time is told on the section by "hopline:time": {t: seconds or null, kind: "hover", "seek" or "play", from: element}.
(function () {
  'use strict';
  var NS = document.querySelector('svg').namespaceURI;
  var LEFT = 52, RIGHT = 14, TOP = 8, HEIGHT = 150, FOOT = 22, COLOURS = 7, DASHES = ['', '6 4', '1.5 3', '9 3 1.5 3'];

  function make(name, attributes, parent, text) {
    var element = document.createElementNS(NS, name);
    Object.keys(attributes).forEach(function (key) { element.setAttribute(key, attributes[key]); });
    if (text !== undefined) element.textContent = text;
    parent.appendChild(element);
    return element;
  }

  // A step of 1, 2 or 5 times a power of ten, so that about `count` of them make `range`.
  function step(range, count) {
    var raw = range / count, power = Math.pow(10, Math.floor(Math.log10(raw)));
    var times = [1, 2, 5, 10].find(function (n) { return n * power >= raw * 0.999; });
    return times * power;
  }

  function ticks(end, count) {
    var by = step(end, count), all = [];
    for (var i = 0; i * by <= end * 1.0001; i++) all.push(+(i * by).toPrecision(12));
    return all;
  }

  function number(x) {
    if (x === null || x === undefined || !isFinite(x)) return '–';
    var text = Math.abs(x) >= 1000 ? String(Math.round(x)) : String(+x.toPrecision(4));
    return text.replace('-', '−');
  }

  function Timeline(root) {
    var data = JSON.parse(root.querySelector('script').textContent);
    var section = root.closest('section'), form = root.querySelector('form'), legend = root.querySelector('.legend');
    var figures = Array.prototype.slice.call(root.querySelectorAll('.over-time'));
    var width = 0, now = null;
    var charts = data.charts.map(function (chart, i) {
      var figure = figures[i], svg = document.createElementNS(NS, 'svg');
      svg.setAttribute('class', 'plot');
      svg.setAttribute('role', 'img');
      svg.setAttribute('aria-label', figure.querySelector('svg').getAttribute('aria-label'));
      figure.replaceChild(svg, figure.querySelector('svg'));
      return { of: chart, figure: figure, svg: svg, readings: figure.querySelector('.readings'), lines: [], hidden: false };
    });

    function chosen(name) { return form.elements[name] ? form.elements[name].value : ''; }

    // What is compared: a line's look is that of its variant, or where flows are compared that of its place.
    function lines(chart) {
      var variant = chosen('variant'), flow = form.elements.flow ? chosen('flow') : '0';
      var variants = data.variants.map(function (v, place) { return { index: v.index, name: v.name, place: place }; });
      if (variant !== '') variants = variants.filter(function (v) { return String(v.index) === variant; });
      var compared = variants.length > 1 ? 'variants' : 'flows';
      if (flow === 'each') {
        var all = [];
        variants.forEach(function (v) {
          chart.of.values[v.place].forEach(function (values, f) {
            var look = compared === 'flows' ? { colour: f, dash: Math.floor(f / COLOURS) } : { colour: v.index, dash: f };
            var name = compared === 'flows' ? data.flows[f] : v.name + ', ' + data.flows[f];
            all.push({ name: name, values: values, colour: look.colour, dash: look.dash });
          });
        });
        return all;
      }
      if (flow === 'sum' && chart.of.key !== 'goodput') return null;
      return variants.map(function (v) {
        var flows = chart.of.values[v.place];
        var values = flow === 'sum' ? sum(flows) : flows[+flow] || [];
        return { name: v.name, values: values, colour: v.index, dash: Math.floor(v.index / COLOURS) };
      });
    }

    function sum(flows) {
      var longest = flows.reduce(function (a, b) { return b.length > a.length ? b : a; }, []);
      return longest.map(function (_, i) {
        return flows.reduce(function (total, values) { return total + (values[i] || 0); }, 0);
      });
    }

    function x(t) { return LEFT + t / data.end_s * (width - LEFT - RIGHT); }

    function draw() {
      width = Math.max(280, Math.floor(root.clientWidth));
      var shown = charts.filter(function (chart) {
        chart.lines = lines(chart) || [];
        chart.hidden = chart.lines.every(function (line) { return line.values.every(function (y) { return y === null; }); });
        chart.figure.hidden = chart.hidden;
        return !chart.hidden;
      });
      shown.forEach(function (chart, i) { drawChart(chart, i === shown.length - 1); });
      drawLegend(shown[0]);
      point(now);
    }

    function drawLegend(chart) {
      legend.textContent = '';
      if (!chart || chart.lines.length < 2) return;
      chart.lines.forEach(function (line) { legend.appendChild(entry(line, line.name)); });
    }

    function entry(line, text) {
      var span = document.createElement('span'), svg = make('svg', { viewBox: '0 0 22 8', class: 'line-mark v' + line.colour % COLOURS }, span);
      make('path', { d: 'M0 4H22', class: 'l', 'stroke-width': 2.4, 'stroke-dasharray': DASHES[line.dash % 4] }, svg);
      span.appendChild(document.createTextNode(text));
      return span;
    }

    function drawChart(chart, last) {
      var svg = chart.svg, bottom = TOP + HEIGHT, height = bottom + (last ? FOOT + 14 : 6);
      svg.textContent = '';
      svg.setAttribute('viewBox', '0 0 ' + width + ' ' + height);
      var top = 0;
      chart.lines.forEach(function (line) { line.values.forEach(function (y) { if (y > top) top = y; }); });
      top = top > 0 ? top * 1.05 : 1;
      chart.y = function (value) { return bottom - value / top * HEIGHT; };
      ticks(top, 3).forEach(function (value) {
        make('path', { d: 'M' + LEFT + ' ' + chart.y(value) + 'H' + (width - RIGHT), class: value ? 'grid l' : 'axis l' }, svg);
        make('text', { x: LEFT - 7, y: chart.y(value) + 4, 'text-anchor': 'end', class: 'muted f' }, svg, number(value));
      });
      if (last) {
        ticks(data.end_s, Math.max(3, Math.floor(width / 110))).forEach(function (t) {
          make('path', { d: 'M' + x(t) + ' ' + bottom + 'v4', class: 'axis l' }, svg);
          make('text', { x: x(t), y: bottom + 17, 'text-anchor': 'middle', class: 'muted f' }, svg, number(t));
        });
        make('text', { x: (LEFT + width - RIGHT) / 2, y: bottom + FOOT + 10, 'text-anchor': 'middle', class: 'muted f' }, svg, 'time (s)');
      }
      chart.lines.forEach(function (line) {
        var d = '', pen = 'M';
        line.values.forEach(function (value, i) {
          if (value === null) { pen = 'M'; return; }
          var at = x((i + 0.5) * data.slot_s).toFixed(1) + ' ' + chart.y(value).toFixed(1);
          // A value between two holes would be no line.
          d += pen + at + (pen === 'M' ? 'h0.01' : '');
          pen = 'L';
        });
        make('path', { d: d, class: 'flow l v' + line.colour % COLOURS, 'stroke-width': 1.5, 'stroke-dasharray': DASHES[line.dash % 4] }, svg);
      });
      chart.cursor = make('path', { class: 'cursor l', d: '' }, svg);
      chart.dots = make('g', {}, svg);
    }

    // Shows what there is at `t`; means over the run where that is nowhere.
    function point(t) {
      now = t;
      var slot = t === null ? -1 : Math.max(0, Math.min(Math.floor(t / data.slot_s), Math.ceil(data.end_s / data.slot_s) - 1));
      charts.forEach(function (chart) {
        if (chart.hidden) return;
        chart.cursor.setAttribute('d', t === null ? '' : 'M' + x(t).toFixed(1) + ' ' + TOP + 'v' + HEIGHT);
        chart.dots.textContent = '';
        chart.readings.textContent = '';
        var many = chart.lines.length > 8;
        chart.lines.slice(0, 8).forEach(function (line) {
          var value = slot < 0 ? mean(line.values) : line.values[slot];
          chart.readings.appendChild(entry(line, number(value)));
          if (slot >= 0 && typeof value === 'number') {
            make('circle', { cx: x((slot + 0.5) * data.slot_s), cy: chart.y(value), r: 3, class: 'f v' + line.colour % COLOURS }, chart.dots);
          }
        });
        if (many) chart.readings.appendChild(document.createTextNode('…'));
        chart.readings.appendChild(document.createTextNode(slot < 0 ? 'mean' : 'at ' + number(t) + ' s'));
      });
    }

    function mean(values) {
      var there = values.filter(function (y) { return y !== null; });
      return there.length ? there.reduce(function (a, b) { return a + b; }, 0) / there.length : null;
    }

    function time(event) {
      var box = event.currentTarget.getBoundingClientRect();
      var t = ((event.clientX - box.left) / box.width * width - LEFT) / (width - LEFT - RIGHT) * data.end_s;
      return t < -0.02 * data.end_s || t > 1.02 * data.end_s ? null : Math.max(0, Math.min(t, data.end_s));
    }

    function tell(kind) {
      return function (event) {
        var t = kind === 'leave' ? null : time(event);
        point(t);
        section.dispatchEvent(new CustomEvent('hopline:time', { detail: { t: t, kind: kind === 'seek' ? 'seek' : 'hover', from: root } }));
      };
    }

    charts.forEach(function (chart) {
      chart.svg.addEventListener('pointermove', tell('hover'));
      chart.svg.addEventListener('pointerleave', tell('leave'));
      chart.svg.addEventListener('click', tell('seek'));
    });
    section.addEventListener('hopline:time', function (event) {
      if (event.detail.from !== root) point(event.detail.t);
    });
    form.addEventListener('change', draw);
    form.addEventListener('submit', function (event) { event.preventDefault(); });
    draw();
    new ResizeObserver(function () { if (Math.abs(root.clientWidth - width) > 1) draw(); }).observe(root);
  }

  document.querySelectorAll('.timeline').forEach(function (root) { Timeline(root); });

  document.querySelectorAll('.flows').forEach(function (root) {
    var form = root.querySelector('form');
    if (!form) return;
    function pick() {
      root.querySelectorAll('[data-metric]').forEach(function (table) { table.hidden = table.dataset.metric !== form.elements.metric.value; });
    }
    pick();
    form.addEventListener('change', pick);
    form.addEventListener('submit', function (event) { event.preventDefault(); });
  });
})();
