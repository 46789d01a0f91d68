"use strict";
(() => {
  const root = document.documentElement;
  const darkness = window.matchMedia("(prefers-color-scheme: dark)");
  const still = window.matchMedia("(prefers-reduced-motion: reduce)");
  const touch = window.matchMedia("(pointer: coarse)");
  const PAPER = 660; // pixels of a figure on paper
  const all = (query, inside = document) => Array.from(inside.querySelectorAll(query));
  const isDark = () => (root.dataset.theme ? root.dataset.theme === "dark" : darkness.matches);

  // ---- colours: var(--name) in a figure is looked up in the style sheet ----
  const painted = (value, styles) => {
    if (Array.isArray(value)) return value.map((part) => painted(part, styles));
    if (value && typeof value === "object") {
      return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, painted(v, styles)]));
    }
    const name = typeof value === "string" && /^var\((--[a-z0-9-]+)\)$/.exec(value);
    return name ? styles.getPropertyValue(name[1]).trim() : value;
  };

  const merged = (base, more) => {
    const out = { ...base };
    for (const [key, value] of Object.entries(more)) {
      const nested = value && typeof value === "object" && !Array.isArray(value);
      out[key] = nested ? merged(out[key] ?? {}, value) : value;
    }
    return out;
  };

  const house = (layout, width) => {
    const narrow = width < 520;
    const axis = {
      automargin: true, gridcolor: "var(--grid)", linecolor: "var(--muted)", zeroline: false,
      zerolinecolor: "var(--grid)", tickcolor: "var(--muted)",
      title: { standoff: 10, font: { size: narrow ? 11 : 12.5 } },
    };
    const base = {
      autosize: true,
      height: 380,
      dragmode: false,
      margin: { l: 8, r: 12, t: 28, b: 8 },
      paper_bgcolor: "rgba(0,0,0,0)",
      plot_bgcolor: "rgba(0,0,0,0)",
      font: { family: getComputedStyle(document.body).fontFamily, size: narrow ? 11 : 12.5, color: "var(--ink)" },
      hoverlabel: {
        bgcolor: "var(--surface)", bordercolor: "var(--muted)", align: "left",
        font: { family: getComputedStyle(document.body).fontFamily, size: 13, color: "var(--ink)" },
      },
      legend: { orientation: "h", x: 0, xanchor: "left", y: 1.02, yanchor: "bottom" },
      modebar: { bgcolor: "rgba(0,0,0,0)", color: "var(--muted)", activecolor: "var(--ink)" },
    };
    for (const key of Object.keys(layout)) if (/^[xy]axis\d*$/.test(key)) base[key] = axis;
    for (const key of ["xaxis", "yaxis"]) base[key] = axis;
    const out = merged(base, layout);
    if (touch.matches) out.dragmode = false;
    if (out.meta?.aspect) out.height = Math.round(Math.min(Math.max(width * out.meta.aspect + 90, 320), 640));
    return out;
  };

  const config = (layout) => ({
    responsive: true, displaylogo: false, scrollZoom: false, showTips: false,
    displayModeBar: layout.dragmode && !touch.matches && root.clientWidth > 520 ? "hover" : false,
    modeBarButtons: [["zoom2d", "pan2d", "zoomIn2d", "zoomOut2d", "resetScale2d"]],
    plotlyServerURL: "",
  });

  // ---- figures ----
  class Figure {
    constructor(element) {
      this.element = element;
      this.plot = element.querySelector(".plot");
      this.given = JSON.parse(document.getElementById(`figure-data-${element.dataset.figure}`).textContent);
      this.view = 0;
      this.found = null;
      this.plot.replaceChildren();
      this.draw();
      this.listen();
    }

    state(view) {
      const { data, layout, views } = this.given;
      if (!views.length) return { data, layout };
      const nested = {};
      for (const [path, value] of Object.entries(views[view].layout)) {
        const keys = path.split(".");
        const last = keys.pop();
        let at = nested;
        for (const key of keys) at = at[key] ??= {};
        at[last] = value;
      }
      return {
        data: data.map((trace, i) => merged(trace, views[view].data[i] ?? {})),
        layout: merged(layout, nested),
      };
    }

    ready(view, width) {
      const styles = getComputedStyle(root);
      const { data, layout } = this.state(view);
      return [painted(data, styles), painted(house(layout, width), styles)];
    }

    draw() {
      const [data, layout] = this.ready(this.view, this.plot.clientWidth);
      return Plotly.react(this.plot, data, layout, config(layout));
    }

    async show(view) {
      this.view = view;
      if (still.matches || !this.given.views[view].data.length) await this.draw();
      else {
        const [data, layout] = this.ready(view, this.plot.clientWidth);
        const moving = data.map(({ x, y }) => ({ x, y }));
        const timing = { duration: 450, easing: "cubic-in-out" };
        await Plotly.animate(this.plot, { data: moving }, {
          transition: timing, frame: { duration: 450, redraw: false }, mode: "immediate",
        }).catch(() => {}); // interrupted by the next choice
        if (view !== this.view) return;
        await Plotly.react(this.plot, data, layout, config(layout));
      }
      this.element.dataset.shown = this.given.views[view].name;
      this.point();
    }

    listen() {
      const choice = this.element.querySelector(".views");
      if (choice) {
        choice.hidden = false;
        choice.addEventListener("change", (event) => this.show(Number(event.target.value)));
        this.element.dataset.shown = this.given.views[0].name;
      }
      const finder = this.element.querySelector(".find");
      if (!finder) return;
      finder.hidden = false;
      const said = finder.querySelector("output");
      finder.querySelector("input").addEventListener("input", (event) => {
        const wanted = event.target.value.trim().toLowerCase();
        this.found = wanted ? this.search(wanted) : null;
        said.textContent = !wanted ? "" : this.found ? "" : "not among the points shown";
        if (this.found) said.textContent = this.found.text;
        this.point();
      });
    }

    search(wanted) {
      const signs = { "&lt;": "<", "&gt;": ">", "&amp;": "&" };
      const tests = [(t) => t === wanted, (t) => t.startsWith(wanted), (t) => t.includes(wanted)];
      const names = this.given.data.map((trace) =>
        (trace.customdata ?? []).map((entry) => entry[0].replace(/&(lt|gt|amp);/g, (sign) => signs[sign])));
      for (const test of tests) {
        for (const [curveNumber, trace] of names.entries()) {
          const pointNumber = trace.findIndex((name) => test(name.toLowerCase()));
          if (pointNumber >= 0) return { curveNumber, pointNumber, text: trace[pointNumber] };
        }
      }
      return null;
    }

    point() {
      if (this.found) Plotly.Fx.hover(this.plot, [this.found]);
      else Plotly.Fx.unhover(this.plot);
    }

    // paper shows every view, side by side
    print() {
      const views = this.given.views.length ? this.given.views.filter((view) => view.paper) : [null];
      const copies = document.createElement("div");
      copies.className = "copies";
      copies.style.display = "grid";
      if (views.length === 1) copies.style.gridTemplateColumns = "1fr";
      this.plot.classList.add("shown-on-screen");
      this.plot.after(copies);
      const width = views.length === 1 ? PAPER : PAPER / 2 - 6;
      for (const view of views) {
        const copy = document.createElement("div");
        if (views.length > 1) copy.append(Object.assign(document.createElement("p"), { textContent: view.name }));
        const plot = copy.appendChild(document.createElement("div"));
        copies.append(copy);
        const [data, layout] = this.ready(view ? this.given.views.indexOf(view) : 0, width);
        Object.assign(layout, { width, autosize: false, height: Math.min(layout.height, 620) });
        Plotly.newPlot(plot, data, layout, { staticPlot: true });
      }
      this.copies = copies;
    }

    unprint() {
      this.plot.classList.remove("shown-on-screen");
      this.copies?.remove();
    }
  }

  const figures = window.Plotly ? all("figure[data-figure]").map((element) => new Figure(element)) : [];
  const redraw = () => figures.forEach((figure) => figure.draw());
  let width = root.clientWidth;
  let waiting = 0;
  window.addEventListener("resize", () => {
    clearTimeout(waiting);
    waiting = setTimeout(() => {
      if (root.clientWidth === width) return;
      width = root.clientWidth;
      redraw();
    }, 150);
  });

  // ---- light and dark ----
  const theme = document.getElementById("theme");
  const named = () => { theme.textContent = isDark() ? "Light" : "Dark"; };
  theme.hidden = false;
  theme.addEventListener("click", () => {
    root.dataset.theme = isDark() ? "light" : "dark";
    named();
    redraw();
  });
  darkness.addEventListener("change", () => { named(); redraw(); });
  named();

  // ---- paper ----
  const paper = document.getElementById("paper");
  paper.hidden = false;
  paper.addEventListener("click", () => window.print());
  let before = null;
  window.addEventListener("beforeprint", () => {
    if (before) return;
    before = { theme: root.dataset.theme, folded: all("details:not([open])") };
    root.dataset.theme = "light";
    before.folded.forEach((part) => { part.open = true; });
    figures.forEach((figure) => figure.print());
  });
  window.addEventListener("afterprint", () => {
    if (!before) return;
    figures.forEach((figure) => figure.unprint());
    before.folded.forEach((part) => { part.open = false; });
    if (before.theme) root.dataset.theme = before.theme;
    else delete root.dataset.theme;
    before = null;
  });

  // ---- the numbers as a file ----
  const numbers = document.getElementById("numbers");
  if (numbers) {
    const save = document.getElementById("save");
    save.hidden = false;
    save.addEventListener("click", () => {
      const file = URL.createObjectURL(new Blob([numbers.textContent], { type: "application/json" }));
      Object.assign(document.createElement("a"), { href: file, download: "numbers.json" }).click();
      URL.revokeObjectURL(file);
    });
  }

  // ---- tables: sorting and searching ----
  const key = (row, column) => {
    const entry = row.cells[column];
    const text = entry.dataset.sort ?? entry.textContent.trim();
    const value = Number(text);
    return text !== "" && !Number.isNaN(value) ? value : text.toLowerCase();
  };
  const order = (a, b) => {
    if (typeof a === typeof b) return a < b ? -1 : a > b ? 1 : 0;
    return typeof a === "number" ? -1 : 1;
  };
  for (const box of all(".table")) {
    const body = box.querySelector("tbody");
    const heads = all("thead th", box);
    if (body.rows.length > 1) {
      heads.forEach((head, column) => {
        const button = document.createElement("button");
        button.type = "button";
        button.append(...head.childNodes);
        head.append(button);
        button.addEventListener("click", () => {
          const falling = head.getAttribute("aria-sort") === "ascending";
          heads.forEach((other) => other.removeAttribute("aria-sort"));
          head.setAttribute("aria-sort", falling ? "descending" : "ascending");
          const rows = Array.from(body.rows, (row) => [key(row, column), row]);
          rows.sort(([a], [b]) => (falling ? order(b, a) : order(a, b)));
          body.append(...rows.map(([, row]) => row));
        });
      });
    }
    const input = box.querySelector("input[type=search]");
    if (!input) continue;
    const said = box.querySelector("output");
    const filter = () => {
      const wanted = input.value.trim().toLowerCase();
      let shown = 0;
      for (const row of body.rows) {
        const text = Array.from(row.cells, (entry) => entry.textContent).join("\n");
        row.hidden = !text.toLowerCase().includes(wanted);
        shown += row.hidden ? 0 : 1;
      }
      said.textContent = `${shown} of ${body.rows.length} rows`;
    };
    input.addEventListener("input", filter);
    filter();
  }
})();
