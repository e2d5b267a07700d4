// The page: one step per value, with the numbers of its operands and its result.

const byId = id => document.getElementById(id);
const values = data.values, steps = data.steps;
let now = 0;
const shown = new Map();  // by value: the leading indices that its table shows

function make(tag, parent, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  if (parent) parent.appendChild(element);
  return element;
}

// What an op does, for readers who see it for the first time.
const meanings = {
  gather: 'Looks up rows of a table. For an embedding, each token id selects the row of numbers that stands for the token.',
  linear: 'Multiplies each row by a matrix of learned weights: every number of the result is the dot product of the row with one row of the weights.',
  matmul: 'Multiplies matrices: every number of the result is the dot product of a row of the left operand with a column of the right one.',
  contract: 'Multiplies and adds up over the labels that the result does not have.',
  view: 'Gives the same numbers, in the same order, another shape. Nothing is copied.',
  reshape: 'Gives the same numbers another shape.',
  contiguous: 'Copies the numbers so that they lie in memory in the order of their positions.',
  transpose: 'Swaps two dims. The numbers stay where they are in memory; only the order of reading changes.',
  permute: 'Reorders the dims. The numbers stay where they are in memory; only the order of reading changes.',
  unsqueeze: 'Adds a dim of size 1, so that the values can be combined with tensors of more dims.',
  squeeze: 'Removes a dim of size 1.',
  softmax: 'Turns each row into weights: exp of every number, divided by the sum of the row. The weights are positive and add up to 1.',
  masked_fill: 'Replaces the numbers where the mask is true. In attention, a very negative score gives a weight of 0 after the softmax.',
  attention: 'Scores every query against every key, turns each row of scores into weights, and mixes the values by these weights.',
  layer_norm: 'Moves and scales each row to mean 0 and variance 1, then applies a learned scale and offset.',
  rms_norm: 'Divides each row by its root mean square, then applies a learned scale.',
  rope: 'Rotates pairs of numbers by an angle that grows with the position, so that dot products depend on distances.',
  dropout: 'Sets random numbers to 0 during training and scales the others up.',
  cross_entropy: 'Compares the scores of each row with the right class: minus the log of its probability, averaged.',
  sum: 'Adds up numbers along dims.', mean: 'Averages numbers along dims.', max: 'Takes the largest number along dims.',
  add: 'Adds the numbers at the same positions.', sub: 'Subtracts the numbers at the same positions.',
  mul: 'Multiplies the numbers at the same positions.', div: 'Divides the numbers at the same positions.',
  cast: 'Converts each number to another type.', constant: 'A number that the program contains.',
  relu: 'Keeps positive numbers and replaces the others by 0.', gelu: 'A smooth version of relu.', silu: 'x times sigmoid(x).',
  input: 'A value that you give the graph.', parameter: 'Learned weights. This page uses given or random ones.',
  state: 'A value that is kept from run to run.',
};

const title = value => value.name || value.label;

// Colors a number: blue below zero, orange above, darker the larger it is.
function color(value, most) {
  if (typeof value === 'string') return '#f8d7da';
  const share = most > 0 ? Math.min(1, Math.abs(value) / most) : 0;
  return value < 0 ? `rgba(59,130,246,${0.55 * share})` : `rgba(245,158,11,${0.55 * share})`;
}

// Draws a tensor as a table of its last two dims. Buttons select the indices of the others.
function drawTensor(parent, id, className) {
  const value = values[id], box = make('div', parent, undefined, 'tensor ' + className);
  make('h3', box, title(value));
  make('div', box, value.dtype + value.shape, 'shape');
  if (!value.values) { make('p', box, `${countOf(value.sizes)} numbers, too many to show: choose smaller --dim`, 'hint'); return; }
  const rank = value.sizes.length, lead = value.sizes.slice(0, Math.max(0, rank - 2));
  const at = shown.get(id) ?? lead.map(() => 0);
  shown.set(id, at);
  lead.forEach((size, d) => {
    if (size < 2) return;
    const line = make('div', box, undefined, 'slices');
    make('span', line, `${value.dims[d]}:`);
    for (const i of range(size)) {
      const button = make('button', line, String(i), at[d] === i ? 'on' : '');
      button.onclick = () => choose(d, value.dims[d], size, i, id);
    }
  });
  const finite = value.values.filter(each => typeof each === 'number' && Math.abs(each) < 1e8);
  const most = finite.reduce((largest, each) => Math.max(largest, Math.abs(each)), 0);
  const rows = rank < 2 ? 1 : value.sizes[rank - 2], columns = rank < 1 ? 1 : value.sizes[rank - 1];
  const table = make('table', box);
  const head = make('tr', table);
  make('th', head, rank > 1 ? `${value.dims[rank - 2]} ↓  ${value.dims[rank - 1]} →` : rank ? `${value.dims[0]} →` : '', 'axis');
  for (const column of range(columns)) make('th', head, rank ? String(column) : '');
  for (const row of range(rows)) {
    const line = make('tr', table);
    make('th', line, rank > 1 ? String(row) : '');
    for (const column of range(columns)) {
      const flat = flatOf(value.sizes, rank > 1 ? [...at, row, column] : rank ? [column] : []);
      const cell = make('td', line, format(value.values[flat], value.dtype), typeof value.values[flat] === 'string' ? 'odd' : '');
      cell.style.background = `linear-gradient(${color(value.values[flat], most)}, ${color(value.values[flat], most)}), #fff`;
      cell.dataset.value = id;
      cell.dataset.flat = flat;
    }
  }
}

// Shows index `i` of a dim in all tables of this step that have a dim of this name and size.
function choose(d, name, size, i, id) {
  shown.get(id)[d] = i;
  for (const [other, at] of shown)
    at.forEach((_, e) => { if (values[other].dims[e] === name && values[other].sizes[e] === size) at[e] = i; });
  draw();
}

const signs = {matmul: '·', linear: '·', contract: '·', add: '+', sub: '−', mul: '×', div: '÷'};

function draw() {
  const step = steps[now], stage = byId('stage');
  stage.replaceChildren();
  byId('made').innerHTML = '&nbsp;';
  const scroll = stage.scrollTop;
  if (step.given) drawGiven(stage, step);
  else drawValue(stage, values[step.value]);
  stage.scrollTop = scroll;
  byId('count').textContent = `step ${now + 1} of ${steps.length}`;
  byId('back').disabled = byId('first').disabled = now === 0;
  byId('next').disabled = byId('last').disabled = now === steps.length - 1;
  document.querySelectorAll('nav a').forEach((link, i) => {
    link.className = i === now ? 'now' : i < now ? 'done' : '';
    if (i === now) link.scrollIntoView({block: 'nearest'});
  });
}

function drawGiven(stage, step) {
  make('h2', stage, step.given);
  make('p', stage, step.what, 'what');
  const flow = make('div', stage, undefined, 'flow');
  for (const id of step.values) drawTensor(flow, id, '');
}

function drawValue(stage, value) {
  const heading = make('h2', stage);
  make('span', heading, value.op, 'op');
  if (value.name) heading.append('  ' + value.name);
  make('div', stage, value.text + (value.loc ? '   ' + value.loc : ''), 'code');
  make('p', stage, meanings[value.op] ?? value.doc, 'what');
  make('p', stage, value.reason, 'reason');
  const flow = make('div', stage, undefined, 'flow');
  const operands = [...new Set(value.args)];
  operands.forEach((id, i) => {
    if (i > 0) make('span', flow, i === 1 && signs[value.op] || ',', 'sign');
    drawTensor(flow, id, '');
  });
  if (operands.length) make('span', flow, '→', 'sign');
  drawTensor(flow, value.id, 'result');
  const readers = value.readers.map(id => title(values[id]));
  if (readers.length) make('p', stage, 'read by ' + readers.join(', '), 'hint');
  if (value.outputs.length) make('p', stage, 'output ' + value.outputs.join(', '), 'hint');
}

// Marks the numbers that one number of the result is made of.
function mark(cell) {
  document.querySelectorAll('td.source, td.target').forEach(each => each.classList.remove('source', 'target'));
  byId('made').innerHTML = '&nbsp;';
  const step = steps[now];
  if (!cell || step.given || +cell.dataset.value !== step.value) return;
  const value = values[step.value], flat = +cell.dataset.flat;
  cell.classList.add('target');
  const sources = sourcesOf(value, values, flat);
  (sources ?? []).forEach((list, i) => {
    const wanted = new Set(list);
    document.querySelectorAll(`td[data-value="${value.args[i]}"]`).forEach(each => {
      if (wanted.has(+each.dataset.flat)) each.classList.add('source');
    });
  });
  const at = positionOf(value.sizes, flat);
  byId('made').textContent = `${title(value)}[${at}]   ${madeOf(value, values, flat)}`;
}

function go(to) {
  now = Math.max(0, Math.min(steps.length - 1, to));
  shown.clear();
  history.replaceState(null, '', '#' + (now + 1));
  byId('stage').scrollTop = 0;
  draw();
}

byId('title').textContent = '@' + data.name + ', step by step';
steps.forEach((step, i) => {
  const value = step.given ? null : values[step.value];
  const link = make('a', byId('steps'), step.given ?? `${value.op}${value.name ? '  ' + value.name : ''}`);
  make('small', link, value ? value.shape : `${step.values.length} value${step.values.length === 1 ? '' : 's'}`);
  link.onclick = () => go(i);
});
byId('back').onclick = () => go(now - 1);
byId('next').onclick = () => go(now + 1);
byId('first').onclick = () => go(0);
byId('last').onclick = () => go(steps.length - 1);
byId('stage').addEventListener('pointerover', event => mark(event.target.closest('td')));
window.addEventListener('keydown', event => {
  if (event.ctrlKey || event.altKey || event.metaKey) return;
  const to = {ArrowRight: now + 1, ArrowDown: now + 1, PageDown: now + 1, ' ': now + 1, ArrowLeft: now - 1, ArrowUp: now - 1,
              PageUp: now - 1, Home: 0, End: steps.length - 1}[event.key];
  if (to === undefined) return;
  event.preventDefault();
  go(to);
});
window.addEventListener('hashchange', () => go(+location.hash.slice(1) - 1 || 0));
go(+location.hash.slice(1) - 1 || 0);
