#include <catch2/catch.hpp>
#include <string>

#include "tests/c_api/failing_allocations.h"
#include "tests/c_api/support.h"

/// Functions of the C API when memory runs out.
using namespace lathe::test;

namespace {

/// Calls `attempt` with 0, 1, 2, .. allocations until it succeeds. Returns the number of failed attempts.
template <class Attempt>
int failures_of(const Attempt& attempt) {
  for (int failures = 0; failures < 100000; ++failures) {
    set_allocations_left(failures);
    const lathe_status status = attempt();
    const std::string label = [] {
      const char* text = lathe_last_error(LATHE_ERROR_LABEL);  // needs no memory
      set_allocations_left(-1);
      return std::string(text);
    }();
    if (status == LATHE_OK) return failures;
    REQUIRE(status == LATHE_OUT_OF_MEMORY);
    REQUIRE(label == "out_of_memory");
    REQUIRE(lathe_last_error(LATHE_ERROR_TEXT) ==
            std::string("out of memory  [out_of_memory]\n  free memory, or use smaller sizes"));
    REQUIRE(lathe_last_error_line() == 0);
  }
  return -1;
}

}  // namespace

TEST_CASE("c api: a text is parsed without memory") {
  const auto first = parsed(small_graph);  // fills the tables that all graphs share
  lathe_graph* graph = nullptr;
  CHECK(failures_of([&] { return lathe_graph_parse(small_graph, nullptr, &graph); }) > 50);
  const Owned<lathe_graph> owned(graph);
  CHECK(printed(graph) == printed(first.get()));
}

TEST_CASE("c api: errors without memory for their text") {
  set_allocations_left(0);
  lathe_graph* graph = nullptr;
  const lathe_status status = lathe_graph_load(nullptr, &graph);
  set_allocations_left(-1);
  CHECK(status == LATHE_OUT_OF_MEMORY);
  CHECK(lathe_last_error(LATHE_ERROR_LABEL) == std::string("out_of_memory"));
  CHECK(label_of(lathe_graph_load(nullptr, &graph)) == "null_argument");
}

TEST_CASE("c api: arguments and options without memory") {
  SmallCall small;
  const auto options = made<lathe_options>(lathe_options_create);
  const std::string folder(200, 'f');
  CHECK(failures_of([&] { return lathe_options_set(options.get(), "cache", folder.c_str()); }) > 0);
  CHECK(failures_of([&] {
          return lathe_call_set_input(small.call.get(), "x", LATHE_F32, 2, small.x_shape, nullptr, small.x);
        }) > 0);
  CHECK(failures_of([&] { return lathe_call_set_dim(small.call.get(), folder.c_str(), 1); }) > 0);
  check_ok(lathe_call_clear(small.call.get()));
  check_ok(lathe_call_set_input(small.call.get(), "x", LATHE_F32, 2, small.x_shape, nullptr, small.x));
  check_ok(lathe_call_run(small.call.get()));
  std::size_t count = 0;
  CHECK(failures_of([&] { return lathe_parameters_list(small.parameters.get(), &count); }) > 0);
  CHECK(count == 2);
  CHECK(output_of(small.call.get(), "sum") == std::vector<float>{46});
}

TEST_CASE("c api: graphs without memory") {
  const std::string file = source_path("examples/bindings/curve.lathe").string();
  const auto graph = made<lathe_graph>(lathe_graph_load, file.c_str());
  char* text = nullptr;
  CHECK(failures_of([&] { return lathe_graph_print(graph.get(), 1, &text); }) > 10);
  CHECK(text != nullptr);
  lathe_text_free(text);
  lathe_graph* step = nullptr;
  CHECK(failures_of([&] {
          return lathe_graph_training_step(graph.get(), "loss", "adamw", nullptr, nullptr, 0, &step);
        }) > 100);
  CHECK(lathe_graph_destroy(step) == LATHE_OK);
}

TEST_CASE("c api: values without memory") {
  SmallCall small;
  float w[3] = {4, 5, 6};
  CHECK(failures_of([&] {
          return lathe_parameters_set(small.parameters.get(), "w", LATHE_F32, 1, small.w_shape, nullptr, w);
        }) > 0);
  CHECK(failures_of([&] {
          return lathe_parameters_get(small.parameters.get(), "w", LATHE_F32, 1, small.w_shape, nullptr, w);
        }) > 0);
  CHECK(failures_of([&] {
          return lathe_parameters_init(small.parameters.get(), small.graph.get(), "w", "normal", 0, 1, 2, nullptr,
                                       nullptr, 0);
        }) > 0);
}

TEST_CASE("c api: a run without memory") {
  SmallCall small;
  CHECK(failures_of([&] { return lathe_call_run(small.call.get()); }) > 0);
  CHECK(output_of(small.call.get(), "sum") == std::vector<float>{46});
}
