// Ranks over time: the share of the run time that is exposed, of all causes or of one, or the main cause. `whole` is of several
// pictures that have one scale: how long they are, and the largest share in any of them.
function Heat(id, data, shows, whole) {
  const { slice, slices } = data.heat, bins = data.bins, rows = bins.length;
  const run = Page.unpack(data.heat.run), exposed = data.heat.exposed.map(Page.unpack);
  const total = run.map((_, at) => exposed.reduce((sum, cause) => sum + cause[at], 0));
  const share = (values, at) => (run[at] > 0 ? Math.min(1, values[at] / run[at]) : 0);
  const main = total.map((_, at) => exposed.reduce((best, cause, place) => (cause[at] > exposed[best][at] ? place : best), 0));
  const label = (bin) => (bin[2] === 1 ? bin[0] : bin[0] + "–" + bin[1]);
  const height = (width) => Math.max(120, Math.min(560, rows * Math.max(7, Math.min(26, 360 / rows)))) + 30;
  const find = (x, y) => (x > slice * slices ? null : { column: Math.min(slices - 1, Math.floor(x / slice)), row: Math.min(rows - 1, Math.floor(y)) });
  const values = () => (shows.value < 2 ? total : exposed[shows.value - 2]);
  const most = () => Math.max(0.001, ...run.map((_, at) => share(values(), at)));
  const scale = () => (whole ? whole.most() : most());
  const plane = Plane(id, {
    range: { x0: 0, x1: whole ? whole.length : slice * slices, y0: 0, y1: rows },
    least: { x: slice * 4 },
    margin: { left: 74, right: 8, top: 4, bottom: 24 },
    height, find,
    draw: (g, plane, inner) => {
      const of = values(), top = scale(), { view } = plane;
      const mixers = shows.value === "1" ? exposed.map((_, at) => Page.mixer(String(at))) : [Page.mixer(shows.value === "0" ? "0" : String(shows.value - 2))];
      const soft = Page.color("soft");
      const first = Math.max(0, Math.floor(view.x0 / slice)), last = Math.min(slices, Math.ceil(view.x1 / slice));
      g.save();
      g.beginPath();
      g.rect(plane.px(view.x0), plane.py(0), inner.w, inner.h);
      g.clip();
      for (let row = 0; row < rows; row++) {
        const y = Math.round(plane.py(row)), below = Math.round(plane.py(row + 1));
        for (let column = first; column < last; column++) {
          const at = row * slices + column, x = Math.round(plane.px(column * slice));
          const mix = mixers.length > 1 ? mixers[main[at]] : mixers[0];
          g.fillStyle = run[at] > 0 ? mix(share(of, at) / top) : soft;
          g.fillRect(x, y, Math.round(plane.px((column + 1) * slice)) - x, below - y);
        }
      }
      g.restore();
      g.fillStyle = Page.color("ink");
      g.textAlign = "right";
      const every = Math.ceil(15 / (inner.h / rows));
      for (let row = 0; row < rows; row += every) g.fillText(label(bins[row]), 66, plane.py(row + 0.5) + 4);
      g.strokeStyle = Page.color("ink");
      g.lineWidth = 1;
      for (let row = 1; row < rows; row++) if (bins[row][5]) { g.beginPath(); g.moveTo(70, Math.round(plane.py(row)) + 0.5); g.lineTo(plane.width - 8, Math.round(plane.py(row)) + 0.5); g.stroke(); }
      plane.axis(g, 0);
    },
    box: (it) => ({ x0: it.column * slice, x1: (it.column + 1) * slice, y0: it.row, y1: it.row + 1 }),
    step: (it, dx, dy) => {
      if (!it) { let at = 0; total.forEach((_, place) => { if (share(total, place) > share(total, at)) at = place; }); return { row: Math.floor(at / slices), column: at % slices }; }
      return { column: Math.max(0, Math.min(slices - 1, it.column + dx)), row: Math.max(0, Math.min(rows - 1, it.row + dy)) };
    },
    tell: ({ row, column }) => {
      const at = row * slices + column, bin = bins[row];
      const who = (bin[2] === 1 ? "rank " + bin[0] : bin[2] + " ranks, " + label(bin)) + " on " + bin[3] + (bin[4] > 1 ? " and " + (bin[4] - 1) + " more hosts" : "");
      const when = Units.time(column * slice) + " to " + Units.time((column + 1) * slice);
      if (!(run[at] > 0)) return who + ", " + when + ": not running";
      const parts = exposed.map((cause, place) => [cause[at], Data.causes[place][0]]).filter((part) => part[0] > 0);
      return who + ", " + when + ": exposed " + Units.percent(share(total, at)) + ", " + Units.exact(total[at]) + " of " + Units.exact(run[at]) +
        parts.sort((a, b) => b[0] - a[0]).map((part) => "\n" + part[1] + " " + Units.exact(part[0])).join("");
    },
  });
  if (!plane) return null;
  plane.most = most;
  plane.legend = () => {
    const top = scale();
    if (shows.value === "1") plane.key(Data.causes.map((cause, at) => [Page.color(String(at)), cause[0]]));
    else {
      const mix = Page.mixer(shows.value === "0" ? "0" : String(shows.value - 2));
      plane.key([0, 0.25, 0.5, 0.75, 1].map((part) => [mix(part), Units.percent(part * top)]));
    }
  };
  shows.addEventListener("change", () => { plane.legend(); plane.redraw(); });
  if (!whole) plane.legend();
  return plane;
}
if (Data && Data.heat) Heat("heat", Data, document.getElementById("heat-shows"));
