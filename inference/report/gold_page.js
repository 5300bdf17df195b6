"use strict";
const cards = [...document.querySelectorAll(".task")];
const choices = cards.map(card => [...card.querySelectorAll(".choices button")]);
const { key, head } = document.body.dataset;
const place = `crowdppl gold ${key}`;
const chosen = kept();
let at = 0;

function kept() {
  try {
    const found = JSON.parse(localStorage.getItem(place) || "[]");
    return new Map(found.filter(([task, label]) => choices[task]?.[label]));
  } catch { return new Map(); }
}

function keep() {
  try { localStorage.setItem(place, JSON.stringify([...chosen])); }
  catch { document.getElementById("kept").textContent = "This browser keeps nothing when the page is closed: save before."; }
}

function show(task, focus = true) {
  cards[at].hidden = true;
  at = task;
  cards[at].hidden = false;
  choices[at].forEach((button, i) => button.setAttribute("aria-pressed", chosen.get(at) === i));
  document.getElementById("previous").disabled = at === 0;
  document.getElementById("next").disabled = at === cards.length - 1;
  document.getElementById("clear").disabled = !chosen.has(at);
  document.getElementById("save").disabled = !chosen.size;
  document.querySelector("progress").value = chosen.size;
  if (focus) cards[at].querySelector("h2").focus({ preventScroll: true });
}

function say(text) {
  const all = chosen.size === cards.length ? " All tasks have a label: save gold.csv." : "";
  document.getElementById("status").textContent = `${text}${chosen.size} of ${cards.length} labelled.${all}`;
}

function choose(task, label) {
  chosen.set(task, label);
  keep();
  const open = i => !chosen.has(i);
  const order = cards.map((_, i) => (task + 1 + i) % cards.length);
  show(order.find(open) ?? task);
  say(`Task ${task + 1} is ${choices[task][label].lastChild.textContent.trim()}. `);
}

function clear() {
  if (chosen.delete(at)) { keep(); show(at); say(`Task ${at + 1} has no label. `); }
}

function move(by) {
  if (cards[at + by]) show(at + by);
}

function table() {
  const rows = [...chosen].sort(([one], [other]) => one - other).map(([task, label]) => {
    const { before, after } = cards[task].dataset;
    return [before, choices[task][label].dataset.cell, after].filter((cell, i) => i < 2 || cell).join(",");
  });
  return [head, ...rows, ""].join("\n");
}

function save() {
  if (!chosen.size) return;
  const link = document.createElement("a");
  link.href = URL.createObjectURL(new Blob([table()], { type: "text/csv" }));
  link.download = "gold.csv";
  link.click();
  setTimeout(() => URL.revokeObjectURL(link.href), 60000);
  say("Saved gold.csv. ");
}

choices.forEach((buttons, task) => buttons.forEach((button, label) =>
  button.addEventListener("click", () => choose(task, label))));
const of = { previous: () => move(-1), next: () => move(1), clear, save };
Object.entries(of).forEach(([id, act]) => document.getElementById(id).addEventListener("click", act));
document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const pressed = event.key.length === 1 ? event.key.toLowerCase() : event.key;
  const acts = { ArrowLeft: of.previous, ArrowRight: of.next, Backspace: clear, s: save };
  const button = choices[at].findIndex(one => one.getAttribute("aria-keyshortcuts") === pressed);
  if (button >= 0) choose(at, button);
  else if (acts[pressed]) acts[pressed]();
  else return;
  event.preventDefault();
});
const first = cards.findIndex((_, i) => !chosen.has(i));
show(first < 0 ? 0 : first, false);
say(chosen.size ? "As you left it: " : "");
