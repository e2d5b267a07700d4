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
}

TEST_CASE("onnx: lathe model writes the loss and the training step of an ONNX file", "[tools][onnx]") {
  const Scratch scratch;
  const std::string loss = "--loss mse:y,target ";
  const auto forward = run_lathe(scratch, "model " + model("external") + loss);
  CHECK_THAT(forward.out,
             Contains("input %target: f32[n, 3]") && Contains("output \"loss\"") && !Contains("output \"y\""));
  const auto wrote = run_lathe(scratch, "model " + model("external") + loss +
                                            "--step --lr 0.01 --freeze bias -o step.lathe --values step.safetensors");
  INFO(wrote.err);
  CHECK(wrote.status == 0);
  CHECK_THAT(scratch.read("step.lathe"), Contains("update %fc.weight") && !Contains("update %fc.bias"));
  CHECK(run_lathe(scratch, "run step.lathe --input step.safetensors --random --dim n=2").status == 0);
  const auto none = run_lathe(scratch, "model " + model("external") + "--step");
  CHECK(none.status == 1);
  CHECK_THAT(none.err, Contains("has no loss of its own  [usage]") && Contains("--loss cross_entropy:logits,labels"));
  CHECK_THAT(run_lathe(scratch, "model " + model("external") + "--layers 3").err,
             Contains("--layers has no effect on") && Contains("[usage]"));
  CHECK_THAT(run_lathe(scratch, "model " + model("external") + loss + "--step --freeze nothing").err,
             Contains("--freeze nothing: no parameter has a name with this text  [usage]"));
  CHECK_THAT(run_lathe(scratch, "model gpt --loss mse:y,target").err, Contains("gpt has a loss of its own  [usage]"));
}

TEST_CASE("onnx: a damaged file is an error with the byte", "[tools][onnx]") {
  const Scratch scratch;
  scratch.write("broken.onnx", "\x3a\x05");
  const auto ran = run_lathe(scratch, "dump broken.onnx");
  CHECK(ran.status == 1);
  CHECK_THAT(ran.err, Contains("broken.onnx: byte 0: ModelProto: field 7 has 5 bytes") && Contains("[import_file]"));
}
