// The page: panning, zooming, opening modules, search, details.

const model = new Model(graph);
const canvas = document.getElementById('canvas'), scene = document.getElementById('scene');
const details = document.getElementById('details'), found = document.getElementById('found');
const view = {x: 0, y: 0, zoom: 1};
let size = {w: 1, h: 1}, selected = null, hits = [], hit = -1;
const items = new Map();

const defs = svg('defs', {}, canvas);
const arrow = svg('marker', {id: 'arrow', viewBox: '0 0 8 8', refX: 7, refY: 4, markerWidth: 7, markerHeight: 7,
                             orient: 'auto-start-reverse'}, defs);
svg('path', {d: 'M0,0 L8,4 L0,8 z', fill: 'context-stroke'}, arrow);

const applyView = () => scene.setAttribute('transform', `translate(${view.x},${view.y}) scale(${view.zoom})`);

function fit(readable) {
  const box = canvas.getBoundingClientRect();
  view.zoom = Math.min(1.2, (box.width - 20) / size.w, (box.height - 20) / size.h);
  if (readable) view.zoom = Math.max(view.zoom, Math.min(0.8, (box.width - 20) / size.w));
  view.x = (box.width - size.w * view.zoom) / 2;
  view.y = Math.max(10, (box.height - size.h * view.zoom) / 2);
  applyView();
}

function elementOf(item) { return scene.querySelector(`[data-key="${item.key}"]`); }

function centre(item) {
  const box = elementOf(model.visible(item)).getBBox(), at = elementOf(model.visible(item)).getCTM();
  const frame = canvas.getBoundingClientRect();
  const x = at.a * (box.x + box.width / 2) + at.e, y = at.d * (box.y + box.height / 2) + at.f;
  view.x += frame.width / 2 - x;
  view.y += frame.height / 2 - y;
  applyView();
}

function redraw() {
  size = drawModel(model, scene);
  mark();
}

// Redraws and keeps `item` at its position on the screen.
function redrawAround(item) {
  const place = () => {
    const element = elementOf(item);
    const box = element.getBBox(), at = element.getCTM();
    return [at.a * box.x + at.e, at.d * box.y + at.f];
  };
  const [x0, y0] = place();
  redraw();
  const [x1, y1] = place();
  view.x += x0 - x1;
  view.y += y0 - y1;
  applyView();
}

function mark() {
  for (const element of scene.querySelectorAll('.selected, .hit, .near')) element.classList.remove('selected', 'hit', 'near');
  for (const item of hits) elementOf(model.visible(item))?.classList.add('hit');
  if (!selected) return;
  const shown = model.visible(selected);
  elementOf(shown)?.classList.add('selected');
  for (const edge of scene.querySelectorAll('.edge'))
    if (edge.dataset.from === shown.key || edge.dataset.to === shown.key ||
        selected.node && +edge.dataset.value === selected.node.id) edge.classList.add('near');
}

// ---- details

function element(tag, text, parent, className) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;
  if (className) made.className = className;
  if (parent) parent.appendChild(made);
  return made;
}

function link(id, parent) {
  const node = graph.nodes[id];
  const line = element('div', undefined, parent);
  const anchor = element('a', node.label + (node.name && node.kind !== 'argument' ? ' ' + node.name : ''), line, 'code');
  element('span', `  ${node.op}  ${node.type}`, line, 'hint');
  anchor.onclick = () => select(id);
}

function showNode(id) {
  const node = graph.nodes[id];
  details.replaceChildren();
  element('h2', node.op + (node.name ? '  ' + node.name : ''), details);
  element('p', node.text, details, 'code');
  element('p', node.reason, details);
  const list = element('dl', undefined, details);
  const row = (name, text) => { if (text) { element('dt', name, list); element('dd', text, list); } };
  row('type', node.type);
  row('strides', node.strides);
  row('line', (node.gradient ? 'gradient of ' : '') + (node.loc || ''));
  row('module', node.scope);
  row('op', node.doc);
  if (graph.regions) row('region', regionTitle(node));
  if (node.body) {
    element('h2', 'each iteration', details);
    element('pre', node.body, details);
  }
  const references = (title, ids) => {
    if (!ids.length) return;
    element('h2', title, details);
    ids.forEach(other => link(other, details));
  };
  references('operands', node.args);
  references('read by', [...new Set(model.users[id])]);
}

function showGraph() {
  details.replaceChildren();
  element('p', 'Click a value for its shape and source line, a module to open or close it. Drag to move, scroll to zoom, ' +
          '/ to search.', details, 'hint');
  for (const kind of ['input', 'parameter', 'state']) {
    const list = graph.nodes.filter(node => node.op === kind);
    if (!list.length) continue;
    const section = element('details', undefined, details);
    section.open = list.length <= 12;
    element('summary', `${list.length} ${kind}${list.length > 1 ? 's' : ''}`, section);
    list.forEach(node => link(node.id, section));
  }
  if (graph.outputs.length) element('h2', 'outputs', details);
  for (const output of graph.outputs) {
    const line = element('div', output.name + ': ', details);
    link(output.value, line);
  }
  if (graph.updates.length) element('h2', 'updates in place', details);
  if (graph.updates.length > 12) element('p', `${graph.updates.length} parameters and states`, details);
  else for (const update of graph.updates) link(update.state, details);
  if (graph.checks.length) element('h2', 'checked at run time', details);
  for (const check of graph.checks) element('p', check, details, 'code');
}

// Selects a value, opens the groups that hide it and centers it. For a parameter, selects its first reader.
function select(id) {
  showNode(id);
  const inline = !model.leaf.has(id);
  const item = model.leaf.get(inline ? model.users[id].find(user => model.leaf.has(user)) : id);
  if (!item) return;
  selected = item;
  model.reveal(item);
  redraw();
  centre(item);
}

// ---- search

function search(text) {
  const words = text.toLowerCase().split(/\s+/).filter(Boolean);
  hits = [];
  hit = -1;
  if (words.length) {
    for (const node of graph.nodes) {
      const all = [node.label, node.op, node.name, node.type, node.loc, node.scope].join(' ').toLowerCase();
      if (!words.every(word => all.includes(word))) continue;
      const shown = model.leaf.get(node.id) || model.leaf.get(model.users[node.id].find(user => model.leaf.has(user)));
      if (shown && !hits.includes(shown)) hits.push(shown);
    }
  }
  found.textContent = words.length ? `${hits.length} found` + (hits.length ? ', Enter goes to each' : '') : '';
  mark();
}

function nextHit(step) {
  if (!hits.length) return;
  hit = (hit + step + hits.length) % hits.length;
  found.textContent = `${hit + 1} of ${hits.length}`;
  select(hits[hit].node.id);
}

// ---- events

function itemAt(event) {
  const target = event.target.closest('.node, .box > .head');
  return target && items.get((target.closest('[data-key]')).dataset.key);
}

let moved = false, dragging = null;
canvas.addEventListener('pointerdown', event => { dragging = [event.clientX, event.clientY]; moved = false; });
window.addEventListener('pointermove', event => {
  if (!dragging) return;
  const dx = event.clientX - dragging[0], dy = event.clientY - dragging[1];
  if (!moved && Math.hypot(dx, dy) < 4) return;
  moved = true;
  view.x += dx;
  view.y += dy;
  dragging = [event.clientX, event.clientY];
  applyView();
});
window.addEventListener('pointerup', () => { dragging = null; });
canvas.addEventListener('click', event => {
  if (moved) return;
  const item = itemAt(event);
  if (!item) { selected = null; mark(); return showGraph(); }
  if (item.items) { model.toggle(item); return redrawAround(item); }
  selected = item.output ? model.leaf.get(item.output.value) || null : item;
  showNode(item.output ? item.output.value : item.node.id);
  mark();
});
canvas.addEventListener('wheel', event => {
  event.preventDefault();
  const frame = canvas.getBoundingClientRect(), x = event.clientX - frame.left, y = event.clientY - frame.top;
  const factor = Math.exp(-event.deltaY * 0.0015), zoom = Math.min(4, Math.max(0.02, view.zoom * factor));
  view.x = x - (x - view.x) * zoom / view.zoom;
  view.y = y - (y - view.y) * zoom / view.zoom;
  view.zoom = zoom;
  applyView();
}, {passive: false});
const searchBox = document.getElementById('search');
searchBox.addEventListener('input', () => search(searchBox.value));
searchBox.addEventListener('keydown', event => {
  if (event.key === 'Enter') nextHit(event.shiftKey ? -1 : 1);
  if (event.key === 'Escape') { searchBox.value = ''; search(''); searchBox.blur(); }
});
window.addEventListener('keydown', event => {
  if (event.target === searchBox) return;
  if (event.key === '/') { event.preventDefault(); searchBox.focus(); }
  if (event.key === '0') fit(false);
});
document.getElementById('expand').onclick = () => { model.expandAll(); redraw(); fit(true); };
document.getElementById('collapse').onclick = () => { model.collapseAll(); redraw(); fit(true); };
document.getElementById('fit').onclick = () => fit(false);

// The memory plan. A click on a rectangle shows its value in the graph.
const memory = document.getElementById('memory'), memoryButton = document.getElementById('memory-button');
function showMemory(shown) {
  memory.hidden = !shown;
  canvas.style.display = shown ? 'none' : '';
  memoryButton.textContent = shown ? 'graph' : 'memory';
}
memoryButton.hidden = !memory.firstElementChild;
memoryButton.onclick = () => showMemory(memory.hidden);
memory.addEventListener('click', event => {
  const title = event.target.parentNode.querySelector(':scope > title');
  const node = title && nodeOfFragment(graph.nodes, title.textContent.split(/[ \n]/)[0]);
  if (!node) return;
  showMemory(false);
  select(node.id);
});
window.addEventListener('keydown', event => {
  if (event.target !== searchBox && event.key === 'm' && !memoryButton.hidden) showMemory(memory.hidden);
});

// ---- start

document.getElementById('title').textContent = '@' + graph.name;
const legend = document.getElementById('legend');
for (const kind of ['argument', 'view', 'elementwise', 'product', 'reduce', 'composite', 'special']) {
  const entry = element('span', undefined, legend);
  element('i', undefined, entry).style.background = `var(--${kind})`;
  entry.append(kind);
}
for (const group of model.groups()) { items.set(group.key, group); for (const item of group.items) items.set(item.key, item); }
const few = 60;
if (graph.nodes.length <= few) model.expandAll();
showGraph();
redraw();
fit(true);
// page.html#open shows all modules; page.html#memory the memory plan; page.html#%12 a value.
const wanted = location.hash.slice(1);
if (wanted === 'memory') showMemory(!memoryButton.hidden);
else if (wanted === 'open') { model.expandAll(); redraw(); fit(true); }
else if (wanted) { const node = nodeOfFragment(graph.nodes, wanted); if (node) select(node.id); }
