  // What the page holds of a run: columns of numbers. crates/lab/src/animation/layout.rs has the same table.
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
  // A picture shows no more frames than this; of more than these there are no circles around senders, no rings of what was sent
  // to all, no words; of more marks than these each node has one, and else no more than its own.
  const MOST_FRAMES = 1000, MOST_CIRCLES = 24, MOST_RINGS = 150, MOST_WORDS = 10, MOST_MARKS = 80, MOST_MARKS_OF_NODE = 6;
  // Width of a mark, in pixels.
  const MARK = 22;
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

  function placeAt(path, s) {
    let i = 0;
    while (i + 3 < path.length && path[i + 3] <= s) i += 3;
    if (i + 3 >= path.length) return [path[i + 1], path[i + 2]];
    const share = Math.max(0, (s - path[i]) / (path[i + 3] - path[i] || 1));
    return [path[i + 1] + share * (path[i + 4] - path[i + 1]), path[i + 2] + share * (path[i + 5] - path[i + 2])];
  }

  // ---- What is shown: of which run, when, and what was chosen ----

  // Among what can be left out: after the kinds of frames.
  const HITS = 7, LOST = 8, DROPS = 9;

  function State(head) {
    const state = {
      runs: head.runs, run: head.runs[0], scene: head.scenes[head.runs[0].scene], data: null,
      // Time is in µs since the window began.
      t: 0, speed: 1 / 100, playing: false, hover: null,
      // An event ({ table, i }), or a node, or neither; and the flow whose route is drawn, -1 for all.
      chosen: null, node: null, flow: 0,
      shows: KINDS.map(function () { return true; }).concat([true, true, true])
    };
    state.span = function () { return Math.max(1, Math.round((state.run.to - state.run.from) * 1e6)); };
    state.seconds = function (us) { return state.run.from + us / 1e6; };
    state.clockText = function (us) {
      const parts = state.seconds(us).toFixed(6).split('.');
      return parts[0] + '.' + parts[1].slice(0, 3) + '\u202f' + parts[1].slice(3) + ' s';
    };
    state.name = function (i) { return state.scene.names[i]; };
    state.flowName = function (number) { return number && state.scene.flows[number - 1] ? state.scene.flows[number - 1][0] : ''; };
    state.place = function (i, us) { return placeAt(state.scene.paths[i], state.seconds(us)); };
    state.distance = function (a, b, us) {
      const p = state.place(a, us), r = state.place(b, us);
      return Math.hypot(p[0] - r[0], p[1] - r[1]);
    };
    state.isHit = function (why) { return why === COLLISION || why === SENDING; };
    state.showsLoss = function (i) { return state.shows[state.isHit(state.data.losses.why[i]) ? HITS : LOST]; };
    state.showsFrame = function (i) { return state.shows[Math.min(state.data.frames.kind[i] % WIRED, 6)]; };
    // What was on the air with a frame that was lost.
    state.othersOf = function (loss) {
      const first = state.data.losses.first[loss];
      return state.data.others.frame.slice(first, first + state.data.losses.others[loss]);
    };
    return state;
  }

