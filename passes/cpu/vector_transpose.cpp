#include "passes/cpu/vector_transpose.h"

#include <algorithm>

#include "ir/support/error.h"

namespace lathe::cpu {

using kernel::Builder;
using kernel::Value;

Value pick_units(Builder& b, Value low, Value high, int unit, const std::vector<int>& units) {
  std::vector<int> lanes;
  for (const int u : units)
    for (int i = 0; i < unit; ++i) lanes.push_back(u * unit + i);
  return b.shuffle(low, high, std::move(lanes));
}

namespace {

/// Returns one half of every chunk of two vectors, interleaved in units of `unit` lanes (the CPU's unpack).
Value unpack(Builder& b, Value even, Value odd, int unit, int chunk, bool high) {
  const int n = even.type.lanes / unit, per_chunk = chunk / unit;
  std::vector<int> units;
  for (int c = 0; c < n; c += per_chunk) {
    for (int i = 0; i < per_chunk / 2; ++i) {
      const int at = c + i + (high ? per_chunk / 2 : 0);
      units.push_back(at);
      units.push_back(n + at);
    }
  }
  return pick_units(b, even, odd, unit, units);
}

/// Transposes squares inside the chunks: result[j] lane i of a chunk is group[i] lane j of it.
std::vector<Value> transpose_in_chunks(Builder& b, const std::vector<Value>& group, int unit, int chunk) {
  if (group.size() == 1) return group;
  std::vector<Value> result;
  for (const bool high : {false, true}) {
    std::vector<Value> half;
    for (std::size_t i = 0; i < group.size(); i += 2)
      half.push_back(unpack(b, group[i], group[i + 1], unit, chunk, high));
    for (const Value& v : transpose_in_chunks(b, half, 2 * unit, chunk)) result.push_back(v);
  }
  return result;
}

/// Transposes squares of chunks: result[c] chunk g is group[g] chunk c.
std::vector<Value> transpose_chunks(Builder& b, const std::vector<Value>& group, int chunk) {
  if (group.size() == 1) return group;
  const int chunks = group[0].type.lanes / chunk;
  std::vector<Value> result(group.size());
  for (int odd = 0; odd < 2; ++odd) {
    std::vector<int> units;
    for (int c = odd; c < 2 * chunks; c += 2) units.push_back(c);
    std::vector<Value> half;
    for (std::size_t i = 0; i < group.size(); i += 2)
      half.push_back(pick_units(b, group[i], group[i + 1], chunk, units));
    half = transpose_chunks(b, half, chunk);
    for (std::size_t i = 0; i < half.size(); ++i) result[2 * i + static_cast<std::size_t>(odd)] = half[i];
  }
  return result;
}

}  // namespace

std::vector<Value> transpose(Builder& b, const std::vector<Value>& rows, int unit) {
  const std::size_t n = rows.size();
  LATHE_ASSERT(n > 0 && static_cast<int>(n) * unit == rows[0].type.lanes);
  constexpr std::size_t shuffled_bytes = 16;  // elements move within 16 bytes in the shuffles of all vectors
  const std::size_t chunk =
      std::min(n, shuffled_bytes / size_in_bytes(rows[0].type.scalar) / static_cast<std::size_t>(unit));
  const int chunk_lanes = static_cast<int>(chunk) * unit;
  // columns[j][g]: chunk c holds column c * chunk + j of the rows g * chunk ..
  std::vector<std::vector<Value>> columns(chunk);
  for (std::size_t g = 0; g < n; g += chunk) {
    const std::vector<Value> group(rows.begin() + static_cast<std::ptrdiff_t>(g),
                                   rows.begin() + static_cast<std::ptrdiff_t>(g + chunk));
    const std::vector<Value> square = transpose_in_chunks(b, group, unit, chunk_lanes);
    for (std::size_t j = 0; j < chunk; ++j) columns[j].push_back(square[j]);
  }
  std::vector<Value> result(n);
  for (std::size_t j = 0; j < chunk; ++j) {
    const std::vector<Value> whole = transpose_chunks(b, columns[j], chunk_lanes);
    for (std::size_t c = 0; c < whole.size(); ++c) result[c * chunk + j] = whole[c];
  }
  return result;
}

std::vector<Value> transpose_rectangle(Builder& b, const std::vector<Value>& rows) {
  const std::size_t n = rows.size(), m = static_cast<std::size_t>(rows[0].type.lanes), side = std::min(n, m);
  std::vector<std::vector<Value>> parts(m);  // of each result, from the first lanes to the last
  for (std::size_t row = 0; row < n; row += side)
    for (std::size_t column = 0; column < m; column += side) {
      std::vector<Value> square;
      for (std::size_t i = 0; i < side; ++i)
        square.push_back(b.slice(rows[row + i], static_cast<int>(column), static_cast<int>(side)));
      square = transpose(b, square);
      for (std::size_t j = 0; j < side; ++j) parts[column + j].push_back(square[j]);
    }
  std::vector<Value> result;
  for (std::vector<Value>& whole : parts) {
    for (std::size_t count = whole.size(); count > 1; count /= 2)
      for (std::size_t i = 0; i < count / 2; ++i) whole[i] = b.concat(whole[2 * i], whole[2 * i + 1]);
    result.push_back(whole[0]);
  }
  return result;
}

}  // namespace lathe::cpu
