#include <catch2/catch.hpp>

#include "passes/lowering/lower.h"
#include "passes/pipeline.h"
#include "tests/runtime/check_compiled.h"
#include "tests/support/memory_store.h"

/// Values written over others: what a kernel reads must be read before it is gone.
using namespace lathe;
using lathe::test::check_compiled;
using lathe::test::parse;

namespace {

void check(std::string_view text, const std::vector<DimBindings>& sizes) {
  static lathe::test::MemoryStore store;
  check_compiled(parse(text), {.sizes = sizes, .store = &store});
}

int copies(std::string_view text) {
  const Program program = lower(ir::run_pipeline(parse(text), ir::default_pipeline()).graph, {512});
  int count = 0;
  for (const Launch& launch : program.launches) count += launch.names[0].starts_with("copy ") ? 1 : 0;
  return count;
}

const std::vector<DimBindings> n_sizes = {{{"n", 5}}, {{"n", 1}}, {{"n", 0}}, {{"n", 37}}};

}  // namespace

TEST_CASE("in place: a state takes a value that does not look at it, and another result does") {
  check(R"(graph @g(input %x: f64[n, 3], state %m: f64[n, 3]) {
  %1 = exp %x
  %2 = add %m, %1
  update %m <- %1
  output "y" %2
})",
        n_sizes);
  check(R"(graph @g(input %x: f64[n, 6], state %m: f64[n], state %w: f64[6, 6], state %u: f64[n, 6]) {
  %1 = sum %x {dims=[1]}
  %2 = add %m, %1
  %3 = contract %x, %w {spec="nk,kj->nj"}
  %4 = add %u, %3
  update %m <- %1
  update %u <- %3
  output "y" %2
  output "z" %4
})",
        n_sizes);
}

TEST_CASE("in place: a product whose operands are computed where they are read") {
  constexpr std::string_view elsewhere = R"(graph @g(input %x: f64[n, 5], input %y: f64[n, 6], state %w: f64[5, 6]) {
  %1 = add %y, %y
  %2 = contract %x, %1 {spec="nk,nj->kj"}
  %3 = sub %w, %2
  update %w <- %3
})";
  check(elsewhere, n_sizes);
  CHECK(copies(elsewhere) == 0);
  constexpr std::string_view own = R"(graph @g(input %x: f64[5, 6], state %w: f64[6, 6]) {
  %1 = neg %w
  %2 = contract %x, %1 {spec="nk,kj->nj"}
  %3 = contract %1, %1 {spec="ik,kj->ij"}
  %4 = sub %w, %3
  output "y" %2
  update %w <- %4
})";
  check(own, {});
  CHECK(copies(own) == 1);
}
