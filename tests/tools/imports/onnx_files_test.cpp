#include "tests/support/texts/test_data.h"
#include "tests/tools/command.h"

/// Commands that take an ONNX file in place of a graph.
using Catch::Matchers::Contains;
using lathe::test::run_lathe;
using lathe::test::Scratch;

namespace {

/// The path of the model in quotes.
std::string model(const std::string& name) {
  return "'" + (lathe::test::test_data("import/data/" + name) / "model.onnx").string() + "' ";
}

}  // namespace

TEST_CASE("onnx: commands that take a graph take an ONNX file", "[tools][onnx]") {
  const Scratch scratch;
  for (const std::string& command :
       {"run " + model("vit") + "--random --dim batch=2",
        "run " + model("vit") + "--random --dim batch=2 --interpret",
        "verify " + model("vit") + "--random --dim batch=2", "explain " + model("vit"), "dump " + model("vit"),
        "opt " + model("vit") + "--passes expand", "diff " + model("vit") + model("vit")}) {
    const auto ran = run_lathe(scratch, command);
    INFO(command << "\n" << ran.err);
    CHECK(ran.status == 0);
  }
  CHECK_THAT(run_lathe(scratch, "explain " + model("vit")).out, Contains("model.onnx:/classifier/Gemm_"));
}

TEST_CASE("onnx: lathe model writes the graph and the weights of an ONNX file", "[tools][onnx]") {
  const Scratch scratch;
  const auto ran = run_lathe(scratch, "model " + model("external") + "-o fc.lathe --values fc.safetensors");
  INFO(ran.err);
  CHECK(ran.status == 0);
  CHECK_THAT(scratch.read("fc.lathe"), Contains("parameter %fc.weight: f32[4, 3]"));
  CHECK(run_lathe(scratch, "run fc.lathe --input fc.safetensors --random --dim n=2").status == 0);
  CHECK(run_lathe(scratch, "run fc.lathe --input " + model("external") + "--random --dim n=2").status == 0);
  const auto step = run_lathe(scratch, "model " + model("external") + "--step");
  CHECK(step.status == 1);
  CHECK_THAT(step.err, Contains("--step has no effect on") && Contains("[usage]"));
}

TEST_CASE("onnx: a damaged file is an error with the byte", "[tools][onnx]") {
  const Scratch scratch;
  scratch.write("broken.onnx", "\x3a\x05");
  const auto ran = run_lathe(scratch, "dump broken.onnx");
  CHECK(ran.status == 1);
  CHECK_THAT(ran.err, Contains("broken.onnx: byte 0: ModelProto: field 7 has 5 bytes") && Contains("[import_file]"));
}
