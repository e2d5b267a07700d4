#include "models/finetune/imported/imported_tuning.h"

#include <catch2/catch.hpp>
#include <cmath>
#include <filesystem>
#include <map>
#include <set>

#include "models/finetune/imported/tensor_rows.h"
#include "models/import/import.h"
#include "runtime/files/npz/npz.h"
#include "runtime/files/safetensors/safetensors.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/texts/error_label.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;
using test::error_label;
using test::ScratchFolder;

namespace {

/// Examples of y = 2 x[0:3] - 1, which the layer of the file can represent: f32[n, 4] and f32[n, 3].
Tensors linear_examples(std::int64_t n) {
  HostTensor x(f32, {n, 4}), target(f32, {n, 3});
  for (std::int64_t i = 0; i < n; ++i)
    for (std::int64_t j = 0; j < 4; ++j) {
      const double value = std::sin(static_cast<double>(3 * i * i + 7 * i * j + 5 * j));
      x.set(i * 4 + j, value);
      if (j < 3) target.set(i * 3 + j, 2 * x.get(i * 4 + j) - 1);
    }
  return {{"x", std::move(x)}, {"target", std::move(target)}};
}

ImportedTuningOptions linear_options(const ScratchFolder& scratch, std::int64_t examples = 24) {
  write_npz(scratch / "train.npz", linear_examples(examples));
  return {.file = test::test_data("import/data/external/model.onnx"),
          .loss = importing::parse_loss("mse:y,target"),
          .data = scratch / "train.npz",
          .output = scratch / "tuned",
          .steps = 300,
          .batch = 8,
          .optimizer = {.decay = RateDecay::constant, .lr = 5e-2, .warmup = 1},
          .compile = {.threads = 1, .cache = test::shared_kernels()}};
}

Tensors weights_in(const std::filesystem::path& folder) {
  const SafetensorsFile file = SafetensorsFile::open(folder / "model.safetensors");
  Tensors weights;
  for (const std::string& name : file.names()) weights.set(name, file.tensor(name));
  return weights;
}

std::string label_for(const ScratchFolder& scratch, Tensors data, std::int64_t batch = 8) {
  ImportedTuningOptions options = linear_options(scratch);
  options.batch = batch;
  write_safetensors(scratch / "train.safetensors", data);
  options.data = scratch / "train.safetensors";
  return error_label([&] { ImportedTuning(options).run(); });
}

}  // namespace

TEST_CASE("tuning an ONNX file fits the examples, and writes the parameters by their names", "[finetune][onnx]") {
  const ScratchFolder scratch;
  ImportedTuningOptions options = linear_options(scratch);
  options.valid_share = 0.34;
  const TrainingResult result = ImportedTuning(options).run();
  CHECK(result.steps == 300);
  REQUIRE(result.validation);
  CHECK(result.validation->loss < 1e-3);
  CHECK(result.history.training.front().loss > 0.5);
  const Tensors weights = weights_in(scratch / "tuned");
  CHECK(weights.size() == 2);
  for (std::int64_t row = 0; row < 4; ++row)
    for (std::int64_t column = 0; column < 3; ++column)
      CHECK(weights.at("fc.weight").get(row * 3 + column) == Approx(row == column ? 2 : 0).margin(0.05));
  CHECK(weights.at("fc.bias").get(0) == Approx(-1).margin(0.05));
  CHECK(std::filesystem::exists(scratch / "tuned" / "training" / "metrics.jsonl"));
}

TEST_CASE("a tuning that stops resumes with the same bits", "[finetune][onnx]") {
  const ScratchFolder scratch;
  ImportedTuningOptions options = linear_options(scratch, 10);  // batches of 8 cross the end of a pass
  options.steps = 12;
  ImportedTuning(options).run();
  const Tensors whole = weights_in(scratch / "tuned");
  options.output = scratch / "resumed";
  int calls = 0;
  options.stop = [&] { return ++calls > 5; };
  CHECK(ImportedTuning(options).run().stopped);
  CHECK_FALSE(std::filesystem::exists(scratch / "resumed" / "model.safetensors"));
  options.stop = {};
  CHECK(ImportedTuning(options).run().steps == 12);
  const Tensors resumed = weights_in(scratch / "resumed");
  for (const auto& [name, value] : whole) CHECK(resumed.at(name).to_string() == value.to_string());
  options.frozen = {"bias"};
  CHECK(error_label([&] { ImportedTuning(options).run(); }) == "train_resume");
}

TEST_CASE("frozen parameters of an ONNX file keep their values", "[finetune][onnx]") {
  const ScratchFolder scratch;
  ImportedTuningOptions options = linear_options(scratch);
  options.frozen = {"bias"};
  options.steps = 5;
  ImportedTuning(options).run();
  const importing::ImportedGraph original = importing::import_graph(options.file);
  const Tensors weights = weights_in(scratch / "tuned");
  CHECK(weights.at("fc.bias").to_string() == original.parameters.get("fc.bias").to_string());
  CHECK(weights.at("fc.weight").to_string() != original.parameters.get("fc.weight").to_string());
  options.frozen = {"nothing"};
  CHECK(error_label([&] { ImportedTuning(options).run(); }) == "import_frozen");
}

TEST_CASE("examples of tensors: chosen rows, and a part for validation", "[finetune]") {
  Tensors tensors;
  tensors.set("x", HostTensor::of<std::int64_t>({5, 1}, {10, 11, 12, 13, 14}));
  const TensorRows rows(std::move(tensors), "rows");
  const std::vector<std::uint32_t> order{4, 0, 0};
  Tensors taken;
  rows.gather(order, taken);
  CHECK(taken.at("x").to_string() == HostTensor::of<std::int64_t>({3, 1}, {14, 10, 10}).to_string());
  const std::byte* const memory = taken.at("x").data();
  rows.gather(std::vector<std::uint32_t>{1, 2, 3}, taken);
  CHECK(taken.at("x").to_string() == HostTensor::of<std::int64_t>({3, 1}, {11, 12, 13}).to_string());
  CHECK(taken.at("x").data() == memory);
  rows.gather(std::vector<std::uint32_t>{1, 2}, taken);
  CHECK(taken.at("x").to_string() == HostTensor::of<std::int64_t>({2, 1}, {11, 12}).to_string());
  const auto [apart, rest] = rows.split_off(0.5, 1);
  CHECK(apart.count() == 2);
  CHECK(rest.count() == 3);
  std::multiset<std::int64_t> all;
  for (const TensorRows* part : {&apart, &rest})
    for (std::int64_t i = 0; i < part->count(); ++i) all.insert(part->tensors().at("x").get_int(i));
  CHECK(all == std::multiset<std::int64_t>{10, 11, 12, 13, 14});
}

TEST_CASE("examples that do not fit the graph are errors", "[finetune][onnx]") {
  const ScratchFolder scratch;
  Tensors examples = linear_examples(9);
  CHECK(label_for(scratch, {{"x", examples.at("x")}}) == "finetune_data");  // no target
  examples.set("mask", HostTensor(f32, {9}));
  CHECK(label_for(scratch, examples) == "finetune_data");  // not an input
  examples.erase("mask");
  examples.set("target", HostTensor(f32, {8, 3}));
  CHECK(label_for(scratch, examples) == "finetune_data");  // fewer examples
  examples.set("target", HostTensor(i64, {9, 3}));
  CHECK(label_for(scratch, examples) == "finetune_data");  // another kind of numbers
  examples.set("target", HostTensor(f32, {9, 2}));
  CHECK(label_for(scratch, examples) == "finetune_data");  // a known size
  examples.set("target", HostTensor(f32, {9, 3, 1}));
  CHECK(label_for(scratch, examples) == "finetune_data");  // another rank
  CHECK(label_for(scratch, {{"x", HostTensor(f32, {0, 4})}, {"target", HostTensor(f32, {0, 3})}}) == "finetune_data");
  CHECK(label_for(scratch, linear_examples(9), 0) == "train_options");
  ImportedTuningOptions options = linear_options(scratch, 4);
  options.valid_share = 0.5;
  CHECK(error_label([&] { ImportedTuning(options).run(); }) == "finetune_valid");  // fewer than a batch
  options.valid_share = 0;
  options.output = scratch / "other";
  std::filesystem::create_directories(options.output);
  write_safetensors(options.output / "model.safetensors", linear_examples(1));
  CHECK(error_label([&] { ImportedTuning(options).run(); }) == "output_folder");
}

TEST_CASE("examples of a decoder may leave out its cached rows", "[finetune][onnx]") {
  const ScratchFolder scratch;
  ImportedTuningOptions options = linear_options(scratch);
  options.file = test::test_data("import/data/decoder/model.onnx");
  options.loss = importing::parse_loss("cross_entropy:logits,labels");
  options.steps = 3;
  const Tensors examples{{"input_ids", HostTensor(i64, {8, 1})},
                         {"attention_mask", HostTensor(i64, {8, 1})},
                         {"position_ids", HostTensor(i64, {8, 1})},
                         {"labels", HostTensor(i64, {8, 1})}};
  write_npz(scratch / "train.npz", examples);
  struct Observer : TrainingObserver {
    void examples_read(const ExampleSummary& training, const ExampleSummary*) override {
      caches = training.empty_caches;
    }
    std::int64_t caches = 0;
  } observer;
  options.observer = &observer;
  CHECK(ImportedTuning(options).run().steps == 3);
  CHECK(observer.caches == 4);
}

TEST_CASE("sizes of examples follow from dims that are computed", "[finetune][onnx]") {
  const importing::ImportedGraph imported =
      importing::import_graph(test::test_data("import/data/strides/model.onnx"));
  const ir::Graph graph = imported.graph.finish();
  TensorRows rows({{"image", HostTensor(f32, {5, 3, 24, 12})}}, "rows");
  rows.fit(graph, 2);
  CHECK(rows.sizes(graph, 2) == DimBindings{{"height_div_12", 2}, {"n", 2}, {"width_div_4", 3}});
  TensorRows others({{"image", HostTensor(f32, {5, 3, 25, 12})}}, "rows");
  others.fit(graph, 2);
  CHECK(error_label([&] { others.sizes(graph, 2); }) == "dim_conflict");
}

TEST_CASE("examples in f64 are converted to the dtype of an input", "[finetune]") {
  const importing::ImportedGraph imported =
      importing::import_graph(test::test_data("import/data/external/model.onnx"));
  TensorRows rows({{"x", HostTensor(f64, {3, 4})}}, "rows");
  const ir::Graph graph = imported.graph.finish();
  rows.fit(graph, 2);
  CHECK(rows.tensors().at("x").dtype() == f32);
  CHECK(rows.sizes(graph, 2) == DimBindings{{"n", 2}});
}
