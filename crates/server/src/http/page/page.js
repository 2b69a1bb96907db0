// The page: asks /api/now.json and /api/waits.json once a second and draws what they say.
// Nothing from outside; everything that comes from the database is put in as text, never as markup.
'use strict';

const $ = (id) => document.getElementById(id);
const SVG = 'http://www.w3.org/2000/svg';
const PERIOD_MS = 1000;

// Tests look here: a page that threw is not a good page.
const complain = (what) => { document.body.dataset.error = String(what); };
addEventListener('error', (e) => complain(e.message));
addEventListener('unhandledrejection', (e) => complain(e.reason));

// ---------------------------------------------------------------------------------------- elements

/** An element with attributes and children; strings become text. */
function el(tag, attributes, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes || {})) {
    if (name === 'onclick') node.addEventListener('click', value);
    else if (name === 'style') Object.assign(node.style, value);
    else if (value !== null && value !== false) node.setAttribute(name, value);
  }
  node.append(...children.flat().filter((c) => c !== null && c !== undefined));
  return node;
}

function svg(tag, attributes, ...children) {
  const node = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes || {})) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

/** A table: columns are {title, of(row) → text or element, kind: class of the cells}. */
function table(id, columns, rows, empty, decorate) {
  const head = el('tr', null, columns.map((c) => el('th', { class: c.kind || null }, c.title)));
  const body = rows.map((row) => {
    const cells = columns.map((c) => el('td', { class: c.kind || null }, c.of(row) ?? ''));
    const line = el('tr', null, cells);
    if (decorate) decorate(line, row);
    return line;
  });
  if (!rows.length) body.push(el('tr', null, el('td', { class: 'empty', colspan: columns.length }, empty)));
  $(id).replaceChildren(el('thead', null, head), el('tbody', null, body));
}

// ----------------------------------------------------------------------------------------- numbers

const whole = (n) => Math.round(n).toLocaleString('en').replaceAll(',', '\u202f');

function short(n) {
  if (n >= 1e9) return (n / 1e9).toFixed(1) + ' G';
  if (n >= 1e6) return (n / 1e6).toFixed(1) + ' M';
  if (n >= 1e4) return (n / 1e3).toFixed(1) + ' k';
  return n < 10 && n !== Math.round(n) ? n.toFixed(1) : whole(n);
}

function bytes(n) {
  for (const unit of ['B', 'KiB', 'MiB', 'GiB']) {
    if (n < 1024) return (n < 10 && unit !== 'B' ? n.toFixed(1) : Math.round(n)) + ' ' + unit;
    n /= 1024;
  }
  return n.toFixed(1) + ' TiB';
}

/** A length of time in seconds, in two figures or so. */
function span(s) {
  if (s < 1e-6) return Math.round(s * 1e9) + ' ns';
  if (s < 1e-3) return +(s * 1e6).toPrecision(2) + ' µs';
  if (s < 1) return +(s * 1e3).toPrecision(2) + ' ms';
  if (s < 10) return s.toFixed(1) + ' s';
  if (s < 60) return Math.round(s) + ' s';
  if (s < 3600) return Math.floor(s / 60) + ' min ' + Math.floor(s % 60) + ' s';
  if (s < 86400) return Math.floor(s / 3600) + ' h ' + Math.floor(s % 3600 / 60) + ' min';
  return Math.floor(s / 86400) + ' d ' + Math.floor(s % 86400 / 3600) + ' h';
}

const clock = (ms) => new Date(ms).toLocaleTimeString('en-GB');

// ------------------------------------------------------------------------------------------ colours

// A hue for each type of wait; events of one type differ in lightness.
const HUES = { Lock: 2, LWLock: 32, IO: 214, IPC: 176, Timeout: 265, Client: 320, Extension: 60 };
const known = new Map();

function colour(type, event) {
  if (type === 'CPU') return 'hsl(140 42% 46%)';
  const hue = HUES[type] ?? 0;
  const name = type + event;
  if (!known.has(name)) {
    const before = [...known.keys()].filter((k) => k.startsWith(type)).length;
    known.set(name, before);
  }
  const step = known.get(name);
  return `hsl(${hue + (step % 3) * 7} ${70 - (step % 2) * 18}% ${[52, 66, 42, 74, 36][step % 5]}%)`;
}

const swatch = (type, event) =>
  el('span', { class: 'swatch', style: { background: colour(type, event) } });

const eventName = (type, event) =>
  el('span', { class: 'event' }, swatch(type, event), type + ' / ' + event);

// -------------------------------------------------------------------------------------------- chart

let timeline = null;
let pointed = null;
/** Events of the chart's minutes. */
let marks = [];

const SHOWN = 9;

/** The layers of the chart from below: the processors, then the heaviest waits, then the rest. */
function layersOf({ times, cpu, cpu_by, series }) {
  const sum = (v) => v.reduce((a, b) => a + b, 0);
  const all = series.map((s) => ({ ...s, total: sum(s.values) })).sort((a, b) => b.total - a.total);
  const out = [];
  // The statements that used the processors most; their time in which others had the processor is taken off.
  const split = cpu_by || [];
  const parts = times.map((_, i) => sum(split.map((s) => s.values[i])));
  const share = times.map((_, i) => (parts[i] > cpu[i] ? cpu[i] / parts[i] : 1));
  split.forEach((s, n) => out.push({
    type: 'CPU', event: s.query.slice(0, 60), values: s.values.map((v, i) => v * share[i]), colour: `hsl(${110 + n * 14} 42% ${36 + n * 7}%)`,
  }));
  const others = cpu.map((v, i) => Math.max(0, v - parts[i] * share[i]));
  out.push({ type: split.length ? 'CPU of others' : 'CPU', event: '', values: others, colour: colour('CPU') });
  for (const s of all.slice(0, SHOWN)) out.push({ ...s, colour: colour(s.type, s.event) });
  const rest = all.slice(SHOWN);
  if (rest.length) {
    const values = times.map((_, i) => sum(rest.map((s) => s.values[i])));
    out.push({ type: 'others', event: '', values, colour: 'var(--idle)' });
  }
  return out;
}

function niceTop(n) {
  const steps = [0.1, 0.2, 0.5, 1, 2, 4, 6, 8, 10];
  const power = 10 ** Math.floor(Math.log10(Math.max(n, 0.1)));
  return steps.map((s) => s * power).find((s) => s >= n - 1e-9) ?? 10 * power;
}

function drawChart() {
  const width = Math.max(280, $('chart').clientWidth || 800);
  const height = innerWidth <= 760 ? 170 : 220;
  const left = 34, bottom = 20, top = 8, right = 4;
  const { times } = timeline;
  // A young server's minutes are shown larger.
  const count = Math.min(timeline.kept, Math.max(60, Math.ceil(times.length / 60) * 60));
  const stack = layersOf(timeline);
  const totals = times.map((_, i) => stack.reduce((a, l) => a + l.values[i], 0));
  const most = niceTop(Math.max(0.5, ...totals));
  // The newest second is at the right edge.
  const x = (i) => left + (width - left - right) * (count - times.length + i) / count;
  const y = (v) => height - bottom - (height - bottom - top) * v / most;
  const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none' });
  for (const part of [0, 0.25, 0.5, 0.75, 1]) {
    const at = y(most * part);
    picture.append(svg('line', { class: 'grid', x1: left, x2: width - right, y1: at, y2: at }));
    if (part * 4 % 2 === 0) {
      picture.append(svg('text', { x: left - 6, y: at + 4, 'text-anchor': 'end' }, String(+(most * part).toPrecision(3))));
    }
  }
  const step = count <= 120 ? 20 : 60;
  for (let ago = count; ago >= 0; ago -= step) {
    const at = left + (width - left - right) * (1 - ago / count);
    const anchor = ago === count ? 'start' : ago === 0 ? 'end' : 'middle';
    const text = ago === 0 ? 'now' : step < 60 ? `−${ago} s` : `−${ago / 60} min`;
    picture.append(svg('text', { x: at, y: height - 5, 'text-anchor': anchor }, text));
  }
  const base = times.map(() => 0);
  for (const layer of stack) {
    let up = '', down = '';
    layer.values.forEach((value, i) => {
      const [from, to] = [base[i], base[i] + value];
      up += `L${x(i).toFixed(1)} ${y(to).toFixed(1)}L${x(i + 1).toFixed(1)} ${y(to).toFixed(1)}`;
      down = `L${x(i + 1).toFixed(1)} ${y(from).toFixed(1)}L${x(i).toFixed(1)} ${y(from).toFixed(1)}` + down;
      base[i] = to;
    });
    if (up) picture.append(svg('path', { d: 'M' + up.slice(1) + down + 'Z', fill: layer.colour }));
  }
  const first = times.length ? times[0] - 1000 : 0;
  const place = (ms) => (ms < first || ms > first + times.length * 1000 ? null : x((ms - first) / 1000));
  drawMarks(picture, marks, place, top, height - bottom);
  let at = times.length - 1;
  if (pointed !== null && times.length) {
    at = Math.min(times.length - 1, Math.max(0, Math.floor((pointed * width - x(0)) / (x(1) - x(0)))));
    const line = (x(at) + x(at + 1)) / 2;
    picture.append(svg('line', { x1: line, x2: line, y1: top, y2: height - bottom, stroke: 'var(--text)', 'stroke-dasharray': '3 3' }));
  }
  $('chart').replaceChildren(picture);
  const when = pointed === null || !times.length ? 'now' : clock(times[at]);
  const items = stack.map((l) => el('li', null,
    el('span', { class: 'swatch', style: { background: l.colour } }),
    l.event ? l.type + ' / ' + l.event : l.type,
    el('b', null, (l.values[at] ?? 0).toFixed(2))));
  $('legend').replaceChildren(el('li', null, el('b', null, when)), ...items);
}

function pointAt(e) {
  const box = $('chart').getBoundingClientRect();
  pointed = e === null ? null : (e.clientX - box.left) / box.width;
  if (timeline && !isPast()) drawChart();
}
$('chart').addEventListener('pointermove', pointAt);
$('chart').addEventListener('pointerdown', pointAt);
$('chart').addEventListener('pointerleave', () => pointAt(null));
addEventListener('resize', () => timeline && !isPast() && drawChart());

// ------------------------------------------------------------------------------------------ figures

let previous = null;

/** Growth a second of a counter since the last answer; null at first. */
function rate(now, path) {
  if (!previous || now.now <= previous.now) return null;
  const get = (o) => path.split('.').reduce((v, k) => v?.[k], o) ?? 0;
  return Math.max(0, (get(now) - get(previous)) / ((now.now - previous.now) / 1000));
}

const perSecond = (n) => (n === null ? '–' : short(n) + ' /s');

function drawFigures(now) {
  const states = now.sessions.states;
  const active = states.active || 0;
  const waiting = now.sessions.rows.filter((s) => s.state === 'active' && s.wait_event).length;
  const clients = now.sessions.all - (states.background || 0);
  const blocked = new Set((now.blocking || []).map((b) => b.waiting_pid)).size;
  const sum = (rows, k) => (rows || []).reduce((a, r) => a + (r[k] || 0), 0);
  const commits = (o) => sum(o?.database, 'xact_commit') + sum(o?.database, 'xact_rollback');
  const gap = previous ? (now.now - previous.now) / 1000 : 0;
  const tps = gap > 0 && now.database?.length ? Math.max(0, (commits(now) - commits(previous)) / gap) : null;
  const reads = now.pool.hits + now.pool.reads;
  const figures = [
    ['sessions', whole(clients), false],
    ['active', whole(active), false],
    ['of them waiting', whole(waiting), false],
    ['blocked', whole(blocked), blocked > 0],
    ['transactions', perSecond(tps), false],
    ['page hits', reads ? (100 * now.pool.hits / reads).toFixed(1) + ' %' : '–', false],
    ['log', rate(now, 'wal.bytes') === null ? '–' : bytes(rate(now, 'wal.bytes')) + '/s', false],
    ['plans found', perSecond(rate(now, 'plans.hits')), false],
  ];
  $('figures').replaceChildren(...figures.map(([name, value, warn]) =>
    el('div', { class: warn ? 'warn' : null }, el('b', null, value), el('span', null, name))));
}

// ----------------------------------------------------------------------------------------- sessions

const GROUPS = [
  ['working', 'Working', (s) => s.state === 'active' || (s.state || '').startsWith('idle in')],
  ['idle', 'Idle', (s) => s.state === 'idle'],
  ['background', 'Background', (s) => !s.state],
  ['all', 'All', () => true],
];
let group = 'working';
const opened = new Set();

function sinceOf(session) {
  return session.state === 'active' ? session.query_start : session.state_change ?? session.backend_start;
}

function drawSessions(now) {
  const rows = now.sessions.rows;
  $('filters').replaceChildren(...GROUPS.map(([key, title, test]) =>
    el('button', {
      type: 'button', 'aria-pressed': String(key === group),
      onclick: () => { group = key; drawSessions(now); },
    }, `${title} ${rows.filter(test).length}`)));
  const test = GROUPS.find((g) => g[0] === group)[2];
  const since = (s) => (sinceOf(s) ? span(Math.max(0, (now.now - sinceOf(s)) / 1000)) : '');
  const wait = (s) => (s.wait_event ? eventName(s.wait_event_type, s.wait_event) : s.state === 'active' ? 'on CPU' : '');
  table('sessions', [
    { title: 'pid', of: (s) => String(s.pid) },
    { title: 'state', of: (s) => s.state || s.backend_type },
    { title: 'waits for', of: wait },
    { title: 'for', of: since, kind: 'number' },
    { title: 'user', of: (s) => s.usename, kind: 'wide' },
    { title: 'application', of: (s) => s.application_name, kind: 'wide' },
    { title: 'client', of: (s) => s.client_addr, kind: 'wide' },
    { title: 'statement', of: (s) => s.query, kind: 'query' },
  ], rows.filter(test), 'nobody', (line, s) => {
    line.classList.toggle('dim', s.state !== 'active');
    line.classList.toggle('open', opened.has(s.pid));
    line.addEventListener('click', () => {
      opened.has(s.pid) ? opened.delete(s.pid) : opened.add(s.pid);
      line.classList.toggle('open');
    });
  });
  if (now.sessions.all > rows.length) {
    $('filters').append(el('span', { class: 'hint' }, `${rows.length} of ${now.sessions.all} are listed`));
  }
}

// ----------------------------------------------------------------------------------------- blocking

function treeLine(now, pid, query, edges) {
  const line = el('div', { class: 'line' }, el('span', { class: 'pid' }, 'pid ' + pid));
  for (const e of edges) {
    line.append(
      el('span', { class: 'for' }, span(Math.max(0, (now.now - e.wait_start) / 1000))),
      eventName(e.wait_event_type, e.wait_event),
      el('span', null, e.object || ''));
  }
  line.append(el('span', { class: 'what', title: query || '' }, query || ''));
  return line;
}

/** Where time is lost and to what, in words; nothing where nothing has weight. */
function drawFindings(now) {
  const found = now.why || [];
  $('why').hidden = !found.length;
  $('findings').replaceChildren(...found.map((f) => el('li', null,
    el('b', null, f.seconds_lost > 0 ? span(f.seconds_lost) + ' lost' : 'danger'), ' ',
    f.sentence,
    el('p', null, f.advice),
    el('p', { class: 'hint' }, f.evidence))));
}

function drawBlocking(now) {
  // Who stands in a queue waits for all before it; it is shown under the last of them.
  const nearest = new Map();
  for (const e of now.blocking || []) {
    if (e.depth > (nearest.get(e.waiting_pid)?.depth ?? 0)) nearest.set(e.waiting_pid, e);
  }
  const edges = [...nearest.values()];
  const open = $('blocking').querySelector('details')?.open;
  const waiting = new Map();
  const under = new Map();
  for (const e of edges) {
    (waiting.get(e.waiting_pid) || waiting.set(e.waiting_pid, []).get(e.waiting_pid)).push(e);
    (under.get(e.blocking_pid) || under.set(e.blocking_pid, []).get(e.blocking_pid)).push(e);
  }
  const seen = new Set();
  const branch = (pid, query, over) => {
    if (seen.has(pid)) return el('li', null, el('div', { class: 'line' }, `pid ${pid} (above)`));
    seen.add(pid);
    const item = el('li', null, treeLine(now, pid, query, over));
    const below = (under.get(pid) || []).filter((e, i, all) => all.findIndex((f) => f.waiting_pid === e.waiting_pid) === i);
    if (below.length) {
      item.append(el('ul', { class: 'tree' }, below.map((e) => branch(e.waiting_pid, e.waiting_query, [e]))));
    }
    return item;
  };
  const roots = [...under.keys()].filter((pid) => !waiting.has(pid));
  // Only a cycle has no root, until its deadlock is found.
  const start = roots.length || !edges.length ? roots : [edges[0].blocking_pid];
  const tree = edges.length
    ? el('ul', { class: 'tree' }, start.map((pid) => branch(pid, under.get(pid)[0].blocking_query, [])))
    : el('p', { class: 'empty' }, 'Nobody waits for another session.');
  const past = (now.blocking_history || []).map((h) => el('li', null, el('div', { class: 'line' },
    el('span', null, clock(h.started)),
    el('span', { class: 'for' }, span(h.duration_ms / 1000)),
    el('span', null, `pid ${h.waiting_pid} for pid ${h.blocking_pid}`),
    eventName(h.wait_event_type, h.wait_event),
    el('span', null, h.object || ''),
    el('span', { class: 'what', title: h.waiting_query || '' }, h.waiting_query || ''))));
  const history = past.length
    ? el('details', open ? { open: '' } : null, el('summary', null, 'What was blocked lately'), el('ul', { class: 'tree' }, past))
    : null;
  $('blocking').replaceChildren(...[tree, history].filter(Boolean));
}

// ------------------------------------------------------------------------------------------- tables

function drawWaits(now) {
  table('waits', [
    { title: 'event', of: (w) => { const e = eventName(w.type, w.event); e.title = w.about; return e; } },
    { title: 'waits', of: (w) => short(w.count), kind: 'number' },
    { title: 'in all', of: (w) => span(w.total_ns / 1e9), kind: 'number' },
    { title: 'mean', of: (w) => span(w.total_ns / w.count / 1e9), kind: 'number' },
    { title: 'longest', of: (w) => span(w.longest_ns / 1e9), kind: 'number' },
  ], now.waits.slice(0, 14), 'nobody has waited yet');
}

function drawLatches(now) {
  // pg_stat_lwlock's columns, as far as they are kept.
  const ns = (r, ...names) => names.map((n) => r[n]).find((v) => v !== undefined) ?? 0;
  const rows = now.latches.map((r) => ({
    name: r.tranche ?? r.name, waits: r.waits ?? 0, acquired: r.acquisitions,
    total: ns(r, 'wait_time_ns') / 1e9 || ns(r, 'wait_time', 'total_wait_ms', 'wait_time_ms') / 1e3,
    longest: ns(r, 'longest_ns') / 1e9 || ns(r, 'longest_wait', 'longest_wait_ms', 'max_wait_ms') / 1e3,
    passes: r.passes ?? 0,
  })).filter((r) => r.waits || r.acquired).sort((a, b) => b.total - a.total || (b.acquired || 0) - (a.acquired || 0));
  const columns = [
    { title: 'tranche', of: (r) => r.name },
    { title: 'waits', of: (r) => short(r.waits), kind: 'number' },
    { title: 'in all', of: (r) => span(r.total), kind: 'number' },
    { title: 'longest', of: (r) => span(r.longest), kind: 'number' },
    { title: 'passes', of: (r) => short(r.passes), kind: 'number' },
  ];
  if (rows.some((r) => r.acquired !== undefined && r.acquired !== null)) {
    columns.splice(1, 0, { title: 'taken', of: (r) => short(r.acquired || 0), kind: 'number' });
  }
  table('latches', columns, rows.slice(0, 14), 'nobody has waited for a latch yet');
}

function pairs(id, rows) {
  table(id, [
    { title: '', of: (r) => r[0] },
    { title: 'since the start', of: (r) => r[1], kind: 'number' },
    { title: 'now', of: (r) => r[2] ?? '', kind: 'number' },
  ], rows, '');
}

function drawStorage(now) {
  const { pool, wal } = now;
  const line = (title, group, key, show) => {
    const growth = rate(now, group + '.' + key);
    return [title, (show || short)(now[group][key]), growth === null ? '–' : (show || short)(growth) + ' /s'];
  };
  pairs('pool', [
    ['size', bytes(pool.frames * 8192), ''],
    line('found in memory', 'pool', 'hits'),
    line('read from files', 'pool', 'reads'),
    line('written', 'pool', 'writes'),
    line('written by who needed the frame', 'pool', 'foreground_writes'),
    line('evicted', 'pool', 'evictions'),
    line('added to files', 'pool', 'extended'),
  ]);
  pairs('wal', [
    line('bytes', 'wal', 'bytes', bytes),
    line('records', 'wal', 'records'),
    line('full page images', 'wal', 'images'),
    line('writes', 'wal', 'writes'),
    line('syncs', 'wal', 'syncs'),
    line('waits for buffers', 'wal', 'buffers_full'),
    line('checkpoints', 'wal', 'checkpoints'),
  ]);
}

// ------------------------------------------------------------------------------------- flame graphs

function takeFlame(kind, seconds) {
  const source = `/flamegraph.svg?kind=${kind}&seconds=${seconds}`;
  const note = el('p', null, `Watching for ${seconds} s…`);
  const frame = el('iframe', { src: source, title: 'Flame graph', sandbox: 'allow-scripts' });
  frame.addEventListener('load', () => {
    note.replaceChildren('Click a frame to zoom. ', el('a', { href: source, target: '_blank' }, 'Take another in a tab of its own'));
  });
  $('flame').replaceChildren(note, frame);
}

for (const [kind, title] of [['cpu', 'On CPU'], ['waits', 'Waits by statement'], ['session_waits', 'Waits by session']]) {
  for (const seconds of [2, 10]) {
    $('flames').append(el('button', { type: 'button', onclick: () => takeFlame(kind, seconds) }, `${title} ${seconds} s`));
  }
}

// --------------------------------------------------------------------------------------------- loop

let paused = false;
let lost = null;

$('pause').addEventListener('click', () => {
  paused = !paused;
  $('pause').setAttribute('aria-pressed', String(paused));
  $('pause').textContent = paused ? 'Go on' : 'Pause';
});

async function ask(path, patience = 5000) {
  const answer = await fetch(new URL(path, location.origin), { cache: 'no-store', signal: AbortSignal.timeout(patience) });
  if (!answer.ok) throw new Error(`${path}: ${answer.status}`);
  return answer.json();
}

function draw(now) {
  $('about').className = '';
  $('about').textContent = `version ${now.version} · up ${span((now.now - now.started) / 1000)} · ${clock(now.now)}`;
  drawFigures(now);
  marks = now.events || [];
  if (!isPast()) {
    drawChart();
    drawFindings(now);
  }
  drawBlocking(now);
  drawSessions(now);
  drawWaits(now);
  drawLatches(now);
  drawStorage(now);
  // For tests, too: nothing may stick out at the side.
  document.body.dataset.fits = String(document.documentElement.scrollWidth <= innerWidth);
  document.body.dataset.drawn = String(Number(document.body.dataset.drawn || 0) + 1);
}

async function round() {
  let now = null;
  try {
    [now, timeline] = await Promise.all([ask('/api/now.json'), ask('/api/waits.json')]);
    lost = null;
  } catch (error) {
    lost = lost ?? Date.now();
    $('about').className = 'gone';
    $('about').textContent = `no answer from the server since ${clock(lost)}`;
  }
  // Outside of the try: what is wrong here is wrong with the page, not with the server.
  if (now) {
    draw(now);
    previous = now;
  }
}

async function loop() {
  if (!paused && !document.hidden) await round();
  setTimeout(loop, PERIOD_MS);
}
// Past.js is there when this runs.
addEventListener('DOMContentLoaded', loop);
