// Measures Lathe on this machine's GPU for tests/gpu/run.sh, and prints one line of JSON per case:
//   gpu_measure products|attention|steps|decode [SECONDS [PART]]
// A failing case prints a line with its error, and the next one follows. No case starts after SECONDS, and only cases
// whose name contains PART run. The time is that of whole runs, from the host's call to its return. In addition, the
// line has the sum over launches and the kernels that take most of it, with each launch timed between events.
#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <functional>
#include <map>
#include <ranges>

#include "bench/cases/op_cases.h"
#include "bench/cases/step_cases.h"
#include "frontend/train/training.h"
#include "ir/support/error.h"
#include "passes/program/program.h"
#include "passes/transforms/dtypes/convert_dtype.h"
#include "runtime/executable_program.h"
#include "runtime/host/seconds.h"
#include "tests/gpu/gpu_device.h"

namespace {

using namespace lathe;
using namespace lathe::bench;
using Clock = std::chrono::steady_clock;

struct Case {
  ir::Graph graph;
  Tensors states, inputs;
  double flops = 0, bytes = 0, tokens = 0;
  bool joins_launches = true, one_gradient_kernel = true;
};

std::string json_text(std::string_view text) {
  std::string result = "\"";
  for (const char c : text) result += c == '\n' ? ' ' : c == '"' || c == '\\' ? '\'' : c;
  return result + "\"";
}

class Measuring {
 public:
  /// `other` compiles the gradients of attentions as two kernels.
  Measuring(CompileOptions options, CompileOptions other, double seconds, std::string part)
      : options_(std::move(options)), other_(std::move(other)), seconds_(seconds), part_(std::move(part)) {}

  void one(const std::string& name, const std::function<Case()>& make) {
    if (name.find(part_) == std::string::npos) return;
    if (seconds_since(begin_) > seconds_) return line(name, "\"error\":\"no time left\"");
    try {
      line(name, times(make()));
    } catch (const Error& error) {
      line(name, "\"error\":" + json_text(error.what()));
    }
  }

 private:
  static void line(const std::string& name, const std::string& fields) {
    fmt::print("{{\"program\":\"Lathe\",\"case\":{},{}}}\n", json_text(name), fields);
    std::fflush(stdout);
  }

  static double median(std::vector<double> values) {
    const auto middle = values.begin() + std::ssize(values) / 2;
    std::nth_element(values.begin(), middle, values.end());
    return *middle;
  }

  /// Returns the kernels by the total time of their launches, each launch the median of 5 runs: the slowest first, at
  /// most 64.
  static std::string launches(Executable& executable, const Case& c, double& sum) {
    struct Kernel {
      int count = 0;
      double seconds = 0, flops = 0, bytes = 0;
      std::int64_t blocks = 0;
    };
    std::vector<std::vector<double>> seconds;
    std::vector<LaunchTime> times;
    for (int run = 0; run < 5; ++run) {
      times.clear();
      executable.run_traced(c.inputs, times);
      seconds.resize(times.size());
      for (std::size_t i = 0; i < times.size(); ++i) seconds[i].push_back(times[i].seconds);
    }
    const DimBindings dims = executable.bind(c.inputs);
    std::map<std::string, Kernel> kernels;
    for (std::size_t i = 0; i < times.size(); ++i) {
      const Launch& launch = program_of(executable).launches[static_cast<std::size_t>(times[i].launch)];
      Kernel& k = kernels[program_of(executable).kernels[static_cast<std::size_t>(launch.kernel)].name];
      k.count += static_cast<int>(times[i].runs), k.seconds += median(seconds[i]), k.flops += 1e9 * times[i].gflops;
      k.bytes += static_cast<double>(times[i].runs * launch.bytes.evaluate(dims)), k.blocks = times[i].tasks;
    }
    std::vector<std::pair<std::string, Kernel>> ordered(kernels.begin(), kernels.end());
    std::ranges::stable_sort(ordered, std::greater(), [](const auto& k) { return k.second.seconds; });
    sum = 0;
    for (const auto& [name, k] : ordered) sum += k.seconds;
    std::vector<std::string> texts;
    for (const auto& [name, k] : ordered | std::views::take(64))
      texts.push_back(fmt::format(
          R"({{"kernel":{},"count":{},"us":{:.1f},"tflops":{:.1f},"gbs":{:.0f},"blocks":{}}})", json_text(name),
          k.count, 1e6 * k.seconds, 1e-12 * k.flops / k.seconds, 1e-9 * k.bytes / k.seconds, k.blocks));
    return fmt::format("[{}]", fmt::join(texts, ","));
  }

  /// Runs twice to warm up, and then returns the median of 3 to 50 runs in half a second.
  std::string times(const Case& c) const {
    CompileOptions options = c.one_gradient_kernel ? options_ : other_;
    options.lower.join_launches = c.joins_launches;
    Executable executable = compile(c.graph, options);
    const CompileSummary& s = executable.summary();
    executable.parameters().set(c.states);
    const auto run = [&] {
      const auto start = Clock::now();
      executable.run(c.inputs);
      return seconds_since(start);
    };
    run();
    const double once = run();
    std::vector<double> seconds;
    for (int i = 0; i < std::clamp(static_cast<int>(0.5 / once), 3, 50); ++i) seconds.push_back(run());
    double kernels = 0;
    const std::string by_kernel = launches(executable, c, kernels);
    return fmt::format(
        R"("seconds":{},"in_kernels":{},"flops":{},"bytes":{},"tokens":{},"compile":{},"compiled":{},"launches":{})",
        median(seconds), kernels, c.flops, c.bytes, c.tokens, s.pass_seconds + s.lower_seconds + s.codegen_seconds,
        s.compiled, by_kernel);
  }

  CompileOptions options_, other_;
  double seconds_;
  std::string part_;
  Clock::time_point begin_ = Clock::now();
};

Case of(OpCase made) {
  return {.graph = std::move(made.graph), .states = std::move(made.states), .inputs = {}, .flops = made.flops};
}

/// 4096^3 and 8192^3, and GPT-2's matmuls for 64 sequences of 1024 tokens.
void products(Measuring& measuring) {
  struct Layer {
    const char* name;
    std::int64_t n, k;
  };
  std::vector<ProductShape> shapes;
  for (const std::int64_t n : {4096, 8192}) shapes.push_back({fmt::format("{}^3", n), n, n, n});
  for (const Layer& layer : {Layer{"qkv", 2304, 768}, {"proj", 768, 768}, {"fc", 3072, 768}, {"out", 768, 3072}})
    for (const auto& [suffix, product] :
         {std::pair{"", Product::forward}, {" dX", Product::input_gradient}, {" dW", Product::weight_gradient}})
      shapes.push_back({fmt::format("{}{}", layer.name, suffix), 65536, layer.n, layer.k, product});
  for (const DType dtype : {bf16, f32})
    for (ProductShape& shape : shapes) {
      shape.dtype = dtype;
      measuring.one(fmt::format("product {} {}", shape.name, lathe::name(dtype)),
                    [&] { return of(product_case(shape)); });
    }
}

/// 16384 tokens of width 2048, causal; the gradients as one kernel and, for some lengths, as two.
void attention(Measuring& measuring) {
  enum class Pass : std::uint8_t { forward, both, both_as_two_kernels };
  for (const std::int64_t d : {64, 128})
    for (std::int64_t length = 512; length <= 16384; length *= 2)
      for (const Pass pass : {Pass::forward, Pass::both, Pass::both_as_two_kernels}) {
        if (pass == Pass::both_as_two_kernels && (length == 2048 || length == 8192)) continue;
        const AttentionShape shape{.batch = 16384 / length,
                                   .heads = 2048 / d,
                                   .length = length,
                                   .d = d,
                                   .causal = true,
                                   .dtype = bf16,
                                   .stores_gradient = true};
        const char* const names[] = {"forward", "both", "both, gradients as two kernels"};
        measuring.one(fmt::format("attention d={} S={} {}", d, length, names[static_cast<int>(pass)]), [&] {
          Case made = of(attention_case(shape, pass != Pass::forward));
          made.one_gradient_kernel = pass != Pass::both_as_two_kernels;
          return made;
        });
      }
}

Case step(const std::string& name, DType dtype) {
  StepCase made = make_step_case(name, dtype);
  ir::Graph graph = training_step(made.forward, "loss", AdamW{.lr = 1e-4});
  Tensors states = initial_values(graph, made.initializers, 1);
  return {.graph = std::move(graph),
          .states = std::move(states),
          .inputs = std::move(made.inputs),
          .flops = made.flops,
          .tokens = static_cast<double>(made.tokens)};
}

void steps(Measuring& measuring) {
  for (const DType dtype : {bf16, f32}) {
    measuring.one(fmt::format("llama-block {}", lathe::name(dtype)), [&] { return step("llama-block", dtype); });
    for (const int batch : {64, 4, 16})
      measuring.one(fmt::format("gpt2 B={} T=1024 {}", batch, lathe::name(dtype)),
                    [&] { return step(fmt::format("12x768x12x50257x{}x1024", batch), dtype); });
  }
}

void decode(Measuring& measuring) {
  for (const DType dtype : {f32, bf16})
    for (const bool joins : {true, false}) {
      const std::string name = fmt::format("decode gpt2 context 1024 {}", lathe::name(dtype));
      measuring.one(name + (joins ? "" : ", separate launches"), [joins, dtype] {
        StepCase made = gpt2_decode_case(1024, CacheWrite::append);
        if (dtype != f32) made.forward = ir::convert_dtype(made.forward, f32, dtype);
        Tensors states = initial_values(made.forward, made.initializers, 1);
        return Case{
            .graph = std::move(made.forward),
            .states = std::move(states),
            .inputs = std::move(made.inputs),
            .bytes = made.bytes * static_cast<double>(size_in_bytes(dtype)) / static_cast<double>(size_in_bytes(f32)),
            .tokens = 1,
            .joins_launches = joins};
      });
    }
}

}  // namespace

int main(int argc, char** argv) try {
  const std::string what = argc > 1 ? argv[1] : "";
  gpu::GpuSizes two_kernels;
  two_kernels.attention.one_gradient_kernel = false;
  const auto options = test::gpu_options(), other = options ? test::gpu_options(two_kernels) : options;
  if (!options || !other) return 0;
  Measuring measuring(*options, *other, argc > 2 ? std::atof(argv[2]) : 120, argc > 3 ? argv[3] : "");
  if (what == "products") products(measuring);
  if (what == "attention") attention(measuring);
  if (what == "steps") steps(measuring);
  if (what == "decode") decode(measuring);
} catch (const lathe::Error& error) {
  fmt::print(stderr, "{}\n", error.what());
  return 1;
}
