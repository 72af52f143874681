// Who sent to whom: rows are senders, columns receivers; borders of nodes are lines.
(() => {
  if (!Data || !Data.matrix.length) return;
  const bins = Data.bins, size = bins.length, cells = new Map();
  for (const cell of Data.matrix) cells.set(cell[0] * size + cell[1], cell);
  const shows = document.getElementById("matrix-shows");
  if (!shows) return;
  const value = (cell) => cell[[3, 2, 4][shows.value]];
  const label = (bin) => (bin[2] === 1 ? bin[0] : bin[0] + "–" + bin[1]);
  const who = (bin) => (bin[2] === 1 ? "rank " + bin[0] : "ranks " + label(bin)) + " on " + bin[3] + (bin[4] > 1 ? " and " + (bin[4] - 1) + " more hosts" : "");
  // where values differ a hundredfold, equal steps of color are equal factors
  const scale = () => {
    const all = Data.matrix.map(value).filter((value) => value > 0), high = Math.max(1, ...all), low = Math.min(high, ...all);
    const isLog = high / low > 100;
    const share = (value) => (isLog ? Math.log(value / low) / Math.log(high / low) : value / high);
    return { depth: (value) => (value > 0 ? 0.12 + 0.88 * share(value) : 0), at: (share) => Math.round(isLog ? low * (high / low) ** share : high * share) };
  };
  document.querySelector("#matrix-figure .picture").style.maxWidth = Math.max(260, Math.min(640, 82 + size * 70)) + "px";
  const plane = Plane("matrix", {
    range: { x0: 0, x1: size, y0: 0, y1: size },
    least: { x: Math.min(2, size), y: Math.min(2, size) },
    margin: { left: 74, right: 8, top: 4, bottom: 24 },
    height: (width) => Math.round((width - 82) * (size < 4 ? 0.6 : 0.9)) + 28,
    find: (x, y) => ({ from: Math.min(size - 1, Math.floor(y)), to: Math.min(size - 1, Math.floor(x)) }),
    draw: (g, plane, inner) => {
      const { depth } = scale(), mix = Page.mixer(["0", "2", "1"][shows.value]), { view } = plane;
      g.save();
      g.beginPath();
      g.rect(plane.px(view.x0), plane.py(view.y0), inner.w, inner.h);
      g.clip();
      for (const cell of Data.matrix) {
        const x = Math.round(plane.px(cell[1])), y = Math.round(plane.py(cell[0]));
        g.fillStyle = mix(depth(value(cell)));
        g.fillRect(x, y, Math.round(plane.px(cell[1] + 1)) - x, Math.round(plane.py(cell[0] + 1)) - y);
      }
      g.strokeStyle = Page.color("dim");
      g.lineWidth = 1;
      g.beginPath();
      bins.forEach((bin, at) => {
        if (!bin[5]) return;
        const x = Math.round(plane.px(at)) + 0.5, y = Math.round(plane.py(at)) + 0.5;
        g.moveTo(x, plane.py(view.y0)); g.lineTo(x, plane.py(view.y1));
        g.moveTo(plane.px(view.x0), y); g.lineTo(plane.px(view.x1), y);
      });
      g.stroke();
      g.restore();
      g.strokeStyle = Page.color("grid");
      g.strokeRect(plane.px(view.x0) - 0.5, plane.py(view.y0) - 0.5, inner.w + 1, inner.h + 1);
      g.fillStyle = Page.color("ink");
      const everyRow = Math.ceil(15 / (inner.h / (view.y1 - view.y0))), everyColumn = Math.ceil(64 / (inner.w / (view.x1 - view.x0)));
      for (let at = Math.ceil(view.y0 - 0.5); at < view.y1 - 0.4; at++) if (at % everyRow === 0) { g.textAlign = "right"; g.fillText(label(bins[at]), 66, plane.py(at + 0.5) + 4); }
      for (let at = Math.ceil(view.x0 - 0.5); at < view.x1 - 0.4; at++) if (at % everyColumn === 0) { g.textAlign = "center"; g.fillText(label(bins[at]), plane.px(at + 0.5), plane.height - 8); }
    },
    box: (it) => ({ x0: it.to, x1: it.to + 1, y0: it.from, y1: it.from + 1 }),
    step: (it, dx, dy) => {
      if (!it) { const cell = Data.matrix.reduce((best, cell) => (value(cell) > value(best) ? cell : best)); return { from: cell[0], to: cell[1] }; }
      return { from: Math.max(0, Math.min(size - 1, it.from + dy)), to: Math.max(0, Math.min(size - 1, it.to + dx)) };
    },
    tell: ({ from, to }) => {
      const cell = cells.get(from * size + to), text = "from " + who(bins[from]) + " to " + who(bins[to]) + ": ";
      if (!cell) return text + "no message";
      return text + Units.group(cell[2]) + " messages, " + Units.exactBytes(cell[3]) + ", exposed at both ends " + Units.exact(cell[4]) + " a rank";
    },
  });
  if (!plane) return;
  plane.legend = () => {
    const { at, depth } = scale(), mix = Page.mixer(["0", "2", "1"][shows.value]);
    const show = [Units.bytes, Units.group, Units.time][shows.value];
    plane.key([["transparent", "none"], ...[0.25, 0.5, 0.75, 1].map((part) => [mix(depth(at(part))), show(at(part))])]);
  };
  shows.addEventListener("change", () => { plane.legend(); plane.redraw(); });
  plane.legend();
})();
