#include <algorithm>

#include "passes/gpu/gpu_kernels.h"
#include "passes/gpu/row_space.h"

namespace lathe::gpu {

using kernel::LoopKind;
using kernel::Value;
using Scope = PointEmitter::Scope;
using Kind = PointInstruction::Kind;

namespace {

constexpr int tile = 64, depth = 16, side = 16, own = 4;  // a block's tile; threads along it; a thread's part

/// One operand over its own little domain: batch labels, then its rows, then the contracted labels.
struct Side {
  std::string free;
  OperandProgram operand;
  std::vector<int> batch, rows, k;  // domain dims
  bool along_k = true;              // more of its loads are contiguous along k than along the rows
};

class ProductKernel {
 public:
  ProductKernel(const LoweringContext& lowering, const Region& region)
      : lowering_(lowering),
        node_(lowering.graph[region.members[0]]),
        roles_(node_.op->as<ir::Contraction>()->roles(node_)),
        context_("product"),
        b_(context_.builder),
        program_(region_program(lowering.graph, lowering.plan, region)),
        epilogue_(context_, program_, lowering.buffer_of),
        compute_(compute_type(node_.type.dtype)) {
    // The vectors of a result run along the right operand's rows: it is the one that owns the result's last dim.
    const std::string lhs_free = roles_.lhs_free();
    const bool swap = !lhs_free.empty() && !roles_.out.empty() && roles_.out.back() == lhs_free.back();
    left_ = make_side(swap ? 1 : 0, swap ? roles_.rhs_free() : lhs_free);
    right_ = make_side(swap ? 0 : 1, swap ? lhs_free : roles_.rhs_free());
  }

  KernelContext::Built run() {
    declare_buffers(context_, {&program_, &left_.operand.program, &right_.operand.program}, lowering_);
    PointEmitter left(context_, left_.operand.program, lowering_.buffer_of);
    PointEmitter right(context_, right_.operand.program, lowering_.buffer_of);
    Scope top(epilogue_, {}), left_top(left, {}), right_top(right, {});
    emit_uniform(epilogue_, top);
    emit_uniform(left, left_top);
    emit_uniform(right, right_top);
    const Dim batch = size_of(roles_.batch()), m = size_of(left_.free), n = size_of(right_.free);
    const Dim k = size_of(roles_.contracted());
    m_ = context_.dim(m), n_ = context_.dim(n), k_ = context_.dim(k);
    const Value down = b_.ceil_div(m_, tile), across = b_.ceil_div(n_, tile);
    const auto block = [&](Value i) {
      const Value first_n = i % across * tile, first_m = i / across % down * tile, at_batch = i / across / down;
      const kernel::Buffer a = b_.alloc(compute_, tile * depth, kernel::Space::shared, "left");
      const kernel::Buffer c = b_.alloc(compute_, tile * depth, kernel::Space::shared, "right");
      const auto thread = [&](Value y, Value x) {
        std::vector<kernel::Var> sums;
        for (int r = 0; r < own; ++r) sums.push_back(b_.var({compute_, own}, b_.constant(compute_, 0)));
        b_.for_loop(0, k_, depth, [&](Value first_k) {
          const Value slot = y * side + x;
          fill(a, left_, left, left_top, at_batch, first_m, m_, first_k, slot);
          fill(c, right_, right, right_top, at_batch, first_n, n_, first_k, slot);
          b_.barrier();
          b_.for_loop(0, depth, 1, [&](Value kk) { multiply(a, c, kk, x, y, sums); }, LoopKind::unroll);
          b_.barrier();
        });
        finish(at_batch, first_m + y * own, first_n + x * own, n, sums, top);
      };
      b_.for_loop(
          0, side, 1, [&](Value y) { b_.for_loop(0, side, 1, [&](Value x) { thread(y, x); }, LoopKind::thread_x); },
          LoopKind::thread_y);
    };
    b_.for_loop(0, context_.dim(batch) * down * across, 1, block, LoopKind::block_x);
    auto built = context_.finish();
    built.launch.flops = Dim(2) * batch * m * n * k;
    return built;
  }

 private:
  /// The size of a label, from whichever operand has it.
  Dim size(char label) const {
    const auto in_lhs = roles_.lhs.find(label);
    const bool left = in_lhs != std::string::npos;
    const auto at = left ? in_lhs : roles_.rhs.find(label);
    return lowering_.graph[node_.operands[left ? 0 : 1]].type.shape[static_cast<int>(at)].unnamed();
  }

  Dim size_of(const std::string& labels) const {
    Dim product(1);
    for (const char label : labels) product = product * size(label);
    return product;
  }

  Side make_side(int operand, std::string free) const {
    Side s;
    s.free = std::move(free);
    Shape domain;
    std::string order;
    const auto extend = [&](const std::string& labels, std::vector<int>& dims) {
      for (const char label : labels) {
        dims.push_back(domain.rank());
        domain.push_back(size(label));
        order += label;
      }
    };
    extend(roles_.batch(), s.batch);
    extend(s.free, s.rows);
    extend(roles_.contracted(), s.k);
    std::vector<int> dims;
    for (const char label : operand == 0 ? roles_.lhs : roles_.rhs)
      dims.push_back(static_cast<int>(order.find(label)));
    s.operand = operand_program(lowering_.graph, lowering_.plan, node_.operands[static_cast<std::size_t>(operand)],
                                dims, domain);
    const auto unit_loads = [&](const std::vector<int>& along) {
      return std::count_if(s.operand.program.code.begin(), s.operand.program.code.end(), [&](const auto& i) {
        return i.kind == Kind::load && !along.empty() &&
               i.form.coefficients[static_cast<std::size_t>(along.back())].is(1);
      });
    };
    s.along_k = unit_loads(s.rows) <= unit_loads(s.k);
    return s;
  }

  /// Brings [first_k, + depth) of 64 rows of an operand to shared memory, as [k][row]; zeros beyond the ends. Each
  /// thread brings 4 elements that are neighbours in memory.
  void fill(kernel::Buffer to, const Side& s, PointEmitter& emitter, Scope& top, Value batch, Value first_row,
            Value rows, Value first_k, Value slot) {
    const int pieces = (s.along_k ? depth : tile) / own;
    const Value along = slot % pieces * own, other = slot / pieces;
    const Value row = first_row + (s.along_k ? other : along), k = first_k + (s.along_k ? along : other);
    const Value inside = row < rows && k < k_;
    const auto load = [&](Value mask) {
      Scope scope(emitter, {{s.batch, batch, 1}, {s.rows, row, s.along_k ? 1 : own}, {s.k, k, s.along_k ? own : 1}},
                  mask, &top);
      const Value value = b_.broadcast(b_.cast(emitter.emit(s.operand.result, scope), compute_), own);
      return mask ? b_.select(mask, value, b_.constant(compute_, 0, own)) : value;
    };
    const kernel::Var piece = b_.var({compute_, own}, b_.constant(compute_, 0));
    b_.if_(inside, [&] {
      const Value at = s.along_k ? k : row, end = s.along_k ? k_ : rows;
      unmasked_or_masked(b_, at, end, own, size_of(s.along_k ? roles_.contracted() : s.free),
                         [&](Value mask) { b_.set(piece, load(mask)); });
    });
    if (s.along_k)
      b_.store_strided(to, along * tile + other, tile, b_.get(piece));
    else
      b_.store(to, other * tile + along, b_.get(piece));
  }

  void multiply(kernel::Buffer a, kernel::Buffer c, Value k, Value x, Value y, const std::vector<kernel::Var>& sums) {
    const Value rows = b_.load(a, k * tile + y * own, own), columns = b_.load(c, k * tile + x * own, own);
    for (int r = 0; r < own; ++r) {
      const Value factor = b_.broadcast(b_.extract(rows, r), own);
      const auto& sum = sums[static_cast<std::size_t>(r)];
      const bool fused = compute_ == f32 || compute_ == f64;
      b_.set(sum, fused ? b_.fma(factor, columns, b_.get(sum)) : b_.get(sum) + factor * columns);
    }
  }

  std::vector<int> out_dims(const std::string& labels) const {
    std::vector<int> dims;
    for (const char label : labels) dims.push_back(static_cast<int>(roles_.out.find(label)));
    return dims;
  }

  /// Rounds to the result's dtype and runs the epilogue, row by row.
  void finish(Value batch, Value first_m, Value n, const Dim& width, const std::vector<kernel::Var>& sums,
              Scope& top) {
    const auto batch_dims = out_dims(roles_.batch()), m_dims = out_dims(left_.free), n_dims = out_dims(right_.free);
    for (int r = 0; r < own; ++r) {
      const Value m = first_m + r;
      b_.if_(m < m_ && n < n_, [&] {
        const Value sum = b_.get(sums[static_cast<std::size_t>(r)]);
        unmasked_or_masked(b_, n, n_, own, width, [&](Value mask) {
          Scope scope(epilogue_, {{batch_dims, batch, 1}, {m_dims, m, 1}, {n_dims, n, own}}, mask, &top);
          const DType dtype = node_.type.dtype;
          scope.bind(0, compute_ == dtype ? sum : b_.cast(b_.cast(sum, dtype), compute_));
          for (const PointStore& store : program_.stores)
            epilogue_.store(store.node, program_[store.value].dtype, store.form, epilogue_.emit(store.value, scope),
                            scope);
        });
      });
    }
  }

  const LoweringContext& lowering_;
  const ir::Node& node_;
  ir::ContractionRoles roles_;
  KernelContext context_;
  kernel::Builder& b_;
  PointProgram program_;
  PointEmitter epilogue_;
  DType compute_;
  Side left_, right_;
  Value m_, n_, k_;
};

}  // namespace

KernelContext::Built lower_product(const LoweringContext& context, const Region& region) {
  return ProductKernel(context, region).run();
}

}  // namespace lathe::gpu
