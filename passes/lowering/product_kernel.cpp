#include <algorithm>
#include <memory>

#include "passes/lowering/region_kernels.h"
#include "passes/schedule/gemm.h"

namespace lathe {

using kernel::Value;
using schedule::LaneAxis;
using Scope = PointEmitter::Scope;
using Kind = PointInstruction::Kind;

namespace {

/// By instruction: whether it is, or needs, the product's result.
std::vector<bool> reads_accumulator(const PointProgram& program) {
  std::vector<bool> found;
  for (const PointInstruction& i : program.code)
    found.push_back(i.kind == Kind::accumulator || std::any_of(i.args.begin(), i.args.end(), [&](int arg) {
                      return bool(found[static_cast<std::size_t>(arg)]);
                    }));
  return found;
}

/// One operand of a product over its own little domain: batch labels, then its rows, then the contracted labels.
struct Side {
  ir::ValueId value;
  std::string labels, free;
  OperandProgram operand;
  std::vector<int> batch, rows, k;  // domain dims
  LaneAxis axis = LaneAxis::k;
  bool cheap = true;
};

class ProductKernels {
 public:
  ProductKernels(const LoweringContext& lowering, const Region& region)
      : lowering_(lowering),
        region_(region),
        node_(lowering.graph[region.members[0]]),
        roles_(node_.op->as<ir::Contraction>()->roles(node_)),
        epilogue_(region_program(lowering.graph, lowering.plan, region)),
        compute_(compute_type(node_.type.dtype)) {
    // The vectors of a register tile run along the right operand's rows: it is the one that owns the result's last
    // dim.
    const std::string lhs_free = roles_.lhs_free();
    const bool swap = !lhs_free.empty() && !roles_.out.empty() && roles_.out.back() == lhs_free.back();
    left_ = side(swap ? 1 : 0, swap ? roles_.rhs_free() : lhs_free);
    right_ = side(swap ? 0 : 1, swap ? lhs_free : roles_.rhs_free());
  }

  std::vector<KernelContext::Built> run() {
    const Dim batch = size_of(roles_.batch()), m = size_of(left_.free), n = size_of(right_.free);
    const Dim k = size_of(roles_.contracted());
    const schedule::GemmPlan plan = schedule::plan_gemm({.compute = compute_,
                                                         .vector_bits = lowering_.target.bits,
                                                         .batch = batch.value(),
                                                         .m = m.value(),
                                                         .n = n.value(),
                                                         .k = k.value(),
                                                         .lhs_axis = left_.axis,
                                                         .rhs_axis = right_.axis,
                                                         .lhs_cheap = left_.cheap,
                                                         .rhs_cheap = right_.cheap});
    std::vector<KernelContext::Built> built;
    const int lhs_packed = plan.lhs == schedule::Source::packed ? pack(true, plan.tile, batch, m, k, built) : -1;
    const int rhs_packed = plan.rhs == schedule::Source::packed ? pack(false, plan.tile, batch, n, k, built) : -1;
    built.push_back(product(plan, batch, m, n, k, lhs_packed, rhs_packed));
    return built;
  }

 private:
  /// The size of a label, from whichever operand has it.
  Dim size(char label) const {
    const auto in_lhs = roles_.lhs.find(label);
    const bool left = in_lhs != std::string::npos;
    const ir::ValueId operand = node_.operands[left ? 0 : 1];
    const auto at = left ? in_lhs : roles_.rhs.find(label);
    return lowering_.graph[operand].type.shape[static_cast<int>(at)].unnamed();
  }

  Dim size_of(const std::string& labels) const {
    Dim product(1);
    for (const char label : labels) product = product * size(label);
    return product;
  }

  Side side(int operand, std::string free) const {
    Side s;
    s.value = node_.operands[static_cast<std::size_t>(operand)];
    s.labels = operand == 0 ? roles_.lhs : roles_.rhs;
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
    for (const char label : s.labels) dims.push_back(static_cast<int>(order.find(label)));
    s.operand = operand_program(lowering_.graph, lowering_.plan, s.value, dims, domain);
    choose_axis(s);
    return s;
  }

  /// The axis along which more of the operand's loads are contiguous.
  void choose_axis(Side& s) const {
    int votes = 0, loads = 0;
    const PointProgram& program = s.operand.program;
    const auto unit = [&](const Linear& form, const std::vector<int>& dims) {
      for (auto d = dims.rbegin(); d != dims.rend(); ++d)
        if (!program.domain[*d].is(1)) return form.coefficients[static_cast<std::size_t>(*d)].is(1);
      return false;
    };
    for (const PointInstruction& i : program.code) {
      if (i.kind != Kind::load) continue;
      ++loads;
      votes += unit(i.form, s.rows) ? 1 : 0;
      votes -= unit(i.form, s.k) ? 1 : 0;
    }
    s.axis = votes > 0 ? LaneAxis::row : LaneAxis::k;
    s.cheap = program.size() == 1 && loads == 1 && program[0].dtype == compute_;
  }

  /// A callback that loads elements of a side inside the kernel of `emitter`.
  schedule::LoadOperand loader(PointEmitter& emitter, const Side& s, Scope& top) const {
    return [&emitter, &s, &top, this](Value batch, Value row, Value k, LaneAxis axis, int lanes, Value mask) {
      kernel::Builder& b = emitter.context().builder;
      const bool along_row = axis == LaneAxis::row;
      Scope scope(emitter,
                  {{s.batch, batch, 1}, {s.rows, row, along_row ? lanes : 1}, {s.k, k, along_row ? 1 : lanes}}, mask,
                  &top);
      return b.broadcast(b.cast(emitter.emit(s.operand.result, scope), compute_), lanes);
    };
  }

  /// Emits what does not depend on the place, ahead of the parallel loop.
  static void emit_uniform_code(PointEmitter& emitter, Scope& top) {
    const PointProgram& program = emitter.program();
    const std::vector<bool> behind = reads_accumulator(program);
    for (int i = 0; i < program.size(); ++i)
      if (program.depends[static_cast<std::size_t>(i)] == 0 && !behind[static_cast<std::size_t>(i)])
        emitter.emit(i, top);
  }

  int pack(bool left, const schedule::GemmTile& tile, const Dim& batch, const Dim& rows, const Dim& k,
           std::vector<KernelContext::Built>& built) const {
    const Side& s = left ? left_ : right_;
    const schedule::PackedExtent extent = left ? packed_lhs_extent(tile) : packed_rhs_extent(tile);
    const bool known = batch.value() && rows.value() && k.value();
    const Dim elements = known ? Dim(extent.exact(*batch.value(), *rows.value(), *k.value()))
                               : batch * (rows + Dim(extent.extra_rows)) * k;
    const int packed = lowering_.workspace(compute_, elements, left ? "packed left operand" : "packed right operand");
    KernelContext context(left ? "pack_lhs" : "pack_rhs");
    declare_buffers(context, {&s.operand.program}, lowering_);
    context.declare(packed, compute_, false, true);
    PointEmitter emitter(context, s.operand.program, lowering_.buffer_of);
    Scope top(emitter, {});
    emit_uniform_code(emitter, top);
    const schedule::PackSizes sizes{context.dim(batch), context.dim(rows), context.dim(k)};
    const auto emit_pack = left ? schedule::emit_pack_lhs : schedule::emit_pack_rhs;
    emit_pack(context.builder, tile, sizes, context.buffer(packed), s.axis, loader(emitter, s, top));
    built.push_back(context.finish());
    built.back().launch.work = k * Dim(extent.sliver * s.operand.program.size());
    return packed;
  }

  std::vector<int> out_dims(const std::string& labels) const {
    std::vector<int> dims;
    for (const char label : labels) dims.push_back(static_cast<int>(roles_.out.find(label)));
    return dims;
  }

  KernelContext::Built product(const schedule::GemmPlan& plan, const Dim& batch, const Dim& m, const Dim& n,
                               const Dim& k, int lhs_packed, int rhs_packed) const {
    KernelContext context("product");
    static const PointProgram none;
    declare_buffers(context,
                    {&epilogue_, lhs_packed < 0 ? &left_.operand.program : &none,
                     rhs_packed < 0 ? &right_.operand.program : &none},
                    lowering_);
    PointEmitter emitter(context, epilogue_, lowering_.buffer_of);
    PointEmitter left_loads(context, left_.operand.program, lowering_.buffer_of);
    PointEmitter right_loads(context, right_.operand.program, lowering_.buffer_of);
    Scope top(emitter, {}), left_top(left_loads, {}), right_top(right_loads, {});
    emit_uniform_code(emitter, top);
    const auto operand = [&](const Side& s, int packed, PointEmitter& loads, Scope& scope) {
      schedule::GemmOperand o{.axis = s.axis};
      if (packed >= 0) {
        context.declare(packed, compute_, true, false);
        o.packed = context.buffer(packed);
      } else {
        emit_uniform_code(loads, scope);
        o.load = loader(loads, s, scope);
      }
      return o;
    };
    const schedule::GemmOperand lhs = operand(left_, lhs_packed, left_loads, left_top);
    const schedule::GemmOperand rhs = operand(right_, rhs_packed, right_loads, right_top);
    const schedule::GemmSizes sizes{context.dim(batch), context.dim(m), context.dim(n), context.dim(k)};
    emit_gemm(context.builder, plan, sizes, lhs, rhs, epilogue(emitter, top));
    auto built = context.finish();
    built.launch.work = k * Dim(static_cast<std::int64_t>(plan.tile.mc) * plan.tile.nc / 8);
    built.launch.flops = Dim(2) * batch * m * n * k;
    return built;
  }

  schedule::Epilogue epilogue(PointEmitter& emitter, Scope& top) const {
    const auto batch_dims = out_dims(roles_.batch()), m_dims = out_dims(left_.free), n_dims = out_dims(right_.free);
    return [&emitter, &top, this, batch_dims, m_dims, n_dims](Value batch, Value m) -> schedule::RowEpilogue {
      const std::vector<IndexGroup> row_groups = {{batch_dims, batch, 1}, {m_dims, m, 1}};
      auto row = std::make_shared<Scope>(emitter, row_groups, Value{}, &top);
      std::uint64_t n_bits = 0;
      for (const int d : n_dims) n_bits |= 1ULL << d;
      const std::vector<bool> behind = reads_accumulator(epilogue_);
      for (int i = 0; i < epilogue_.size(); ++i) {
        const auto at = static_cast<std::size_t>(i);
        if ((epilogue_.depends[at] & n_bits) == 0 && !behind[at]) emitter.emit(i, *row);
      }
      return [&emitter, this, row, row_groups, n_dims](Value n, int lanes, Value acc, Value mask) {
        auto groups = row_groups;
        groups.push_back({n_dims, n, lanes});
        Scope scope(emitter, std::move(groups), mask, row.get());
        kernel::Builder& b = emitter.context().builder;
        const DType dtype = node_.type.dtype;
        scope.bind(0, compute_ == dtype ? acc : b.cast(b.cast(acc, dtype), compute_));
        // All values before the first store: it may go where another one is read.
        for (const PointStore& store : epilogue_.stores) emitter.emit(store.value, scope);
        for (const PointStore& store : epilogue_.stores)
          emitter.store(store.node, epilogue_[store.value].dtype, store.form, emitter.emit(store.value, scope),
                        scope);
      };
    };
  }

  const LoweringContext& lowering_;
  const Region& region_;
  const ir::Node& node_;
  ir::ContractionRoles roles_;
  PointProgram epilogue_;
  DType compute_;
  Side left_, right_;
};

}  // namespace

std::vector<KernelContext::Built> lower_product(const LoweringContext& context, const Region& region) {
  return ProductKernels(context, region).run();
}

}  // namespace lathe
