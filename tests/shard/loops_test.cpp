#include <catch2/catch.hpp>

#include "ir/tensor/loop_views.h"
#include "ir/tensor/text/printer.h"
#include "tests/shard/support.h"
#include "tests/support/graphs/recurrent_steps.h"

/// Loops whose body carries a split dim through all iterations run on shards, without communication in the body.
namespace lathe::shard::test {

namespace {

using Catch::Contains;

/// h[t] = tanh(h[t-1] w) + x[t], over rows of a batch.
ir::Graph rnn(const std::function<Tensor(const Tensor& h)>& more = {}) {
  Graph g{"rnn"};
  const Dim T{"T"}, B{"B"};
  const Tensor x = g.input("x", f64, {T, B, 4}), w = g.parameter("w", f64, {4, Dim("n", 4)});
  const auto [last, all] = scan(g.zeros({B, 4}, f64), x, [&](const Tensor& h, const Tensor& x_t) {
    const Tensor next = tanh(matmul(h, w)) + x_t;
    return std::pair(more ? more(next) : next, next);
  });
  g.output("last", last);
  g.output("all", all);
  return g.finish();
}

/// Checks that every loop of the graph is over `rows` rows of a batch, and that the graph has loops.
void check_rows(const ir::Graph& graph, const std::string& local, bool* found = nullptr) {
  int loops = 0;
  for (const ir::Node& node : graph.nodes) {
    if (!ir::is_loop(node)) continue;
    ++loops;
    const std::string text = ir::print(ir::loop_body(node).graph());
    CAPTURE(text);
    CHECK_THAT(text, Contains(local));
    CHECK_THAT(text, !Contains("[B,") && !Contains(", B,") && !Contains("all_reduce") && !Contains("all_gather"));
  }
  CHECK(loops > 0);
  if (found) *found = loops > 0;
}

double difference(const ir::Graph& graph, const Sharded& sharded, const Tensors& arguments) {
  return training_difference(graph, sharded, arguments, 1);
}

Tensors rnn_arguments(std::int64_t length) {
  Tensors arguments{{"x", HostTensor(f64, {length, 8, 4})}, {"w", HostTensor(f64, {4, 4})}};
  for (auto& [name, value] : arguments)
    for (std::int64_t i = 0; i < value.numel(); ++i) value.set(i, static_cast<double>(i * 7 % 11) / 11 - 0.4);
  return arguments;
}

}  // namespace

TEST_CASE("shard: a loop over a split batch runs on shards") {
  const ir::Graph graph = rnn();
  for (const char* mesh : {"data=2", "data=4", "data=8"}) {
    CAPTURE(mesh);
    const Sharded sharded = divided(graph, mesh, "B:data");
    check_rows(sharded.graph, "f64[B@data, 4]");
    CHECK(sharded.collectives.empty());
    CHECK(sharded.results.at("last") == Placement{SplitDim{0, 1, Dim("B@data")}});
    for (const std::int64_t length : {0, 1, 5}) CHECK(difference(graph, sharded, rnn_arguments(length)) == 0);
  }
}

TEST_CASE("shard: training steps with recurrent layers match one process, split over the batch") {
  using namespace lathe::test;
  for (const ir::Graph& step : {lstm_step(f64), gru_step(f64), mamba_step(f64), delta_step(f64), stacked_step(f64)})
    for (const auto& [mesh, splits] : {std::pair{"data=2", "B:data"},
                                       {"data=4", "B:data"},
                                       {"data=2,model=2", "B:data,vocab:model"},
                                       {"a=2,b=2", "B:a,B:b"}}) {
      CAPTURE(step.name, mesh);
      const Sharded sharded = divided(step, mesh, splits);
      check_rows(sharded.graph, std::string(mesh) == "a=2,b=2" ? "B@a@b" : "B@data");
      CHECK(training_difference(step, sharded, step_arguments(step, 8, 6), 3) < 1e-10);
    }
}

TEST_CASE("shard: models whose layers are one loop match one process, split over the batch") {
  using namespace lathe::test;
  for (const ir::Graph& step : {stacked_gpt_step(2, f64), stacked_llama_step(2, f64)})
    for (const auto& [mesh, splits] :
         {std::pair{"data=2", "B:data"}, {"data=4", "B:data"}, {"data=2,model=2", "B:data,vocab:model"}}) {
      CAPTURE(step.name, mesh);
      const Sharded sharded = divided(step, mesh, splits);
      check_rows(sharded.graph, "B@data");
      CHECK(training_difference(step, sharded, step_arguments(step, 4, 5), 3) < 1e-10);
      // The gradients of a stack are added up at once.
      const ir::Graph deeper =
          divided(step.name == "gpt" ? stacked_gpt_step(6, f64) : stacked_llama_step(6, f64), mesh, splits).graph;
      CHECK(count(deeper, "all_reduce") == count(sharded.graph, "all_reduce"));
    }
}

TEST_CASE("shard: loops of sharded states and parameters read whole weights") {
  using namespace lathe::test;
  const ir::Graph step = lstm_step(f64);
  for (const ShardOptions& options : {ShardOptions{.states = "data"}, ShardOptions{.parameters = "data"}}) {
    const Sharded sharded = divided(step, "data=2", "B:data", options);
    check_rows(sharded.graph, "B@data");
    CHECK(training_difference(step, sharded, step_arguments(step, 8, 6), 3) < 1e-10);
  }
}

TEST_CASE("shard: loops with checkpoints, and loops in loops") {
  Graph g{"checkpoints"};
  const Dim B{"B"};
  const Tensor x = g.input("x", f64, {8, B, 4}), w = g.parameter("w", f64, {4, 4});
  const auto [last, all] =
      scan(g.zeros({B, 4}, f64), x,
           [&](const Tensor& h, const Tensor& x_t) {
             const Tensor next =
                 repeat(2, h, [&](const Tensor& inner, const Tensor&) { return tanh(matmul(inner, w)) + x_t; });
             return std::pair(next, next);
           },
           {.checkpoint_every = 2});
  const ir::Graph step = training_step(g, square(last).mean() + all.mean(), SGD{.lr = 0.1});
  const Sharded sharded = divided(step, "data=4", "B:data");
  check_rows(sharded.graph, "B@data");
  Tensors arguments = rnn_arguments(8);
  arguments.insert({"optimizer.step", HostTensor(i64, {})});
  CHECK(training_difference(step, sharded, arguments, 2) < 1e-12);
}

TEST_CASE("shard: a carry from zero may add up shares of a sum over a split dim") {
  const auto graph_of = [](double first, bool reads_it) {
    Graph g{"total"};
    const Tensor x = g.input("x", f64, {Dim("T"), Dim("B"), 4});
    const auto [total, all] = scan(g.full({4}, first, f64), x, [&](const Tensor& sum, const Tensor& x_t) {
      const Tensor next = sum + (x_t * x_t).sum(0);
      return std::pair(next, reads_it ? sum * sum : next * 2.0);
    });
    g.output("total", total);
    g.output("all", all);
    return g.finish();
  };
  Tensors arguments = rnn_arguments(5);
  arguments.erase("w");
  const ir::Graph graph = graph_of(0, false);
  for (const char* mesh : {"data=2", "data=4"})
    CHECK(difference(graph, divided(graph, mesh, "B:data"), arguments) < 1e-14);
  // Each process would add the first value, and the square of a share is no share of a square.
  CHECK(error_label(graph_of(1, false), "data=2", "B:data") == "shard_gather");
  CHECK(error_label(graph_of(0, true), "data=2", "B:data") == "shard_gather");
}

TEST_CASE("shard: random numbers in a loop are those of one process") {
  Graph g{"drops"};
  const Dim B{"B"};
  const Tensor x = g.input("x", f64, {B, 4});
  g.output("y", repeat(3, x, [&](const Tensor& h, const Tensor&) { return dropout(h, 0.5) + 1.0; }));
  const ir::Graph graph = g.finish();
  const Sharded sharded = divided(graph, "data=4", "B:data");
  check_rows(sharded.graph, "B@data");
  Tensors arguments;
  for (const ir::ValueId id : graph.arguments()) {
    const ir::Node& node = graph[id];
    HostTensor value(node.type.dtype, node.type.shape.evaluate({{"B", 8}}));
    for (std::int64_t i = 0; i < value.numel(); ++i) value.set(i, static_cast<double>(i + 1));
    arguments.insert({node.name, value});
  }
  CHECK(difference(graph, sharded, arguments) == 0);
}

TEST_CASE("shard: positions in a body are those of the whole") {
  Graph g{"positions"};
  const Dim B{"B"};
  const Tensor x = g.input("x", f64, {3, B});
  const auto [last, all] = scan(g.zeros({B}, f64), x, [&](const Tensor& h, const Tensor& x_t) {
    const Tensor next = h * 0.5 + x_t * x_t.graph().arange(B, f64);
    return std::pair(next, next);
  });
  g.output("last", last);
  g.output("all", all);
  const ir::Graph graph = g.finish();
  for (const char* splits : {"B:a", "B:a,B:b"}) {
    const Sharded sharded = divided(graph, "a=2,b=2", splits);
    HostTensor values(f64, {3, 8});
    for (std::int64_t i = 0; i < 24; ++i) values.set(i, static_cast<double>(i % 5) - 2);
    CHECK(difference(graph, sharded, {{"x", values}}) == 0);
  }
}

TEST_CASE("shard: a dim that iterations would have to communicate about is refused, with the op of the body") {
  // A mean over the batch in each iteration; the contracted dim; the dim of the iterations.
  const ir::Graph mean = rnn([](const Tensor& h) { return h - h.mean(0, true); });
  CHECK(error_label(mean, "data=2", "B:data") == "shard_gather");
  CHECK_THAT(error_text(mean, "data=2", "B:data"),
             Contains("in its body, sum at loops_test.cpp:") &&
                 Contains("the shares of processes would have to be added up in each iteration"));
  CHECK_THAT(error_text(rnn(), "data=2", "n:data"), Contains("in its body, contract at loops_test.cpp:"));
  const ir::Graph extremum = rnn([](const Tensor& h) { return h - h.max(0, true); });
  CHECK_THAT(error_text(extremum, "data=2", "B:data"),
             Contains("in its body, max at loops_test.cpp:") &&
                 Contains("the results of processes would have to be compared in each iteration"));
  CHECK_THAT(error_text(rnn(), "data=2", "T:data"), Contains("it has an element for each iteration"));
  // The same graphs split over another dim.
  CHECK(error_label(rnn(), "data=2", "B:data").empty());
}

}  // namespace lathe::shard::test
