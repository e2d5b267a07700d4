#include <catch2/catch.hpp>

#include "codegen/llvm/jit.h"
#include "ir/support/error.h"
#include "passes/lowering/verify/verify_program.h"
#include "passes/program/text/parse_program.h"
#include "runtime/backend/run_program.h"
#include "runtime/cpu/cpu_runner.h"
#include "runtime/cpu/launch_groups.h"
#include "runtime/target.h"
#include "runtime/trace/trace.h"
#include "tests/runtime/executable/count_allocations.h"
#include "tests/support/programs/loop_programs.h"

/// Programs with loops on the CPU runner.
using namespace lathe;
using Catch::Matchers::Contains;
using test::with;

namespace {

/// A program from text, with its arguments.
class LoopRun {
 public:
  explicit LoopRun(std::string_view text, const CpuRunnerOptions& options = {}) : program_(parse_program(text)) {
    verify_program(program_);
    auto kernels =
        codegen::Jit({.target = codegen::TargetCpu::host(), .threads = 1}, nullptr).compile(program_.kernels);
    runner_ = make_cpu_runner(program_, std::move(kernels), options);
  }

  Tensors operator()(const Tensors& arguments, const DimBindings& dims, std::vector<LaunchTime>* times = nullptr) {
    inputs_.clear(), outputs_.clear();
    Tensors results;
    for (const Program::Slot& slot : program_.inputs) inputs_.push_back(arguments.at(slot.name).data());
    for (const Program::Slot& slot : program_.outputs)
      outputs_.push_back(results.set(slot.name, HostTensor(slot.dtype, slot.shape.evaluate(dims))).data());
    dims_ = dims;
    again(times);
    return results;
  }

  /// Runs on the same memory.
  void again(std::vector<LaunchTime>* times = nullptr) {
    runner_->run({.dims = dims_, .inputs = inputs_, .states = {}, .outputs = outputs_, .times = times});
  }

  const Program& program() const { return program_; }

 private:
  Program program_;
  std::unique_ptr<ProgramRunner> runner_;
  DimBindings dims_;
  std::vector<const std::byte*> inputs_;
  std::vector<std::byte*> outputs_;
};

void check_equal(const Tensors& found, const Tensors& expected) {
  for (const auto& [name, value] : expected) {
    INFO(name);
    CHECK(found.at(name).same_bits(value));
  }
}

/// Every parallel loop is divided among the threads.
constexpr TaskSizes small_tasks{.least_chunk_work = 1};

}  // namespace

TEST_CASE("program loops: equal bits for 1, 2 and 3 threads, and zero trips") {
  for (const bool poison : {false, true})
    for (const int threads : {1, 2, 3}) {
      const CpuRunnerOptions options{.threads = threads, .poison = poison, .tasks = small_tasks};
      LoopRun forwards(test::recurrence, options), backwards(test::reversed_recurrence(), options),
          nested(test::nested_loops, options);
      for (const std::int64_t steps : {7, 0, 1, 40}) {
        INFO(threads << " threads, " << steps << " steps" << (poison ? ", poisoned" : ""));
        const DimBindings dims = {{"T", steps}, {"n", 333}};
        const Tensors arguments = test::recurrence_arguments(steps, 333);
        check_equal(forwards(arguments, dims), test::recurrence_results(arguments));
        check_equal(backwards(arguments, dims), test::recurrence_results(arguments, true));
        for (const std::int64_t rows : {3, 0}) {
          const HostTensor x = test::small_numbers({rows, steps, 37});
          check_equal(nested({{"x", x}}, {{"S", rows}, {"T", steps}, {"n", 37}}), test::nested_results(x));
        }
      }
    }
}

TEST_CASE("program loops: a run with the dims of the previous one allocates nothing") {
  LoopRun run(test::recurrence, {.threads = 2});
  const Tensors arguments = test::recurrence_arguments(50, 8);
  const Tensors results = run(arguments, {{"T", 50}, {"n", 8}});
  const std::int64_t before = test::allocations();
  run.again();
  CHECK(test::allocations() == before);
  check_equal(results, test::recurrence_results(arguments));
}

TEST_CASE("program loops: times add up over iterations") {
  LoopRun run(test::recurrence, {.threads = 2, .tasks = small_tasks});
  const Tensors arguments = test::recurrence_arguments(10, 1000);
  const DimBindings dims = {{"T", 10}, {"n", 1000}};
  TracedRun traced;
  check_equal(run(arguments, dims, &traced.launches), test::recurrence_results(arguments));
  REQUIRE(traced.launches.size() == 4);
  for (std::size_t l = 0; l < 4; ++l) {
    const LaunchTime& time = traced.launches[l];
    CHECK(time.launch == static_cast<int>(l));
    CHECK(time.runs == (l == 1 || l == 2 ? 10 : 1));
    CHECK(time.tasks == 1000);
    CHECK(time.gflops == Approx(l == 1 ? 10 * 2 * 1000 * 1e-9 : 0));
    double in_ranges = 0;
    for (const TaskRange& range : time.ranges) in_ranges += range.seconds;
    CHECK(in_ranges <= 2 * time.seconds);
    traced.seconds += time.seconds;
  }
  const Trace trace{run.program(), {}, dims, {.flops = 1e9, .bytes = 1e9}, {traced}};
  CHECK_THAT(top_table(trace, 10), Contains("   10 ") && Contains("rnn.cpp:10"));
  const std::string json = chrome_trace_json(trace);
  CHECK_THAT(json,
             Contains(R"("name":"loop rnn","cat":"loop")") && Contains(R"("times":10)") && Contains(R"("runs":10)"));
  std::vector<LaunchTime> none;
  run(test::recurrence_arguments(0, 1000), {{"T", 0}, {"n", 1000}}, &none);
  CHECK(none.size() == 2);
}

TEST_CASE("program loops: skipped launches and failed checks") {
  std::vector<bool> skipped(4);
  LoopRun run(test::recurrence, {.skipped = &skipped});
  const Tensors arguments = test::recurrence_arguments(3, 4);
  const DimBindings dims = {{"T", 3}, {"n", 4}};
  check_equal(run(arguments, dims), test::recurrence_results(arguments));
  skipped[3] = true;
  std::vector<LaunchTime> times;
  run(arguments, dims, &times);
  CHECK(times.size() == 3);

  // Fails in the second iteration; the next run starts again at the first.
  const std::string checked =
      with(with(test::recurrence, "    store h[i0] = %0\n",
                "    %1 = lt %0, 100:f32 : bool\n    check %1 else 1\n    store h[i0] = %0\n"),
           "work 1000, bytes 12*n\nregion", "work 1000, bytes 12*n\n  message \"h is too large\"\nregion");
  LoopRun failing(checked, {.threads = 2, .tasks = small_tasks});
  Tensors large = test::recurrence_arguments(3, 4);
  HostTensor x = test::small_numbers({3, 4});
  x.set(5, 1000);
  large.set("x", x);
  CHECK_THROWS_WITH(failing(large, dims), Contains("h is too large") && Contains("rnn.cpp:11"));
  check_equal(failing(arguments, dims), test::recurrence_results(arguments));
}

TEST_CASE("program loops: a state is read and written through slices only") {
  const Program program = parse_program(R"(program @decay, 1 region
loop 0: "rows" launches 0..0, T times
region 0 rows
  %1 neg
launch 0: kernel 0 @halve("s at t") for n
  as "element-wise", work 1
state s: f32[T, n] in s, updated
buffer s: state f32[T*n]
buffer "s at t": slice f32[n] of s by loop 0, stride n
kernel @halve(s: readwrite f32; n) {
  for i0 in 0..n step 1 @parallel {
    %0 = load s[i0] : f32
    %1 = mul %0, 0.5:f32 : f32
    store s[i0] = %1
  }
}
)");
  verify_program(program);
  const Target host = Target::host();
  const auto device = host.backend->open(host.name, {.threads = 2});
  const HostTensor before = test::small_numbers({5, 3});
  const HostTensor after = run_program(program, *device, {{"s", before}}).at("s");
  for (std::int64_t i = 0; i < before.numel(); ++i) CHECK(after.get(i) == before.get(i) / 2);
}

TEST_CASE("program loops: groups of launches end where loops do, and slices of one buffer are no group") {
  const auto sizes = [](std::string_view text) {
    const Program program = parse_program(text);
    std::vector<int> found;
    for (const LaunchGroup& group : LaunchGrouping(program).groups(plan_memory(program, {{"T", 4}, {"n", 16}})))
      found.push_back(group.last - group.first + 1);
    return found;
  };
  CHECK(sizes(test::recurrence) == std::vector<int>{1, 1, 1, 1});
  // In the loop, no launch accesses what another one writes.
  const std::string apart =
      with(with(with(test::recurrence, "copy(h, last)", "copy(h2, last)"), "@step(h, ", "@step(h0, "),
           "@both(g, h, \"y at t\")", "@both(h0, h2, \"y at t\")");
  const std::string all = apart + "buffer h2: temporary f32[n]\n";
  CHECK(sizes(all) == std::vector<int>{1, 2, 1});
  // Both launches of the loop write slices of y.
  CHECK(sizes(with(all, "\"x at t\", g) for", "\"x at t\", \"z at t\") for") +
              "buffer \"z at t\": slice f32[n] of y by loop 0, stride n, reversed\n") ==
        std::vector<int>{1, 1, 1, 1});
}
