"use strict";
// Tables sort by a click on a heading, and long ones can be filtered. Without this script they are plain tables.
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

  if (figure.classList.contains("long")) {
    const label = document.createElement("label");
    const input = document.createElement("input");
    const found = document.createElement("span");
    label.className = "filter";
    input.type = "search";
    input.placeholder = "Filter";
    input.setAttribute("aria-label", `Filter: ${figure.querySelector("figcaption").textContent}`);
    found.setAttribute("role", "status");
    const say = (n) => { found.textContent = n === rows.length ? `${n} rows` : `${n} of ${rows.length} rows`; };
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
