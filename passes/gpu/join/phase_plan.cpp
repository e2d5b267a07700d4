#include "passes/gpu/join/phase_plan.h"

#include <algorithm>
#include <map>
#include <utility>

#include "ir/kernel/verify/structure_rules.h"

namespace lathe::gpu {

using kernel::Access;

namespace {

constexpr std::int64_t most_loads = 4;  ///< awaited loads of a thread that take about as long as a barrier
constexpr std::int64_t load_bytes = 16;
constexpr std::int64_t most_overlapped = 8;  ///< loads of a thread that wait together

/// The phases that access a buffer, by their numbers; -1: none.
struct BufferUse {
  int first = -1, last = -1, first_write = -1, last_write = -1;
  int writes = 0;
  bool can_be_awaited = true;
};

class Planner {
 public:
  Planner(std::span<const PhaseAccesses> phases, const std::vector<bool>& is_temporary, bool awaits)
      : phases_(phases), is_temporary_(is_temporary), awaits_(awaits), uses_(is_temporary.size()) {
    for (int p = 0; p < std::ssize(phases); ++p)
      for (const PhaseAccess& access : phases[at(p)].of) note(access, p);
  }

  PhasePlan plan() && {
    std::vector<int> late;
    for (int p = 0; p < std::ssize(phases_); ++p) {
      const bool waits = conflicts(p);
      if (waits && may_be_late(p)) {
        late.push_back(p);
        continue;
      }
      run(p, waits);
      if (waits) std::erase_if(late, [&](int other) { return !conflicts(other) && run(other, false); });
    }
    for (const int p : late) run(p, conflicts(p));
    for (PlannedPhase& each : plan_.phases) {
      const std::vector<PhaseAccess>& accesses = phases_[at(each.phase)].of;
      for (std::size_t i = 0; i < accesses.size(); ++i)
        if (accesses[i].access == Access::write &&
            std::ranges::find(plan_.cleared, accesses[i].buffer) != plan_.cleared.end())
          each.awaited |= std::uint64_t{1} << i;
    }
    return std::move(plan_);
  }

 private:
  static std::size_t at(int i) { return static_cast<std::size_t>(i); }

  void note(const PhaseAccess& access, int phase) {
    BufferUse& use = uses_[at(access.buffer)];
    if (use.first < 0) use.first = phase;
    use.last = phase;
    if (access.access == Access::read) return;
    use.can_be_awaited = use.can_be_awaited && access.access == Access::write && access.can_be_awaited;
    if (use.first_write < 0) use.first_write = phase;
    use.last_write = phase;
    ++use.writes;
  }

  /// Whether one phase, before all others that access the buffer, writes it, so that its elements can be awaited.
  bool is_written_once(int buffer) const {
    const BufferUse& use = uses_[at(buffer)];
    return awaits_ && is_temporary_[at(buffer)] && use.writes == 1 && use.first_write == use.first &&
           use.can_be_awaited;
  }

  /// Whether a phase since the last barrier wrote what the access reads.
  bool follows_write(const PhaseAccess& access) const {
    const auto before = since_barrier_.find(access.buffer);
    return access.access == Access::read && before != since_barrier_.end() && before->second != Access::read;
  }

  /// Whether the phase needs a barrier.
  bool conflicts(int phase) const {
    std::int64_t loads = 0;
    for (const PhaseAccess& access : phases_[at(phase)].of) {
      const auto before = since_barrier_.find(access.buffer);
      if (before == since_barrier_.end() || both(before->second, access.access) == Access::read) continue;
      if (!follows_write(access) || !access.can_be_awaited || !is_written_once(access.buffer)) return true;
      loads += access.loads;
    }
    return loads > most_loads;
  }

  /// Whether the phase is short, and all phases after it may run before it.
  bool may_be_late(int phase) const {
    return awaits_ && phases_[at(phase)].may_be_late &&
           std::ranges::all_of(phases_[at(phase)].of, [&](const PhaseAccess& access) {
             const BufferUse& use = uses_[at(access.buffer)];
             return (access.access == Access::read ? use.last_write : use.last) <= phase;
           });
  }

  bool run(int phase, bool follows_barrier) {
    if (follows_barrier) since_barrier_.clear();
    PlannedPhase planned{.phase = phase, .follows_barrier = follows_barrier};
    const std::vector<PhaseAccess>& accesses = phases_[at(phase)].of;
    for (std::size_t i = 0; i < accesses.size(); ++i) {
      if (!follows_write(accesses[i])) continue;
      planned.awaited |= std::uint64_t{1} << i;
      if (std::ranges::find(plan_.cleared, accesses[i].buffer) == plan_.cleared.end())
        plan_.cleared.push_back(accesses[i].buffer);
    }
    for (const PhaseAccess& access : accesses) {
      const auto [known, is_first] = since_barrier_.try_emplace(access.buffer, access.access);
      if (!is_first) known->second = both(known->second, access.access);
    }
    plan_.phases.push_back(planned);
    return true;
  }

  std::span<const PhaseAccesses> phases_;
  const std::vector<bool>& is_temporary_;
  bool awaits_;
  std::vector<BufferUse> uses_;  // by buffer
  std::map<int, Access> since_barrier_;
  PhasePlan plan_;
};

/// Returns a lower bound of an index, where the thread, the block and sizes count as 0.
std::int64_t least(const kernel::Kernel& kernel, kernel::ValueId id) {
  const kernel::Instruction& in = kernel::value(kernel, id);
  if (in.op == kernel::Opcode::constant) return in.integer;
  if (in.op != kernel::Opcode::scalar || in.scalar_op != ScalarOp::add) return 0;
  return least(kernel, in.args[0]) + least(kernel, in.args[1]);
}

/// Returns an upper bound of an index, where what is not known counts as a late size.
std::int64_t most(const kernel::Kernel& kernel, kernel::ValueId id) {
  const kernel::Instruction& in = kernel::value(kernel, id);
  if (in.op == kernel::Opcode::constant) return in.integer;
  if (in.op != kernel::Opcode::scalar || in.scalar_op != ScalarOp::min) return late_length;
  return std::min(most(kernel, in.args[0]), most(kernel, in.args[1]));
}

/// Returns how often a loop runs in a thread. Where it starts may depend on the thread.
std::int64_t trips_of(const kernel::Kernel& kernel, const kernel::Loop& loop) {
  if (loop.kind != kernel::LoopKind::serial && loop.kind != kernel::LoopKind::unroll) return 1;
  const std::int64_t step = std::max<std::int64_t>(least(kernel, loop.step), 1);
  return std::max<std::int64_t>((most(kernel, loop.hi) - least(kernel, loop.lo) + step - 1) / step, 0);
}

/// Counts the loads of a parameter that a thread executes one after the other. Loads overlap if nothing uses them
/// before the next one (codegen/cuda/emitter.cpp), as many as a thread has registers for.
class LoadCount {
 public:
  LoadCount(const kernel::Kernel& kernel, kernel::BufferId parameter) : kernel_(kernel), parameter_(parameter) {}

  std::int64_t in(const kernel::Block& statements) {
    std::int64_t loads = 0;
    for (const kernel::Statement& s : statements) {
      if (const auto* compute = std::get_if<kernel::Compute>(&s.node)) {
        note(compute->value, loads);
        continue;
      }
      end_group(loads);
      if (const auto* branch = std::get_if<kernel::Branch>(&s.node))
        loads += std::max(in(branch->then_block), in(branch->else_block));
      else if (const auto* loop = std::get_if<kernel::Loop>(&s.node))
        loads += trips_of(kernel_, *loop) * in(loop->body);
    }
    end_group(loads);
    return loads;
  }

 private:
  void note(kernel::ValueId id, std::int64_t& loads) {
    const kernel::Instruction& in = kernel::value(kernel_, id);
    const auto is_in_group = [&](kernel::ValueId arg) { return std::ranges::find(group_, arg) != group_.end(); };
    if (kernel::is_cast(in) && is_in_group(in.args[0])) return group_.push_back(id);
    if (is_in_group(in.mask) || std::ranges::any_of(in.args, is_in_group)) end_group(loads);
    if (in.buffer != parameter_) return;
    const std::int64_t bytes = in.type.lanes * static_cast<std::int64_t>(size_in_bytes(in.type.scalar));
    group_.push_back(id);
    in_group_ += (bytes + load_bytes - 1) / load_bytes;
  }
  void end_group(std::int64_t& loads) {
    loads += (in_group_ + most_overlapped - 1) / most_overlapped;
    in_group_ = 0;
    group_.clear();
  }

  const kernel::Kernel& kernel_;
  kernel::BufferId parameter_;
  std::vector<kernel::ValueId> group_;  // loads that nothing has used, and casts of them
  std::int64_t in_group_ = 0;           // vectors that they load
};

}  // namespace

std::int64_t nominal_size(const Dim& size, std::int64_t late) {
  DimBindings bound;
  for (const std::string& name : size.unknowns()) bound[name] = late;
  return size.evaluate(bound);
}

Access both(Access a, Access b) { return a == b ? a : Access::read_write; }

int PhasePlan::barriers() const {
  const auto before = std::ranges::count_if(phases, [](const PlannedPhase& each) { return each.follows_barrier; });
  return static_cast<int>(before) + (cleared.empty() ? 0 : 1);
}

PhasePlan plan_phases(std::span<const PhaseAccesses> phases, const std::vector<bool>& is_temporary) {
  PhasePlan with = Planner(phases, is_temporary, true).plan(), without = Planner(phases, is_temporary, false).plan();
  return with.barriers() < without.barriers() ? std::move(with) : std::move(without);
}

std::int64_t loads_of_thread(const kernel::Kernel& kernel, kernel::BufferId parameter) {
  return LoadCount(kernel, parameter).in(kernel.body);
}

}  // namespace lathe::gpu
