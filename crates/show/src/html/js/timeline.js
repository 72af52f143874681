// One stretch in detail: MPI calls, lives of requests below them, messages as lines.
(() => {
  if (!Data || !Data.timeline) return;
  const { begin, length, places, tracks, messages } = Data.timeline;
  const CALL = 18, LANE = 4, MOST_LANES = 8, GAP = 8;
  let height = 0;
  for (const track of tracks) {
    track.y = height;
    track.lanes = Math.min(MOST_LANES, track.lanes);
    height += CALL + track.lanes * LANE + GAP;
  }
  const ROLES = ["posts requests", "completes requests", "blocks", "collective", "other MPI"];
  // calls that waited have the color of their cause
  const color = (span) => (span[6] >= 0 ? Page.color(String(span[6])) : Page.color(span[5] === 0 ? "ink" : "dim"));
  const place = (at) => (places[at] ? places[at].join(" ").trim() : "");
  const rowAt = (y) => tracks.findIndex((track, at) => y >= track.y && (at + 1 === tracks.length || y < tracks[at + 1].y));
  // the last span that begins before x
  const before = (spans, x) => {
    let low = 0, high = spans.length;
    while (low < high) { const middle = (low + high) >> 1; if (spans[middle][0] <= x) low = middle + 1; else high = middle; }
    return low - 1;
  };
  const arrow = (g, x0, y0, x1, y1) => {
    const angle = Math.atan2(y1 - y0, x1 - x0);
    g.moveTo(x0, y0); g.lineTo(x1, y1);
    for (const turn of [2.7, -2.7]) { g.moveTo(x1, y1); g.lineTo(x1 + 5 * Math.cos(angle + turn), y1 + 5 * Math.sin(angle + turn)); }
  };
  const plane = Plane("timeline", {
    range: { x0: 0, x1: length, y0: 0, y1: Math.max(1, height) },
    least: { x: Math.max(100, length / 1e5) },
    margin: { left: 74, right: 8, top: 6, bottom: 24 },
    height: () => height + 30,
    draw: (g, plane, inner) => {
      const { view } = plane, right = plane.width - 8;
      g.save();
      g.beginPath();
      g.rect(74, 0, inner.w, plane.height - 22);
      g.clip();
      const soft = Page.color("soft"), ink = Page.color("ink"), dim = Page.color("dim");
      for (const track of tracks) {
        const y = plane.py(track.y);
        g.fillStyle = soft;
        g.fillRect(74, y, inner.w, CALL);
        for (let at = Math.max(0, before(track.spans, view.x0)); at < track.spans.length; at++) {
          const span = track.spans[at];
          if (span[0] > view.x1) break;
          const x = plane.px(span[0]), width = Math.max(1, plane.px(span[0] + span[1]) - x);
          g.fillStyle = color(span);
          g.fillRect(x, y, width, CALL);
          if (width > 46 && places[span[2]]) {
            g.fillStyle = Page.color("paper");
            g.textAlign = "left";
            const visible = Math.max(x, 74), room = Math.min(x + width, right) - visible - 8;
            const text = places[span[2]][0].replace("MPI_", "");
            if (g.measureText(text).width < room) g.fillText(text, visible + 4, y + 13);
          }
        }
        for (const it of track.requests) {
          const end = it[1] < 0 ? length : it[1];
          if (end < view.x0 || it[0] > view.x1) continue;
          const x = plane.px(it[0]), top = y + CALL + 1 + (it[3] % MOST_LANES) * LANE;
          g.fillStyle = it[4] ? ink : dim;
          g.globalAlpha = it[4] ? 0.8 : 0.5;
          g.fillRect(x, top, Math.max(1, plane.px(end) - x), LANE - 1.5);
        }
        g.globalAlpha = 1;
        g.fillStyle = ink;
        for (const [at, lasted] of track.gpu)
          if (at <= view.x1 && at + lasted >= view.x0) g.fillRect(plane.px(at), y + CALL - 3, Math.max(1, plane.px(at + lasted) - plane.px(at)), 3);
      }
      const shown = messages.filter((it) => it[3] >= view.x0 && it[2] <= view.x1);
      g.strokeStyle = ink;
      g.lineWidth = 1;
      g.globalAlpha = shown.length > 400 ? 0.25 : 0.6;
      g.beginPath();
      for (const it of shown) {
        const down = it[1] > it[0], from = tracks[it[0]].y + (down ? CALL : 0), to = tracks[it[1]].y + (down ? 0 : CALL);
        arrow(g, plane.px(it[2]), plane.py(from), plane.px(it[3]), plane.py(to));
      }
      g.stroke();
      g.restore();
      g.fillStyle = ink;
      g.textAlign = "right";
      for (const track of tracks) g.fillText("rank " + track.name, 68, plane.py(track.y) + 13, 66);
      plane.axis(g, begin);
    },
    find: (x, y, plane) => {
      const row = rowAt(y), track = tracks[row];
      if (!track) return null;
      const slack = ((plane.view.x1 - plane.view.x0) / plane.width) * 2;
      if (y < track.y + CALL) {
        const at = before(track.spans, x + slack), span = track.spans[at];
        return span && x <= span[0] + span[1] + slack ? { row, at } : null;
      }
      const lane = Math.floor((y - track.y - CALL - 1) / LANE);
      const request = track.requests.findIndex((it) => it[3] % MOST_LANES === lane && it[0] - slack <= x && (it[1] < 0 || it[1] + slack >= x));
      return request < 0 ? null : { row, request };
    },
    box: (it) => {
      const track = tracks[it.row];
      if (it.request !== undefined) {
        const found = track.requests[it.request], y = track.y + CALL + 1 + (found[3] % MOST_LANES) * LANE;
        return { x0: found[0], x1: found[1] < 0 ? length : found[1], y0: y, y1: y + LANE };
      }
      const span = track.spans[it.at];
      return { x0: span[0], x1: span[0] + span[1], y0: track.y, y1: track.y + CALL };
    },
    step: (it, dx, dy) => {
      if (!it || it.request !== undefined) { const row = it ? it.row : tracks.findIndex((track) => track.spans.length); return { row, at: 0 }; }
      if (dx) { const at = it.at + dx; return tracks[it.row].spans[at] ? { row: it.row, at } : null; }
      const x = tracks[it.row].spans[it.at][0];
      for (let row = it.row + dy; tracks[row]; row += dy) if (tracks[row].spans.length) return { row, at: Math.max(0, before(tracks[row].spans, x)) };
      return null;
    },
    tell: (it) => {
      const track = tracks[it.row], who = "rank " + track.name + " on " + track.host + ": ";
      if (it.request !== undefined) {
        const [from, to, at, , sends, bytes, peer] = track.requests[it.request];
        return who + (sends ? "send" : "request") + " " + place(at) + "\n" + Units.exactBytes(bytes) + (peer ? (sends ? " to rank " : " with rank ") + peer : "") +
          "\nat " + Units.exact(begin + from) + (to < 0 ? ", completed later or never" : ", for " + Units.exact(to - from));
      }
      const [from, span, at, calls, mpi, role, cause] = track.spans[it.at];
      return who + place(at) + (calls > 1 ? " and " + (calls - 1) + " more calls" : "") + ", " + ROLES[role] + "\nat " + Units.exact(begin + from) + ", for " + Units.exact(span) +
        (mpi < span ? ", " + Units.exact(mpi) + " of it in MPI" : "") + (cause >= 0 ? "\nmostly " + Data.causes[cause][0] + ": " + Data.causes[cause][1] : "");
    },
  });
  if (!plane) return;
  plane.legend = () => {
    const causes = new Set(tracks.flatMap((track) => track.spans.map((span) => span[6])));
    plane.key([
      ...Data.causes.map((cause, at) => [Page.color(String(at)), cause[0], at]).filter((entry) => causes.has(entry[2])),
      [Page.color("ink"), "posts requests"], [Page.color("dim"), "other MPI, nothing waited for"], [Page.color("soft"), "computation"],
      ...(tracks.some((track) => track.gpu.length) ? [[Page.color("ink"), "below a call: the GPU computes"]] : []),
    ]);
  };
  plane.legend();
})();
