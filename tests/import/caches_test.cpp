#include <catch2/catch.hpp>

#include "ir/tensor/interpret/interpreter.h"
#include "models/import/import.h"
#include "tests/import/support/import_error.h"
#include "tests/import/support/model_writer.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Matchers::Contains;

namespace {

/// A decoder in the form of merged exports: with the cache, it joins past rows with those of the new tokens along
/// `axis` and adds all up.
ModelWriter merged_decoder(std::int64_t axis) {
  Message with_cache, without;
  with_cache.message(1, node_message("rows", "Gather", {"table", "input_ids"}, {"found"}));
  with_cache.message(1, node_message("heads", "Unsqueeze", {"found", "one"}, {"new"}));
  with_cache.message(
      1, node_message("join", "Concat", {"past_key_values.0.key", "new"}, {"k"}, {attribute("axis", axis)}));
  with_cache.message(1, node_message("sum", "ReduceSum", {"k", "two"}, {"s"}, {attribute("keepdims", 0)}));
  without.message(1, node_message("same", "Identity", {"past_key_values.0.key"}, {"s"}));
  without.message(1, node_message("same_k", "Identity", {"past_key_values.0.key"}, {"k"}));
  for (Message* branch : {&with_cache, &without})
    branch->message(12, Message().text(1, "s")).message(12, Message().text(1, "k"));
  ModelWriter model;
  model.input("input_ids", {"batch", "length"}, 7).input("past_key_values.0.key", {"batch", "1", "rows", "2"});
  model.input("use_cache_branch", {"1"}, 9).floats("table", {3, 2}, {1, 10, 2, 20, 3, 30});
  model.integers("one", {1}, {1}).integers("two", {1}, {2});
  model.node("/If", "If", {"use_cache_branch"}, {"sums", "present.0.key"},
             {graph_attribute("then_branch", with_cache), graph_attribute("else_branch", without)});
  return model.output("sums").output("present.0.key");
}

importing::ImportOptions cached_options() {
  importing::ImportOptions options;
  options.inputs.set("use_cache_branch", HostTensor::from_ints({1}, {1}, boolean));
  options.shapes["past_key_values.0.key"] = {Dim("batch"), 1, Dim("past"), 2};
  options.caches["past_key_values.0.key"] = {"present.0.key", 2};
  return options;
}

}  // namespace

TEST_CASE("caches: a merged decoder takes the branch with the cache, and writes the new rows to its state") {
  const importing::ImportedGraph imported = importing::import_graph(merged_decoder(2).write(), cached_options());
  CHECK(imported.outputs.size() == 1);
  Tensors arguments = imported.parameters.values();
  arguments.set("input_ids", HostTensor::from_ints({1, 1}, {2}));
  arguments.set("past_key_values.0.key_cache", HostTensor::from({1, 1, 4, 2}, {1, 1, 2, 2, 9, 9, 9, 9}));
  const Tensors results = ir::interpret(imported.graph.finish(), arguments, {.dims = {{"past", 2}}});
  CHECK(results.at("sums").get(0) == 1 + 2 + 3);
  CHECK(results.at("sums").get(1) == 1 + 2 + 30);
  const HostTensor& rows = results.at("past_key_values.0.key_cache");
  const double expected[] = {1, 1, 2, 2, 3, 30, 9, 9};
  for (std::int64_t i = 0; i < rows.numel(); ++i) CHECK(rows.get(i) == expected[i]);
}

TEST_CASE("caches: with parents, each sequence continues the rows of another one") {
  importing::ImportOptions options = cached_options();
  options.parents = "from";
  const importing::ImportedGraph imported = importing::import_graph(merged_decoder(2).write(), options);
  Tensors arguments = imported.parameters.values();
  arguments.set("input_ids", HostTensor::from_ints({2, 1}, {0, 2}));
  arguments.set("from", HostTensor::from_ints({2}, {1, 1}));
  arguments.set("past_key_values.0.key_cache", HostTensor::from({2, 1, 2, 2}, {7, 7, 8, 8, 4, 5, 6, 6}));
  const Tensors results = ir::interpret(imported.graph.finish(), arguments, {.dims = {{"past", 1}}});
  CHECK(results.at("sums").get(1) == 5 + 10);
  CHECK(results.at("sums").get(3) == 5 + 30);
  const HostTensor& rows = results.at("past_key_values.0.key_cache");
  const double expected[] = {4, 5, 1, 10, 4, 5, 3, 30};
  for (std::int64_t i = 0; i < rows.numel(); ++i) CHECK(rows.get(i) == expected[i]);
  options.caches.clear();
  CHECK_THAT(import_error(merged_decoder(2), options), Contains("'from' are parents of cached rows, and no input has "
                                                                "such rows  [argument_unknown]"));
  options = cached_options();
  options.parents = "from";
  options.caches["past_key_values.0.key"].dim = 0;
  CHECK_THAT(import_error(merged_decoder(0), options),
             Contains("'past_key_values.0.key' joins new rows along its batch  [argument_shape]"));
}

TEST_CASE("caches: other shapes, dims and outputs are errors") {
  importing::ImportOptions options = cached_options();
  options.shapes["past_key_values.0.key"] = {Dim("batch"), 2, Dim("past"), 2};
  CHECK_THAT(
      import_error(merged_decoder(2), options),
      Contains("'past_key_values.0.key' has not the shape [batch, 2, past, 2]") && Contains("[argument_shape]"));
  options = cached_options();
  options.shapes["other"] = {1};
  CHECK_THAT(import_error(merged_decoder(2), options), Contains("has no input 'other'  [argument_unknown]"));
  options = cached_options();
  options.caches["past_key_values.0.key"].output = "present.1.key";
  CHECK_THAT(import_error(merged_decoder(2), options),
             Contains("has no input 'past_key_values.0.key' with an output 'present.1.key'  [argument_unknown]"));
  options = cached_options();
  options.caches["past_key_values.0.key"].dim = 7;
  CHECK_THAT(import_error(merged_decoder(2), options), Contains("has no dim 7  [argument_shape]"));
  options = cached_options();
  options.inputs.set("use_cache_branch", HostTensor::from_ints({1}, {0}, boolean));
  CHECK_THAT(
      import_error(merged_decoder(2), options),
      Contains("the output 'present.0.key' is not the input 'past_key_values.0.key', joined with new rows along "
               "dim 2  [import_unsupported]"));
}
