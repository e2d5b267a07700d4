#include <catch2/catch.hpp>
#include <optional>

#include "frontend/grad.h"
#include "frontend/ops/derived_ops.h"
#include "ir/tensor/text/printer.h"
#include "models/import/import.h"
#include "passes/transforms/dce.h"
#include "tests/import/support/import_error.h"
#include "tests/import/support/model_case.h"
#include "tests/import/support/model_writer.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Matchers::Contains;

/// Loops that end when a counter has passed a size.
namespace {

struct Step {
  std::string op;
  std::vector<std::string> inputs;
  std::string output;
};

/// A Loop whose body counts its iterations in a float, and stacks 1, 2, ... `body` computes `more` and `next`, the
/// next value of the state k, from i, go, k; `before` computes `starts`, if the loop has a first condition. Values:
/// n, the size of x: f32[n]; bound i64[], an input; c0, c1, ..
struct Counting {
  std::vector<Step> body;
  std::vector<Step> before = {};
  std::string first = "c0", limit = {};
  bool stacks = true;
};

ModelWriter counting(const Counting& how) {
  ModelWriter model;
  model.input("x", {"n"}).input("bound", {}, 7).floats("nothing", {}, {0}).floats("one", {}, {1});
  for (const std::int64_t number : {0, 1, 2, 3, 5, 2500}) model.integers("c" + std::to_string(number), {}, {number});
  model.integers("down", {}, {-1});
  model.node("/Shape", "Shape", {"x"}, {"sizes"}).node("/Size", "Gather", {"sizes", "c0"}, {"n"});
  model.node("/Twice", "Mul", {"n", "c2"}, {"2n"});
  for (const Step& step : how.before) model.node("/Starts", step.op, step.inputs, {step.output});
  Message body;
  for (const Step& step : how.body) body.message(1, node_message("/Step", step.op, step.inputs, {step.output}));
  body.message(1, node_message("/Count", "Add", {"s", "one"}, {"s_next"}));
  body.message(1, node_message("/Keep", "Identity", {"s_next"}, {"kept"}));
  for (const char* name : {"i", "go", "k", "s"}) body.message(11, Message().text(1, name));
  std::vector<std::string> outputs{"more", "next", "s_next"}, results{"k_last", "count"};
  if (how.stacks) {
    outputs.emplace_back("kept");
    results.emplace_back("all");
  }
  for (const std::string& name : outputs) body.message(12, Message().text(1, name));
  model.node("/Loop", "Loop", {how.limit, how.before.empty() ? "" : "starts", how.first, "nothing"}, results,
             {graph_attribute("body", body)});
  for (const std::string& name : results) model.output(name);
  return model;
}

Tensors run_counting(const importing::ImportedGraph& imported, std::int64_t n, bool is_compiled = false) {
  return run_imported(imported, {{"x", HostTensor(f32, {n})}, {"bound", HostTensor(i64, {})}}, is_compiled);
}

/// Runs the loop for some sizes n. Returns the numbers of iterations; -1 if the size is refused when it is bound.
std::vector<std::int64_t> trips(const Counting& how, const std::vector<std::int64_t>& sizes) {
  const importing::ImportedGraph imported = importing::import_graph(counting(how).write());
  std::vector<std::int64_t> counts;
  for (const std::int64_t n : sizes) {
    try {
      const Tensors results = run_counting(imported, n);
      counts.push_back(static_cast<std::int64_t>(results.at("count").item()));
      if (!how.stacks) continue;
      CHECK(results.at("all").shape() == std::vector{counts.back()});
      for (std::int64_t i = 0; i < counts.back(); ++i) CHECK(results.at("all").get(i) == static_cast<double>(i + 1));
    } catch (const UserError& error) {
      CHECK(error.label() == "import_range");
      counts.push_back(-1);
    }
  }
  return counts;
}

/// Steps in which k counts up.
std::vector<Step> with_counter(std::vector<Step> steps) {
  steps.insert(steps.begin(), {"Add", {"k", "c1"}, "next"});
  return steps;
}

using Counts = std::vector<std::int64_t>;
const Counts few{0, 1, 2, 5};

}  // namespace

TEST_CASE("counted loops: a condition on the number of the iteration gives the number of iterations") {
  const std::vector<Step> body{
      {"Add", {"i", "c1"}, "i1"}, {"Less", {"i1", "n"}, "more"}, {"Add", {"k", "c2"}, "next"}};
  const Counting loop{.body = body, .before = {{"Less", {"c0", "n"}, "starts"}}};
  CHECK(trips(loop, few) == few);
  const importing::ImportedGraph imported = importing::import_graph(counting(loop).write());
  CHECK_THAT(ir::print(ir::dce(imported.graph.finish())), Contains("trips=n,"));
  CHECK(run_counting(imported, 4, true).at("k_last").get_int(0) == 8);
  // Without a first condition the loop runs at least once, and n may be 0.
  CHECK(trips({.body = body}, few) == Counts{-1, 1, 2, 5});
}

TEST_CASE("counted loops: a size that a run refuses is an error at the node") {
  const Counting loop{.body = with_counter({{"Less", {"next", "n"}, "more"}})};
  const importing::ImportedGraph imported = importing::import_graph(counting(loop).write());
  std::string text;
  try {
    run_counting(imported, 0);
  } catch (const UserError& error) {
    text = error.what();
  }
  CHECK_THAT(text, Contains("model.onnx:/Loop: Loop: the loop is imported with n iterations, and it has at least 1  "
                            "[import_range]") &&
                       Contains("in this run n=0, so 1 is more than 0"));
}

TEST_CASE("counted loops: comparisons of counters with sizes, in all forms") {
  const auto before = [](const Step& step) { return std::vector<Step>{step}; };
  // Counters, also with a first value, and both sides of a comparison.
  CHECK(trips({with_counter({{"Less", {"next", "n"}, "more"}}), before({"Less", {"c0", "n"}, "starts"})}, few) ==
        few);
  CHECK(trips({with_counter({{"Greater", {"2n", "next"}, "more"}}), before({"Greater", {"2n", "n"}, "starts"}), "n"},
              few) == few);
  CHECK(trips({{{"Sub", {"k", "c1"}, "next"}, {"Greater", {"next", "c0"}, "more"}},
               before({"Greater", {"n", "c0"}, "starts"}),
               "n"},
              few) == few);
  // The counter before the iteration: one more iteration.
  CHECK(trips({.body = with_counter({{"Less", {"k", "n"}, "more"}})}, few) == Counts{1, 2, 3, 6});
  // "or equal", and negations.
  CHECK(trips({.body = with_counter({{"LessOrEqual", {"next", "n"}, "more"}})}, few) == Counts{1, 2, 3, 6});
  CHECK(trips({.body = with_counter({{"GreaterOrEqual", {"n", "next"}, "more"}})}, few) == Counts{1, 2, 3, 6});
  CHECK(trips({.body = with_counter({{"Greater", {"next", "n"}, "past"}, {"Not", {"past"}, "more"}})}, few) ==
        Counts{1, 2, 3, 6});
  CHECK(trips({.body = with_counter({{"Less", {"k", "n"}, "less"}, {"And", {"go", "less"}, "more"}})}, few) ==
        Counts{1, 2, 3, 6});
  // Steps of 2 that divide the way, and those that do not.
  CHECK(trips({.body = {{"Add", {"k", "c2"}, "next"}, {"LessOrEqual", {"next", "2n"}, "more"}}}, few) ==
        Counts{1, 2, 3, 6});
  CHECK(trips({.body = {{"Add", {"k", "c2"}, "next"}, {"Less", {"k", "2n"}, "more"}}}, few) == Counts{1, 2, 3, 6});
  // The sum of counters and the iteration's number: 2 i + 2 against 2 n.
  CHECK(trips({.body = with_counter({{"Add", {"i", "next"}, "sum"}, {"LessOrEqual", {"sum", "2n"}, "more"}})}, few) ==
        Counts{1, 2, 3, 6});
  CHECK(trips({.body = with_counter({{"Mul", {"k", "c2"}, "twice"}, {"Less", {"twice", "2n"}, "more"}})}, few) ==
        Counts{1, 2, 3, 6});
  // Numbers alone, also above 1000; a condition that is false at once.
  CHECK(trips({.body = with_counter({{"Less", {"next", "c2500"}, "more"}})}, {1}) == Counts{2500});
  CHECK(trips({.body = with_counter({{"Less", {"next", "down"}, "more"}})}, {1}) == Counts{1});
}

TEST_CASE("counted loops: a limit ends a loop before its counter does") {
  const std::vector<Step> body = with_counter({{"Less", {"next", "n"}, "more"}});
  // The smaller number is known for all n: at least one iteration needs no check, since the limit may be 0.
  CHECK(trips({.body = body, .limit = "n"}, few) == few);
  CHECK(trips({.body = with_counter({{"Less", {"k", "2n"}, "more"}}), .limit = "n"}, few) == few);
  CHECK(trips({.body = with_counter({{"Less", {"k", "n"}, "more"}}), .limit = "c0"}, few) == Counts{0, 0, 0, 0});
  // It depends on n: all iterations up to the limit run, and states do not change after the end.
  CHECK(trips({.body = body, .limit = "c3", .stacks = false}, {0, 1, 2, 5}) == Counts{1, 1, 2, 3});
  CHECK(trips({.body = body, .before = {{"Less", {"c0", "n"}, "starts"}}, .limit = "c3", .stacks = false}, few) ==
        Counts{0, 1, 2, 3});
}

TEST_CASE("counted loops: gradients go through all iterations") {
  ModelWriter model;
  model.input("x", {"n"})
      .floats("w", {2}, {2, 3})
      .integers("c0", {}, {0})
      .integers("c1", {}, {1})
      .floats("ones", {2}, {1, 1});
  model.node("/Shape", "Shape", {"x"}, {"sizes"}).node("/Size", "Gather", {"sizes", "c0"}, {"n"});
  Message body;
  body.message(1, node_message("", "Add", {"i", "c1"}, {"i1"}));
  body.message(1, node_message("", "LessOrEqual", {"i1", "n"}, {"more"}));
  body.message(1, node_message("", "Mul", {"s", "w"}, {"next"}));
  for (const char* name : {"i", "go", "s"}) body.message(11, Message().text(1, name));
  for (const char* name : {"more", "next"}) body.message(12, Message().text(1, name));
  model.node("/Loop", "Loop", {"", "", "ones"}, {"y"}, {graph_attribute("body", body)}).output("y");
  const importing::ImportedGraph imported = importing::import_graph(model.write());
  imported.graph.output("dw", grad(imported.outputs.at("y").sum(), {imported.graph.parameters().back()})[0]);
  const Tensors results = run_imported(imported, {{"x", HostTensor(f32, {3})}}, false);
  CHECK(results.at("y").get(1) == 81);
  CHECK(results.at("dw").get(0) == 32);  // 4 w^3
}

TEST_CASE("counted loops: other conditions are refused, or need a limit") {
  const auto refused = [](const Counting& loop) {
    const std::string text = import_error(counting(loop));
    return text.find("no number of iterations limits the loop  [import_unsupported]") != std::string::npos &&
           text.find("let the condition compare a counter with such a number, as i + 1 < n does") !=
               std::string::npos;
  };
  const auto up = [](const Step& condition) { return Counting{.body = with_counter({condition})}; };
  // A number of the run, as the bound, as the first value, or as the step.
  CHECK(refused(up({"Less", {"next", "bound"}, "more"})));
  CHECK(refused({.body = with_counter({{"Less", {"next", "n"}, "more"}}), .first = "bound"}));
  CHECK(refused({.body = {{"Add", {"k", "bound"}, "next"}, {"Less", {"next", "n"}, "more"}}}));
  // The difference does not fall, or is not ordered.
  CHECK(refused(up({"Greater", {"next", "n"}, "more"})));
  CHECK(refused({.body = {{"Sub", {"k", "c1"}, "next"}, {"Less", {"next", "n"}, "more"}}}));
  CHECK(refused({.body = {{"Identity", {"k"}, "next"}, {"Less", {"next", "n"}, "more"}}}));
  CHECK(refused({.body = with_counter({{"Equal", {"next", "n"}, "at"}, {"Not", {"at"}, "more"}})}));
  // Counters with other steps: by a factor, by a choice, and a number that is no polynomial.
  CHECK(refused({.body = {{"Mul", {"k", "c2"}, "next"}, {"Less", {"next", "n"}, "more"}}, .first = "c1"}));
  CHECK(refused({.body = {{"Less", {"k", "bound"}, "low"},
                          {"Where", {"low", "c1", "c2"}, "step"},
                          {"Add", {"k", "step"}, "next"},
                          {"Less", {"next", "n"}, "more"}}}));
  CHECK(refused({.body = {{"Add", {"k", "c2"}, "next"}, {"Less", {"next", "n"}, "more"}}}));
  // Two conditions, and a first condition that is not that of the iterations.
  CHECK(refused({.body = with_counter(
                     {{"Less", {"next", "n"}, "a"}, {"Less", {"i", "bound"}, "b"}, {"And", {"a", "b"}, "more"}})}));
  CHECK(refused(
      {.body = with_counter({{"Less", {"next", "n"}, "more"}}), .before = {{"Less", {"c1", "n"}, "starts"}}}));
  CHECK(refused(
      {.body = with_counter({{"Less", {"next", "n"}, "more"}}), .before = {{"Less", {"c0", "bound"}, "starts"}}}));
  // With a limit, such a loop has no rows for each iteration.
  Counting limited = up({"Less", {"next", "bound"}, "more"});
  limited.limit = "c5";
  CHECK_THAT(import_error(counting(limited)), Contains("the number of rows of result 2 depends on a condition"));
  limited.stacks = false;
  CHECK(trips(limited, {3}) == Counts{1});
}
