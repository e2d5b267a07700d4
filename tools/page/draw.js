// Draws boxes, edges and labels as SVG.

const svgNamespace = 'http://www.w3.org/2000/svg';
function svg(tag, attributes, parent, text) {
  const element = document.createElementNS(svgNamespace, tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  if (parent) parent.appendChild(element);
  return element;
}

const pen = document.createElement('canvas').getContext('2d');
const fonts = {title: '600 13px system-ui, "DejaVu Sans", sans-serif', small: '11px system-ui, "DejaVu Sans", sans-serif',
               label: '11px ui-monospace, "DejaVu Sans Mono", monospace'};
function textWidth(text, font) {
  pen.font = fonts[font];
  return pen.measureText(text).width;
}
const cut = (text, length) => text.length > length ? text.slice(0, length - 1) + '…' : text;

// Returns the lines of a box: [{text, font}].
function boxLines(item, data) {
  if (item.output) return [{text: 'output ' + item.output.name, font: 'title'}];
  if (item.items) return [{text: cut(item.title, 44), font: 'title'},
                          {text: item.count + ' values', font: 'small'}];
  const node = item.node;
  const title = node.kind === 'argument' ? node.label : node.op + (node.name ? '  ' + node.name : '');
  const lines = [{text: cut(title, 44), font: 'title'}];
  if (node.attrs) lines.push({text: cut(node.attrs, 52), font: 'small'});
  for (const id of node.args) {
    const arg = data.nodes[id];
    if (arg.kind === 'argument' && isInline(arg)) lines.push({text: cut(arg.label + ' ' + arg.shape, 52), font: 'small'});
    else if (arg.number !== undefined) lines.push({text: 'with ' + arg.number, font: 'small'});
  }
  for (const update of data.updates)
    if (update.value === node.id) lines.push({text: cut('becomes ' + data.nodes[update.state].label, 52), font: 'small'});
  const from = node.kind === 'argument' ? node.op : node.loc;
  if (from) lines.push({text: cut(from, 52), font: 'small'});
  return lines;
}

function measureBox(item, data) {
  item.lines = boxLines(item, data);
  // Reserve space for the output's label below the box.
  const label = item.node ? textWidth(cut(item.node.type, 60), 'label') : 0;
  item.box = Math.max(64, ...item.lines.map(line => textWidth(line.text, line.font))) + 24;
  return {w: Math.max(item.box, label),
          h: 12 + item.lines.reduce((sum, line) => sum + (line.font === 'title' ? 17 : 14), 0)};
}

function drawBox(item, x, y, parent, data) {
  const kind = item.output ? 'kind-argument' : item.node ? 'kind-' + item.node.kind : '';
  const box = svg('g', {class: 'node' + (item.items ? ' group' : ''), 'data-key': item.key,
                        transform: `translate(${x - item.box / 2},${y - item.h / 2})`}, parent);
  svg('rect', {width: item.box, height: item.h, class: kind}, box);
  let at = 4;
  for (const line of item.lines) {
    at += line.font === 'title' ? 17 : 14;
    svg('text', {x: item.box / 2, y: at - 2, 'text-anchor': 'middle', class: line.font}, box, line.text);
  }
  if (item.items) svg('text', {x: item.box - 14, y: 16, class: 'small'}, box, '+');
}

// Draws a group's frame and items. Stores the absolute position of every open group.
function drawGroup(group, x, y, model, parent) {
  group.left = x;
  group.top = y;
  if (group.parent) {
    const box = svg('g', {class: 'box', 'data-key': group.key}, parent);
    svg('rect', {x, y, width: group.w, height: group.h}, box);
    const head = svg('g', {class: 'head'}, box);
    svg('rect', {x, y, width: group.w, height: GAP.head}, head);
    svg('text', {x: x + 10, y: y + 17, class: 'title'}, head, '−  ' + group.title);
  }
  for (const item of group.items) {
    if (item.items && model.open.has(item.key))
      drawGroup(item, x + item.x - item.w / 2, y + item.y - item.h / 2, model, parent);
    else drawBox(item, x + item.x, y + item.y, parent, model.data);
  }
}

// Assigns the positions at which edges leave or enter a box. Ends are ordered by the positions of the boxes they lead
// to.
function assignEnds(inside) {
  for (const {edges} of inside.values()) {
    const ends = new Map();
    for (const edge of edges) {
      const note = (item, side, toward) => {
        const key = item.key + side;
        if (!ends.has(key)) ends.set(key, new Map());
        const values = ends.get(key);
        if (!values.has(edge.value)) values.set(edge.value, []);
        values.get(edge.value).push(toward.x);
      };
      note(edge.from, 'down', edge.bends[0] || edge.to);
      note(edge.to, 'up', edge.bends[edge.bends.length - 1] || edge.from);
    }
    for (const edge of edges) {
      const offset = (item, side) => {
        const values = [...ends.get(item.key + side)].map(([value, xs]) => [value, xs.reduce((a, b) => a + b) / xs.length]);
        values.sort((a, b) => a[1] - b[1]);
        const i = values.findIndex(([value]) => value === edge.value), n = values.length;
        return n > 1 ? (i / (n - 1) - 0.5) * Math.min((item.box || item.w) * 0.7, 26 * (n - 1)) : 0;
      };
      edge.fromOffset = offset(edge.from, 'down');
      edge.toOffset = offset(edge.to, 'up');
    }
  }
}

// Returns an edge's end in absolute coordinates. For an open group, it is the port on its border.
function endPoint(edge, item, side, inside, model) {
  const {left, top} = edge.group;
  if (item.port) return [left + item.x, item.port === 'in' ? top : top + edge.group.h];
  if (item.items && model.open.has(item.key)) {
    const port = inside.get(item).ports.get((side === 'down' ? 'out' : 'in') + edge.value);
    return [item.left + port.x, side === 'down' ? item.top + item.h : item.top];
  }
  const offset = side === 'down' ? edge.fromOffset : edge.toOffset;
  return [left + item.x + offset, top + item.y + (side === 'down' ? 1 : -1) * item.h / 2];
}

function drawEdges(inside, model, parent) {
  const labels = [], labelled = new Map();
  for (const {edges} of inside.values()) {
    for (const edge of edges) {
      const {left, top} = edge.group;
      const points = [endPoint(edge, edge.from, 'down', inside, model),
                      ...edge.bends.map(bend => [left + bend.x, top + bend.y]),
                      endPoint(edge, edge.to, 'up', inside, model)];
      let path = `M${points[0]}`;
      for (let i = 1; i < points.length; ++i) {
        const [x0, y0] = points[i - 1], [x1, y1] = points[i], middle = (y0 + y1) / 2;
        path += ` C${x0},${middle} ${x1},${middle} ${x1},${y1}`;
      }
      svg('path', {d: path, class: 'edge' + (edge.ids.size > 1 ? ' many' : ''), 'data-value': edge.value, 'data-from': edge.from.key, 'data-to': edge.to.key,
                   'marker-end': edge.to.port || edge.to.items && model.open.has(edge.to.key) ? '' : 'url(#arrow)'}, parent);
      if (edge.from.port || edge.from.items && model.open.has(edge.from.key)) continue;
      const values = labelled.get(edge.from) || labelled.set(edge.from, new Set()).get(edge.from);
      const most = 2;
      const text = edge.ids.size > 1 ? edge.ids.size + ' values' : model.data.nodes[[...edge.ids][0]].type;
      if (values.has(text) || values.size >= most) continue;
      labels.push([points[0][0], points[0][1] + 14 + 13 * values.size, text]);
      values.add(text);
    }
  }
  for (const [x, y, text] of labels) svg('text', {x, y, class: 'label'}, parent, cut(text, 60));
}

// Lays out and draws everything visible. Returns the size of the drawing.
function drawModel(model, scene) {
  scene.replaceChildren();
  const inside = routeEdges(model.edges());
  layoutGroup(model.root, inside, item => model.open.has(item.key), item => measureBox(item, model.data));
  assignEnds(inside);
  const boxes = svg('g', {}), lines = svg('g', {});
  drawGroup(model.root, 0, 0, model, boxes);
  drawEdges(inside, model, lines);
  scene.append(boxes, lines);
  return {w: model.root.w, h: model.root.h};
}
