#include <algorithm>
#include <catch2/catch.hpp>
#include <cmath>

#include "frontend/dsl.h"
#include "ir/support/error.h"

using namespace lathe;

namespace {

struct Moments {
  double mean = 0, std = 0, low = 0, high = 0;
};
Moments moments(const HostTensor& t) {
  Moments m{0, 0, t.get(0), t.get(0)};
  for (std::int64_t i = 0; i < t.numel(); ++i) {
    m.mean += t.get(i) / static_cast<double>(t.numel());
    m.low = std::min(m.low, t.get(i));
    m.high = std::max(m.high, t.get(i));
  }
  for (std::int64_t i = 0; i < t.numel(); ++i)
    m.std += (t.get(i) - m.mean) * (t.get(i) - m.mean) / static_cast<double>(t.numel());
  m.std = std::sqrt(m.std);
  return m;
}

}  // namespace

TEST_CASE("a parameter of unknown size is an error that asks for the size") {
  Graph g{"unknown"};
  const int line = __LINE__ + 1;
  g.parameter("table", f32, {Dim{"rows"} * 2, 3});
  const ir::Graph graph = g.finish();
  CHECK(initial_values(graph, g.initializers(), 1, {{"rows", 4}}).at("table").shape()[0] == 8);
  try {
    initial_values(graph, g.initializers(), 1);
    FAIL("no error");
  } catch (const UserError& error) {
    CHECK(error.label() == "dim_unbound");
    CHECK(error.location().line() == line);
    CHECK_THAT(error.what(), Catch::Contains("the size rows of the parameter table: f32[2*rows, 3] is not known") &&
                                 Catch::Contains("bindings") && !Catch::Contains("input"));
  }
}

TEST_CASE("initial values have the moments of their distributions") {
  const std::vector<std::int64_t> sizes{200, 300};
  const auto of = [&](const Init& init) { return moments(initial_value(init, "w", f64, sizes, 5)); };
  CHECK(of(Init::normal({.deviation = 0.02})).std == Approx(0.02).epsilon(0.02));
  CHECK(of(Init::normal({.mean = 10, .deviation = 2})).mean == Approx(10).epsilon(0.01));
  CHECK(of(Init::automatic()).std == Approx(1 / std::sqrt(300.0)).epsilon(0.02));
  CHECK(of(Init::kaiming_normal(1)).std == Approx(1 / std::sqrt(300.0)).epsilon(0.02));
  CHECK(of(Init::xavier_normal()).std == Approx(std::sqrt(2 / 500.0)).epsilon(0.02));
  const Moments uniform = of(Init::uniform({.low = -3, .high = 1})), xavier = of(Init::xavier_uniform());
  CHECK(uniform.mean == Approx(-1).epsilon(0.02));
  CHECK((uniform.low >= -3 && uniform.high < 1));
  CHECK(xavier.high == Approx(std::sqrt(6 / 500.0)).epsilon(0.01));
  CHECK(xavier.low == Approx(-std::sqrt(6 / 500.0)).epsilon(0.01));
  CHECK(of(Init::ones()).low == 1);
}

TEST_CASE("an initial value depends on seed, name and element only") {
  const auto draw = [](const char* name, std::uint64_t seed, std::int64_t rows) {
    return initial_value(Init::normal({.deviation = 1}), name, f32, {rows, 4}, seed);
  };
  CHECK(draw("a", 1, 3).same_bits(draw("a", 1, 3)));
  CHECK_FALSE(draw("a", 1, 3).same_bits(draw("a", 2, 3)));
  CHECK_FALSE(draw("a", 1, 3).same_bits(draw("b", 1, 3)));
  CHECK(draw("a", 1, 3).get(11) == draw("a", 1, 30).get(11));
  CHECK(initial_value(Init::values({1, 2}), "v", i64, {2}, 0).get_int(1) == 2);
  CHECK_THROWS_WITH(initial_value(Init::values({1}), "v", f32, {2}, 0), Catch::Contains("[init_values]"));
}

TEST_CASE("every parameter and state of a training step has an initial value") {
  Graph g{"step"};
  const Dim B{"B"}, d{"d", 4};
  const nn::Linear fc(g, "fc", d, d, {.weight = Init::ones()});
  const Tensor y = nn::Dropout(0.1)(fc(g.input("x", f32, {B, d})));
  const auto loss = square(y).mean();
  const auto initializers = g.initializers();
  const ir::Graph graph = training_step(g, loss, AdamW{});
  const auto values = initial_values(graph, initializers, 9);
  CHECK(values.at("fc.weight").get(0) == 1);
  CHECK(values.at("optimizer.m.fc.weight").get(0) == 0);
  CHECK(values.at("rng").get_int(0) == 9);
  CHECK_FALSE(values.contains("x"));
  for (const ir::ValueId id : graph.arguments()) CHECK((graph[id].name == "x" || values.contains(graph[id].name)));
}
