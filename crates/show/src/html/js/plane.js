// A picture with axes: zoomed and moved by pointer and keys, with a cursor whose value is told. `spec` has the whole range,
// what to draw, what lies where, and where the cursor goes.
const Units = (() => {
  const digits = (value) => (value < 9.995 ? value.toFixed(2) : value < 99.95 ? value.toFixed(1) : value.toFixed(0));
  const scaled = (value, steps) => {
    let step = steps[0];
    for (const next of steps) if (Math.abs(value) >= next[0] * 0.9995) step = next;
    return digits(value / step[0]) + " " + step[1];
  };
  const group = (value) => String(value).replace(/\B(?=(\d{3})+$)/g, " ");
  const time = (ns) => (ns < 1000 ? ns + " ns" : scaled(ns, [[1e3, "µs"], [1e6, "ms"], [1e9, "s"], [3.6e12, "h"]]));
  const bytes = (n) => (n < 1024 ? n + " B" : scaled(n, [[1024, "KiB"], [1048576, "MiB"], [1073741824, "GiB"], [1099511627776, "TiB"]]));
  return {
    time, bytes, group,
    exact: (ns) => time(ns) + (ns < 1000 ? "" : " (" + group(ns) + " ns)"),
    exactBytes: (n) => bytes(n) + (n < 1024 ? "" : " (" + group(n) + " B)"),
    percent: (share) => (share > 0 && share < 0.0005 ? "<0.1 %" : (share * 100).toFixed(1) + " %"),
    // at most `most` round values from low to high
    ticks: (low, high, most) => {
      const rough = (high - low) / most, power = 10 ** Math.floor(Math.log10(rough));
      const step = [1, 2, 5, 10].map((digit) => digit * power).find((step) => step >= rough);
      const ticks = [];
      for (let at = Math.ceil(low / step) * step; at <= high; at += step) ticks.push(at);
      return ticks;
    },
    // moments that differ by `step` get the digits that tell them apart
    moment: (ns, step) => {
      const unit = [[1e9, "s"], [1e6, "ms"], [1e3, "µs"], [1, "ns"]].find((unit) => Math.abs(ns) >= unit[0] && step >= unit[0] / 1e4) || [1, "ns"];
      if (ns === 0) return "0";
      const decimals = Math.max(0, Math.min(6, Math.ceil(-Math.log10(step / unit[0]) - 1e-9)));
      return (ns / unit[0]).toFixed(decimals) + " " + unit[1];
    },
  };
})();

Page.color = (name) => getComputedStyle(document.documentElement).getPropertyValue((Page.printing ? "--print-" : "--") + name).trim();
Page.rgb = (hex) => [1, 3, 5].map((at) => parseInt(hex.slice(at, at + 2), 16));
// `share` of the way from paper to a color
Page.mixer = (name) => {
  const paper = Page.rgb(Page.color("paper")), full = Page.rgb(Page.color(name));
  return (share) => "rgb(" + paper.map((from, at) => Math.round(from + (full[at] - from) * share)).join(",") + ")";
};
Page.unpack = (text) => {
  const bytes = atob(text), numbers = [];
  let number = 0, factor = 1;
  for (let at = 0; at < bytes.length; at++) {
    const byte = bytes.charCodeAt(at);
    number += (byte & 127) * factor;
    factor *= 128;
    if (byte < 128) { numbers.push(number); number = 0; factor = 1; }
  }
  return numbers;
};
const Data = (() => {
  const element = document.getElementById("data");
  return element ? JSON.parse(element.textContent) : null;
})();

function Plane(id, spec) {
  const figure = document.getElementById(id + "-figure");
  if (!figure) return null;
  const canvas = figure.querySelector("canvas"), tip = figure.querySelector(".tip"), live = figure.querySelector(".live");
  const hint = live.textContent, all = spec.range, view = { ...all }, margin = spec.margin;
  let cursor = null, drag = null, waiting = false;
  const plane = { view, figure, width: 0, height: 0 };
  const inner = () => ({ w: plane.width - margin.left - margin.right, h: plane.height - margin.top - margin.bottom });
  plane.px = (x) => margin.left + ((x - view.x0) / (view.x1 - view.x0)) * inner().w;
  plane.py = (y) => margin.top + ((y - view.y0) / (view.y1 - view.y0)) * inner().h;
  const ux = (px) => view.x0 + ((px - margin.left) / inner().w) * (view.x1 - view.x0);
  const uy = (py) => view.y0 + ((py - margin.top) / inner().h) * (view.y1 - view.y0);

  const paint = () => {
    waiting = false;
    const room = Math.max(260, figure.querySelector(".picture").clientWidth);
    plane.width = Page.printing ? Math.min(room, Page.paper) : room;
    plane.height = spec.height(plane.width);
    const scale = Page.printing ? 3 : devicePixelRatio || 1;
    canvas.width = plane.width * scale;
    canvas.height = plane.height * scale;
    canvas.style.height = plane.height + "px";
    const g = canvas.getContext("2d");
    g.setTransform(scale, 0, 0, scale, 0, 0);
    g.fillStyle = Page.color("paper");
    g.fillRect(0, 0, plane.width, plane.height);
    g.font = "11px system-ui, 'DejaVu Sans', sans-serif";
    spec.draw(g, plane, inner());
    const box = cursor && spec.box(cursor);
    if (box && !Page.printing) {
      const [x0, x1, y0, y1] = [plane.px(box.x0), plane.px(box.x1), plane.py(box.y0), plane.py(box.y1)];
      g.lineWidth = 2;
      g.strokeStyle = Page.color("ink");
      g.strokeRect(x0 - 1, y0 - 1, Math.max(3, x1 - x0 + 2), y1 - y0 + 2);
    }
  };
  plane.paint = paint;
  plane.redraw = () => { if (Page.printing) paint(); else if (!waiting) { waiting = true; requestAnimationFrame(paint); } };

  const clamp = (low, high) => {
    for (const [a, b] of [["x0", "x1"], ["y0", "y1"]]) {
      const width = Math.min(view[b] - view[a], all[b] - all[a]);
      const from = Math.max(all[a], Math.min(view[a], all[b] - width));
      view[a] = from;
      view[b] = from + width;
    }
  };
  plane.zoom = (factor, x = (view.x0 + view.x1) / 2, y = (view.y0 + view.y1) / 2) => {
    const least = spec.least;
    const scaleAxis = (a, b, at, min) => {
      const width = Math.max(min, Math.min(all[b] - all[a], (view[b] - view[a]) * factor));
      const share = (at - view[a]) / (view[b] - view[a]);
      view[a] = at - share * width;
      view[b] = view[a] + width;
    };
    scaleAxis("x0", "x1", x, least.x);
    if (least.y) scaleAxis("y0", "y1", y, least.y);
    clamp();
    plane.redraw();
  };
  plane.move = (x, y) => {
    view.x0 += x; view.x1 += x;
    if (spec.least.y) { view.y0 += y; view.y1 += y; }
    clamp();
    plane.redraw();
  };
  plane.reset = () => { Object.assign(view, all); plane.redraw(); };
  plane.show = (place) => { cursor = place; live.textContent = place ? spec.tell(place) : hint; plane.redraw(); };

  const at = (event) => {
    const box = canvas.getBoundingClientRect();
    return { px: event.clientX - box.left, py: event.clientY - box.top };
  };
  const hover = (point) => {
    const x = ux(point.px), y = uy(point.py);
    const inside = x >= view.x0 && x <= view.x1 && y >= view.y0 && y <= view.y1;
    const found = inside ? spec.find(x, y, plane) : null;
    tip.hidden = !found;
    if (!found) return;
    tip.textContent = spec.tell(found);
    const width = plane.width;
    tip.style.left = Math.max(0, Math.min(point.px + 14, width - tip.offsetWidth - 4)) + "px";
    tip.style.top = point.py + 16 + "px";
  };
  canvas.addEventListener("pointermove", (event) => {
    const point = at(event);
    if (drag) {
      const { w, h } = inner();
      plane.move(((drag.px - point.px) / w) * (view.x1 - view.x0), ((drag.py - point.py) / h) * (view.y1 - view.y0));
      drag = point;
      tip.hidden = true;
    } else hover(point);
  });
  canvas.addEventListener("pointerdown", (event) => { drag = at(event); drag.from = drag.px; canvas.setPointerCapture(event.pointerId); });
  canvas.addEventListener("pointerup", (event) => {
    const point = at(event);
    if (drag && drag.from !== undefined) {
      const found = spec.find(ux(point.px), uy(point.py), plane);
      if (found) plane.show(found);
    }
    drag = null;
  });
  canvas.addEventListener("pointerleave", () => { tip.hidden = true; });
  canvas.addEventListener("wheel", (event) => {
    // the page scrolls unless the picture was chosen
    if (!event.ctrlKey && document.activeElement !== canvas) return;
    event.preventDefault();
    const point = at(event);
    plane.zoom(event.deltaY < 0 ? 0.8 : 1.25, ux(point.px), uy(point.py));
  }, { passive: false });
  canvas.addEventListener("dblclick", (event) => { const point = at(event); plane.zoom(0.5, ux(point.px), uy(point.py)); });

  const steps = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
  canvas.addEventListener("keydown", (event) => {
    const step = steps[event.key];
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    if (step && event.shiftKey) plane.move((step[0] * (view.x1 - view.x0)) / 8, (step[1] * (view.y1 - view.y0)) / 8);
    else if (step) {
      const next = spec.step(cursor, step[0], step[1], plane);
      if (next) { plane.reveal(spec.box(next)); plane.show(next); }
    } else if (event.key === "+" || event.key === "=") plane.zoom(0.6, ...plane.middle());
    else if (event.key === "-" || event.key === "−") plane.zoom(1 / 0.6, ...plane.middle());
    else if (event.key === "0" || event.key === "Home") plane.reset();
    else if (event.key === "Escape") { plane.show(null); tip.hidden = true; }
    else return;
    event.preventDefault();
  });
  plane.middle = () => {
    const box = cursor && spec.box(cursor);
    return box ? [(box.x0 + box.x1) / 2, (box.y0 + box.y1) / 2] : [undefined, undefined];
  };
  plane.reveal = (box) => {
    if (box.x0 < view.x0 || box.x1 > view.x1) plane.move((box.x0 + box.x1) / 2 - (view.x0 + view.x1) / 2, 0);
    if (box.y0 < view.y0 || box.y1 > view.y1) plane.move(0, (box.y0 + box.y1) / 2 - (view.y0 + view.y1) / 2);
  };
  figure.querySelector(".in").addEventListener("click", () => plane.zoom(0.6, ...plane.middle()));
  figure.querySelector(".out").addEventListener("click", () => plane.zoom(1 / 0.6, ...plane.middle()));
  figure.querySelector(".all").addEventListener("click", () => plane.reset());
  plane.key = (entries) => {
    figure.querySelector(".key").replaceChildren(...entries.map(([color, text]) => {
      const span = document.createElement("span"), swatch = document.createElement("i");
      swatch.style.background = color;
      span.append(swatch, text);
      return span;
    }));
  };
  // moments along the upper edge of what is drawn
  plane.axis = (g, begin) => {
    const ticks = Units.ticks(view.x0 + begin, view.x1 + begin, Math.max(2, plane.width / 110));
    const step = ticks.length > 1 ? ticks[1] - ticks[0] : 1, bottom = plane.height - margin.bottom;
    g.fillStyle = Page.color("dim");
    g.textAlign = "center";
    for (const tick of ticks) {
      const x = plane.px(tick - begin);
      g.fillRect(Math.round(x), bottom, 1, 4);
      g.fillText(Units.moment(tick, step), Math.max(margin.left + 12, Math.min(x, plane.width - 26)), bottom + 15);
    }
  };
  new ResizeObserver(() => plane.redraw()).observe(figure.querySelector(".picture"));
  Page.pictures.push(() => { if (plane.legend) plane.legend(); plane.redraw(); });
  Page.planes = { ...Page.planes, [id]: plane };
  return plane;
}
