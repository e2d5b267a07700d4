#include "ir/kernel/intrinsics/gpu/grid/grid_phases.h"

#include <algorithm>
#include <limits>

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
    return record == &run_phase_record || record == &grid_barrier_record || record == &grid_prefetch_record;
  };
  rules.require(std::ranges::all_of(rules.kernel.body, belongs) && !rules.kernel.phase_kernels.empty(),
                "phase_context", "{} in a kernel that has other statements, or no kernels of phases", what);
  for (const auto& kernel : rules.kernel.phase_kernels)
    rules.require(can_be_phase(*kernel), "phase_context", "the kernel {} cannot be run by phases", kernel->name);
}

/// Returns whether both access a buffer that one of them writes.
bool conflict(const KernelPhase& a, const KernelPhase& b) {
  for (const IntrinsicBuffer& of_a : a.buffers)
    for (const IntrinsicBuffer& of_b : b.buffers)
      if (of_a.id == of_b.id && (writes(of_a) || writes(of_b))) return true;
  return false;
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
    {.name = "run_phase", .args = any_number, .buffers = any_number, .attributes = 2, .runs_kernel = true});

Instruction RunPhase::instruction() const {
  return intrinsic_instruction(
      {.record = &run_phase_record, .buffers = phase.buffers, .attributes = {phase.kernel, phase.code}}, phase.dims);
}

void RunPhase::verify(const IntrinsicRules& rules) const {
  verify_context(rules, "a run_phase");
  verify_arguments(rules, phase);
  std::vector<KernelPhase> since;  // the last barrier
  for (const Statement& s : rules.kernel.body) {
    const Instruction* in = intrinsic_operation(rules.kernel, s);
    if (in == &rules.in) break;
    if (record_of(*in) == &grid_barrier_record) since.clear();
    if (record_of(*in) == &run_phase_record) since.push_back(phase_of(*in));
  }
  for (const KernelPhase& other : since)
    rules.require(!conflict(phase, other), "grid_race",
                  "a phase of {} accesses what a phase of {} writes, or writes what that one accesses, without a "
                  "grid_barrier between them",
                  rules.kernel.phase_kernels[phase.kernel]->name, rules.kernel.phase_kernels[other.kernel]->name);
}

std::string RunPhase::text(const IntrinsicText& text) const {
  std::string result = fmt::format("run_phase {}(", phase.kernel);
  for (std::size_t i = 0; i < phase.buffers.size(); ++i)
    result += fmt::format("{}{} {}", i ? ", " : "", name(phase.buffers[i].access), text.buffer(phase.buffers[i].id));
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
  const Block& body = rules.kernel.body;
  const auto own = std::ranges::find_if(
      body, [&](const Statement& s) { return intrinsic_operation(rules.kernel, s) == &rules.in; });
  const IntrinsicRecord* next = own + 1 < body.end() ? record_of(rules.kernel, own[1]) : nullptr;
  rules.require(next == &grid_prefetch_record || next == &grid_barrier_record, "grid_prefetch",
                "a grid_prefetch that is not before a grid_barrier");
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

namespace {
constexpr const IntrinsicRecord* phase_records[] = {&run_phase_record, &grid_barrier_record, &grid_prefetch_record};
}  // namespace
extern const IntrinsicFamily phase_intrinsics;
constinit const IntrinsicFamily phase_intrinsics{.operations = phase_records};

}  // namespace lathe::kernel
