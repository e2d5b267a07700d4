#include "runtime/files/tensors/tensor_file.h"
#include "runtime/parameters/parameters.h"
#include "tests/support/texts/test_data.h"
#include "tests/tools/command.h"

using Catch::Matchers::Contains;
using lathe::test::run_lathe;
using lathe::test::Scratch;

namespace {

/// The path of a Hugging Face directory in quotes.
std::string folder(const std::string& name) {
  return "'" + lathe::test::test_data("hf/models/" + name + "/model").string() + "' ";
}

}  // namespace

TEST_CASE("export: a directory, with its weights in one file or two", "[tools][onnx]") {
  const Scratch scratch;
  for (const char* options : {"", "--opset 23 --external-data", "--inputs mask --part states --dim B=2"}) {
    const auto wrote = run_lathe(scratch, "export " + folder("bert") + "-o bert.onnx " + options);
    INFO(options << wrote.err);
    CHECK(wrote.status == 0);
    const bool has_size = std::string(options).find("--dim") != std::string::npos;
    const auto ran =
        run_lathe(scratch, has_size ? "run bert.onnx --random --dim T=5" : "run bert.onnx --random --dim B=2,T=5");
    INFO(ran.err);
    CHECK(ran.status == 0);
  }
  CHECK_THAT(run_lathe(scratch, "explain bert.onnx").out, Contains("last_hidden_state") && Contains("[2, T, 32]"));
  CHECK(scratch.read("bert.onnx.data").size() > 10000);
}

TEST_CASE("export: IR text with values, which gives the same outputs", "[tools][onnx]") {
  const Scratch scratch;
  REQUIRE(run_lathe(scratch,
                    "model gpt --layers 1 --d-model 16 --heads 2 --dropout 0.1 -o gpt.lathe --values w.safetensors")
              .status == 0);
  const auto wrote = run_lathe(scratch, "export gpt.lathe --input w.safetensors --evaluation -o gpt.onnx");
  INFO(wrote.err);
  CHECK(wrote.status == 0);
  CHECK(run_lathe(scratch, "run gpt.onnx --random --dim B=2,T=5").status == 0);
  lathe::write_tensors(scratch.path("w.npz"), lathe::Parameters::load(scratch.path("w.safetensors")).values());
  CHECK(run_lathe(scratch, "export gpt.lathe --input w.npz --evaluation -o npz.onnx").status == 0);
  CHECK(scratch.read("npz.onnx") == scratch.read("gpt.onnx"));
  const auto none = run_lathe(scratch, "export gpt.lathe --evaluation -o none.onnx");
  CHECK(none.status == 1);
  CHECK_THAT(none.err, Contains("of @gpt have no values  [export_values]"));
  const auto dropout = run_lathe(scratch, "export gpt.lathe --input w.safetensors -o none.onnx");
  CHECK_THAT(dropout.err, Contains("the op dropout (") && Contains("gpt.cpp:") && Contains("[export_unsupported]"));
}

TEST_CASE("export: options that have no effect, and other files", "[tools][onnx]") {
  const Scratch scratch;
  REQUIRE(run_lathe(scratch, "model walkthrough -o a.lathe").status == 0);
  CHECK_THAT(run_lathe(scratch, "export a.lathe -o a.onnx --part loss").err,
             Contains("--part has no effect on a.lathe") && Contains("[usage]"));
  CHECK_THAT(run_lathe(scratch, "export a.lathe -o a.pt2").err, Contains("-o a.pt2: this is no .onnx file  [usage]"));
  CHECK(run_lathe(scratch, "export a.lathe -o a.onnx --opset 17").status == 2);
  CHECK_THAT(run_lathe(scratch, "export " + folder("llama") + "--part step -o a.onnx").err,
             Contains("updated in place") && Contains("[export_unsupported]"));
}
