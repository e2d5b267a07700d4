#include <catch2/catch.hpp>
#include <cmath>

#include "models/import/import.h"
#include "tests/import/support/import_error.h"
#include "tests/import/support/model_case.h"
#include "tests/import/support/model_writer.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Matchers::Contains;

/// Quotients and remainders of sizes that are known at import, because the dims of inputs become multiples.
namespace {

HostTensor numbered(std::vector<std::int64_t> sizes) {
  HostTensor tensor(f32, std::move(sizes));
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.set(i, std::sin(static_cast<double>(i * i)));
  return tensor;
}

/// The graph with named sizes computes what the graph computes whose sizes are numbers at import.
void check_as_fixed(const ModelWriter& model, const std::vector<std::int64_t>& sizes, const DimBindings& numbers) {
  const std::filesystem::path file = model.write();
  const Tensors inputs{{"x", numbered(sizes)}};
  const Tensors named = run_imported(importing::import_graph(file), inputs, false),
                fixed = run_imported(importing::import_graph(file, {.sizes = numbers}), inputs, false);
  CHECK(difference(named, fixed, {1e-6, 1e-6}).value_or("") == "");
}

/// x [n, s], and its size s.
ModelWriter with_size() {
  ModelWriter model;
  model.input("x", {"n", "s"}).integers("zero", {1}, {0}).integers("one", {1}, {1});
  model.node("/Shape", "Shape", {"x"}, {"shape"}).node("/Gather", "Gather", {"shape", "one"}, {"s"});
  return model;
}

ModelWriter resize(const std::string& mode, const std::string& coordinates, const std::string& nearest, float scale) {
  ModelWriter model;
  model.input("x", {"n", "s"}).floats("scales", {2}, {1, scale});
  model.node("/Resize", "Resize", {"x", "", "scales"}, {"y"},
             {text_attribute("mode", mode), text_attribute("coordinate_transformation_mode", coordinates),
              text_attribute("nearest_mode", nearest)});
  return model.output("y");
}

}  // namespace

TEST_CASE("size quotients: a slice up to half of a dim makes its size a multiple of 2") {
  ModelWriter model = with_size();
  model.integers("two", {1}, {2}).node("/Div", "Div", {"s", "two"}, {"half"});
  model.node("/Slice", "Slice", {"x", "zero", "half", "one"}, {"y"}).output("y");
  check_as_fixed(model, {2, 6}, {{"s", 6}});
  const importing::ImportedGraph imported = importing::import_graph(model.write());
  CHECK(imported.outputs.at("y").value().type().to_string() == "f32[n, s_div_2]");
  CHECK_THROWS_WITH(
      run_imported(imported, {{"x", numbered({2, 5})}}, false),
      Contains("2*s_div_2 is 5 in dim 1 of x") && Contains("[dim_conflict]") && Contains("give a multiple of 2"));
}

TEST_CASE("size quotients: padding to the next multiple of a number is that of a multiple, or of a fixed size") {
  ModelWriter model = with_size();
  model.integers("four", {1}, {4}).node("/Mod", "Mod", {"s", "four"}, {"rest"});
  model.node("/Sub", "Sub", {"four", "rest"}, {"more"}).node("/Mod_1", "Mod", {"more", "four"}, {"pad"});
  model.node("/Concat", "Concat", {"zero", "zero", "zero", "pad"}, {"pads"}, {attribute("axis", 0)});
  model.node("/Pad", "Pad", {"x", "pads"}, {"y"}).output("y");
  check_as_fixed(model, {2, 8}, {{"s", 8}});
  const Tensors padded =
      run_imported(importing::import_graph(model.write(), {.sizes = {{"s", 6}}}), {{"x", numbered({1, 6})}}, false);
  CHECK(padded.at("y").shape() == std::vector<std::int64_t>{1, 8});
}

TEST_CASE("size quotients: several quotients of one dim make it a common multiple, and parts are equal") {
  ModelWriter model = with_size();
  model.integers("two", {1}, {2}).integers("three", {1}, {3}).integers("minus", {1}, {-1});
  model.node("/Div", "Div", {"s", "two"}, {"half"}).node("/Div_1", "Div", {"s", "three"}, {"third"});
  model.node("/Slice", "Slice", {"x", "third", "half", "one"}, {"y"}).output("y");
  model.node("/Split", "Split", {"x"}, {"a", "b"}, {attribute("axis", 1), attribute("num_outputs", 2)});
  model.node("/Sub", "Sub", {"a", "b"}, {"z"}).output("z");
  check_as_fixed(model, {2, 12}, {{"s", 12}});
  const importing::ImportedGraph imported = importing::import_graph(model.write());
  CHECK(imported.outputs.at("z").value().type().to_string() == "f32[n, 3*s_div_6]");
}

TEST_CASE("size quotients: a quotient that is only a number of the run leaves the dim as it is") {
  ModelWriter model = with_size();
  model.integers("two", {1}, {2}).node("/Div", "Div", {"s", "two"}, {"y"}).output("y");
  const importing::ImportedGraph imported = importing::import_graph(model.write());
  CHECK(run_imported(imported, {{"x", numbered({1, 7})}}, false).at("y").get_int(0) == 3);
}

TEST_CASE("size quotients: dims shrink to a half or a quarter in every mode of Resize") {
  for (const char* coordinates : {"half_pixel", "half_pixel_symmetric", "pytorch_half_pixel", "asymmetric"}) {
    for (const float scale : {0.5F, 0.25F}) {
      for (const char* nearest : {"round_prefer_floor", "round_prefer_ceil", "floor", "ceil"}) {
        INFO(coordinates << " " << scale << " " << nearest);
        check_as_fixed(resize("nearest", coordinates, nearest, scale), {2, 16}, {{"s", 16}});
      }
      check_as_fixed(resize("linear", coordinates, "floor", scale), {2, 16}, {{"s", 16}});
    }
  }
  CHECK_THAT(import_error(resize("linear", "align_corners", "floor", 0.5F)), Contains("[import_size]"));
  CHECK_THAT(import_error(resize("cubic", "half_pixel", "floor", 0.5F)), Contains("[import_size]"));
  CHECK_THAT(import_error(resize("nearest", "asymmetric", "floor", 0.75F)),
             Contains("becomes 0.75 times as large, which is no whole multiple or part"));
  // The format places the only element of a result at 0, unlike the first one of several.
  const importing::ImportedGraph imported =
      importing::import_graph(resize("linear", "pytorch_half_pixel", "floor", 0.5F).write());
  CHECK_THROWS_WITH(run_imported(imported, {{"x", numbered({1, 2})}}, false),
                    Contains("the resized dim 1 must have 2 or more elements  [import_range]"));
}
