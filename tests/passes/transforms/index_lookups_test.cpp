#include "passes/transforms/sizes/index_lookups.h"

#include <catch2/catch.hpp>

#include "ir/tensor/verifier.h"
#include "tests/passes/support.h"

/// Diagnosis of an out-of-range index: which index it was, where it came from, and what cannot be known.
using namespace lathe;
using namespace lathe::ir;
using namespace lathe::ir::test;
using Catch::Contains;

namespace {

/// Returns the diagnosis for a graph over these integers, its input %i.
std::string said_of(std::string_view program, const HostTensor& integers, const DimBindings& dims = {}) {
  const IndexLookups lookups = index_lookups(parse(program));
  verify(lookups.graph);
  return error_text([&] { throw_index_error(lookups, {{"i", integers}}, dims); });
}

HostTensor ints(std::vector<std::int64_t> shape, const std::vector<std::int64_t>& values, DType dtype = i64) {
  return HostTensor::from_ints(std::move(shape), values, dtype);
}

}  // namespace

TEST_CASE("an index is traced to the input through views and casts", "[index_lookups]") {
  const char* const program = R"(graph @g(input %t: f32[6, 2], input %i: i32[n, m + 1]) {
  %1 = slice %i {dim=1, start=1, stop=m + 1} loc("a.cpp":2)
  %2 = transpose %1 {dim0=0, dim1=1}
  %3 = reshape %2 {shape=[n*m]}
  %4 = cast %3 {dtype=i64}
  %5 = gather %t, %4 {dim=0} loc("a.cpp":5)
  output "y" %5
})";
  const DimBindings dims{{"n", 2}, {"m", 2}};
  CHECK(said_of(program, ints({2, 3}, {9, 0, 5, 9, 1, 2}, i32), dims) == "no error");
  CHECK(said_of(program, ints({2, 3}, {9, 0, 5, 9, 6, 2}, i32), dims) ==
        "a.cpp:5: gather: index 6 at [1, 1] of the input i is out of range for a dim of size 6  [index_range]\n"
        "  use 0 to 5");
  CHECK_THAT(said_of(program, ints({2, 3}, {9, 0, -1, 9, 6, 2}, i32), dims), Contains("index 6 at [1, 1]"));
}

TEST_CASE("a lookup inside a composite reports the op of the source program, and ignored targets are valid",
          "[index_lookups]") {
  const char* const counted = R"(graph @g(input %l: f32[n, 4], input %i: i64[n]) {
  %1 = cross_entropy %l, %i loc("a.cpp":3)
  output "y" %1
})";
  CHECK(said_of(counted, ints({3}, {0, -100, 7}), {{"n", 3}}) ==
        "a.cpp:3: cross_entropy: index -100 at [1] of the input i is out of range for the number of classes, 4  "
        "[index_range]\n  use 0 to 3, and ignore_index for targets that do not count");
  const char* const ignored = R"(graph @g(input %l: f32[n, 4], input %i: i64[n]) {
  %1 = cross_entropy %l, %i {ignore_index=-100} loc("a.cpp":3)
  output "y" %1
})";
  CHECK(said_of(ignored, ints({3}, {0, -100, 3}), {{"n", 3}}) == "no error");
  CHECK_THAT(said_of(ignored, ints({3}, {0, -100, 7}), {{"n", 3}}), Contains("index 7 at [2] of the input i"));
}

TEST_CASE("computed indices are reported by the op that computes them, the first lookup first", "[index_lookups]") {
  const char* const program = R"(graph @g(input %t: i64[4], input %i: i64[3]) {
  %1 = gather %t, %i {dim=0} loc("a.cpp":2)
  %2 = constant {dtype=i64, shape=[], values=[10]}
  %3 = add %i, %2 loc("a.cpp":4)
  %4 = gather %t, %3 {dim=0} loc("a.cpp":5)
  output "x" %1
  output "y" %4
})";
  CHECK_THAT(said_of(program, ints({3}, {0, 4, 1})), Contains("a.cpp:2: gather: index 4 at [1] of the input i"));
  CHECK_THAT(said_of(program, ints({3}, {0, 3, 1})),
             Contains("a.cpp:5: gather: index 10 at [0] of the add at a.cpp:4 is out of range for a dim of size 4"));
}

TEST_CASE("an operand of a composite keeps its name in the source program, or has none", "[index_lookups]") {
  for (const char* const name : {"", "name(\"classes\") "}) {
    const std::string program = R"(graph @g(input %l: f32[2, 4], input %i: i64[2]) {
  %1 = add %i, %i )" + std::string(name) +
                                R"(loc("a.cpp":2)
  %2 = cross_entropy %l, %1 loc("a.cpp":3)
  output "y" %2
})";
    CHECK_THAT(said_of(program, ints({2}, {1, 2})),
               Contains(*name ? "index 4 at [1] of classes is" : "index 4 at [1] of the add at a.cpp:2 is"));
  }
}

TEST_CASE("lookups that no result needs are not reported", "[index_lookups]") {
  const char* const program = R"(graph @g(input %t: f32[4], input %i: i64[3]) {
  %1 = gather %t, %i {dim=0}
  %2 = slice %i {dim=0, start=1, stop=3}
  %3 = gather %t, %2 {dim=0} loc("a.cpp":5)
  output "y" %3
})";
  CHECK(said_of(program, ints({3}, {9, 0, 1})) == "no error");
  CHECK_THAT(said_of(program, ints({3}, {9, 0, 8})), Contains("index 8 at [2] of the input i"));
}

TEST_CASE("indices that the run modifies or that are expensive to recompute are not diagnosed", "[index_lookups]") {
  const char* const one = R"(graph @g(input %t: f32[4], input %i: i64[2], state %s: i64[2]) {
  %1 = gather %t, %s {dim=0} loc("a.cpp":2)
  %2 = gather %t, %i {dim=0} loc("a.cpp":3)
  output "y" %1
  output "z" %2
  update %s <- %i
})";
  CHECK_THAT(said_of(one, ints({2}, {0, 5})), Contains("a.cpp:3: gather: index 5 at [1] of the input i"));
  CHECK(said_of(one, ints({2}, {0, 3})) ==
        "a.cpp:2: gather: an index is out of range for a dim of size 4  [index_range]\n  use 0 to 3");
  const char* const two = R"(graph @g(input %t: f32[4, 4], input %i: i64[2], parameter %w: f32[4, 4]) {
  %1 = matmul %t, %w
  %2 = argmax %1 {dim=1}
  %3 = gather %t, %2 {dim=0} loc("a.cpp":2)
  %4 = argmax %1 {dim=0}
  %5 = gather %t, %4 {dim=0} loc("a.cpp":3)
  output "y" %3
  output "z" %5
})";
  const IndexLookups lookups = index_lookups(parse(two));
  CHECK(lookups.lookups.size() == 2);
  CHECK(lookups.graph.nodes.empty());
  CHECK(said_of(two, ints({2}, {0, 5})) == "no error");
}
