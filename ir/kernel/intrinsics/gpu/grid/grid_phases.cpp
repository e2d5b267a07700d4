#include "ir/kernel/intrinsics/gpu/grid/grid_phases.h"

#include <algorithm>
#include <limits>
#include <map>
#include <set>

#include "ir/kernel/intrinsics/intrinsic_families.h"
#include "ir/kernel/intrinsics/run.h"

namespace lathe::kernel {

namespace {

constexpr OperandCount any_number{0, std::numeric_limits<int>::max()};

bool writes(const IntrinsicBuffer& buffer) { return buffer.access != Access::read; }

/// Throws [phase_context] unless the kernel consists of operations of this file, outside of loops.
void verify_context(const IntrinsicRules& rules, std::string_view what) {
  const auto belongs = [&](const Statement& s) {
    const IntrinsicRecord* record = record_of(rules.kernel, s);
    return record == &run_phase_record || record == &grid_barrier_record || is_grid_prefetch(record) ||
           record == &grid_clear_record;
  };
  rules.require(std::ranges::all_of(rules.kernel.body, belongs) && !rules.kernel.phase_kernels.empty(),
                "phase_context", "{} in a kernel that has other statements, or no kernels of phases", what);
  for (const auto& kernel : rules.kernel.phase_kernels)
    rules.require(can_be_phase(*kernel), "phase_context", "the kernel {} cannot be run by phases", kernel->name);
}

/// Returns whether both access a buffer that one of them writes, and the later one does not await it.
bool conflict(const KernelPhase& earlier, const KernelPhase& later) {
  for (std::size_t i = 0; i < earlier.buffers.size(); ++i)
    for (std::size_t j = 0; j < later.buffers.size(); ++j) {
      const IntrinsicBuffer &before = earlier.buffers[i], &after = later.buffers[j];
      const bool is_awaited = earlier.awaits(i) && later.awaits(j) && writes(before) && !writes(after);
      if (before.id == after.id && (writes(before) || writes(after)) && !is_awaited) return true;
    }
  return false;
}

bool accesses(const KernelPhase& phase, BufferId buffer) {
  return std::ranges::any_of(phase.buffers, [&](const IntrinsicBuffer& used) { return used.id == buffer; });
}

/// The phases before an operation of a kernel of phases.
struct Before {
  std::vector<KernelPhase> all, since_barrier;
  std::map<BufferId, std::size_t> cleared{};  ///< before a barrier: the number of phases before the GridClear
  std::set<BufferId> clearing{};              ///< since the barrier

  Before(const Kernel& kernel, const Instruction& operation) {
    for (const Statement& s : kernel.body) {
      const Instruction* in = intrinsic_operation(kernel, s);
      if (in == &operation) break;
      if (record_of(*in) == &grid_barrier_record) {
        for (const BufferId id : clearing) cleared[id] = all.size();
        clearing.clear();
        since_barrier.clear();
      }
      if (record_of(*in) == &grid_clear_record) clearing.insert(GridClear::of(*in).cleared);
      if (record_of(*in) != &run_phase_record) continue;
      all.push_back(phase_of(*in));
      since_barrier.push_back(phase_of(*in));
    }
  }

  /// Returns the phases that have accessed the buffer since it was cleared, and before that if it was not.
  std::vector<const KernelPhase*> users(BufferId buffer) const {
    const auto at = cleared.find(buffer);
    std::vector<const KernelPhase*> found;
    for (std::size_t p = at == cleared.end() ? 0 : at->second; p < all.size(); ++p)
      if (accesses(all[p], buffer)) found.push_back(&all[p]);
    return found;
  }
};

/// Requires that exactly one phase, an earlier one, writes the awaited elements that a phase loads, and that nothing
/// has accessed those that it writes since they were cleared.
void verify_awaited(const IntrinsicRules& rules, const KernelPhase& phase, const Before& before) {
  rules.require(phase.awaited >> std::min<std::size_t>(phase.buffers.size(), KernelPhase::most_awaited) == 0,
                "phase_awaits", "a phase awaits a parameter that it does not have");
  for (std::size_t p = 0; p < phase.buffers.size(); ++p) {
    if (!phase.awaits(p)) continue;
    const BufferId id = phase.buffers[p].id;
    const std::string& name = rules.buffer(id).name;
    const Kernel& kernel = *rules.kernel.phase_kernels[phase.kernel];
    rules.require(can_be_awaited(kernel, p), "phase_awaits", "{} cannot await its parameter {}", kernel.name, p);
    rules.require(before.cleared.contains(id), "phase_awaits",
                  "a phase awaits {}, which was not cleared before a grid_barrier", name);
    const std::vector<const KernelPhase*> users = before.users(id);
    const auto wrote = [&](const KernelPhase* user) {
      for (std::size_t q = 0; q < user->buffers.size(); ++q)
        if (user->buffers[q].id == id && writes(user->buffers[q])) return user->awaits(q);
      return false;
    };
    if (writes(phase.buffers[p]))
      rules.require(users.empty(), "phase_awaits", "a phase writes {}, which others accessed after it was cleared",
                    name);
    else
      rules.require(!users.empty() && wrote(users.front()), "phase_awaits",
                    "a phase awaits {}, which no earlier phase writes for waiting phases", name);
  }
}

void verify_arguments(const IntrinsicRules& rules, const KernelPhase& phase) {
  const auto count = static_cast<int>(rules.kernel.phase_kernels.size());
  rules.require(phase.kernel >= 0 && phase.kernel < count, "phase_arguments", "there is no kernel {} of phases",
                phase.kernel);
  const Kernel& kernel = *rules.kernel.phase_kernels[phase.kernel];
  const auto wanted = static_cast<std::size_t>(kernel.parameter_count());
  rules.require(phase.buffers.size() == wanted && phase.dims.size() == kernel.dims.size() && phase.code >= 0,
                "phase_arguments", "a phase of {} with {} buffers, {} dims and checks after {}", kernel.name,
                phase.buffers.size(), phase.dims.size(), phase.code);
  for (std::size_t p = 0; p < wanted; ++p) {
    const BufferInfo &given = rules.buffer(phase.buffers[p].id), &parameter = kernel.buffers[p];
    rules.require(given.space == Space::parameter && given.dtype == parameter.dtype &&
                      phase.buffers[p].access == parameter.access && (parameter.unaligned || !given.unaligned),
                  "phase_arguments", "{} is passed as the parameter {} of {}", given.name, p, kernel.name);
    for (std::size_t other = 0; other < p; ++other) {
      const bool same = phase.buffers[other].id == phase.buffers[p].id,
                 is_written = writes(phase.buffers[other]) || writes(phase.buffers[p]);
      rules.require(!same || !is_written || !(parameter.noalias || kernel.buffers[other].noalias), "phase_arguments",
                    "{} is passed as the parameters {} and {} of {}", given.name, other, p, kernel.name);
    }
  }
  for (const ValueId id : phase.dims) {
    rules.want(id, {i64, 1}, "a dim of a phase");
    const Opcode op = rules.value(id).op;
    rules.require(op == Opcode::constant || op == Opcode::dim, "phase_arguments",
                  "a dim of a phase is neither a number nor a dim");
  }
}

}  // namespace

constinit const IntrinsicRecord run_phase_record = intrinsic_record<RunPhase>(
    {.name = "run_phase", .args = any_number, .buffers = any_number, .attributes = 3, .runs_kernel = true});

Instruction RunPhase::instruction() const {
  return intrinsic_instruction({.record = &run_phase_record,
                                .buffers = phase.buffers,
                                .attributes = {phase.kernel, phase.code, static_cast<std::int64_t>(phase.awaited)}},
                               phase.dims);
}

void RunPhase::verify(const IntrinsicRules& rules) const {
  verify_context(rules, "a run_phase");
  verify_arguments(rules, phase);
  const Before before(rules.kernel, rules.in);
  verify_awaited(rules, phase, before);
  for (const BufferId cleared : before.clearing)
    rules.require(!accesses(phase, cleared), "grid_race", "a phase accesses {} and no grid_barrier follows its clear",
                  rules.buffer(cleared).name);
  for (const KernelPhase& other : before.since_barrier)
    rules.require(!conflict(other, phase), "grid_race",
                  "a phase of {} accesses what a phase of {} writes, or writes what that one accesses, without a "
                  "grid_barrier between them",
                  rules.kernel.phase_kernels[phase.kernel]->name, rules.kernel.phase_kernels[other.kernel]->name);
}

std::string RunPhase::text(const IntrinsicText& text) const {
  std::string result = fmt::format("run_phase {}(", phase.kernel);
  for (std::size_t i = 0; i < phase.buffers.size(); ++i)
    result += fmt::format("{}{}{} {}", i ? ", " : "", name(phase.buffers[i].access),
                          phase.awaits(i) ? " awaited" : "", text.buffer(phase.buffers[i].id));
  for (std::size_t i = 0; i < phase.dims.size(); ++i) result += (i ? ", " : "; ") + text.value(phase.dims[i]);
  result += ")";
  if (phase.code != 0) result += fmt::format(" checks after {}", phase.code);
  return result;
}

RunPhase RunPhase::parse(IntrinsicReader& in) {
  RunPhase read{{.kernel = in.number()}};
  in.expect("(");
  const auto buffer = [&] {
    Access access = Access::read;
    if (in.accept("write"))
      access = Access::write;
    else if (in.accept("readwrite"))
      access = Access::read_write;
    else
      in.expect("read");
    const std::size_t parameter = read.phase.buffers.size();
    if (parameter < KernelPhase::most_awaited && in.accept("awaited"))
      read.phase.awaited |= std::uint64_t{1} << parameter;
    read.phase.buffers.push_back({in.buffer(), access});
  };
  bool has_dims = in.accept(";");
  if (!has_dims && !in.accept(")")) {
    in.list(buffer);
    has_dims = in.accept(";");
    if (!has_dims) in.expect(")");
  }
  if (has_dims) {
    in.list([&] { read.phase.dims.push_back(in.value()); });
    in.expect(")");
  }
  if (in.accept("checks")) {
    in.expect("after");
    read.phase.code = in.number();
  }
  return read;
}

void RunPhase::interpret(const IntrinsicRun& run, ValueId, Thread& thread) const {
  std::vector<Target> targets;
  for (const IntrinsicBuffer& buffer : phase.buffers) targets.push_back(run.target(buffer.id, thread));
  run.run_kernel(*run.kernel().phase_kernels[phase.kernel], targets, run.integers(phase.dims, thread), phase.code);
}

constinit const IntrinsicRecord grid_barrier_record = intrinsic_record<GridBarrier>({.name = "grid_barrier"});

Instruction GridBarrier::instruction() const { return intrinsic_instruction({.record = &grid_barrier_record}, {}); }

void GridBarrier::verify(const IntrinsicRules& rules) const { verify_context(rules, "a grid_barrier"); }

std::string GridBarrier::text(const IntrinsicText&) const { return "grid_barrier"; }
GridBarrier GridBarrier::parse(IntrinsicReader&) { return {}; }
void GridBarrier::interpret(const IntrinsicRun&, ValueId, Thread&) const {}

namespace {

/// Throws [grid_prefetch] unless a grid_barrier or a phase follows, after other prefetches at most.
void verify_before_wait(const IntrinsicRules& rules) {
  const Block& body = rules.kernel.body;
  const auto own = std::ranges::find_if(
      body, [&](const Statement& s) { return intrinsic_operation(rules.kernel, s) == &rules.in; });
  const IntrinsicRecord* next = own + 1 < body.end() ? record_of(rules.kernel, own[1]) : nullptr;
  rules.require(is_grid_prefetch(next) || next == &grid_barrier_record || next == &run_phase_record, "grid_prefetch",
                "a {} that is not before a grid_barrier or a phase", record_of(rules.in)->name);
}

}  // namespace

constinit const IntrinsicRecord grid_prefetch_record =
    intrinsic_record<GridPrefetch>({.name = "grid_prefetch", .args = {2, 2}, .buffers = {1, 1}});

Instruction GridPrefetch::instruction() const {
  return intrinsic_instruction({.record = &grid_prefetch_record, .buffers = {{from, Access::read}}}, {first, count});
}

void GridPrefetch::verify(const IntrinsicRules& rules) const {
  verify_context(rules, "a grid_prefetch");
  const BufferInfo& buffer = rules.buffer(from);
  rules.require(buffer.space == Space::parameter && buffer.access == Access::read, "grid_prefetch",
                "a grid_prefetch of {}, which is no parameter that is only read", buffer.name);
  verify_before_wait(rules);
  for (const ValueId id : {first, count}) {
    rules.want(id, {i64, 1}, "a number of a grid_prefetch");
    rules.require(rules.value(id).op == Opcode::constant && rules.value(id).integer >= 0, "grid_prefetch",
                  "a grid_prefetch of elements that are not numbers");
  }
}

std::string GridPrefetch::text(const IntrinsicText& text) const {
  return fmt::format("grid_prefetch {}[{}] count {}", text.buffer(from), text.value(first), text.value(count));
}

GridPrefetch GridPrefetch::parse(IntrinsicReader& in) {
  GridPrefetch made{.from = in.buffer()};
  made.first = in.element();
  in.expect("count");
  made.count = in.value();
  return made;
}

void GridPrefetch::interpret(const IntrinsicRun&, ValueId, Thread&) const {}

constinit const IntrinsicRecord grid_prefetch_rows_record = intrinsic_record<GridPrefetchRows>(
    {.name = "grid_prefetch_rows", .args = {4, 4}, .buffers = {1, 1}, .attributes = 1});

Instruction GridPrefetchRows::instruction() const {
  return intrinsic_instruction(
      {.record = &grid_prefetch_rows_record, .buffers = {{from, Access::read}}, .attributes = {most}},
      {first, count, rows, stride});
}

void GridPrefetchRows::verify(const IntrinsicRules& rules) const {
  verify_context(rules, "a grid_prefetch_rows");
  const BufferInfo& buffer = rules.buffer(from);
  rules.require(buffer.space == Space::parameter, "grid_prefetch",
                "a grid_prefetch_rows of {}, which is no parameter", buffer.name);
  verify_before_wait(rules);
  for (const ValueId id : {first, count, rows, stride}) {
    rules.want(id, {i64, 1}, "a number of a grid_prefetch_rows");
    const Instruction& in = rules.value(id);
    rules.require(in.op == Opcode::dim || (in.op == Opcode::constant && in.integer >= 0), "grid_prefetch",
                  "a grid_prefetch_rows of elements that are neither numbers nor dims");
  }
  rules.require(most > 0, "grid_prefetch", "a grid_prefetch_rows of at most {} elements", most);
}

std::string GridPrefetchRows::text(const IntrinsicText& text) const {
  return fmt::format("grid_prefetch_rows {}[{}] count {} rows {} every {} most {}", text.buffer(from),
                     text.value(first), text.value(count), text.value(rows), text.value(stride), most);
}

GridPrefetchRows GridPrefetchRows::parse(IntrinsicReader& in) {
  GridPrefetchRows made{.from = in.buffer()};
  made.first = in.element();
  in.expect("count");
  made.count = in.value();
  in.expect("rows");
  made.rows = in.value();
  in.expect("every");
  made.stride = in.value();
  in.expect("most");
  made.most = in.number();
  return made;
}

void GridPrefetchRows::interpret(const IntrinsicRun&, ValueId, Thread&) const {}

constinit const IntrinsicRecord grid_clear_record =
    intrinsic_record<GridClear>({.name = "grid_clear", .args = {1, 1}, .buffers = {1, 1}});

Instruction GridClear::instruction() const {
  return intrinsic_instruction({.record = &grid_clear_record, .buffers = {{cleared, Access::write}}}, {count});
}

void GridClear::verify(const IntrinsicRules& rules) const {
  verify_context(rules, "a grid_clear");
  const BufferInfo& buffer = rules.buffer(cleared);
  rules.require(buffer.space == Space::parameter && is_float(buffer.dtype) && !buffer.unaligned, "phase_awaits",
                "a grid_clear of {}, which is no aligned parameter of floats", buffer.name);
  rules.want(count, {i64, 1}, "the number of cleared elements");
  const Opcode op = rules.value(count).op;
  rules.require(op == Opcode::constant || op == Opcode::dim, "phase_awaits",
                "a grid_clear of elements whose number is neither a number nor a dim");
  for (const KernelPhase& phase : Before(rules.kernel, rules.in).since_barrier)
    rules.require(!accesses(phase, cleared), "grid_race",
                  "a grid_clear of {}, which a phase since the last "
                  "grid_barrier accesses",
                  buffer.name);
}

std::string GridClear::text(const IntrinsicText& text) const {
  return fmt::format("grid_clear {} count {}", text.buffer(cleared), text.value(count));
}

GridClear GridClear::parse(IntrinsicReader& in) {
  GridClear made{.cleared = in.buffer()};
  in.expect("count");
  made.count = in.value();
  return made;
}

void GridClear::interpret(const IntrinsicRun& run, ValueId, Thread& thread) const {
  const Target to = run.target(cleared, thread);
  const Actor actor = run.actor(thread);
  for (std::int64_t i = 0; i < run.integer(count, thread); ++i)
    to.store(i, {.real = std::numeric_limits<double>::quiet_NaN()}, actor);
}

namespace {
constexpr const IntrinsicRecord* phase_records[] = {&run_phase_record, &grid_barrier_record, &grid_prefetch_record,
                                                    &grid_prefetch_rows_record, &grid_clear_record};
}  // namespace
extern const IntrinsicFamily phase_intrinsics;
constinit const IntrinsicFamily phase_intrinsics{.operations = phase_records};

}  // namespace lathe::kernel
