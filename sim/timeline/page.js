"use strict";
(() => {
// What is drawn: see sim/timeline/chart.py. Times are seconds since the start of the run.
const D = JSON.parse(document.getElementById("data").textContent);
const el = (id) => document.getElementById(id);
const canvas = el("chart"), ctx = canvas.getContext("2d"), stage = el("stage"), map = el("map"), tip = el("tip");
const WALL = D.wall > 0 ? D.wall : 1, SHORTEST = Math.max(0.02, WALL * 1e-9);
const [LABEL, MARK, COLOUR, INK, THIN] = [1, 2, 3, 4, 5], FAMILY = 0, TILE = 1, WORD = 2, LAYER = 4;
const THEMES = {
  light: { back: "#ffffff", text: "#1b1b1b", aside: "#555b61", line: "#e1e4e7", frame: "#0009", fault: "#c04a00" },
  dark: { back: "#15181b", text: "#e9eaeb", aside: "#aeb5bc", line: "#30363c", frame: "#0009", fault: "#ff8a3c" },
};
const DARK = matchMedia("(prefers-color-scheme: dark)");
let printing = false;
const theme = () => (DARK.matches && !printing ? THEMES.dark : THEMES.light);
const font = (size, bold) => `${bold ? "600 " : ""}${size}px ${getComputedStyle(document.body).fontFamily}`;

// ---- the data, spread out

const SLOW = D.families.findIndex((f) => f[0] === "slowdown");
const ofSteps = D.looks.map((k) => ["productive", "rework"].includes(D.families[k[FAMILY]][0]));
const job = { n: D.job.d.length, at: new Float64Array(D.job.d.length + 1), look: D.job.k, steps: [] };
for (let i = 0, next = 0; i < job.n; i++) {
  job.at[i + 1] = job.at[i] + D.job.d[i];
  if (ofSteps[job.look[i]]) job.steps[i] = [D.job.n[next++], D.job.n[next++]];
}
const rows = [{ kind: "faults", name: "Faults", h: 26 }, { kind: "job", name: "Job", h: 46 }];
for (const group of D.groups) {
  rows.push({ kind: "title", name: group.title, h: 26 });
  for (const row of group.rows) rows.push({ ...row, kind: "row", h: 24 });
}
const hitAt = (row) => row.hits || [];

// ---- numbers for people

const two = (n) => String(n).padStart(2, "0");
function duration(s) { // two units at most, as the command writes them
  if (Math.abs(s) < 59.95) return `${+s.toPrecision(3)}s`;
  let left = Math.round(s);
  const parts = [];
  for (const [unit, size] of [["d", 86400], ["h", 3600], ["m", 60], ["s", 1]]) {
    parts.push([Math.floor(left / size), unit]);
    left %= size;
  }
  const first = parts.findIndex(([n]) => n);
  return parts.slice(first, first + 2).filter(([n]) => n).map(([n, unit]) => n + unit).join(" ");
}
function clock(t, digits = 0) {
  const scale = 10 ** digits, whole = Math.round(t * scale), s = Math.floor(whole / scale);
  const rest = digits ? "." + String(whole % scale).padStart(digits, "0") : "";
  const h = Math.floor(s / 3600), tail = `:${two(Math.floor(s / 60) % 60)}:${two(s % 60)}${rest}`;
  return WALL >= 86400 ? `${Math.floor(h / 24)}d ${two(h % 24)}${tail}` : h + tail;
}
const STEPS = [1, 2, 5, 10, 15, 30, 60, 120, 300, 600, 900, 1800, 3600, 7200, 10800, 21600, 43200, 86400];
function tickStep(least) {
  if (least <= 0.5) return [1, 2, 5, 10].map((n) => n * 10 ** Math.floor(Math.log10(least))).find((s) => s >= least);
  const found = STEPS.find((s) => s >= least);
  if (found) return found;
  return [1, 2, 5, 10].map((n) => n * 86400 * 10 ** Math.floor(Math.log10(least / 86400))).find((s) => s >= least);
}
function tickText(t, step, base) { // from the largest unit that the window does not share, to the step's
  const parts = [], ms = step < 1 ? Math.ceil(-Math.log10(step) - 1e-9) : 0;
  const unit = step >= 86400 ? 0 : step >= 3600 ? 1 : step >= 60 ? 2 : 3;
  const r = Math.round(t * 1e6) / 1e6;
  const values = [Math.floor(r / 86400), Math.floor(r / 3600) % 24, Math.floor(r / 60) % 60, +(r % 60).toFixed(6)];
  for (let u = base; u <= unit; u++) {
    if (!parts.length && !values[u] && u < unit) continue; // no leading noughts
    parts.push((u === 3 ? values[u].toFixed(ms) : values[u]) + "dhms"[u]);
  }
  return r === 0 ? "0" : parts.join(" ");
}
function sharedBase(a, b) { // units above this one are the same all over the window: 0 d, 1 h, 2 m, 3 s
  if (Math.floor(a / 60) === Math.floor(b / 60)) return 3;
  if (Math.floor(a / 3600) === Math.floor(b / 3600)) return 2;
  return Math.floor(a / 86400) === Math.floor(b / 86400) ? 1 : 0;
}

// ---- view and layout

let view = [0, WALL], size = { w: 0, h: 0, dpr: 1 }, gutter = 0, stacked = false, total = 0, chosen = -1, pending = 0;
const AXIS = 30;
const X = (t) => gutter + ((t - view[0]) / (view[1] - view[0])) * (size.w - gutter);
const T = (x) => view[0] + ((x - gutter) / (size.w - gutter)) * (view[1] - view[0]);

function layout() {
  size.dpr = window.devicePixelRatio || 1;
  size.w = stage.clientWidth;
  stacked = size.w < 620;
  ctx.font = font(13);
  const widest = Math.max(40, ...rows.filter((r) => r.kind !== "title").map((r) => ctx.measureText(r.name).width));
  gutter = stacked ? 0 : Math.min(widest + 18, 210);
  let y = AXIS;
  for (const row of rows) {
    row.y = y;
    row.top = stacked && row.kind !== "title" && row.kind !== "faults" ? 16 : 0; // the name's own line
    y += row.h + row.top;
  }
  total = y + 6;
  size.h = printing ? Math.min(total, 1800) : Math.min(total, Math.max(260, Math.round(window.innerHeight * 0.66)));
  stage.style.height = `${size.h + 2}px`;
  el("spacer").style.height = `${Math.max(0, total - size.h)}px`;
  canvas.style.height = `${size.h}px`;
  canvas.width = Math.round(size.w * size.dpr);
  canvas.height = Math.round(size.h * size.dpr);
  map.width = Math.round(map.clientWidth * size.dpr);
  map.height = Math.round(30 * size.dpr);
  tiles.clear();
  mapPicture = null;
}
function show(a, b) {
  const span = Math.min(WALL, Math.max(SHORTEST, b - a));
  let start = (a + b) / 2 - span / 2;
  start = Math.min(Math.max(0, start), WALL - span);
  view = [start, start + span];
  redraw();
}
const zoom = (factor, t = (view[0] + view[1]) / 2) => show(t - (t - view[0]) * factor, t + (view[1] - t) * factor);
const move = (share) => show(view[0] + share * (view[1] - view[0]), view[1] + share * (view[1] - view[0]));
function redraw() {
  if (!pending) pending = requestAnimationFrame(() => { pending = 0; draw(); });
}

// ---- drawing

const tiles = new Map();
function tile(number, ink) {
  const key = number + ink;
  if (!tiles.has(key)) {
    const c = document.createElement("canvas"), g = c.getContext("2d"), n = Math.max(1, Math.ceil(size.dpr));
    c.width = c.height = 8 * n;
    g.scale(n, n);
    g.strokeStyle = ink;
    g.globalAlpha = 0.6;
    g.stroke(new Path2D(D.tiles[number]));
    const p = ctx.createPattern(c, "repeat");
    p.setTransform(new DOMMatrix([1 / n, 0, 0, 1 / n, 0, 0]));
    tiles.set(key, p);
  }
  return tiles.get(key);
}
function block(x, y, w, h, look) {
  const family = D.families[look[FAMILY]];
  ctx.fillStyle = family[COLOUR];
  ctx.fillRect(x, y, w, h);
  if (D.tiles[look[TILE]] && w >= 3) {
    ctx.save();
    ctx.translate(x, y); // the pattern goes with what it fills
    ctx.fillStyle = tile(look[TILE], family[INK]);
    ctx.fillRect(0, 0, w, h);
    ctx.restore();
  }
  if (w >= 3) {
    ctx.strokeStyle = theme().frame;
    ctx.lineWidth = 1;
    ctx.strokeRect(x + 0.5, y + 0.5, w - 1, h - 1);
  }
}
const widths = new Map();
function widthOf(text) {
  if (!widths.has(text)) widths.set(text, ctx.measureText(text).width);
  return widths.get(text);
}
function fitted(texts, room) { // the first that fits, else the first one cut, else nothing
  for (const text of texts) if (text && widthOf(text) <= room) return text;
  const full = texts[0];
  if (room < 26) return "";
  let n = Math.floor((room / widthOf(full)) * full.length);
  while (n > 2 && ctx.measureText(full.slice(0, n) + "…").width > room) n--;
  return n > 2 ? full.slice(0, n) + "…" : "";
}
function words(x0, x1, y, h, look, texts) {
  const from = Math.max(x0, gutter) + 4, room = Math.min(x1, size.w) - 4 - from, family = D.families[look[FAMILY]];
  if (room < 6 || h < 12) return;
  ctx.font = font(12);
  const text = fitted(texts, room) || (widthOf(family[MARK]) <= room ? family[MARK] : "");
  if (!text) return;
  ctx.textBaseline = "middle";
  if (D.tiles[look[TILE]]) {
    ctx.lineJoin = "round";
    ctx.lineWidth = 4;
    ctx.strokeStyle = family[COLOUR];
    ctx.strokeText(text, from, y + h / 2 + 0.5);
  }
  ctx.fillStyle = family[INK];
  ctx.fillText(text, from, y + h / 2 + 0.5);
}
const count = (n) => Math.round(n).toLocaleString("en");
function stepsOf(i) {
  const s = job.steps[i];
  if (!s || s[0] < 0) return "";
  const first = Math.floor(s[0]) + 1, last = Math.max(first, Math.ceil(s[1] - 1e-9));
  return first === last ? count(first) : `${count(first)}–${count(last)}`;
}
function bandWords(i) {
  const look = D.looks[job.look[i]], steps = stepsOf(i);
  if (steps) return [`${look[WORD]} ${steps}`, steps];
  return look[LAYER] && D.families[look[FAMILY]][0] === "restart" ? [`${look[WORD]} (${look[LAYER]})`, look[WORD]] : [look[WORD]];
}
function firstBand(t) { // the last band that begins at or before t
  let a = 0, b = job.n;
  while (b - a > 1) { const m = (a + b) >> 1; if (job.at[m] <= t) a = m; else b = m; }
  return a;
}
function drawJob(y, h, x, to, until, labels) { // x: time -> px. What is too short for a px is mixed, by its shares
  const mix = new Float64Array(D.families.length);
  let column = -1, sum = 0;
  const flush = () => {
    if (sum > 0) {
      let at = y;
      for (let f = 0; f < mix.length; f++) {
        if (!mix[f]) continue;
        const part = (mix[f] / sum) * h;
        ctx.fillStyle = D.families[f][COLOUR];
        ctx.fillRect(column, at, 1, part);
        at += part;
        mix[f] = 0;
      }
    }
    sum = 0;
  };
  for (let i = firstBand(until[0]); i < job.n && job.at[i] < until[1]; i++) {
    const a = x(job.at[i]), b = x(job.at[i + 1]), look = D.looks[job.look[i]], slow = (D.job.s[i] || 0) / (D.job.d[i] || 1);
    if (b - a >= 1.5) {
      flush();
      const x0 = Math.max(a, -10), x1 = Math.min(b, to + 10);
      block(x0, y, x1 - x0, h, look);
      if (slow > 0) {
        const part = Math.max(slow * h, 1);
        block(x0, y + h - part, x1 - x0, part, [SLOW, D.tiles.indexOf("M2 0V8M6 0V8")]);
      }
      if (labels) words(a, b, y, h * (slow > 0.5 ? 1 : 1 - slow), look, bandWords(i));
      continue;
    }
    if (Math.floor(a) !== column) { flush(); column = Math.floor(a); }
    mix[look[FAMILY]] += (b - a) * (1 - slow);
    if (slow > 0) mix[SLOW] += (b - a) * slow;
    sum += b - a;
  }
  flush();
}
function drawRow(row, y, h) {
  let lastX = -1, lastLook = -1;
  const order = [[], []];
  for (let i = 0; i < row.t.length; i++) {
    if (row.t[i] > view[1] || row.t[i] + row.d[i] < view[0]) continue;
    order[D.families[D.looks[row.k[i]][FAMILY]][THIN] ? 0 : 1].push(i);
  }
  for (const i of [...order[0], ...order[1]]) {
    const look = D.looks[row.k[i]], thin = D.families[look[FAMILY]][THIN];
    const a = Math.max(X(row.t[i]), -10), b = Math.min(X(row.t[i] + row.d[i]), size.w + 10), w = Math.max(b - a, 1.5);
    if (w < 2 && Math.floor(a) === lastX && row.k[i] === lastLook) continue; // nothing new at this px
    lastX = Math.floor(a);
    lastLook = row.k[i];
    if (thin) block(a, y + h / 2 - 3, w, 6, look);
    else {
      block(a, y + 2, w, h - 4, look);
      const text = row.x[i] >= 0 ? D.texts[row.x[i]] : "";
      words(a, b, y + 2, h - 4, look, text ? [text, text.split(",")[0], look[WORD]] : [look[WORD]]);
    }
  }
  for (const t of hitAt(row)) {
    if (t < view[0] || t > view[1]) continue;
    const x = X(t);
    ctx.fillStyle = theme().fault;
    ctx.strokeStyle = theme().back;
    ctx.lineWidth = 1;
    ctx.beginPath();
    ctx.moveTo(x - 5, y + 1); ctx.lineTo(x + 5, y + 1); ctx.lineTo(x, y + 11); ctx.closePath();
    ctx.fill(); ctx.stroke();
  }
}
let marks = [];
function drawFaults(row, y) {
  marks = [];
  for (const fault of D.faults) {
    if (fault[0] < view[0] || fault[0] > view[1]) continue;
    const x = X(fault[0]), last = marks[marks.length - 1];
    if (last && x - last.x < 42) last.faults.push(fault);
    else marks.push({ x, faults: [fault] });
  }
  ctx.font = font(12);
  for (const [place, mark] of marks.entries()) {
    const solid = mark.faults.some((f) => !f[3]);
    ctx.strokeStyle = ctx.fillStyle = theme().fault;
    ctx.lineWidth = 1.5;
    ctx.beginPath();
    ctx.moveTo(mark.x - 6, y + 8); ctx.lineTo(mark.x + 6, y + 8); ctx.lineTo(mark.x, y + 20); ctx.closePath();
    if (solid) ctx.fill();
    ctx.stroke();
    ctx.fillStyle = theme().text;
    ctx.textBaseline = "middle";
    const text = mark.faults.length > 1 ? `×${mark.faults.length}` : fitted([mark.faults[0][1]], 40);
    const left = mark.x + 9 + ctx.measureText(text).width > size.w;
    if (left && place && mark.x - marks[place - 1].x < 84) continue; // no room for its text on either side
    ctx.textAlign = left ? "right" : "left";
    ctx.fillText(text, mark.x + (left ? -8 : 9), y + 13);
    ctx.textAlign = "left";
  }
}
function name(row, y) {
  ctx.textBaseline = "middle";
  if (row.kind === "title") {
    ctx.font = font(12.5, true);
    ctx.fillStyle = theme().aside;
    ctx.fillText(fitted([row.name], size.w - 12), 6, y + row.h / 2 + 3);
    return;
  }
  if (row.kind === "faults" && stacked) return;
  ctx.font = font(13, row.kind === "job");
  ctx.fillStyle = theme().text;
  widths.delete(row.name);
  ctx.fillText(fitted([row.name], (stacked ? size.w : gutter) - 12), 6, stacked ? y + 9 : y + row.h / 2 + 0.5);
  widths.delete(row.name);
}
function draw() {
  const th = theme(), scroll = printing ? 0 : stage.scrollTop;
  ctx.setTransform(size.dpr, 0, 0, size.dpr, 0, 0);
  ctx.fillStyle = th.back;
  ctx.fillRect(0, 0, size.w, size.h);
  const span = view[1] - view[0], base = sharedBase(view[0], view[1]);
  ctx.font = font(12);
  const step = tickStep((span * (base ? 74 : 84)) / Math.max(size.w - gutter, 1));
  const ticks = [];
  for (let n = Math.ceil(view[0] / step - 1e-9); n * step <= view[1] * (1 + 1e-12); n++) ticks.push(n * step);
  ctx.fillStyle = th.line;
  for (const t of ticks) ctx.fillRect(Math.round(X(t)), AXIS, 1, size.h);
  ctx.save();
  ctx.beginPath();
  ctx.rect(0, AXIS, size.w, size.h - AXIS);
  ctx.clip();
  for (const row of rows) {
    const y = row.y - scroll;
    if (y > size.h || y + row.h + row.top < AXIS) continue;
    name(row, y);
    if (row.kind === "title") continue;
    ctx.save();
    ctx.beginPath();
    ctx.rect(gutter, Math.max(y, AXIS), size.w - gutter, row.h + row.top);
    ctx.clip();
    if (row.kind === "faults") drawFaults(row, y);
    else if (row.kind === "job") drawJob(y + row.top + 2, row.h - 4, X, size.w, view, true);
    else drawRow(row, y + row.top, row.h);
    ctx.restore();
  }
  ctx.restore();
  ctx.font = font(12);
  ctx.textBaseline = "middle";
  ctx.fillStyle = th.aside;
  let free = gutter; // the axis: what all ticks share at the left, then the ticks where there is room
  const shared = base ? tickText(Math.floor(view[0] / [86400, 3600, 60][base - 1]) * [86400, 3600, 60][base - 1], [86400, 3600, 60][base - 1], 0) : "";
  if (shared && !/^0\w?$/.test(shared)) {
    ctx.font = font(12, true);
    ctx.fillText(`${shared} +`, 6, AXIS / 2);
    free = Math.max(free, ctx.measureText(`${shared} +`).width + 12);
    ctx.font = font(12);
  }
  for (const t of ticks) {
    const text = tickText(t, step, base), w = ctx.measureText(text).width, x = Math.min(Math.max(X(t) - w / 2, gutter + 2), size.w - w - 4);
    if (x < free) continue;
    ctx.fillText(text, x, AXIS / 2);
    free = x + w + 8;
  }
  ctx.fillRect(0, AXIS - 1, size.w, 1);
  drawMap(th);
  told();
}
let mapPicture = null, mapDark = null;
function drawMap(th) {
  const g = map.getContext("2d"), w = map.clientWidth, dark = th === THEMES.dark;
  if (!w) return;
  g.setTransform(size.dpr, 0, 0, size.dpr, 0, 0);
  if (!mapPicture || mapDark !== dark) { // the job as a whole, made with the chart's own brush
    ctx.save();
    ctx.setTransform(1, 0, 0, 1, 0, 0);
    mapPicture = document.createElement("canvas");
    mapPicture.width = map.width; mapPicture.height = map.height;
    const g2 = mapPicture.getContext("2d");
    g2.setTransform(size.dpr, 0, 0, size.dpr, 0, 0);
    const cell = new Float64Array(D.families.length);
    const each = WALL / w;
    for (let px = 0, i = 0; px < w; px++) {
      cell.fill(0);
      const end = (px + 1) * each;
      for (; i < job.n && job.at[i] < end; i++) {
        const s = Math.min(job.at[i + 1], end) - Math.max(job.at[i], px * each), slow = (D.job.s[i] || 0) / (D.job.d[i] || 1);
        cell[D.looks[job.look[i]][FAMILY]] += s * (1 - slow);
        cell[SLOW] += s * slow;
        if (job.at[i + 1] > end) break;
      }
      let y = 6;
      const sum = cell.reduce((a, b) => a + b, 0) || 1;
      cell.forEach((s, f) => { g2.fillStyle = D.families[f][COLOUR]; g2.fillRect(px, y, 1, (s / sum) * 18); y += (s / sum) * 18; });
    }
    ctx.restore();
    mapDark = dark;
  }
  g.clearRect(0, 0, w, 30);
  g.drawImage(mapPicture, 0, 0, w, 30);
  const a = (view[0] / WALL) * w, b = Math.max((view[1] / WALL) * w, a + 3);
  g.fillStyle = dark ? "#15181bb0" : "#ffffffb0";
  g.fillRect(0, 6, a, 18);
  g.fillRect(b, 6, w - b, 18);
  g.strokeStyle = th.text;
  g.lineWidth = 2;
  g.strokeRect(Math.max(a, 0) + 1, 3, Math.min(b, w) - Math.max(a, 0) - 2, 24);
}
let tellLater = 0;
function told() { // not at every frame: a screen reader would read them all
  clearTimeout(tellLater);
  tellLater = setTimeout(() => {
    const span = view[1] - view[0], digits = span < 60 ? (span < 1 ? 3 : 1) : 0;
    el("window").textContent = `${clock(view[0], digits)} to ${clock(view[1], digits)} (${duration(span)})`;
  }, 120);
}

// ---- incidents

function incident(number, scroll) {
  const found = D.incidents[number];
  if (!found) return;
  const [a, end] = found, b = end === null ? WALL : end, pad = Math.max((b - a) * 0.18, SHORTEST);
  show(a - pad, b + pad);
  if (chosen >= 0) mark(chosen, false);
  chosen = number;
  mark(chosen, true);
  const calm = matchMedia("(prefers-reduced-motion: reduce)").matches ? "auto" : "smooth";
  if (scroll) el("chart-title").scrollIntoView({ behavior: calm, block: "start" });
}
function mark(number, on) {
  const tr = document.querySelector(`#incidents tr[data-i="${number}"]`);
  if (!tr) return;
  tr.classList.toggle("chosen", on);
  if (on) tr.setAttribute("aria-current", "true"); else tr.removeAttribute("aria-current");
  const box = tr.closest(".scroll");
  if (on && box.scrollHeight > box.clientHeight) box.scrollTop = tr.offsetTop - box.clientHeight / 3;
}
function neighbour(by) {
  const middle = (view[0] + view[1]) / 2;
  if (chosen >= 0) return incident(Math.min(Math.max(chosen + by, 0), D.incidents.length - 1));
  const later = D.incidents.findIndex(([a]) => a >= (view[1] - view[0] >= WALL ? 0 : middle));
  incident(by > 0 ? (later < 0 ? D.incidents.length - 1 : later) : (later < 0 ? D.incidents.length : later) - 1);
}
el("incidents").addEventListener("click", (e) => {
  const tr = e.target.closest("tr[data-i]");
  if (tr && !String(getSelection())) incident(+tr.dataset.i, true);
});

// ---- pointer, wheel, keys

function under(px, py) { // what the pointer is on: lines of text
  const y = py + stage.scrollTop, row = py < AXIS ? null : rows.find((r) => y >= r.y && y < r.y + r.h + r.top);
  if (!row || row.kind === "title" || px < gutter) return null;
  const t = T(px), near = 7;
  const faults = row.kind === "faults" ? marks.find((m) => Math.abs(m.x - px) < 10 || (px > m.x && px < m.x + 26)) : null;
  if (faults) {
    const lines = faults.faults.slice(0, 6).map((f) => `${clock(f[0])}  ${D.texts[f[4]]}${f[3] ? " (the loop goes on)" : ""}`);
    if (faults.faults.length > 6) lines.push(`and ${faults.faults.length - 6} more; zoom in`);
    return { text: lines.join("\n"), incident: faults.faults.map((f) => f[2]).find((n) => n >= 0), all: faults.faults };
  }
  const span = (a, d) => `${clock(a, d < 10 ? 1 : 0)} to ${clock(a + d, d < 10 ? 1 : 0)}, ${duration(d)}`;
  if (row.kind === "job" && t >= 0 && t <= WALL && job.n) {
    const i = firstBand(t), look = D.looks[job.look[i]], family = D.families[look[FAMILY]], slow = D.job.s[i];
    const lines = [[bandWords(i)[0], look[WORD] === family[LABEL] || ofSteps[job.look[i]] && family[0] === "productive" ? "" : family[LABEL]].filter(Boolean).join(": ")];
    lines.push(span(job.at[i], D.job.d[i]));
    if (slow) lines.push(`${duration(slow)} of it slow-down`);
    return { text: lines.join("\n") };
  }
  if (row.kind !== "row") return null;
  const struck = hitAt(row).find((h) => Math.abs(X(h) - px) < near);
  const fault = struck === undefined ? null : D.faults.find((f) => Math.abs(f[0] - struck) < 2e-3);
  if (fault) return { text: `${row.name}\n${clock(fault[0])}  ${D.texts[fault[4]]}`, incident: fault[2] };
  let best = -1;
  const slack = 2 * (view[1] - view[0]) / size.w;
  for (let i = 0; i < row.t.length && row.t[i] <= t + slack; i++)
    if (row.t[i] + row.d[i] >= t - slack && (best < 0 || !D.families[D.looks[row.k[i]][FAMILY]][THIN])) best = i;
  if (best < 0) return null;
  const look = D.looks[row.k[best]], note = row.x[best] >= 0 ? `: ${D.texts[row.x[best]]}` : "";
  return { text: `${row.name}\n${look[WORD]}${look[LAYER] ? ` (${look[LAYER]})` : ""}${note}\n${span(row.t[best], row.d[best])}` };
}
function hover(e) {
  const box = canvas.getBoundingClientRect(), found = under(e.clientX - box.left, e.clientY - box.top);
  tip.hidden = !found;
  canvas.style.cursor = found && found.incident >= 0 ? "pointer" : "";
  if (!found) return;
  tip.textContent = found.text;
  const w = tip.offsetWidth, h = tip.offsetHeight;
  tip.style.left = `${Math.max(4, Math.min(e.clientX + 14, innerWidth - w - 6))}px`;
  tip.style.top = `${e.clientY + 18 + h > innerHeight ? e.clientY - h - 12 : e.clientY + 18}px`;
}
const fingers = new Map();
let moved = 0;
canvas.addEventListener("pointerdown", (e) => {
  if (e.button) return;
  fingers.set(e.pointerId, [e.clientX, e.clientY]);
  canvas.setPointerCapture(e.pointerId);
  if (fingers.size === 1) moved = 0;
});
canvas.addEventListener("pointermove", (e) => {
  const was = fingers.get(e.pointerId);
  if (!was) { if (e.pointerType === "mouse") hover(e); return; }
  const now = [e.clientX, e.clientY], left = canvas.getBoundingClientRect().left, perPx = (view[1] - view[0]) / (size.w - gutter);
  if (fingers.size === 2) {
    const [p, q] = [...fingers.values()], before = Math.abs(p[0] - q[0]), middle = (p[0] + q[0]) / 2;
    fingers.set(e.pointerId, now);
    const [p2, q2] = [...fingers.values()], after = Math.abs(p2[0] - q2[0]), shift = (p2[0] + q2[0]) / 2 - middle;
    moved = 99;
    const t = T(middle - left);
    if (before > 8 && after > 8) zoom(before / after, t);
    show(view[0] - shift * perPx, view[1] - shift * perPx);
    return;
  }
  moved += Math.abs(now[0] - was[0]) + Math.abs(now[1] - was[1]);
  fingers.set(e.pointerId, now);
  if (moved < 5) return;
  canvas.classList.add("dragged");
  tip.hidden = true;
  show(view[0] - (now[0] - was[0]) * perPx, view[1] - (now[0] - was[0]) * perPx);
  if (e.pointerType === "mouse") stage.scrollTop -= now[1] - was[1];
});
function lift(e) {
  const here = fingers.delete(e.pointerId);
  canvas.classList.remove("dragged");
  if (!here || moved >= 5 || e.type === "pointercancel") return;
  const box = canvas.getBoundingClientRect(), found = under(e.clientX - box.left, e.clientY - box.top);
  if (found && found.all && found.all.length > 1 && view[1] - view[0] > 60 * SHORTEST) {
    const a = found.all[0][0], b = found.all[found.all.length - 1][0], pad = Math.max((b - a) * 0.2, SHORTEST);
    show(a - pad, b + pad);
  } else if (found && found.incident >= 0) incident(found.incident);
  else hover(e);
}
canvas.addEventListener("pointerup", lift);
canvas.addEventListener("pointercancel", lift);
canvas.addEventListener("pointerleave", (e) => { if (e.pointerType === "mouse") tip.hidden = true; });
addEventListener("scroll", () => { tip.hidden = true; }, { passive: true });
addEventListener("pointerdown", () => { tip.hidden = true; });
canvas.addEventListener("dblclick", (e) => zoom(1 / 3, T(e.clientX - canvas.getBoundingClientRect().left)));
canvas.addEventListener("wheel", (e) => {
  tip.hidden = true;
  const unit = e.deltaMode === 1 ? 30 : e.deltaMode === 2 ? 400 : 1, whole = view[1] - view[0] >= WALL * (1 - 1e-9);
  if (e.shiftKey || Math.abs(e.deltaX) > Math.abs(e.deltaY)) {
    if (whole) return;
    e.preventDefault();
    move(((e.deltaX || e.deltaY) * unit) / size.w);
  } else {
    if (whole && e.deltaY > 0) return; // nothing to zoom out of: the page scrolls
    e.preventDefault();
    const turn = Math.max(-300, Math.min(300, e.deltaY * unit));
    zoom(Math.exp(turn * (e.ctrlKey ? 0.01 : 0.0022)), Math.max(view[0], T(e.clientX - canvas.getBoundingClientRect().left)));
  }
}, { passive: false });
const KEYS = {
  "+": () => zoom(0.6), "=": () => zoom(0.6), "-": () => zoom(1 / 0.6), _: () => zoom(1 / 0.6),
  ArrowLeft: () => move(-0.2), ArrowRight: () => move(0.2),
  ArrowUp: () => { stage.scrollTop -= 40; }, ArrowDown: () => { stage.scrollTop += 40; },
  PageUp: () => { stage.scrollTop -= size.h * 0.8; }, PageDown: () => { stage.scrollTop += size.h * 0.8; },
  0: () => whole(), Home: () => whole(), n: () => neighbour(1), p: () => neighbour(-1), Escape: () => { tip.hidden = true; },
};
function whole() {
  if (chosen >= 0) mark(chosen, false);
  chosen = -1;
  show(0, WALL);
}
canvas.addEventListener("keydown", (e) => {
  const act = KEYS[e.key];
  if (!act || e.ctrlKey || e.metaKey || e.altKey) return;
  e.preventDefault();
  act();
});
for (const [id, act] of Object.entries({
  "zoom-in": KEYS["+"], "zoom-out": KEYS["-"], earlier: KEYS.ArrowLeft, later: KEYS.ArrowRight, reset: whole,
  next: KEYS.n, previous: KEYS.p,
})) el(id).addEventListener("click", act);
for (const id of ["next", "previous"]) el(id).disabled = !D.incidents.length;
const toMap = (e) => {
  const box = map.getBoundingClientRect(), t = ((e.clientX - box.left) / box.width) * WALL, half = (view[1] - view[0]) / 2;
  show(t - half, t + half);
};
map.addEventListener("pointerdown", (e) => { map.setPointerCapture(e.pointerId); toMap(e); });
map.addEventListener("pointermove", (e) => { if (e.buttons) toMap(e); });
stage.addEventListener("scroll", redraw);

// ---- size, colours, paper

const again = () => { layout(); draw(); };
addEventListener("resize", again);
DARK.addEventListener("change", again);
addEventListener("beforeprint", () => { printing = true; again(); });
addEventListener("afterprint", () => { printing = false; again(); });
again();
const wanted = /^#incident-(\d+)$/.exec(location.hash); // a link to one incident
if (wanted) incident(+wanted[1] - 1);
})();
