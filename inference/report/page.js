"use strict";
// Tables sort by a click on a heading, long ones can be filtered, and a click on a task or a worker shows more of it.
// Without this script they are plain tables. Names are written as text alone.
const make = (tag, children = [], attributes = {}) => {
  const element = document.createElement(tag);
  for (const child of [children].flat()) element.append(child);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
};
const filled = (tag, text, p) => {
  const cell = make(tag, text, { class: "n bar" });
  cell.style.setProperty("--p", p);
  return cell;
};
const grid = (caption, heads, rows) => {
  const head = make("tr", heads.map((text) => {
    const long = text.split(/\s+/).some((word) => word.length > 14);
    return make("th", text, long ? { scope: "col", class: "breaks", style: "--c:14" } : { scope: "col" });
  }));
  const lines = rows.map((row) => make("tr", row.map((cell) => (cell instanceof Node ? cell : make("td", cell)))));
  const whole = make("table", [make("thead", head), make("tbody", lines)]);
  const box = make("div", whole, { class: "scroll", role: "region", tabindex: "0", "aria-label": caption });
  const close = (heads.length >= 9 ? " many" : "") + (heads.length >= 13 ? " crowded" : "");
  return make("figure", [make("figcaption", caption), box], { class: `table${close}` });
};
const facts = (names, values) => make(
  "dl", values.map((text, i) => make("div", [make("dt", names[i]), make("dd", text)])), { class: "facts" });
const percent = (value) => `${value} %`;
const named = (text) => make("th", text, { scope: "row" });

const details = {
  task(all, [probabilities, given, more, scores]) {
    const classes = grid("Its label", ["class", "probability"], probabilities.map(
      ([k, p]) => [named(all.kinds[k]), filled("td", p.toFixed(3), p)]));
    const heads = ["annotation"];
    if (all.workers.length) heads.unshift("worker");
    if (all.accuracies) heads.push("accuracy of the worker");
    const lines = given.map(([kind, count, worker]) => {
      const said = count > 1 ? `${all.kinds[kind]} ×${count}` : all.kinds[kind];
      if (worker < 0) return [said];
      const cells = [named(all.workers[worker]), said];
      if (all.accuracies) cells.push(filled("td", all.accuracies[worker].toFixed(3), all.accuracies[worker]));
      return cells;
    });
    const parts = [classes];
    if (lines.length) parts.push(grid("Its annotations", heads, lines));
    if (more) parts.push(make("p", `and ${more} more`, { class: "note" }));
    parts.push(facts(all.scores, scores));
    return parts;
  },
  worker(all, [matrix, scores, examples]) {
    const parts = [];
    if (all.whole) {
      const [means, low, high] = matrix;
      const width = all.kinds.length;
      const lines = Array.from({ length: all.classes }, (_, k) => [
        named(all.kinds[k]),
        ...all.kinds.map((_, l) => {
          const at = k * width + l;
          const cell = filled("td", [String(means[at])], means[at] / 100);
          if (low) cell.append(" ", make("small", `${low[at]}–${high[at]}`));
          return cell;
        }),
      ]);
      const bounds = matrix.length > 1 ? `, with ${all.interval} intervals` : "";
      parts.push(grid(`Confusion matrix in per cent${bounds}: a row for each true class`, ["true class", ...all.kinds], lines));
    } else {
      parts.push(grid("Most probable errors", ["true class", "annotation", "probability"], matrix.map(
        ([k, l, p]) => [named(all.kinds[k]), all.kinds[l], filled("td", percent(p), p / 100)])));
    }
    if (examples.length) {
      const heads = ["task", "annotation", "label", "probability of the annotation’s class"];
      parts.push(grid("Annotations that are least in line with the labels", heads, examples.map(
        ([task, kind, label, p]) => [named(task), all.kinds[kind], all.kinds[label], filled("td", p.toFixed(3), p)])));
    }
    parts.push(facts(all.scores, scores));
    return parts;
  },
};

const dialog = make("dialog");
document.body.append(dialog);
dialog.addEventListener("click", (event) => { if (event.target === dialog) dialog.close(); });
const show = (title, parts) => {
  const close = make("button", "Close", { type: "button", class: "close" });
  close.addEventListener("click", () => dialog.close());
  const heading = make("h2", title, { id: "dialog-title" });
  dialog.setAttribute("aria-labelledby", "dialog-title");
  dialog.replaceChildren(make("div", [make("div", [heading, close], { class: "top" }), ...parts], { class: "inner" }));
  dialog.showModal();
  dialog.scrollTop = 0;
};

for (const figure of document.querySelectorAll("figure.table")) {
  const body = figure.querySelector("tbody");
  const headings = [...figure.querySelectorAll("thead th")];
  const rows = [...body.rows];
  rows.forEach((row, i) => { row.place = i; });

  const value = (row, column, numeric) => {
    const cell = row.cells[column];
    if (!numeric) return cell.textContent;
    return cell.dataset.v === undefined ? NaN : Number(cell.dataset.v);
  };
  const names = new Intl.Collator(undefined, { numeric: true });
  const compare = (a, b, column, numeric, sign) => {
    const x = value(a, column, numeric), y = value(b, column, numeric);
    if (!numeric) return sign * names.compare(x, y) || a.place - b.place;
    if (isNaN(x) || isNaN(y)) return isNaN(x) - isNaN(y) || a.place - b.place; // what is not known comes last
    return sign * (x - y) || a.place - b.place;
  };

  headings.forEach((heading, column) => {
    const numeric = heading.classList.contains("n");
    const button = document.createElement("button");
    button.type = "button";
    button.title = "Sort";
    button.append(...heading.childNodes);
    heading.append(button);
    heading.setAttribute("aria-sort", "none");
    button.addEventListener("click", () => {
      const before = heading.getAttribute("aria-sort");
      const down = before === "none" ? numeric : before === "ascending";
      for (const other of headings) other.setAttribute("aria-sort", "none");
      heading.setAttribute("aria-sort", down ? "descending" : "ascending");
      rows.sort((a, b) => compare(a, b, column, numeric, down ? -1 : 1));
      body.append(...rows);
    });
  });

  const held = figure.querySelector('script[type="application/json"]');
  if (held) {
    const all = JSON.parse(held.textContent);
    const hint = document.createElement("p");
    hint.className = "note";
    hint.textContent = `Click on a ${all.of} for its details.`;
    figure.querySelector("figcaption").after(hint);
    for (const row of rows) {
      const name = row.cells[0].textContent;
      const button = document.createElement("button");
      button.type = "button";
      button.className = "name";
      button.append(...row.cells[0].childNodes);
      row.cells[0].append(button);
      button.addEventListener("click", () => show(`${all.of} ${name}`, details[all.of](all, all.rows[row.place])));
    }
  }

  if (figure.classList.contains("long")) {
    const label = document.createElement("label");
    const input = document.createElement("input");
    const found = document.createElement("span");
    label.className = "filter";
    input.type = "search";
    input.placeholder = "Filter";
    input.setAttribute("aria-label", `Filter: ${figure.querySelector("figcaption").textContent}`);
    found.setAttribute("role", "status");
    const written = (n) => n.toLocaleString("en");
    const say = (n) => { found.textContent = `${n === rows.length ? "" : `${written(n)} of `}${written(rows.length)} rows`; };
    input.addEventListener("input", () => {
      const words = input.value.toLowerCase().split(/\s+/).filter(Boolean);
      let n = 0;
      for (const row of rows) {
        const text = [...row.cells].map((cell) => cell.textContent).join(" ").toLowerCase();
        row.hidden = !words.every((word) => text.includes(word));
        n += !row.hidden;
      }
      say(n);
    });
    say(rows.length);
    label.append(input, found);
    figure.querySelector(".scroll").before(label);
  }
}
