#include "passes/lowering/verify/verify_program.h"
#include "ir/ops/primitives/primitives.h"

#include <catch2/catch.hpp>

#include <functional>

#include "frontend/train/training.h"
#include "ir/kernel/build/builder.h"
#include "ir/support/error.h"
#include "passes/fusion/prepare/prepare_for_fusion.h"
#include "passes/lowering/verify/sample_sizes.h"
#include "passes/lowering/verify/verify_placement.h"
#include "passes/pipeline/pipeline.h"
#include "passes/program/kept_launches.h"
#include "tests/passes/support.h"
#include "tests/support/graphs/small_models.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/programs/lower.h"

/// Hand-written programs with one error each.
using namespace lathe;
using Catch::Matchers::Contains;
using kernel::Access;
using kernel::Builder;
using Kind = ProgramBuffer::Kind;

namespace {

/// y[i] = x[i] for i from `first` to n - `short_by`, with a step.
kernel::Kernel copy(int first = 0, int short_by = 0, int step = 1) {
  Builder b("copy");
  const kernel::Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
  const kernel::Value n = b.dim("n");
  b.for_loop(first, n - short_by, step, [&](kernel::Value i) { b.store(y, i, b.load(x, i)); });
  return b.finish();
}

/// y[i] += 1 if the data says so, or unconditionally if `always`.
kernel::Kernel bump(bool always) {
  Builder b("bump");
  const kernel::Buffer y = b.buffer("y", f32, Access::read_write);
  const kernel::Value n = b.dim("n");
  b.for_loop(0, n, 1, [&](kernel::Value i) {
    const kernel::Value old = b.load(y, i);
    const auto store = [&] { b.store(y, i, old + 1.0); };
    always ? store() : b.if_(old < 0.0, store);
  });
  return b.finish();
}

/// x -> t -> y, n elements each, in two launches of two regions.
Program good() {
  Program program;
  program.name = "good";
  program.kernels = {copy()};
  const Dim n("n");
  const auto buffer = [&](Kind kind, std::string name) {
    program.buffers.push_back(
        {.kind = kind, .name = std::move(name), .dtype = f32, .elements = n, .data = {}, .loc = {}});
  };
  buffer(Kind::input, "x");
  buffer(Kind::output, "y");
  buffer(Kind::temporary, "%1 exp");
  program.inputs = {{"x", f32, Shape({n}), 0}};
  program.outputs = {{"y", f32, Shape({n}), 1}};
  const auto launch = [&](int from, int to, int region, const ir::Op& op, int line) {
    Launch made;
    made.kernel = 0;
    made.buffers = {from, to};
    made.dims = {n};
    made.info.region = region;
    made.info.ops = {{.value = {region + 1}, .op = &op}};
    made.loc = Location("model.cpp", line);
    program.launches.push_back(std::move(made));
  };
  launch(0, 2, 0, ir::ops::exp, 7);
  launch(2, 1, 1, ir::ops::log, 8);
  return program;
}

/// Checks that the program is valid before the change, and the error after it.
void refused(const std::function<void(Program&)>& change, const std::string& text, const std::string& label) {
  Program program = good();
  CHECK_NOTHROW(verify_program(program));
  change(program);
  CHECK_THROWS_AS(verify_program(program), InternalError);
  CHECK_THROWS_WITH(verify_program(program), Contains(text) && Contains("[" + label + "]"));
}

/// Appends a launch with its own kernel.
Launch& add_launch(Program& program, kernel::Kernel kernel, std::vector<int> buffers) {
  Launch launch = program.launches.back();
  launch.kernel = static_cast<int>(program.kernels.size());
  launch.buffers = std::move(buffers);
  launch.info.region = 2;
  launch.info.ops = {{.value = {3}, .op = &ir::ops::add}};
  launch.loc = Location("model.cpp", 9);
  program.kernels.push_back(std::move(kernel));
  program.launches.push_back(std::move(launch));
  return program.launches.back();
}

int add_buffer(Program& program, Kind kind, bool has_room = false) {
  ProgramBuffer buffer = program.buffers.back();
  buffer.kind = kind;
  buffer.name = "more";
  buffer.has_room = has_room;
  program.buffers.push_back(buffer);
  return static_cast<int>(program.buffers.size()) - 1;
}

}  // namespace

TEST_CASE("verify program: rejects missing kernels and buffers", "[program]") {
  refused([](Program& p) { p.launches[1].kernel = 4; },
          "there is no kernel 4, in launch 1 of no kernel (%2 log) at model.cpp:8", "program_range");
  refused([](Program& p) { p.launches[1].buffers[0] = 3; }, "there is no buffer 3, in launch 1 of copy",
          "program_range");
  refused([](Program& p) { p.outputs[0].buffer = -1; }, "output y has the buffer -1", "program_range");
}

TEST_CASE("verify program: launch arguments match the kernel parameters", "[program]") {
  refused([](Program& p) { p.launches[0].buffers.push_back(1); }, "3 buffers and 1 dims for 2 and 1, in launch 0",
          "program_arguments");
  refused([](Program& p) { p.launches[0].rows_read = {{.parameter = 2}}; }, "rows of parameter 2, of 2",
          "program_arguments");
  refused([](Program& p) { p.launches[0].dims.clear(); }, "2 buffers and 0 dims for 2 and 1", "program_arguments");
  refused(
      [](Program& p) {
        Builder b("checks");
        const kernel::Buffer y = b.buffer("y", f32, Access::write);
        b.check(b.dim("n") < 5, 2);
        b.store(y, 0, b.constant(f32, 1));
        add_launch(p, b.finish(), {1}).checks = {"one"};
      },
      "1 messages for check 2", "program_arguments");
  refused([](Program& p) { p.buffers[2].dtype = f64; },
          "temporary %1 exp: f64[n]: the parameter 1 is f32, in launch 0", "program_dtype");
  refused([](Program& p) { p.launches[1].buffers[1] = 2; }, "it is the parameters 0 and 1", "program_alias");
}

TEST_CASE("verify program: rejects writes to inputs and constants", "[program]") {
  refused([](Program& p) { add_launch(p, copy(), {1, 0}); },
          "input x: f32[n]: it is written, in launch 2 of copy (%3 add) at model.cpp:9", "program_constant");
  refused([](Program& p) { add_launch(p, copy(), {1, add_buffer(p, Kind::constant)}); }, "it has 0 elements",
          "program_constant");
}

TEST_CASE("verify program: scratch belongs to one launch, which writes it", "[program]") {
  refused([](Program& p) { p.buffers[2].kind = Kind::scratch; }, "it is read and not written, in launch 1",
          "program_scratch");
  refused(
      [](Program& p) {
        const int scratch = add_buffer(p, Kind::scratch);
        add_launch(p, copy(), {0, scratch});
        add_launch(p, copy(), {0, scratch});
      },
      "launch 2 has it too, in launch 3", "program_scratch");
}

TEST_CASE("verify program: kept buffers depend on parameters that no launch writes", "[program]") {
  const Program kept =
      lower_cpu(ir::run_pipeline(ir::test::parse(R"(graph @g(input %x: f32[n, 64], parameter %w: f32[96, 64]) {
  %1 = linear %x, %w
  output "y" %1
})"),
                                 ir::default_pipeline())
                    .graph,
                cpu_info_for({}, {}, 256));
  REQUIRE(kept_launches(kept) == 1);
  CHECK_NOTHROW(verify_program(kept));
  const auto refused_after = [&](const std::function<void(Program&)>& change, const std::string& text) {
    Program program = kept;
    change(program);
    CHECK_THROWS_WITH(verify_program(program), Contains(text) && Contains("[program_kept]"));
  };
  const int copy = kept.launches[0].buffers[0] == kept.states[0].buffer ? kept.launches[0].buffers[1]
                                                                        : kept.launches[0].buffers[0];
  refused_after([](Program& p) { p.states[0].is_updated = true; }, "it is no parameter, or it is written");
  refused_after([](Program& p) { p.states[0].is_parameter = false; },
                "state w: f32[6144]: a kept buffer depends on it");
  refused_after([](Program& p) { std::ranges::rotate(p.launches, p.launches.begin() + 1); },
                "a launch after other ones writes it");
  refused_after([&](Program& p) { p.buffers[copy].elements = Dim("n"); },
                "kept packed right operand: f32[n]: its size is not known");
}

TEST_CASE("verify program: slots", "[program]") {
  refused([](Program& p) { p.buffers[1].kind = Kind::temporary; }, "temporary y: f32[n]: it is the output y",
          "program_slot");
  refused([](Program& p) { p.outputs[0].shape = Shape({Dim("n"), Dim(2)}); }, "it is the output y", "program_slot");
  refused([](Program& p) { p.outputs.push_back(p.outputs[0]); }, "the output y is another one too", "program_slot");
}

TEST_CASE("verify program: buffers are written before they are read or returned", "[program]") {
  refused(
      [](Program& p) { p.launches.erase(p.launches.begin()); },
      "temporary %1 exp: f32[n]: it is read and nothing wrote it before, in launch 0 of copy (%2 log) at model.cpp:8",
      "program_unwritten");
  refused([](Program& p) { std::swap(p.launches[0], p.launches[1]); }, "nothing wrote it before",
          "program_unwritten");
  refused([](Program& p) { p.launches.pop_back(); }, "output y: f32[n]: nothing writes it", "program_unwritten");
  refused([](Program& p) { p.states = {{"s", f32, Shape({Dim("n")}), add_buffer(p, Kind::state), false, true}}; },
          "state more: f32[n]: nothing writes its new value", "program_unwritten");
}

TEST_CASE("verify program: a buffer that is written for some sizes is read for no others", "[program]") {
  const SizeCondition below{Dim("n"), 5, true};
  refused([&](Program& p) { p.launches[0].condition = below; },
          "temporary %1 exp: f32[n]: it is written only for some sizes, and read for others", "program_unwritten");
  refused([&](Program& p) { p.launches[1].condition = below; }, "output y: f32[n]: it is written only for some sizes",
          "program_unwritten");
  refused(
      [&](Program& p) {
        p.launches[0].condition = below;
        p.launches[1].condition = below.negated();
      },
      "written only for some sizes, and read for others", "program_unwritten");
  const auto both = [&](Program& p, const SizeCondition& second) {
    p.launches.insert(p.launches.begin(), p.launches[0]);
    p.launches[0].condition = below;
    p.launches[1].condition = second;
  };
  refused([&](Program& p) { both(p, {Dim("n"), 6, false}); }, "written only for some sizes", "program_unwritten");
  Program program = good();
  both(program, below.negated());
  CHECK_NOTHROW(verify_program(program));
}

TEST_CASE("verify program: a region writes its buffers completely", "[program]") {
  refused([](Program& p) { p.kernels[0] = copy(1); },
          "temporary %1 exp: f32[n]: element 0 of 3 is not written, n=3, in launch 0 of copy (%1 exp) at model.cpp:7",
          "program_partial");
  refused([](Program& p) { p.kernels[0] = copy(0, 1); }, "element 2 of 3 is not written, n=3", "program_partial");
  refused([](Program& p) { p.kernels[0] = copy(0, 0, 2); }, "element 1 of 3 is not written, n=3", "program_partial");
  Builder too_far("too_far");
  const kernel::Buffer x = too_far.buffer("x", f32, Access::read), y = too_far.buffer("y", f32, Access::write);
  too_far.for_loop(0, too_far.dim("n") + 1, 1, [&](kernel::Value i) { too_far.store(y, i, too_far.load(x, 0)); });
  refused([&](Program& p) { p.kernels[0] = too_far.finish(); }, "element 3 of 3 is written, n=3", "program_partial");
  refused(
      [](Program& p) {
        p.buffers[1].elements = Dim("n") * Dim("m"), p.outputs[0].shape = Shape({Dim("n"), Dim("m")});
      },
      "output y", "program_partial");
  // A launch that accumulates does not replace one that skips elements, unless the data decides which ones.
  refused(
      [](Program& p) {
        add_launch(p, bump(true), {1}), p.kernels.back() = copy(), p.launches.back().buffers = {2, 1},
                                        p.kernels[0] = copy(0, 1);
      },
      "is not written", "program_partial");
  Program program = good();
  add_launch(program, bump(false), {1});
  CHECK_NOTHROW(verify_program(program));
  program = good();
  add_launch(program, copy(1), {2, 1}).partial = {1};
  CHECK_NOTHROW(verify_program(program));
}

TEST_CASE("verify program: launches of one region write parts of a buffer together", "[program]") {
  Program program = good();
  program.kernels[0] = copy(0, 2);
  program.kernels.push_back(copy());
  Launch rest = program.launches[0];
  rest.kernel = 1;
  program.launches.insert(program.launches.begin() + 1, rest);
  program.launches[2].kernel = 1;
  CHECK_NOTHROW(verify_program(program));
  program.launches[1].info.region = 9;
  CHECK_THROWS_WITH(verify_program(program), Contains("[program_partial]"));
}

TEST_CASE("verify program: elements of an oversized workspace are written before they are read", "[program]") {
  const auto through = [](kernel::Kernel writes, kernel::Kernel reads) {
    Program program = good();
    const int workspace = add_buffer(program, Kind::temporary, true);
    add_launch(program, std::move(writes), {0, workspace});
    add_launch(program, std::move(reads), {workspace, 1});
    return program;
  };
  CHECK_NOTHROW(verify_program(through(copy(), copy())));
  CHECK_THROWS_WITH(verify_program(through(copy(0, 2), copy())),
                    Contains("temporary more: f32[n]: element") && Contains("is read and not written"));
}

TEST_CASE("verify program: loads of inputs stay in bounds", "[program]") {
  const auto shifted = [](int by) {
    Builder b("shifted");
    const kernel::Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
    b.for_loop(0, b.dim("n"), 1, [&](kernel::Value i) { b.store(y, i, b.load(x, i + by)); });
    return b.finish();
  };
  refused([&](Program& p) { p.kernels.push_back(shifted(1)), p.launches[0].kernel = 1; },
          "input x: f32[n]: element 3 of 3 is read, n=3, in launch 0", "program_partial");
  refused([&](Program& p) { p.kernels.push_back(shifted(-1)), p.launches[0].kernel = 1; }, "element -1 of 3 is read",
          "program_partial");
}

/// Two vectors of 4 at a time, each multiplied by one element of x: for the last elements, the second vector has no
/// lane in y.
TEST_CASE("verify program: a vector without active lanes loads no uniform value", "[program]") {
  const auto spread = [](bool masked) {
    Builder b("spread");
    const kernel::Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
    const kernel::Value n = b.dim("n") * 4;
    b.for_loop(0, n, 8, [&](kernel::Value i) {
      for (const int first : {0, 4}) {
        const kernel::Value mask = b.tail_mask(n - i - first, 4);
        const kernel::Value any = masked ? b.reduce(ScalarOp::logical_or, mask) : kernel::Value{};
        b.store(y, i + first, b.broadcast(b.load(x, (i + first) / 4, 1, any), 4), mask);
      }
    });
    return b.finish();
  };
  const auto program = [&](bool masked) {
    Program made = good();
    made.kernels = {spread(masked)};
    made.launches.resize(1);
    made.launches[0].buffers = {0, 1};
    made.buffers[1].elements = Dim(4) * Dim("n"), made.outputs[0].shape = Shape({Dim(4), Dim("n")});
    return made;
  };
  CHECK_NOTHROW(verify_program(program(true)));
  CHECK_THROWS_WITH(verify_program(program(false)), Contains("input x: f32[n]: element 3 of 3 is read, n=3"));
}

TEST_CASE("verify program: known sizes of any magnitude", "[program]") {
  Program program = good();
  const auto set = [&](std::int64_t n) {
    for (ProgramBuffer& buffer : program.buffers) buffer.elements = Dim(n);
    for (Launch& launch : program.launches) launch.dims = {Dim(n)};
    program.inputs[0].shape = program.outputs[0].shape = Shape({Dim(n)});
  };
  set(std::int64_t{1} << 50);
  CHECK_NOTHROW(verify_program(program));
  program.launches[1].dims = {Dim((std::int64_t{1} << 50) - 1)};
  CHECK_THROWS_WITH(verify_program(program), Contains("[program_partial]"));
  set(0);
  CHECK_NOTHROW(verify_program(program));
}

TEST_CASE("verify program: chosen sizes satisfy the run-time checks if one size at a time can be adjusted",
          "[program]") {
  Program program = good();
  const auto check = [&](Dim left, Dim right, ir::DimCheck::Relation relation) {
    program.checks.push_back({.left = std::move(left),
                              .right = std::move(right),
                              .relation = relation,
                              .loc = {},
                              .op = "",
                              .label = "",
                              .message = ""});
  };
  CHECK(sample_sizes(program) == std::vector<DimBindings>{{{"n", 3}}, {{"n", 67}}});
  check(Dim("n"), Dim("m") * Dim(4), ir::DimCheck::Relation::equal);
  check(Dim("k"), Dim(16), ir::DimCheck::Relation::at_most);
  check(Dim("k"), Dim("n"), ir::DimCheck::Relation::at_most);
  const std::vector<DimBindings> found = sample_sizes(program);
  REQUIRE(found.size() == 2);
  for (const DimBindings& sizes : found) {
    CHECK(sizes.at("n") == 4 * sizes.at("m"));
    CHECK(sizes.at("k") <= 16);
    CHECK(sizes.at("k") <= sizes.at("n"));
  }
  check(Dim("n"), Dim(3), ir::DimCheck::Relation::equal);
  CHECK(sample_sizes(program).empty());
}

TEST_CASE("verify program: accepts the step of every model for each kind of target", "[program]") {
  const auto step = [](const auto& config) {
    const ir::Graph graph =
        training_step(models::loss_graph(config).graph, "loss", AdamW{.lr = 1e-3}, {.clip_norm = 1.0});
    return ir::run_pipeline(graph, ir::default_pipeline()).graph;
  };
  for (const DType dtype : {f32, bf16})
    for (const ir::Graph& graph :
         {step(test::small_gpt(dtype)), step(test::small_llama(dtype)), step(test::small_encoder_decoder(dtype))}) {
      for (const CpuInfo& target : {test::cpu_with(128), test::cpu_with(256), test::cpu_with(512),
                                    test::cpu_with(512, {.dot_pairs = true, .slow_last_level = true, .tiles = true})})
        CHECK_NOTHROW(verify_program(lower_cpu(graph, target)));
      CHECK_NOTHROW(verify_program(lower_gpu(graph)));
      CHECK_NOTHROW(verify_program(lower_gpu_sm_90a(graph)));
    }
}

TEST_CASE("verify program: empty values need no writer, and empty sums do", "[program]") {
  const ir::Graph graph = ir::test::parse(R"(graph @g(input %x: f32[n, 0]) {
  %1 = exp %x
  %2 = sum %1 {dims=[0]}
  %3 = sum %1 {dims=[1]}
  output "e" %1
  output "s" %2
  output "t" %3
})");
  Program program = lower_cpu(graph, test::cpu_with(256));
  CHECK_NOTHROW(verify_program(lower_gpu(graph)));
  program.launches.clear();
  CHECK_THROWS_WITH(verify_program(program), Contains("output t: f32[n]: nothing writes it"));
}

TEST_CASE("verify placement: rejects reads of memory that another value overwrote", "[program]") {
  const ir::Graph graph = prepare_for_fusion(ir::test::parse(R"(graph @g(input %x: f32[n, 8], state %s: f32[n, 8]) {
  %1 = sum %x {dims=[0]}
  %2 = exp %1
  %3 = sum %2 {dims=[0]}
  %4 = add %2, %3
  %5 = mul %s, %x
  output "o" %4
  update %s <- %5
})"));
  const FusionPlan plan = plan_fusion(graph);
  std::vector<std::pair<ir::ValueId, ir::ValueId>> copies;
  for (const ir::Update& update : graph.updates) copies.emplace_back(update.state, update.value);
  const auto base = [&](ir::ValueId id) { return plan.placement[id].base.index; };
  const auto verify = [&](const std::function<int(ir::ValueId)>& buffer_of) {
    verify_placement(graph, plan, buffer_of, copies);
  };
  CHECK_NOTHROW(verify([&](ir::ValueId id) { return base(id); }));
  // All values are placed at one address: %3 overlaps %2, which is still live.
  CHECK_THROWS_WITH(verify([&](ir::ValueId id) { return graph[id].op->as<ir::Argument>() ? base(id) : 1000; }),
                    Contains("but its buffer holds") && Contains("[placement]"));
  copies.clear();
  CHECK_THROWS_WITH(verify([&](ir::ValueId id) { return base(id); }), Contains("mul at") && Contains("[placement]"));
}
