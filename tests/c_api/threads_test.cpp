#include <atomic>
#include <catch2/catch.hpp>
#include <string>
#include <thread>
#include <vector>

#include "tests/c_api/support.h"

using namespace lathe::test;

TEST_CASE("c api: each thread has its last error") {
  lathe_graph* graph = nullptr;
  CHECK(label_of(lathe_graph_load("missing.lathe", &graph)) == "file_open");
  std::string before = "?", after, text;
  int line = -1;
  std::thread other([&] {
    before = lathe_last_error(LATHE_ERROR_TEXT);
    (void)lathe_graph_parse("graph @g(", nullptr, nullptr);
    after = lathe_last_error(LATHE_ERROR_LABEL);
    lathe_graph* none = nullptr;
    (void)lathe_graph_parse("\n\ngraph", nullptr, &none);
    line = lathe_last_error_line();
  });
  other.join();
  CHECK(before.empty());
  CHECK(after == "null_argument");
  CHECK(line == 3);
  CHECK(lathe_last_error(LATHE_ERROR_LABEL) == std::string("file_open"));
  CHECK(lathe_last_error_line() == 0);
}

TEST_CASE("c api: threads run one executable with calls of their own") {
  SmallCall small;
  constexpr int thread_count = 4, runs = 50;
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < thread_count; ++t)
    threads.emplace_back([&, t] {
      lathe_call* call = nullptr;
      wrong += lathe_call_create(small.executable.get(), &call) != LATHE_OK;
      float x[6];
      for (float& element : x) element = static_cast<float>(t);
      for (int i = 0; i < runs; ++i) {
        lathe_array sum = empty_array();
        wrong += lathe_call_set_input(call, "x", LATHE_F32, 2, small.x_shape, nullptr, x) != LATHE_OK;
        wrong += lathe_call_set_input(call, "x", -1, 2, small.x_shape, nullptr, x) == LATHE_OK;
        wrong += lathe_last_error(LATHE_ERROR_LABEL) != std::string("dtype_code");
        wrong += lathe_call_run(call) != LATHE_OK;
        wrong += lathe_call_output(call, "sum", &sum) != LATHE_OK;
        wrong += *static_cast<const float*>(sum.data) != 12.0F * static_cast<float>(t);
      }
      wrong += lathe_call_destroy(call) != LATHE_OK;
    });
  for (std::thread& thread : threads) thread.join();
  CHECK(wrong == 0);
  lathe_array array = empty_array();
  check_ok(lathe_parameters_view(small.parameters.get(), "runs", &array));
  CHECK(*static_cast<const std::int64_t*>(array.data) == thread_count * runs);
}
