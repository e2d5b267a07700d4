// Indices of tensors, and the elements that each op reads for one element of its result.

// Iterates over row-major positions: "at" of flat index i.
function positionOf(sizes, flat) {
  const at = new Array(sizes.length);
  for (let d = sizes.length - 1; d >= 0; --d) { at[d] = flat % sizes[d]; flat = Math.floor(flat / sizes[d]); }
  return at;
}
const flatOf = (sizes, at) => at.reduce((flat, index, d) => flat * sizes[d] + index, 0);

// The element of an operand that broadcasting reads for an element of the result.
function broadcastAt(sizes, at) {
  const skip = at.length - sizes.length;
  return flatOf(sizes, sizes.map((size, d) => size === 1 ? 0 : at[d + skip]));
}

const countOf = sizes => sizes.reduce((count, size) => count * size, 1);
const range = n => Array.from({length: n}, (_, i) => i);
const axisOf = (attrs, rank) => { const axis = +(attrs.dim ?? -1); return axis < 0 ? axis + rank : axis; };

// All elements along one dim through a position.
function along(sizes, at, dim) {
  return range(sizes[dim]).map(i => flatOf(sizes, at.map((index, d) => d === dim ? i : index)));
}

// Sources of products: for each operand a list of elements, multiplied pairwise and added up.
const products = {
  matmul(a, b, at) {
    const ra = a.length, rb = b.length, n = at.length;
    const inner = a[ra - 1];
    const row = ra === 1 ? [] : [at[n - (rb === 1 ? 1 : 2)]], column = rb === 1 ? [] : [at[n - 1]];
    const batch = at.slice(0, n - row.length - column.length);
    const lead = (sizes, own) => sizes.slice(0, Math.max(0, sizes.length - 2)).map((size, d, all) =>
        size === 1 ? 0 : batch[d + batch.length - all.length]);
    return [range(inner).map(k => flatOf(a, [...lead(a), ...row, k])),
            range(inner).map(k => flatOf(b, [...lead(b), k, ...column]))];
  },
  linear(x, w, at) {
    return [range(x[x.length - 1]).map(k => flatOf(x, [...at.slice(0, -1), k])),
            range(w[1]).map(k => flatOf(w, [at[at.length - 1], k]))];
  },
  contract(a, b, at, attrs) {
    const [inputs, output] = attrs.spec.split('->'), [left, right] = inputs.split(',');
    const index = {};
    [...output].forEach((label, d) => { index[label] = at[d]; });
    const size = {};
    [...left].forEach((label, d) => { size[label] = a[d]; });
    [...right].forEach((label, d) => { size[label] ??= b[d]; });
    const summed = [...new Set(left + right)].filter(label => !(label in index));
    const lists = [[], []];
    for (let i = 0; i < summed.reduce((count, label) => count * size[label], 1); ++i) {
      positionOf(summed.map(label => size[label]), i).forEach((value, d) => { index[summed[d]] = value; });
      lists[0].push(flatOf(a, [...left].map(label => index[label])));
      lists[1].push(flatOf(b, [...right].map(label => index[label])));
    }
    return lists;
  },
};

// Returns for each operand the elements that one element of the result is computed from; null if that is not known.
function sourcesOf(step, values, flat) {
  const at = positionOf(step.sizes, flat), operands = step.args.map(id => values[id]), {attrs} = step;
  const sizes = operands.map(operand => operand.sizes), rank = step.sizes.length;
  const same = () => [[flat]];
  const first = list => [list, ...operands.slice(1).map(() => [])];
  switch (step.op) {
    case 'matmul': return products.matmul(sizes[0], sizes[1], at);
    case 'linear': return [...products.linear(sizes[0], sizes[1], at), ...operands.slice(2).map(() => [at[rank - 1]])];
    case 'contract': return products.contract(sizes[0], sizes[1], at, attrs);
    case 'reshape': case 'view': case 'contiguous': case 'squeeze': case 'unsqueeze': case 'stop_gradient': return same();
    case 'transpose': {
      const from = [...at], a = +attrs.dim0 + (attrs.dim0 < 0 ? rank : 0), b = +attrs.dim1 + (attrs.dim1 < 0 ? rank : 0);
      [from[a], from[b]] = [from[b], from[a]];
      return [[flatOf(sizes[0], from)]];
    }
    case 'permute': {
      const from = new Array(rank);
      attrs.dims.forEach((dim, d) => { from[dim < 0 ? dim + rank : dim] = at[d]; });
      return [[flatOf(sizes[0], from)]];
    }
    case 'slice': return [[flatOf(sizes[0], at.map((index, d) =>
        d === axisOf(attrs, rank) ? +(attrs.start ?? 0) + index * +(attrs.step ?? 1) : index))]];
    case 'softmax': case 'log_softmax': return [along(sizes[0], at, axisOf(attrs, rank))];
    case 'layer_norm': case 'rms_norm': return [along(sizes[0], at, rank - 1), ...operands.slice(1).map(() => [at[rank - 1]])];
    case 'sum': case 'mean': case 'max': case 'min': case 'var': {
      const inner = sizes[0], dims = (attrs.dims ?? []).map(dim => dim < 0 ? dim + inner.length : dim);
      const folded = dims.length ? dims : range(inner.length);
      const kept = range(inner.length).filter(dim => !folded.includes(dim));
      const base = new Array(inner.length).fill(0);
      if (attrs.keepdim === true) kept.forEach(dim => { base[dim] = at[dim]; });
      else kept.forEach((dim, d) => { base[dim] = at[d]; });
      const list = [];
      for (let i = 0; i < countOf(folded.map(dim => inner[dim])); ++i) {
        positionOf(folded.map(dim => inner[dim]), i).forEach((value, d) => { base[folded[d]] = value; });
        list.push(flatOf(inner, base));
      }
      return [list];
    }
    case 'gather': {
      const dim = +(attrs.dim ?? 0), [table, indices] = operands, many = sizes[1].length;
      const where = flatOf(sizes[1], at.slice(dim, dim + many));
      const row = Number(indices.values?.[where]);
      if (!Number.isInteger(row)) return null;
      return [[flatOf(table.sizes, [...at.slice(0, dim), row, ...at.slice(dim + many)])], [where]];
    }
    case 'attention': {
      // [.., queries, d]: the row of q, and all rows of k and v of its head.
      const rows = (operand, own) => {
        const lead = at.slice(0, -2).map((index, d) => Math.min(index, operand.sizes[d] - 1));
        const list = [];
        for (const row of own ? [at[rank - 2]] : range(operand.sizes[operand.sizes.length - 2]))
          for (const column of range(operand.sizes[operand.sizes.length - 1])) list.push(flatOf(operand.sizes, [...lead, row, column]));
        return list;
      };
      return [rows(operands[0], true), rows(operands[1], false), rows(operands[2], false), ...operands.slice(3).map(() => [])];
    }
    default:
      if (step.kind === 'elementwise' || ['masked_fill', 'tril', 'triu', 'relu', 'gelu', 'silu', 'sigmoid', 'softplus', 'square',
                                          'reciprocal', 'clamp', 'dropout', 'expand'].includes(step.op))
        return operands.map((operand, i) => step.op === 'dropout' && i > 0 ? [] : [broadcastAt(operand.sizes, at)]);
      return null;
  }
}

// Formats a number in few characters.
function format(value, dtype) {
  if (typeof value === 'string') return value;  // nan, inf
  if (dtype === 'bool') return value ? 'true' : 'false';
  if (Number.isInteger(value) && !/^[bf]|^c/.test(dtype)) return String(value);
  const size = Math.abs(value);
  if (size !== 0 && (size >= 1e5 || size < 1e-4)) return value.toExponential(1).replace('e+', 'e');
  return value.toFixed(size >= 100 ? 1 : size >= 10 ? 2 : 3);
}

// Describes one element of a result: "0.12 * 0.5 + ... = 0.73".
function madeOf(step, values, flat) {
  const result = format(step.values[flat], step.dtype), sources = sourcesOf(step, values, flat);
  if (!sources) return '';
  const number = (operand, i) => format(values[step.args[operand]].values?.[i] ?? '?', values[step.args[operand]].dtype);
  const most = 10;
  const joined = (list, sign) => list.slice(0, most).join(sign) + (list.length > most ? sign + `… (${list.length} terms)` : '');
  if (products[step.op]) {
    const terms = sources[0].map((a, k) => `${number(0, a)}·${number(1, sources[1][k])}`);
    return joined(terms, ' + ') + (sources[2] ? ` + ${number(2, sources[2][0])}` : '') + ` = ${result}`;
  }
  const row = sources[0].map(i => number(0, i));
  switch (step.op) {
    case 'softmax': return `exp(${number(0, along(values[step.args[0]].sizes, positionOf(step.sizes, flat), axisOf(step.attrs, step.sizes.length))[positionOf(step.sizes, flat)[axisOf(step.attrs, step.sizes.length)]])}) / sum of exp(${joined(row, '), exp(')}) = ${result}`;
    case 'sum': return `${joined(row, ' + ')} = ${result}`;
    case 'mean': return `(${joined(row, ' + ')}) / ${row.length} = ${result}`;
    case 'max': case 'min': return `${step.op}(${joined(row, ', ')}) = ${result}`;
    case 'add': case 'sub': case 'mul': case 'div':
      return `${number(0, sources[0][0])} ${{add: '+', sub: '−', mul: '·', div: '/'}[step.op]} ${number(1, sources[1][0])} = ${result}`;
    case 'masked_fill': {
      const masked = number(1, sources[1][0]) === 'true';
      return masked ? `the mask is true here: ${result}` : `the mask is false here: ${number(0, sources[0][0])} stays`;
    }
    case 'gather': return `row ${number(1, sources[1][0])} of the table: ${result}`;
    case 'layer_norm': case 'rms_norm': return `from its row ${joined(row, ', ')}: ${result}`;
    case 'attention': return `weights of this query times the rows of the values: ${result}`;
  }
  if (sources.every(list => list.length <= 1) && sources[0]?.length === 1)
    return sources.length === 1 && sources[0].length === 1 && number(0, sources[0][0]) === result
        ? `the same number, ${result}, from position [${positionOf(values[step.args[0]].sizes, sources[0][0])}]`
        : `${step.op}(${step.args.map((_, i) => sources[i].length ? number(i, sources[i][0]) : '').filter(Boolean).join(', ')}) = ${result}`;
  return '';
}
