#include <catch2/catch.hpp>

#include <algorithm>
#include <cmath>
#include <limits>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/mapping.h"
#include "ir/kernel/intrinsics/gpu/mma.h"
#include "ir/kernel/printer.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/attention/variants/variant.h"
#include "tests/cuda/attention/attention_cases.h"
#include "tests/cuda/compile/local_nvrtc.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/support/programs/lower.h"
#include "tests/support/programs/program_interpreter.h"
#include "tests/support/tensors/compare_tensors.h"

/// Fused attention on GPUs: in the kernel interpreter, as CUDA text on the host, and compiled by NVRTC.
using namespace lathe;
using namespace lathe::test;

namespace {

HostTensor widened(const HostTensor& t) { return is_float(t.dtype()) ? t.cast(f64) : t; }

ProgramInterpreter lowered(const ir::Graph& graph, AttentionFusion attention) {
  return ProgramInterpreter(graph, lower_gpu, {.attention = attention});
}

/// Matches "k3_attention_softmax_mha_cpp_14".
bool is_attention(const kernel::Kernel& kernel) {
  return kernel.name.substr(kernel.name.find('_') + 1).starts_with("attention");
}

bool multiplies_on_tensor_cores(const kernel::Kernel& kernel) {
  return is_attention(kernel) && std::any_of(kernel.values.begin(), kernel.values.end(), [](const auto& in) {
           return kernel::record_of(in) == &kernel::mma_record;
         });
}

double root_mean_square_error(const HostTensor& found, const HostTensor& exact) {
  double squares = 0;
  for (std::int64_t i = 0; i < exact.numel(); ++i) squares += std::pow(found.get(i) - exact.get(i), 2);
  return std::sqrt(squares / std::max<double>(1, static_cast<double>(exact.numel())));
}

/// Checks that the error of the fused code is at most twice that of separate matmuls and softmax in the same dtype.
void check_values(const ir::Graph& graph, const DimBindings& dims, const ProgramInterpreter& fused,
                  const ProgramInterpreter& plain, const ProgramInterpreter::RunKernel& run,
                  const std::function<void(Tensors&)>& change = {}) {
  INFO(to_string(dims));
  Tensors arguments = random_arguments(graph, dims);
  if (change) change(arguments);
  const Tensors expected = ir::interpret(graph, arguments, {.round = false});
  const Tensors by_fused = run ? fused.run(arguments, run) : fused.run(arguments);
  const Tensors by_plain = run ? plain.run(arguments, run) : plain.run(arguments);
  for (const auto& [name, value] : expected) {
    INFO(name);
    const HostTensor exact = widened(value);
    const double floor = value.dtype() == f64 ? 1e-12 : 2e-6;
    const HostTensor fused_value = widened(by_fused.at(name)), plain_value = widened(by_plain.at(name));
    CHECK(error_of(fused_value, exact) <= 2 * error_of(plain_value, exact) + floor);
    if (by_fused.at(name).dtype() == bf16 || by_fused.at(name).dtype() == f16)
      CHECK(root_mean_square_error(fused_value, exact) <= 2 * root_mean_square_error(plain_value, exact) + floor);
  }
}

/// One head, forward and backward: three blocks of rows and of columns in f64.
constexpr std::int64_t row_blocks_of_f64 = 70;

/// Returns the bytes of the kernel's only boolean input: which row blocks skip columns.
std::vector<bool> left_out(const kernel::Kernel& kernel, std::span<const kernel::BoundBuffer> buffers) {
  std::vector<bool> found;
  for (std::size_t i = 0; i < buffers.size(); ++i)
    if (kernel.buffers[i].dtype == boolean)
      for (std::int64_t k = 0; k < buffers[i].count; ++k)
        found.push_back(static_cast<const unsigned char*>(buffers[i].data)[k] != 0);
  found.resize(3);  // for a symbolic size, the buffer has room for a row block per row
  return found;
}

}  // namespace

TEST_CASE("every kind of attention is fused on GPUs, and matches unfused attention") {
  for (const AttentionCase& c : attention_cases()) {
    INFO(c.name);
    const ProgramInterpreter fused = lowered(c.graph, AttentionFusion::required),
                             plain = lowered(c.graph, AttentionFusion::off);
    const auto& kernels = fused.program().kernels;
    CHECK(std::any_of(kernels.begin(), kernels.end(), is_attention));
    CHECK(std::none_of(plain.program().kernels.begin(), plain.program().kernels.end(), is_attention));
    const bool narrow = c.name.find("16") != std::string::npos || c.name == "softmax in f32";
    CHECK(std::any_of(kernels.begin(), kernels.end(), multiplies_on_tensor_cores) == narrow);
    for (const kernel::Kernel& kernel : kernels)
      CHECK(cuda::mapping_of(kernel, gpu_info("sm_80")).shared_bytes <= 48 * 1024);
    check_values(c.graph, {{"N", 2}, {"S", 7}, {"T", 3}}, fused, plain, {});
  }
}

TEST_CASE("attention on GPUs: one row, no rows, no columns, ragged tiles") {
  const auto cases = attention_cases();
  const auto across =
      std::find_if(cases.begin(), cases.end(), [](const AttentionCase& c) { return c.name == "across, in f16"; });
  REQUIRE(across != cases.end());
  const ProgramInterpreter fused = lowered(across->graph, AttentionFusion::required),
                           plain = lowered(across->graph, AttentionFusion::off);
  for (const DimBindings& dims :
       {DimBindings{{"N", 1}, {"S", 1}, {"T", 1}}, DimBindings{{"N", 1}, {"S", 2}, {"T", 0}},
        DimBindings{{"N", 1}, {"S", 0}, {"T", 3}}, DimBindings{{"N", 1}, {"S", 65}, {"T", 66}}})
    check_values(across->graph, dims, fused, plain, {});
}

TEST_CASE("every 24th variant of attention on GPUs") {
  const auto all = variants();
  for (std::size_t i = 5; i < all.size(); i += 24) {
    INFO(all[i].name());
    const ir::Graph graph = build(all[i]);
    check_values(graph, {{"N", 2}, {"S", has_literal(all[i]) ? literal_size : 6}, {"T", 3}},
                 lowered(graph, AttentionFusion::required), lowered(graph, AttentionFusion::off), {});
  }
}

TEST_CASE("a single loop over the columns if all sums scale with exp(a - max of a)") {
  const auto loops = [](const ir::Graph& graph, std::string_view loop) {
    const ProgramInterpreter fused = lowered(graph, AttentionFusion::required);
    const auto& kernels = fused.program().kernels;
    const auto forward = std::find_if(kernels.begin(), kernels.end(), [](const kernel::Kernel& kernel) {
      return is_attention(kernel) && kernel.name.find("maxima") == std::string::npos;
    });
    const std::string text = kernel::print(*forward);
    int found = 0;
    for (auto at = text.find(loop); at != std::string::npos; at = text.find(loop, at + 1))
      if (text.substr(at - 6, 6) != "0..64 ") ++found;  // skips the steps inside a tile
    return found;
  };
  constexpr std::string_view tiles = "step 64 @serial";
  CHECK(loops(masked_attention(f32, -1e9), tiles) == 1);
  CHECK(loops(masked_attention(bf16, -1e9), tiles) == 1);
  CHECK(loops(masked_attention(f64, -1e9), "step 32 @serial") == 1);
  CHECK(loops(zero_masked_attention(f32), tiles) == 1);
  CHECK(loops(scaled_attention(f16, 40, 24, 0.5), tiles) == 1);
  // Forward and backward in one kernel: the maximum, the sum, the sum of dP, the matmuls.
  CHECK(loops(build({.mask = Mask::soft_cap}), tiles) == 4);
}

TEST_CASE("one loop over the columns on GPUs: rising maxima, masks by -1e9 and -inf, infinities and NaN") {
  const double infinity = std::numeric_limits<double>::infinity(), nan = std::numeric_limits<double>::quiet_NaN();
  constexpr std::int64_t rows = 9, columns = 100;  // in tiles of 32
  for (const double fill : {-1e9, -infinity}) {
    const ir::Graph graph = masked_attention(f64, fill);
    const ProgramInterpreter fused = lowered(graph, AttentionFusion::required);
    Tensors arguments = random_arguments(graph, {{"N", 1}, {"S", rows}, {"T", columns}});
    // By row: all columns; none; the last; the first; from the third tile on; only the first tile; every other tile.
    for (std::int64_t i = 0; i < rows * columns; ++i) {
      const std::int64_t row = i / columns, column = i % columns;
      const bool seen[] = {true,         false,       column == columns - 1, column == 0,
                           column >= 64, column < 32, column / 32 % 2 == 0};
      arguments.at("mask").set(i, row >= 7 || seen[row]);
    }
    for (const double slope : {1.0, -1.0})
      for (const double special : {0.0, infinity, -infinity, nan})
        for (const char* where : {"k", "v"}) {
          INFO(fill << ", slope " << slope << ", " << special << " in " << where);
          Tensors given = arguments;
          for (std::int64_t column = 0; column < columns; ++column)
            for (std::int64_t d = 0; d < 2; ++d)
              given.at("k").set(column * 2 + d, slope * static_cast<double>(column + d));
          if (special != 0) given.at(where).set(40 * 2, special);
          for (const auto& [name, value] : ir::interpret(graph, given))
            CHECK(error_of(fused.run(given).at(name), value) <= 1e-11);
        }
  }
}

TEST_CASE("one loop over the columns on GPUs: 16- and 32-bit error when the maximum rises at every tile") {
  for (const DType dtype : {f32, bf16, f16}) {
    INFO(name(dtype));
    const ir::Graph graph = masked_attention(dtype, -1e4);
    const ProgramInterpreter fused = lowered(graph, AttentionFusion::required),
                             plain = lowered(graph, AttentionFusion::off);
    const DimBindings dims = {{"N", 1}, {"S", 40}, {"T", 300}};
    check_values(graph, dims, fused, plain, {}, [](Tensors& arguments) {
      HostTensor& keys = arguments.at("k");
      for (std::int64_t i = 0; i < keys.numel(); ++i) keys.set(i, static_cast<double>(i / 16) / 4);
    });
  }
}

TEST_CASE("tiles of 16-bit operands are copied asynchronously if their rows are multiples of 16 bytes") {
  /// Which operands the forward kernel copies: the left one (rows) and the right one.
  const auto copied = [](const ProgramInterpreter& program) {
    const std::string text = kernel::print(program.program().kernels[0]);
    return std::pair(text.find("async_copy left[") != std::string::npos,
                     text.find("async_copy right[") != std::string::npos);
  };
  struct Sample {
    ir::Graph graph;
    bool rows, columns;
  };
  std::vector<Sample> samples;
  samples.push_back({scaled_attention(bf16, 40, 24, 1), true, true});
  samples.push_back({scaled_attention(f16, 40, 24, 0.5), false, true});  // queries are computed while they are loaded
  samples.push_back({scaled_attention(bf16, 12, 16, 1), false, true});   // rows of 24 bytes; the values are copied
  samples.push_back({scaled_attention(bf16, 12, 20, 1), false, false});
  samples.push_back({scaled_attention(f32, 40, 24, 1), false, false});
  for (const Sample& sample : samples) {
    const ProgramInterpreter fused = lowered(sample.graph, AttentionFusion::required),
                             plain = lowered(sample.graph, AttentionFusion::off);
    CHECK(copied(fused) == std::pair(sample.rows, sample.columns));
    check_values(sample.graph, {{"N", 1}, {"S", 70}}, fused, plain, {});
  }
}

TEST_CASE("columns past the diagonal are skipped on GPUs if that does not change the result") {
  const ir::Graph graph = causal_attention(f64, 4, 6);
  const ProgramInterpreter fused = lowered(graph, AttentionFusion::required);
  const double infinity = std::numeric_limits<double>::infinity();
  for (const double poison : {0.5, 1e20, -infinity, std::numeric_limits<double>::quiet_NaN()})
    for (const char* where : {"k", "v"}) {
      INFO(poison << " in " << where);
      Tensors arguments = random_arguments(graph, {{"N", 1}, {"S", row_blocks_of_f64}});
      arguments.at(where).set(row_blocks_of_f64 * (where[0] == 'k' ? 4 : 6) - 1, poison);  // in the last column
      std::vector<bool> found;
      const Tensors results = fused.run(arguments, [&](const auto& kernel, auto buffers, auto dims) {
        if (kernel.name.find("attention_columns") != std::string::npos) found = left_out(kernel, buffers);
        return kernel::interpret(kernel, buffers, dims);
      });
      CHECK(found == std::vector<bool>(3, poison == 0.5));
      for (const auto& [name, value] : ir::interpret(graph, arguments)) {
        INFO(name);
        CHECK(error_of(results.at(name), value) <= 1e-11);
      }
    }
}

TEST_CASE("the gradient of a bias that batches share on GPUs: several tiles, tiles past the diagonal skipped") {
  const ir::Graph graph = build({.layout = Layout::heads, .mask = Mask::bias_then_mask, .types = Types::f64});
  const ProgramInterpreter fused = lowered(graph, AttentionFusion::required);
  const Tensors arguments = random_arguments(graph, {{"N", 2}, {"S", row_blocks_of_f64}});
  std::vector<bool> found;
  const Tensors results = fused.run(arguments, [&](const auto& kernel, auto buffers, auto dims) {
    if (kernel.name.find("attention_outer_reductions") != std::string::npos) found = left_out(kernel, buffers);
    return kernel::interpret(kernel, buffers, dims);
  });
  CHECK(found == std::vector<bool>(3, true));
  for (const auto& [name, value] : ir::interpret(graph, arguments)) {
    INFO(name);
    CHECK(error_of(results.at(name), value) <= 1e-11);
  }
}

TEST_CASE("the CUDA text of attention on the host: tiles, wide heads, 16-bit floats, grouped heads, a shared bias") {
  struct Sample {
    ir::Graph graph;
    std::int64_t length, batches = 1;
  };
  std::vector<Sample> samples;
  samples.push_back({causal_attention(f32, 36, 80), 150});
  samples.push_back({causal_attention(bf16, 64, 64), 66});
  for (AttentionCase& c : attention_cases()) {
    if (c.name == "grouped heads with draws") samples.push_back({std::move(c.graph), 70});
    if (c.name == "shared bias in bf16") samples.push_back({std::move(c.graph), 66, 2});
  }
  REQUIRE(samples.size() == 4);
  std::vector<ProgramInterpreter> fused, plain;
  std::vector<kernel::Kernel> kernels;
  for (const Sample& sample : samples) {
    fused.push_back(lowered(sample.graph, AttentionFusion::required));
    plain.push_back(lowered(sample.graph, AttentionFusion::off));
    for (const ProgramInterpreter* p : {&fused.back(), &plain.back()})
      kernels.insert(kernels.end(), p->program().kernels.begin(), p->program().kernels.end());
  }
  const auto host = HostCuda::build(kernels);
  if (!host) return;
  for (std::size_t i = 0; i < samples.size(); ++i)
    check_values(samples[i].graph, {{"N", samples[i].batches}, {"S", samples[i].length}}, fused[i], plain[i],
                 [&](const auto& kernel, auto buffers, auto dims) { return host->run(kernel, buffers, dims, 1); });
}

TEST_CASE("attention compiled by NVRTC: no spills, few registers, 48 KiB of shared memory") {
  const auto nvrtc = local_nvrtc();
  if (!nvrtc) return;
  const auto check = [&](std::span<const kernel::Kernel> kernels, const char* arch, int registers) {
    for (const auto& k :
         cuda::compile_kernels(*nvrtc, kernels, cuda::Arch::named(arch), cuda::Output::cubin, nullptr)) {
      INFO(arch << " " << k.symbol << ": " << k.resources.to_string());
      CHECK(k.resources.spill_bytes == 0);
      CHECK(k.resources.registers <= registers);
      CHECK(k.resources.shared_bytes <= 48 * 1024);
    }
  };
  check(lowered(causal_attention(f32, 64, 64), AttentionFusion::required).program().kernels, "sm_80", 192);
  check(lowered(causal_attention(bf16, 128, 128), AttentionFusion::required).program().kernels, "sm_90a", 232);
  check(lowered(causal_attention(f32, 256, 256), AttentionFusion::required).program().kernels, "sm_100a", 252);
  const ir::Graph shared = build({.layout = Layout::split, .mask = Mask::bias_shared, .types = Types::bf16});
  auto kernels = lowered(shared, AttentionFusion::required).program().kernels;
  std::erase_if(kernels, [](const auto& k) { return k.name.find("outer_reductions") == std::string::npos; });
  REQUIRE(kernels.size() == 1);
  check(kernels, "sm_90a", 128);
}
