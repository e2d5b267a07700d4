#pragma once

#include <lathe/lathe_c.h>

#include <catch2/catch.hpp>
#include <cstdio>
#include <memory>
#include <string>
#include <vector>

#include "tests/support/texts/test_data.h"

/// Helpers of the tests of the C API, which call its functions as C does.
namespace lathe::test {

/// Fails the test with the text of the error unless a call was successful.
inline void check_ok(lathe_status status) {
  if (status != LATHE_OK) FAIL(lathe_last_error(LATHE_ERROR_TEXT));
}

/// Returns the label of the error of a call; "ok" if it was successful.
inline std::string label_of(lathe_status status) {
  if (status == LATHE_OK) return "ok";
  CHECK(status == lathe_last_error_status());
  CHECK(std::string(lathe_last_error(LATHE_ERROR_MESSAGE)) != "");
  return lathe_last_error(LATHE_ERROR_LABEL);
}

template <class H>
struct Destroyer;
template <>
struct Destroyer<lathe_graph> {
  void operator()(lathe_graph* handle) const { check_ok(lathe_graph_destroy(handle)); }
};
template <>
struct Destroyer<lathe_options> {
  void operator()(lathe_options* handle) const { check_ok(lathe_options_destroy(handle)); }
};
template <>
struct Destroyer<lathe_executable> {
  void operator()(lathe_executable* handle) const { check_ok(lathe_executable_destroy(handle)); }
};
template <>
struct Destroyer<lathe_call> {
  void operator()(lathe_call* handle) const { check_ok(lathe_call_destroy(handle)); }
};
template <>
struct Destroyer<lathe_parameters> {
  void operator()(lathe_parameters* handle) const { check_ok(lathe_parameters_destroy(handle)); }
};
template <class H>
using Owned = std::unique_ptr<H, Destroyer<H>>;

/// Returns the handle that `create` makes in its last argument: made<lathe_graph>(lathe_graph_load, path).
template <class H, class Create, class... Arguments>
Owned<H> made(const Create& create, const Arguments&... arguments) {
  H* handle = nullptr;
  check_ok(create(arguments..., &handle));
  REQUIRE(handle);
  return Owned<H>(handle);
}

inline Owned<lathe_graph> parsed(const std::string& text) {
  return made<lathe_graph>(lathe_graph_parse, text.c_str(), nullptr);
}

inline Owned<lathe_executable> compiled(const Owned<lathe_graph>& graph) {
  return made<lathe_executable>(lathe_compile, graph.get(), nullptr);
}

inline std::string printed(const lathe_graph* graph, int locations = 0) {
  char* text = nullptr;
  check_ok(lathe_graph_print(graph, locations, &text));
  std::string copy = text;
  lathe_text_free(text);
  return copy;
}

inline lathe_array empty_array() { return {sizeof(lathe_array), -1, -1, nullptr, nullptr, 0}; }

/// Returns the f32 elements of a result.
inline std::vector<float> floats_of(const lathe_array& array) {
  REQUIRE(array.dtype == LATHE_F32);
  const auto* data = static_cast<const float*>(array.data);
  return {data, data + array.bytes / sizeof(float)};
}

inline std::vector<float> output_of(const lathe_call* call, const char* name) {
  lathe_array array = empty_array();
  check_ok(lathe_call_output(call, name, &array));
  return floats_of(array);
}

inline std::vector<float> value_of(const lathe_parameters* parameters, const char* name) {
  lathe_array array = empty_array();
  check_ok(lathe_parameters_view(parameters, name, &array));
  return floats_of(array);
}

/// y = x * w + offset of a sum that one dim less determines, a counter, and a state that each run updates.
inline const char* const small_graph = R"(graph @small(
  input %x: f32[n, d=3], parameter %w: f32[d=3], state %runs: i64[]) {
  %y = mul %x, %w
  %sum = sum %y {dims=[0, 1]}
  %one = constant {dtype=i64, shape=[], values=[1]}
  %next = add %runs, %one
  output "y" %y
  output "sum" %sum
  update %runs <- %next
})";

/// The executable of `small_graph` with w = {1, 2, 3} and runs = 0, and a call of it with x [2, 3].
struct SmallCall {
  Owned<lathe_graph> graph = parsed(small_graph);
  Owned<lathe_executable> executable = compiled(graph);
  Owned<lathe_parameters> parameters = made<lathe_parameters>(lathe_executable_parameters, executable.get());
  Owned<lathe_call> call = made<lathe_call>(lathe_call_create, executable.get());
  std::int64_t x_shape[2] = {2, 3}, w_shape[1] = {3};
  float x[6] = {1, 2, 3, 4, 5, 6};

  SmallCall() {
    const float w[] = {1, 2, 3};
    const std::int64_t runs = 0;
    check_ok(lathe_parameters_set(parameters.get(), "w", LATHE_F32, 1, w_shape, nullptr, w));
    check_ok(lathe_parameters_set(parameters.get(), "runs", LATHE_I64, 0, nullptr, nullptr, &runs));
    check_ok(lathe_call_set_input(call.get(), "x", LATHE_F32, 2, x_shape, nullptr, x));
  }
};

/// Returns the output of a shell command, and its exit status in `status`.
inline std::string output_of_command(const std::string& command, int& status) {
  std::FILE* pipe = popen(command.c_str(), "r");
  REQUIRE(pipe);
  std::string output;
  char buffer[4096];
  for (std::size_t n = 0; (n = std::fread(buffer, 1, sizeof(buffer), pipe)) > 0;) output.append(buffer, n);
  status = pclose(pipe);
  return output;
}

}  // namespace lathe::test
