#include <algorithm>

#include "passes/cpu/cpu_kernels.h"
#include "passes/lowering/elementwise/row_space.h"

namespace lathe::cpu {

using kernel::Value;
using Kind = ElementwiseInstruction::Kind;
using Scope = ElementwiseEmitter::Scope;

namespace {

/// Every store of a program is select(index of `dim` == row, value, current contents).
struct CacheAppend {
  int dim = -1, row = -1;   ///< row: an integer instruction that depends on no index
  std::vector<int> values;  ///< by store
};

/// Returns the dim whose index an instruction is, or -1.
int index_dim(const ElementwiseInstruction& i) {
  if (i.kind != Kind::index || !i.form.offset.is(0)) return -1;
  int dim = -1;
  for (std::size_t d = 0; d < i.form.coefficients.size(); ++d) {
    if (i.form.coefficients[d].is(0)) continue;
    if (dim >= 0 || !i.form.coefficients[d].is(1)) return -1;
    dim = static_cast<int>(d);
  }
  return dim;
}

/// Returns whether `condition` is index == row, and sets dim and row if so.
bool names_row(const ElementwiseProgram& program, int condition, CacheAppend& update) {
  if (!is_scalar(program[condition], ScalarOp::eq)) return false;
  for (const bool swapped : {false, true}) {
    const auto& args = program[condition].args;
    const int index = args[swapped ? 1 : 0], row = args[swapped ? 0 : 1];
    update.dim = index_dim(program[index]);
    update.row = row;
    if (update.dim >= 0 && program[row].dtype == i64 && program.depends[row] == 0) return true;
  }
  return false;
}

/// Whether points may be skipped: not if indices are checked at every point or if a reduction needs all points.
bool may_skip_points(const ElementwiseProgram& program) {
  return std::none_of(program.code.begin(), program.code.end(), [](const ElementwiseInstruction& i) {
    return i.kind == Kind::gather || i.kind == Kind::checked || i.kind == Kind::reduce || i.kind == Kind::column;
  });
}

std::optional<CacheAppend> find_cache_append(const ElementwiseProgram& program, const BufferOf& buffer_of) {
  if (program.stores.empty() || !may_skip_points(program)) return std::nullopt;
  std::optional<CacheAppend> found;
  int condition = -1;
  for (const ElementwiseStore& store : program.stores) {
    const ElementwiseInstruction& select = program[store.value];
    if (!is_scalar(select, ScalarOp::select)) return std::nullopt;
    const ElementwiseInstruction& old = program[select.args[2]];
    const bool in_place = old.kind == Kind::load && old.args.empty() && old.form == store.form &&
                          buffer_of(old.buffer) == buffer_of(store.node);
    if (!in_place || (found && select.args[0] != condition)) return std::nullopt;
    if (!found && !names_row(program, select.args[0], found.emplace())) return std::nullopt;
    condition = select.args[0];
    found->values.push_back(select.args[1]);
  }
  return found;
}

class CacheAppendKernel {
 public:
  CacheAppendKernel(const CpuContext& lowering, const ElementwiseProgram& program, const CacheAppend& update)
      : lowering_(lowering),
        program_(program),
        update_(update),
        context_("cache_append", KernelRole::cache_append),
        emitter_(context_, program_, lowering.buffer_of),
        b_(context_.builder),
        lanes_(program_lanes(program, lowering.vectors())) {
    split_dims();
    Dim written(1);
    for (const auto& dims : {before_, after_, inner_}) written = written * program_.points(dims);
    for (const ElementwiseStore& store : program_.stores) {
      context_.touches({{lowering.buffer_of(store.node), written}});
      context_.writes_part_of(lowering.buffer_of(store.node));
    }
    declare_buffers(context_, {&program_}, lowering);
  }

  KernelContext::Built run() {
    Scope top(emitter_, {});
    const Value row = emitter_.emit(update_.row, top);
    const Value inside = b_.index(0) <= row && row < context_.dim(program_.domain[update_.dim].unnamed());
    const Value after = context_.dim(program_.points(after_)), inner = context_.dim(program_.points(inner_));
    b_.parallel_for(0, context_.dim(program_.points(before_)) * after, 1, [&](Value i) {
      b_.if_(inside, [&] {
        vector_loop(b_, b_.index(0), inner, lanes_, [&](Value at, Value mask) {
          Scope scope(
              emitter_,
              {{before_, i / after, 1}, {{update_.dim}, row, 1}, {after_, i % after, 1}, {inner_, at, lanes_}}, mask,
              &top);
          put(scope);
        });
      });
    });
    auto built = context_.finish();
    built.launch.work = program_.points(inner_) * Dim(program_.work());
    return built;
  }

 private:
  /// Splits the dims after the row. Vectors run along the last dims that every access merges into one stride, at
  /// least along the last one. Without any, there is one element per index of the other dims.
  void split_dims() {
    for (int d = 0; d < update_.dim; ++d) before_.push_back(d);
    const int rank = program_.domain.rank();
    int first = rank;
    while (first - 1 > update_.dim && (first == rank || merges(first - 1))) --first;
    for (int d = update_.dim + 1; d < rank; ++d) (d < first ? after_ : inner_).push_back(d);
    if (inner_.empty()) lanes_ = 1;
  }

  bool merges(int first) const {
    std::vector<int> dims;
    for (int d = first; d < program_.domain.rank(); ++d) dims.push_back(d);
    return lathe::merges(program_, dims);
  }

  /// All values are computed before the first store, because a store may overwrite the input of another one.
  void put(Scope& scope) {
    for (const int value : update_.values) emitter_.emit(value, scope);
    for (std::size_t s = 0; s < program_.stores.size(); ++s) {
      const ElementwiseStore& store = program_.stores[s];
      const int value = update_.values[s];
      emitter_.store(store.node, program_[store.value].dtype, store.form, emitter_.emit(value, scope), scope);
    }
  }

  const CpuContext& lowering_;
  const ElementwiseProgram& program_;
  const CacheAppend& update_;
  KernelContext context_;
  ElementwiseEmitter emitter_;
  kernel::Builder& b_;
  int lanes_;
  std::vector<int> before_, after_, inner_;
};

}  // namespace

std::optional<KernelContext::Built> lower_cache_append(const CpuContext& context, const Region& region) {
  const ElementwiseProgram program = region_program(context.graph, context.plan, region);
  const auto update = find_cache_append(program, context.buffer_of);
  if (!update) return std::nullopt;
  return CacheAppendKernel(context, program, *update).run();
}

}  // namespace lathe::cpu
