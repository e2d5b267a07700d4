#include <catch2/catch.hpp>

#include "models/import/import.h"
#include "tests/import/support/import_error.h"
#include "tests/import/support/model_case.h"
#include "tests/import/support/model_writer.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Matchers::Contains;

namespace {

/// A GroupQueryAttention with 2 heads of 4 elements, n cached rows and t new ones; `total` is the name of the value
/// for total_sequence_length. `more` are operands after it.
ModelWriter grouped(const std::vector<Message>& attributes, const std::vector<std::string>& more = {},
                    const std::string& total = "sum") {
  ModelWriter model;
  model.import("com.microsoft", 1);
  for (const char* name : {"q", "k", "v"}) model.input(name, {"1", "t", "8"});
  for (const char* name : {"past_k", "past_v"}) model.input(name, {"1", "2", "n", "4"});
  model.input("lengths", {"1"}, 6).input("given", {"1", "all"}, 7).input("extra", {"4"});
  model.integers("one", {1}, {1}).integers("two", {1}, {2});
  model.node("s", "Shape", {"past_k"}, {"shape"}).node("g", "Gather", {"shape", "two"}, {"n"});
  model.node("s2", "Shape", {"q"}, {"shape2"}).node("g2", "Gather", {"shape2", "one"}, {"t"});
  model.node("s3", "Shape", {"given"}, {"shape3"}).node("g3", "Gather", {"shape3", "one"}, {"all"});
  model.node("a", "Add", {"n", "t"}, {"sum"}).node("a2", "Add", {"sum", "one"}, {"longer"});
  std::vector<std::string> operands{"q", "k", "v", "past_k", "past_v", "lengths", total};
  operands.insert(operands.end(), more.begin(), more.end());
  std::vector<Message> all = attributes;
  all.push_back(attribute("num_heads", 2));
  all.push_back(attribute("kv_num_heads", 2));
  model.node("/attn", "GroupQueryAttention", operands, {"y", "present_k", "present_v"}, all, "com.microsoft");
  return model.output("y").output("present_k");
}

}  // namespace

TEST_CASE("decoder ops: forms of GroupQueryAttention that are not supported are named at the node") {
  CHECK(import_error(grouped({})) == "no error");
  CHECK_THAT(import_error(grouped({attribute("qk_output", 1)})),
             Contains("model.onnx:/attn: GroupQueryAttention: the attribute qk_output is 1, and only 0 is supported  "
                      "[import_unsupported]") &&
                 Contains("export the model without the output of scores"));
  CHECK_THAT(import_error(grouped({attribute("sliding_window_cache", 1)})),
             Contains("the attribute sliding_window_cache is 1") && Contains("a cache that keeps all rows"));
  CHECK_THAT(import_error(grouped({attribute("kv_cache_bit_width", 8)})),
             Contains("the attribute kv_cache_bit_width is 8") && Contains("a cache of floats"));
  CHECK_THAT(import_error(grouped({text_attribute("k_quant_type", "PER_TENSOR")})),
             Contains("the attribute k_quant_type is PER_TENSOR, and only NONE is supported"));
  CHECK_THAT(import_error(grouped({attribute("causal", 0), attribute("local_window_size", 3)})),
             Contains("the attribute local_window_size has an effect with causal 1 only"));
  const auto with = [&](std::size_t operand) {
    std::vector<std::string> more(operand - 7);
    more.push_back("extra");
    return import_error(grouped({}, more));
  };
  CHECK_THAT(with(12), Contains("the operand k_scale is not supported"));
  CHECK_THAT(with(14), Contains("the operand q_norm_weight is not supported") && Contains("nodes of their own"));
  CHECK_THAT(with(16), Contains("the operand query_seqlens is not supported"));
}

TEST_CASE("decoder ops: the length of GroupQueryAttention is that of the cached and the new rows") {
  CHECK_THAT(
      import_error(grouped({}, {}, "longer")),
      Contains("/attn: GroupQueryAttention: total_sequence_length is n + t + 1, and there are n cached rows and "
               "t new ones  [import_unsupported]"));
  CHECK_THAT(import_error(grouped({}, {}, "lengths")), Contains("total_sequence_length depends on values"));
  // A length with a name of its own is checked when a run binds it.
  const importing::ImportedGraph imported = importing::import_graph(grouped({}, {}, "all").write());
  const auto run = [&](std::int64_t all) {
    Tensors inputs{{"given", HostTensor(i64, {1, all})}, {"lengths", HostTensor::from_ints({1}, {4}, i32)}};
    for (const char* name : {"q", "k", "v"}) inputs.set(name, HostTensor(f32, {1, 2, 8}));
    for (const char* name : {"past_k", "past_v"}) inputs.set(name, HostTensor(f32, {1, 2, 3, 4}));
    inputs.set("extra", HostTensor(f32, {4}));
    return run_imported(imported, inputs, false);
  };
  CHECK(run(5).at("present_k").shape() == std::vector<std::int64_t>{1, 2, 5, 4});
  CHECK_THROWS_WITH(run(6), Contains("total_sequence_length is all, and there are n cached rows and t new ones") &&
                                Contains("[import_range]"));
}
