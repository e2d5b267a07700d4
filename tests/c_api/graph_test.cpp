#include <catch2/catch.hpp>
#include <filesystem>
#include <string>

#include "frontend/train/optimizers/adam.h"
#include "frontend/train/optimizers/sgd.h"
#include "frontend/train/training.h"
#include "ir/tensor/text/parser.h"
#include "ir/tensor/text/printer.h"
#include "tests/c_api/support.h"

using namespace lathe;
using namespace lathe::test;

namespace {

lathe_tensor_info info_of(const lathe_graph* graph, int role, std::size_t index) {
  lathe_tensor_info info{};
  info.struct_size = sizeof(info);
  check_ok(lathe_graph_tensor(graph, role, index, &info));
  return info;
}

std::size_t count_of(const lathe_graph* graph, int role) {
  std::size_t count = 99;
  check_ok(lathe_graph_count(graph, role, &count));
  return count;
}

}  // namespace

TEST_CASE("c api: a graph lists its tensors") {
  const auto graph = parsed(small_graph);
  CHECK(count_of(graph.get(), LATHE_INPUT) == 1);
  CHECK(count_of(graph.get(), LATHE_PARAMETER) == 1);
  CHECK(count_of(graph.get(), LATHE_STATE) == 1);
  CHECK(count_of(graph.get(), LATHE_OUTPUT) == 2);

  const lathe_tensor_info x = info_of(graph.get(), LATHE_INPUT, 0);
  CHECK(x.name == std::string("x"));
  CHECK(x.role == LATHE_INPUT);
  CHECK(x.dtype == LATHE_F32);
  CHECK(x.is_updated == 0);
  CHECK(x.type == std::string("f32[n, d=3]"));
  REQUIRE(x.rank == 2);
  CHECK(x.sizes[0] == -1);
  CHECK(x.sizes[1] == 3);
  CHECK(x.dims[0] == std::string("n"));
  CHECK(x.dims[1] == std::string("d=3"));

  const lathe_tensor_info runs = info_of(graph.get(), LATHE_STATE, 0);
  CHECK(runs.name == std::string("runs"));
  CHECK(runs.dtype == LATHE_I64);
  CHECK(runs.rank == 0);
  CHECK(runs.is_updated == 1);
  CHECK(info_of(graph.get(), LATHE_PARAMETER, 0).is_updated == 0);
  CHECK(info_of(graph.get(), LATHE_OUTPUT, 1).name == std::string("sum"));
}

TEST_CASE("c api: a graph lists the dims that runs bind") {
  const auto graph = parsed(R"(graph @g(input %x: f32[a*b], input %y: f32[c]) { output "x" %x output "y" %y })");
  std::size_t count = 0;
  check_ok(lathe_graph_dim_count(graph.get(), &count));
  REQUIRE(count == 3);
  const char* const names[] = {"a", "b", "c"};
  const int given[] = {1, 1, 0};
  for (std::size_t i = 0; i < count; ++i) {
    const char* name = nullptr;
    std::int32_t is_given = -1;
    check_ok(lathe_graph_dim(graph.get(), i, &name, &is_given));
    CHECK(name == std::string(names[i]));
    CHECK(is_given == given[i]);
    check_ok(lathe_graph_dim(graph.get(), i, &name, nullptr));
  }
}

TEST_CASE("c api: graphs print and load") {
  const auto graph = parsed(small_graph);
  const ir::Graph expected = ir::parse_graph(small_graph);
  CHECK(printed(graph.get()) == ir::print(expected, {.locations = false}));
  CHECK(printed(graph.get(), 1) == ir::print(expected));
  CHECK(printed(graph.get(), 1).find("loc(\"<text>\":4)") != std::string::npos);
  const auto named = made<lathe_graph>(lathe_graph_parse, small_graph, "small.lathe");
  CHECK(printed(named.get(), 1).find("loc(\"small.lathe\":4)") != std::string::npos);
  const std::string file = source_path("examples/bindings/curve.lathe").string();
  const auto loaded = made<lathe_graph>(lathe_graph_load, file.c_str());
  CHECK(count_of(loaded.get(), LATHE_PARAMETER) == 3);
}

TEST_CASE("c api: a caller with a smaller or a larger struct") {
  const auto graph = parsed(small_graph);
  // A caller of a later version has more fields, which this library sets to zero.
  struct {
    lathe_tensor_info known;
    std::uint64_t later, guard;
  } info{};
  info.known.struct_size = sizeof(info.known) + sizeof(info.later);
  info.later = info.guard = 77;
  check_ok(lathe_graph_tensor(graph.get(), LATHE_INPUT, 0, &info.known));
  CHECK(info.known.name == std::string("x"));
  CHECK(info.known.struct_size == sizeof(info.known) + sizeof(info.later));
  CHECK(info.later == 0);
  CHECK(info.guard == 77);
}

TEST_CASE("c api: gradients and training steps are those of the C++ API") {
  const std::string file = source_path("examples/bindings/curve.lathe").string();
  const auto graph = made<lathe_graph>(lathe_graph_load, file.c_str());
  const ir::Graph forward = ir::parse_graph(printed(graph.get()));

  const char* const loss[] = {"loss"};
  const char* const wrt[] = {"W_out", "x"};
  const auto gradient = made<lathe_graph>(lathe_graph_differentiate, graph.get(), loss, 1, wrt, 2);
  REQUIRE(count_of(gradient.get(), LATHE_OUTPUT) == 4);
  CHECK(info_of(gradient.get(), LATHE_OUTPUT, 2).name == std::string("grad.W_out"));
  CHECK(info_of(gradient.get(), LATHE_OUTPUT, 3).name == std::string("grad.x"));

  const char* const names[] = {"lr", "beta1", "beta2", "eps", "weight_decay", "clip_norm", "accumulate"};
  const double values[] = {0.1, 0.8, 0.99, 1e-6, 0.2, 2, 3};
  const auto adamw = made<lathe_graph>(lathe_graph_training_step, graph.get(), "loss", "adamw", names, values, 7);
  const ir::Graph expected =
      training_step(forward, "loss", AdamW{.lr = 0.1, .beta1 = 0.8, .beta2 = 0.99, .eps = 1e-6, .weight_decay = 0.2},
                    {.clip_norm = 2, .accumulate = 3});
  CHECK(printed(adamw.get()) == ir::print(expected, {.locations = false}));

  const char* const sgd_names[] = {"momentum", "nesterov", "weight_decay"};
  const double sgd_values[] = {0.9, 1, 0.1};
  const auto sgd = made<lathe_graph>(lathe_graph_training_step, graph.get(), "loss", "sgd", sgd_names, sgd_values, 3);
  CHECK(printed(sgd.get()) ==
        ir::print(training_step(forward, "loss", SGD{.momentum = 0.9, .weight_decay = 0.1, .nesterov = true}),
                  {.locations = false}));
  const auto adam = made<lathe_graph>(lathe_graph_training_step, graph.get(), "loss", "adam", nullptr, nullptr, 0);
  CHECK(printed(adam.get()) == ir::print(training_step(forward, "loss", Adam{}), {.locations = false}));
}

TEST_CASE("c api: all dtypes have a name and a size") {
  int known = 0;
  for (std::int32_t code = 0; code < 64; ++code) {
    const char* name = nullptr;
    std::size_t bytes = 0;
    if (lathe_dtype_describe(code, &name, &bytes) != LATHE_OK) continue;
    ++known;
    const std::string text = std::string("graph @g(input %x: ") + name + "[]) { output \"x\" %x }";
    const auto graph = parsed(text);
    CHECK(info_of(graph.get(), LATHE_INPUT, 0).dtype == code);
    CHECK(bytes >= 1);
  }
  CHECK(known == 11);
  const char* name = nullptr;
  check_ok(lathe_dtype_describe(LATHE_BF16, &name, nullptr));
  CHECK(name == std::string("bf16"));
  std::size_t bytes = 0;
  check_ok(lathe_dtype_describe(LATHE_C128, nullptr, &bytes));
  CHECK(bytes == 16);
}
