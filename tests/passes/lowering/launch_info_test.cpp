#include <algorithm>
#include <catch2/catch.hpp>

#include "passes/pipeline/pipeline.h"
#include "tests/passes/support.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/programs/lower.h"

/// What a launch does, and for which ops, as recorded by schedules and the lowering.
using namespace lathe;

namespace {

ir::Graph products() {
  const char* const text =
      "graph @g(input %x: bf16[64, 96], input %y: bf16[96, 96], input %z: f32[96, 96], state %s: f32[96]) {\n"
      "  %1 = matmul %x, %y                 loc(\"model.cpp\":7)\n"
      "  %2 = matmul %z, %z                 loc(\"model.cpp\":8)\n"
      "  %3 = exp %2                        loc(\"model.cpp\":9)\n"
      "  %4 = sum %3 {dims=[0]}             loc(\"model.cpp\":10)\n"
      "  %5 = add %s, %4                    loc(\"model.cpp\":11)\n"
      "  output \"a\" %1\n  output \"b\" %5\n  output \"old\" %s\n  update %s <- %5\n}";
  return ir::run_pipeline(ir::test::parse(text), ir::default_pipeline()).graph;
}

/// Returns the launches that compute the value at that line of the model.
std::vector<Launch> at_line(const Program& program, int line) {
  std::vector<Launch> found;
  for (const Launch& launch : program.launches)
    if (std::any_of(launch.info.ops.begin(), launch.info.ops.end(),
                    [&](const LaunchOp& op) { return op.loc.to_string() == "model.cpp:" + std::to_string(line); }))
      found.push_back(launch);
  return found;
}

}  // namespace

TEST_CASE("launch info lists ops, lines, region and multiply instruction") {
  const Program program = lower_cpu(products(), test::cpu_with(512, {.dot_pairs = true}));
  const auto narrow = at_line(program, 7), wide = at_line(program, 8);
  REQUIRE_FALSE(narrow.empty());
  REQUIRE_FALSE(wide.empty());
  CHECK(narrow.back().info.role == KernelRole::product);
  CHECK(narrow.back().info.multiplier == Multiplier::dot_pairs);
  CHECK(wide.back().info.multiplier == Multiplier::fma);
  CHECK(wide.back().info.kind == RegionKind::product);
  CHECK(narrow.back().info.region != wide.back().info.region);
  CHECK(wide.back().info.ops.front().op_name() == "contract");
  CHECK(wide.back().names().front().ends_with(" contract"));
  for (const LaunchOp& op : wide.back().info.ops) CHECK(wide.back().runs(op.value));
  const Program by_tiles = lower_cpu(products(), test::cpu_with(512, {.tiles = true}));
  CHECK(at_line(by_tiles, 7).back().info.multiplier == Multiplier::tile_mma);
  CHECK(at_line(by_tiles, 8).back().info.multiplier == Multiplier::split_bf16);
}

TEST_CASE("the copy of a state is a launch without a region") {
  const char* const text =
      "graph @g(state %s: f32[8, 8]) {\n  %1 = matmul %s, %s\n  output \"new\" %1\n  update %s <- %1\n}";
  const ir::Graph graph = ir::run_pipeline(ir::test::parse(text), ir::default_pipeline()).graph;
  int copies = 0;
  for (const Program& program : {lower_cpu(graph, unnamed_cpu()), lower_gpu(graph)})
    for (const Launch& launch : program.launches) {
      CHECK((launch.info.role == KernelRole::copy) == !launch.info.kind.has_value());
      CHECK((launch.info.region >= program.regions) == !launch.info.kind.has_value());
      if (launch.info.kind) continue;
      ++copies;
      CHECK(launch.names() == std::vector<std::string>{"copy s"});
    }
  CHECK(copies == 2);
}

TEST_CASE("launch info of GPU matmuls names the multiply unit, and why not a faster one") {
  for (const char* arch : {"sm_80", "sm_90a"}) {
    INFO(arch);
    const Program program = lower(products(), gpu_machine(gpu_info(arch)));
    const LaunchInfo narrow = at_line(program, 7).front().info, wide = at_line(program, 8).front().info;
    CHECK(narrow.multiplier == Multiplier::mma);
    CHECK(wide.multiplier == Multiplier::fma);
    CHECK(narrow.missed.empty() == !gpu_info(arch).wgmma);
    if (narrow.missed.empty()) continue;
    CHECK(narrow.missed[0].to_string() == "not by warpgroups: smaller tiles end first");
    const Launch launch = at_line(program, 7).front();
    CHECK(program.kernels[static_cast<std::size_t>(launch.kernel)].notes.front() == narrow.missed[0].to_string());
  }
}

namespace {

/// A matmul of x [m, k] and y [k, n]; returns the reasons in its launch for not using faster methods.
std::string why_not(const std::string& dtype, const std::string& m, const std::string& k, const std::string& n,
                    const CpuInfo& cpu) {
  const std::string text = "graph @g(input %x: " + dtype + "[" + m + ", " + k + "], input %y: " + dtype + "[" + k +
                           ", " + n + "]) {\n  %1 = matmul %x, %y  loc(\"model.cpp\":7)\n  output \"a\" %1\n}";
  const ir::Graph graph = ir::run_pipeline(ir::test::parse(text), ir::default_pipeline()).graph;
  const LaunchInfo info = at_line(lower_cpu(graph, cpu), 7).back().info;
  CHECK(info.role == KernelRole::product);
  std::string found;
  for (const MissedPath& missed : info.missed) found += (found.empty() ? "" : "; ") + missed.to_string();
  return found;
}

}  // namespace

TEST_CASE("launch info of CPU matmuls reports why a faster path does not apply") {
  const CpuInfo tiles = test::cpu_with(512, {.tiles = true}), pairs = test::cpu_with(512, {.dot_pairs = true});
  const struct {
    const char *dtype, *m, *k, *n;
    const CpuInfo& cpu;
    const char* why;
  } cases[] = {
      {"bf16", "64", "96", "96", tiles, ""},
      {"bf16", "8", "96", "96", tiles, "not by tile_mma: its rows are 8, less than 16"},
      {"bf16", "64", "96", "12", tiles, "not by tile_mma: its columns are 12, less than 16"},
      {"bf16", "64", "4", "96", tiles, "not by tile_mma: its k is 4, less than 16"},
      {"f32", "128", "96", "96", tiles, ""},
      {"f32", "64", "96", "96", tiles, "not by tile_mma, f32 as split bf16: its rows are 64, less than 96"},
      {"f32", "128", "96", "n", tiles, "not by tile_mma, f32 as split bf16: its columns are not known"},
      {"f32", "97", "65", "65", tiles,
       "not by tile_mma, f32 as split bf16: its sizes fill 35% of whole tiles, less than 70%"},
      {"f64", "64", "96", "96", tiles, ""},  // there is no other method
      {"bf16", "64", "96", "96", pairs, ""},
      {"f32", "64", "96", "96", test::cpu_with(256), ""},
  };
  for (const auto& [dtype, m, k, n, cpu, why] : cases) {
    CAPTURE(dtype, m, k, n);
    CHECK(why_not(dtype, m, k, n, cpu) == why);
  }
  // One row by rows along k: dot products of operands in memory.
  const char* const text =
      "graph @g(input %x: bf16[1, 96], input %y: bf16[96, 96]) {\n  %1 = transpose %y {dim0=0, dim1=1}\n"
      "  %2 = matmul %x, %1  loc(\"model.cpp\":7)\n  output \"a\" %2\n}";
  const ir::Graph graph = ir::run_pipeline(ir::test::parse(text), ir::default_pipeline()).graph;
  const LaunchInfo info = at_line(lower_cpu(graph, pairs), 7).back().info;
  REQUIRE(info.missed.size() == 1);
  CHECK(info.missed[0].to_string() ==
        "not by dot products of pairs of bf16: an operand is read in place, but pairs are formed only when packing");
}

TEST_CASE("launch info of CPU attention reports why tiles do not apply") {
  const auto why = [](const std::string& dtype, const std::string& size) {
    const std::string head = dtype + "[2, " + size + ", 64]";
    const std::string text =
        "graph @g(input %q: " + head + ", input %k: " + head + ", input %v: " + head +
        ") {\n  %1 = attention %q, %k, %v {scale=0.125}  loc(\"model.cpp\":7)\n  output \"a\" %1\n}";
    const ir::Graph graph = ir::run_pipeline(ir::test::parse(text), ir::default_pipeline()).graph;
    const Program program =
        lower_cpu(graph, test::cpu_with(512, {.tiles = true}), {.attention = AttentionFusion::required});
    for (const Launch& launch : program.launches) {
      if (launch.info.role != KernelRole::attention) continue;
      CHECK(launch.info.missed.empty() == (launch.info.multiplier != Multiplier::fma));
      return launch.info.missed.empty() ? std::string() : launch.info.missed[0].to_string();
    }
    return std::string("no attention");
  };
  CHECK(why("bf16", "256") == "");
  CHECK(why("bf16", "16") == "not by tile_mma: its rows are 16, less than 17");
  CHECK(why("f32", "256") == "");
  CHECK(why("f32", "64") == "not by tile_mma, f32 as split bf16: its rows are 64, less than 128");
  CHECK(why("f32", "4") == "not by tile_mma, f32 as split bf16: its rows are 4, less than 128");
}

TEST_CASE("every kernel role and multiplier has a description") {
  for (int role = 0; role <= static_cast<int>(KernelRole::copy); ++role)
    CHECK_FALSE(words(static_cast<KernelRole>(role)).empty());
  for (int m = 0; m <= static_cast<int>(Multiplier::wgmma); ++m)
    CHECK_FALSE(words(static_cast<Multiplier>(m)).empty());
}
