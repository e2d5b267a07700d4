#include "tests/pretrained/cases/model_case.h"

#include <catch2/catch.hpp>
#include <cmath>

#include "frontend/grad.h"
#include "frontend/initial_values.h"
#include "frontend/train/step.h"
#include "runtime/compile.h"
#include "tests/pretrained/cases/token_case.h"
#include "tests/runtime/files/files_scratch.h"
#include "tests/support/kernels/kernel_store.h"

namespace lathe::test {

Tensor ModelGraph::take(const std::string& name, DType dtype, const Shape& shape) {
  const HostTensor value = file.tensor(name);
  values.emplace(name, is_float(dtype) ? value.cast(dtype) : value);
  return g.input(name, dtype, shape);
}

std::optional<Tensor> ModelGraph::take_if(const std::string& name, DType dtype, const Shape& shape) {
  return file.contains(name) ? std::optional(take(name, dtype, shape)) : std::nullopt;
}

namespace {

/// Loads the weights in the compute dtype, as training requires.
LoadedCase load_in(const HfCase& which, const LoadCase& load, DType dtype) {
  LoadedCase loaded = load(which.folder());
  for (const nn::Parameter& parameter : loaded.module.parameters()) {
    loaded.files->weights.set(parameter.name(), loaded.files->weights.get(parameter.name()).cast(dtype));
    parameter.store_as(dtype);
  }
  return loaded;
}

/// Returns the mask of an output's rows: padded tokens, whose rows the case lacks.
const HostTensor* mask_of(const std::string& name, const HostTensor& value, const Tensors& values) {
  const auto mask = values.find("attention_mask");
  if (mask == values.end() || name.starts_with("decoder") || value.rank() != 3) return nullptr;
  const auto& shape = mask->second.shape();
  return shape[0] == value.shape()[0] && shape[1] == value.shape()[1] ? &mask->second : nullptr;
}

double norm_of(const HostTensor& x) {
  double squares = 0;
  for (std::int64_t i = 0; i < x.numel(); ++i) squares += x.get(i) * x.get(i);
  return std::sqrt(squares);
}

void check_gradients(const HfCase& which, const Tensors& found, const SafetensorsFile& expected, double tolerance) {
  int compared = 0;
  for (const std::string& name : expected.names()) {
    if (!name.starts_with("grad.")) continue;
    INFO(name);
    CHECK(error_of(found.at(name), expected.tensor(name)) <= tolerance);
    ++compared;
  }
  CHECK(compared == 3);
  for (const auto& [name, norm] : which.grad_norms) {
    INFO(name);
    if (!found.contains("grad." + name)) {
      CHECK(norm == 0);
      continue;
    }
    // A key bias adds one number to all scores of a row, so its gradient is zero except for rounding.
    CHECK(std::abs(norm_of(found.at("grad." + name)) - norm) <= tolerance * std::max(norm, 1e-2));
  }
}

void check_values(const HfCase& which, const LoadCase& load, DType dtype, ObjectStore& store) {
  const LoadedCase loaded = load_in(which, load, dtype);
  ModelGraph c(which);
  loaded.build(c, dtype);
  std::vector<nn::Parameter> parameters = loaded.module.parameters();
  std::erase_if(parameters, [&](const nn::Parameter& each) { return loaded.aside.contains(each.name()); });
  std::vector<Tensor> wanted;
  for (const nn::Parameter& parameter : parameters) wanted.push_back(parameter.in(c.g));
  const std::vector<Tensor> gradients = grad(c.loss, wanted);
  for (std::size_t i = 0; i < parameters.size(); ++i)
    c.g.output("grad." + loaded.files->places.at(parameters[i].name()).tensor, gradients[i]);
  c.g.output("loss", c.loss);
  for (const auto& [name, value] : c.outputs) c.g.output(name, value);
  Executable exe = compile(c.g.finish(), {.parameters = loaded.files->weights, .cache = &store});
  const Tensors found = exe.run(c.values);

  const SafetensorsFile expected = which.expected();
  const Tolerance tolerance = tolerance_of(dtype);
  CHECK(error_of(found.at("loss"), expected.tensor("loss")) <= tolerance.loss);
  for (const auto& [name, tensor] : c.outputs) {
    INFO(name);
    const HostTensor& got = found.at(name);
    CHECK(error_of(got, expected.tensor(name), mask_of(name, got, c.values)) <= tolerance.forward);
  }
  CHECK(which.grad_norms.size() == parameters.size() + loaded.aside.size());
  check_gradients(which, found, expected, tolerance.grad);
}

void check_training(const HfCase& which, const LoadCase& load, DType dtype, ObjectStore& store) {
  const LoadedCase loaded = load_in(which, load, dtype);
  ModelGraph c(which);
  loaded.build(c, dtype);
  const HfTraining t = hf_training();
  const ir::Graph step = training_step(
      c.g, c.loss,
      AdamW{.lr = t.lr, .beta1 = t.beta1, .beta2 = t.beta2, .eps = t.eps, .weight_decay = t.weight_decay});
  Parameters weights = loaded.files->weights;
  Executable exe = compile(step, {.parameters = weights, .cache = &store});
  for (auto& [name, value] : initial_values(step, {}, 1))
    if (name.starts_with("optimizer.")) weights.set(name, std::move(value));
  const HostTensor want = which.expected().tensor("train_loss");
  HostTensor got(f64, want.shape());
  for (std::int64_t i = 0; i <= t.steps; ++i) got.set(i, exe.run(c.values).at("loss").get(0));
  CHECK(want.numel() == t.steps + 1);
  CHECK(error_of(got, want) <= tolerance_of(dtype).train);
}

}  // namespace

void check_model(const HfCase& which, const LoadCase& load) {
  for (const DType dtype : {f64, f32}) {
    INFO(which.name << " " << name(dtype));
    KernelStore store;
    check_values(which, load, dtype, store);
    check_training(which, load, dtype, store);
  }
}

void check_saved(const HfCase& which, const LoadCase& load) {
  INFO(which.name);
  const ScratchFolder folder;
  const LoadedCase first = load(which.folder());
  const std::string changed = first.module.parameters().front().name();
  HostTensor value = first.files->weights.get(changed).cast(f32);
  value.set(0, 2.5);
  first.files->weights.set(changed, std::move(value));
  save(*first.files, folder / "saved");
  const LoadedCase second = load(folder / "saved");
  CHECK(second.files->config_text == slurp(which.folder() / "config.json"));
  CHECK(second.files->others == first.files->others);
  CHECK(second.files->places.size() == first.files->places.size());
  for (const auto& [parameter, place] : second.files->places) {
    INFO(parameter);
    CHECK(place.tensor == first.files->places.at(parameter).tensor);
    const HostTensor want = first.files->weights.get(parameter), got = second.files->weights.get(parameter);
    CHECK(got.dtype() == want.dtype());
    CHECK(error_of(got, want) == 0);
  }
  CHECK(second.files->weights.get(changed).get(0) == 2.5);
}

}  // namespace lathe::test
