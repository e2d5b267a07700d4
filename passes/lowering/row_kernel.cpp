#include <algorithm>
#include <bit>
#include <optional>
#include <set>

#include "passes/fusion/inline_policy.h"
#include "passes/lowering/region_kernels.h"

namespace lathe {

using kernel::Value;
using Kind = PointInstruction::Kind;
using Scope = PointEmitter::Scope;

namespace {

constexpr std::int64_t flat_chunk = 8192;
constexpr int costly = 8;  // arithmetic worth a store and a load

/// Emits the body of one rows region.
class RowKernel {
 public:
  RowKernel(const LoweringContext& lowering, const Region& region)
      : lowering_(lowering),
        context_("rows"),
        program_(region_program(lowering.graph, lowering.plan, region)),
        emitter_(context_, program_, lowering.buffer_of),
        b_(context_.builder) {
    declare_buffers(context_, {&program_}, lowering);
    split_dims(region.inner);
    lanes_ = program_lanes(program_, lowering.target);
    if (const auto size = size_of(inner_dims_).value(); size && *size < lanes_)
      lanes_ = static_cast<int>(std::bit_ceil(static_cast<std::uint64_t>(std::max<std::int64_t>(*size, 1))));
    find_levels();
  }

  KernelContext::Built run() {
    Scope top(emitter_, {});
    hoist_uniform(top);
    if (reductions_ == 0 && outer_dims_.empty()) {
      flat(top);
    } else {
      const Value rows = context_.dim(size_of(outer_dims_));
      b_.parallel_for(0, rows, 1, [&](Value row) { one_row(row, top); });
    }
    auto built = context_.finish();
    const Dim width = reductions_ == 0 && outer_dims_.empty() ? Dim(flat_chunk) : size_of(inner_dims_);
    built.launch.work = width * Dim(program_.size());
    return built;
  }

 private:
  Dim size_of(const std::vector<int>& dims) const {
    Dim product(1);
    for (const int d : dims) product = product * program_.domain[d].unnamed();
    return product;
  }

  /// Reductions fix the inner dims. Without any, as many trailing dims are inner as every access merges into one
  /// stride: all of them for plain element-wise code.
  void split_dims(int inner) {
    const int rank = program_.domain.rank();
    if (inner == 0) {
      inner = std::min(rank, 1);
      while (inner < rank && merges(rank - inner - 1)) ++inner;
    }
    for (int d = 0; d < rank; ++d) (d < rank - inner ? outer_dims_ : inner_dims_).push_back(d);
    for (const int d : inner_dims_) inner_bits_ |= 1ULL << d;
  }

  bool merges(int first) const {
    std::vector<int> dims;
    for (int d = first; d < program_.domain.rank(); ++d) dims.push_back(d);
    const auto fine = [&](const Linear& form) {
      return form.coefficients.empty() || Place::merges(form, dims, program_.domain);
    };
    return std::all_of(program_.code.begin(), program_.code.end(), [&](const auto& i) { return fine(i.form); }) &&
           std::all_of(program_.stores.begin(), program_.stores.end(), [&](const auto& s) { return fine(s.form); });
  }

  bool varies(int i) const { return (program_.depends[static_cast<std::size_t>(i)] & inner_bits_) != 0; }
  bool varies(const PointStore& store) const {
    if (varies(store.value)) return true;
    return std::any_of(inner_dims_.begin(), inner_dims_.end(),
                       [&](int d) { return !store.form.coefficients[static_cast<std::size_t>(d)].is(0); });
  }

  /// The level of a value: how many loops over the row must have run before it can be computed.
  void find_levels() {
    for (int i = 0; i < program_.size(); ++i) {
      int level = 0;
      for (const int arg : program_[i].args) level = std::max(level, levels_[static_cast<std::size_t>(arg)]);
      if (program_[i].kind == Kind::reduce) {
        ++level;
        ++reductions_;
      }
      levels_.push_back(level);
      last_level_ = std::max(last_level_, level);
    }
  }
  int level(int i) const { return levels_[static_cast<std::size_t>(i)]; }

  void hoist_uniform(Scope& top) {
    for (int i = 0; i < program_.size(); ++i)
      if (program_.depends[static_cast<std::size_t>(i)] == 0 && level(i) == 0 && program_[i].kind != Kind::reduce)
        emitter_.emit(i, top);
  }

  void flat(Scope& top) {
    const Value n = context_.dim(size_of(inner_dims_));
    b_.parallel_for(0, n, flat_chunk, [&](Value lo) {
      const Value hi = kernel::min(lo + flat_chunk, n);
      vector_loop(b_, lo, hi, lanes_, [&](Value at, Value mask) {
        Scope scope(emitter_, {{inner_dims_, at, mask_lanes(mask)}}, mask, &top);
        for (const PointStore& store : program_.stores) put(store, scope);
      });
    });
  }

  int mask_lanes(Value) const { return lanes_; }

  void put(const PointStore& store, Scope& scope) {
    emitter_.store(store.node, program_[store.value].dtype, store.form, emitter_.emit(store.value, scope), scope);
  }

  void one_row(Value row, Scope& top) {
    Scope scope(emitter_, {{outer_dims_, row, 1}}, {}, &top);
    for (int l = 0; l <= last_level_; ++l) loop(l, row, scope);
    for (const PointStore& store : program_.stores)
      if (!varies(store)) {
        hoist(store.value, scope);
        put(store, scope);
      }
  }

  /// Computes, outside the loop over the row, what `i` needs and does not vary along it.
  void hoist(int i, Scope& scope) {
    if (scope.find(i)) return;
    if (!varies(i) && program_[i].kind != Kind::reduce) {
      emitter_.emit(i, scope);
      return;
    }
    if (program_[i].kind == Kind::reduce) return;
    for (const int arg : program_[i].args) hoist(arg, scope);
  }

  /// Values of earlier loops that this loop reads back instead of computing them again.
  using Kept = std::map<int, const PointStore*>;

  void bind_kept(int i, Scope& scope, const Kept& kept, std::set<int>& seen) {
    if (!seen.insert(i).second || scope.find(i) || program_[i].kind == Kind::reduce) return;
    if (const auto at = kept.find(i); at != kept.end()) {
      scope.bind(i, emitter_.reload(at->second->node, program_[i].dtype, at->second->form, scope));
      return;
    }
    for (const int arg : program_[i].args) bind_kept(arg, scope, kept, seen);
  }

  void loop(int l, Value row, Scope& row_scope) {
    std::vector<int> reduces;
    std::vector<const PointStore*> stores;
    for (int i = 0; i < program_.size(); ++i)
      if (program_[i].kind == Kind::reduce && level(i) == l + 1) reduces.push_back(i);
    for (const PointStore& store : program_.stores)
      if (varies(store) && level(store.value) == l) stores.push_back(&store);
    const std::vector<std::pair<int, const PointStore*>> parked = parked_values(l);
    if (reduces.empty() && stores.empty()) return;
    for (const int i : reduces) hoist(program_[i].args[0], row_scope);
    for (const PointStore* store : stores) hoist(store->value, row_scope);

    std::vector<kernel::Var> accumulators;
    for (const int i : reduces)
      accumulators.push_back(b_.var({compute_type(program_[i].dtype), lanes_}, reduction_identity(b_, program_[i])));
    const Value n = context_.dim(size_of(inner_dims_));
    vector_loop(b_, b_.index(0), n, lanes_, [&](Value at, Value mask) {
      Scope scope(emitter_, {{outer_dims_, row, 1}, {inner_dims_, at, lanes_}}, mask, &row_scope);
      std::set<int> seen;
      for (const int i : reduces) bind_kept(program_[i].args[0], scope, kept_, seen);
      for (const PointStore* store : stores) bind_kept(store->value, scope, kept_, seen);
      for (std::size_t r = 0; r < reduces.size(); ++r) accumulate(reduces[r], accumulators[r], scope);
      for (const PointStore* store : stores) put(*store, scope);
      for (const auto& [value, place] : parked)
        emitter_.store(place->node, program_[value].dtype, place->form, emitter_.emit(value, scope), scope);
    });
    for (std::size_t r = 0; r < reduces.size(); ++r) finish_reduction(reduces[r], accumulators[r], row_scope);
    for (const PointStore* store : stores) kept_[store->value] = store;
    for (const auto& [value, place] : parked) kept_[value] = place;
  }

  void accumulate(int i, kernel::Var accumulator, Scope& scope) {
    const PointInstruction& reduce = program_[i];
    Value value = b_.broadcast(emitter_.emit(reduce.args[0], scope), lanes_);
    if (scope.mask) value = b_.select(scope.mask, value, b_.broadcast(reduction_identity(b_, reduce), lanes_));
    b_.set(accumulator, b_.apply(reduce.op, {b_.get(accumulator), value}));
  }

  void finish_reduction(int i, kernel::Var accumulator, Scope& scope) {
    const PointInstruction& reduce = program_[i];
    Value value = b_.get(accumulator);
    if (lanes_ > 1) value = b_.reduce(reduce.op, value);
    if (compute_type(reduce.dtype) != reduce.dtype) value = b_.cast(b_.cast(value, reduce.dtype), f32);
    scope.bind(i, value);
  }

  /// Costly values of loop l that a later loop needs (such as the exponentials of a softmax) are parked in the
  /// storage of a result of the same dtype that only a later loop writes and that nothing here reads.
  std::vector<std::pair<int, const PointStore*>> parked_values(int l) {
    std::vector<std::pair<int, const PointStore*>> parked;
    for (int i = 0; i < program_.size(); ++i) {
      if (level(i) != l || !varies(i) || program_[i].kind != Kind::scalar || kept_.contains(i)) continue;
      const ir::Node* node = program_[i].node.valid() ? &lowering_.graph[program_[i].node] : nullptr;
      if (!node || arithmetic_cost(*node) < costly || !needed_later(i, l) || !needed_now(i, l)) continue;
      if (const PointStore* place = parking_place(i, l)) parked.emplace_back(i, place);
    }
    return parked;
  }

  bool reaches(int from, int wanted) const {
    if (from == wanted) return true;
    if (program_[from].kind == Kind::reduce) return false;
    const auto& args = program_[from].args;
    return std::any_of(args.begin(), args.end(), [&](int arg) { return reaches(arg, wanted); });
  }
  bool needed_later(int i, int l) const {
    return needed(i, [&](int at) { return at > l; });
  }
  bool needed_now(int i, int l) const {
    return needed(i, [&](int at) { return at == l; });
  }
  template <class Level>
  bool needed(int i, Level wanted) const {
    for (int r = 0; r < program_.size(); ++r)
      if (program_[r].kind == Kind::reduce && wanted(level(r) - 1) && reaches(program_[r].args[0], i)) return true;
    return std::any_of(program_.stores.begin(), program_.stores.end(), [&](const PointStore& store) {
      return varies(store) && wanted(level(store.value)) && reaches(store.value, i);
    });
  }

  const PointStore* parking_place(int i, int l) {
    for (const PointStore& store : program_.stores) {
      const int buffer = lowering_.buffer_of(store.node);
      const bool read = std::any_of(program_.code.begin(), program_.code.end(), [&](const PointInstruction& load) {
        return load.buffer.valid() && lowering_.buffer_of(load.buffer) == buffer;
      });
      const bool fits = varies(store) && level(store.value) > l && program_[store.value].dtype == program_[i].dtype;
      if (fits && !read && occupied_.insert(buffer).second) return &store;
    }
    return nullptr;
  }

  const LoweringContext& lowering_;
  KernelContext context_;
  PointProgram program_;
  PointEmitter emitter_;
  kernel::Builder& b_;
  std::vector<int> outer_dims_, inner_dims_;
  std::uint64_t inner_bits_ = 0;
  int lanes_ = 1;
  std::vector<int> levels_;
  int last_level_ = 0, reductions_ = 0;
  Kept kept_;
  std::set<int> occupied_;
};

}  // namespace

KernelContext::Built lower_rows(const LoweringContext& context, const Region& region) {
  return RowKernel(context, region).run();
}

}  // namespace lathe
