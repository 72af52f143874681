// Ranks over time of two runs: the same colours mean the same shares, and the same width the same time.
(() => {
  const shows = document.getElementById("pair-shows");
  if (!Data || !shows) return;
  const sides = [["heat-a", Data.a], ["heat-b", Data.b]], whole = { planes: [] };
  whole.length = Math.max(...sides.map(([, side]) => side.heat.slice * side.heat.slices));
  whole.most = () => Math.max(...whole.planes.map((plane) => plane.most()));
  for (const [id, side] of sides) {
    const plane = Heat(id, side, shows, whole);
    if (plane) whole.planes.push(plane);
  }
  for (const plane of whole.planes) { plane.legend(); plane.redraw(); }
})();
