#include "runtime/files/safetensors/safetensors.h"
#include "tests/tools/command.h"

using namespace lathe;
using Catch::Matchers::Contains;
using Catch::Matchers::StartsWith;
using test::run_lathe;
using test::Scratch;

namespace {

void check_kernel_refused(const test::Ran& ran, const std::string& what) {
  CAPTURE(ran.err, ran.out);
  CHECK(ran.status == 1);
  CHECK_THAT(ran.err, StartsWith("lathe: ") && Contains(what) && !Contains("internal error"));
}

}  // namespace

TEST_CASE("run interprets a kernel file", "[tools]") {
  const Scratch scratch;
  const std::string file = scratch.write("scale.kernel", R"(kernel @scale(x: read f32, y: write f32; n) {
  for i0 in 0..n step 1 @parallel {
    %0 = load x[i0] : f32
    %1 = mul %0, 2:f32 : f32
    store y[i0] = %1
    %2 = lt i0, 9 : bool
    check %2 else 3
  }
}
)");
  write_safetensors(scratch.path("in.safetensors"), Tensors{{"x", HostTensor::from({3}, {1, 2, 3})}});
  const auto ran = run_lathe(scratch, "run " + file + " --dim n=3 -i " + scratch.path("in.safetensors"));
  CHECK(ran.status == 0);
  CHECK_THAT(ran.out, Contains("y f32[3]") && Contains("2") && Contains("6"));
  CHECK_THAT(run_lathe(scratch, "run " + file + " --random --dim n=5").out, Contains("y f32[5]"));
  check_kernel_refused(run_lathe(scratch, "run " + file + " --dim n=5"), "[argument_missing]");
  check_kernel_refused(run_lathe(scratch, "run " + file + " --random"), "[dim_option]");
  check_kernel_refused(run_lathe(scratch, "run " + file + " --random --dim n=5 --target x86-64-v3"),
                       "--target has no effect on a kernel file");
  check_kernel_refused(run_lathe(scratch, "run " + file + " --random --dim n=5,m=3"), "[dim_option]");
  check_kernel_refused(run_lathe(scratch, "run " + file + " --random --dim n=10"), "[kernel_check]");
  check_kernel_refused(run_lathe(scratch, "run " + file + " --dim n=4 -i " + scratch.path("in.safetensors")),
                       "[kernel_rule]");
  check_kernel_refused(run_lathe(scratch, "run " + scratch.write("none.kernel", "// none")), "[kernel_file]");
  check_kernel_refused(
      run_lathe(scratch, "run " + scratch.write("wrong.kernel", "kernel @k(x: write f32) {\n  store\n}")),
      "wrong.kernel:3:1: expected the name of a buffer, found '}'");
  check_kernel_refused(
      run_lathe(scratch, "run " + scratch.write("rule.kernel", "kernel @k() {\n  check 3 else 1\n}")), "[type]");
}
