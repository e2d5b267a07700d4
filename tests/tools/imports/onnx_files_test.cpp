#include "runtime/files/npz/npz.h"
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

TEST_CASE("onnx: the gradient, a profile, a benchmark, a division and a C library of an ONNX file", "[tools][onnx]") {
  const Scratch scratch;
  const auto graded = run_lathe(scratch, "grad " + model("vit"));
  INFO(graded.err);
  CHECK_THAT(graded.out, Contains("output \"grad.classifier.weight\""));
  const auto traced = run_lathe(scratch, "trace " + model("vit") + "--random --dim batch=2");
  CHECK_THAT(traced.out, Contains("model.onnx:/classifier/Gemm_"));
  const auto measured = run_lathe(scratch, "bench " + model("vit") + "--dim batch=2");
  CHECK_THAT(measured.out, Contains("one run: median") && Contains("model.onnx:/classifier/Gemm_"));
  const auto divided = run_lathe(scratch, "shard " + model("vit") + "--mesh dp=2");
  CHECK(divided.status == 0);
  const auto compiled =
      run_lathe(scratch, "compile " + model("vit") + "--emit header --prefix vit --max batch=4 -o lib");
  INFO(compiled.err);
  CHECK(compiled.status == 0);
  CHECK_THAT(scratch.read("lib/vit.h"), Contains("classifier"));
}

TEST_CASE("onnx: commands for model directories say what reads an ONNX file", "[tools][onnx]") {
  const Scratch scratch;
  for (const std::string& command :
       {"generate " + model("vit") + "a", "embed " + model("vit") + "a", "eval " + model("vit") + "--text a.txt"}) {
    const auto ran = run_lathe(scratch, command);
    INFO(command << "\n" << ran.err);
    CHECK(ran.status == 1);
    CHECK_THAT(ran.err, Contains("is an ONNX file, which holds a graph") && Contains("[model_folder]") &&
                            Contains("lathe finetune FILE --loss"));
  }
}

TEST_CASE("onnx: lathe finetune trains a file on tensors, and lathe export writes the result", "[tools][onnx]") {
  const Scratch scratch;
  const std::string command = "finetune " + model("external");
  lathe::HostTensor x(lathe::f32, {12, 4}), target(lathe::f32, {12, 3});
  for (std::int64_t i = 0; i < x.numel(); ++i) x.set(i, 0.1 * static_cast<double>(i % 7));
  lathe::write_npz(scratch.path("train.npz"), {{"x", x}, {"target", target}});
  const auto trained =
      run_lathe(scratch, command + "--loss mse:y,target --data train.npz --valid 0.5 --batch 3 --epochs 2 -o tuned");
  INFO(trained.out << trained.err);
  CHECK(trained.status == 0);
  CHECK_THAT(trained.out,
             Contains("training: 6 examples; validation: 6 examples") && Contains("15 parameters, 15 trained") &&
                 Contains("4 steps of 3 examples; 2.0 epochs") && Contains("parameters in tuned/model.safetensors"));
  CHECK(run_lathe(scratch, "export " + model("external") + "--input tuned/model.safetensors -o tuned.onnx").status ==
        0);
  const std::string from_onnx = run_lathe(scratch, "run tuned.onnx --random --dim n=2").out;
  CHECK(from_onnx ==
        run_lathe(scratch, "run " + model("external") + "--input tuned/model.safetensors --random --dim n=2").out);
  CHECK(from_onnx != run_lathe(scratch, "run " + model("external") + "--random --dim n=2").out);
  CHECK_THAT(run_lathe(scratch, command + "--data train.npz").err, Contains("no loss is given for"));
  CHECK_THAT(run_lathe(scratch, command + "--loss mse:y,target --data train.npz --pack").err,
             Contains("--pack has no effect on an ONNX or a .pt2 file  [usage]"));
  CHECK_THAT(run_lathe(scratch, "finetune . --loss mse:y,target --data a.jsonl").err,
             Contains("--loss has no effect on a model directory  [usage]"));
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

TEST_CASE("onnx: --fix-dim puts a number in place of a named size, and --ops needs IR text", "[tools][onnx]") {
  const Scratch scratch;
  const std::string file = model("external");
  CHECK_THAT(run_lathe(scratch, "model " + file + "--fix-dim n=2").out, Contains("input %x: f32[n=2, 4]"));
  CHECK_THAT(run_lathe(scratch, "dump " + file + "--fix-dim n=2").out, Contains("input %x: f32[n=2, 4]"));
  CHECK(run_lathe(scratch, "run " + file + "--random --fix-dim n=2").out ==
        run_lathe(scratch, "run " + file + "--random --dim n=2").out);
  CHECK_THAT(run_lathe(scratch, "verify " + file + "--fix-dim n=5").out, Contains("ok"));
  CHECK_THAT(run_lathe(scratch, "run " + file + "--random --fix-dim m=2").err,
             Contains("no input has a size named m  [dim_unknown]") && Contains("its named sizes are n"));
  CHECK_THAT(run_lathe(scratch, "run " + file + "--fix-dim n").err,
             Contains("--fix-dim n is not of the form NAME=SIZE  [dim_option]"));
  scratch.write("text.lathe", "graph @g(input %x: f32[n]) {\n  output \"y\" %x\n}\n");
  CHECK_THAT(run_lathe(scratch, "dump text.lathe --fix-dim n=3").out, Contains("input %x: f32[n=3]"));
  CHECK_THAT(run_lathe(scratch, "dump text.lathe --fix-dim m=3").err,
             Contains("--fix-dim m: the graph has no unknown dim of this name  [dim_option]"));
  CHECK_THAT(run_lathe(scratch, "run " + file + "--ops none.so").err, Contains("--ops has no effect on"));
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
  CHECK_THAT(none.err, Contains("no loss is given for") && Contains("--loss cross_entropy:logits,labels"));
  CHECK_THAT(run_lathe(scratch, "model " + model("external") + "--layers 3").err,
             Contains("--layers has no effect on") && Contains("[usage]"));
  CHECK_THAT(run_lathe(scratch, "model " + model("external") + loss + "--step --freeze nothing").err,
             Contains("cannot freeze nothing: no parameter has this text in its name  [import_frozen]"));
  CHECK_THAT(run_lathe(scratch, "model gpt --loss mse:y,target").err, Contains("gpt has a loss of its own  [usage]"));
}

TEST_CASE("model: IR text gets a loss and a training step", "[tools]") {
  const Scratch scratch;
  const std::string sizes = "--layers 1 --d-model 16 --heads 2 --vocab 11 --context 8 ";
  REQUIRE(run_lathe(scratch, "model gpt " + sizes + "--loss -o loss.lathe --values start.safetensors").status == 0);
  REQUIRE(run_lathe(scratch, "model gpt " + sizes + "--step -o gpt.lathe").status == 0);
  CHECK_THAT(scratch.read("gpt.lathe"), Contains("output \"grad_norm\""));
  const auto step = run_lathe(scratch, "model loss.lathe --loss output:loss --step -o text.lathe");
  INFO(step.err);
  REQUIRE(step.status == 0);
  const auto run = [&](const std::string& file) {
    return run_lathe(scratch, "run " + file + " --input start.safetensors --random --dim B=2,T=4").out;
  };
  CHECK_THAT(run("text.lathe"), Contains("learning_rate") && Contains("loss"));
  CHECK(run("text.lathe") == run("gpt.lathe"));
  for (const std::string& source : {"gpt " + sizes, std::string("loss.lathe --loss output:loss ")}) {
    const std::string plain = run_lathe(scratch, "model " + source + "--step --no-grad-norm").out;
    CHECK_THAT(plain, Contains("output \"loss\"") && !Contains("grad_norm"));
  }
  CHECK_THAT(run_lathe(scratch, "model gpt --no-grad-norm").err, Contains("--no-grad-norm has no effect on gpt"));
  REQUIRE(run_lathe(scratch, "model gpt " + sizes + "-o logits.lathe").status == 0);
  const auto frozen =
      run_lathe(scratch, "model - --loss cross_entropy:logits,ids --step --freeze wpe --fix-dim B=3 < logits.lathe");
  CHECK_THAT(frozen.out, Contains("input %ids: i64[B=3, T]") && Contains("update %wte") && !Contains("update %wpe"));
  scratch.write("vector.lathe",
                "graph @g(input %x: f32[n, 2], parameter %w: f32[2]) {\n  %0 = mul %x, %w\n"
                "  output \"y\" %0\n}\n");
  CHECK_THAT(run_lathe(scratch, "model vector.lathe --loss mse:y,t --step").out, Contains("update %w"));
  CHECK_THAT(run_lathe(scratch, "model logits.lathe --values v.safetensors").err,
             Contains("--values has no effect on logits.lathe, IR text  [usage]"));
  CHECK_THAT(run_lathe(scratch, "model logits.lathe --step").err,
             Contains("no loss is given for logits.lathe  [usage]") && Contains("--loss output:loss"));
  CHECK_THAT(run_lathe(scratch, "model nowhere").err,
             Contains("nowhere is neither a built-in model (attention-forms, ") &&
                 Contains("ends with .lathe, .onnx or .pt2"));
}

TEST_CASE("onnx: a damaged file is an error with the byte", "[tools][onnx]") {
  const Scratch scratch;
  scratch.write("broken.onnx", "\x3a\x05");
  const auto ran = run_lathe(scratch, "dump broken.onnx");
  CHECK(ran.status == 1);
  CHECK_THAT(ran.err, Contains("broken.onnx: byte 0: ModelProto: field 7 has 5 bytes") && Contains("[import_file]"));
}
