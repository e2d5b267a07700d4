#include <algorithm>
#include <catch2/catch.hpp>
#include <thread>

#include "ir/tensor/text/parser.h"
#include "passes/autodiff/autodiff.h"
#include "runtime/backend/backend.h"
#include "runtime/cuda/platform.h"
#include "runtime/executable_program.h"
#include "tests/cuda/device/mock_gpu.h"
#include "tests/support/programs/run_with_states.h"
#include "tests/support/tensors/compare_tensors.h"

/// Executables for Target::cuda() on a mock GPU: their calls of the driver.
using namespace lathe;
using lathe::test::MockDriver;
using lathe::test::MockGpu;

namespace {

constexpr std::string_view model = R"(graph @model(input %x: f32[n, 4], input %i: i64[m], parameter %w: f32[5, 4],
                                           state %s: f32[4], state %unread: f32[2]) {
  %1 = linear %x, %w loc("model.cpp":7)
  %2 = gather %w, %i {dim=0} loc("model.cpp":9)
  %3 = add %s, %s
  %4 = softmax %1 {dim=-1}
  %5 = constant {dtype=f32, shape=[4], values=[1, 2, 3, 4]}
  %6 = add %2, %5
  output "l" %4
  output "g" %6
  output "x" %x
  update %s <- %3
})";

ir::Graph graph() { return ir::parse_graph(model, "model"); }

HostTensor counting(std::vector<std::int64_t> shape) {
  HostTensor tensor(f32, std::move(shape));
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.set(i, 0.25 * static_cast<double>(i));
  return tensor;
}

Tensors inputs(std::int64_t n, std::int64_t m) {
  HostTensor indices(i64, {m});
  for (std::int64_t i = 0; i < m; ++i) indices.set_int(i, i % 5);
  return {{"x", counting({n, 4})}, {"i", std::move(indices)}};
}

Tensors states() { return {{"w", counting({5, 4})}, {"s", counting({4})}, {"unread", counting({2})}}; }

/// Runs twice with one size and once with another. Returns the last results and every state.
Tensors three_runs(const CompileOptions& options) {
  Executable executable = compile(graph(), options);
  executable.parameters().set(states());
  executable.run(inputs(3, 2));
  executable.run(inputs(3, 2));
  Tensors results = executable.run(inputs(7, 3));
  for (const auto& [name, value] : executable.parameters().values()) results.emplace(name, value);
  return results;
}

std::string error_of_run(Executable& executable, const Tensors& arguments) {
  try {
    executable.run(arguments);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}

}  // namespace

TEST_CASE("a GPU executable matches a CPU executable, and each size is captured as a graph once") {
  const Tensors expected = three_runs({.threads = 1});
  MockGpu gpu;
  const Tensors found = three_runs(gpu.options());
  CHECK(found.size() == expected.size());
  for (const auto& [name, value] : expected) {
    INFO(name);
    CHECK(lathe::test::error_of(found.at(name), value) <= 1e-6);
  }
  CHECK(gpu.driver().graph_launches == 3);
  CHECK(gpu.driver().captures == 2);
  CHECK(gpu.driver().alive() == 0);
}

TEST_CASE("states stay on the device until the host sets or reads them") {
  MockGpu gpu;
  Executable executable = compile(graph(), gpu.options());
  executable.parameters().set(states());
  executable.run(inputs(3, 2));
  const auto copies = gpu.driver().copied_to_device;
  executable.run(inputs(3, 2));
  CHECK(gpu.driver().copied_to_device - copies == 3 * 4 * 4 + 2 * 8);  // only the inputs
  CHECK(executable.parameters().get("s").get(3) == 4 * 0.75);
  executable.parameters().set("s", counting({4}));
  CHECK(executable.parameters().get("s").get(3) == 0.75);
  executable.run(inputs(3, 2));
  CHECK(executable.parameters().get("s").get(3) == 2 * 0.75);
}

TEST_CASE("a store reports which GPU holds its values, and where the newest copy of each is") {
  MockGpu gpu;
  Executable executable = compile(graph(), gpu.options());
  Parameters weights = executable.parameters();
  weights.set(states());
  CHECK(weights.location("s") == ParameterLocation{});
  executable.run(inputs(3, 2));
  const ParameterLocation updated = weights.location("s"), read = weights.location("w");
  REQUIRE(updated.device);
  CHECK((updated.device->type == dlpack::Device::cuda && updated.device->id == 0));
  CHECK((!updated.host_is_newest && updated.device_is_newest));
  CHECK(updated.newest().type == dlpack::Device::cuda);
  CHECK(to_string(updated) == "cuda:0 (memory is older)");
  CHECK(to_string(read) == "memory and cuda:0");
  CHECK(read.newest().type == dlpack::Device::cpu);
  CHECK(weights.location("unread") == read);
  const auto copies = gpu.driver().copied_to_device;
  CHECK(weights.shares().size() == 2);  // reading the sizes copies nothing
  CHECK(gpu.driver().copied_to_device == copies);

  (void)weights.get("s");
  CHECK(to_string(weights.location("s")) == "memory and cuda:0");
  weights.set("s", counting({4}));
  CHECK(to_string(weights.location("s")) == "memory (cuda:0 is older)");
}

TEST_CASE("find_nan on a GPU names the op, and the states are those before the run") {
  MockGpu gpu;
  const ir::Graph log_of_state = ir::parse_graph(R"(graph @log(input %x: f32[n], state %s: f32[n]) {
  %1 = sub %s, %x loc("model.cpp":3)
  %2 = log %1 loc("model.cpp":4)
  output "y" %2
  update %s <- %1
})",
                                                 "model");
  CompileOptions options = gpu.options();
  options.find_nan = true;
  Executable executable = compile(log_of_state, options);
  executable.parameters().set("s", counting({4}));
  const Tensors ones{{"x", HostTensor::from({4}, {-1, -1, -1, -1}, f32)}};
  executable.run(ones);
  const std::string found = error_of_run(executable, {{"x", HostTensor::from({4}, {0, 0, 3, 0}, f32)}});
  CHECK_THAT(found, Catch::Contains("[not_finite]") && Catch::Contains("model.cpp:4") && Catch::Contains(" = log "));
  CHECK(executable.parameters().get("s").get(2) == 1.5);
}

TEST_CASE("a run on a GPU is timed per launch") {
  MockGpu gpu;
  Executable executable = compile(graph(), gpu.options());
  executable.parameters().set(states());
  std::vector<LaunchTime> times;
  const Tensors traced = executable.run_traced(inputs(3, 2), times), plain = executable.run(inputs(3, 2));
  REQUIRE(times.size() == program_of(executable).launches.size());
  for (std::size_t i = 0; i < times.size(); ++i) {
    CHECK(times[i].start == static_cast<double>(i));  // a launch takes a second on the mock
    CHECK(times[i].seconds == 1);
    CHECK(times[i].tasks > 0);
  }
  for (const auto& [name, value] : plain) CHECK(value.same_bits(traced.at(name)));
}

TEST_CASE("launches without output elements are skipped on a GPU, for any number of rows") {
  MockGpu gpu;
  Executable executable = compile(ir::parse_graph(R"(graph @rows(input %x: f32[n, m], input %y: f32[m]) {
  %1 = mul %x, %y
  %2 = softmax %1 {dim=-1}
  output "p" %2
  output "y" %y
})"),
                                  gpu.options());
  const auto run = [&](std::int64_t n, std::int64_t m) {
    return executable.run({{"x", HostTensor(f32, {n, m})}, {"y", HostTensor(f32, {m})}});
  };
  std::vector<LaunchTime> times;
  executable.run_traced({{"x", counting({2, 3})}, {"y", counting({3})}}, times);
  CHECK(times.size() == 2);
  CHECK(run(std::int64_t{1} << 60, 0).at("p").shape() == std::vector<std::int64_t>{std::int64_t{1} << 60, 0});
  times.clear();
  executable.run_traced({{"x", HostTensor(f32, {5, 0})}, {"y", HostTensor(f32, {0})}}, times);
  CHECK(times.empty());
  CHECK(run(2, 3).at("p").get(0) == Approx(1.0 / 3));
}

TEST_CASE("sizes that exceed 32 bits run kernels with 64-bit indices, compiled on demand") {
  MockGpu gpu;
  Executable executable = compile(ir::parse_graph(R"(graph @dot(input %x: f32[n, m], input %y: f32[m, n]) {
  %1 = contract %x, %y {spec="ab,ba->"}
  output "y" %1
})",
                                                  "dot"),
                                  gpu.options());
  const auto run = [&](std::int64_t n, std::int64_t m) {
    HostTensor x(f32, {n, m});
    for (std::int64_t i = 0; i < x.numel(); ++i) x.set(i, 1);
    return executable.run({{"x", x}, {"y", HostTensor(x).reshaped({m, n})}}).at("y");
  };
  CHECK(run(7, 3).get(0) == 21);
  CHECK(gpu.int64_launches() == 0);
  for (int i = 0; i < 2; ++i) {
    CHECK(run(std::int64_t{1} << 31, 0).get(0) == 0);
    CHECK(gpu.int64_launches() == i + 1);
    CHECK(run(9, 2).get(0) == 18);
    CHECK(gpu.int64_launches() == i + 1);
  }
}

TEST_CASE("GPU kernels compile on at most the requested number of threads, also those with 64-bit indices") {
  const int cpus = std::max(1, static_cast<int>(std::thread::hardware_concurrency()));
  for (const auto& [asked, threads] : {std::pair{1, 1}, {0, cpus}, {cpus + 1, cpus}}) {
    MockGpu gpu;
    CompileOptions options = gpu.options();
    options.threads = asked;
    Executable executable = compile(ir::parse_graph(R"(graph @dot(input %x: f32[n, m], input %y: f32[m, n]) {
  %1 = contract %x, %y {spec="ab,ba->"}
  output "y" %1
})",
                                                    "dot"),
                                    options);
    CHECK(gpu.compiling_threads() == std::vector{threads});
    const std::int64_t n = std::int64_t{1} << 31;
    executable.run({{"x", HostTensor(f32, {n, 0})}, {"y", HostTensor(f32, {0, n})}});
    CHECK(gpu.compiling_threads() == std::vector{threads, threads});
  }
}

TEST_CASE(
    "an index out of range on a GPU is reported with its value, position and op, and the executable can run again") {
  MockGpu gpu;
  Executable executable = compile(graph(), gpu.options());
  executable.parameters().set(states());
  Tensors wrong = inputs(3, 2);
  wrong.at("i").set_int(1, 5);
  const std::string text = error_of_run(executable, wrong);
  INFO(text);
  CHECK(text.find("model.cpp:9: gather: index 5 at [1] of the input i is out of range") != std::string::npos);
  CHECK(text.find("[index_range]") != std::string::npos);
  CHECK(error_of_run(executable, inputs(3, 2)) == "no error");
}

TEST_CASE("an out-of-memory error on a GPU lists the largest tensors of the plan") {
  MockGpu gpu;
  Executable executable = compile(graph(), gpu.options());
  executable.parameters().set(states());
  gpu.driver().memory_bytes = 4096;
  const std::string text = error_of_run(executable, inputs(1000, 2));
  INFO(text);
  CHECK(text.find("[out_of_memory]") != std::string::npos);
  CHECK(text.find("\n  memory: arena") != std::string::npos);
  CHECK(text.find("19.6 KiB  %5 contract  model.cpp:7") != std::string::npos);
  CHECK(error_of_run(executable, inputs(3, 2)) == "no error");
}

TEST_CASE("after any driver call fails, an executable leaks nothing and can run again") {
  MockGpu counting_calls;
  three_runs(counting_calls.options());
  const int calls =
      counting_calls.driver().calls - 4;  // the last calls release the context, of the executable and of 3 states
  CHECK(calls > 30);
  for (int call = 0; call < calls; ++call) {
    MockGpu gpu;
    gpu.driver().fail_at = call;
    CAPTURE(call);
    CHECK_THROWS_WITH(three_runs(gpu.options()), Catch::Contains("CUDA_ERROR_ASKED_FOR"));
    CHECK(gpu.driver().alive() == 0);
  }
}

TEST_CASE("the target architecture defaults to that of the GPU unless a compatible one is named") {
  MockGpu gpu;
  const cuda::Platform& platform = gpu.platform();
  const auto chosen = [&](const char* name) {
    return cuda::arch_of_device(platform, cuda::Arch::named(name)).name();
  };
  CHECK(cuda::arch_of_device(platform, std::nullopt).name() == "sm_90a");
  CHECK(chosen("sm_90a") == "sm_90a");
  CHECK(chosen("sm_90") == "sm_90");
  for (const char* name : {"sm_80", "sm_100a", "sm_120"})
    CHECK_THROWS_WITH(chosen(name), Catch::Contains("[arch_mismatch]") && Catch::Contains("sm_90a"));
}

TEST_CASE("target names") {
  CHECK(Target::named("host").backend->kind() == "a CPU");
  CHECK(Target::named("cuda").backend->kind() == "a GPU");
  const auto gpu = [](const char* target) { return std::get<GpuInfo>(machine_of(Target::named(target)).info); };
  CHECK_FALSE(gpu("cuda").wgmma);
  CHECK(gpu("cuda:sm_90a").wgmma);
  CHECK(Target::cuda("sm_90a").name == "cuda:sm_90a");
  CHECK_THROWS_WITH(Target::named("cuda:"), Catch::Contains("[unknown_arch]"));
  CHECK_THROWS_WITH(Target::named("cuda:sm_70"), Catch::Contains("[unknown_arch]"));
  CHECK_THROWS_WITH(Target::named("rocm"), Catch::Contains("[unknown_target]"));
  CHECK_THROWS_WITH(
      Target::named("gpu"),
      Catch::Contains("\"gpu\"") && Catch::Contains("x86-64-v4, sapphirerapids, znver4, znver5, cuda, or "));
}

TEST_CASE("an executable for a GPU reports a missing driver or NVRTC") {
  try {
    compile(graph(), {.target = Target::cuda("sm_90a")});
  } catch (const UserError& error) {
    const std::string text = error.what();
    INFO(text);
    CHECK((error.label() == "driver_missing" || error.label() == "nvrtc_missing" || error.label() == "no_device" ||
           error.label() == "arch_mismatch"));
    CHECK(text.find("install") + text.find("GPU") != 2 * std::string::npos);
  }
}

TEST_CASE("row chunks of matmuls on a GPU match a CPU") {
  const ir::Graph loss =
      ir::parse_graph(R"(graph @loss(input %x: f32[6, 4], parameter %w: f32[9, 4], input %t: i64[6]) {
  %1 = linear %x, %w
  %2 = cross_entropy %1, %t
  output "loss" %2
})",
                      "loss");
  const ir::Graph both = ir::differentiate(loss, {.outputs = {{"loss", ""}}, .wrt = {"x", "w"}});
  const Tensors arguments = lathe::test::random_arguments(both);
  const auto results = [&](CompileOptions options, const RowChunks& chunks) {
    options.lower.chunks = chunks;
    Executable executable = compile(both, options);
    return std::pair(executable.summary().launches, lathe::test::run_with_states(executable, arguments));
  };
  MockGpu gpu;
  const auto [few, expected] = results({.threads = 1}, {.on = false});
  const auto [whole, same] = results(gpu.options(), {});
  const auto [many, found] = results(gpu.options(), {.least_rows = 2, .least_saved = 0});
  CHECK(many > whole);
  for (const auto& [name, value] : expected) {
    INFO(name);
    CHECK(lathe::test::error_of(found.at(name), value) <= 1e-6);
  }
}
