#include "bench/gemm/gemm_case.h"

#include <algorithm>

namespace lathe::bench {

using cpu::Source;
using kernel::Access;
using kernel::Buffer;
using kernel::Builder;
using kernel::Value;

Arena float_arena(std::int64_t count) { return Arena(static_cast<std::size_t>(count) * sizeof(float)); }

namespace {

/// Returns a loader for a dense f32 operand with `rows` rows.
LoadOperand dense(Builder& b, Buffer buffer, LaneAxis axis, Value rows, Value k_size) {
  return [&b, buffer, axis, rows, k_size](Value batch, Value row, Value k, LaneAxis, int lanes, Value mask) {
    const Value index = axis == LaneAxis::k ? (batch * rows + row) * k_size + k : (batch * k_size + k) * rows + row;
    return b.load(buffer, index, lanes, mask);
  };
}

struct Sizes {
  cpu::GemmSizes value;
  Sizes(Builder& b, const GemmCase& c, bool known) {
    const auto size = [&](std::int64_t number, bool tokens) {
      return tokens && !known ? b.dim("t") : b.index(number);
    };
    value = {b.index(c.batch), size(c.m, !c.sums_tokens()), b.index(c.n), size(c.k, c.sums_tokens())};
  }
};

kernel::Kernel pack_kernel(const GemmCase& c, const cpu::GemmPlan& plan, bool known, bool left) {
  Builder b(left ? "pack_lhs" : "pack_rhs");
  const Buffer from = b.buffer("operand", f32, Access::read),
               to = b.buffer("packed", plan.tile.packed(), Access::write);
  const cpu::GemmSizes s = Sizes(b, c, known).value;
  const Value rows = left ? s.m : s.n;
  const LaneAxis axis = left ? c.lhs : c.rhs;
  (left ? cpu::emit_pack_lhs : cpu::emit_pack_rhs)(b, plan.tile, {s.batch, rows, s.k}, to, axis,
                                                   dense(b, from, axis, rows, s.k));
  return b.finish();
}

/// Returns the matmul kernel; for split-K its partial sums, or with `reduces` the kernel that adds them.
kernel::Kernel product_kernel(const GemmCase& c, const cpu::GemmPlan& plan, bool known, bool reduces = false) {
  Builder b("gemm");
  const Buffer lhs = b.buffer("lhs", f32, Access::read), rhs = b.buffer("rhs", f32, Access::read);
  const Buffer packed_lhs = b.buffer("packed_lhs", plan.tile.packed(), Access::read);
  const Buffer packed_rhs = b.buffer("packed_rhs", plan.tile.packed(), Access::read);
  const Buffer result = b.buffer("result", f32, Access::write);
  const cpu::GemmSizes s = Sizes(b, c, known).value;
  cpu::GemmOperand left{.axis = c.lhs, .load = dense(b, lhs, c.lhs, s.m, s.k), .packed = packed_lhs};
  left.prefetch = [&](Value batch, Value m, Value k) { b.prefetch(lhs, (batch * s.k + k) * s.m + m); };
  cpu::GemmOperand right{.axis = c.rhs, .load = dense(b, rhs, c.rhs, s.n, s.k), .packed = packed_rhs};
  if (c.rhs == LaneAxis::row)
    right.prefetch = [&](Value batch, Value n, Value k) { b.prefetch(rhs, (batch * s.k + k) * s.n + n); };
  const auto row = [&](Value batch, Value m) { return (batch * s.m + m) * s.n; };
  const auto epilogue = [&](Value batch, Value m) {
    return [&b, result, first = row(batch, m)](Value n, int, Value acc, Value mask) {
      b.store(result, first + n, acc, mask);
    };
  };
  const auto prefetch = [&](Value batch, Value m, Value n) { b.prefetch(result, row(batch, m) + n); };
  if (plan.splits == 1) {
    cpu::emit_gemm(b, plan, s, left, right, epilogue, prefetch);
    return b.finish();
  }
  const Buffer sums = b.buffer("sums", f32, reduces ? Access::read : Access::write);
  if (reduces)
    cpu::emit_reduce_split_k(b, plan, s, sums, epilogue);
  else
    cpu::emit_gemm_split_k(b, plan, s, left, right, sums);
  return b.finish();
}

}  // namespace

CompiledGemm::CompiledGemm(const GemmCase& problem, const cpu::GemmPlan& plan, bool known,
                           const codegen::TargetCpu& target)
    : case_(problem), plan_(plan) {
  kernels_.push_back(product_kernel(case_, plan_, known));
  kernels_.push_back(pack_kernel(case_, plan_, known, true));
  kernels_.push_back(pack_kernel(case_, plan_, known, false));
  if (plan_.splits > 1) {
    kernels_.push_back(product_kernel(case_, plan_, known, true));
    sums_ = float_arena(case_.batch * split_k_sums(plan_, case_.m, case_.n));
  }
  code_ = codegen::Jit({.target = target}).compile(kernels_);
  if (!known) dims_ = {case_.sums_tokens() ? case_.k : case_.m};
  const auto packed = [&](const cpu::PackedExtent& extent, std::int64_t rows) {
    return Arena(static_cast<std::size_t>(extent.exact(case_.batch, rows, case_.k)) *
                 size_in_bytes(plan_.tile.packed()));
  };
  packed_lhs_ = packed(packed_lhs_extent(plan_.tile), case_.m);
  packed_rhs_ = packed(packed_rhs_extent(plan_.tile), case_.n);
}

/// Uses the same chunk sizes as compiled programs.
void CompiledGemm::run(ThreadPool& threads, std::size_t kernel, std::vector<void*> buffers) const {
  const std::int64_t task = plan_.tile.nc * std::max(plan_.tile.mc / 8, 2),
                     work = kernel == 0  ? case_.k / plan_.splits * task
                            : kernel < 3 ? case_.k * plan_.tile.n_step()
                                         : plan_.splits * plan_.tile.n_step();
  const codegen::CompiledKernel& code = code_[kernel];
  threads.run(code.extent(dims_.data()), (1 << 16) / std::max<std::int64_t>(work, 1),
              [&](std::int64_t begin, std::int64_t end) {
                std::int64_t status = 0;
                code.run(buffers.data(), dims_.data(), begin, end, &status);
              });
}

void CompiledGemm::pack(ThreadPool& threads, const float* lhs, const float* rhs) {
  if (plan_.lhs == Source::packed) run(threads, 1, {const_cast<float*>(lhs), packed_lhs_.data()});
  if (plan_.rhs == Source::packed) run(threads, 2, {const_cast<float*>(rhs), packed_rhs_.data()});
}

void CompiledGemm::multiply(ThreadPool& threads, const float* lhs, const float* rhs, float* result) {
  // Products in split bf16 also read operands that are packed: they compute some sums again in f32.
  const std::vector<void*> buffers = {const_cast<float*>(lhs),
                                      const_cast<float*>(rhs),
                                      floats(packed_lhs_),
                                      floats(packed_rhs_),
                                      result,
                                      floats(sums_)};
  run(threads, 0, buffers);
  if (plan_.splits > 1) run(threads, 3, buffers);
}

PeakProbe::PeakProbe(const codegen::TargetCpu& target)
    : lanes_(target.vector_bits / 32), chains_(lanes_ == 16 ? 24 : 12) {
  Builder b("peak");
  const Buffer out = b.buffer("out", f32, Access::write);
  const Value steps = b.dim("steps");
  std::vector<kernel::Var> sums;
  for (int i = 0; i < chains_; ++i) sums.push_back(b.var(b.constant(f32, i, lanes_)));
  const Value x = b.broadcast(b.cast(steps, f32) * 1e-30, lanes_);
  b.for_loop(0, steps, 1, [&](Value) {
    for (const kernel::Var& sum : sums) b.set(sum, b.fma(x, x, b.get(sum)));
  });
  for (int i = 0; i < chains_; ++i) b.store(out, i * lanes_, b.get(sums[static_cast<std::size_t>(i)]));
  code_ = codegen::Jit({.target = target}).compile(std::vector<kernel::Kernel>{b.finish()});
}

constexpr std::int64_t probe_steps = 100000;

double PeakProbe::work() const { return 2.0 * static_cast<double>(probe_steps) * chains_ * lanes_; }

void PeakProbe::run() const {
  std::vector<float> out(static_cast<std::size_t>(chains_ * lanes_));
  void* buffers[] = {out.data()};
  std::int64_t status = 0;
  code_[0].run(buffers, &probe_steps, 0, 1, &status);
}

}  // namespace lathe::bench
