#include <unistd.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <sstream>
#include <string>

#include "frontend/initial_values.h"
#include "frontend/train/optimizers/adam.h"
#include "frontend/train/training.h"
#include "ir/options/init.h"
#include "ir/tensor/text/parser.h"
#include "runtime/compile.h"
#include "runtime/files/file_io.h"
#include "tests/c_api/support.h"

using namespace lathe;
using namespace lathe::test;

namespace {

/// Removes a folder at the end of the test.
struct ScratchFolder {
  std::filesystem::path path = std::filesystem::temp_directory_path() / ("lathe-c-api-" + std::to_string(::getpid()));
  ScratchFolder() { std::filesystem::create_directories(path); }
  ~ScratchFolder() { std::filesystem::remove_all(path); }
};

std::string bits_of(const HostTensor& tensor) {
  std::string text;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) {
    std::uint32_t bits = 0;
    std::memcpy(&bits, tensor.data() + i * 4, 4);
    char word[16];
    std::snprintf(word, sizeof(word), " %08x", bits);
    text += word;
  }
  return text + "\n";
}

/// Returns what tests/c_api/program/main.c prints, computed by the C++ API.
std::string training_in_cpp(const std::string& file, int steps) {
  const ir::Graph graph = ir::parse_graph(read_file(file, 1 << 20));
  const ir::Graph step = training_step(graph, "loss", Adam{});
  Executable trainer = compile(step);
  Parameters parameters = trainer.parameters();
  std::vector<std::string> names;
  for (const ir::ValueId id : graph.arguments())
    if (graph[id].name != "x" && graph[id].name != "y") names.push_back(graph[id].name);
  for (const std::string& name : names) {
    const Initializer init{name, Init::normal({.mean = 0, .deviation = 0.5})};
    parameters.set(name, initial_value(graph, name, {&init, 1}, 3));
  }
  parameters.set(initial_states(step, 3));
  HostTensor x(f32, {8, 1}), y(f32, {8, 1});
  for (int i = 0; i < 8; ++i) {
    x.set(i, i / 4.0 - 1);
    y.set(i, x.get(i) * x.get(i));
  }
  std::string text;
  for (int i = 0; i < steps; ++i) text += "loss" + bits_of(trainer.run({{"x", x}, {"y", y}}).at("loss"));
  for (const std::string& name : names) text += name + bits_of(parameters.get(name));
  return text;
}

}  // namespace

TEST_CASE("c api: training from C has the bits of training from C++") {
  const std::string graph = source_path("examples/bindings/curve.lathe").string();
  int status = -1;
  const std::string text = output_of_command(std::string("'") + LATHE_C_PROGRAM + "' '" + graph + "' 20", status);
  CHECK(status == 0);
  const std::string expected = training_in_cpp(graph, 20);
  CHECK(expected.find("W_out") != std::string::npos);
  CHECK(text == expected);
}

TEST_CASE("c api: a call owns its results, and states change from run to run") {
  SmallCall small;
  check_ok(lathe_call_run(small.call.get()));
  CHECK(output_of(small.call.get(), "y") == std::vector<float>{1, 4, 9, 4, 10, 18});
  CHECK(output_of(small.call.get(), "sum") == std::vector<float>{46});
  lathe_array y = empty_array();
  check_ok(lathe_call_output(small.call.get(), "y", &y));
  REQUIRE(y.rank == 2);
  CHECK(y.shape[0] == 2);
  CHECK(y.shape[1] == 3);
  CHECK(y.bytes == 24);

  // Inputs are read in place.
  small.x[0] = 10;
  check_ok(lathe_call_run(small.call.get()));
  CHECK(output_of(small.call.get(), "sum") == std::vector<float>{55});
  lathe_array runs = empty_array();
  check_ok(lathe_parameters_view(small.parameters.get(), "runs", &runs));
  CHECK(*static_cast<const std::int64_t*>(runs.data) == 2);
}

TEST_CASE("c api: strided inputs and outputs in the caller's memory") {
  SmallCall small;
  const float columns[] = {1, 4, 2, 5, 3, 6};  // x, column by column
  const std::int64_t x_strides[] = {1, 2}, y_strides[] = {-3, 1};
  float y[6] = {}, sum = 0;
  check_ok(lathe_call_set_input(small.call.get(), "x", LATHE_F32, 2, small.x_shape, x_strides, columns));
  check_ok(lathe_call_set_output(small.call.get(), "y", LATHE_F32, 2, small.x_shape, y_strides, y + 3));
  CHECK(label_of(lathe_call_run(small.call.get())) == "output_missing");
  check_ok(lathe_call_set_output(small.call.get(), "sum", LATHE_F32, 0, nullptr, nullptr, &sum));
  check_ok(lathe_call_run(small.call.get()));
  CHECK(std::vector<float>(y, y + 6) == std::vector<float>{4, 10, 18, 1, 4, 9});
  CHECK(sum == 46);
  lathe_array array = empty_array();
  CHECK(label_of(lathe_call_output(small.call.get(), "y", &array)) == "output_unset");
  CHECK(std::string(lathe_last_error(LATHE_ERROR_HINT)) == "the results are in the memory that was given for them");
}

TEST_CASE("c api: other sizes, and none") {
  SmallCall small;
  const std::int64_t one[] = {1, 3}, none[] = {0, 3};
  check_ok(lathe_call_set_input(small.call.get(), "x", LATHE_F32, 2, one, nullptr, small.x));
  check_ok(lathe_call_run(small.call.get()));
  CHECK(output_of(small.call.get(), "y") == std::vector<float>{1, 4, 9});
  check_ok(lathe_call_set_input(small.call.get(), "x", LATHE_F32, 2, none, nullptr, nullptr));
  check_ok(lathe_call_run(small.call.get()));
  CHECK(output_of(small.call.get(), "y").empty());
  CHECK(output_of(small.call.get(), "sum") == std::vector<float>{0});
}

TEST_CASE("c api: a size that no argument determines") {
  const auto graph = parsed(R"(graph @g(input %x: f32[a*b]) {
  %1 = view %x {shape=[a, b]}
  output "y" %1
})");
  const auto executable = compiled(graph);
  const auto call = made<lathe_call>(lathe_call_create, executable.get());
  const std::int64_t shape[] = {6};
  const float x[] = {1, 2, 3, 4, 5, 6};
  check_ok(lathe_call_set_input(call.get(), "x", LATHE_F32, 1, shape, nullptr, x));
  CHECK(label_of(lathe_call_run(call.get())) == "dim_unbound");
  check_ok(lathe_call_set_dim(call.get(), "a", 2));
  check_ok(lathe_call_run(call.get()));
  lathe_array y = empty_array();
  check_ok(lathe_call_output(call.get(), "y", &y));
  REQUIRE(y.rank == 2);
  CHECK(y.shape[0] == 2);
  CHECK(y.shape[1] == 3);
  check_ok(lathe_call_clear(call.get()));
  CHECK(label_of(lathe_call_run(call.get())) == "argument_missing");
}

TEST_CASE("c api: handles may be destroyed in any order") {
  SmallCall small;
  small.graph.reset();
  small.executable.reset();
  check_ok(lathe_call_run(small.call.get()));
  CHECK(output_of(small.call.get(), "sum") == std::vector<float>{46});
  small.call.reset();
  CHECK(value_of(small.parameters.get(), "w") == std::vector<float>{1, 2, 3});
}

TEST_CASE("c api: executables share a store, by an option or later") {
  SmallCall small;
  const auto options = made<lathe_options>(lathe_options_create);
  check_ok(lathe_options_set_parameters(options.get(), small.parameters.get()));
  lathe_executable* other = nullptr;
  CHECK(label_of(lathe_compile(small.graph.get(), options.get(), &other)) == "state_shared");
  CHECK(other == nullptr);
  check_ok(lathe_options_set(options.get(), "share_states", "true"));
  const auto second = made<lathe_executable>(lathe_compile, small.graph.get(), options.get());
  const auto call = made<lathe_call>(lathe_call_create, second.get());
  check_ok(lathe_call_set_input(call.get(), "x", LATHE_F32, 2, small.x_shape, nullptr, small.x));
  check_ok(lathe_call_run(call.get()));
  check_ok(lathe_call_run(small.call.get()));
  lathe_array runs = empty_array();
  check_ok(lathe_parameters_view(small.parameters.get(), "runs", &runs));
  CHECK(*static_cast<const std::int64_t*>(runs.data) == 2);

  const auto empty = made<lathe_parameters>(lathe_parameters_create);
  check_ok(lathe_executable_use(second.get(), empty.get()));
  CHECK(label_of(lathe_call_run(call.get())) == "state_unset");
}

TEST_CASE("c api: options are those of compile") {
  const auto graph = parsed(R"(graph @g(input %x: f32[n]) {
  %1 = log %x
  output "y" %1
})");
  const auto options = made<lathe_options>(lathe_options_create);
  const ScratchFolder cache;
  const std::pair<const char*, std::string> all[] = {
      {"target", "host"},       {"threads", "2"},     {"mode", "evaluation"},    {"cache", cache.path.string()},
      {"share_states", "true"}, {"own_threads", "1"}, {"attention", "required"}, {"find_nan", "true"}};
  for (const auto& [name, value] : all)
    if (name != std::string("own_threads")) check_ok(lathe_options_set(options.get(), name, value.c_str()));
  check_ok(lathe_options_set(options.get(), "own_threads", "true"));
  check_ok(lathe_options_reserve(options.get(), "n", 16));
  const auto executable = made<lathe_executable>(lathe_compile, graph.get(), options.get());
  CHECK_FALSE(std::filesystem::is_empty(cache.path));
  const auto call = made<lathe_call>(lathe_call_create, executable.get());
  const std::int64_t shape[] = {2};
  float x[] = {1, std::exp(1.0F)};
  check_ok(lathe_call_set_input(call.get(), "x", LATHE_F32, 1, shape, nullptr, x));
  check_ok(lathe_call_run(call.get()));
  CHECK(output_of(call.get(), "y")[0] == 0);
  x[1] = -1;
  CHECK(label_of(lathe_call_run(call.get())) == "not_finite");
  CHECK(std::string(lathe_last_error(LATHE_ERROR_TEXT)).find("<text>:2") != std::string::npos);
  lathe_array array = empty_array();
  CHECK(label_of(lathe_call_output(call.get(), "y", &array)) == "output_unset");

  check_ok(lathe_options_fix(options.get(), "n", 3));
  const auto fixed = made<lathe_executable>(lathe_compile, graph.get(), options.get());
  const auto other = made<lathe_call>(lathe_call_create, fixed.get());
  check_ok(lathe_call_set_input(other.get(), "x", LATHE_F32, 1, shape, nullptr, x));
  CHECK(label_of(lathe_call_run(other.get())) == "argument_shape");
}
