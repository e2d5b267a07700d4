#include "frontend/nn/attention/key_value_cache.h"

#include <fmt/core.h>

#include <algorithm>
#include <iterator>

#include "frontend/ops/ops.h"
#include "ir/support/error.h"

namespace lathe::nn {

namespace {

const Dim& window_rows() {
  static const Dim rows{"window_rows"};
  return rows;
}

}  // namespace

DType cache_dtype(const Tensor& x, std::optional<DType> dtype, Where at) {
  if (dtype && !is_float(*dtype))
    throw UserError(detail::line_of(x.builder(at), at), "cache",
                    fmt::format("keys and values are not kept in {}", name(*dtype)), "cache_dtype",
                    "give f64, f32, bf16 or f16");
  return dtype.value_or(x.dtype());
}

Tensor KeyValueCache::positions_of(const Graph& g, const Dim& T) const {
  return positions ? *positions : g.arange(T, i64) + g.dim_value(length - T);
}

Tensor KeyValueCache::append(std::string_view name, const Tensor& x, std::optional<std::int64_t> window) const {
  const Graph g = x.graph();
  const Dim rows = window ? window_rows() : capacity;
  *widest_window = std::max(*widest_window, window.value_or(0));
  const DType kept = cache_dtype(x, dtype);
  const Tensor state = g.state(name, kept, {x.size(0), x.size(1), rows, x.size(3)});
  Tensor at = positions_of(g, x.size(2));
  if (window) at = at % g.dim_value(rows);
  const Tensor before = parents ? gather(state, *parents, 0) : state;
  const Tensor updated = update_rows(before, at, x.to(kept), 2);  // [B, kv, rows, d]
  g.update(state, updated);
  return (window ? updated : updated.slice(2, 0, length)).to(x.dtype());
}

Tensor KeyValueCache::visible(const Graph& g, const Dim& T, std::optional<std::int64_t> window) const {
  Tensor query = positions_of(g, T).unsqueeze(-1);     // [T, 1] or [B, T, 1]
  if (positions) query = query.unsqueeze(1);           // [B, 1, T, 1]
  if (!window) return g.arange(length, i64) <= query;  // [T, length] or [B, 1, T, length]
  // Row r holds the last position p with p % R = r. If it is not written yet, p is r itself, which is after all
  // queries.
  const Tensor last = query.slice(-2, T - 1, T);            // [1, 1] or [B, 1, 1, 1]
  const Tensor back = last - g.arange(window_rows(), i64);  // [1, R] or [B, 1, 1, R]
  const Tensor held = last - back % g.dim_value(window_rows());
  return (held <= query) & (held > query - *window);
}

bool is_cache_state(std::string_view name) {
  constexpr std::string_view ends[] = {".key_cache", ".value_cache", ".source_keys", ".source_values"};
  return std::any_of(std::begin(ends), std::end(ends), [&](std::string_view end) { return name.ends_with(end); });
}

}  // namespace lathe::nn
