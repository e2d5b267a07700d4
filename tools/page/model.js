// The graph as a tree of modules, and its visible part.

// "h.0.attn" -> ["h.0", "attn"]: a number belongs to the preceding name.
function scopeParts(node) {
  if (node.kind === 'argument') return [];
  const parts = [];
  for (const part of node.scope ? node.scope.split('.') : []) {
    if (/^\d+$/.test(part) && parts.length && !/\d$/.test(parts[parts.length - 1])) parts[parts.length - 1] += '.' + part;
    else parts.push(part);
  }
  return parts;
}

// Marks the modules of the backward pass. Recomputed nodes of the forward pass belong to it.
function markGradients(nodes) {
  let last = null;
  for (const node of nodes) {
    if (!node.parts.length) { last = null; continue; }
    const name = node.parts[0];
    if (node.gradient || last && last.name === name && last.gradient) node.parts[0] = 'gradient of ' + name;
    last = {name, gradient: node.parts[0] !== name};
  }
}

// Parameters, constant numbers, and states if there are many are shown inside the boxes of their readers.
const manyStates = graph.nodes.filter(node => node.op === 'state').length > 8;
const isInline = node => node.op === 'parameter' || node.number !== undefined || node.op === 'state' && manyStates;

// Describes the fused region of a node, or why it has none.
function regionTitle(node) {
  if (node.region !== undefined) return `region ${node.region}: ${graph.regions[node.region]}` + (node.stored ? ', stored' : '');
  return node.inlined ? 'none: computed by its readers' : '';
}

// Groups nodes by fused region. Returns [{region, node}] in an order in which regions are contiguous and every node
// follows its operands. Regions run in the order of their numbers. Views and inlined nodes belong to no region; those
// between two nodes of one region are shown inside it.
function regionOrder(nodes) {
  const all = graph.nodes, none = Infinity;
  const before = all.map(() => -1), after = all.map(() => none);
  for (const node of all)
    before[node.id] = node.region ?? Math.max(-1, ...node.args.map(id => before[id]));
  for (let i = all.length - 1; i >= 0; --i) {
    const first = all[i].region ?? after[i];
    for (const id of all[i].args) after[id] = Math.min(after[id], first);
  }
  const regionOf = node => node.region ?? (before[node.id] >= 0 && before[node.id] === after[node.id] ? before[node.id] : undefined);
  const stage = node => regionOf(node) !== undefined ? 2 * regionOf(node) + 1 : 2 * before[node.id] + 2;
  return nodes.map(node => ({node, region: regionOf(node), stage: stage(node)}))
              .sort((a, b) => a.stage - b.stage || a.node.id - b.node.id);
}

// Consecutive nodes of a module become a group. The list is in topological order, so a run never depends on later
// nodes and groups have no cycles.
function buildTree(nodes) {
  let groups = 0;
  const makeGroup = (title, items, path) => {
    const group = {key: 'g' + groups++, title, path, items, count: 0};
    for (const item of items) { item.parent = group; group.count += item.count || 1; }
    return group;
  };
  const level = (list, depth, path) => {
    const items = [];
    for (let i = 0; i < list.length;) {
      const part = list[i].parts[depth];
      let end = i + 1;
      while (end < list.length && list[end].parts[depth] === part) ++end;
      const run = list.slice(i, end);
      if (part === undefined) items.push(...chunks(run, depth, path));
      else if (run.length === 1) items.push({key: 'n' + run[0].id, node: run[0]});
      else {
        const inner = path ? path + '.' + part : part;
        const children = level(run, depth + 1, inner);
        const only = children.length === 1 && children[0].items;
        items.push(only ? Object.assign(children[0], {title: part + '.' + children[0].title})
                        : makeGroup(part, children, inner));
      }
      i = end;
    }
    return items;
  };
  // Many values of one source line, such as an optimizer's, also become a group. A very long one is split.
  const chunks = (run, depth, path) => {
    const leaves = list => list.map(node => ({key: 'n' + node.id, node}));
    const many = 24, part = 120, items = [];
    for (let i = 0; i < run.length;) {
      let end = i + 1;
      while (end < run.length && run[end].loc === run[i].loc) ++end;
      const list = leaves(run.slice(i, end));
      const title = run[i].loc || 'no source line';
      if (list.length < many || list.length === run.length && depth > 0 && list.length <= part) items.push(...list);
      else if (list.length <= part) items.push(makeGroup(title, list, path));
      else {
        const parts = [];
        for (let at = 0; at < list.length; at += part)
          parts.push(makeGroup('part ' + (at / part + 1), list.slice(at, at + part), path));
        items.push(makeGroup(title, parts, path));
      }
      i = end;
    }
    return items;
  };
  if (graph.regions) {
    const inner = nodes.filter(node => node.kind !== 'argument' && !isInline(node));
    const items = nodes.filter(node => node.kind === 'argument' && !isInline(node)).map(node => ({key: 'n' + node.id, node}));
    const ordered = regionOrder(inner);
    for (let i = 0; i < ordered.length;) {
      let end = i + 1;
      const {region} = ordered[i];
      while (region !== undefined && end < ordered.length && ordered[end].region === region) ++end;
      const leaves = ordered.slice(i, end).map(({node}) => ({key: 'n' + node.id, node}));
      items.push(...leaves.length === 1 ? leaves : [makeGroup(`region ${region}: ${graph.regions[region]}`, leaves, '')]);
      i = end;
    }
    return makeGroup('', items, '');
  }
  for (const node of nodes) node.parts = scopeParts(node);
  markGradients(nodes.filter(node => !isInline(node)));
  const shown = nodes.filter(node => !isInline(node));
  const inputs = shown.filter(node => node.kind === 'argument').map(node => ({key: 'n' + node.id, node}));
  return makeGroup('', [...inputs, ...level(shown.filter(node => node.kind !== 'argument'), 0, '')], '');
}

class Model {
  constructor(data) {
    this.data = data;
    this.root = buildTree(data.nodes);
    this.open = new Set([this.root.key]);
    this.leaf = new Map();
    const visit = item => {
      if (item.node) this.leaf.set(item.node.id, item);
      else item.items.forEach(visit);
    };
    visit(this.root);
    this.users = data.nodes.map(() => []);
    for (const node of data.nodes) for (const id of node.args) this.users[id].push(node.id);
    data.outputs.forEach((output, i) => {
      const item = {key: 'o' + i, output, parent: this.root};
      this.root.items.push(item);
    });
  }
  toggle(group) { this.open.has(group.key) ? this.open.delete(group.key) : this.open.add(group.key); }
  groups() {
    const found = [];
    const visit = item => { if (item.items) { found.push(item); item.items.forEach(visit); } };
    visit(this.root);
    return found;
  }
  expandAll() { for (const group of this.groups()) this.open.add(group.key); }
  collapseAll() { this.open = new Set([this.root.key]); }
  reveal(item) { for (let group = item.parent; group; group = group.parent) this.open.add(group.key); }
  // Returns the visible item for a leaf: itself, or the outermost closed group around it.
  visible(item) {
    let shown = item;
    for (let group = item.parent; group; group = group.parent) if (!this.open.has(group.key)) shown = group;
    return shown;
  }
  // Returns the edges between visible items: {from, to, value, count}, one per value and pair of items. Two closed
  // modules have one edge for all values.
  edges() {
    const seen = new Map();
    const add = (id, to) => {
      const source = this.leaf.get(id);
      if (!source) return;
      const from = this.visible(source);
      if (from === to) return;
      const bundle = from.items && to.items;
      const value = bundle ? from.key + '-' + to.key : id, key = value + '>' + to.key;
      if (!seen.has(key)) seen.set(key, {from, to, value, ids: new Set()});
      seen.get(key).ids.add(id);
    };
    for (const [id, item] of this.leaf) for (const arg of this.data.nodes[id].args) add(arg, this.visible(item));
    for (const item of this.root.items) if (item.output) add(item.output.value, item);
    return [...seen.values()];
  }
}

// Returns the node whose label is in the URL's fragment. "#%12" must not be decoded, because it would become a
// control character; other characters may be escaped by the browser.
function nodeOfFragment(nodes, fragment) {
  const labelled = label => nodes.find(node => node.label === label);
  const found = labelled(fragment);
  if (found) return found;
  try { return labelled(decodeURIComponent(fragment)); } catch { return undefined; }
}
