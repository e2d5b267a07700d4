#include <catch2/catch.hpp>

#include "ir/support/error.h"
#include "models/import/import.h"
#include "tests/import/support/model_writer.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Matchers::Contains;

namespace {

/// Returns the error of a model with one node "/op". `inputs` has the sizes of its inputs a, b, c.
std::string error_of(std::string_view op, const std::vector<Sizes>& inputs, const std::vector<Message>& attributes,
                     std::string_view domain = "") {
  ModelWriter model(27);
  model.import("ai.onnx.preview", 1).import("ai.onnx.preview.training", 1);
  std::vector<std::string> names;
  for (const Sizes& sizes : inputs) {
    names.emplace_back(1, static_cast<char>('a' + names.size()));
    model.input(names.back(), sizes);
  }
  try {
    importing::import_graph(model.node("/op", op, names, {"y"}, attributes, domain).output("y").write());
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("op errors: unsupported values of attributes are named at the node") {
  const Sizes image{"n", "4", "5", "6"};
  CHECK_THAT(error_of("GridSample", {image, {"n", "2", "2", "2"}}, {text_attribute("mode", "area")}),
             Contains("model.onnx:/op: GridSample: the attribute mode is 'area'  [import_attribute]"));
  CHECK_THAT(error_of("GridSample", {image, {"n", "2", "2", "2"}}, {text_attribute("padding_mode", "wrap")}),
             Contains("the attribute padding_mode is 'wrap', not zeros, border or reflection"));
  CHECK_THAT(error_of("GridSample", {image, {"n", "2", "2", "3"}}, {}),
             Contains("a grid [n, 2, 2, 3] for an operand [n, 4, 5, 6]  [import_operand]"));
  CHECK_THAT(error_of("RoiAlign", {image, {"r", "4"}, {"r"}}, {}),
             Contains("the attribute sampling_ratio is 0  [import_unsupported]") &&
                 Contains("the number of samples must not depend on the regions"));
  CHECK_THAT(error_of("LinearAttention", {{"b", "t", "4"}, {"b", "t", "4"}, {"b", "t", "4"}},
                      {attribute("q_num_heads", 2), attribute("kv_num_heads", 2)}),
             Contains("the decay is missing for the update_rule 'gated_delta'"));
  CHECK_THAT(
      error_of("CausalConvWithState", {{"b", "2", "t"}, {"2", "1", "3"}}, {text_attribute("activation", "tanh")}),
      Contains("the attribute activation is 'tanh', not none, silu or swish"));
  CHECK_THAT(error_of("BitCast", {{"n"}}, {attribute("to", 6)}),
             Contains("the bits of f32 as i32 are not supported"));
  CHECK_THAT(error_of("ScatterElements", {{"4"}, {"4"}, {"4"}}, {text_attribute("reduction", "mean")}),
             Contains("[import_"));
  CHECK_THAT(error_of("Det", {{"n", "2", "3"}}, {}), Contains("is no square matrix of floats"));
  CHECK_THAT(error_of("Momentum", {{}, {}, {"2"}}, {}, "ai.onnx.preview.training"), Contains("is missing"));
}

TEST_CASE("op errors: sizes that depend on values are errors") {
  CHECK_THAT(error_of("DFT", {{"b", "n", "1"}}, {}), Contains("the length of the signal is the unknown size n"));
  CHECK_THAT(error_of("HannWindow", {{}}, {}), Contains("/op: HannWindow: the size depends on values"));
  CHECK_THAT(
      error_of("TfIdfVectorizer", {{"n"}},
               {attribute("max_skip_count", 0), attribute("min_gram_length", 1), attribute("max_gram_length", 1),
                text_attribute("mode", "TF"), attribute("ngram_counts", std::vector<std::int64_t>{0}),
                attribute("ngram_indexes", std::vector<std::int64_t>{0}),
                attribute("pool_int64s", std::vector<std::int64_t>{5})}),
      Contains("the number of tokens is unknown  [import_size]"));
}
