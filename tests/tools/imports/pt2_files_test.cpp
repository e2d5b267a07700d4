#include "tests/support/texts/test_data.h"
#include "tests/tools/command.h"

/// Commands that take a .pt2 file in place of a graph.
using Catch::Matchers::Contains;
using lathe::test::run_lathe;
using lathe::test::Scratch;

namespace {

/// The path of the program in quotes.
std::string program(const std::string& name) {
  return "'" + (lathe::test::test_data("import/data/pt2/" + name) / "model.pt2").string() + "' ";
}

}  // namespace

TEST_CASE("pt2: commands that take a graph take a .pt2 file", "[tools][pt2]") {
  const Scratch scratch;
  const std::string sizes = "--random --dim input_ids_0=2 --dim input_ids_1=5";
  for (const std::string& command :
       {"run " + program("gpt") + sizes, "run " + program("gpt") + sizes + " --interpret",
        "verify " + program("cnn_core") + "--random --dim image_0=2", "explain " + program("gpt"),
        "dump " + program("gpt"), "grad " + program("gpt"), "opt " + program("gpt") + "--passes expand",
        "run " + program("encoder_core") + sizes + " --require-fused",
        "run " + program("guards") + "--random",  // without parameters
        "compile " + program("mlp") + "--prefix mlp --dim x_0=2",
        "compile " + program("mlp") + "--emit object --prefix mlp --dim x_0=2 --embed-weights -o lib",
        "diff " + program("gpt") + program("gpt")}) {
    const auto ran = run_lathe(scratch, command);
    INFO(command << "\n" << ran.err);
    CHECK(ran.status == 0);
  }
  CHECK_THAT(run_lathe(scratch, "explain " + program("gpt")).out, Contains("model.pt2:/h.0/attn/"));
}

TEST_CASE("pt2: lathe model writes the graph and the weights of a program", "[tools][pt2]") {
  const Scratch scratch;
  const auto ran = run_lathe(scratch, "model " + program("mlp") + "-o mlp.lathe --values mlp.safetensors");
  INFO(ran.err);
  CHECK(ran.status == 0);
  CHECK_THAT(scratch.read("mlp.lathe"), Contains("parameter %fc1.weight: f32[8, 4]") &&
                                            Contains("state %scale: f32[3]") && Contains("check x_0 <= 64 ") &&
                                            Contains(" : input [import_range] "));
  CHECK(run_lathe(scratch, "run mlp.lathe --input mlp.safetensors --random --dim x_0=2").status == 0);
  CHECK(run_lathe(scratch, "run mlp.lathe --input " + program("mlp") + "--random --dim x_0=2").status == 0);
  const auto large = run_lathe(scratch, "run " + program("mlp") + "--random --dim x_0=65");
  CHECK(large.status == 1);
  CHECK_THAT(large.err, Contains("the model is exported for 64 or less") && Contains("[import_range]"));
}

TEST_CASE("pt2: a damaged file is an error with the byte", "[tools][pt2]") {
  const Scratch scratch;
  scratch.write("broken.pt2", "PK\x03\x04");
  const auto ran = run_lathe(scratch, "dump broken.pt2");
  CHECK(ran.status == 1);
  CHECK_THAT(ran.err,
             Contains("broken.pt2: byte 4: the file ends before the directory") && Contains("[import_file]"));
}
