#include "frontend/ops/loops/recurrences.h"

#include <fmt/core.h>

#include <cmath>
#include <functional>
#include <numbers>
#include <string>
#include <vector>

#include "frontend/built.h"
#include "frontend/graph.h"
#include "frontend/ops/derived_ops.h"
#include "frontend/ops/loops/loops.h"
#include "frontend/ops/ops.h"
#include "ir/support/error.h"

namespace lathe {

namespace {

/// How a sequence is cut: `count` chunks of `size` steps, after `padding` steps that change nothing.
struct Chunks {
  std::int64_t size;
  Dim count;
  std::int64_t padding;
};

Chunks chunks_of(std::string_view op, const Dim& length, std::int64_t size, const Where& at) {
  if (size < 1)
    throw UserError(Location(at), op, fmt::format("the chunk is {}", size), "recurrence_chunk",
                    "give the number of steps of a chunk, such as 64");
  if (const auto known = length.value()) {
    const std::int64_t steps = *known;
    if (steps > 0 && steps <= size) return {.size = steps, .count = 1, .padding = 0};
    const std::int64_t count = (steps + size - 1) / size;
    return {.size = size, .count = count, .padding = count * size - steps};
  }
  const auto count = length.unnamed().divided_by(size);
  if (!count)
    throw UserError(
        Location(at), op,
        fmt::format("the length {} is not known to be a multiple of the chunk of {} steps", length.to_string(), size),
        "chunk_length", fmt::format("declare it as {} * n, or give a chunk that divides it", size));
  return {.size = size, .count = *count, .padding = 0};
}

/// [B, T, H, ..] -> [chunks, B, H, steps of a chunk, ..]
Tensor in_chunks(const Tensor& a, const Chunks& chunks) {
  const Tensor padded = chunks.padding > 0 ? pad(a, 1, 0, chunks.padding) : a;
  Shape split{a.size(0), chunks.count, chunks.size};
  std::vector<std::int64_t> order{1, 0, 3, 2};
  for (int d = 2; d < a.rank(); ++d) split.push_back(a.size(d));
  for (int d = 3; d < a.rank(); ++d) order.push_back(d + 1);
  return padded.reshape(split).permute(order);
}

/// The inverse of in_chunks(), without the padding.
Tensor from_chunks(const Tensor& a, const Chunks& chunks, const Dim& length) {
  const Tensor steps =
      a.permute({1, 0, 3, 2, 4}).reshape({a.size(1), chunks.count * Dim(chunks.size), a.size(2), a.size(4)});
  return chunks.padding > 0 ? steps.slice(1, 0, length) : steps;
}

/// scan() over the chunks. A single chunk needs no loop.
LoopResults over_chunks(const std::vector<Tensor>& carries, const std::vector<Tensor>& sequences,
                        const Chunks& chunks, const ScanBody& body, std::string_view name) {
  if (!chunks.count.is(1)) return scan(carries, sequences, body, {.name = name});
  std::vector<Tensor> elements;
  for (const Tensor& sequence : sequences) elements.push_back(sequence.select(0, 0));
  LoopStep step = body(carries, elements);
  for (Tensor& output : step.outputs) output = output.unsqueeze(0);
  return {.carries = step.carries, .outputs = step.outputs};
}

/// The dtype to compute in.
DType work_type(DType dtype) { return dtype == f64 ? f64 : f32; }

/// exp(log_decay), but 0 below 2^-100 in f32 and 2^-1000 in f64. Products with smaller factors are subnormal numbers,
/// which take x86 CPUs a hundred times as long, and are lost in every sum with a term above 1e-22.
Tensor decay_of(const Tensor& log_decay) {
  const double least = (log_decay.dtype() == f64 ? -1000 : -100) * std::numbers::ln2;
  return where(log_decay >= least, exp(log_decay), 0.0);
}

/// exp(sum of log_decay over the steps j + 1 .. i), 0 for j > i: total [.., C], the sums up to each step ->
/// [.., C, C]. The first tril keeps exp() from overflowing above the diagonal.
Tensor decay_between(const Tensor& total) { return tril(decay_of(tril(total.unsqueeze(-1) - total.unsqueeze(-2)))); }

/// The last step of each chunk: [.., C] -> [.., 1].
Tensor last_step(const Tensor& total) { return total.slice(-1, total.size(-1) - 1); }

/// Throws unless an operand of the caller has the wanted shape.
struct ShapeCheck {
  std::string_view op, label;
  Where at;

  void operator()(std::string_view name, const Tensor& a, const Shape& wanted, std::string_view rule) const {
    if (a.shape() == wanted) return;
    throw UserError(
        Location(at), op,
        fmt::format("{} is {}, expected the shape {}", name, a.value().type().to_string(), wanted.to_string()), label,
        rule);
  }
  void rank(std::string_view name, const Tensor& a, int rank, std::string_view rule) const {
    if (a.rank() == rank) return;
    throw UserError(Location(at), op, fmt::format("{} is {}", name, a.value().type().to_string()), label, rule);
  }
};

/// Throws unless all operands have the float dtype of the first one.
void check_dtypes(std::string_view op, const std::vector<std::pair<std::string_view, Tensor>>& operands,
                  const Where& at) {
  const DType dtype = operands[0].second.dtype();
  for (const auto& [name, operand] : operands)
    if (operand.dtype() != dtype || !is_float(dtype))
      throw UserError(
          Location(at), op,
          fmt::format("{} is {}, {} is {}", operands[0].first, operands[0].second.value().type().to_string(), name,
                      operand.value().type().to_string()),
          "dtype_match", "cast all operands to one float dtype");
}

Tensor first_state(const Tensor& given, const Shape& shape, const Tensor& like, const ShapeCheck& check) {
  if (given.is_empty()) return like.graph().zeros(shape, work_type(like.dtype()));
  check("initial", given, shape, "it is the state that a call before returned");
  return given.to(work_type(like.dtype()));
}

double scale_of(const DeltaRuleOptions& options, const Tensor& q, const Where& at) {
  if (options.scale) return *options.scale;
  const auto d = q.size(-1).value();
  if (!d)
    throw UserError(Location(at), "gated_delta_rule",
                    fmt::format("the size {} of a head is not known", q.size(-1).to_string()), "delta_rule_shape",
                    "give the scale");
  return 1 / std::sqrt(static_cast<double>(*d));
}

/// What a chunk of the delta rule adds without a state, and how the state enters, for all chunks: rows v - w S take
/// the part of v that is new.
struct DeltaUpdates {
  Tensor v;  ///< [chunks, B, H, C, d_v]
  Tensor w;  ///< [chunks, B, H, C, d_k]
};

/// Solves (1 + A) [v w] = [beta v, beta exp(total) k] with A[i, j] = beta[i] (k[i] k[j]) decay[i, j] for j < i: the
/// WY form of the product of the steps' Householder matrices (arXiv 2412.06464, section 3.3).
DeltaUpdates delta_updates(const Tensor& k, const Tensor& v, const Tensor& beta, const Tensor& total,
                           const Tensor& decay) {
  const Tensor weighted = k * beta;
  const Tensor new_v = v * beta, new_k = weighted * decay_of(total).unsqueeze(-1);
  if (k.size(-2).is(1)) return {.v = new_v, .w = new_k};
  const Tensor a = matmul(weighted, k.transpose(-1, -2)) * decay;
  const Tensor solved =
      solve_triangular(a, concat({new_v, new_k}, -1), {.upper = false, .transpose = false, .unit_diagonal = true});
  return {.v = solved.slice(-1, 0, v.size(-1)), .w = solved.slice(-1, v.size(-1))};
}

}  // namespace

RecurrenceResults gated_delta_rule(const Tensor& q, const Tensor& k, const Tensor& v, const Tensor& log_decay,
                                   const Tensor& beta, const DeltaRuleOptions& options, Where at) {
  const detail::Composed line("gated_delta_rule", at, {&q, &k, &v, &log_decay, &beta});
  const ShapeCheck check{"gated_delta_rule", "delta_rule_shape", at};
  check.rank("q", q, 4, "q and k are [B, T, H, d_k]");
  check.rank("v", v, 4, "v is [B, T, H, d_v]");
  check("k", k, q.shape(), "q and k are [B, T, H, d_k]");
  const Shape steps{q.size(0), q.size(1), q.size(2)};
  check("v", v, {steps[0], steps[1], steps[2], v.size(3)}, "v is [B, T, H, d_v]");
  check("log_decay", log_decay, steps, "log_decay is [B, T, H]");
  check("beta", beta, steps, "beta is [B, T, H]");
  check_dtypes("gated_delta_rule", {{"q", q}, {"k", k}, {"v", v}, {"log_decay", log_decay}, {"beta", beta}}, at);
  const Chunks chunks = chunks_of("gated_delta_rule", q.size(1), options.chunk, at);
  const auto chunked = [&](const Tensor& a) { return in_chunks(a.to(work_type(q.dtype())), chunks); };

  const Tensor keys = chunked(k), queries = chunked(q) * scale_of(options, q, at);
  const Tensor total = cumsum(chunked(log_decay), -1);  // [chunks, B, H, C]
  const Tensor decay = decay_between(total), last = last_step(total);
  const DeltaUpdates updates = delta_updates(keys, chunked(v), chunked(beta).unsqueeze(-1), total, decay);
  const Tensor kept = keys * decay_of(last - total).unsqueeze(-1);  // the keys as the end of the chunk sees them

  const Tensor first = first_state(options.initial, {q.size(0), q.size(2), q.size(3), v.size(3)}, q, check);
  const LoopResults loop = over_chunks(
      {first}, {updates.v, updates.w, kept, decay_of(last).unsqueeze(-1)}, chunks,
      [](std::span<const Tensor> state, std::span<const Tensor> chunk) {
        const Tensor v_new = chunk[0] - matmul(chunk[1], state[0]);
        const Tensor next = state[0] * chunk[3] + matmul(chunk[2].transpose(-1, -2), v_new);
        return LoopStep{{next}, {state[0], v_new}};
      },
      "delta_rule");
  const Tensor before = matmul(queries * decay_of(total).unsqueeze(-1), loop.outputs[0]);
  const Tensor within = matmul(matmul(queries, keys.transpose(-1, -2)) * decay, loop.outputs[1]);
  return {.output = from_chunks(before + within, chunks, q.size(1)).to(q.dtype()), .state = loop.carries[0]};
}

namespace {

/// a b for a [chunks, B, G, m, k], which all heads of a group share, and b [chunks, B, H, k, n] ->
/// [chunks, B, H, m, n].
Tensor grouped_product(const Tensor& a, const Tensor& b) {
  const Dim heads = b.size(2), groups = a.size(2), share = *heads.unnamed().divided_by(groups.unnamed());
  if (share.is(1)) return matmul(a, b);
  const Shape grouped{b.size(0), b.size(1), groups, share, b.size(3), b.size(4)};
  return matmul(a.unsqueeze(3), b.reshape(grouped)).reshape({b.size(0), b.size(1), heads, a.size(3), b.size(4)});
}

/// [chunks, B, G, C, C] -> [chunks, B, H, C, C]: that of its group for each head.
Tensor for_heads(const Tensor& a, const Dim& heads) {
  const Dim share = *heads.unnamed().divided_by(a.size(2).unnamed());
  if (share.is(1)) return a;
  const Shape wide{a.size(0), a.size(1), a.size(2), share, a.size(3), a.size(4)};
  return a.unsqueeze(3).expand(wide).reshape({a.size(0), a.size(1), heads, a.size(3), a.size(4)});
}

}  // namespace

RecurrenceResults state_space_dual(const Tensor& x, const Tensor& dt, const Tensor& a, const Tensor& b,
                                   const Tensor& c, const StateSpaceOptions& options, Where at) {
  const detail::Composed line("state_space_dual", at, {&x, &dt, &a, &b, &c});
  const ShapeCheck check{"state_space_dual", "state_space_shape", at};
  check.rank("x", x, 4, "x is [B, T, H, p]");
  check.rank("b", b, 4, "b and c are [B, T, G, n]");
  const Dim batch = x.size(0), length = x.size(1), heads = x.size(2);
  check("dt", dt, {batch, length, heads}, "dt is [B, T, H]");
  check("a", a, {heads}, "a is [H]");
  check("b", b, {batch, length, b.size(2), b.size(3)}, "b and c are [B, T, G, n]");
  check("c", c, b.shape(), "b and c are [B, T, G, n]");
  if (!heads.unnamed().divided_by(b.size(2).unnamed()))
    throw UserError(Location(at), "state_space_dual",
                    fmt::format("{} heads do not divide into {} groups", heads.to_string(), b.size(2).to_string()),
                    "state_space_shape", "the number of heads is a multiple of that of the groups of b and c");
  check_dtypes("state_space_dual", {{"x", x}, {"dt", dt}, {"a", a}, {"b", b}, {"c", c}}, at);
  const Chunks chunks = chunks_of("state_space_dual", length, options.chunk, at);
  const DType work = work_type(x.dtype());
  const auto chunked = [&](const Tensor& t) { return in_chunks(t.to(work), chunks); };

  const Tensor steps = chunked(dt);  // [chunks, B, H, C]
  const Tensor total = cumsum(steps * a.to(work).view({heads, 1}), -1);
  const Tensor last = last_step(total);
  // Decays are exp(t[i] - t[j]) = exp(t[i] - s[i]) exp(s[i] - s[j]) exp(s[j] - t[j]) for any constants s. With s = t
  // the outer factors are 1, and the gradients of t are dot products of rows: that of t[i] is y[i] dy[i], that of
  // t[j] is -values[j] dvalues[j]. So no gradient of the decays of all pairs is computed. Derivatives of any order
  // are exact.
  const Tensor fixed = detach(total), fixed_last = last_step(fixed);
  const auto one = [work](const Tensor& path) {
    return straight_through(path.graph().ones(path.shape(), work), path);
  };
  const Tensor factor = one(exp(total - fixed)).unsqueeze(-1), divisor = one(exp(fixed - total));
  const Tensor values = chunked(x) * (steps * divisor).unsqueeze(-1);  // [chunks, B, H, C, p]
  const Tensor rows = chunked(b), columns = chunked(c);                // [chunks, B, G, C, n]
  const Tensor weights = for_heads(matmul(columns, rows.transpose(-1, -2)), heads) * decay_between(fixed);
  const Tensor kept = values * decay_of(fixed_last - fixed).unsqueeze(-1);  // as the end of the chunk sees them
  const Tensor added = grouped_product(rows.transpose(-1, -2), kept);       // [chunks, B, H, n, p]

  const Tensor first = first_state(options.initial, {batch, heads, b.size(3), x.size(3)}, x, check);
  const LoopResults loop = over_chunks(
      {first}, {added, decay_of(fixed_last).unsqueeze(-1), exp(last - fixed_last).unsqueeze(-1)}, chunks,
      [one](std::span<const Tensor> state, std::span<const Tensor> chunk) {
        return LoopStep{{(state[0] * chunk[1] + chunk[0]) * one(chunk[2])}, {state[0]}};
      },
      "state_space");
  const Tensor before = grouped_product(columns, loop.outputs[0]) * decay_of(fixed).unsqueeze(-1);
  Tensor output = from_chunks((before + matmul(weights, values)) * factor, chunks, length);
  if (!options.skip.is_empty()) {
    check("skip", options.skip, {heads}, "skip is [H]");
    output = output + x.to(work) * options.skip.to(work).unsqueeze(-1);
  }
  return {.output = output.to(x.dtype()), .state = loop.carries[0]};
}

}  // namespace lathe
