#pragma once

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <functional>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>
#include <catch2/catch.hpp>

#include "ir/kernel/interpret/interpreter.h"
#include "ir/kernel/intrinsics/tile_mma.h"
#include "passes/cpu/gemm/gemm.h"

/// Matmuls with small random operands, run by any kernel runner and compared with plain loops.
namespace lathe::testing {

using cpu::GemmPlan;
using cpu::Source;
using kernel::Access;
using kernel::Buffer;
using kernel::Builder;
using kernel::Value;

/// AMX tiles in small blocks, so that small sizes cover all edge cases.
inline cpu::GemmTile small_amx_tile(bool split_bf16) {
  return {.lanes = 16,
          .mr = 32,
          .nv = 2,
          .kc = 16,
          .mc = 64,
          .nc = 64,
          .operands = split_bf16 ? cpu::GemmTile::Operands::split_tiles : cpu::GemmTile::Operands::tiles};
}

struct GemmProblem {
  DType storage = f32;  ///< bf16 is computed in f32
  std::int64_t batch = 1, m = 1, n = 1, k = 1;
  LaneAxis lhs = LaneAxis::k, rhs = LaneAxis::k;
  bool known = false;        ///< sizes are compile-time constants
  std::string open{};        ///< except these dims, such as "mk"
  bool shared_rhs = false;   ///< one right operand for all batches
  bool prefetch = false;     ///< prefetches operands along their rows, and the operands of the epilogue
  bool whole = true;         ///< integers: sums are exact in any order
  bool equal_terms = false;  ///< every element is 0.3, so that roundings do not cancel out
  DType compute() const { return storage == bf16 ? f32 : storage; }
  std::string text() const {
    return fmt::format("{} {}x{}x{}x{} {}{} {}{}{}", name(storage), batch, m, n, k, lhs == LaneAxis::k ? "k" : "r",
                       rhs == LaneAxis::k ? "k" : "r", known ? "known" : "dims", open, shared_rhs ? " shared" : "");
  }
};

/// Elements of any dtype, accessed as doubles.
class Elements {
 public:
  Elements(DType dtype, std::int64_t count)
      : dtype_(dtype), bytes_(static_cast<std::size_t>(count) * size_in_bytes(dtype) + 64) {}
  std::int64_t count() const { return static_cast<std::int64_t>((bytes_.size() - 64) / size_in_bytes(dtype_)); }
  /// 64-byte aligned, as packed workspaces require.
  char* data() {
    const auto address = reinterpret_cast<std::uintptr_t>(bytes_.data());
    return bytes_.data() + (64 - address % 64) % 64;
  }
  double get(std::int64_t i) {
    switch (dtype_) {
      case f32: return as<float>(i);
      case f64: return as<double>(i);
      case i32: return as<std::int32_t>(i);
      case i64: return static_cast<double>(as<std::int64_t>(i));
      default: {
        const std::uint32_t bits = static_cast<std::uint32_t>(as<std::uint16_t>(i)) << 16;
        float value;
        std::memcpy(&value, &bits, 4);
        return static_cast<double>(value);
      }
    }
  }
  void set(std::int64_t i, double value) {
    switch (dtype_) {
      case f32: return put(i, static_cast<float>(value));
      case f64: return put(i, value);
      case i32: return put(i, static_cast<std::int32_t>(value));
      case i64: return put(i, static_cast<std::int64_t>(value));
      default: {
        const auto narrow = static_cast<float>(value);  // integers below 256 are exact
        std::uint32_t bits;
        std::memcpy(&bits, &narrow, 4);
        return put(i, static_cast<std::uint16_t>(bits >> 16));
      }
    }
  }
  kernel::BoundBuffer bound() { return {data(), count()}; }

 private:
  template <class T>
  T as(std::int64_t i) {
    T value;
    std::memcpy(&value, data() + static_cast<std::size_t>(i) * sizeof(T), sizeof(T));
    return value;
  }
  template <class T>
  void put(std::int64_t i, T value) {
    std::memcpy(data() + static_cast<std::size_t>(i) * sizeof(T), &value, sizeof(T));
  }
  DType dtype_;
  std::vector<char> bytes_;
};

/// Runs a whole kernel; the runner chooses how to split the parallel range.
using Runner =
    std::function<void(const kernel::Kernel&, std::vector<kernel::BoundBuffer>, std::vector<std::int64_t>)>;

inline void interpret_whole(const kernel::Kernel& k, std::vector<kernel::BoundBuffer> buffers,
                            std::vector<std::int64_t> dims) {
  kernel::interpret(k, buffers, dims);
}

class GemmRun {
 public:
  GemmRun(const GemmProblem& p, const GemmPlan& plan)
      : p_(p),
        plan_(plan),
        lhs_(p.storage, p.batch * p.m * p.k),
        rhs_(p.storage, rhs_batches() * p.n * p.k),
        bias_(p.compute(), p.n),
        scale_(p.compute(), p.m),
        result_(p.compute(), p.batch * p.m * p.n) {
    std::mt19937 random(static_cast<unsigned>(p.m * 1000 + p.n * 100 + p.k));
    const auto element = [&] {
      if (p_.equal_terms) return 0.3;
      const double value = static_cast<double>(random() % 17) - 8;
      return p_.whole ? value : value + static_cast<double>(random()) * 1e-9;
    };
    const auto fill = [&](Elements& elements) {
      for (std::int64_t i = 0; i < elements.count(); ++i) elements.set(i, element());
    };
    fill(lhs_), fill(rhs_), fill(bias_), fill(scale_);
  }

  /// Returns the bytes of the result.
  std::string run(const Runner& runner) {
    const DType compute = p_.compute();
    const std::int64_t unit = plan_.tile.tiles() ? kernel::tile_depth : plan_.tile.pairs() ? 2 : 1;
    const std::int64_t k = (p_.k + unit - 1) / unit * unit;
    Elements packed_lhs(plan_.tile.packed(), packed_lhs_extent(plan_.tile).exact(p_.batch, p_.m, k));
    Elements packed_rhs(plan_.tile.packed(), packed_rhs_extent(plan_.tile).exact(rhs_batches(), p_.n, k));
    std::vector<std::int64_t> dims;
    for (const auto& [name, size] : {std::pair("batch", p_.batch), {"m", p_.m}, {"n", p_.n}, {"k", p_.k}})
      if (!is_known(name)) dims.push_back(size);
    if (plan_.lhs == Source::packed) runner(pack(true), {lhs_.bound(), packed_lhs.bound()}, dims);
    if (plan_.rhs == Source::packed) runner(pack(false), {rhs_.bound(), packed_rhs.bound()}, dims);
    for (std::int64_t i = 0; i < result_.count(); ++i) result_.set(i, 1);
    Elements sums(compute, p_.batch * split_k_sums(plan_, p_.m, p_.n));
    std::vector<kernel::BoundBuffer> buffers = {lhs_.bound(), rhs_.bound(), bias_.bound(), scale_.bound(),
                                                result_.bound()};
    if (plan_.lhs == Source::packed) buffers.push_back(packed_lhs.bound());
    if (plan_.rhs == Source::packed) buffers.push_back(packed_rhs.bound());
    if (plan_.splits > 1) buffers.push_back(sums.bound());
    runner(product(), buffers, dims);
    if (plan_.splits > 1) runner(product(true), buffers, dims);
    return {result_.data(), static_cast<std::size_t>(result_.count()) * size_in_bytes(compute)};
  }

  /// Returns the largest relative error of the results of equal terms.
  double error_of_equal_terms() {
    double largest = 0;
    each_result([&](std::int64_t b, std::int64_t m, std::int64_t n, double have) {
      const double sum = left(b, m, 0) * right(b, n, 0) * static_cast<double>(p_.k);
      const double want = 1 + (sum * scale_.get(m) + bias_.get(n));
      largest = std::max(largest, std::abs(have - want) / std::abs(want));
    });
    return largest;
  }

  /// Returns the first f32 result whose bits differ from those of sums in blocks of `block` steps of k, in order, or
  /// nothing. The total of more than 64 blocks is compensated.
  std::string mismatch_of_blocks(int block) {
    std::string wrong;
    each_result([&](std::int64_t b, std::int64_t m, std::int64_t n, double have) {
      float total = 0, excess = 0;
      for (std::int64_t first = 0; first < p_.k; first += block) {
        float sum = 0;
        for (std::int64_t k = first; k < std::min(first + block, p_.k); ++k)
          sum = std::fma(static_cast<float>(left(b, m, k)), static_cast<float>(right(b, n, k)), sum);
        const float before = total, term = p_.k > 64 * block ? sum - excess : sum;
        total = first == 0 ? sum : before + term;
        if (first > 0) excess = (total - before) - term;
      }
      const float scaled = total * static_cast<float>(scale_.get(m)),
                  moved = scaled + static_cast<float>(bias_.get(n));
      const double want = static_cast<double>(1 + moved);
      if (wrong.empty() && want != have)
        wrong = fmt::format("{}: [{}, {}, {}] is {}, not {}", p_.text(), b, m, n, have, want);
    });
    return wrong;
  }

  /// Returns the first wrong element, or nothing. result = 1 + sum * scale[m] + bias[n].
  std::string mismatch() {
    std::string wrong;
    each_result([&](std::int64_t b, std::int64_t m, std::int64_t n, double have) {
      double sum = 0;
      for (std::int64_t k = 0; k < p_.k; ++k) sum += left(b, m, k) * right(b, n, k);
      const double want = 1 + (sum * scale_.get(m) + bias_.get(n));
      if (wrong.empty() && want != have)
        wrong = fmt::format("{}: [{}, {}, {}] is {}, not {}", p_.text(), b, m, n, have, want);
    });
    return wrong;
  }

 private:
  void each_result(const std::function<void(std::int64_t b, std::int64_t m, std::int64_t n, double have)>& body) {
    for (std::int64_t b = 0; b < p_.batch; ++b)
      for (std::int64_t m = 0; m < p_.m; ++m)
        for (std::int64_t n = 0; n < p_.n; ++n) body(b, m, n, result_.get((b * p_.m + m) * p_.n + n));
  }
  double left(std::int64_t b, std::int64_t m, std::int64_t k) { return lhs_.get(position(p_.lhs, b, m, k, p_.m)); }
  double right(std::int64_t b, std::int64_t n, std::int64_t k) {
    return rhs_.get(position(p_.rhs, p_.shared_rhs ? 0 : b, n, k, p_.n));
  }

  bool is_known(const std::string& size) const { return p_.known && p_.open.find(size) == std::string::npos; }
  std::int64_t rhs_batches() const { return p_.shared_rhs ? 1 : p_.batch; }
  std::int64_t position(LaneAxis axis, std::int64_t b, std::int64_t row, std::int64_t k, std::int64_t rows) const {
    return axis == LaneAxis::k ? (b * rows + row) * p_.k + k : (b * p_.k + k) * rows + row;
  }

  cpu::GemmSizes sizes(Builder& b) const {
    const auto size = [&](const char* name, std::int64_t n) { return is_known(name) ? b.index(n) : b.dim(name); };
    return {size("batch", p_.batch), size("m", p_.m), size("n", p_.n), size("k", p_.k)};
  }

  LoadOperand load(Builder& b, Buffer buffer, LaneAxis axis, Value rows, Value k_size, bool shared) const {
    return [&b, buffer, axis, rows, k_size, shared, compute = p_.compute()](Value batch, Value row, Value k, LaneAxis,
                                                                            int lanes, Value mask) {
      if (shared) batch = b.index(0);
      const Value index = axis == LaneAxis::k ? (batch * rows + row) * k_size + k : (batch * k_size + k) * rows + row;
      return b.cast(b.load(buffer, index, lanes, mask), compute);
    };
  }

  kernel::Kernel pack(bool left) const {
    Builder b(left ? "pack_lhs" : "pack_rhs");
    const Buffer from = b.buffer("operand", p_.storage, Access::read);
    const Buffer to = b.buffer("packed", plan_.tile.packed(), Access::write);
    const cpu::GemmSizes s = sizes(b);
    if (left)
      cpu::emit_pack_lhs(b, plan_.tile, {s.batch, s.m, s.k}, to, p_.lhs, load(b, from, p_.lhs, s.m, s.k, false));
    else
      cpu::emit_pack_rhs(b, plan_.tile, {p_.shared_rhs ? b.index(1) : s.batch, s.n, s.k}, to, p_.rhs,
                         load(b, from, p_.rhs, s.n, s.k, p_.shared_rhs));
    return b.finish();
  }

  /// With `reduces`, returns the kernel that adds the split-K partial sums.
  kernel::Kernel product(bool reduces = false) const {
    Builder b("gemm");
    const Buffer lhs = b.buffer("lhs", p_.storage, Access::read), rhs = b.buffer("rhs", p_.storage, Access::read);
    const Buffer bias = b.buffer("bias", p_.compute(), Access::read),
                 scale = b.buffer("scale", p_.compute(), Access::read);
    const Buffer result = b.buffer("result", p_.compute(), Access::read_write);
    const auto packed = [&](Source source, const char* name) {
      return source == Source::packed ? b.buffer(name, plan_.tile.packed(), Access::read) : Buffer();
    };
    const Buffer packed_lhs = packed(plan_.lhs, "packed_lhs"), packed_rhs = packed(plan_.rhs, "packed_rhs");
    const cpu::GemmSizes s = sizes(b);
    cpu::GemmOperand left{.axis = p_.lhs, .load = load(b, lhs, p_.lhs, s.m, s.k, false), .packed = packed_lhs};
    if (p_.prefetch)
      left.prefetch = [&](Value batch, Value m, Value k) { b.prefetch(lhs, (batch * s.k + k) * s.m + m); };
    if (p_.lhs == LaneAxis::k)
      left.rows_in_memory = [&](Value batch, Value m, Value k) {
        return Builder::Rows{lhs, (batch * s.m + m) * s.k + k, s.k};
      };
    cpu::GemmOperand right{
        .axis = p_.rhs, .load = load(b, rhs, p_.rhs, s.n, s.k, p_.shared_rhs), .packed = packed_rhs};
    if (p_.prefetch && p_.rhs == LaneAxis::row)
      right.prefetch = [&](Value batch, Value n, Value k) { b.prefetch(rhs, (batch * s.k + k) * s.n + n); };
    if (p_.shared_rhs) right.packed_batch = [&b](Value) { return b.index(0); };
    cpu::EpiloguePrefetch prefetch;
    if (p_.prefetch)
      prefetch = [&](Value batch, Value m, Value n) { b.prefetch(result, (batch * s.m + m) * s.n + n); };
    const auto epilogue = [&](Value batch, Value m) {
      const Value row = (batch * s.m + m) * s.n, factor = b.load(scale, m);
      return [&b, bias, result, row, factor](Value n, int lanes, Value acc, Value mask) {
        const Value sum = acc * b.broadcast(factor, lanes) + b.load(bias, n, lanes, mask);
        b.store(result, row + n, b.load(result, row + n, lanes, mask) + sum, mask);
      };
    };
    if (plan_.splits == 1) {
      cpu::emit_gemm(b, plan_, s, left, right, epilogue, prefetch);
      return b.finish();
    }
    const Buffer sums = b.buffer("sums", p_.compute(), reduces ? Access::read : Access::write);
    if (reduces)
      cpu::emit_reduce_split_k(b, plan_, s, sums, epilogue);
    else
      cpu::emit_gemm_split_k(b, plan_, s, left, right, sums);
    return b.finish();
  }

  GemmProblem p_;
  GemmPlan plan_;
  Elements lhs_, rhs_, bias_, scale_, result_;
};

/// Checks that a plan gives the same sums as plain loops.
inline void check(const GemmProblem& p, const GemmPlan& plan) {
  GemmRun run(p, plan);
  run.run(interpret_whole);
  INFO("sources " << static_cast<int>(plan.lhs) << " " << static_cast<int>(plan.rhs) << ", remainder "
                  << plan.remainder);
  CHECK(run.mismatch() == "");
}

inline constexpr LaneAxis axes[] = {LaneAxis::k, LaneAxis::row};

}  // namespace lathe::testing
