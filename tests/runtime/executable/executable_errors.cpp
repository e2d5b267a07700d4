#include <atomic>
#include <catch2/catch.hpp>
#include <functional>
#include <limits>
#include <thread>

#include "passes/memory/memory_plan.h"
#include "runtime/executable_program.h"
#include "tests/runtime/compiled/check_compiled.h"

/// Errors of an executable for arguments that do not fit: label, names and numbers. The executable stays usable after
/// each of them.
using namespace lathe;
using lathe::test::parse;

namespace {

constexpr std::string_view model = R"(graph @model(input %x: f32[n, 4], input %y: f32[n, m], input %i: i64[m],
                                           input %z: f32[n*2], parameter %w: f32[5, 4], state %s: f32[4]) {
  %1 = linear %x, %w loc("model.cpp":7)
  %2 = gather %w, %i {dim=0} loc("model.cpp":9)
  %3 = add %s, %s
  output "l" %1
  output "g" %2
  output "y" %y
  output "z" %z
  update %s <- %3
})";

struct Call {
  Executable& executable;
  Tensors inputs;
};

struct WrongCall {
  std::string_view label;
  std::vector<std::string_view> says;
  std::function<void(Call&)> make;  ///< makes the call or a state invalid
};

const std::vector<WrongCall>& wrong_calls() {
  static const std::vector<WrongCall> all = {
      {"argument_missing", {"x", "@model", "f32[n, 4]"}, [](Call& c) { c.inputs.erase("x"); }},
      {"argument_unknown", {"xx", "its inputs are"}, [](Call& c) { c.inputs.emplace("xx", HostTensor(f32, {1})); }},
      {"argument_unknown",
       {"xx", "did you mean 'x'?"},
       [](Call& c) {
         c.inputs.erase("x");
         c.inputs.emplace("xx", HostTensor(f32, {2, 4}));
       }},
      {"argument_unknown", {"w", "parameters()"}, [](Call& c) { c.inputs.emplace("w", HostTensor(f32, {5, 4})); }},
      {"argument_dtype",
       {"x", "f32[n, 4]", "f64[2, 4]"},
       [](Call& c) { c.inputs.at("x") = HostTensor(f64, {2, 4}); }},
      {"argument_rank", {"x", "f32[8]", "rank 2"}, [](Call& c) { c.inputs.at("x") = HostTensor(f32, {8}); }},
      {"argument_shape",
       {"x", "[2, 3]", "3 instead of 4"},
       [](Call& c) { c.inputs.at("x") = HostTensor(f32, {2, 3}); }},
      {"dim_conflict", {"n", "3", "2"}, [](Call& c) { c.inputs.at("y") = HostTensor(f32, {3, 3}); }},
      {"dim_conflict", {"2*n", "5", "z"}, [](Call& c) { c.inputs.at("z") = HostTensor(f32, {5}); }},
      {"argument_unknown",
       {"qqqq", "its inputs are: x, y, i, z"},
       [](Call& c) { c.inputs.emplace("qqqq", HostTensor()); }},
      {"index_range",
       {"model.cpp:9: gather: index 5 at [1] of the input i is out of range for a dim of size 5", "use 0 to 4"},
       [](Call& c) { c.inputs.at("i").set_int(1, 5); }},
      {"index_range",
       {"model.cpp:9: gather: index -1 at [2] of the input i"},
       [](Call& c) { c.inputs.at("i").set_int(2, -1); }},
      {"argument_unknown",
       {"weights", "no parameter or state"},
       [](Call& c) { c.executable.parameters().set("weights", HostTensor(f32, {4})); }},
      {"argument_unknown", {"did you mean 'w'?"}, [](Call& c) { (void)c.executable.parameters().get("W"); }},
      {"argument_unknown",
       {"no parameter or state", "x"},
       [](Call& c) { c.executable.parameters().set("x", HostTensor(f32, {2, 4})); }},
      {"argument_dtype",
       {"s", "f32", "i64"},
       [](Call& c) { c.executable.parameters().set("s", HostTensor(i64, {4})); }},
      {"argument_shape",
       {"w", "[5, 4]", "[4, 5]"},
       [](Call& c) { c.executable.parameters().set("w", HostTensor(f32, {4, 5})); }},
      {"argument_unknown", {"nothing"}, [](Call& c) { (void)c.executable.parameters().get("nothing"); }},
  };
  return all;
}

Tensors right_inputs() {
  return {{"x", HostTensor(f32, {2, 4})},
          {"y", HostTensor(f32, {2, 3})},
          {"i", HostTensor::from_ints({3}, {0, 4, 2})},
          {"z", HostTensor(f32, {4})}};
}

/// Returns the label and the text of the UserError that `action` throws.
std::pair<std::string, std::string> error_of_call(const std::function<void()>& action) {
  try {
    action();
  } catch (const UserError& error) {
    return {error.label(), error.what()};
  }
  return {"", "no error"};
}

}  // namespace

TEST_CASE("an executable names the argument that does not fit, and can run again") {
  Executable executable = compile(parse(model), {.threads = 2});
  const auto [unset, unset_text] = error_of_call([&] { executable.run(right_inputs()); });
  CHECK(unset == "state_unset");
  CHECK(unset_text.find("parameter w: f32[5, 4] of @model has no value") != std::string::npos);
  CHECK(error_of_call([&] { (void)executable.parameters().get("s"); }).first == "state_unset");
  executable.parameters().set("w", HostTensor(f32, {5, 4}));
  executable.parameters().set("s", HostTensor(f32, {4}));
  for (const WrongCall& wrong : wrong_calls()) {
    const auto [label, text] = error_of_call([&] {
      Call call{executable, right_inputs()};
      wrong.make(call);
      executable.run(call.inputs);
    });
    INFO(text);
    CHECK(label == wrong.label);
    for (const std::string_view part : wrong.says) {
      INFO(part);
      CHECK(text.find(part) != std::string::npos);
    }
    CHECK(executable.run(right_inputs()).at("g").shape() == std::vector<std::int64_t>{3, 4});
  }
}

TEST_CASE("an unknown result is an error that names the existing ones") {
  Executable executable = compile(parse(model), {.threads = 1});
  executable.parameters().set({{"w", HostTensor(f32, {5, 4})}, {"s", HostTensor(f32, {4})}});
  const auto [label, text] = error_of_call([&] { (void)executable.run(right_inputs()).at("loss"); });
  CHECK(label == "tensor_unknown");
  CHECK(text.find("there are: g, l, y, z") != std::string::npos);
}

TEST_CASE("an executable that was moved from reports an error, and can be assigned to") {
  Executable first = compile(parse(model), {.threads = 1});
  Executable second = std::move(first);
  second.parameters().set({{"w", HostTensor(f32, {5, 4})}, {"s", HostTensor(f32, {4})}});
  CHECK(second.run(right_inputs()).size() == 4);
  std::vector<LaunchTime> times;
  // NOLINTBEGIN(bugprone-use-after-move): a moved-from executable must throw
  const std::function<void()> uses[] = {
      [&] { first.run(right_inputs()); },       [&] { first.run_traced(right_inputs(), times); },
      [&] { (void)first.parameters(); },        [&] { first.use(second.parameters()); },
      [&] { (void)first.summary(); },           [&] { (void)program_of(first); },
      [&] { (void)memory_plan_of(first, {}); }, [&] { (void)first.bind({}); }};
  // NOLINTEND(bugprone-use-after-move)
  for (const auto& use : uses) CHECK(error_of_call(use).first == "executable_moved");
  first = std::move(second);
  CHECK(first.run(right_inputs()).size() == 4);
}

TEST_CASE("a negative number of threads is an error") {
  const auto [label, text] = error_of_call([] { (void)compile(parse(model), {.threads = -1}); });
  CHECK(label == "thread_count");
  CHECK(text.find("-1 threads") != std::string::npos);
}

TEST_CASE("options of compile() out of range are errors that name the option and its value") {
  const double nan = std::numeric_limits<double>::quiet_NaN();
  const std::pair<CompileOptions, std::string> cases[] = {
      {{.reserve = {{"n", -4}}}, "reserve of the dim n is -4"},
      {{.lower = {.memory = MemoryBudget{.bytes = -1}}}, "the memory budget is -1"},
      {{.lower = {.memory = MemoryBudget{.bytes = 1, .dims = {{"n", -2}}}}}, "size of the dim n is -2"},
      {{.lower = {.chunks = RowChunks{.least_rows = 0}}}, "least_rows of a chunk is 0"},
      {{.lower = {.chunks = RowChunks{.least_saved = -8}}}, "least_saved by chunks is -8"},
      {{.tune = TuneOptions{.seconds = nan}}, "the time to tune for is nan"},
      {{.tune = TuneOptions{.seconds = -1}}, "the time to tune for is -1"},
      {{.tune = TuneOptions{.dims = {{"n", -3}}}}, "tuned size of the dim n is -3"},
  };
  for (const auto& [options, says] : cases) {
    INFO(says);
    const auto [label, text] = error_of_call([&] { (void)compile(parse(model), options); });
    CHECK(label == "compile_options");
    CHECK(text.find(says) != std::string::npos);
  }
}

TEST_CASE("states set during runs on another thread are seen completely or not at all") {
  // Every value that is set has equal elements, and a run keeps them equal unless it sees a partial update. The sines
  // take long enough for many values to be set meanwhile.
  constexpr std::int64_t size = 1 << 17;
  Executable executable = compile(parse(R"(graph @kept(state %s: f64[131072]) {
  %1 = sin %s
  %2 = max %1 {dims=[0]}
  %3 = min %1 {dims=[0]}
  %4 = sub %2, %3
  %5 = neg %s
  output "spread" %4
  update %s <- %5
})"),
                                  {.threads = 2});
  const auto filled = [](double x) { return HostTensor::from({size}, std::vector<double>(size, x), f64); };
  const HostTensor three = filled(3), one = filled(1);
  executable.parameters().set("s", three);
  std::atomic<bool> done = false;
  std::thread setter([&] {
    for (int i = 0; !done; ++i) executable.parameters().set("s", i % 2 == 0 ? one : three);
  });
  double spread = 0;
  for (int i = 0; i < 200; ++i) {
    spread = std::max(spread, executable.run({}).at("spread").get(0));
    std::this_thread::yield();
  }
  done = true;
  setter.join();
  CHECK(spread == 0);
}

TEST_CASE("unbound sizes and failed run-time checks name the source line") {
  Executable open = compile(parse(R"(graph @open(input %x: f32[n]) {
  %1 = iota {shape=[k], dim=0, dtype=f32} loc("open.cpp":3)
  output "y" %1
  output "x" %x
})"));
  const auto [label, text] = error_of_call([&] { open.run({{"x", HostTensor(f32, {2})}}); });
  INFO(text);
  CHECK(label == "dim_unbound");
  CHECK(text.find("k") != std::string::npos);

  Executable related = compile(parse(R"(graph @related(input %a: f32[n, k], input %b: f32[m, 3]) {
  %1 = matmul %a, %b loc("related.cpp":5)
  output "y" %1
})"));
  CHECK(related.run({{"a", HostTensor(f32, {2, 7})}, {"b", HostTensor(f32, {7, 3})}}).at("y").numel() == 6);
  const auto [rule, said] =
      error_of_call([&] { related.run({{"a", HostTensor(f32, {2, 6})}, {"b", HostTensor(f32, {7, 3})}}); });
  INFO(said);
  CHECK(rule == "matmul_inner");
  CHECK(said.find("related.cpp:5: matmul") == 0);
  CHECK(said.find("k=6, m=7") != std::string::npos);
}
