#include "passes/compile/sum_kinds.h"

#include <catch2/catch.hpp>

#include "passes/fusion/prepare/prepare_for_fusion.h"
#include "passes/machines/cpu_machine.h"
#include "tests/passes/support.h"

using namespace lathe;

TEST_CASE("sum kinds: sums of a graph and of the bodies of its loops, by the kernels that compute them") {
  const auto kinds = [](const std::string& inner, const std::string& also) {
    const ir::Graph graph = prepare_for_fusion(ir::test::parse(
        "graph @g(input %h: f32[8, 8], input %x: f32[n, 8, 8]) {\n  body @step(state %h: f32[8, 8], input %x: f32[8, "
        "8]) {\n    %1 = contract %h, %x {spec=\"ij,jk->ik\"}\n" +
        inner + "\n  }\n  %1 = loop %h, %x {body=@step, sequences=1, trips=n}\n" + also + "  output \"y\" %1\n}"));
    return sum_kinds(graph, cpu_machine(unnamed_cpu()), {});
  };
  const std::string plain = "    update %h <- %1",
                    after = "  %2 = sum %x {dims=[1, 2], keepdim=false}\n  output \"s\" %2\n";
  CHECK(kinds(plain, "").size() == 1);
  CHECK(kinds(plain, after).size() > 1);
  // A product with another epilogue is the same kind, and one with a softmax is fused to an attention's.
  CHECK(kinds("    %2 = tanh %1\n    update %h <- %2", "") == kinds(plain, ""));
  CHECK(
      kinds(
          "    %2 = exp %x\n    %3 = contract %2, %h {spec=\"ij,jk->ik\"}\n    %4 = add %1, %3\n    update %h <- %4",
          "") != kinds(plain, ""));
}
