#include <catch2/catch.hpp>

#include "frontend/grad.h"
#include "frontend/graph.h"
#include "frontend/nn/attention/key_value_cache.h"
#include "frontend/ops/ops.h"
#include "runtime/compile.h"
#include "tests/attention/attention_check.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/compare_tensors.h"

/// Causal attention whose queries follow the keys of a cache.
using namespace lathe;
using namespace lathe::test;

namespace {

constexpr std::int64_t batches = 2, heads = 2, depth = 8, capacity = 23;
constexpr double scale = 0.35;

/// How the position of the first query is given.
enum class Offset { size, scalar, each };
constexpr Offset offsets[] = {Offset::size, Offset::scalar, Offset::each};

Causal causal_from(Offset offset, Graph& g, const Dim& batch, const Dim& size) {
  switch (offset) {
    case Offset::size: return Causal::from(size);
    case Offset::scalar: return Causal::from(g.input("past", i64, {}));
    case Offset::each: return Causal::from(g.input("past", i64, {batch}));
  }
  return false;
}

/// q, k and v [B, heads, T, depth] of new tokens; keys and values are appended to caches of `capacity` rows.
ir::Graph decoding(Offset offset, const Dim& T) {
  Graph g{"decoding"};
  const Dim B{"B", batches}, length{"length"};
  const auto input = [&](const char* name) { return g.input(name, f64, {B, heads, T, depth}); };
  const auto appended = [&](const char* name, const Tensor& x) {
    const Tensor state = g.state(name, f64, {B, heads, capacity, depth});
    const Tensor all = update_rows(state, g.arange(T, i64) + g.dim_value(length - T), x, 2);
    g.update(state, all);
    return all.slice(2, 0, length);  // [B, heads, length, depth]
  };
  const Tensor q = input("q"), k = appended("keys", input("k")), v = appended("values", input("v"));
  g.output("y", attention(q, k, v, {}, scale, causal_from(offset, g, B, length - T)));
  return g.finish();
}

/// All tokens at once.
ir::Graph whole() {
  Graph g{"whole"};
  const auto input = [&](const char* name) { return g.input(name, f64, {batches, heads, capacity, depth}); };
  const Tensor q = input("q"), k = input("k"), v = input("v");
  g.output("y", attention(q, k, v, {}, scale, true));
  return g.finish();
}

/// Returns rows first .. first + count - 1 of dim 2.
HostTensor rows_of(const HostTensor& x, std::int64_t first, std::int64_t count) {
  HostTensor found(f64, {batches, heads, count, depth});
  for (std::int64_t i = 0; i < found.numel(); ++i) {
    const std::int64_t row = i / depth % count, outer = i / depth / count;
    found.set(i, x.get((outer * capacity + first + row) * depth + i % depth));
  }
  return found;
}

/// y and the gradients of its sum of squares: new queries [N, h, S, d] over keys [N, h, S + 5, d].
ir::Graph trained(Offset offset, bool masked, std::optional<DType> dtype) {
  Graph g{"offset"};
  const Dim N{"N"}, h{"h", 2}, S{"S"}, d{"d", depth}, T = S + 5;
  const auto input = [&](const char* name, const Dim& rows) {
    return g.input(name, dtype.value_or(f32), {N, h, rows, d});
  };
  const Tensor q = input("q", S), k = input("k", T), v = input("v", T);
  const auto mask = masked ? std::optional(g.input("mask", boolean, {N, 1, 1, T})) : std::nullopt;
  const Tensor y = attention(q, k, v, mask, scale, causal_from(offset, g, N, T - S), masked);
  g.output("y", y);
  const auto gradients = grad((y * y).sum(), {q, k, v});
  for (std::size_t i = 0; i < gradients.size(); ++i) g.output("grad" + std::to_string(i), gradients[i]);
  return g.finish();
}

}  // namespace

TEST_CASE("decoding with a growing cache matches full causal attention row by row") {
  KernelStore store;
  const Tensors tokens = random_arguments(whole());
  const HostTensor expected = ir::interpret(whole(), tokens).at("y");
  for (const Offset offset : offsets)
    for (const AttentionFusion fusion : {AttentionFusion::required, AttentionFusion::off}) {
      INFO("offset " << static_cast<int>(offset) << ", fusion " << static_cast<int>(fusion));
      CompileOptions options{.threads = 2, .cache = &store, .lower = {.attention = fusion}};
      Executable some = compile(decoding(offset, Dim("T")), options);
      options.share_states = true;  // both append to the same cache
      Executable one = compile(decoding(offset, 1), options);
      for (const char* cache : {"keys", "values"})
        some.parameters().set(cache, HostTensor(f64, {batches, heads, capacity, depth}));
      one.use(some.parameters());
      std::int64_t past = 0;
      for (const std::int64_t T : {4, 1, 1, 9, 3, 1, 4}) {
        Tensors inputs;
        for (const char* name : {"q", "k", "v"}) inputs.emplace(name, rows_of(tokens.at(name), past, T));
        if (offset == Offset::scalar) inputs.emplace("past", HostTensor::from_ints({}, {past}));
        if (offset == Offset::each) inputs.emplace("past", HostTensor::from_ints({batches}, {past, past}));
        Executable& step = T == 1 ? one : some;
        CHECK(error_of(step.run(inputs, {{"length", past + T}}).at("y"), rows_of(expected, past, T)) <= 1e-12);
        past += T;
      }
      CHECK(past == capacity);
    }
}

TEST_CASE("attention with an offset matches unfused attention, forward and backward") {
  KernelStore store;
  for (const Offset offset : offsets)
    for (const bool masked : {false, true}) {
      INFO("offset " << static_cast<int>(offset) << ", masked " << masked);
      check_attention([&](std::optional<DType> dtype) { return trained(offset, masked, dtype); },
                      {.sizes = {{{"N", 2}, {"S", 1}}, {{"N", 3}, {"S", 33}}}, .store = &store});
    }
}

TEST_CASE("columns past the diagonal are skipped when the offset comes from a size, as with the nn cache") {
  constexpr std::int64_t rows = 100, columns = 300;
  const auto flops = [](const auto& masked) {
    Graph g{"skipped"};
    const Tensor q = g.input("q", f32, {2, rows, depth}), k = g.input("k", f32, {2, columns, depth});
    g.output("y", masked(g, q, k));
    const ir::Graph graph = g.finish();
    const ProgramInterpreter program(graph, cpu_with(256));
    const Tensors arguments = random_arguments(graph);
    CHECK(error_of(program.run(arguments).at("y"), ir::interpret(graph, arguments).at("y")) <= 1e-5);
    std::int64_t sum = 0;
    for (const Launch& launch : program.program().launches) sum += launch.flops.value().value();
    return sum;
  };
  const auto by = [&](const std::function<Causal(Graph&)>& causal) {
    return flops([&](Graph& g, auto& q, auto& k) { return attention(q, k, k, {}, scale, causal(g)); });
  };
  const std::int64_t all = 2 * 2 * 2 * rows * columns * depth;
  CHECK(by([](Graph&) { return Causal::from(columns - rows); }) == all / 2);
  CHECK(by([](Graph& g) { return Causal::from(g.input("past", i64, {})); }) == all);
  CHECK(flops([](Graph& g, auto& q, auto& k) {
          const nn::KeyValueCache cache{.length = columns};
          const Tensor hidden = ~cache.visible(g, rows, {});
          return matmul(softmax(matmul(q, k.transpose(-2, -1)).masked_fill(hidden, -1e9), -1), k);
        }) == all / 2);
}
