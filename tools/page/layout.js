// Layered layout of nested boxes. Each open group is laid out separately and is then a single box in its parent
// group.
// Every item gets x, y (its center, relative to the group), w and h. Every edge gets points in the same coordinates.

const GAP = {x: 26, y: 46, port: 14, pad: 18, head: 24};

// Returns the groups from the root to an item, and the item.
function chain(item) {
  const list = [];
  for (let at = item; at; at = at.parent) list.unshift(at);
  return list;
}

// Assigns each edge to the open groups that it passes through, between items or ports. An edge that crosses a group's
// border gets a port there: "in" ports are above all items, "out" ports below.
function routeEdges(edges) {
  const inside = new Map();
  const at = group => {
    if (!inside.has(group)) inside.set(group, {edges: [], ports: new Map()});
    return inside.get(group);
  };
  const port = (group, side, value) => {
    const ports = at(group).ports, key = side + value;
    if (!ports.has(key)) ports.set(key, {key, port: side, w: 1, h: 1});
    return ports.get(key);
  };
  const seen = new Map();
  const link = (group, from, to, edge) => {
    const key = [group.key, from.key, to.key, edge.value].join();
    if (!seen.has(key)) {
      const segment = {from, to, value: edge.value, ids: edge.ids, group};
      seen.set(key, segment);
      at(group).edges.push(segment);
    }
    edge.segments.push(seen.get(key));
  };
  for (const edge of edges) {
    edge.segments = [];
    const up = chain(edge.from), down = chain(edge.to);
    let shared = 0;
    while (up[shared + 1] === down[shared + 1]) ++shared;
    for (let i = up.length - 1; i > shared + 1; --i)
      link(up[i - 1], up[i], port(up[i - 1], 'out', edge.value), edge);
    link(up[shared], up[shared + 1], down[shared + 1], edge);
    for (let i = shared + 1; i < down.length - 1; ++i)
      link(down[i], port(down[i], 'in', edge.value), down[i + 1], edge);
  }
  return inside;
}

// Returns the layer of each item by longest path from the top. Items without inputs are moved to just above their
// first reader.
function assignLayers(items, edges) {
  const before = new Map(items.map(item => [item, []])), after = new Map(items.map(item => [item, []]));
  for (const edge of edges) { before.get(edge.to).push(edge.from); after.get(edge.from).push(edge.to); }
  const layer = new Map();
  const waiting = new Map(items.map(item => [item, before.get(item).length]));
  const ready = items.filter(item => !waiting.get(item));
  for (const item of ready) {
    layer.set(item, Math.max(-1, ...before.get(item).map(other => layer.get(other))) + 1);
    for (const other of after.get(item)) {
      waiting.set(other, waiting.get(other) - 1);
      if (!waiting.get(other)) ready.push(other);
    }
  }
  for (const item of items)
    if (!before.get(item).length && after.get(item).length && item.port !== 'in')
      layer.set(item, Math.min(...after.get(item).map(other => layer.get(other))) - 1);
  const deepest = Math.max(0, ...layer.values());
  const out = items.filter(item => item.port === 'out');
  for (const item of out) layer.set(item, deepest + (items.some(i => i.port !== 'out' && layer.get(i) === deepest) ? 1 : 0));
  return layer;
}

// Adds a point on every layer that a long edge crosses, to reserve space. The more readers a value has, the less its
// links pull, so that a mask read by all layers does not distort the layout.
function addBends(edges, layer, layers) {
  const links = [], readers = new Map();
  for (const edge of edges) readers.set(edge.value, (readers.get(edge.value) || 0) + 1);
  for (const edge of edges) {
    edge.bends = [];
    const pull = 1 / readers.get(edge.value);
    let last = edge.from;
    for (let i = layer.get(edge.from) + 1; i < layer.get(edge.to); ++i) {
      const bend = {bend: true, w: GAP.port, h: 1};
      layers[i].push(bend);
      edge.bends.push(bend);
      links.push([last, bend, pull]);
      last = bend;
    }
    links.push([last, edge.to, pull]);
  }
  return links;
}

// Sorts each layer by the mean position of the neighbors above, then below, several times. Keeps the best order.
function orderLayers(layers, links) {
  const up = new Map(), down = new Map();
  for (const [a, b, pull] of links) {
    (down.get(a) || down.set(a, []).get(a)).push({item: b, pull});
    (up.get(b) || up.set(b, []).get(b)).push({item: a, pull});
  }
  const place = new Map();
  const number = list => list.forEach((item, i) => place.set(item, i));
  layers.forEach(number);
  const crossings = () => {
    let count = 0;
    for (const list of layers) {
      const ends = [];
      for (const item of list) for (const {item: other} of (down.get(item) || [])) ends.push([place.get(item), place.get(other)]);
      if (ends.length > 400) return -1;
      for (let i = 0; i < ends.length; ++i)
        for (let j = i + 1; j < ends.length; ++j)
          if ((ends[i][0] - ends[j][0]) * (ends[i][1] - ends[j][1]) < 0) ++count;
    }
    return count;
  };
  let best = layers.map(list => [...list]), fewest = crossings();
  for (let sweep = 0; sweep < 12 && fewest !== 0; ++sweep) {
    const near = sweep % 2 ? down : up;
    const order = sweep % 2 ? layers.map((_, i) => layers.length - 1 - i) : layers.map((_, i) => i);
    for (const i of order) {
      const mean = new Map(layers[i].map((item, k) => {
        const others = near.get(item) || [];
        return [item, others.length ? others.reduce((sum, other) => sum + place.get(other.item), 0) / others.length : k];
      }));
      layers[i].sort((a, b) => mean.get(a) - mean.get(b));
      number(layers[i]);
    }
    const now = crossings();
    if (now < fewest || fewest < 0) { fewest = now; best = layers.map(list => [...list]); }
  }
  best.forEach((list, i) => { layers[i] = list; });
  return {up, down};
}

// Returns the x positions closest to `wish` (least squares) that keep order and distances: pool adjacent violators.
function spread(list, wish) {
  const shift = [0];
  for (let i = 1; i < list.length; ++i)
    shift.push(shift[i - 1] + (list[i - 1].w + list[i].w) / 2 + (list[i].bend && list[i - 1].bend ? 4 : GAP.x));
  const pools = [];
  list.forEach((item, i) => {
    pools.push({sum: (wish(item) - shift[i]) * weight(item), weight: weight(item), first: i});
    while (pools.length > 1) {
      const [a, b] = pools.slice(-2);
      if (a.sum / a.weight <= b.sum / b.weight) break;
      pools.splice(-2, 2, {sum: a.sum + b.sum, weight: a.weight + b.weight, first: a.first});
    }
  });
  pools.forEach((pool, p) => {
    const end = p + 1 < pools.length ? pools[p + 1].first : list.length;
    for (let i = pool.first; i < end; ++i) list[i].x = pool.sum / pool.weight + shift[i];
  });
}
const weight = item => item.bend ? 3 : 1;

function placeLayers(layers, {up, down}) {
  for (const list of layers) {
    let x = 0;
    for (const item of list) { item.x = x + item.w / 2; x += item.w + GAP.x; }
  }
  const mean = (item, others) => {
    const pull = others.reduce((sum, other) => sum + other.pull, 0);
    return pull ? others.reduce((sum, other) => sum + other.item.x * other.pull, 0) / pull : item.x;
  };
  for (let sweep = 0; sweep < 10; ++sweep) {
    const both = sweep > 6, order = sweep % 2 ? [...layers].reverse() : layers;
    for (const list of order)
      spread(list, item => mean(item, both ? [...(up.get(item) || []), ...(down.get(item) || [])]
                                           : (sweep % 2 ? down : up).get(item) || []));
  }
  let y = 0;
  for (const list of layers) {
    const h = Math.max(1, ...list.map(item => item.h));
    for (const item of list) item.y = y + h / 2;
    y += h + GAP.y;
  }
  return y - GAP.y;
}

// Lays out an open group and its contents. `measure` returns the size of an item that is drawn as one box.
function layoutGroup(group, inside, isOpen, measure) {
  for (const item of group.items) {
    if (item.items && isOpen(item)) layoutGroup(item, inside, isOpen, measure);
    else Object.assign(item, measure(item));
  }
  const {edges, ports} = inside.get(group) || {edges: [], ports: new Map()};
  const items = [...group.items, ...ports.values()];
  const layer = assignLayers(items, edges);
  const layers = Array.from({length: Math.max(0, ...layer.values()) + 1}, () => []);
  for (const item of items) layers[layer.get(item)].push(item);
  const near = orderLayers(layers, addBends(edges, layer, layers));
  const height = placeLayers(layers, near);
  const all = layers.flat();
  const left = Math.min(...all.map(item => item.x - item.w / 2));
  const right = Math.max(...all.map(item => item.x + item.w / 2));
  for (const item of all) { item.x += GAP.pad - left; item.y += GAP.pad + GAP.head; }
  group.w = right - left + 2 * GAP.pad;
  group.h = height + 2 * GAP.pad + GAP.head;
}
