#include <fmt/core.h>

#include <catch2/catch.hpp>
#include <cmath>
#include <functional>
#include <limits>
#include <random>

#include "frontend/grad.h"
#include "frontend/graph.h"
#include "frontend/ops/ops.h"
#include "ir/kernel/printer.h"
#include "ir/tensor/text/parser.h"
#include "runtime/compile.h"
#include "runtime/cpu/cpu_backend.h"
#include "tests/support/kernels/cpu_infos.h"
#include "tests/support/kernels/kernel_store.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"

/// Numbers at the limits of f32, alone and mixed in one operand, on every matmul path, compared with f64.
using namespace lathe;
using namespace lathe::test;

namespace {

constexpr double least = 0x1p-149, least_normal = 0x1p-126, largest = std::numeric_limits<float>::max();
constexpr double f32_unit = 0x1p-24, bf16_unit = 0x1p-8;  // half an ulp, relative

/// A way of computing a graph.
struct Path {
  std::string name;
  bool tiles = false, pairs = false;  ///< in bf16, VDPBF16PS and AMX flush subnormals to zero
  std::function<Tensors(const Tensors&)> run;
};

/// Runs a program's kernels in the kernel interpreter.
Path interpreted(const ir::Graph& graph, const CpuInfo& target) {
  const auto lowered = [&](const ir::Graph& g, const LowerOptions& options) { return lower_cpu(g, target, options); };
  const auto program = std::make_shared<ProgramInterpreter>(graph, lowered);
  std::string code;
  for (const kernel::Kernel& kernel : program->program().kernels) code += kernel::canonical_text(kernel);
  CHECK(target.tiles == (code.find("tile_mma") != std::string::npos));
  return {target.tiles ? "tiles" : "pairs", target.tiles, target.dot_pairs,
          [program](const Tensors& arguments) { return program->run(arguments); }};
}

Path compiled(const ir::Graph& graph, const std::string& cpu) {
  static KernelStore store;
  const codegen::TargetCpu target = codegen::TargetCpu::named(cpu);
  const auto executable =
      std::make_shared<Executable>(compile(graph, {.target = Target::named(cpu), .threads = 2, .cache = &store}));
  const CpuInfo machine = cpu_info(target);
  return {cpu, machine.tiles, machine.dot_pairs,
          [executable](const Tensors& arguments) { return executable->run(arguments); }};
}

/// Tiles and pairs in the kernel interpreter; machine code for this CPU, for it without these features, and for older
/// CPUs. `interpreter`: include the former, for graphs with matmuls.
std::vector<Path> paths(const ir::Graph& graph, bool interpreter = true) {
  std::vector<Path> found;
  if (interpreter) {
    found.push_back(interpreted(graph, test::cpu_with(512, {.tiles = true})));
    found.push_back(interpreted(graph, test::cpu_with(512, {.dot_pairs = true})));
  }
  found.push_back(compiled(graph, "host"));
  const codegen::TargetCpu host = codegen::TargetCpu::host();
  if (host.has_tiles()) found.push_back(compiled(graph, "host,-amx-bf16"));
  if (host.has("avx512bf16")) found.push_back(compiled(graph, "host,-amx-bf16,-avx512bf16"));
  for (const char* older : {"x86-64-v3", "x86-64-v2"})
    if (codegen::TargetCpu::named(older).runs_here()) found.push_back(compiled(graph, older));
  return found;
}

/// Normal numbers times powers of ten between `low` and `high`; some are zero if the range is mixed.
struct Range {
  double low = 0, high = 0;
  bool mixed() const { return low < high; }
  std::string text() const { return mixed() ? fmt::format("1e{} .. 1e{}", low, high) : fmt::format("1e{}", low); }
};

HostTensor numbers(const Range& range, const std::vector<std::int64_t>& shape, DType dtype, unsigned seed) {
  HostTensor tensor(dtype, shape);
  std::mt19937_64 random(seed);
  std::normal_distribution<double> normal;
  std::uniform_real_distribution<double> power(range.low, std::nextafter(range.high, INFINITY));
  for (std::int64_t i = 0; i < tensor.numel(); ++i)
    tensor.set(i, range.mixed() && random() % 8 == 0 ? 0 : normal(random) * std::pow(10, power(random)));
  return tensor;
}

double largest_of(const HostTensor& tensor) {
  double most = 0;
  for (std::int64_t i = 0; i < tensor.numel(); ++i) most = std::max(most, std::fabs(tensor.get(i)));
  return most;
}

HostTensor magnitudes(HostTensor tensor) {
  for (std::int64_t i = 0; i < tensor.numel(); ++i) tensor.set(i, std::fabs(tensor.get(i)));
  return tensor;
}

/// Counts the elements with a larger error than `allowed`; those for which it returns NaN are skipped.
int wrong(const HostTensor& found, const HostTensor& expected, const std::function<double(std::int64_t)>& allowed) {
  int count = 0;
  for (std::int64_t i = 0; i < expected.numel(); ++i)
    count += std::isfinite(allowed(i)) && !(std::fabs(found.get(i) - expected.get(i)) <= allowed(i));
  return count;
}

// --------------------------------------------------------------------------------------------------------- matmuls

/// Matmuls with the right operand along either axis; rows and k are symbolic.
constexpr const char* products = R"(graph @g(input %x: TYPE[m, k], input %w: TYPE[k, 96], input %v: TYPE[96, k]) {
  %1 = contract %x, %w {spec="mk,kn->mn"}
  %2 = contract %x, %v {spec="mk,nk->mn"}
  output "w" %1
  output "v" %2
})";

/// Checks that the error of every matmul is at most (k + 8) 2^-24 of the sum of its terms' absolute values, plus k
/// times the smallest subnormal. In bf16 the result is rounded, and pairs and tiles flush operands and sums below
/// 2^-126 to zero.
void check_products(DType dtype) {
  std::string text = products;
  for (auto at = text.find("TYPE"); at != std::string::npos; at = text.find("TYPE")) text.replace(at, 4, name(dtype));
  const ir::Graph graph = ir::parse_graph(text, "test");
  const auto all = paths(graph);
  constexpr std::int64_t m = 20, k = 40;
  const std::vector<Range> ranges = {{-40, -40}, {-37, -37}, {-20, -20}, {0, 0},    {20, 20},
                                     {37, 37},   {-44, 0},   {0, 30},    {-40, 37}, {-30, -5}};
  for (std::size_t l = 0; l < ranges.size(); ++l)
    for (std::size_t r = 0; r < ranges.size(); ++r) {
      INFO(name(dtype) << ": " << ranges[l].text() << " by " << ranges[r].text());
      const HostTensor x = numbers(ranges[l], {m, k}, dtype, 1), w = numbers(ranges[r], {k, 96}, dtype, 2),
                       v = numbers(ranges[r], {96, k}, dtype, 3);
      const Tensors arguments{{"x", x}, {"w", w}, {"v", v}};
      const Tensors exact = ir::interpret(graph, arguments, {.round = false}),
                    sums = ir::interpret(graph, {{"x", magnitudes(x)}, {"w", magnitudes(w)}, {"v", magnitudes(v)}},
                                         {.round = false});
      const double most = largest_of(x) + std::max(largest_of(w), largest_of(v)) + 1;
      for (const Path& path : all) {
        INFO(path.name);
        const Tensors found = path.run(arguments);
        for (const auto& [name, value] : exact) {
          INFO(name);
          const auto allowed = [&, &expected = value, &magnitude = sums.at(name)](std::int64_t i) {
            const double sum = magnitude.get(i);
            if (sum > largest * 0.99) return std::nan("");  // may overflow
            double bound = sum * (k + 8) * f32_unit + k * least;
            if (dtype == bf16) bound += std::fabs(expected.get(i)) * bf16_unit + least_normal * bf16_unit;
            if (dtype == bf16 && (path.tiles || path.pairs)) bound += k * least_normal * most;
            return bound;
          };
          CHECK(wrong(found.at(name), value, allowed) == 0);
        }
      }
    }
}

}  // namespace

TEST_CASE("numbers at the edges: products of f32") { check_products(f32); }
TEST_CASE("numbers at the edges: products of bf16") { check_products(bf16); }

// --------------------------------------------------------------------------------------------------- norms, softmax

namespace {

constexpr std::int64_t norm_rows = 6, norm_width = 50;

/// Norms and softmax with their gradients, named "norm'", each of a sum of the results weighted by `cotangent`.
ir::Graph norms() {
  Graph g{"rows"};
  const Tensor x = g.input("x", f32, {norm_rows, norm_width}),
               cotangent = g.input("cotangent", f32, {norm_rows, norm_width});
  const auto add = [&](const std::string& name, const Tensor& y) {
    g.output(name, y);
    g.output(name + "'", grad((y * cotangent).sum(), {x})[0]);
  };
  add("layer_norm", layer_norm(x, g.full({norm_width}, 1, f32), g.full({norm_width}, 0, f32)));
  add("rms_norm", rms_norm(x));
  add("softmax", softmax(x, -1));
  add("log_softmax", log_softmax(x, -1));
  return g.finish();
}

}  // namespace

/// Errors are relative to the largest number of a result, or, for softmax's gradient, whose terms cancel, to the
/// largest cotangent. From 1e19 on, the squares in norms overflow; there the results of op-by-op f32 are accepted
/// too.
TEST_CASE("numbers at the edges: norms and softmax, forward and backward") {
  const ir::Graph graph = norms();
  const auto all = paths(graph, false);
  const HostTensor cotangent = numbers({}, {norm_rows, norm_width}, f32, 5);
  std::vector<Range> ranges = {{-44, 0}, {-20, 18}, {-40, 37}};
  for (const double power : {-40, -38, -30, -20, -10, -3, 0, 1, 3, 10, 15, 18, 20, 30, 37})
    ranges.push_back({power, power});
  for (const Range& range : ranges) {
    INFO(range.text());
    const Tensors arguments{{"x", numbers(range, {norm_rows, norm_width}, f32, 4)}, {"cotangent", cotangent}};
    const Tensors exact = ir::interpret(graph, arguments, {.round = false}), by_op = ir::interpret(graph, arguments);
    for (const auto& [name, value] : exact) {
      INFO(name);
      const double of = std::max(largest_of(value), name == "softmax'" ? largest_of(cotangent) : 0);
      const bool overflows = name.find("norm") != std::string::npos && range.high > 18;
      for (const Path& path : all) {
        INFO(path.name);
        const HostTensor found = path.run(arguments).at(name);
        int off = 0;
        for (std::int64_t i = 0; i < value.numel(); ++i) {
          const auto near = [&](double expected) {
            return std::fabs(found.get(i) - expected) <= 4e-6 * of + least ||
                   (std::isnan(found.get(i)) && std::isnan(expected));
          };
          off += !near(value.get(i)) && !(overflows && near(by_op.at(name).get(i)));
        }
        CHECK(off == 0);
      }
    }
  }
}

// -------------------------------------------------------------------------------------------------------- attention

namespace {

constexpr std::int64_t rows = 40, columns = 70, depth = 32;

/// y and the gradients of a weighted sum of y. Rows and columns are symbolic, so that it is fused.
ir::Graph attention_graph() {
  Graph g{"attention"};
  const Dim S{"S"}, T{"T"};
  const auto input = [&](const char* name, const Dim& length) { return g.input(name, f32, {2, length, depth}); };
  const Tensor q = input("q", S), k = input("k", T), v = input("v", T), weight = input("g", S);
  const Tensor y = attention(q, k, v, std::nullopt, 1 / std::sqrt(static_cast<double>(depth)), false);
  g.output("y", y);
  const auto gradients = grad((y * weight).sum(), {q, k, v});
  for (const auto& [name, i] : {std::pair("dq", 0), std::pair("dk", 1), std::pair("dv", 2)})
    g.output(name, gradients[static_cast<std::size_t>(i)]);
  return g.finish();
}

struct AttentionRanges {
  Range q, k, v, g;
};

}  // namespace

/// Errors are relative to the largest number of each result. Products of intermediate values carry the spacing of
/// subnormals into their results: dP, computed from v and g, is multiplied by k and q.
TEST_CASE("numbers at the edges: attention, forward and backward") {
  const ir::Graph graph = attention_graph();
  const auto all = paths(graph);
  for (const AttentionRanges& ranges : std::vector<AttentionRanges>{{},
                                                                    {{-20, -20}, {20, 20}, {}, {}},
                                                                    {{36, 36}, {-36, -36}, {}, {}},
                                                                    {{-38, -38}, {37, 37}, {}, {-3, -3}},
                                                                    {{-40, -40}, {-40, -40}, {}, {}},
                                                                    {{}, {}, {-40, -40}, {}},
                                                                    {{}, {}, {36, 36}, {-36, -36}},
                                                                    {{}, {}, {-37, -37}, {35, 35}},
                                                                    {{}, {}, {-20, -20}, {-20, -20}},
                                                                    {{-1, 1}, {-1, 1}, {-40, 30}, {-30, 4}},
                                                                    {{-40, 0}, {-40, 0}, {-44, 0}, {-44, 0}}}) {
    INFO("q " << ranges.q.text() << ", k " << ranges.k.text() << ", v " << ranges.v.text() << ", g "
              << ranges.g.text());
    const Tensors arguments{{"q", numbers(ranges.q, {2, rows, depth}, f32, 6)},
                            {"k", numbers(ranges.k, {2, columns, depth}, f32, 7)},
                            {"v", numbers(ranges.v, {2, columns, depth}, f32, 8)},
                            {"g", numbers(ranges.g, {2, rows, depth}, f32, 9)}};
    const Tensors exact = ir::interpret(graph, arguments, {.round = false});
    const double times = std::max({1.0, largest_of(arguments.at("q")), largest_of(arguments.at("k"))}) * columns;
    for (const Path& path : all) {
      INFO(path.name);
      const Tensors found = path.run(arguments);
      for (const auto& [name, value] : exact) {
        INFO(name);
        const bool of_scores = name == "dq" || name == "dk";
        const double bound = 1e-5 * largest_of(value) + columns * least + (of_scores ? times * depth * least : 0);
        CHECK(wrong(found.at(name), value, [&](std::int64_t) { return bound; }) == 0);
      }
    }
  }
}
