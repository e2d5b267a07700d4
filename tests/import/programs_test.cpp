#include <catch2/catch.hpp>

#include "frontend/grad.h"
#include "frontend/ops/derived_ops.h"
#include "frontend/ops/losses.h"
#include "ir/tensor/text/printer.h"
#include "tests/import/support/archive_writer.h"
#include "tests/import/support/model_case.h"
#include "tests/import/support/program_case.h"
#include "tests/support/texts/error_label.h"

using namespace lathe;
using namespace lathe::test;
using Catch::Matchers::Contains;

namespace {

/// Programs with weights of f64, plain and after run_decompositions().
const std::vector<std::string> exact_programs{"gpt",      "llama",   "encoder",   "encoder_core",
                                              "cnn_core", "control", "scattered", "ties"};

importing::ImportedGraph program(const std::string& name) {
  return importing::import_graph(program_folder(name) / "model.pt2");
}

/// One import serves all sizes.
void check_program(const std::string& name, bool is_compiled, const Tolerance& most) {
  const importing::ImportedGraph imported = program(name);
  const std::vector<ProgramRun> runs = program_runs(name);
  CHECK(runs.size() == 2);
  for (const ProgramRun& run : runs) {
    INFO(name);
    const Tensors results = run_imported(imported, run.inputs, is_compiled);
    CHECK(difference(results, run.outputs, most).value_or("") == "");
  }
}

}  // namespace

TEST_CASE("programs: interpreted graphs give the numbers of PyTorch at two sizes") {
  for (const char* name : {"mlp", "experts"}) check_program(name, false, {1e-5, 1e-5});
  for (const std::string& name : exact_programs) check_program(name, false, {1e-10, 1e-10});
}

TEST_CASE("programs: files of older releases give the numbers of PyTorch at two sizes") {
  for (const std::string release : {"torch_2_9", "torch_2_10", "torch_2_11"}) {
    check_program(release + "/mlp", false, {1e-5, 1e-5});
    check_program(release + "/llama", false, {1e-10, 1e-10});
  }
}

TEST_CASE("programs: ops give the numbers of PyTorch at two sizes") {
  for (const char* name :
       {"elementwise", "layout", "networks", "indices", "strided", "quotients", "sliced", "edges", "core"})
    check_program(name, false, {1e-5, 1e-5});
}

TEST_CASE("programs: aliases and composite ops give the numbers of PyTorch at two sizes") {
  for (const char* name : {"aliases", "floats", "ordering", "matrices", "losses", "vision", "images", "recurrent",
                           "fourier", "special", "solved"})
    check_program(name, false, {1e-5, 1e-5});
}

TEST_CASE("programs: compiled graphs give the numbers of PyTorch at two sizes") {
  for (const char* name : {"gpt", "encoder_core", "scattered", "ties"}) check_program(name, true, {1e-10, 1e-10});
  for (const char* name : {"special", "solved", "edges"}) check_program(name, true, {1e-5, 1e-5});
}

TEST_CASE("programs: gradients are those of PyTorch") {
  std::vector<std::string> names = exact_programs;
  names.emplace_back("experts");  // with weights of f32
  for (const std::string& name : names) {
    const Tolerance most = name == "experts" ? Tolerance{1e-5, 1e-5} : Tolerance{1e-9, 1e-10};
    const importing::ImportedGraph imported = program(name);
    Tensor loss;
    for (const auto& [output, value] : imported.outputs)
      loss = loss.is_empty() ? value.square().sum() : loss + value.square().sum();
    const std::vector<Tensor> weights = imported.graph.parameters();
    const std::vector<Tensor> gradients = grad(loss, weights);
    const Graph& graph = imported.graph;
    for (std::size_t i = 0; i < weights.size(); ++i)
      graph.output("grad " + weights[i].value().node().name, gradients[i]);
    for (const ProgramRun& run : program_runs(name)) {
      INFO(name);
      const Tensors results = run_imported(imported, run.inputs, false);
      Tensors expected;
      for (const auto& [parameter, gradient] : run.gradients) expected.set("grad " + parameter, gradient);
      CHECK(expected.size() == weights.size());
      CHECK(difference(results, expected, most).value_or("") == "");
    }
  }
}

TEST_CASE("programs: the softmax of a decomposed attention is one op") {
  CHECK_THAT(ir::print(program("encoder_core").graph.finish()), Contains("zero_masked=true"));
  // A condition on scores of -1 is another function.
  ProgramFile other("encoder_core");
  other.replace("models/model.json", R"("name": "other", "arg": {"as_float": "-Infinity"})",
                R"("name": "other", "arg": {"as_float": -1.0})");
  const std::string text = ir::print(importing::import_graph(other.write()).graph.finish());
  CHECK_THAT(text, Contains("where ") && !Contains("zero_masked=true"));
}

TEST_CASE("programs: an imported model is trained") {
  const importing::ImportedGraph gpt = program("gpt");
  const Dim batch("input_ids_0"), length("input_ids_1");
  const Tensor labels = gpt.graph.input("labels", i64, {batch, length});
  const Tensor loss = cross_entropy(gpt.outputs.at("logits"), labels);
  Tensors batches = program_runs("gpt")[0].inputs;
  batches.set("labels", batches.at("input_ids"));
  const std::vector<double> losses = losses_of(gpt, loss, batches, 20);
  CHECK(losses[0] > 0.5);
  CHECK(losses[19] < losses[0] / 2);
}

TEST_CASE("programs: sizes have the names of inputs, and outputs those of the model's results") {
  const importing::ImportedGraph gpt = program("gpt");
  CHECK(gpt.outputs.at("logits").value().type().to_string() == "f64[input_ids_0, input_ids_1, 13]");
  const importing::ImportedGraph encoder = program("encoder");
  CHECK(encoder.outputs.at("output_0").value().type().to_string() == "f64[input_ids_0, input_ids_1, 8]");
  CHECK(encoder.outputs.at("output_1").value().type().to_string() == "f64[input_ids_0, 8]");
}

TEST_CASE("programs: weights have the names of the state dict, and tied ones are one parameter") {
  const importing::ImportedGraph gpt = program("gpt");
  CHECK(gpt.parameters.contains("h.0.attn.qkv.weight"));
  CHECK(gpt.parameters.contains("wte.weight") != gpt.parameters.contains("head.weight"));
  const importing::ImportedGraph mlp = program("mlp");
  CHECK(mlp.parameters.contains("scale"));
  CHECK(!mlp.parameters.contains("offsets"));
  CHECK(mlp.graph.is_frozen("fc1.bias"));
  CHECK(!mlp.graph.is_frozen("fc1.weight"));
}

TEST_CASE("programs: locations are modules and nodes") {
  const importing::ImportedGraph gpt = program("gpt");
  bool has_attention = false;
  for (const ir::Node& node : gpt.graph.ir().nodes)
    has_attention = has_attention || node.loc.to_string() == "model.pt2:/h.0/attn/softmax";
  CHECK(has_attention);
}

TEST_CASE("programs: buffers that a program changes are states, also if its nodes write in place") {
  for (const std::string name : {"counter", "written"}) {
    INFO(name);
    const importing::ImportedGraph imported = program(name);
    const std::vector<ProgramRun> runs = program_runs(name);
    const std::vector<Tensors> results = results_in_order(imported, runs);
    for (std::size_t i = 0; i < runs.size(); ++i)
      CHECK(difference(results[i], runs[i].outputs, {1e-5, 1e-5}).value_or("") == "");
  }
}

TEST_CASE("programs: sizes that strides must divide are multiples") {
  const std::string text = ir::print(program("strided").graph.finish());
  CHECK_THAT(text, Contains("input %x: f32[x_0, 3, 12*x_2_div_12, 6*x_3_div_6]"));
}

TEST_CASE("programs: named sizes of inputs can be fixed") {
  const std::filesystem::path file = program_folder("strided") / "model.pt2";
  const importing::ImportedGraph fixed = importing::import_graph(file, {.sizes = {{"x_2", 24}, {"x_3", 12}}});
  CHECK_THAT(ir::print(fixed.graph.finish()), Contains("input %x: f32[x_0, 3, x_2=24, x_3=12]"));
  CHECK(error_label([&] { importing::import_graph(file, {.sizes = {{"height", 24}}}); }) == "dim_unknown");
  // The guards of the program hold for numbers too.
  const std::filesystem::path guarded = program_folder("guards") / "model.pt2";
  CHECK(error_label([&] { importing::import_graph(guarded, {.sizes = {{"x_0", 6}, {"y_0", 4}}}); }) ==
        "import_range");
}

TEST_CASE("programs: rows that a program writes to a cache are written in place") {
  for (const std::string name : {"static_decoder", "static_decoder_core"}) {
    const std::string text = ir::print(program(name).graph.finish());
    CHECK_THAT(text, Contains("state %keys: f32[1, 2, 24, 8]") && Contains(" = update_rows %keys, ") &&
                         Contains("{dim=2}") && Contains("update %values <- "));
  }
}

TEST_CASE("programs: conditions on several sizes are checked at each run") {
  check_program("guards", false, {1e-5, 1e-5});
  const auto run = [&](std::int64_t n, std::int64_t m) {
    return run_imported(program("guards"), Tensors{{"x", HostTensor(f32, {n, 2})}, {"y", HostTensor(f32, {m, 3})}},
                        false);
  };
  CHECK(run(5, 3).at("output").numel() == 1);
  CHECK_THROWS_WITH(run(6, 4), Contains("2*L['x'].size()[0] <= 7 + L['y'].size()[0]") && Contains("[import_range]"));
}

TEST_CASE("programs: a size from the values of an input that is fixed at import") {
  const std::filesystem::path file = program_folder("prefix") / "model.pt2";
  const importing::ImportedGraph prefix =
      importing::import_graph(file, {.inputs = {{"n", HostTensor::scalar(2, i64)}}});
  for (const ProgramRun& run : program_runs("prefix")) {
    const Tensors results = run_imported(prefix, Tensors{{"x", run.inputs.at("x")}}, false);
    CHECK(difference(results, run.outputs, {1e-5, 1e-5}).value_or("") == "");
  }
  // The program asserts that there are 2 rows or more.
  CHECK_THROWS_WITH(run_imported(prefix, Tensors{{"x", HostTensor(f32, {1, 3})}}, false),
                    Contains("u0 <= s77") && Contains("[import_range]"));
  CHECK_THROWS_WITH(importing::import_graph(file, {.inputs = {{"n", HostTensor::scalar(-2, i64)}}}),
                    Contains("a check of the program fails") && Contains("[import_range]"));
  CHECK_THROWS_WITH(importing::import_graph(file), Contains("the program checks values of a run"));
}

TEST_CASE("programs: the range of a size is checked at each run") {
  const importing::ImportedGraph mlp = program("mlp");
  const auto run = [&](std::int64_t n) { return run_imported(mlp, Tensors{{"x", HostTensor(f32, {n, 4})}}, false); };
  CHECK(run(64).at("logits").shape() == std::vector<std::int64_t>{64, 3});
  CHECK_THROWS_WITH(run(65), Contains("[import_range]"));
  // Sizes of an input that is fixed at import are numbers.
  const HostTensor x(f32, {2, 4});
  const importing::ImportedGraph fixed =
      importing::import_graph(program_folder("mlp") / "model.pt2", {.inputs = {{"x", x}}});
  CHECK(run_imported(fixed, {}, false).at("logits").shape() == std::vector<std::int64_t>{2, 3});
}
