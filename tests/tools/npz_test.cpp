#include "runtime/files/npz/npz.h"

#include "tests/tools/command.h"

using namespace lathe;
using Catch::Matchers::Contains;
using test::run_lathe;
using test::Scratch;

TEST_CASE("run reads arguments from .npz files, and writes results to them", "[tools]") {
  const Scratch scratch;
  const std::string file = scratch.write("double.lathe", R"(graph @double(
  input %x: f32[n]
) {
  %1 = add %x, %x : f32[n]
  output "y" %1
}
)");
  write_npz(scratch.path("in.npz"), Tensors{{"x", HostTensor::from({3}, {1, 2, 3})}});
  const auto ran =
      run_lathe(scratch, "run " + file + " -i " + scratch.path("in.npz") + " -o " + scratch.path("out.npz"));
  CAPTURE(ran.err);
  CHECK(ran.status == 0);
  const HostTensor y = NpzFile::open(scratch.path("out.npz")).tensor("y");
  CHECK(y.shape() == std::vector<std::int64_t>{3});
  CHECK(y.get(2) == 6);
  const auto missing = run_lathe(scratch, "run " + file + " -i " + scratch.path("out.npz"));
  CHECK(missing.status == 1);
  CHECK_THAT(missing.err, Contains("out.npz has no argument of graph @double") && Contains("[argument_unknown]"));
  const auto bf16 = run_lathe(
      scratch, "run " + file + " --dtype bf16 -i " + scratch.path("in.npz") + " -o " + scratch.path("bf16.npz"));
  CHECK(bf16.status == 1);
  CHECK_THAT(bf16.err, Contains("has elements of bf16, which NumPy does not have") && Contains("[npz_dtype]"));
}
