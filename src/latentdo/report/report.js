"use strict";
// Comfort on top of a page that works without it. The policy allows this one script by its hash; nothing of the
// user's data enters it: names and numbers are read from the page's own elements, as text.
(() => {
  const graph = document.querySelector("svg.graph");
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const byId = (id) => document.getElementById(id);
  for (const element of all("[data-script]")) element.hidden = false;

  // --- threshold -----------------------------------------------------------------------------------------------
  const slider = byId("threshold");
  const threshold = () => {
    const least = Number(slider.value) / 100;
    let shown = 0, total = 0;
    for (const edge of all(".edge", graph)) {
      const off = Number(edge.dataset.p) < least;
      edge.classList.toggle("off", off);
      if (edge.classList.contains("maybe")) continue;
      total += 1;
      shown += off ? 0 : 1;
    }
    for (const row of all("tr[data-p]")) row.hidden = Number(row.dataset.p) < least;
    byId("threshold-value").textContent = `${slider.value} %`;
    slider.setAttribute("aria-valuetext", `${slider.value} percent`);
    byId("threshold-count").textContent = `${shown} of ${total} arrows`;
  };
  if (slider) {
    slider.addEventListener("input", threshold);
    threshold(); // a reloaded page may keep the slider where it was
  }

  // --- mechanism of a node -------------------------------------------------------------------------------------
  const panel = byId("panel");
  let selected = null;
  const select = (node, focus) => {
    selected = node;
    for (const other of all(".node", graph)) {
      other.classList.toggle("selected", other === node);
      other.classList.remove("near");
    }
    const own = node && node.dataset.node;
    graph.classList.toggle("focused", node !== null);
    for (const edge of all(".edge", graph)) {
      const near = node !== null && (edge.dataset.from === own || edge.dataset.to === own);
      edge.classList.toggle("near", near);
      if (near && !edge.classList.contains("maybe"))
        for (const end of [edge.dataset.from, edge.dataset.to])
          graph.querySelector(`[data-node="${end}"]`).classList.add("near");
    }
    panel.hidden = node === null;
    if (node === null) return;
    const body = byId("panel-body");
    const copy = byId(`m-${own}`).cloneNode(true);
    copy.removeAttribute("id");
    body.replaceChildren(copy);
    if (focus) panel.focus({ preventScroll: true });
    panel.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  const nodes = all(".node", graph);
  if (nodes.length) {
    // one stop for the tab key; arrows move between the nodes
    const stop = (node) => nodes.forEach((other) => other.setAttribute("tabindex", other === node ? "0" : "-1"));
    stop(nodes[0]);
    const centre = (node) => {
      const box = node.querySelector("rect");
      return [Number(box.getAttribute("x")) + Number(box.getAttribute("width")) / 2, Number(box.getAttribute("y"))];
    };
    const directions = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowUp: [0, -1], ArrowDown: [0, 1] };
    graph.addEventListener("keydown", (event) => {
      const node = event.target.closest(".node");
      if (!node) return;
      if (event.key === " ") {
        event.preventDefault();
        select(node, true);
      }
      const way = directions[event.key];
      if (!way) return;
      event.preventDefault();
      const [x, y] = centre(node);
      let best = null, least = Infinity;
      for (const other of nodes) {
        const [ox, oy] = centre(other);
        const along = (ox - x) * way[0] + (oy - y) * way[1];
        const aside = Math.abs((ox - x) * way[1]) + Math.abs((oy - y) * way[0]);
        if (along > 1 && along + 2 * aside < least) [best, least] = [other, along + 2 * aside];
      }
      if (best) {
        stop(best);
        best.focus();
      }
    });
    graph.addEventListener("focusin", (event) => {
      const node = event.target.closest(".node");
      if (node) stop(node);
    });
  }

  // --- every link stays in the page, also where the page is shown inside another one -----------------------------
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a");
    if (!link || event.ctrlKey || event.metaKey || event.shiftKey) return;
    event.preventDefault();
    if (link.dataset.regime) byId(`show-${link.dataset.regime}`).click();
    const variable = link.dataset.node;
    if (variable !== undefined) {
      const node = graph.querySelector(`[data-node="${variable}"]`);
      // a keyboard's "click" has no detail: its user wants to read on in the panel
      select(selected === node && link === node ? null : node, event.detail === 0);
      if (link !== node) node.scrollIntoView({ block: "nearest", inline: "center" });
      return;
    }
    const goal = byId(link.getAttribute("href").slice(1));
    for (let at = goal; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    goal.scrollIntoView({ block: "start" });
  });
  const close = () => {
    const node = selected;
    select(null, false);
    if (node) node.focus({ preventScroll: true });
  };
  byId("panel-close").addEventListener("click", close);
  document.addEventListener("keydown", (event) => {
    if (event.key === "Escape" && selected) close();
  });

  // --- size of the drawing ---------------------------------------------------------------------------------------
  const canvas = graph.parentElement;
  canvas.scrollLeft = (canvas.scrollWidth - canvas.clientWidth) / 2;
  const zoom = byId("zoom");
  if (zoom) zoom.addEventListener("change", () => graph.classList.toggle("whole", zoom.checked));

  // --- one row -----------------------------------------------------------------------------------------------------
  const look = byId("row-number");
  if (look) {
    const data = byId("row-data");
    const rows = JSON.parse(data.dataset.rows), labels = JSON.parse(data.dataset.labels);
    const names = JSON.parse(data.dataset.names);
    const say = () => {
      const at = labels === null ? Number(look.value) : labels.indexOf(Number(look.value));
      const row = look.value === "" ? undefined : rows[at];
      const share = (value) => (value > 99 ? "> 99 %" : value < 1 ? "< 1 %" : `${value} %`);
      byId("row-answer").textContent =
        row === undefined ? (look.value === "" ? "" : "There is no such row.")
        : `${names[row[0]]} (${share(row[1])})` + (row.length > 2 ? `, or else ${names[row[2]]} (${share(row[3])})` : "");
    };
    look.addEventListener("input", say);
  }

  // --- in the app: as high as it is, so that only the page around it scrolls --------------------------------------
  if (parent !== window && "ResizeObserver" in window) {
    const tell = () => parent.postMessage({
      type: "streamlit:iframe:setSize",
      width: document.documentElement.clientWidth,
      height: Math.ceil(document.body.getBoundingClientRect().height),
    }, "*");
    new ResizeObserver(tell).observe(document.body);
    addEventListener("load", tell);
  }

  // --- print everything, also what is folded away ------------------------------------------------------------------
  let folded = [];
  addEventListener("beforeprint", () => {
    folded = folded.concat(all("details:not([open])"));
    for (const details of folded) details.open = true;
  });
  addEventListener("afterprint", () => {
    for (const details of folded) details.open = false;
    folded = [];
  });
})();
