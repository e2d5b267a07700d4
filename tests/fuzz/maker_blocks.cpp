#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "ir/ops/convolution.h"
#include "ir/ops/functional/functional_composites.h"
#include "tests/fuzz/graph_maker.h"

namespace lathe::fuzz {

using namespace ir;

GraphMaker::Maybe GraphMaker::product() {
  const Value a = pick_float();
  const Maybe other =
      pick([&](const Item& item) { return item.value.dtype() == a.dtype() && item.value.rank() > 0; });
  if (!other || a.rank() == 0) return std::nullopt;
  const Value b = *other;
  if (one_in(8)) return convolution(a);
  if (one_in(3)) return einsum_of(a, b);
  const Dim inner = a.shape()[a.rank() - 1];
  if (a.rank() == 2 && b.rank() == 2 && b.shape()[1] == inner && one_in(3)) {
    // The first row, the second one, and rows outside of all segments.
    const Value offsets = minimum(iota(builder_, {3}, 0, i64), dim_value(builder_, a.shape()[0], i64));
    return mul(grouped_matmul(a, offsets, std::vector<Value>{b, one_in(2) ? b : neg(b)}), 0.5);
  }
  if (b.rank() == 2 && b.shape()[1] == inner && one_in(2)) {
    const Maybe bias = pick([&](const Item& item) {
      return item.value.dtype() == a.dtype() && item.value.shape() == Shape{b.shape()[0]};
    });
    return mul(bias && one_in(2) ? linear(a, b, *bias) : linear(a, b), 0.5);
  }
  if (b.rank() == 1) return b.shape()[0] == inner ? Maybe(mul(matmul(a, b), 0.5)) : std::nullopt;
  const bool fits = b.shape()[b.rank() - 2] == inner, fits_transposed = b.shape()[b.rank() - 1] == inner;
  if (!fits && !fits_transposed) return std::nullopt;
  const Value right = fits ? b : transpose(b, -2, -1);
  const auto leading = [](const Value& v) {
    return Shape(std::vector<Dim>(v.shape().begin(), v.shape().end() - std::min(v.rank(), 2)));
  };
  if (a.rank() > 1 && !broadcasts(leading(a), leading(right))) return std::nullopt;
  return mul(matmul(a, right), 0.3);
}

/// A convolution of the last one or two dims by random kernels, with groups if the channels are even.
GraphMaker::Maybe GraphMaker::convolution(const Value& a) {
  const int spatial = 1 + below(2);
  if (a.rank() < spatial || a.rank() > spatial + 2) return std::nullopt;
  Value x = a;
  while (x.rank() < spatial + 2) x = unsqueeze(x, 0);
  const auto channels = x.shape()[1].value();
  Convolution c = Convolution::plain(spatial);
  if (channels && *channels > 0 && *channels % 2 == 0 && one_in(2)) c.groups = one_in(2) ? 2 : *channels;
  Shape shape{channels && one_in(2) ? Dim(std::max<std::int64_t>(*channels, 1)) : Dim(2 * c.groups),
              *x.shape()[1].unnamed().divided_by(c.groups)};
  for (std::size_t i = 0; i < c.low.size(); ++i) {
    const int kernel = 1 + below(3);
    const bool known = x.shape()[static_cast<int>(i) + 2].value().has_value();
    c.dilation[i] = 1 + below(2);
    c.stride[i] = known ? 1 + below(3) : 1;
    // As much padding as the kernel spans, so that it fits any size.
    c.low[i] = one_in(2) ? 0 : below(3);
    c.high[i] = c.dilation[i] * (kernel - 1) + 1 - std::min<std::int64_t>(c.low[i], 1);
    shape.push_back(Dim(kernel));
  }
  const Value positions = iota(builder_, {shape.numel()}, 0, f64);
  const Value weight = reshape(cast(mul(sin(positions), 0.4), a.dtype()), shape);
  return conv(x, weight, c);
}

/// Labels of equal dims are sometimes shared; the result keeps some of them, in any order.
GraphMaker::Maybe GraphMaker::einsum_of(const Value& a, const Value& b) {
  if (a.rank() > 4 || b.rank() > 4) return std::nullopt;
  std::string left, right;
  Shape dims;
  for (const Dim& dim : a.shape()) {
    left += static_cast<char>('a' + dims.rank());
    dims.push_back(dim);
  }
  for (const Dim& dim : b.shape()) {
    char label = 0;
    for (int i = 0; i < a.rank(); ++i)
      if (dims[i] == dim && right.find(left[static_cast<std::size_t>(i)]) == std::string::npos && !one_in(4))
        label = left[static_cast<std::size_t>(i)];
    if (!label) {
      label = static_cast<char>('a' + dims.rank());
      dims.push_back(dim);
    }
    right += label;
  }
  std::string out;
  Shape shape;
  for (int i = 0; i < dims.rank(); ++i)
    if (one_in(2)) {
      out += static_cast<char>('a' + i);
      shape.push_back(dims[i]);
    }
  std::shuffle(out.begin(), out.end(), random_);
  if (!small(shape) || !small(dims)) return std::nullopt;
  const Value operands[] = {tanh(a), tanh(b)};
  return mul(einsum(fmt::format("{},{}->{}", left, right, out), operands), 0.25);
}

GraphMaker::Maybe GraphMaker::normalized(const Value& a) {
  if (a.rank() == 0) return std::nullopt;
  const Dim last = a.shape()[a.rank() - 1];
  const auto weight = [&] {
    return pick([&](const Item& i) { return i.value.dtype() == a.dtype() && i.value.shape() == Shape{last}; });
  };
  switch (below(6)) {
    case 0:
    case 1: return softmax(a, any_dim(a));
    case 2: return log_softmax(a, any_dim(a) - a.rank());
    case 3: return rms_norm(a, 0.125);
    case 4: {
      const Maybe w = weight();
      return w ? Maybe(rms_norm(a, *w, 0.125)) : std::nullopt;
    }
    default: {
      const Maybe w = weight(), b = weight();
      return w && b ? Maybe(layer_norm(a, *w, *b, 0.125)) : std::nullopt;
    }
  }
}

GraphMaker::Maybe GraphMaker::masked(const Value& a) {
  if (a.rank() == 0) return std::nullopt;
  switch (below(5)) {
    case 0: return a.rank() >= 2 ? Maybe(tril(a, below(3) - 1)) : std::nullopt;
    case 1: return a.rank() >= 2 ? Maybe(triu(a, below(3) - 1)) : std::nullopt;
    case 2: {
      const Maybe mask = pick(
          [&](const Item& i) { return i.value.dtype() == boolean && broadcasts_into(i.value.shape(), a.shape()); });
      return mask ? Maybe(masked_fill(a, *mask, any_of(std::vector<double>{-2.0, 0.0, 1.0}))) : std::nullopt;
    }
    case 3: return real_ == f64 || real_ == f32 ? Maybe(dropout(a, *random_state_, 0.25)) : std::nullopt;
    default: {
      const auto last = a.shape()[a.rank() - 1].value();
      if (!last || *last % 2 || *last == 0 || a.rank() < 2) return std::nullopt;
      const Value angle = mul(iota(builder_, {a.shape()[a.rank() - 2], *last}, 0, a.dtype()), 0.5);
      return rope(a, cos(angle), sin(angle));
    }
  }
}

/// Converts to complex numbers and back.
GraphMaker::Maybe GraphMaker::complex_of(const Value& a) {
  if (a.rank() == 0 || (a.dtype() != f64 && a.dtype() != f32) || !a.shape()[a.rank() - 1].is(2)) {
    return a.dtype() == f64 || a.dtype() == f32 ? Maybe(view_as_real(polar(tanh(a), a))) : std::nullopt;
  }
  const Value z = view_as_complex(a);
  switch (below(4)) {
    case 0: return view_as_real(mul(z, conj(z)));
    case 1: return z.rank() > 0 ? Maybe(view_as_real(transpose(z, 0, any_dim(z)))) : std::nullopt;
    case 2: return z.rank() > 0 ? Maybe(view_as_real(sum(z, any_dims(z), one_in(2)))) : std::nullopt;
    default: return view_as_real(add(mul(z, z), conj(z)));
  }
}

GraphMaker::Maybe GraphMaker::training_loss(const Value& logits) {
  if (logits.rank() == 0) return std::nullopt;
  const Dim classes = logits.shape()[logits.rank() - 1];
  if (!classes.value() || *classes.value() == 0) return std::nullopt;
  const Shape rows(std::vector<Dim>(logits.shape().begin(), logits.shape().end() - 1));
  const Value count = rows.rank() > 0 ? iota(builder_, rows, below(rows.rank()), i64) : constant(builder_, 1.0, i64);
  const Value targets = rem(count, constant(builder_, static_cast<double>(*classes.value()), i64));
  return cross_entropy(logits, targets, one_in(2) ? std::optional<std::int64_t>(1) : std::nullopt,
                       one_in(3) ? 0.125 : 0);
}

/// Up to two masks on scores, each in a random variant.
Value GraphMaker::scores_masked(const Value& scores, int& masks) {
  const Dim rows = scores.shape()[scores.rank() - 2], columns = scores.shape()[scores.rank() - 1];
  const Shape square{rows, columns};
  const Value i = iota(builder_, square, 0, i64), j = iota(builder_, square, 1, i64);
  ++masks;
  switch (below(8)) {
    case 0: return masked_fill(scores, gt(j, i), any_of(std::vector<double>{-1e9, -1e4, -3.0}));
    case 1: return where(le(j, i), scores, -1e9);
    case 2: return add(scores, mul(cast(gt(j, i), scores.dtype()), -1e4));
    case 3: return masked_fill(scores, logical_or(gt(j, i), gt(i, add(j, 2.0))), -1e9);
    case 4: {
      const Value keep = tril(full(builder_, square, 1.0, scores.dtype()));
      return masked_fill(scores, eq(keep, 0.0), -1e9);
    }
    case 5: return mul(tanh(mul(scores, 0.5)), 2.0);
    case 6: return sub(scores, mul(cast(abs(sub(i, j)), scores.dtype()), 0.125));
    default: {
      const Maybe bias = pick([&](const Item& item) {
        return item.value.dtype() == scores.dtype() && broadcasts_into(item.value.shape(), scores.shape());
      });
      return bias ? add(scores, *bias) : scores;
    }
  }
}

/// The position of the first query among the keys: one number, or one for each index of the first dim.
Value GraphMaker::query_offset(const Value& q, const Value& k) {
  if (q.rank() > 2 && one_in(3)) return sub(iota(builder_, {q.shape()[0]}, 0, i64), 1.0);
  const auto rows = [&](const Value& x) { return dim_value(builder_, x.shape()[x.rank() - 2], i64); };
  return one_in(2) ? sub(rows(k), rows(q)) : sub(indices_.back(), 1.0);
}

/// A single op, whose first query may see no key.
Value GraphMaker::attention_composite(const Value& q, const Value& k, const Value& v, double scale) {
  if (one_in(3)) return attention(q, k, v, std::nullopt, scale, true, true, query_offset(q, k));
  const bool causal = one_in(2) && q.shape() == k.shape();
  if (!one_in(3)) return attention(q, k, v, std::nullopt, scale, causal);
  const Shape square{q.shape()[q.rank() - 2], k.shape()[k.rank() - 2]};
  const Value before = lt(iota(builder_, square, 1, i64), iota(builder_, square, 0, i64));
  return attention(q, k, v, before, scale, causal, true);
}

/// q [.., s, d], k [.., t, d], v [.., t, e] -> [.., s, e]
Value GraphMaker::attention_of_primitives(const Value& q, const Value& k, const Value& v) {
  const double scale = 1.0 / std::sqrt(2.0);
  if (one_in(4)) return attention_composite(q, k, v, scale);
  int masks = 0;
  Value scores =
      one_in(2) ? mul(matmul(q, transpose(k, -2, -1)), scale) : matmul(mul(q, scale), transpose(k, -2, -1));
  while (masks < 2 && one_in(2)) scores = scores_masked(scores, masks);
  Value weights = scores;
  switch (below(4)) {
    case 0: {
      const Value e = exp(sub(scores, max(scores, {-1}, true)));
      weights = div(e, sum(e, {-1}, true));
      break;
    }
    case 1: weights = exp(log_softmax(scores, -1)); break;
    default: weights = softmax(scores, -1);
  }
  if (one_in(5) && (real_ == f64 || real_ == f32)) weights = dropout(weights, *random_state_, 0.25);
  if (one_in(5)) pool_.push_back({weights, false});
  return matmul(weights, v);
}

/// Self- or cross-attention over [batch, sequence, width] with one or two heads; heads are split and merged in
/// several variants.
GraphMaker::Maybe GraphMaker::attention_block() {
  const auto sequence = [&](const Dim* batch) {
    return pick([&](const Item& item) {
      const Shape& shape = item.value.shape();
      return item.value.dtype() == real_ && shape.rank() == 3 && shape[2].is(width_) &&
             (!batch || shape[0] == *batch);
    });
  };
  const Maybe x = sequence(nullptr);
  if (!x) return std::nullopt;
  const Dim batch = x->shape()[0], s = x->shape()[1];
  const Maybe memory = sequence(&batch);
  const Value y = memory && one_in(3) ? *memory : *x;
  const Dim t = y.shape()[1];
  if (!small({batch, 2, s, t})) return std::nullopt;
  if (one_in(4)) return attention_of_primitives(*x, y, tanh(y));
  const auto heads = [&](const Value& value, const Dim& length) {
    const Shape split{batch, length, 2, part_};
    return transpose(one_in(2) ? reshape(value, split) : view(contiguous(value), split), 1, 2);
  };
  const Maybe weight =
      pick([&](const Item& i) { return i.value.dtype() == real_ && i.value.shape() == Shape{width_, width_}; });
  const Value q = weight && one_in(2) ? linear(*x, *weight) : *x;
  const Value result = attention_of_primitives(heads(q, s), heads(y, t), heads(tanh(y), t));  // [batch, 2, s, part]
  if (one_in(3)) return result;
  const Value back = transpose(result, 1, 2);
  return one_in(2) ? reshape(back, {batch, s, width_}) : view(contiguous(back), {batch, s, width_});
}

}  // namespace lathe::fuzz
