  // What happened, in words.
  function Story(figure, head, state, choose) {
    const told = figure.querySelector('.told'), late = figure.querySelector('.late ol');
    let lateTimer = 0, tellTimer = 0;

    function frameWords(i) {
      const f = state.data.frames, parts = [kindWord(f.kind[i])];
      if (f.flow[i]) parts.push(' of ' + state.flowName(f.flow[i]));
      parts.push(' from ' + state.name(f.from[i]) + (f.to[i] ? ' to ' + state.name(f.to[i] - 1) : ' to all'));
      return parts.join('');
    }

    function frameBriefly(i) {
      const f = state.data.frames;
      return kindWord(f.kind[i]) + ' ' + state.name(f.from[i]) + ' → ' + (f.to[i] ? state.name(f.to[i] - 1) : 'all');
    }

    function frameDetails(i) {
      const f = state.data.frames;
      const size = f.bytes[i] ? ', ' + spaced(String(f.bytes[i])) + ' bytes' : '';
      return frameWords(i) + size + ', since ' + state.clockText(f.at[i]) + ', for ' + duration(f.air[i]);
    }

    function lossTitle(i) {
      const l = state.data.losses;
      return (state.isHit(l.why[i]) ? 'collision' : 'lost') + ' at ' + state.name(l.node[i]);
    }

    function lossWhy(i) {
      const l = state.data.losses, f = l.frame[i], others = state.othersOf(i);
      const names = others.map(frameWords);
      if (l.why[i] === COLLISION) return 'it collided there with ' + (names.join(' and ') || 'another signal');
      if (l.why[i] === SENDING) {
        const own = others.filter(function (o) { return state.data.frames.from[o] === l.node[i]; });
        return state.name(l.node[i]) + ' was itself sending (' + own.map(frameWords).join(', ') + ')';
      }
      if (l.why[i] === WEAK) {
        const far = Math.round(state.distance(state.data.frames.from[f], l.node[i], l.at[i]));
        const reach = state.scene.reach ? '; frames are understood up to ' + Math.round(state.scene.reach) + ' m' : '';
        return 'it was too weak: the sender is ' + far + ' m away' + reach;
      }
      return head.losses[l.why[i]];
    }

    function capital(words) { return words[0].toUpperCase() + words.slice(1); }

    function tellLoss(i) {
      const l = state.data.losses, f = l.frame[i], others = state.othersOf(i);
      const parts = [
        element('h4', capital(lossTitle(i))),
        element('p', [state.clockText(l.at[i]) + ': ' + frameDetails(f) + ', did not come through at ' + state.name(l.node[i]) + '. ', element('b', capital(lossWhy(i)) + '.')])
      ];
      if (others.length) {
        parts.push(element('p', 'Also on the air at ' + state.name(l.node[i]) + ' meanwhile:'));
        parts.push(element('ul', others.map(function (o) { return element('li', frameDetails(o)); })));
      }
      return parts;
    }

    // Losses of a frame: they are told when it ends, a little later where it is far.
    function lossesOf(frame) {
      const end = state.data.frames.at[frame] + state.data.frames.air[frame], found = [];
      for (let i = countUntil(state.data.losses.at, end - 3); i < state.data.losses.count && state.data.losses.at[i] < end + 200; i++) {
        if (state.data.losses.frame[i] === frame) found.push(i);
      }
      return found;
    }

    // The answer to a frame: a CTS or an ACK the other way, soon after.
    function answerTo(frame) {
      const f = state.data.frames, end = f.at[frame] + f.air[frame];
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
      const d = state.data.drops, reason = state.run.reasons[d.why[i]];
      const ends = d.src[i] && d.dst[i] ? ', ' + state.name(d.src[i] - 1) + ' → ' + state.name(d.dst[i] - 1) : d.src[i] ? ', from ' + state.name(d.src[i] - 1) : '';
      const what = kindWord(d.kind[i]) + (d.flow[i] ? ' of ' + state.flowName(d.flow[i]) : '') + ' (packet ' + d.serial[i] + ends + ', ' + spaced(String(d.bytes[i])) + ' bytes)';
      const next = d.next[i] ? ' Its next hop would have been ' + state.name(d.next[i] - 1) + '.' : '';
      const parts = [
        element('h4', 'Drop at ' + state.name(d.node[i]) + ': ' + reason),
        element('p', [state.clockText(d.at[i]) + ': ' + what + ' was dropped. ', element('b', 'Why: ' + reason + '.'), next])
      ];
      const packets = latest(state.data.queueOf.get(d.node[i]), d.at[i]);
      if (d.frame[i]) parts.push(element('p', lastTry(d.frame[i] - 1)));
      if (packets) parts.push(element('p', packets + (packets === 1 ? ' packet waits' : ' packets wait') + ' there at that moment.'));
      return parts;
    }

    function tellFrame(i) {
      const f = state.data.frames, lost = lossesOf(i);
      const parts = [element('h4', capital(frameWords(i))), element('p', capital(frameDetails(i)) + (f.kind[i] >= WIRED ? ', over a wire' : '') + '.')];
      if (lost.length) {
        parts.push(element('ul', lost.slice(0, 6).map(function (l) { return element('li', 'It is lost at ' + state.name(state.data.losses.node[l]) + ': ' + lossWhy(l) + '.'); })));
        if (lost.length > 6) parts.push(element('p', 'So it is at ' + (lost.length - 6) + ' more.'));
      }
      return parts;
    }

    function tellNode(i) {
      const packets = latest(state.data.queueOf.get(i), state.t), p = state.place(i, state.t);
      const parts = [element('h4', 'Node ' + state.name(i)), element('p', (packets === 1 ? '1 packet waits' : packets + ' packets wait') + ' in its queue.')];
      if (!state.scene.wired[i]) parts.push(element('p', 'It is at ' + p[0].toFixed(0) + ' m, ' + p[1].toFixed(0) + ' m.' + (state.scene.sense ? ' Inner circle: ' + state.scene.reach.toFixed(0) + ' m, up to which it is understood; outer: ' + state.scene.sense.toFixed(0) + ' m, up to which it keeps the medium busy.' : '')));
      return parts;
    }

    function tell() {
      let parts;
      if (!state.data) parts = [element('p', 'Reading the run …', 'dim')];
      else if (state.chosen) parts = { losses: tellLoss, drops: tellDrop, frames: tellFrame }[state.chosen.table](state.chosen.i);
      else if (state.node !== null) parts = tellNode(state.node);
      else {
        const d = state.data, hits = d.losses.why.filter(state.isHit).length;
        parts = [
          element('p', spaced(String(d.frames.count)) + ' frames, ' + spaced(String(hits)) + ' collisions, ' + spaced(String(d.drops.count)) + ' drops in the time shown.'),
          element('p', 'Click a star (a collision) or a cross (a drop) on the map to see who collided or why, or a node to see its queue and its range. Step from event to event with |◀ and ▶|.', 'dim')
        ];
      }
      told.replaceChildren.apply(told, parts);
      markChosen();
    }

    function listLate() {
      lateTimer = 0;
      if (!state.data) return;
      const found = [];
      [['losses', state.showsLoss], ['drops', function () { return state.shows[DROPS]; }]].forEach(function (kind) {
        const table = state.data[kind[0]];
        let left = 7;
        for (let i = countUntil(table.at, state.t) - 1; i >= 0 && left > 0; i--) {
          if (kind[1](i)) { found.push({ table: kind[0], i: i, at: table.at[i] }); left--; }
        }
      });
      found.sort(function (a, b) { return b.at - a.at; });
      late.replaceChildren.apply(late, found.slice(0, 7).map(function (event) {
        const i = event.i, d = state.data.drops, drop = event.table === 'drops';
        const title = drop ? '✕ drop at ' + state.name(d.node[i]) : (state.isHit(state.data.losses.why[i]) ? '✸ ' : '☆ ') + lossTitle(i);
        const words = drop ? ', ' + state.run.reasons[d.why[i]] : ', ' + frameBriefly(state.data.losses.frame[i]);
        const button = element('button', [state.seconds(event.at).toFixed(4) + ' s ', element('b', title, drop ? 'drop' : ''), words]);
        button.type = 'button';
        button.event = event;
        button.addEventListener('click', function () { choose(event.at, { table: event.table, i: i }); });
        return element('li', button);
      }));
      if (!found.length) late.append(element('li', 'none yet', 'dim'));
      markChosen();
    }

    function markChosen() {
      late.querySelectorAll('button').forEach(function (b) {
        b.classList.toggle('chosen', !!state.chosen && b.event.table === state.chosen.table && b.event.i === state.chosen.i);
      });
    }

    function listSoon() { if (!lateTimer) lateTimer = setTimeout(listLate, 200); }

    return {
      tell: tell, listLate: listLate, listSoon: listSoon,
      tellSoon: function () { if (!tellTimer) tellTimer = setTimeout(function () { tellTimer = 0; tell(); }, 200); },
      say: function (words) { told.replaceChildren(element('p', words)); }
    };
  }
