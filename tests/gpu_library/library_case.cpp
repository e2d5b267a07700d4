#include "tests/gpu_library/library_case.h"

#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <cstring>

#include "frontend/initial_values.h"
#include "ir/ops/primitives/primitives.h"
#include "runtime/compile.h"
#include "runtime/files/safetensors/safetensors.h"
#include "runtime/library/c_names.h"
#include "runtime/write_library.h"
#include "tests/gpu_library/mock_machine.h"
#include "tests/support/tensors/compare_tensors.h"
#include "tests/support/texts/test_data.h"

namespace lathe::test {

namespace {

constexpr const char* strict_c = "-O1 -std=c99 -D_DEFAULT_SOURCE -Wall -Wextra -Werror -pedantic";

/// Calls f(name, type) for each argument of a kind.
template <class F>
void for_arguments(const ir::Graph& graph, bool are_inputs, F&& f) {
  for (const ir::ValueId id : graph.arguments())
    if ((graph[id].op == &ir::ops::input) == are_inputs) f(graph[id].name, graph[id].type);
}

std::size_t bytes_of(const ir::TensorType& type, const DimBindings& dims) {
  return static_cast<std::size_t>(type.shape.numel().evaluate(dims)) * size_in_bytes(type.dtype);
}

/// Returns a macro of runner.c: each(name, member, bytes) for each tensor.
class Macro {
 public:
  explicit Macro(const std::string& name) : text_(fmt::format("#define {}(each)", name)) {}
  void add(const std::string& name, std::size_t bytes) {
    text_ += fmt::format(" each(\"{}\", {}, {})", name, names_.identifier(name), bytes);
    is_empty_ = false;
  }
  bool is_empty() const { return is_empty_; }
  std::string text() const { return text_ + "\n"; }

 private:
  std::string text_;
  CNames names_;
  bool is_empty_ = true;
};

}  // namespace

LibraryOptions GpuLibrary::options(const DimBindings& most, const std::vector<Initializer>& initializers) {
  return {.prefix = "g",
          .targets = {"cuda:sm_90a"},
          .most = most,
          .initializers = initializers,
          .threads = 2,
          .cuda_folders = {mock_folder()}};
}

GpuLibrary::GpuLibrary(const ir::Graph& graph, const LibraryOptions& options)
    : graph_(graph),
      embedded_(options.embedded),
      files_(emit_library(std::vector<LibraryGraph>{{"", graph}}, options)) {
  write_library(folder_.path(), files_);
}

template <class F>
void GpuLibrary::for_states(F&& f) const {
  for_arguments(graph_, false, [&](const std::string& name, const ir::TensorType& type) {
    if (!embedded_.contains(name)) f(name, type);
  });
}

void GpuLibrary::write_calls(const DimBindings& dims) const {
  const std::string& header = files_.header.bytes;
  const auto has = [&](const char* text) { return header.find(text) != std::string::npos; };
  Macro inputs("INPUTS"), outputs("OUTPUTS"), states("STATES");
  for_arguments(graph_, true, [&](const auto& name, const auto& type) { inputs.add(name, bytes_of(type, dims)); });
  for_states([&](const auto& name, const auto& type) { states.add(name, bytes_of(type, dims)); });
  for (const ir::Output& output : graph_.outputs) outputs.add(output.name, bytes_of(graph_[output.value].type, dims));
  std::string text = inputs.text() + outputs.text();
  const bool has_dims = has("typedef struct g_dims"), has_states = has("typedef struct g_states"),
             places_by_dims = has("g_place_states(const g_dims");
  if (has_dims) {
    std::string sizes;
    for (const auto& [name, size] : dims) sizes += fmt::format("{}{}", sizes.empty() ? "" : ", ", size);
    text += fmt::format("#define DIMS {{{}}}\n", sizes);
  }
  if (has_states) text += states.text();
  text += fmt::format("#define BLOCK_DIMS {}\n#define COPY_DIMS {}\n", places_by_dims ? "&dims," : "",
                      has_dims ? "&dims," : "");
  text += fmt::format("#define INIT(library{}) g_init(library, &gpu.driver{}{}{})\n",
                      has_states ? ", states, seed" : "", has("G_CONSTANT_BYTES") ? ", constants" : "",
                      has_dims ? ", &dims" : "", has_states ? ", states, seed" : "");
  spit(folder_ / "calls.h", text);
}

void GpuLibrary::build(const std::string& source) const {
  const ShellRun built =
      run_on_mock(folder_, fmt::format("cc {} -I. -I'{}' '{}' -L. -lg -lm -o program", strict_c, helper_folder(),
                                       test_data("gpu_library/" + source).string()));
  INFO(built.output << slurp(folder_ / "calls.h"));
  REQUIRE(built.status == 0);
}

Tensors GpuLibrary::read_results(const DimBindings& dims, bool has_outputs) const {
  const std::string bytes = slurp(folder_ / "results");
  std::size_t at = 0;
  Tensors results;
  const auto read = [&](const std::string& name, const ir::TensorType& type) {
    HostTensor value(type.dtype, type.shape.evaluate(dims));
    REQUIRE(at + value.bytes() <= bytes.size());
    std::memcpy(value.data(), bytes.data() + at, value.bytes());
    at += value.bytes();
    results.insert_or_assign(name, std::move(value));
  };
  if (has_outputs)
    for (const ir::Output& output : graph_.outputs) read(output.name, graph_[output.value].type);
  for_states(read);
  CHECK(at == bytes.size());
  return results;
}

Tensors GpuLibrary::run(const LibraryCall& call, const Tensors& states) {
  write_calls(call.dims);
  build("runner.c");
  Tensors arguments = call.inputs;
  for (const auto& [name, value] : states) arguments.insert_or_assign(name, value);
  write_safetensors(folder_ / "arguments", arguments);
  const ShellRun ran = run_on_mock(folder_, "MOCK_CUDA_LOG=launches.log ./program arguments results");
  INFO(ran.output);
  REQUIRE(ran.status == 0);
  return read_results(call.dims, true);
}

Tensors GpuLibrary::initial_states(const LibraryCall& call, std::uint64_t seed) {
  write_calls(call.dims);
  build("runner.c");
  write_safetensors(folder_ / "arguments", call.inputs);
  const ShellRun ran = run_on_mock(folder_, fmt::format("./program arguments results {}", seed));
  INFO(ran.output);
  REQUIRE(ran.status == 0);
  return read_results(call.dims, false);
}

std::string GpuLibrary::run_program(const std::string& name) {
  build(name);
  const ShellRun ran = run_on_mock(folder_, "./program");
  INFO(ran.output);
  REQUIRE(ran.status == 0);
  return ran.output;
}

namespace {

void check_equal(const Tensors& found, const Tensors& expected) {
  for (const auto& [name, value] : expected) {
    CAPTURE(name);
    CHECK(same_bits(found.at(name), value));
  }
}

void check_launches(const std::vector<MockLaunch>& found, const std::vector<MockLaunch>& expected, bool with_memory) {
  REQUIRE(found.size() == expected.size());
  CHECK_FALSE(found.empty());
  for (std::size_t l = 0; l < found.size(); ++l) {
    CAPTURE(l, expected[l].kernel);
    CHECK(found[l].kernel == expected[l].kernel);
    CHECK(found[l].sizes == expected[l].sizes);
    CHECK(found[l].arguments.size() == expected[l].arguments.size());
    CHECK(found[l].maps == expected[l].maps);
  }
  CHECK(numbers(found) == numbers(expected));
  if (with_memory) CHECK(renamed_arguments(found) == renamed_arguments(expected));
}

}  // namespace

std::vector<MockLaunch> check_like_compiled(const ir::Graph& graph, const std::vector<Initializer>& initializers,
                                            const std::vector<LibraryCall>& calls, const LibraryOptions& options) {
  constexpr std::uint64_t seed = 3;
  GpuLibrary library(graph, options);
  const std::filesystem::path log = library.folder() / "compiled.log";
  Executable jit = compile(graph, {.target = mock_target(log), .threads = 2, .lower = options.lower});
  std::vector<MockLaunch> first;
  for (const LibraryCall& call : calls) {
    const Tensors states = initial_values(graph, initializers, seed, call.dims);
    jit.parameters().set(states);
    const bool is_first = &call == calls.data();
    if (is_first) check_equal(library.initial_states(call, seed), states);
    mock_target(log);
    const Tensors expected = jit.run(call.inputs, call.passed);
    const Tensors found = library.run(call, states);
    check_equal(found, expected);
    for (const auto& [name, value] : states) {
      CAPTURE(name);
      CHECK(same_bits(found.at(name), jit.parameters().get(name)));
    }
    std::vector<MockLaunch> launches = launches_of(library.folder() / "launches.log");
    check_launches(launches, launches_of(log), is_first);
    if (is_first) first = std::move(launches);
  }
  return first;
}

}  // namespace lathe::test
