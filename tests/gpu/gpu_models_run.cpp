#include <catch2/catch.hpp>

#include "frontend/initial_values.h"
#include "frontend/train/training.h"
#include "ir/tensor/text/parser.h"
#include "tests/cuda/device/decode_steps.h"
#include "tests/gpu/gpu_device.h"
#include "tests/support/graphs/small_models.h"
#include "tests/support/programs/compiled_runner.h"
#include "tests/support/tensors/compare_tensors.h"

/// Golden cases and training steps on a real GPU.
using namespace lathe;

namespace {

struct Model {
  ir::Graph step;
  std::vector<Initializer> initializers;
  std::vector<std::string> inputs;
};

// Adam would amplify gradients that are zero except for rounding, such as those of key biases.
Model training(models::LossGraph forward, std::vector<std::string> inputs) {
  return {training_step(forward.graph, "loss", SGD{.lr = 0.1, .momentum = 0.9}, {.clip_norm = 1.0}),
          std::move(forward.initializers), std::move(inputs)};
}

Model gpt(DType dtype = f32) { return training(models::loss_graph(lathe::test::small_gpt(dtype)), {"tokens"}); }

Model llama() { return training(models::loss_graph(lathe::test::small_llama()), {"tokens"}); }

Model encoder_decoder() { return training(models::loss_graph(lathe::test::small_encoder_decoder()), {"src", "tgt"}); }

/// Runs steps with batches of several sizes. Returns the last results and every state. `traced`: launch by launch
/// instead of as a captured graph.
Tensors train(const Model& model, const CompileOptions& options, bool traced = false) {
  Executable executable = compile(model.step, options);
  executable.parameters().set(initial_values(model.step, model.initializers, 7));
  Tensors results;
  for (const auto& [batch, length] : {std::pair{3, 20}, {3, 20}, {5, 9}, {8, 33}}) {
    Tensors inputs;
    for (const std::string& name : model.inputs) {
      HostTensor& values = inputs.set(name, HostTensor(i64, {batch, length + 1}));
      for (std::int64_t i = 0; i < values.numel(); ++i) values.set_int(i, i * 5 % 31);
    }
    std::vector<LaunchTime> times;
    results = traced ? executable.run_traced(inputs, times) : executable.run(inputs);
  }
  for (const auto& [name, value] : executable.parameters().values()) results.insert_or_assign(name, value);
  return results;
}

/// Decodes tokens at several lengths of the cache. Returns the last results and every state.
Tensors decode(const ir::Graph& graph, const test::DecodeStep& step, const CompileOptions& options) {
  Executable executable = compile(graph, options);
  executable.parameters().set(test::decode_states(graph, 24));
  Tensors results;
  for (const std::int64_t position : {3, 4, 5, 19})
    results = executable.run(test::decode_inputs(step, position), {{"length", position + 1}});
  for (const auto& [name, value] : executable.parameters().values()) results.insert_or_assign(name, value);
  return results;
}

void check_close(const Tensors& found, const Tensors& expected, double tolerance) {
  for (const auto& [name, value] : expected) {
    INFO(name);
    CHECK(test::error_of(found.at(name), value) <= tolerance);
  }
}

}  // namespace

TEST_CASE("golden cases, forward, backward and training", "[golden]") {
  const auto options = test::gpu_options();
  if (!options) return;
  golden::CompiledRunner runner(*options);
  for (const golden::Case& which : golden::cases()) {
    const auto files = golden::load(std::filesystem::path("tests/goldens"), which.name);
    for (const DType dtype : {f64, f32}) {
      const golden::Tolerance& tolerance = dtype == f64 ? golden::f64_tolerance : golden::f32_tolerance;
      for (const auto& found : {golden::compare_values(which, files, runner, dtype, tolerance),
                                golden::compare_training(which, files, runner, dtype, tolerance)}) {
        INFO(which.name << " " << lathe::name(dtype) << "\n" << golden::report(found));
        CHECK(golden::all_good(found));
      }
    }
  }
}

TEST_CASE("training steps match a CPU", "[models]") {
  const auto options = test::gpu_options();
  if (!options) return;
  for (const Model& model : {gpt(), llama(), encoder_decoder()}) {
    INFO(model.step.name);
    check_close(train(model, *options), train(model, {}), 1e-5);
  }
}

TEST_CASE("three runs give the same bits, as a graph and launch by launch", "[models]") {
  const auto options = test::gpu_options();
  if (!options) return;
  for (const Model& model : {gpt(), gpt(bf16), llama(), encoder_decoder()}) {
    INFO(model.step.name);
    const Tensors once = train(model, *options);
    for (const bool traced : {false, false, true})
      for (const auto& [name, value] : train(model, *options, traced)) {
        INFO(name);
        CHECK(value.same_bits(once.at(name)));
      }
  }
}

TEST_CASE("decoding a token: phases of one kernel give the bits of separate launches, close to a CPU", "[models]") {
  const auto options = test::gpu_options();
  if (!options) return;
  CompileOptions separate = *options;
  separate.lower.join_launches = false;
  for (const auto& make : {test::gpt_step, test::llama_step})
    for (const test::DecodeStep& step : {test::DecodeStep{1, f32, 4}, {5, f32, 4}, {1, bf16, 4}}) {
      const ir::Graph graph = make(step);
      INFO(graph.name << " batch " << step.batch << " " << name(step.dtype));
      const Tensors joined = decode(graph, step, *options);
      for (const auto& [name, value] : decode(graph, step, separate)) {
        INFO(name);
        CHECK(joined.at(name).same_bits(value));
      }
      check_close(joined, decode(graph, step, {}), step.dtype == f32 ? 1e-5 : 2e-2);
    }
}

TEST_CASE("small steps for compute-sanitizer", "[sanitize]") {
  const auto options = test::gpu_options();
  if (!options) return;
  CHECK(decode(test::gpt_step({}), {}, *options).contains("logits"));
  for (const DType dtype : {f32, bf16}) CHECK(train(gpt(dtype), *options).contains("loss"));
}

TEST_CASE("a failed check is reported and the GPU stays usable", "[errors]") {
  const auto options = test::gpu_options();
  if (!options) return;
  Executable executable = compile(ir::parse_graph(R"(graph @errors(input %x: f32[n], input %i: i64[m]) {
  %1 = gather %x, %i {dim=0}
  output "y" %1
})",
                                                  "errors"),
                                  *options);
  const auto error = [&](std::int64_t index) {
    const HostTensor indices = HostTensor::from_ints({1}, {index});
    return test::outcome([&] { return executable.run({{"x", HostTensor(f32, {4})}, {"i", indices}}); }).label;
  };
  CHECK(error(4) == "index_range");
  CHECK(error(3).empty());
}
