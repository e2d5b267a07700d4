#include "ir/tensor/verifier.h"

#include <catch2/catch.hpp>

#include "tests/tensor/support.h"

using namespace lathe;
using namespace lathe::ir;
using Catch::Matchers::Contains;

namespace {

/// Returns the defect of a valid graph after `break_it`.
template <class Break>
std::string defect_after(Break&& break_it) {
  Graph graph = parse_graph(R"(
    graph @g(input %x: f32[B, n], input %y: f32[m, 4], parameter %w: f32[4], state %s: i64[]) {
      %1 = exp %x
      %2 = matmul %1, %y
      %3 = softmax %2 {dim=1}
      %4 = sum %3 {dims=[0]}
      output "y" %3
      update %w <- %4
    })");
  REQUIRE(find_defect(graph) == std::nullopt);
  break_it(graph);
  CHECK_THROWS_AS(verify(graph), InternalError);
  return find_defect(graph).value_or("sound");
}

// Indices of the values.
constexpr std::size_t x = 0, w = 2, exp_at = 4, matmul_at = 5, softmax_at = 6;

}  // namespace

TEST_CASE("the verifier names each kind of defect", "[verifier]") {
  CHECK_THAT(defect_after([](Graph& g) { g.nodes[exp_at].operands[0] = {5}; }),
             Contains("operand 5 does not stand before"));
  CHECK_THAT(defect_after([](Graph& g) { g.nodes[exp_at].operands[0] = {}; }), Contains("does not stand before"));
  CHECK_THAT(defect_after([](Graph& g) { g.nodes[exp_at].operands.clear(); }),
             Contains("0 operands are not its arity"));
  CHECK_THAT(defect_after([](Graph& g) { g.nodes[exp_at].op = nullptr; }), Contains("has no op"));
  CHECK_THAT(defect_after([](Graph& g) { g.nodes[softmax_at].attrs = {}; }), Contains("attribute dim is missing"));
  CHECK_THAT(defect_after([](Graph& g) { g.nodes[softmax_at].attrs.set("dim", 0.5); }), Contains("wrong kind"));
  CHECK_THAT(defect_after([](Graph& g) { g.nodes[softmax_at].attrs.set("odd", true); }),
             Contains("odd is not in the schema"));
  CHECK_THAT(defect_after([](Graph& g) { g.nodes[softmax_at].attrs.set("dim", std::int64_t{7}); }),
             Contains("its rule refuses it") && Contains("dim_range"));
  CHECK_THAT(defect_after([](Graph& g) { g.nodes[exp_at].type.dtype = f64; }), Contains("its type is f64[B, n]"));
  CHECK_THAT(defect_after([](Graph& g) { g.nodes[exp_at].type.strides.set(0, 3); }), Contains("but the rule gives"));
  CHECK_THAT(defect_after([](Graph& g) { g.checks.clear(); }), Contains("n == m") && Contains("is lost"));
  CHECK_THAT(defect_after([](Graph& g) { g.nodes[w].name = "x"; }), Contains("two arguments have this name"));
  CHECK_THAT(defect_after([](Graph& g) { g.nodes[w].name = ""; }), Contains("needs a name"));
  CHECK_THAT(defect_after([](Graph& g) { g.nodes[x].type.strides.set(1, 2); }),
             Contains("an argument is contiguous"));
}

TEST_CASE("the verifier checks outputs and updates", "[verifier]") {
  CHECK_THAT(defect_after([](Graph& g) { g.outputs[0].value = {99}; }), Contains("output \"y\" has no value"));
  CHECK_THAT(defect_after([](Graph& g) { g.outputs.push_back(g.outputs[0]); }), Contains("two outputs are named"));
  CHECK_THAT(defect_after([](Graph& g) { g.updates[0].value = {}; }), Contains("an update has no"));
  CHECK_THAT(defect_after([](Graph& g) { g.updates[0].state = {0}; }), Contains("neither parameter nor state"));
  CHECK_THAT(defect_after([](Graph& g) { g.updates[0].state = {3}; }), Contains("the update of s changes"));
  CHECK_THAT(defect_after([](Graph& g) { g.updates.push_back(g.updates[0]); }), Contains("w is updated twice"));
  CHECK_THAT(defect_after([](Graph& g) {
               g.nodes[matmul_at].name = "scores";
               g.nodes[matmul_at].operands.pop_back();
             }),
             Contains("(scores)"));
}
