#include <catch2/catch.hpp>

#include "tests/attention/attention_check.h"
#include "tests/attention/attention_search.h"
#include "tests/attention/variants/variant.h"
#include "tests/support/kernels/kernel_store.h"

using namespace lathe;
using namespace lathe::test;

namespace {

/// Whether the graph itself needs a value over rows and columns: a gradient of a bias (shared_bias_test.cpp covers
/// one that batches share), or scores that are returned and are in merged batches or needed by a gradient.
bool asks_for_squares(const PatternVariant& s) {
  const bool of_bias = s.mask == Mask::bias || s.mask == Mask::bias_shared || s.mask == Mask::bias_then_mask;
  const bool needs_them = s.layout == Layout::batched || s.scale == Scale::by_parameter;
  return of_bias || (s.extra == Extra::scores_returned && needs_them);
}

std::vector<DimBindings> sizes_for(std::size_t number) {
  std::vector<DimBindings> sizes = {{{"N", 2}, {"S", 5}, {"T", 7}}, {{"N", 1}, {"S", 17}, {"T", 3}}};
  if (number % 8 == 0) sizes.push_back({{"N", 1}, {"S", 1}, {"T", 1}});
  if (number % 40 == 0) sizes.push_back({{"N", 1}, {"S", 65}, {"T", 130}});
  if (number % 160 == 0) sizes.push_back({{"N", 1}, {"S", 130}, {"T", 65}});
  return sizes;
}

/// Checks every fourth variant from `first` on.
void check_values(std::size_t first) {
  KernelStore store;
  const auto all = variants();
  for (std::size_t i = first; i < all.size(); i += 4) {
    INFO(all[i].name());
    check_attention([&](std::optional<DType> dtype) { return build(all[i], dtype); },
                    {.sizes = sizes_for(i), .store = &store, .thorough = i % 5 == 0});
  }
}

}  // namespace

TEST_CASE("every variant of attention is fused, forward and backward") {
  const auto all = variants();
  CHECK(all.size() >= 300);
  for (const PatternVariant& variant : all) {
    INFO(variant.name());
    const ir::Graph graph = build(variant);
    CHECK(unfused(graph) == "");
    if (!asks_for_squares(variant))
      CHECK(square_temporaries(graph, {{"N", 1}, {"S", 997}, {"T", 997}}, 997 * 997) == "");
  }
}

TEST_CASE("attention variants match the interpreter, 1 of 4") { check_values(0); }
TEST_CASE("attention variants match the interpreter, 2 of 4") { check_values(1); }
TEST_CASE("attention variants match the interpreter, 3 of 4") { check_values(2); }
TEST_CASE("attention variants match the interpreter, 4 of 4") { check_values(3); }
