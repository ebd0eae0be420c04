// The dashboard: reads the stream of states, shows them, and asks the API on behalf of whoever looks.

const MINUTES = 3;
const SPAN = MINUTES * 60_000;
const MOST_RULES = 200;
const MOST_KEYS = 100;
// Two states that arrive together say nothing about a rate.
const SOONEST = 250;
// No line is drawn across a longer silence.
const LONGEST = 5_000;
// The service speaks once a second: after this it is taken for gone.
const SILENCE = 15_000;
const SVG = 'http://www.w3.org/2000/svg';
const NONE = '–';
const TOKEN = 'dashpot-token';

const $ = (id) => document.getElementById(id);

// ---- Words and numbers

const whole = new Intl.NumberFormat('en', { maximumFractionDigits: 0 });
const tenths = new Intl.NumberFormat('en', { minimumFractionDigits: 1, maximumFractionDigits: 1 });
const few = new Intl.NumberFormat('en', { maximumSignificantDigits: 3 });

const count = (n) => (Number.isFinite(n) ? whole.format(n) : NONE);
const percent = (part) => (Number.isFinite(part) ? `${whole.format(part * 100)} %` : NONE);

function rate(n) {
  if (!Number.isFinite(n)) return NONE;
  return n > 0 && n < 100 ? tenths.format(n) : whole.format(n);
}

function seconds(n) {
  if (!Number.isFinite(n)) return NONE;
  if (n < 120) return `${few.format(n)} s`;
  const [unit, each, rest] = n < 7200 ? ['min', 60, 's'] : ['h', 3600, 'min'];
  const small = Math.floor((n % each) / (each / 60));
  return `${Math.floor(n / each)} ${unit}${small ? ` ${small} ${rest}` : ''}`;
}

function clock(n) {
  if (!Number.isFinite(n)) return NONE;
  const two = (part) => String(Math.floor(part)).padStart(2, '0');
  const days = Math.floor(n / 86_400);
  const time = `${two((n % 86_400) / 3600)}:${two((n % 3600) / 60)}:${two(n % 60)}`;
  return days ? `${days} d ${time}` : time;
}

function bytes(n) {
  if (!Number.isFinite(n)) return NONE;
  const units = ['B', 'KiB', 'MiB', 'GiB'];
  let unit = 0;
  for (; n >= 1024 && unit < units.length - 1; unit += 1) n /= 1024;
  return `${unit ? few.format(n) : whole.format(n)} ${units[unit]}`;
}

const plural = (n, one, many) => `${count(n)} ${n === 1 ? one : many}`;

// ---- Elements

function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

function drawn(name, attributes = {}) {
  const made = document.createElementNS(SVG, name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  return made;
}

// The text node stays, so that neither a selection nor a screen reader loses its place.
function write(node, text) {
  const first = node.firstChild;
  if (first === null || first.nodeType !== Node.TEXT_NODE || first.nextSibling) {
    if (node.textContent !== text || first) node.textContent = text;
  } else if (first.data !== text) {
    first.data = text;
  }
}

function attribute(node, name, value) {
  if (node.getAttribute(name) !== value) node.setAttribute(name, value);
}

function show(node, visible) {
  if (node.hidden === visible) node.hidden = !visible;
}

function tell(node, text, wrong = false) {
  node.classList.toggle('wrong', wrong);
  write(node, text);
}

// Rows by their key: they are made once, and moved only if they have to be.
class Rows {
  constructor(body, make) {
    this.body = body;
    this.make = make;
    this.rows = new Map();
  }

  show(items, keyOf, { held = false } = {}) {
    const wanted = new Map(items.map((item) => [keyOf(item), item]));
    if (!held || this.rows.size > MOST_RULES) {
      for (const [key, row] of this.rows) {
        if (wanted.has(key)) continue;
        row.tr.remove();
        this.rows.delete(key);
      }
    }
    let place = this.body.firstChild;
    for (const [key, item] of wanted) {
      let row = this.rows.get(key);
      if (!row) {
        row = this.make(item);
        this.rows.set(key, row);
        this.body.insertBefore(row.tr, held ? null : place);
      } else if (!held) {
        if (row.tr === place) place = place.nextSibling;
        else this.body.insertBefore(row.tr, place);
      }
      row.update(item);
    }
  }
}

const number = (name, more = '') => element('td', { class: `n ${more}`.trim(), 'data-cell': name });

function writeNumber(cell, value, format = count) {
  write(cell, format(value));
  cell.classList.toggle('zero', !value);
}

// ---- Asking

function kept(value) {
  try {
    if (value === undefined) return sessionStorage.getItem(TOKEN) ?? '';
    if (value) sessionStorage.setItem(TOKEN, value);
    else sessionStorage.removeItem(TOKEN);
  } catch {
    // Without storage the token is known until the page is left.
  }
  return value ?? '';
}

let token = kept();

const headers = (more) => (token ? { ...more, Authorization: `Bearer ${token}` } : more);

class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

async function refused(response) {
  let problem = null;
  try {
    problem = await response.json();
  } catch {
    // It says nothing that we could read.
  }
  const detail = problem?.detail || problem?.title || `the answer is ${response.status}`;
  return new Refused(response.status, problem?.field ? `${problem.field}: ${detail}` : detail);
}

async function ask(path, body) {
  const options = body === undefined
    ? { headers: headers({ Accept: 'application/json' }) }
    : {
      method: 'POST',
      headers: headers({ Accept: 'application/json', 'Content-Type': 'application/json' }),
      body: JSON.stringify(body),
    };
  let response;
  try {
    response = await fetch(path, { ...options, cache: 'no-store' });
  } catch {
    throw new Error('The service does not answer.');
  }
  if (!response.ok) throw await refused(response);
  return response.json();
}

// A second press while the first is under way does nothing. The button is not disabled: it would lose the focus.
async function once(button, work) {
  if (button.getAttribute('aria-busy') === 'true') return;
  button.setAttribute('aria-busy', 'true');
  try {
    await work();
  } finally {
    button.removeAttribute('aria-busy');
  }
}

// ---- What is known

let state = null;
let connection = { on: false, text: 'Connecting…' };
let firstVersion = null;
let before = null;
let rates = null;
let points = [];

let listed = null;
let listedFor = '';
let says = new Map();
let listing = '';

function sums(rules) {
  const sum = { allowed: 0, denied: 0, degraded: 0 };
  for (const rule of rules) {
    sum.allowed += rule.allowed ?? 0;
    sum.denied += rule.denied ?? 0;
    sum.degraded += rule.degraded ?? 0;
  }
  return sum;
}

const now = () => performance.now();

function measure(next, at) {
  const known = new Map(next.rules.map((rule) => [rule.name, [rule.allowed ?? 0, rule.denied ?? 0]]));
  const sample = { at, uptime: next.uptime ?? 0, known };
  // It was started again: its counts began anew, and the difference means nothing.
  if (before && sample.uptime < before.uptime) {
    before = null;
    rates = null;
  }
  if (before === null) {
    before = sample;
    return;
  }
  const passed = at - before.at;
  if (passed < SOONEST) return;
  const byRule = new Map();
  let [allowed, denied] = [0, 0];
  for (const [name, [a, d]] of known) {
    // A rule that is new began at nothing; one that was dropped and came back may be behind.
    const [a0, d0] = before.known.get(name) ?? [0, 0];
    const each = [Math.max(0, a - a0) * 1000 / passed, Math.max(0, d - d0) * 1000 / passed];
    byRule.set(name, each);
    allowed += each[0];
    denied += each[1];
  }
  rates = { allowed, denied, byRule };
  points.push({ at, allowed, denied, apart: passed > LONGEST });
  points = points.filter((point) => at - point.at <= SPAN + 2000);
  before = sample;
}

// A state that was asked for with another token is no longer of interest.
function take(next, asked) {
  if (asked !== token) return;
  if (!Array.isArray(next.rules)) next.rules = [];
  firstVersion ??= next.version;
  measure(next, now());
  const admitted = next.admin && !state?.admin;
  const dropped = state?.admin && !next.admin;
  state = next;
  if (token && !next.admin) {
    token = kept('');
    tell($('token-result'), next.needs_token ? 'The token was not accepted.' : '', true);
  } else if (admitted) {
    tell($('token-result'), '');
  }
  // Only who may see the rules is told them.
  if (dropped) {
    listed = null;
    says = new Map();
    listing = '';
  }
  const wanted = `${next.generation} ${next.admin} ${token.length}`;
  if (next.admin && wanted !== listedFor) list(wanted);
  if (!next.admin) listedFor = '';
  render();
}

async function list(wanted) {
  listedFor = wanted;
  try {
    const answer = await ask('v1/rules');
    listed = answer;
    says = new Map((answer.rules ?? []).map((rule) => [rule.name, rule.says ?? {}]));
    listing = '';
  } catch (error) {
    listing = `What the rules say is not known: ${error.message}`;
    // The next state tries again, unless another list was asked for meanwhile.
    setTimeout(() => { if (listedFor === wanted) listedFor = ''; }, 5000);
  }
  render();
}

// ---- The stream

let stream = null;
let wake = null;

const pause = (time) => new Promise((resolve) => {
  const timer = setTimeout(resolve, time);
  wake = () => {
    clearTimeout(timer);
    resolve();
  };
});

async function* events(body) {
  const reader = body.pipeThrough(new TextDecoderStream()).getReader();
  let text = '';
  try {
    for (;;) {
      const { value, done } = await reader.read();
      if (done) return;
      text += value.replaceAll('\r', '');
      for (let end = text.indexOf('\n\n'); end >= 0; end = text.indexOf('\n\n')) {
        const event = { name: 'message', data: [] };
        for (const line of text.slice(0, end).split('\n')) {
          if (line.startsWith('event:')) event.name = line.slice(6).trim();
          if (line.startsWith('data:')) event.data.push(line.slice(5));
        }
        text = text.slice(end + 2);
        if (event.data.length) yield { name: event.name, data: event.data.join('\n') };
      }
    }
  } finally {
    reader.cancel().catch(() => {});
  }
}

async function listen() {
  stream = new AbortController();
  const { signal } = stream;
  const asked = token;
  let watch = null;
  const alive = () => {
    clearTimeout(watch);
    const held = stream;
    watch = setTimeout(() => held.abort(), SILENCE);
  };
  try {
    alive();
    const options = { headers: headers({ Accept: 'text/event-stream' }), cache: 'no-store', signal };
    const response = await fetch('v1/events', options);
    if (!response.ok) throw await refused(response);
    for await (const event of events(response.body)) {
      alive();
      if (event.name !== 'state') continue;
      connection = { on: true, text: 'Connected' };
      take(JSON.parse(event.data), asked);
    }
  } finally {
    clearTimeout(watch);
    stream.abort();
  }
}

async function follow() {
  let wait = 1000;
  for (;;) {
    const asked = token;
    let detail = '';
    try {
      await listen();
    } catch (error) {
      if (error instanceof Refused) {
        detail = `: ${error.message}`;
        if (error.status === 401) unauthorized(asked, error.message);
      }
    }
    if (connection.on) wait = 1000;
    const next = { on: false, text: `Not connected, reconnecting…${detail}` };
    // Whoever entered a token waits for the answer, not for the clock.
    if (asked !== token) {
      wait = 1000;
      if (!detail) next.text = 'Connecting…';
    }
    connection = next;
    rates = null;
    render();
    if (asked === token) await pause(wait);
    wait = Math.min(wait * 2, 10_000);
  }
}

function unauthorized(asked, detail) {
  if (asked && asked === token) {
    token = kept('');
    tell($('token-result'), `The token was not accepted: ${detail}`, true);
  }
  state = { ...(state ?? { rules: [] }), admin: false, needs_token: true, top: null };
}

function again() {
  stream?.abort();
  wake?.();
}

$('token-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const entered = $('token').value.trim();
  // Others cannot be in a header.
  if (!/^[\x21-\x7e]+$/.test(entered)) {
    tell($('token-result'), 'A token has letters, digits and signs of ASCII, and no spaces.', true);
    return;
  }
  $('token').value = '';
  tell($('token-result'), '');
  token = kept(entered);
  again();
});

$('forget-token').addEventListener('click', () => {
  token = kept('');
  tell($('token-result'), 'The token is forgotten.');
  // At once, not when the next state says so: the focus goes to the form.
  if (state?.needs_token) state = { ...state, admin: false, top: null };
  render();
  again();
});

// ---- Header

function renderHeader() {
  const status = $('status');
  attribute(status, 'data-state', connection.on ? 'on' : 'wait');
  write(status, connection.text);
  if (!state) return;
  write($('version'), state.version ?? '');
  write($('uptime'), clock(state.uptime));
  write($('connections'), count(state.connections));

  const [form, forget] = [$('token-form'), $('forget-token')];
  const focused = document.activeElement;
  const [needed, admitted] = [Boolean(state.needs_token && !state.admin), Boolean(token && state.admin)];
  const left = (form.contains(focused) && !needed) || (focused === forget && !admitted);
  show(form, needed);
  show(forget, admitted);
  // What is hidden loses the focus; it goes to what took its place.
  if (left) (needed ? $('token') : admitted ? forget : $('main')).focus();

  const alerts = [];
  if (state.health?.up === false) {
    alerts.push('The store is DOWN. Rules decide as their on_store_error says.');
  }
  if (state.stopping) alerts.push('The service is about to stop.');
  if (firstVersion && state.version !== firstVersion) {
    alerts.push('The service is another version than this page: load the page again.');
  }
  const alert = $('alert');
  show(alert, alerts.length > 0);
  write(alert, alerts.join(' '));

  const why = state.needs_token
    ? 'For administrators: enter the admin token above.'
    : 'For administrators: open this page on the machine of the service, or start it with an admin token.';
  for (const note of document.querySelectorAll('.admin-only')) {
    write(note, state.admin ? '' : why);
    show(note, !state.admin);
  }
  for (const fields of document.querySelectorAll('main fieldset')) {
    if (fields.disabled !== !state.admin) fields.disabled = !state.admin;
  }
}

// ---- Totals and the chart

const chart = $('chart');
const HEIGHT = 170;
const [LEFT, RIGHT, TOP, BOTTOM] = [44, 8, 8, 20];
let width = 0;

const parts = {
  marks: drawn('g'),
  under: drawn('path', { class: 'under' }),
  allowed: drawn('path', { class: 'allowed' }),
  denied: drawn('path', { class: 'denied' }),
};
chart.append(parts.marks, parts.under, parts.allowed, parts.denied);
let marked = '';

// 1, 2 or 5 with zeros: what is easy to read on an axis. At most four steps.
function stepFor(most) {
  const rough = Math.max(most, 1) / 4;
  const ten = 10 ** Math.floor(Math.log10(rough));
  return [1, 2, 5, 10].map((n) => n * ten).find((step) => step >= rough);
}

function drawMarks(step, steps, y) {
  const key = `${width} ${step} ${steps}`;
  if (key === marked) return;
  marked = key;
  const made = [];
  const text = (x, at, anchor, words) => {
    const label = drawn('text', { x, y: at, 'text-anchor': anchor });
    label.textContent = words;
    made.push(label);
  };
  const compact = new Intl.NumberFormat('en', { notation: 'compact', maximumSignificantDigits: 3 });
  for (let n = 0; n <= steps; n += 1) {
    const at = Math.round(y(n * step)) + 0.5;
    made.push(drawn('path', { class: 'grid', d: `M${LEFT} ${at}H${width - RIGHT}` }));
    text(LEFT - 6, at + 3.5, 'end', compact.format(n * step));
  }
  for (let minute = MINUTES; minute >= 0; minute -= 1) {
    const x = LEFT + (width - LEFT - RIGHT) * (1 - minute / MINUTES);
    const anchor = minute === MINUTES ? 'start' : minute ? 'middle' : 'end';
    text(x, HEIGHT - 4, anchor, minute ? `−${minute} min` : 'now');
  }
  parts.marks.replaceChildren(...made);
}

function renderTotals() {
  const sum = state ? sums(state.rules) : {};
  write($('allowed-total'), count(sum.allowed));
  write($('denied-total'), count(sum.denied));
  write($('allowed-rate'), rate(rates?.allowed));
  write($('denied-rate'), rate(rates?.denied));

  attribute(chart, 'aria-label', rates
    ? `The last ${MINUTES} minutes. Now ${rate(rates.allowed)} allowed and ${rate(rates.denied)} denied per second.`
    : 'Allowed and denied per second. No values now.');
  if (!width) return;
  const end = now();
  const most = points.reduce((high, point) => Math.max(high, point.allowed, point.denied), 0);
  const step = stepFor(most);
  const steps = Math.max(2, Math.ceil(most / step));
  const high = HEIGHT - TOP - BOTTOM;
  const x = (at) => (LEFT + (width - LEFT - RIGHT) * Math.max(0, 1 - (end - at) / SPAN)).toFixed(1);
  const y = (value) => TOP + high * (1 - value / (step * steps));
  drawMarks(step, steps, y);

  const paths = { allowed: '', denied: '', under: '' };
  const floor = y(0).toFixed(1);
  let last = null;
  for (const point of points) {
    const at = x(point.at);
    const starts = last === null || point.apart;
    if (starts && last !== null) paths.under += `V${floor}Z`;
    paths.under += starts ? `M${at} ${floor}L` : 'L';
    paths.under += `${at} ${y(point.allowed).toFixed(1)}`;
    paths.allowed += `${starts ? 'M' : 'L'}${at} ${y(point.allowed).toFixed(1)}`;
    paths.denied += `${starts ? 'M' : 'L'}${at} ${y(point.denied).toFixed(1)}`;
    last = point;
  }
  if (last !== null) paths.under += `V${floor}Z`;
  for (const [name, path] of Object.entries(paths)) attribute(parts[name], 'd', path);
}

new ResizeObserver(([entry]) => {
  width = Math.round(entry.contentRect.width);
  attribute(chart, 'viewBox', `0 0 ${width} ${HEIGHT}`);
  render();
}).observe(chart);

// ---- Rules

let shown = new Set();
let chosenAt = -Infinity;
let chosenOf = '';

// Those that were asked most; chosen again only now and then, so that rows do not come and go.
function busiest(rules) {
  if (rules.length <= MOST_RULES) return rules;
  const of = `${state.generation} ${rules.length}`;
  if (of !== chosenOf || now() - chosenAt > 10_000) {
    const asked = (rule) => (rule.allowed ?? 0) + (rule.denied ?? 0) + (rule.shadow_denied ?? 0);
    const most = [...rules].sort((a, b) => asked(b) - asked(a)).slice(0, MOST_RULES);
    shown = new Set(most.map((rule) => rule.name));
    [chosenAt, chosenOf] = [now(), of];
  }
  return rules.filter((rule) => shown.has(rule.name));
}

const OWN = new Map([
  ['(ad-hoc)', 'Limits made up on the spot'],
  ['(throttle)', 'Limits that come with CL.THROTTLE'],
  ['(override)', 'Limits that come with a request of Envoy’s'],
]);

function words(name) {
  const said = says.get(name);
  if (!said) return OWN.get(name) ?? NONE;
  const by = said.by && (said.by.startsWith('one ') ? said.by : `by ${said.by}`);
  const shadow = said.enforced && said.enforced !== 'always' ? `enforced ${said.enforced}` : '';
  return [said.match, by, said.limits, shadow].filter(Boolean).join(' · ') || NONE;
}

function ruleRow({ name }) {
  const cells = {
    says: element('td', { 'data-cell': 'says' }),
    allowedRate: number('allowed_rate'),
    deniedRate: number('denied_rate'),
    share: number('share'),
    allowed: number('allowed'),
    denied: number('denied'),
    near: number('near_limit'),
    shadow: number('shadow_denied'),
    degraded: number('degraded'),
    factor: number('factor', 'factor'),
    capacity: number('capacity', 'capacity'),
  };
  const bar = drawn('svg', {
    class: 'share', viewBox: '0 0 100 1', preserveAspectRatio: 'none', 'aria-hidden': 'true',
  });
  const part = drawn('rect', { class: 'part', width: '0', height: '1' });
  bar.append(drawn('rect', { class: 'all', width: '100', height: '1' }), part);
  const share = element('span');
  cells.share.append(bar, share);
  const head = element('th', { scope: 'row', 'data-cell': 'rule' }, name);
  const tr = element('tr', { 'data-rule': name }, head, ...Object.values(cells));
  const update = ({ rule, each, adaptive, capacity }) => {
    write(cells.says, words(name));
    writeNumber(cells.allowedRate, each?.[0], rate);
    writeNumber(cells.deniedRate, each?.[1], rate);
    writeNumber(cells.allowed, rule.allowed);
    writeNumber(cells.denied, rule.denied);
    writeNumber(cells.near, rule.near_limit);
    writeNumber(cells.shadow, rule.shadow_denied);
    writeNumber(cells.degraded, rule.degraded);
    const all = (rule.allowed ?? 0) + (rule.denied ?? 0);
    const denied = all ? (rule.denied ?? 0) / all : 0;
    attribute(part, 'width', (denied * 100).toFixed(1));
    write(share, all ? `${tenths.format(denied * 100)} %` : NONE);
    cells.share.classList.toggle('zero', !denied);
    const stress = ['cpu', 'errors', 'slow'].filter((what) => Number.isFinite(adaptive?.[what]));
    const why = stress.map((what) => `${what} ${percent(adaptive[what])}`).join(', ');
    write(cells.factor, adaptive ? `${percent(adaptive.factor)}${why ? ` (${why})` : ''}` : '');
    const waiting = capacity?.waiting ? ` (${count(capacity.waiting)} waiting)` : '';
    write(cells.capacity, capacity ? `${count(capacity.in_flight)} of ${count(capacity.limit)}${waiting}` : '');
  };
  return { tr, update };
}

const ruleRows = new Rows($('rules').tBodies[0], ruleRow);
let advised = null;

function renderRules() {
  if (!state) return;
  const byName = (list) => new Map((list ?? []).map((entry) => [entry.rule, entry]));
  const [adaptive, capacity] = [byName(state.health?.adaptive), byName(state.health?.capacity)];
  const rules = busiest(state.rules);
  const items = rules.map((rule) => ({
    name: rule.name,
    rule,
    each: rates?.byRule.get(rule.name),
    adaptive: adaptive.get(rule.name),
    capacity: capacity.get(rule.name),
  }));
  ruleRows.show(items, (item) => item.name);
  $('rules').classList.toggle('no-factor', adaptive.size === 0);
  $('rules').classList.toggle('no-capacity', capacity.size === 0);

  show($('rules-scroll'), rules.length > 0);
  show($('no-rules'), state.rules.every((rule) => OWN.has(rule.name)));
  const missing = state.rules.length - rules.length;
  show($('rules-more'), missing > 0);
  write($('rules-more'), missing > 0
    ? `The ${count(rules.length)} busiest are shown; ${plural(missing, 'other is', 'others are')} not.`
    : '');

  const note = [listed?.file, `generation ${count(state.generation)}`];
  if (state.reloads) note.push(plural(state.reloads, 'reload', 'reloads'));
  if (state.failed_reloads) note.push(`${plural(state.failed_reloads, 'reload', 'reloads')} failed: see the log`);
  if (listing) note.push(listing);
  write($('rules-note'), note.filter(Boolean).join(' · '));

  const advice = state.admin ? listed?.advice ?? [] : [];
  if (advice !== advised && advice.join('\n') !== advised?.join('\n')) {
    advised = advice;
    $('advice').querySelector('ul').replaceChildren(...advice.map((line) => element('li', {}, line)));
    show($('advice'), advice.length > 0);
  }
}

// ---- Keys

const ACTIONS = {
  peek: { label: 'Peek', done: 'Looked at' },
  reset: { label: 'Reset', done: 'Forgot what was counted of' },
  block: { label: 'Block 10 min', done: 'Blocked for 10 min:' },
  unblock: { label: 'Unblock', done: 'Unblocked' },
};

function standing(policy) {
  const text = [`${policy.policy}: ${count(policy.remaining)} of ${count(policy.limit)} left`];
  if (policy.outcome === 'deny') {
    text.push(Number.isFinite(policy.retry_after)
      ? `denied for ${seconds(policy.retry_after)} more`
      : 'denied, and no wait would do');
  }
  if (policy.reset_after) text.push(`all of it back in ${seconds(policy.reset_after)}`);
  return `${text.join(', ')}.`;
}

async function act(button, action, who, body) {
  const result = $('key-result');
  await once(button, async () => {
    // Emptied first, so that the same words are announced again.
    tell(result, '');
    try {
      const answer = await ask(`v1/keys/${action}`, action === 'block' ? { ...body, for: '10min' } : body);
      const after = `Now it would be ${answer.outcome === 'deny' ? 'denied' : 'allowed'}.`;
      const text = [`${ACTIONS[action].done} ${who}.`, after, ...(answer.policies ?? []).map(standing)];
      if (answer.degraded) text.push('The store did not answer: this is decided without it.');
      tell(result, text.join(' '));
    } catch (error) {
      tell(result, `${ACTIONS[action].label}, ${who}: ${error.message}`, true);
    }
  });
}

const keyText = (row) => {
  const text = (row.key ?? []).join(' · ');
  return text || row.id || '(empty)';
};

function topRow(row) {
  const denied = number('denied');
  const where = row.rule === null || row.rule === undefined ? 'made up on the spot' : row.rule;
  const who = `${keyText(row)} in ${where}`;
  const buttons = Object.entries(ACTIONS).map(([action, { label }]) => {
    const button = element('button', { type: 'button', 'data-action': action, 'aria-label': `${label}: ${who}` }, label);
    button.addEventListener('click', () => {
      if (row.rule !== null && row.rule !== undefined) {
        act(button, action, who, { rule: row.rule, id: row.id });
        return;
      }
      // Its limit is known to those who ask only.
      $('key').value = row.id ?? '';
      $('limit').focus();
      tell($('key-result'), `Write the limit that ${keyText(row)} is asked about with, then choose ${label}.`);
    });
    return button;
  });
  const tr = element('tr', { 'data-id': row.id ?? '' },
    element('th', { scope: 'row', 'data-cell': 'key' }, keyText(row)),
    element('td', { 'data-cell': 'rule' }, where),
    denied,
    element('td', {}, element('div', { class: 'buttons' }, ...buttons)),
    element('td', { 'data-cell': 'log' }, row.log || NONE));
  const update = (next) => {
    // A sketch may count somebody too high; then it says by how much at most.
    write(denied, next.error ? `≤ ${count(next.denied)}` : count(next.denied));
  };
  return { tr, update };
}

const topRows = new Rows($('top').tBodies[0], topRow);

function renderTop() {
  if (!state) return;
  const top = (state.top ?? []).slice(0, MOST_KEYS);
  const table = $('top');
  // Rows do not move away under a finger or the focus.
  const held = Boolean(state.admin) && (table.tBodies[0].matches(':hover') || table.contains(document.activeElement));
  topRows.show(top, (row) => `${row.rule ?? ''}\n${row.id}`, { held });
  show($('top-scroll'), topRows.rows.size > 0);
  show($('no-top'), Boolean(state.admin) && topRows.rows.size === 0);
}

$('key-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const button = event.submitter ?? event.target.querySelector('[data-action="peek"]');
  const [key, limit, algorithm] = [$('key').value, $('limit').value.trim(), $('algorithm').value];
  act(button, button.dataset.action, key, algorithm ? { key, limit, algorithm } : { key, limit });
});

// ---- Store

function upness(badge, up) {
  badge.classList.toggle('down', !up);
  write(badge, up ? 'up' : '✕ DOWN');
}

function serverRow({ address }) {
  const badge = element('strong', { class: 'badge' });
  const reason = element('span', { class: 'muted' });
  const cells = ['down_seconds', 'outages', 'late', 'failed', 'refused'].map((name) => number(name));
  const tr = element('tr', { 'data-server': address },
    element('th', { scope: 'row' }, address), element('td', { 'data-cell': 'up' }, badge, reason), ...cells);
  const update = (server) => {
    upness(badge, server.up !== false);
    write(reason, server.up === false ? server.reason ?? '' : '');
    for (const cell of cells) {
      const name = cell.dataset.cell;
      writeNumber(cell, server[name], name === 'down_seconds' ? seconds : count);
    }
  };
  return { tr, update };
}

const serverRows = new Rows($('servers').tBodies[0], serverRow);

function renderStore() {
  const health = state?.health;
  if (!health) return;
  const redis = health.store === 'redis';
  write($('store-kind'), redis ? 'Redis' : health.store === 'memory' ? 'In memory' : health.store ?? NONE);
  show($('store-up'), true);
  upness($('store-up'), health.up !== false);
  write($('degraded-total'), count(sums(state.rules).degraded));
  for (const item of document.querySelectorAll('#store .redis')) show(item, redis);
  write($('instances'), count(health.instances));
  write($('leased'), count(health.leased_keys));
  write($('reservations'), count(health.reservations));

  const servers = health.servers ?? [];
  serverRows.show(servers, (server) => server.address);
  show($('servers-scroll'), servers.length > 0);

  const memory = health.memory;
  show($('memory'), Boolean(memory));
  if (!memory) return;
  const meter = $('keys-meter');
  const max = memory.max_keys || 1;
  if (meter.max !== max) {
    meter.max = max;
    [meter.low, meter.high, meter.optimum] = [max * 0.7, max * 0.9, 0];
  }
  if (meter.value !== memory.keys) meter.value = memory.keys ?? 0;
  write($('keys-text'), `${count(memory.keys)} of ${count(memory.max_keys)}`);
  write($('memory-bytes'), bytes(memory.bytes));
  write($('memory-reclaimed'), count(memory.reclaimed));
  write($('memory-overflowed'), count(memory.overflowed));
}

// ---- Explain

// Names may come several times: then their values are a list.
function readHeaders(text) {
  const found = Object.create(null);
  for (const [at, raw] of text.split('\n').entries()) {
    const line = raw.trim();
    if (!line) continue;
    const colon = line.indexOf(':');
    if (colon < 1) throw new Error(`Headers, line ${at + 1}: write it as name: value.`);
    const [name, value] = [line.slice(0, colon).trim().toLowerCase(), line.slice(colon + 1).trim()];
    found[name] = name in found ? [found[name], value].flat() : value;
  }
  return found;
}

$('explain-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const button = event.submitter ?? event.target.querySelector('button');
  const result = $('explain-result');
  once(button, async () => {
    try {
      const request = { method: $('explain-method').value, path: $('explain-path').value.trim() };
      const ip = $('explain-ip').value.trim();
      if (ip) request.ip = ip;
      request.headers = readHeaders($('explain-headers').value);
      const answer = await ask('v1/rules/explain', { request });
      tell(result, answer.text?.trimEnd() || 'Nothing is to be said about it.');
    } catch (error) {
      tell(result, error.message, true);
    }
  });
});

// ---- Playground

const playKind = $('play-kind');
const playTraffic = $('play-traffic');

playKind.addEventListener('change', () => {
  if (playKind.value) playTraffic.value = playKind.value;
});

// The kind follows what is written, by its first word.
playTraffic.addEventListener('input', () => {
  const [word] = playTraffic.value.trim().split(/\s/);
  const fits = [...playKind.options].find((option) => option.value && option.value.split(' ')[0] === word);
  if (fits) fits.selected = true;
  else playKind.value = '';
});

function runRow(run) {
  const over = Number.isFinite(run.of) && run.worst_window > run.of;
  const worst = number('worst_window', over ? 'over' : '');
  write(worst, `${count(run.worst_window)} of ${count(run.of)}${over ? ' ▲ over' : ''}`);
  const cell = (name, text) => {
    const made = number(name);
    write(made, text);
    return made;
  };
  return element('tr', { 'data-algorithm': run.algorithm, 'data-limit': run.limit },
    element('th', { scope: 'row', 'data-cell': 'algorithm' }, run.algorithm ?? NONE),
    element('td', { 'data-cell': 'limit' }, run.limit ?? NONE),
    cell('asked', count(run.asked)),
    cell('admitted', count(run.admitted)),
    cell('denied', count(run.denied)),
    worst,
    cell('p99_delay', seconds(run.p99_delay)),
    cell('callers', `${count(run.callers_denied)} of ${count(run.callers)}`));
}

function showPlot(text) {
  const plot = $('play-plot');
  plot.replaceChildren();
  if (text) {
    const root = new DOMParser().parseFromString(text, 'image/svg+xml').documentElement;
    if (root.namespaceURI === SVG && root.localName === 'svg') {
      const picture = document.importNode(root, true);
      picture.setAttribute('role', 'img');
      plot.append(picture);
    }
  }
  show(plot, plot.firstChild !== null);
}

function verdict(runs) {
  const over = runs.filter((run) => run.worst_window > run.of);
  const ran = `${plural(runs.length, 'run', 'runs')} done.`;
  if (over.length === 0) return `${ran} None let more through in one window than the limit.`;
  const each = over.map((run) => `${run.algorithm} (${count(run.worst_window)} of ${count(run.of)})`);
  return `${ran} More than the limit went through in one window: ${each.join(', ')}.`;
}

$('play-form').addEventListener('submit', (event) => {
  event.preventDefault();
  const result = $('play-result');
  const boxes = [...event.target.querySelectorAll('[name=algorithm]')];
  const chosen = boxes.filter((box) => box.checked).map((box) => box.value);
  if (chosen.length === 0) {
    tell(result, 'Choose at least one algorithm.', true);
    boxes[0].focus();
    return;
  }
  once($('play-run'), async () => {
    tell(result, 'Running…');
    try {
      const answer = await ask('v1/simulate', {
        traffic: [playTraffic.value.trim()],
        limits: [$('play-limit').value.trim()],
        algorithms: chosen.length === boxes.length ? ['all'] : chosen,
        for: $('play-for').value.trim(),
        queue: null,
        seed: 1,
      });
      const runs = answer.runs ?? [];
      $('play-table').tBodies[0].replaceChildren(...runs.map(runRow));
      show($('play-scroll'), runs.length > 0);
      showPlot(answer.svg);
      tell(result, verdict(runs));
    } catch (error) {
      tell(result, error.message, true);
    }
  });
});

// ---- All of it

function render() {
  // Nobody looks. Counting goes on, and what was missed is drawn when somebody does.
  if (document.hidden) return;
  renderHeader();
  renderTotals();
  renderRules();
  renderTop();
  renderStore();
}

document.addEventListener('visibilitychange', render);
// The page may be kept while one goes elsewhere: its stream is not.
window.addEventListener('pageshow', (event) => { if (event.persisted) again(); });

follow();
