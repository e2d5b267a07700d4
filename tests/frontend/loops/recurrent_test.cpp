#include <catch2/catch.hpp>

#include <cmath>

#include "ir/support/error.h"
#include "ir/tensor/interpret/interpreter.h"
#include "passes/compile/stage.h"
#include "passes/pipeline/pipeline.h"
#include "runtime/files/safetensors/safetensors.h"
#include "tests/support/graphs/error_of_graph.h"
#include "tests/support/graphs/recurrent_cases.h"
#include "tests/support/texts/test_data.h"

/// Recurrent layers and recurrences in chunks: against PyTorch (make_cases.py), against a loop over the steps, and
/// their errors.
using namespace lathe;
using Catch::Contains;
using lathe::test::LoopCase;
using lathe::test::LoopRunner;

namespace {

double largest_difference(const HostTensor& found, const HostTensor& wanted) {
  REQUIRE(found.shape() == wanted.shape());
  double most = 0;
  for (std::int64_t i = 0; i < found.numel(); ++i) {
    const double difference = std::abs(found.get(i) - wanted.get(i)) / (1 + std::abs(wanted.get(i)));
    most = std::isnan(difference) ? difference : std::max(most, difference);
    if (std::isnan(most)) break;
  }
  return most;
}

/// The gated delta rule as a loop over the steps, of the operands of test::run_delta_rule().
std::vector<Tensor> delta_rule_by_steps(const std::vector<Tensor>& t) {
  const auto by_step = [](const Tensor& a) { return a.transpose(0, 1); };  // [T, B, H, ..]
  const Tensor scaled = t[0] * (1 / std::sqrt(static_cast<double>(t[0].size(-1).number())));
  const LoopResults results =
      scan({t[5]}, {by_step(scaled), by_step(t[1]), by_step(t[2]), by_step(-softplus(t[3])), by_step(sigmoid(t[4]))},
           [](std::span<const Tensor> state, std::span<const Tensor> x) {
             const Tensor decayed = state[0] * exp(x[3]).unsqueeze(-1).unsqueeze(-1);
             const Tensor read = (decayed * x[1].unsqueeze(-1)).sum(-2);
             const Tensor change = x[4].unsqueeze(-1) * (x[2] - read);
             const Tensor next = decayed + x[1].unsqueeze(-1) * change.unsqueeze(-2);
             return LoopStep{{next}, {(next * x[0].unsqueeze(-1)).sum(-2)}};
           });
  return {results.outputs[0].transpose(0, 1), results.carries[0]};
}

/// state_space_dual() as a loop over the steps, of the operands of test::run_state_space().
std::vector<Tensor> state_space_by_steps(const std::vector<Tensor>& t) {
  const auto by_step = [](const Tensor& a) { return a.transpose(0, 1); };
  const std::int64_t share = t[0].size(2).number() / t[3].size(2).number();
  const Tensor dt = softplus(t[1]), b = t[3].repeat_interleave(share, 2), c = t[4].repeat_interleave(share, 2);
  const Tensor values = t[0] * dt.unsqueeze(-1), decays = exp(dt * -exp(t[2]));
  const LoopResults results = scan({t[6]}, {by_step(values), by_step(decays), by_step(b), by_step(c)},
                                   [](std::span<const Tensor> state, std::span<const Tensor> x) {
                                     const Tensor next = state[0] * x[1].unsqueeze(-1).unsqueeze(-1) +
                                                         x[2].unsqueeze(-1) * x[0].unsqueeze(-2);
                                     return LoopStep{{next}, {(next * x[3].unsqueeze(-1)).sum(-2)}};
                                   });
  return {results.outputs[0].transpose(0, 1) + t[0] * t[5].unsqueeze(-1), results.carries[0]};
}

using Ts = std::vector<Tensor>;
using Shapes = std::vector<std::vector<std::int64_t>>;

Shapes delta_shapes(std::int64_t length) {
  return {{2, length, 3, 5}, {2, length, 3, 5}, {2, length, 3, 4}, {2, length, 3}, {2, length, 3}, {2, 3, 5, 4}};
}
Shapes space_shapes(std::int64_t length) {
  return {{2, length, 4, 3}, {2, length, 4}, {4}, {2, length, 2, 5}, {2, length, 2, 5}, {4}, {2, 4, 5, 3}};
}

void check_equal_cases(const LoopCase& found, const LoopCase& wanted, bool second = false) {
  const Tensors arguments = wanted.arguments(f64);
  const Tensors results = ir::interpret(found.graph(f64, false, second), arguments);
  for (const auto& [name, tensor] : ir::interpret(wanted.graph(f64, false, second), arguments)) {
    CAPTURE(name);
    CHECK(largest_difference(results.at(name), tensor) < 1e-10);
  }
}

}  // namespace

TEST_CASE("recurrent layers and recurrences equal PyTorch, with gradients", "[recurrent]") {
  const auto file = SafetensorsFile::open(test::test_data("frontend/loops/recurrent_cases.safetensors"));
  for (const LoopCase& each : test::recurrent_cases()) {
    CAPTURE(each.name);
    const Tensors arguments = each.arguments(f64);
    const ir::Graph graph = each.graph(f64, false);
    const Tensors results = ir::interpret(graph, arguments);
    const Tensors simpler = ir::interpret(ir::run_pipeline(graph, ir::default_pipeline()).graph, arguments);
    std::size_t compared = 0;
    for (const auto& [name, tensor] : results) {
      CAPTURE(name);
      const std::string key = name.ends_with(".grad") ? name.substr(0, name.size() - 5) : name;
      CHECK(largest_difference(tensor, file.tensor(each.name + "." + key)) < 1e-10);
      CHECK(largest_difference(simpler.at(name), tensor) < 1e-10);
      ++compared;
    }
    CHECK(compared > each.operands.size());
  }
}

TEST_CASE("recurrences in chunks equal a loop over the steps, with gradients", "[recurrent]") {
  for (const std::int64_t length : {0, 1, 7, 8, 19})
    for (const std::int64_t chunk : {1, 4, 8}) {
      CAPTURE(length, chunk);
      check_equal_cases(
          {"delta", delta_shapes(length),
           [&](const LoopRunner&, const Ts& t) { return test::run_delta_rule(t, chunk); }},
          {"delta", delta_shapes(length), [](const LoopRunner&, const Ts& t) { return delta_rule_by_steps(t); }});
      check_equal_cases(
          {"space", space_shapes(length),
           [&](const LoopRunner&, const Ts& t) { return test::run_state_space(t, chunk); }},
          {"space", space_shapes(length), [](const LoopRunner&, const Ts& t) { return state_space_by_steps(t); }});
    }
}

TEST_CASE("second derivatives of recurrences in chunks equal those of a loop over the steps", "[recurrent]") {
  check_equal_cases(
      {"delta", delta_shapes(7), [](const LoopRunner&, const Ts& t) { return test::run_delta_rule(t, 4); }},
      {"delta", delta_shapes(7), [](const LoopRunner&, const Ts& t) { return delta_rule_by_steps(t); }}, true);
  check_equal_cases(
      {"space", space_shapes(7), [](const LoopRunner&, const Ts& t) { return test::run_state_space(t, 4); }},
      {"space", space_shapes(7), [](const LoopRunner&, const Ts& t) { return state_space_by_steps(t); }}, true);
}

TEST_CASE("recurrences in chunks whose decays underflow equal a loop over the steps", "[recurrent]") {
  const auto strong = [](Ts t, std::size_t gate) {
    t[gate] = t[gate] * 300;
    return t;
  };
  check_equal_cases(
      {"delta", delta_shapes(19),
       [&](const LoopRunner&, const Ts& t) { return test::run_delta_rule(strong(t, 3), 8); }},
      {"delta", delta_shapes(19), [&](const LoopRunner&, const Ts& t) { return delta_rule_by_steps(strong(t, 3)); }});
  check_equal_cases({"space", space_shapes(19),
                     [&](const LoopRunner&, const Ts& t) { return test::run_state_space(strong(t, 1), 8); }},
                    {"space", space_shapes(19),
                     [&](const LoopRunner&, const Ts& t) { return state_space_by_steps(strong(t, 1)); }});
}

TEST_CASE("layers with a recurrence continue from their state", "[recurrent]") {
  Graph g{"steps"};
  const nn::Module root("Module", f64);
  const nn::Mamba2 mamba(root, "mamba", 6, {.heads = 4, .head_size = 3, .state_size = 5, .groups = 2, .chunk = 4});
  const nn::GatedDeltaNet delta(root, "delta", 6,
                                {.key_heads = 2, .value_heads = 4, .key_size = 3, .value_size = 2, .chunk = 4});
  const Tensor x = g.input("x", f64, {2, 9, 6});
  const auto check = [&](const std::string& name, const auto& layer) {
    nn::MixerState state;
    Ts parts;
    // Two steps, one, one, and the other five.
    for (const auto& [from, to] : {std::pair(0, 2), std::pair(2, 3), std::pair(3, 4), std::pair(4, 9)}) {
      const nn::MixerResults results = layer.run(x.slice(1, from, to), state);
      parts.push_back(results.output);
      state = results.state;
    }
    const nn::MixerResults whole = layer.run(x);
    g.output(name, whole.output);
    g.output(name + ".parts", concat(parts, 1));
    g.output(name + ".conv", whole.state.conv);
    g.output(name + ".conv.parts", state.conv);
    g.output(name + ".state", whole.state.recurrence);
    g.output(name + ".state.parts", state.recurrence);
  };
  check("mamba", mamba);
  check("delta", delta);
  Tensors arguments = root.initial_values(3);
  HostTensor values(f64, {2, 9, 6});
  for (std::int64_t i = 0; i < values.numel(); ++i) values.set(i, std::sin(0.7 * static_cast<double>(i)));
  arguments.set("x", std::move(values));
  const Tensors results = ir::interpret(g.finish(), arguments);
  for (const std::string name : {"mamba", "mamba.conv", "mamba.state", "delta", "delta.conv", "delta.state"}) {
    CAPTURE(name);
    CHECK(largest_difference(results.at(name + ".parts"), results.at(name)) < 1e-12);
  }
}

TEST_CASE("recurrent layers run in bf16 with parameters in f32", "[recurrent]") {
  const nn::Module root;
  const nn::Lstm lstm(root, "lstm", 6, 5, {.layers = 2, .bidirectional = true});
  const nn::Gru gru(root, "gru", 6, 5);
  const nn::Mamba2 mamba(root, "mamba", 6, {.heads = 4, .head_size = 3, .state_size = 5, .groups = 2, .chunk = 4});
  const nn::GatedDeltaNet delta(root, "delta", 6,
                                {.key_heads = 2, .value_heads = 4, .key_size = 3, .value_size = 2, .chunk = 4});
  const auto results = [&](DType dtype) {
    Graph g{"bf16"};
    const Tensor x = g.input("x", f32, {2, 9, 6}).to(dtype);
    g.output("lstm", lstm(x));
    g.output("gru", gru(x));
    g.output("mamba", mamba(x));
    const nn::MixerResults last = delta.run(x);
    g.output("delta", last.output);
    CHECK(last.output.dtype() == dtype);
    CHECK(last.state.recurrence.dtype() == f32);
    Tensors arguments = root.initial_values(3);
    HostTensor values(f32, {2, 9, 6});
    for (std::int64_t i = 0; i < values.numel(); ++i) values.set(i, std::sin(0.7 * static_cast<double>(i)));
    arguments.set("x", std::move(values));
    return ir::interpret(g.finish(), arguments);
  };
  const Tensors wide = results(f32), narrow = results(bf16);
  for (const auto& [name, tensor] : wide) {
    CAPTURE(name);
    CHECK(largest_difference(narrow.at(name), tensor) < 0.05);
  }
}

TEST_CASE("recurrences of an unknown length are chunks of a known one", "[recurrent]") {
  const Dim B{"B"}, n{"n"}, T{"T"};
  const auto delta = [&](Graph& g, const Dim& length) {
    const Tensor q = g.input("q", f32, {B, length, 2, 8}), gate = g.input("gate", f32, {B, length, 2});
    return gated_delta_rule(q, q, g.input("v", f32, {B, length, 2, 4}), gate, gate, {.chunk = 16});
  };
  Graph g{"chunks"};
  const RecurrenceResults results = delta(g, Dim(16) * n);
  CHECK(results.output.shape().to_string() == "[B, 16*n, 2, 4]");
  CHECK(results.state.shape().to_string() == "[B, 2, 8, 4]");
  CHECK_THAT(test::error_of_graph([&](Graph& wrong) { delta(wrong, T); }),
             Contains("the length T is not known to be a multiple of the chunk of 16 steps  [chunk_length]") &&
                 Contains("declare it as 16 * n") && Contains("recurrent_test.cpp"));
  CHECK_THAT(test::error_of_graph([&](Graph& wrong) {
               const Tensor x = wrong.input("x", f32, {B, T, 2, 8}), dt = wrong.input("dt", f32, {B, T, 2});
               state_space_dual(x, dt, wrong.input("a", f32, {2}), x, x);
             }),
             Contains("the length T is not known to be a multiple of the chunk of 64 steps  [chunk_length]"));
}

TEST_CASE("errors of recurrences name the operands", "[recurrent]") {
  const auto q = [](Graph& g) { return g.zeros({2, 8, 3, 4}, f32); };
  const auto gate = [](Graph& g) { return g.zeros({2, 8, 3}, f32); };
  CHECK_THAT(test::error_of_graph(
                 [&](Graph& g) { gated_delta_rule(q(g), g.input("k", f32, {2, 8, 3, 5}), q(g), gate(g), gate(g)); }),
             Contains("k is f32[2, 8, 3, 5], expected the shape [2, 8, 3, 4]  [delta_rule_shape]"));
  CHECK_THAT(test::error_of_graph(
                 [&](Graph& g) { gated_delta_rule(q(g), q(g), q(g), g.input("decay", f64, {2, 8, 3}), gate(g)); }),
             Contains("log_decay is f64[2, 8, 3]  [dtype_match]"));
  CHECK_THAT(
      test::error_of_graph([&](Graph& g) { gated_delta_rule(q(g), q(g), q(g), gate(g), gate(g), {.chunk = 0}); }),
      Contains("the chunk is 0  [recurrence_chunk]"));
  CHECK_THAT(test::error_of_graph(
                 [&](Graph& g) { gated_delta_rule(q(g), q(g), q(g), gate(g), gate(g), {.initial = q(g)}); }),
             Contains("initial is f32[2, 8, 3, 4], expected the shape [2, 3, 4, 4]  [delta_rule_shape]"));
  CHECK_THAT(test::error_of_graph([&](Graph& g) {
               const Tensor b = g.input("b", f32, {2, 8, 2, 5});
               state_space_dual(q(g), gate(g), g.input("a", f32, {3}), b, b);
             }),
             Contains("3 heads do not divide into 2 groups  [state_space_shape]"));
  const nn::Module root;
  CHECK_THAT(
      test::error_of_graph([&](Graph&) { nn::Mamba2(root, "mamba", 8, {.heads = 3, .head_size = 4, .groups = 2}); }),
      Contains("groups is 2  [mixer_options]") && Contains("a divisor of the 3 heads"));
  CHECK_THAT(
      test::error_of_graph([&](Graph&) { nn::GatedDeltaNet(root, "delta", 8, {.key_heads = 2, .value_heads = 3}); }),
      Contains("value_heads is 3  [mixer_options]") && Contains("a multiple of the 2 key heads"));
  CHECK_THAT(test::error_of_graph([&](Graph&) { nn::CausalConv(root, "conv", 8, {.size = 0}); }),
             Contains("size is 0  [conv_options]"));
  CHECK_THAT(test::error_of_graph([&](Graph&) { nn::Lstm(root, "lstm", 8, 8, {.layers = 0}); }),
             Contains("layers is 0  [recurrent_options]"));
}
