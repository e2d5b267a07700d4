#include "ir/tensor/explain/explain.h"

#include <catch2/catch.hpp>

#include "ir/tensor/analysis/layers.h"
#include "ir/tensor/builder.h"
#include "ir/tensor/op/op.h"
#include "tests/tensor/support.h"

using namespace lathe;
using namespace lathe::ir;
using Catch::Matchers::Contains;

namespace {

/// Returns the reason for the last value of a body, over several arguments.
std::string reason(const std::string& body) {
  const Graph graph = parse_graph(
      "graph @g(input %x: f32[B, n, d=6], input %y: f32[B, m, d=6], input %v: f32[d=6], input %i: i64[n], parameter "
      "%W: f32[out=4, d=6]) {\n" +
      body + "\n}");
  return shape_reason(graph, ValueId{static_cast<std::int32_t>(graph.size() - 1)});
}

/// Returns `count` identical layers, each in its own scope, between two other values.
std::string layered(int count) {
  std::string body = "%start = exp %x\n", last = "%start";
  for (int i = 0; i < count; ++i) {
    const std::string n = std::to_string(i), loc = " loc(\"m.cpp\":7 in \"stack." + n + ".inner\")\n";
    body += "%a" + n + " = sin " + last + loc + "%h" + n + " = constant {dtype=f32, shape=[], values=[0.5]}" + loc;
    body += "%b" + n + " = mul %a" + n + ", %h" + n + loc;
    last = "%b" + n;
  }
  return "graph @g(input %x: f32[n]) {\n" + body + "%end = exp " + last + "\noutput \"y\" %end\n}";
}

std::vector<ValueId> computed(const Graph& graph) {
  std::vector<ValueId> values;
  for (const ValueId id : all_values(graph))
    if (!graph[id].op->as<Argument>()) values.push_back(id);
  return values;
}

}  // namespace

TEST_CASE("reasons come from the IR", "[explain]") {
  CHECK(reason("%1 = transpose %x {dim0=0, dim1=1}") == "swaps B and n; no copy");
  CHECK(reason("%1 = permute %x {dims=[2, 0, 1]}") == "permutes the dims to [d=6, B, n]; no copy");
  CHECK(reason("%1 = view %x {shape=[B, n, h=2, d_k=3]}") == "splits d=6 into h=2 x d_k=3; no copy");
  CHECK(reason("%1 = view %x {shape=[B*n, 6]}") == "merges B x n into B*n; renames d=6 to 6; no copy");
  CHECK(reason("%1 = view %x {shape=[B, n, 1, d=6]}") == "inserts a dim of size 1; no copy");
  CHECK(reason("%1 = unsqueeze %x {dim=0}\n%2 = squeeze %1 {dim=0}") == "removes a dim of size 1; no copy");
  CHECK(reason("%1 = slice %x {dim=2, start=0, stop=3}") == "takes 3 of d=6 from index 0; no copy");
  CHECK(reason("%1 = slice %x {dim=2, start=1, stop=6, step=2}") == "takes 3 of d=6 from index 1, step 2; no copy");
  CHECK(reason("%1 = expand %v {shape=[n, d=6]}") == "repeats along n with stride 0; no copy");
  CHECK(reason("%1 = transpose %x {dim0=1, dim1=2}\n%2 = reshape %1 {shape=[B, 6*n]}") ==
        "merges d=6 x n into 6*n; copies, because the strides allow no view");
  CHECK(reason("%1 = reshape %x {shape=[B, 6*n]}") == "merges n x d=6 into 6*n; no copy");
  CHECK(reason("%1 = transpose %x {dim0=1, dim1=2}\n%2 = contiguous %1") == "copies into row-major order");
  CHECK(reason("%1 = sum %x {dims=[0, -1]}") == "sum over B and d=6, removed");
  CHECK(reason("%1 = max %x {dims=[2], keepdim=true}") == "max over d=6, kept with size 1");
  CHECK(reason("%1 = contract %x, %y {spec=\"bnd,bmd->bnm\"}") ==
        "sums over d=6; batch dim B; n from the left, m from the right");
  CHECK(reason("%1 = transpose %y {dim0=1, dim1=2}\n%2 = matmul %x, %1") ==
        "sums over d=6; batch dim B; n from the left, m from the right");
  CHECK(reason("%1 = linear %x, %W") == "maps the last dim d=6 to out=4");
  CHECK(reason("%1 = add %x, %v") == "elementwise; broadcasts [d=6]");
  CHECK(reason("%1 = cast %x {dtype=f64}") == "elementwise, f32 to f64");
  CHECK(reason("%1 = gather %v, %i") == "looks up slices of v: [n] replaces d=6");
  CHECK(reason("%1 = constant {dtype=f32, shape=[4, 2, 3], values=[0.5]}\n%2 = conv %x, %1 {stride=[2], low=[1], "
               "high=[0], dilation=[1]}") ==
        "sums over 2 channels and a kernel of 3; d=6 -> (6 + 1 - 3) / 2 + 1 = 3");
  CHECK(reason("%1 = unfold %x {dim=2, size=3, step=2}") == "2 windows of 3 along d=6, step 2; no copy");
  CHECK(reason("%1 = softmax %x {dim=-1}") == "normalizes along d=6; same shape");
  CHECK(reason("%1 = concat %x, %y {dim=1}") == "concatenates n and m");
  CHECK(reason("%1 = constant {dtype=i64, shape=[], values=[3]}") == "scalar 3");
}

TEST_CASE("every sample of every op has a reason", "[explain]") {
  for (const Op* record : all_ops()) {
    if (record->as<Argument>()) continue;
    for (const Sample& sample : record->samples.value()) {
      CAPTURE(record->name.value);
      GraphBuilder b("g");
      std::vector<Value> operands;
      for (const SampleOperand& operand : sample.operands) {
        std::vector<Dim> dims(operand.sizes.begin(), operand.sizes.end());
        operands.push_back(
            b.argument(ir::test::op("input"), "x" + std::to_string(operands.size()), operand.dtype, Shape(dims)));
      }
      const Value value = b.add(*record, operands, sample.attrs);
      CHECK_FALSE(shape_reason(b.graph(), value.id()).empty());
    }
  }
}

TEST_CASE("repeated layers are detected and printed once", "[explain]") {
  const Graph graph = parse_graph(layered(4));
  const std::vector<ValueId> values = computed(graph);
  const auto repeats = repeated_layers(graph, values);
  REQUIRE(repeats.size() == 1);
  CHECK(repeats[0].layers == std::vector<int>{0, 1, 2, 3});
  CHECK(to_string(repeats[0]) == "stack.0 .. stack.3");
  // The first layer creates the constant for all layers.
  CHECK(repeats[0].second - repeats[0].begin == 3);
  CHECK(repeats[0].end - repeats[0].second == 6);
  CHECK_THAT(print_short(graph), Contains("// stack.1 .. stack.3: as stack.0, 2 values each (%5 .. %10)"));
  CHECK_THAT(explain(graph), Contains("... stack.1 .. stack.3: as stack.0") && !Contains("%7"));
  CHECK_THAT(explain(graph, {.collapse_layers = false}), Contains("%7"));
}

TEST_CASE("layers that differ are all printed", "[explain]") {
  const auto repeats_of = [](std::string text, const std::string& from, const std::string& to) {
    text.replace(text.find(from), from.size(), to);
    const Graph graph = parse_graph(text);
    return repeated_layers(graph, computed(graph)).size();
  };
  CHECK(repeats_of(layered(2), "%a1 = sin", "%a1 = sin") == 1);
  CHECK(repeats_of(layered(2), "%a1 = sin", "%a1 = cos") == 0);
  CHECK(repeats_of(layered(2), "%h1 = constant {dtype=f32, shape=[], values=[0.5]}",
                   "%h1 = constant {dtype=f32, shape=[], values=[0.25]}") == 0);
  CHECK(repeats_of(layered(2), "mul %a1, %h1", "mul %h1, %a1") == 0);
}

TEST_CASE("explain names arguments, results and checks", "[explain]") {
  const std::string story = explain(parse_graph(ir::test::attention_text, "mha.lathe"));
  CHECK_THAT(story, Contains("2 inputs") && Contains("1 parameter (262144 numbers)") && Contains("11 values"));
  CHECK_THAT(story, Contains("%2 q") && Contains("mha.cpp:14 in encoder.0.self"));
  CHECK_THAT(story, Contains("output weights: %9 f32[nbatches, h=8, n_seq, n_seq]") && Contains("%step becomes %11"));
}
