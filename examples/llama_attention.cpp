// Llama's attention: grouped-query heads by expand and reshape, rotary embedding as complex multiplication, norms of
// q and k, an additive causal mask of -inf.
//
//   example_llama_attention [GOLDENS_FOLDER]

#include <fmt/core.h>

#include <cmath>

#include "examples/check_goldens.h"
#include "frontend/initial_values.h"
#include "frontend/models/attentions.h"
#include "frontend/nn/attention/positions.h"
#include "frontend/ops/ops.h"
#include "ir/tensor/explain/explain.h"

using namespace lathe;

namespace {

/// Checks that rotary embedding depends only on the distance of two positions: q_m . k_n is the same for (m, n) and
/// (m+5, n+5). Shows both layouts: pairs (x_2i, x_2i+1) as complex numbers, and halves (x_i, x_i+d/2).
bool rotation_is_relative() {
  Graph g{"rotary"};
  const Dim S{"S"}, D{"D", 8};
  const Tensor q = g.input("q", f64, {1, 1, S, D}), k = g.input("k", f64, {1, 1, S, D});
  const Tensor positions = g.arange(S, i64).unsqueeze(0);
  const Tensor phases = nn::rotary_phases(g, positions, D, f64);
  const auto tables = nn::rotary_tables(g, S, D, f64);
  const auto scores = [](const Tensor& a, const Tensor& b) { return matmul(a, b.transpose(-2, -1)); };
  g.output("complex", scores(nn::rotate_pairs(q, phases), nn::rotate_pairs(k, phases)));  // [1, 1, S, S]
  g.output("halves", scores(rope(q, tables.cos, tables.sin), rope(k, tables.cos, tables.sin)));
  Executable rotary = compile(g.finish());

  const std::int64_t length = 12;
  HostTensor same_q(f64, {1, 1, length, 8}), same_k(f64, {1, 1, length, 8});  // one vector at every position
  for (std::int64_t i = 0; i < same_q.numel(); ++i) {
    same_q.set(i, std::sin(static_cast<double>(i % 8)));
    same_k.set(i, std::cos(static_cast<double>(i % 8)));
  }
  bool good = true;
  for (const auto& [layout, score] : rotary.run({{"q", same_q}, {"k", same_k}})) {
    const double near = score.get(3 * length + 1), far = score.get(8 * length + 6), other = score.get(3 * length + 2);
    fmt::print("{:8} q_3.k_1 = {:.12f}  q_8.k_6 = {:.12f}  q_3.k_2 = {:.12f}\n", layout, near, far, other);
    good = good && std::abs(near - far) < 1e-12 && std::abs(near - other) > 1e-6;
  }
  return good;
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_example([&] {
    Graph g{"llama_attention"};
    models::llama_attention(g);
    fmt::print("{}\n", ir::explain(g.ir()));
    const bool good = rotation_is_relative();
    return (argc < 2 || examples::check_goldens(argv[1], {"llama_attention"})) && good;
  });
}
