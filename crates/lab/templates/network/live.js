  // A network that goes on: what happens comes in chunks while it is watched, and what is long over is forgotten.
  const MOST_KEPT = 200000;
  // How far the picture is behind, in µs: chunks come less often than pictures.
  const LAG = 400000;

  function Live(figure, head, state, stage, story) {
    const source = new EventSource('events'), words = figure.querySelector('.shown');
    // The number of the first frame that is kept.
    let first = 0;

    function push(to, from, i) {
      Object.keys(from).forEach(function (column) { if (Array.isArray(from[column]) && Array.isArray(to[column])) to[column].push(from[column][i]); });
      to.count++;
    }

    // Adds rows to `all`, in which the frame with this number is the first. Frames before it are not known.
    function add(all, more, number, since) {
      for (let i = 0; i < more.frames.count; i++) push(all.frames, more.frames, i);
      let at = 0;
      for (let i = 0; i < more.losses.count; i++) {
        const others = more.others.frame.slice(at, at + more.losses.others[i]).map(function (o) { return o - number; })
          .filter(function (o) { return o >= 0; });
        at += more.losses.others[i];
        if (more.losses.frame[i] < number) continue;
        push(all.losses, more.losses, i);
        all.losses.frame[all.losses.count - 1] -= number;
        all.losses.others[all.losses.count - 1] = others.length;
        others.forEach(function (o) { all.others.frame.push(o); all.others.count++; });
      }
      for (let i = 0; i < more.drops.count; i++) {
        if (more.drops.at[i] < since) continue;
        push(all.drops, more.drops, i);
        all.drops.frame[all.drops.count - 1] = Math.max(more.drops.frame[i] - number, 0);
      }
      ['queues', 'routes'].forEach(function (name) {
        for (let i = 0; i < more[name].count; i++) if (name === 'routes' || more[name].at[i] >= since) push(all[name], more[name], i);
      });
      return all;
    }

    // Forgets the older half.
    function trim() {
      const all = state.data, cut = all.frames.count >> 1;
      Object.keys(all.frames).forEach(function (column) { if (Array.isArray(all.frames[column])) all.frames[column].splice(0, cut); });
      all.frames.count -= cut;
      state.data = add(tables([]), all, cut, all.frames.at[0]);
      first += cut;
      state.chosen = null;
    }

    source.onmessage = function (message) {
      const chunk = JSON.parse(message.data);
      if (chunk.rows) {
        // After a gap all is new.
        if (chunk.first !== first + state.data.frames.count) { state.data = tables([]); first = chunk.first; state.chosen = null; }
        state.run.reasons = chunk.reasons;
        add(state.data, tables([bytesOf(chunk.rows)]), first, 0);
        if (state.data.frames.count > MOST_KEPT) trim();
        index(state.data);
      }
      state.run.to = state.run.from + chunk.until / 1e6;
      if (!state.chosen && state.node === null) story.tellSoon();
      stage.forget();
    };
    source.addEventListener('end', function () {
      source.close();
      head.live = false;
      words.textContent = 'The emulation has ended.';
    });
    source.onerror = function () { words.textContent = 'The connection to the emulation is lost.'; };
    source.onopen = function () { words.textContent = 'Live.'; };
  }
