#include <catch2/catch.hpp>

#include "frontend/dsl.h"
#include "runtime/compile.h"
#include "tests/support/graphs/interpreted.h"
#include "tests/support/kernels/kernel_store.h"

/// Out-of-range indices in compiled code: an error at the op's line, as in the interpreter.
using namespace lathe;
using lathe::test::KernelStore;

namespace {

/// Compiles and runs a graph with one integer argument. Returns the label of the error, or "" if there is none. The
/// interpreter must agree, and the text must name the index of the input that is out of range.
std::string label_with(const ir::Graph& graph, const Tensors& others, const std::vector<std::int64_t>& shape,
                       const std::vector<std::int64_t>& indices, std::string_view says = "") {
  static KernelStore store;
  Tensors arguments = others;
  arguments.set("indices", HostTensor::from_ints(shape, indices));
  Executable exe = compile(graph, {.threads = 1, .cache = &store});
  std::string text;
  const std::string label = test::error_label([&] { exe.run(arguments); }, &text);
  CHECK(label == test::error_label([&] { ir::interpret(graph, arguments); }));
  INFO(text);
  CHECK(text.find(says) != std::string::npos);
  if (!says.empty()) CHECK(text.find("compiled_index_errors.cpp:") == 0);
  return label;
}

HostTensor numbers(std::vector<std::int64_t> shape) {
  HostTensor made(f32, std::move(shape));
  for (std::int64_t i = 0; i < made.numel(); ++i) made.set(i, 0.25 * static_cast<double>(i % 7));
  return made;
}

}  // namespace

TEST_CASE("take_along never reads another row") {
  Graph g("take");
  const Dim n("n"), k("k");
  const Tensor a = g.input("a", f32, {n, k});
  const Tensor taken = take_along(a, g.input("indices", i64, {n, Dim("m")}), 1);
  g.output("y", taken);
  g.output("da", grad((taken * taken).sum(), {a})[0]);
  const ir::Graph graph = g.finish();
  const Tensors others = {{"a", numbers({2, 20})}};
  CHECK(label_with(graph, others, {2, 3}, {0, 19, 5, 1, 0, 19}).empty());
  CHECK(label_with(graph, others, {2, 3}, {0, 20, 5, 1, 0, 19}, "index 20 at [0, 1] of the input indices") ==
        "index_range");  // the first index of the second row
  CHECK(label_with(graph, others, {2, 3}, {0, 19, 5, 1, -1, 19}, "index -1 at [1, 1] of the input indices") ==
        "index_range");  // the last index of the first row
}

TEST_CASE("an embedding, its gradient and a computed table check their indices") {
  Graph g("embedding");
  const Dim n("n");
  const Tensor ids = g.input("indices", i64, {n}), table = g.input("table", f32, {6, 20});
  const Tensor looked_up = embedding(ids, table);
  g.output("y", looked_up);
  g.output("dtable", grad((looked_up * looked_up).sum(), {table})[0]);
  g.output("made", gather(g.arange(6, f32) * 2.0, ids));
  g.output("same", gather(g.full({6}, 3.0, f32), ids));
  g.output("position", gather(g.arange(6, i64), ids));
  const ir::Graph graph = g.finish();
  const Tensors others = {{"table", numbers({6, 20})}};
  CHECK(label_with(graph, others, {3}, {0, 5, 5}).empty());
  CHECK(label_with(graph, others, {3}, {0, 6, 5}, "index 6 at [1] of the input indices") == "index_range");
  CHECK(label_with(graph, others, {3}, {-1, 0, 5}, "index -1 at [0] of the input indices") == "index_range");
}

TEST_CASE("the index of inlined scattered updates is checked") {
  Graph g("update");
  const Tensor ids = g.input("indices", i64, {Dim("n")}), table = g.input("table", f32, {20, 8});
  g.output("y", table - grad(exp(embedding(ids, table)).sum(), {table})[0]);
  const ir::Graph graph = g.finish();
  const Tensors others = {{"table", numbers({20, 8})}};
  CHECK(label_with(graph, others, {3}, {0, 19, 19}).empty());
  CHECK(label_with(graph, others, {3}, {0, 20, 19}, "index 20 at [1] of the input indices") == "index_range");
  CHECK(label_with(graph, others, {3}, {-1, 0, 19}, "index -1 at [0] of the input indices") == "index_range");
}

TEST_CASE("cross entropy checks its targets, except ignored ones") {
  for (const bool ignores : {false, true}) {
    Graph g("loss");
    const Tensor logits = g.input("logits", f32, {Dim("n"), 37});
    const auto ignored = ignores ? std::optional<std::int64_t>(-100) : std::nullopt;
    const Tensor loss = cross_entropy(logits, g.input("indices", i64, {Dim("n")}), ignored);
    g.output("loss", loss);
    g.output("dlogits", grad(loss, {logits})[0]);
    const ir::Graph graph = g.finish();
    const Tensors others = {{"logits", numbers({3, 37})}};
    CHECK(label_with(graph, others, {3}, {0, 36, 7}).empty());
    CHECK(label_with(graph, others, {3}, {0, 37, 7}, "cross_entropy: index 37 at [1] of the input indices") ==
          "index_range");
    CHECK(label_with(graph, others, {3}, {0, -1, 7}, "cross_entropy: index -1 at [1] of the input indices") ==
          "index_range");
    CHECK(label_with(graph, others, {3}, {0, -100, 7}, ignores ? "" : "ignore_index for targets") ==
          (ignores ? "" : "index_range"));
  }
}

TEST_CASE("if only the run knows the index, the error names its lookup") {
  Graph g("decode");
  const Tensor table = g.input("table", f32, {6, 8});
  const Tensor scores = matmul(g.input("x", f32, {3, 8}), table.transpose(0, 1));  // [3, 6]
  const int line = __LINE__ + 1;
  g.output("y", gather(table, scores.argmax(-1) + g.input("indices", i64, {3})));
  const std::string here = "compiled_index_errors.cpp:" + std::to_string(line) + ": gather: an index is out of range";
  const Tensors others = {{"table", numbers({6, 8})}, {"x", numbers({3, 8})}};
  CHECK(label_with(g.finish(), others, {3}, {0, 9, 0}, here) == "index_range");
}
