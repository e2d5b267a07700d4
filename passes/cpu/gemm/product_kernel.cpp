#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <memory>

#include "passes/cpu/cpu_kernels.h"
#include "passes/cpu/gemm/fixed_operand.h"
#include "passes/cpu/gemm/gemm.h"
#include "passes/lowering/operands/product_operands.h"

namespace lathe::cpu {

using kernel::Value;
using Scope = ElementwiseEmitter::Scope;

namespace {

/// The range of k that a kernel processes: all of it, or one panel. The number of a panel is a run-time argument, and
/// so is its size if the last panel has fewer elements than the others: all panels share their kernels.
class PartOfK {
 public:
  explicit PartOfK(Dim k) : size_(std::move(k)) {}
  /// Returns panel `number` of panels of `step` elements; the last one may have fewer.
  static PartOfK panel(std::int64_t k, std::int64_t number, std::int64_t step) {
    PartOfK part{Dim(std::min(step, k - number * step))};
    part.number_ = number, part.step_ = step, part.equal_ = k % step == 0;
    return part;
  }

  bool is_panel() const { return step_ > 0; }
  const Dim& size() const { return size_; }

  // Inside a kernel. declare() comes before all others: the arguments are the first ones of the kernel.
  void declare(KernelContext& context) const {
    for (const Dim& argument : arguments()) context.argument(argument);
  }
  Value size(KernelContext& context) const {
    return is_panel() && !equal_ ? context.argument(*size_.value()) : context.dim(size_);
  }
  Value is_first(KernelContext& context) const { return kernel::equal(context.argument(number_), 0); }
  /// Returns loads whose k starts at this part; `load` counts from the start of all k.
  LoadOperand from_start(KernelContext& context, const LoadOperand& load) const {
    return is_panel() ? load_from(load, context.argument(number_) * step_) : load;
  }

  /// Returns the arguments that differ between panels.
  std::vector<Dim> arguments() const {
    if (!is_panel()) return {};
    return equal_ ? std::vector{Dim(number_)} : std::vector{Dim(number_), size_};
  }

 private:
  Dim size_;
  std::int64_t number_ = 0, step_ = 0;  ///< for panels
  bool equal_ = false;                  ///< whether the last panel has as many elements as the others
};

Multiplier multiplier_of(const GemmTile& tile) {
  if (tile.tiles()) return tile.split_bf16() ? Multiplier::split_bf16 : Multiplier::tile_mma;
  return tile.pairs() ? Multiplier::dot_pairs : Multiplier::fma;
}

/// Returns the elements, by buffer, that a panel reads of operands that are read in place.
std::map<int, Dim> shares_of(const PartOfK& part, const ProductOperands& operands, const CpuContext& lowering) {
  std::map<int, Dim> shares;
  if (!part.is_panel()) return shares;
  const auto add = [&](const ProductOperand& operand, const Dim& rows) {
    const auto& [program, result] = operand.operand;
    if (operand.plain)
      shares.try_emplace(lowering.buffer_of(program[result].buffer), operands.batch * rows * part.size());
  };
  add(operands.left, operands.m);
  add(operands.right, operands.n);
  return shares;
}

/// Returns the facts about a matmul with this epilogue.
GemmQuery query_of(const CpuContext& lowering, const ProductOperands& operands, const ElementwiseProgram& epilogue) {
  const ProductOperand &left = operands.left, &right = operands.right;
  const Dim& n = operands.n;
  return {.compute = operands.compute,
          .cpu = lowering.cpu,
          .tuned = lowering.tuned.products,
          .batch = operands.batch.value(),
          .m = operands.m.value(),
          .n = n.value(),
          .k = operands.k.value(),
          .lhs_axis = left.axis,
          .rhs_axis = right.axis,
          .lhs_loadable = left.plain,
          .rhs_loadable = right.plain,
          .lhs_run = left.run,
          .lhs_shared = left.shared,
          .rhs_fixed = is_fixed_operand(lowering, operands, right, n),
          .rhs_kept = is_kept_operand(lowering, operands, right, n),
          .pairs = lowering.cpu.dot_pairs && operands.dtype == bf16,
          .tiles = lowering.cpu.tiles && operands.dtype == bf16,
          .split_bf16 = lowering.cpu.tiles && operands.dtype == f32,
          .lhs_has_rows = left.has_rows,
          .epilogue_small = epilogue.size() <= 6};
}

/// Returns the copy of the left operand, which is read in place.
GemmOperand copied_left(KernelContext& context, const ProductOperands& operands, int copy) {
  context.declare(copy, operands.compute, true, false);
  const kernel::Buffer buffer = context.buffer(copy);
  const Value rows = context.dim(operands.m), depth = context.dim(operands.k);
  const bool shared = operands.left.shared;
  return {.load = [&b = context.builder, buffer, rows, depth, shared](Value batch, Value row, Value k, LaneAxis axis,
                                                                      int lanes, Value mask) {
    LATHE_ASSERT(lanes == 1 || axis == LaneAxis::k);
    return b.load(buffer, (shared ? row : batch * rows + row) * depth + k, lanes, mask);
  }};
}

class ProductKernels {
 public:
  ProductKernels(const CpuContext& lowering, const Region& region)
      : lowering_(lowering),
        operands_(lowering, lowering.graph[region.members[0]]),
        epilogue_(region_program(lowering.graph, lowering.plan, region)) {}

  std::vector<KernelContext::Built> run() {
    const GemmQuery query = query_of(lowering_, operands_, epilogue_);
    const auto plans = lowering_.tuning ? candidate_plans(query, sizes_of_runs(lowering_.tuning->dims))
                                        : std::vector{plan_gemm(query)};
    const GemmPlan& plan = plans[lowering_.candidate];
    std::vector<KernelContext::Built> built;
    plan.least_rows > 0 ? build_both(plan_few_rows(query, plan), plan, built) : build(plan, built);
    name_candidates(lowering_, plans, built);
    return built;
  }

 private:
  /// Adds the kernels of two plans: only the run knows whether there are enough rows for `more`. They share a kept
  /// right operand that is packed in the same way.
  void build_both(const GemmPlan& few, const GemmPlan& more, std::vector<KernelContext::Built>& built) const {
    const bool shares = is_kept_operand(lowering_, operands_, operands_.right, operands_.n) &&
                        few.rhs == Source::packed && more.rhs == Source::packed &&
                        few.tile.packs_right_like(more.tile);
    const int right = shares ? pack(false, more, PartOfK(operands_.k), built) : -1;
    for (const bool is_few : {true, false}) {
      const std::size_t first = built.size();
      build(is_few ? few : more, built, right);
      for (std::size_t i = first; i < built.size(); ++i)
        built[i].launch.condition = {operands_.m, more.least_rows, is_few};
    }
  }

  /// Adds the kernels of a plan. `right`: the packed right operand, if it exists.
  void build(const GemmPlan& plan, std::vector<KernelContext::Built>& built, int right = -1) const {
    if (plan.panel > 0) return panels(plan, built);
    const PartOfK all(operands_.k);
    const int lhs_packed = plan.lhs == Source::packed || plan.copies_left ? pack(true, plan, all, built) : -1;
    const int rhs_packed = right >= 0 || plan.rhs != Source::packed ? right : pack(false, plan, all, built);
    const int sums = plan.splits > 1
                         ? lowering_.workspace(
                               operands_.compute,
                               operands_.batch * Dim(split_k_sums(plan, *operands_.m.value(), *operands_.n.value())),
                               "sums of splits")
                         : -1;
    built.push_back(product(plan, all, {.lhs = lhs_packed, .rhs = rhs_packed, .sums = sums}));
    if (plan.splits > 1) built.push_back(reduce_split_k(plan, sums));
  }

  GemmQuery sizes_of_runs(const DimBindings& dims) const {
    return {.cpu = lowering_.cpu,
            .tuned = lowering_.tuned.products,
            .batch = operands_.batch.evaluate(dims),
            .m = operands_.m.evaluate(dims),
            .n = operands_.n.evaluate(dims),
            .k = operands_.k.evaluate(dims)};
  }

  /// Returns a callback that loads elements of an operand inside the kernel of `emitter`.
  static LoadOperand loader(ElementwiseEmitter& emitter, const ProductOperand& o, Scope& top) {
    return [&emitter, &o, &top](Value batch, Value row, Value k, LaneAxis axis, int lanes, Value mask) {
      return o.load(emitter, top, batch, row, k, axis, lanes, mask);
    };
  }

  /// Packs or copies an operand, or packs a panel of it, into a new workspace.
  int pack(bool left, const GemmPlan& plan, const PartOfK& part, std::vector<KernelContext::Built>& built) const {
    const GemmTile& tile = plan.tile;
    const ProductOperand& s = left ? operands_.left : operands_.right;
    const Dim batch = s.shared ? Dim(1) : operands_.batch;
    const Dim &rows = left ? operands_.m : operands_.n, &k = part.size();
    const bool copies = left && plan.copies_left;
    const PackedExtent extent = copies ? PackedExtent{} : left ? packed_lhs_extent(tile) : packed_rhs_extent(tile);
    const bool known = batch.value() && rows.value() && k.value();
    const Dim elements =
        known ? Dim(extent.exact(*batch.value(), *rows.value(), *k.value()))
              : batch * (rows + Dim(extent.extra_rows)) * (k + Dim(extent.unit_of_k - 1)) * Dim(extent.terms);
    const auto& buffer = known && !part.is_panel() && is_kept_operand(lowering_, operands_, s, rows)
                             ? lowering_.kept
                             : lowering_.workspace;
    const int packed = buffer(tile.packed(), elements,
                              copies ? "copied left operand"
                              : left ? "packed left operand"
                                     : "packed right operand");
    KernelContext context(left ? "pack_lhs" : "pack_rhs", left ? KernelRole::pack_left : KernelRole::pack_right);
    part.declare(context);
    context.touches(shares_of(part, operands_, lowering_));
    declare_buffers(context, {&s.operand.program}, lowering_);
    context.declare(packed, tile.packed(), false, true);
    ElementwiseEmitter emitter(context, s.operand.program, lowering_.buffer_of);
    Scope top(emitter, {});
    emitter.hoist(top);
    PackSizes sizes{context.dim(batch), context.dim(rows), {}, lowering_.tuned.products.packing};
    const LoadOperand load = part.from_start(context, loader(emitter, s, top));
    sizes.k = part.size(context);
    const auto emit = copies ? emit_copy_rows : left ? emit_pack_lhs : emit_pack_rhs;
    emit(context.builder, tile, sizes, context.buffer(packed), s.axis, load);
    built.push_back(context.finish());
    built.back().launch.work = k * Dim(extent.micro_panel * s.operand.program.work());
    return packed;
  }

  /// Program buffers that kernels share; -1: none.
  struct Workspaces {
    int lhs = -1, rhs = -1;  ///< packed operands
    int sums = -1;           ///< of splits or panels, stored instead of results
  };

  /// Packs and multiplies one panel at a time, and adds its sums to those of the previous ones. All panels share the
  /// kernels and the workspaces of the first one.
  void panels(const GemmPlan& plan, std::vector<KernelContext::Built>& built) const {
    const Dim elements = operands_.batch * operands_.m * Dim(columns_of_sums(plan.tile, *operands_.n.value()));
    const std::int64_t k = *operands_.k.value(), count = (k + plan.panel - 1) / plan.panel;
    const PartOfK first = PartOfK::panel(k, 0, plan.panel);
    Workspaces with{.sums = lowering_.workspace(operands_.compute, elements, "sums of panels")};
    with.lhs = pack(true, plan, first, built), with.rhs = pack(false, plan, first, built);
    built.push_back(product(plan, first, with));
    for (std::int64_t number = 1; number < count; ++number) {
      const PartOfK panel = PartOfK::panel(k, number, plan.panel);
      for (int i = 0; i < launches_of_panel; ++i) again(panel, built);
      built.back().launch.flops = flops_of(panel);
    }
    built.push_back(reduce_split_k(plan, with.sums));
  }

  static constexpr int launches_of_panel = 3;  ///< two that pack, one that multiplies

  /// Adds a launch of a kernel that processed the previous panel.
  void again(const PartOfK& panel, std::vector<KernelContext::Built>& built) const {
    const KernelContext::Built& before = built.end()[-launches_of_panel];
    KernelContext::Built next{.kernel = {},
                              .launch = before.launch,
                              .touched = shares_of(panel, operands_, lowering_),
                              .kernel_from = launches_of_panel};
    next.touched.insert(before.touched.begin(), before.touched.end());
    std::ranges::copy(panel.arguments(), next.launch.dims.begin());
    built.push_back(std::move(next));
  }

  GemmSizes sizes(KernelContext& context, const PartOfK& part) const {
    return {context.dim(operands_.batch), context.dim(operands_.m), context.dim(operands_.n), part.size(context)};
  }

  /// Whether a matmul reads an operand in place: unless it is packed, and for split bf16, which may recompute sums.
  static bool loads(int packed, const GemmPlan& plan) { return packed < 0 || plan.tile.split_bf16(); }

  /// Returns how the matmul reads an operand: from a packed workspace, or by `emits`, which must outlive it.
  static GemmOperand operand(KernelContext& context, const GemmPlan& plan, const PartOfK& part,
                             const ProductOperand& s, int packed, ElementwiseEmitter& emits, Scope& scope) {
    GemmOperand o{.axis = s.axis};
    if (packed >= 0) {
      context.declare(packed, plan.tile.packed(), true, false);
      o.packed = context.buffer(packed);
      if (s.shared) o.packed_batch = [&context](Value) { return context.builder.index(0); };
    }
    if (!loads(packed, plan)) return o;
    emits.hoist(scope);
    o.load = part.from_start(context, loader(emits, s, scope));
    if (packed >= 0) return o;
    if (s.scaled.run > 0 && !part.is_panel()) {
      o.scaled.run = s.scaled.run;
      o.scaled.numbers = [&s, &emits, &scope](Value batch, Value row, Value k, LaneAxis axis, int lanes, Value mask) {
        return s.load(s.scaled.numbers, emits, scope, batch, row, k, axis, lanes, mask);
      };
      o.scaled.factor = [&s, &emits, &scope](Value batch, Value row, Value k) {
        return s.load(s.scaled.factor, emits, scope, batch, row, k, s.axis, 1, {});
      };
    }
    if (s.prefetches_along_k())
      o.prefetch_along_k = [&s, &emits, &scope, lanes = plan.tile.lanes](Value batch, Value row, Value k) {
        s.prefetch_along_k(emits, scope, batch, row, k, lanes);
      };
    if (s.has_rows)
      o.rows_in_memory = [&s, &emits, &scope](Value batch, Value row, Value k) {
        return s.rows_in_memory(emits, scope, batch, row, k);
      };
    if (s.plain)
      o.prefetch = [&s, &emits, &scope, lanes = plan.tile.lanes](Value batch, Value row, Value k) {
        s.prefetch(emits, scope, batch, row, k, lanes);
      };
    return o;
  }

  /// Emits the matmul, or its split or panel, which have no epilogue.
  KernelContext::Built product(const GemmPlan& plan, const PartOfK& part, const Workspaces& with) const {
    KernelContext context("product", KernelRole::product);
    context.multiplies_by(multiplier_of(plan.tile), plan.missed);
    part.declare(context);
    static const ElementwiseProgram none;
    const bool ends = with.sums < 0;
    context.touches(shares_of(part, operands_, lowering_));
    declare_buffers(context,
                    {ends ? &epilogue_ : &none, loads(with.lhs, plan) ? &operands_.left.operand.program : &none,
                     loads(with.rhs, plan) ? &operands_.right.operand.program : &none},
                    lowering_);
    if (with.sums >= 0) context.declare(with.sums, operands_.compute, part.is_panel(), !ends);
    ElementwiseEmitter emitter(context, epilogue_, lowering_.buffer_of);
    ElementwiseEmitter left_loads(context, operands_.left.operand.program, lowering_.buffer_of);
    ElementwiseEmitter right_loads(context, operands_.right.operand.program, lowering_.buffer_of);
    Scope top(emitter, {}), left_top(left_loads, {}), right_top(right_loads, {});
    if (ends) emitter.hoist(top);
    const GemmOperand lhs = plan.copies_left
                                ? copied_left(context, operands_, with.lhs)
                                : operand(context, plan, part, operands_.left, with.lhs, left_loads, left_top);
    const GemmOperand rhs = operand(context, plan, part, operands_.right, with.rhs, right_loads, right_top);
    const GemmSizes all = sizes(context, part);
    if (part.is_panel())
      emit_gemm_panel(context.builder, plan, all, lhs, rhs, {context.buffer(with.sums), part.is_first(context)});
    else if (with.sums >= 0)
      emit_gemm_split_k(context.builder, plan, all, lhs, rhs, context.buffer(with.sums));
    else
      emit_gemm(context.builder, plan, all, lhs, rhs, epilogue(emitter, top),
                prefetch(plan.tile.lanes, emitter, top));
    auto built = context.finish();
    const ProductOperands& o = operands_;
    // A multiply-add costs an eighth of an operation. If few rows share the loaded data, reading takes longer.
    const std::int64_t rows = std::max(plan.tile.mc / 8, 2),
                       columns = std::min<std::int64_t>(plan.tile.nc, o.n.value().value_or(plan.tile.nc));
    const Dim& k = part.size();
    built.launch.work = Dim(rows * columns) * (plan.splits > 1 ? Dim(*k.value() / plan.splits) : k);
    built.launch.flops = flops_of(part);
    return built;
  }

  Dim flops_of(const PartOfK& part) const {
    return Dim(2) * operands_.batch * operands_.m * operands_.n * part.size();
  }

  /// Adds up the sums of splits, or passes on those of all panels.
  KernelContext::Built reduce_split_k(const GemmPlan& plan, int sums) const {
    KernelContext context("reduce_split_k", KernelRole::combine_splits);
    declare_buffers(context, {&epilogue_}, lowering_);
    context.declare(sums, operands_.compute, true, false);
    ElementwiseEmitter emitter(context, epilogue_, lowering_.buffer_of);
    Scope top(emitter, {});
    emitter.hoist(top);
    emit_reduce_split_k(context.builder, plan, sizes(context, PartOfK(operands_.k)), context.buffer(sums),
                        epilogue(emitter, top));
    auto built = context.finish();
    built.launch.work = Dim(plan.tile.n_step() * (plan.splits + epilogue_.size()));
    return built;
  }

  Epilogue epilogue(ElementwiseEmitter& emitter, Scope& top) const {
    return [&emitter, &top, this](Value batch, Value m) -> RowEpilogue {
      const std::vector<IndexGroup> row_groups = {{operands_.batch_dims, batch, 1}, {operands_.m_dims, m, 1}};
      auto row = std::make_shared<Scope>(emitter, row_groups, Value{}, &top);
      std::uint64_t n_bits = 0;
      for (const int d : operands_.n_dims) n_bits |= 1ULL << d;
      emitter.hoist(*row, n_bits);
      return [&emitter, this, row, row_groups](Value n, int lanes, Value acc, Value mask) {
        auto groups = row_groups;
        groups.push_back({operands_.n_dims, n, lanes});
        Scope scope(emitter, std::move(groups), mask, row.get());
        scope.bind(0, rounded(emitter.context().builder, acc, operands_.dtype));
        emitter.store_all(scope);
      };
    };
  }

  /// Returns the prefetch of the elements that the epilogue reads or writes, one per result: those of a parameter and
  /// its moments, a residual, the result itself.
  EpiloguePrefetch prefetch(int lanes, ElementwiseEmitter& emitter, Scope& top) const {
    using Kind = ElementwiseInstruction::Kind;
    std::map<int, std::pair<ir::ValueId, Linear>> positions;  // by buffer
    const auto add = [&](ir::ValueId node, const Linear& form) {
      if (varies(form, operands_.m_dims) && varies(form, operands_.n_dims))
        positions.try_emplace(lowering_.buffer_of(node), std::pair(node, form));
    };
    for (const ElementwiseInstruction& i : epilogue_.code)
      if (i.kind == Kind::load && i.args.empty()) add(i.buffer, i.form);
    for (const ElementwiseStore& store : epilogue_.stores) add(store.node, store.form);
    if (positions.empty()) return {};
    return [this, lanes, positions, &emitter, &top](Value batch, Value m, Value n) {
      const ProductOperands& o = operands_;
      Scope scope(emitter, {{o.batch_dims, batch, 1}, {o.m_dims, m, 1}, {o.n_dims, n, lanes}}, Value{}, &top);
      for (const auto& [buffer, position] : positions) emitter.prefetch(position.first, position.second, scope);
    };
  }

  static bool varies(const Linear& form, const std::vector<int>& dims) {
    return std::any_of(dims.begin(), dims.end(), [&](int d) { return !form.coefficients[d].is(0); });
  }

  const CpuContext& lowering_;
  ProductOperands operands_;
  ElementwiseProgram epilogue_;
};

}  // namespace

std::vector<KernelContext::Built> lower_product(const CpuContext& context, const Region& region) {
  return ProductKernels(context, region).run();
}

}  // namespace lathe::cpu
