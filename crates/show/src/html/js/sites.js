// The table of call sites: sorted by any column, filtered by text and kind, rows unfolded.
(() => {
  const table = document.getElementById("site-table");
  if (!table) return;
  const head = [...table.tHead.rows[0].cells], rows = [...table.tBodies], foot = table.tFoot;
  const filter = document.getElementById("site-filter"), kind = document.getElementById("site-kind");
  const count = document.getElementById("site-count"), all = document.getElementById("unfold-all");
  const key = (row, column) => {
    const cell = row.rows[0].cells[column], given = cell.dataset.key;
    const text = given === undefined ? cell.textContent.trim() : given;
    const number = text === "" ? NaN : Number(text);
    return { text, number };
  };
  const sort = (column) => {
    const current = head[column].getAttribute("aria-sort");
    const isText = !rows.some((row) => !Number.isNaN(key(row, column).number));
    const first = isText ? "ascending" : "descending";
    const order = current === "none" ? first : current === "descending" ? "ascending" : "descending";
    const sign = order === "ascending" ? 1 : -1;
    const keyed = rows.map((row, place) => ({ row, place, ...key(row, column) }));
    keyed.sort((a, b) => {
      if (a.text === "" || b.text === "") return (a.text === "") - (b.text === "") || a.place - b.place;
      const by = isText ? a.text.localeCompare(b.text) : a.number - b.number;
      return sign * by || a.place - b.place;
    });
    for (const cell of head) if (cell.hasAttribute("aria-sort")) cell.setAttribute("aria-sort", "none");
    head[column].setAttribute("aria-sort", order);
    table.append(...keyed.map((it) => it.row));
    if (foot) table.append(foot);
  };
  const unfold = (row, open) => {
    row.querySelector(".unfold").setAttribute("aria-expanded", open);
    row.querySelector(".unfold").textContent = open ? "▾" : "▸";
    row.rows[1].hidden = !open;
  };
  const texts = rows.map((row) => row.textContent.toLowerCase());
  const apply = () => {
    const words = filter.value.toLowerCase().split(/\s+/).filter(Boolean);
    let shown = 0;
    rows.forEach((row, place) => {
      const fits = words.every((word) => texts[place].includes(word)) && (!kind.value || row.dataset.kind === kind.value);
      row.hidden = !fits;
      shown += fits;
    });
    count.textContent = shown + " of " + count.dataset.all + " call sites";
  };
  head.forEach((cell, column) => {
    const button = cell.querySelector("button");
    if (button) button.addEventListener("click", () => sort(column));
  });
  table.addEventListener("click", (event) => {
    const button = event.target.closest(".unfold");
    if (button) unfold(button.closest("tbody"), button.getAttribute("aria-expanded") !== "true");
  });
  filter.addEventListener("input", apply);
  kind.addEventListener("change", apply);
  all.addEventListener("click", () => {
    const open = all.getAttribute("aria-pressed") !== "true";
    all.setAttribute("aria-pressed", open);
    all.textContent = open ? "Fold all" : "Unfold all";
    rows.forEach((row) => unfold(row, open));
  });
  // who follows a link to a row sees it, with what it unfolds
  const follow = () => {
    const row = rows.find((row) => "#" + row.id === location.hash);
    if (!row) return;
    if (row.hidden) { filter.value = ""; kind.value = ""; apply(); }
    unfold(row, true);
    row.scrollIntoView({ block: "center" });
  };
  addEventListener("hashchange", follow);
  follow();
})();
