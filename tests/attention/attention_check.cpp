#include "tests/attention/attention_check.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "runtime/compile.h"
#include "tests/support/programs/run_with_states.h"
#include "tests/support/tensors/compare_tensors.h"

namespace lathe::test {

namespace {

/// Short vectors give smaller kernels, which compile faster.
Executable compiled(const ir::Graph& graph, AttentionFusion attention, const AttentionCheck& check) {
  const Target target = check.thorough ? Target::host() : Target::named("host,+prefer-128-bit");
  return compile(graph, {.target = target, .threads = 2, .cache = check.store, .lower = {.attention = attention}});
}

HostTensor widened(const HostTensor& t) { return is_float(t.dtype()) ? t.cast(f64) : t; }

/// Half an ulp at 1 of the narrowest float type in the graph.
double resolution(const ir::Graph& graph) {
  double coarsest = 0x1p-53;
  for (const ir::Node& node : graph.nodes) {
    const DType dtype = node.type.dtype;
    coarsest = std::max(coarsest, dtype == bf16 ? 0x1p-9 : dtype == f16 ? 0x1p-12 : dtype == f32 ? 0x1p-24 : 0);
  }
  return coarsest;
}

void check_f64(const ir::Graph& graph, const AttentionCheck& check) {
  Executable fused = compiled(graph, AttentionFusion::required, check);
  for (const DimBindings& dims : check.sizes) {
    INFO("f64 " << to_string(dims));
    const Tensors arguments = random_arguments(graph, dims);
    const Tensors expected = ir::interpret(graph, arguments), found = run_with_states(fused, arguments);
    for (const auto& [name, value] : expected) {
      INFO(name);
      CHECK(error_of(found.at(name), value) <= 1e-11);
    }
  }
}

/// A single number, a sum of many terms that cancel, can be exact by luck, also in unfused code. Compares the root
/// mean square of the errors over many random arguments.
void check_number(const ir::Graph& graph, const std::string& name, const DimBindings& dims,
                  std::pair<Executable&, Executable&> fused_and_plain, double floor) {
  constexpr unsigned draws = 32;
  double fused = 0, plain = 0;
  for (unsigned seed = 1; seed <= draws; ++seed) {
    const Tensors arguments = random_arguments(graph, dims, seed);
    const HostTensor expected = widened(ir::interpret(graph, arguments, {.round = false}).at(name));
    const auto squared_error = [&](Executable& executable) {
      return std::pow(error_of(widened(run_with_states(executable, arguments).at(name)), expected), 2);
    };
    fused += squared_error(fused_and_plain.first) / draws;
    plain += squared_error(fused_and_plain.second) / draws;
  }
  CHECK(std::sqrt(fused) <= 2 * std::sqrt(plain) + floor);
}

}  // namespace

void check_attention(const std::function<ir::Graph(std::optional<DType>)>& graph, const AttentionCheck& check) {
  if (check.thorough) check_f64(graph(f64), check);
  const ir::Graph own = graph({});
  const double floor = check.floor * resolution(own) / 0x1p-24;
  Executable fused = compiled(own, AttentionFusion::required, check);
  std::optional<Executable> plain;
  if (check.thorough) plain.emplace(compiled(own, AttentionFusion::off, check));
  for (const DimBindings& dims : check.sizes) {
    INFO(to_string(dims));
    const Tensors arguments = random_arguments(own, dims);
    const Tensors expected = ir::interpret(own, arguments, {.round = false});
    const Tensors by_fused = run_with_states(fused, arguments);
    const Tensors by_plain = plain ? run_with_states(*plain, arguments) : ir::interpret(own, arguments);
    for (const auto& [name, value] : expected) {
      INFO(name);
      const auto limit = [&](const Tensors& plainly) {
        return 2 * error_of(widened(plainly.at(name)), widened(value)) + floor;
      };
      const double error = error_of(widened(by_fused.at(name)), widened(value));
      if (error <= limit(by_plain)) continue;
      // The rounding interpreter sums in another order, so compare with the unfused code.
      if (!plain) plain.emplace(compiled(own, AttentionFusion::off, check));
      if (value.numel() == 1)
        check_number(own, name, dims, {fused, *plain}, floor);
      else
        CHECK(error <= limit(run_with_states(*plain, arguments)));
    }
  }
}

}  // namespace lathe::test
