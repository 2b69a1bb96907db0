// The range that is looked at: live, or any time that the history has. It stands in the address behind #, so that a
// link opens the same view:
//   #last=3600 | #from=2026-11-21T03:05&to=2026-11-21T03:15, &user= &application= &database= &query= &back=86400
'use strict';

/** The choice: last (seconds) or from and to (milliseconds), filters, back (seconds). Empty: live. */
let chosen = {};
/** The answer for it; null while live. */
let past = null;

const isPast = () => Object.keys(chosen).length > 0;
const FILTERS = ['user', 'application', 'database', 'query'];

// ------------------------------------------------------------------------------------- the address

const twoDigits = (n) => String(n).padStart(2, '0');

/** A time as datetime-local has it, in this browser's zone. */
function localTime(ms) {
  const t = new Date(ms);
  return `${t.getFullYear()}-${twoDigits(t.getMonth() + 1)}-${twoDigits(t.getDate())}T` +
    `${twoDigits(t.getHours())}:${twoDigits(t.getMinutes())}:${twoDigits(t.getSeconds())}`;
}

function readAddress() {
  const words = new URLSearchParams(location.hash.slice(1));
  const out = {};
  const from = Date.parse(words.get('from') || ''), to = Date.parse(words.get('to') || '');
  if (from && to && from < to) Object.assign(out, { from, to });
  else if (Number(words.get('last')) > 0) out.last = Number(words.get('last'));
  for (const name of FILTERS) if (words.get(name)) out[name] = words.get(name);
  if (Number(words.get('back')) > 0) out.back = Number(words.get('back'));
  return out;
}

function writeAddress() {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(chosen)) {
    words.set(name, name === 'from' || name === 'to' ? localTime(value) : value);
  }
  const hash = words.toString();
  history.replaceState(null, '', hash ? '#' + hash : location.pathname);
}

/** Changes the choice; what is null or empty is taken out. */
function choose(change) {
  chosen = Object.fromEntries(Object.entries({ ...chosen, ...change }).filter((e) => e[1]));
  writeAddress();
  askAgain();
}

/** The request's parameters. */
function parameters() {
  const words = new URLSearchParams();
  for (const [name, value] of Object.entries(chosen)) words.set(name, value);
  return words.toString();
}

// --------------------------------------------------------------------------------------- the chart

const MARKS = {
  start: 'var(--good)', stop: 'var(--warn)', crash: 'var(--warn)', checkpoint: 'var(--idle)',
  setting: 'var(--accent)', definition: '#b4690e', plan: '#8a3ffc', deadlock: 'var(--warn)', alert: 'var(--warn)',
};

/** A dashed line for each event in a picture. x: from a time to its place, or null where it is outside. */
function drawMarks(picture, events, x, top, bottom) {
  for (const event of events) {
    const at = MARKS[event.kind] ? x(event.at) : null;
    if (at === null) continue;
    const line = svg('line', {
      class: 'mark', 'data-kind': event.kind, x1: at, x2: at, y1: top, y2: bottom, stroke: MARKS[event.kind],
    });
    line.append(svg('title', {}, `${clock(event.at)} ${event.kind}: ${event.text}`));
    // The line is thin: the foot is to be pointed at.
    const foot = svg('circle', { cx: at, cy: bottom, r: 4, fill: MARKS[event.kind] });
    foot.append(svg('title', {}, `${clock(event.at)} ${event.kind}: ${event.text}`));
    picture.append(line, foot);
  }
}

const day = (ms) => new Date(ms).toLocaleDateString('en-GB', { day: '2-digit', month: 'short' });

function drawPastChart() {
  const width = Math.max(280, $('chart').clientWidth || 800);
  const height = innerWidth <= 760 ? 170 : 220;
  const left = 34, bottom = 20, top = 8, right = 4;
  const { times, from, to } = past;
  const stack = layersOf(past);
  const totals = times.map((_, i) => stack.reduce((a, l) => a + l.values[i], 0));
  const most = niceTop(Math.max(0.5, ...totals));
  const xOf = (ms) => left + (width - left - right) * (ms - from) / (to - from);
  const x = (i) => xOf(i === 0 ? from : Math.min(to, times[i - 1]));
  const y = (v) => height - bottom - (height - bottom - top) * v / most;
  const picture = svg('svg', { viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: 'none' });
  for (const part of [0, 0.5, 1]) {
    const at = y(most * part);
    picture.append(svg('line', { class: 'grid', x1: left, x2: width - right, y1: at, y2: at }));
    picture.append(svg('text', { x: left - 6, y: at + 4, 'text-anchor': 'end' }, String(+(most * part).toPrecision(3))));
  }
  const long = to - from > 86400e3;
  for (const part of width < 500 ? [0, 0.5, 1] : [0, 0.25, 0.5, 0.75, 1]) {
    const ms = from + (to - from) * part;
    const anchor = part === 0 ? 'start' : part === 1 ? 'end' : 'middle';
    const text = long ? `${day(ms)} ${clock(ms).slice(0, 5)}` : clock(ms);
    picture.append(svg('text', { x: xOf(ms), y: height - 5, 'text-anchor': anchor }, text));
  }
  const base = times.map(() => 0);
  for (const layer of stack) {
    let up = '', down = '';
    layer.values.forEach((value, i) => {
      const [low, high] = [base[i], base[i] + value];
      up += `L${x(i).toFixed(1)} ${y(high).toFixed(1)}L${x(i + 1).toFixed(1)} ${y(high).toFixed(1)}`;
      down = `L${x(i + 1).toFixed(1)} ${y(low).toFixed(1)}L${x(i).toFixed(1)} ${y(low).toFixed(1)}` + down;
      base[i] = high;
    });
    if (up) picture.append(svg('path', { d: 'M' + up.slice(1) + down + 'Z', fill: layer.colour }));
  }
  drawMarks(picture, past.events, (ms) => (ms < from || ms > to ? null : xOf(ms)), top, height - bottom);
  $('chart').replaceChildren(picture);
  const means = (values) => values.reduce((a, b) => a + b, 0) / Math.max(1, values.length);
  $('legend').replaceChildren(...stack.map((l) => el('li', null,
    el('span', { class: 'swatch', style: { background: l.colour } }),
    l.event ? l.type + ' / ' + l.event : l.type,
    el('b', null, means(l.values).toFixed(2)))));
}

/** The time below a place of the chart (0 to 1), live or past; null where there is none. */
function timeAt(part) {
  const width = $('chart').clientWidth || 800;
  const inner = Math.min(1, Math.max(0, (part * width - 34) / (width - 38)));
  if (past) return past.from + (past.to - past.from) * inner;
  if (!timeline || !timeline.times.length) return null;
  const { times } = timeline;
  const count = Math.min(timeline.kept, Math.max(60, Math.ceil(times.length / 60) * 60));
  return times[times.length - 1] - (1 - inner) * count * 1000;
}

// A range is dragged on the chart.
let dragged = null;
const partOf = (e) => {
  const box = $('chart').getBoundingClientRect();
  return (e.clientX - box.left) / box.width;
};
$('chart').addEventListener('pointerdown', (e) => { dragged = partOf(e); });
addEventListener('pointerup', (e) => {
  if (dragged === null) return;
  const ends = [dragged, partOf(e)].sort((a, b) => a - b);
  dragged = null;
  if (ends[1] - ends[0] < 0.01) return;
  const [from, to] = ends.map(timeAt);
  if (from !== null && to - from >= 1000) choose({ last: null, from: Math.floor(from), to: Math.ceil(to) });
});

// ----------------------------------------------------------------------------------------- the rest

const LASTS = [[0, 'Live'], [900, '15 min'], [3600, '1 h'], [21600, '6 h'], [86400, '24 h'], [604800, '7 d'], [1209600, '14 d']];
const BACKS = [[0, 'nothing'], [3600, 'the hour before'], [86400, 'the day before'], [604800, 'the week before']];

function drawRanges() {
  const { last, from, to } = chosen;
  const now = (seconds) => (seconds === 0 ? !isPast() : last === seconds);
  $('ranges').replaceChildren(...LASTS.map(([seconds, title]) => el('button', {
    type: 'button', 'aria-pressed': String(now(seconds)), 'data-last': String(seconds),
    onclick: () => (seconds ? choose({ last: seconds, from: null, to: null }) : goLive()),
  }, title)));
  if (from) { $('from').value = localTime(from); $('to').value = localTime(to); }
  const options = (id, list, value) => {
    if (document.activeElement === $(id)) return;
    const all = value && !list.some((o) => o[0] === value) ? [...list, [value, value]] : list;
    $(id).replaceChildren(...all.map(([key, title]) => el('option', { value: key, selected: key === (value || list[0][0]) ? '' : null }, title)));
  };
  const known = past ? past.filters : { users: [], applications: [], databases: [] };
  const any = (what, list) => [['', `any ${what}`], ...list.filter(Boolean).map((v) => [v, v])];
  options('user', any('user', known.users), chosen.user);
  options('application', any('application', known.applications), chosen.application);
  options('database', any('database', known.databases), chosen.database);
  options('back', BACKS.map(([s, t]) => [s ? String(s) : '', t]), chosen.back ? String(chosen.back) : '');
  $('only').hidden = !chosen.query;
  $('only').textContent = chosen.query ? `only statement ${chosen.query} ×` : '';
  $('exports').hidden = !past;
  for (const kind of ['csv', 'json']) $('export-' + kind).href = new URL(`/api/history.${kind}?${parameters()}`, location.origin);
}

const milliseconds = (ms) => span(ms / 1000);

function drawPastTables() {
  const compared = past.statements.some((s) => s.before);
  const columns = [
    { title: 'statement', of: (s) => s.query, kind: 'query' },
    { title: 'calls', of: (s) => short(s.calls), kind: 'number' },
    { title: 'time', of: (s) => milliseconds(s.ms), kind: 'number' },
    { title: 'each', of: (s) => milliseconds(s.mean_ms), kind: 'number' },
    { title: 'on CPU', of: (s) => milliseconds(s.busy_ms), kind: 'number wide' },
    { title: 'waited', of: (s) => milliseconds(s.waited_ms), kind: 'number wide' },
    { title: 'others waited', of: (s) => (s.caused_ms ? milliseconds(s.caused_ms) : ''), kind: 'number wide' },
    { title: 'log', of: (s) => (s.wal_bytes ? bytes(s.wal_bytes) : ''), kind: 'number wide' },
    { title: 'pages read', of: (s) => (s.read ? short(s.read) : ''), kind: 'number wide' },
  ];
  if (compared) {
    columns.splice(4, 0,
      { title: 'calls before', of: (s) => short(s.before.calls), kind: 'number' },
      { title: 'each before', of: (s) => milliseconds(s.before.mean_ms), kind: 'number' });
  }
  table('past-statements', columns, past.statements, 'no statement ran', (line, s) => {
    line.dataset.query = s.id;
    line.title = 'show only this statement';
    line.addEventListener('click', () => choose({ query: s.id }));
  });
  table('past-clients', [
    { title: 'user', of: (c) => c.user },
    { title: 'application', of: (c) => c.application || '–' },
    { title: 'database', of: (c) => c.database },
    { title: 'sessions', of: (c) => whole(c.sessions), kind: 'number' },
    { title: 'time', of: (c) => milliseconds(c.ms), kind: 'number' },
    { title: 'on CPU', of: (c) => milliseconds(c.busy_ms), kind: 'number' },
    { title: 'waited', of: (c) => milliseconds(c.waited_ms), kind: 'number' },
    { title: 'log', of: (c) => bytes(c.wal_bytes), kind: 'number wide' },
    { title: 'pages read', of: (c) => short(c.read), kind: 'number wide' },
  ], past.clients, 'nobody', (line, c) => {
    line.title = 'show only this application of this user';
    line.addEventListener('click', () => choose({ user: c.user, application: c.application }));
  });
  table('past-relations', [
    { title: 'table or index', of: (r) => (r.table ? `${r.name} on ${r.table}` : r.name) },
    { title: 'database', of: (r) => r.database, kind: 'wide' },
    { title: 'scans', of: (r) => short(r.scans), kind: 'number' },
    { title: 'rows read', of: (r) => short(r.rows), kind: 'number' },
    { title: 'changed', of: (r) => short(r.inserted + r.updated + r.deleted), kind: 'number' },
    { title: 'pages found', of: (r) => short(r.hit), kind: 'number wide' },
    { title: 'read', of: (r) => short(r.read), kind: 'number wide' },
    { title: 'waited for', of: (r) => (r.waited_ms ? milliseconds(r.waited_ms) : ''), kind: 'number' },
  ], past.relations, 'none was touched');
  $('past-plans').replaceChildren(...past.plans.map((p) => el('details', null,
    el('summary', null, `${clock(p.at)} ${p.was} → ${p.is}, ${milliseconds(p.mean_ms_before)} → ${milliseconds(p.mean_ms)} each: ${p.query}`),
    el('pre', null, p.before), el('pre', null, p.plan))));
  $('past-plans-none').hidden = past.plans.length > 0;
  $('past-events').replaceChildren(...past.events.slice(-100).reverse().map((e) => el('li', null, el('div', { class: 'line' },
    el('span', null, `${day(e.at)} ${clock(e.at)}`), el('b', null, e.kind), el('span', { class: 'what', title: e.text }, e.text)))));
}

function drawPast() {
  document.body.classList.toggle('past', isPast());
  drawRanges();
  if (!past) return;
  drawPastChart();
  drawFindings(past);
  drawPastTables();
  document.body.dataset.past = String(Number(document.body.dataset.past || 0) + 1);
}

let asked = 0;

/** Asks for the choice and draws it. A later choice wins over the answer of an earlier one. */
async function askAgain() {
  const number = ++asked;
  if (!isPast()) return goLive();
  $('chart').classList.add('late');
  try {
    const answer = await ask(`/api/history.json?${parameters()}`, 60000);
    if (number !== asked) return;
    past = answer;
    $('past-failed').hidden = true;
  } catch (error) {
    if (number !== asked) return;
    $('past-failed').hidden = false;
    $('past-failed').textContent = `the history can't be read: ${error.message}`;
  }
  $('chart').classList.remove('late');
  drawPast();
}

function goLive() {
  asked += 1;
  chosen = {};
  past = null;
  writeAddress();
  $('past-failed').hidden = true;
  drawPast();
  if (timeline) drawChart();
}

for (const name of ['user', 'application', 'database', 'back']) {
  $(name).addEventListener('change', () => {
    // A filter without a range is of the last quarter of an hour.
    const range = chosen.last || chosen.from ? {} : { last: 900 };
    choose({ ...range, [name]: $(name).value });
  });
}
$('only').addEventListener('click', () => choose({ query: null }));
for (const name of ['from', 'to']) {
  $(name).addEventListener('change', () => {
    const [from, to] = [Date.parse($('from').value), Date.parse($('to').value)];
    if (from < to) choose({ last: null, from, to });
  });
}
addEventListener('hashchange', () => { chosen = readAddress(); askAgain(); });
addEventListener('resize', () => past && drawPastChart());

chosen = readAddress();
// A filter alone is of the last quarter of an hour.
if (isPast() && !chosen.last && !chosen.from) chosen.last = 900;
drawPast();
if (isPast()) askAgain();
