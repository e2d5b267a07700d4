#include "passes/cpu/rows/row_prefetch.h"

#include <algorithm>

namespace lathe::cpu {

using kernel::Value;
using Kind = ElementwiseInstruction::Kind;
using Scope = ElementwiseEmitter::Scope;

RowPrefetch::RowPrefetch(KernelContext& context, const CpuContext& lowering, const ElementwiseProgram& program,
                         ElementwiseEmitter& emitter, const RowSpace& space, const RowLoops& loops,
                         const std::function<bool(const RowLoop&)>& computes)
    : context_(context), lowering_(lowering), program_(program), emitter_(emitter), space_(space), loops_(loops) {
  choose(computes);
}

/// The first loop over a row waits for memory, while the others find the row in a cache. One of the others
/// prefetches, so that memory is always busy. With a single loop, the hardware prefetcher is enough, except for
/// gathered rows. Prefetching rows of several tensors is slower.
void RowPrefetch::choose(const std::function<bool(const RowLoop&)>& computes) {
  const auto width = program_.points(space_.inner).value();
  if (!width || space_.outer.empty()) return;
  for (const RowLoop& l : loops_.loops())
    if (&l != &loops_.loops().front() && loop_ == nullptr && computes(l)) loop_ = &l;
  const bool one_loop = loop_ == nullptr;
  if (one_loop) loop_ = &loops_.loops().front();
  std::vector<int> reads;
  for (int i = 0; i < program_.size(); ++i) {
    const ElementwiseInstruction& in = program_[i];
    const bool load = in.kind == Kind::load && in.args.empty() && !one_loop,
               looked_up = in.kind == Kind::gather && in.args.size() == 1 && !loops_.varies(in.args[0]);
    const bool every_row = (program_.depends[i] & ~space_.inner_bits) != 0;
    if ((load || looked_up) && loops_.varies(i) && every_row) reads.push_back(i);
  }
  if (reads.size() != 1) return;
  const std::int64_t bytes = *width * size_in_bytes(program_[reads[0]].dtype);
  // It must fit into L2 together with the current row.
  if (bytes < lowering_.tuned.loops.least_prefetched_row || bytes > lowering_.cpu.l2.share() / 2) return;
  prefetched_ = reads[0];
  rows_ = std::max<std::int64_t>(1, lowering_.cpu.bytes_in_flight / bytes);
}

void RowPrefetch::further(const IndexGroups& row, Value at, std::int64_t bytes) {
  const auto elements = (program_.points(space_.outer) * program_.points(space_.inner)).value();
  const CpuInfo& cpu = lowering_.cpu;
  const std::int64_t many = 4 * cpu.l2.share() / size_in_bytes(f32);
  if (!cpu.slow_last_level || elements.value_or(many) < many) return;
  const auto varies = [&](int i, std::uint64_t dims) { return (program_.depends[i] & dims) != 0; };
  for (int i = 0; i < program_.size(); ++i) {
    const ElementwiseInstruction& in = program_[i];
    const bool load = in.kind == Kind::load && in.args.empty();
    if (!load || !varies(i, space_.inner_bits) || (!row.empty() && !varies(i, ~space_.inner_bits))) continue;
    IndexGroups groups = row;
    groups.push_back({space_.inner, at + bytes / static_cast<std::int64_t>(size_in_bytes(in.dtype)), space_.lanes});
    Scope further(emitter_, groups);
    emitter_.prefetch(i, further);
  }
}

/// Returns the row to prefetch in the loop over this one.
Value RowPrefetch::later(Value row) {
  return kernel::min(row + rows_, context_.dim(program_.points(space_.outer)) - 1);
}

RowPrefetch::OfRow::OfRow(RowPrefetch& prefetch, const RowLoop& loop, Value row)
    : p_(prefetch),
      is_first_(&loop == &p_.loops_.loops().front()),
      is_later_(p_.prefetched_ && &loop == p_.loop_),
      row_(row),
      later_row_(is_later_ ? p_.later(row) : row),
      later_scope_(p_.emitter_, {{p_.space_.outer, later_row_, 1}}) {
  if (is_later_)
    for (const int arg : p_.program_[*p_.prefetched_].args) p_.emitter_.emit(arg, later_scope_);
}

void RowPrefetch::OfRow::emit(Value at) {
  const RowSpace& space = p_.space_;
  if (is_later_) {
    Scope further(p_.emitter_, {{space.outer, later_row_, 1}, {space.inner, at, space.lanes}}, {}, &later_scope_);
    p_.emitter_.prefetch(*p_.prefetched_, further);
  }
  if (!p_.prefetched_ && is_first_) p_.further({{space.outer, row_, 1}}, at, p_.lowering_.tuned.loops.ahead_in_rows);
}

}  // namespace lathe::cpu
