#include "passes/lowering/verify/verify_program.h"

#include <fmt/core.h>

#include <algorithm>
#include <map>
#include <set>

#include "ir/kernel/verify/parameter_use.h"
#include "ir/support/error.h"
#include "passes/lowering/verify/verify_accesses.h"
#include "passes/lowering/verify/verify_joined.h"
#include "passes/lowering/verify/verify_kept.h"
#include "passes/lowering/verify/verify_loops.h"
#include "passes/lowering/verify/written_buffers.h"
#include "passes/program/program_loops.h"
#include "passes/program/received_elements.h"
#include "passes/program/text/print_program.h"

namespace lathe {

using BufferKind = ProgramBuffer::Kind;

namespace {

class Verifier {
 public:
  explicit Verifier(const Program& program)
      : program_(program), written_(program), owner_(program.buffers.size(), -1) {}

  void run() {
    for (std::size_t b = 0; b < program_.buffers.size(); ++b) check_buffer(static_cast<int>(b));
    check_slots();
    if (const auto fault = find_loop_fault(program_)) fail(fault->label, fault->what);
    for (const kernel::Kernel& kernel : program_.kernels) uses_.push_back(kernel::parameter_use(kernel));
    for (launch_ = 0; launch_ < count(program_.launches); ++launch_) check_arguments();
    for (const Collective& collective : program_.collectives) {
      launch_ = -1;
      check_collective(collective);
    }
    launch_ = -1;
    if (const auto fault = find_joined_fault(program_)) fail("program_joined", *fault);
    if (const auto fault = find_kept_fault(program_)) {
      launch_ = fault->launch;
      fault->buffer < 0 ? fail("program_kept", fault->what) : fail("program_kept", fault->buffer, fault->what);
    }
    AccessVerifier accesses(program_, uses_);
    for (int first = 0, last = 0; first < count(program_.launches); first = last + 1) {
      last = end_of_region(first);
      written_.reach(first);
      for (launch_ = first; launch_ <= last; ++launch_) {
        pass_collectives(launch_);
        check_accesses();
      }
      check_declared(first, last);
      const auto fault = accesses.find_fault(first, last);
      if (!fault) continue;
      launch_ = fault->launch;
      fail("program_partial", fault->buffer, fault->what);
    }
    launch_ = -1;
    written_.reach(count(program_.launches));
    pass_collectives(count(program_.launches));
    check_results();
  }

 private:
  /// The latest value of a buffer, if it is written only for some sizes; whether the buffer had a value before.
  struct OneSided {
    SizeCondition condition;
    bool had_value = false;
  };

  template <class T>
  static int count(const std::vector<T>& all) {
    return static_cast<int>(all.size());
  }
  const ProgramBuffer& buffer(int b) const { return program_.buffers[b]; }
  const Launch& launch() const { return fold_ ? *fold_ : program_.launches[launch_]; }
  const kernel::Kernel& kernel() const { return program_.kernels[launch().kernel]; }
  static bool is_empty(const ProgramBuffer& buffer) { return buffer.elements == Dim(0); }
  const kernel::ParameterUse& use() const { return uses_[launch().kernel]; }

  [[noreturn]] void fail(std::string_view label, std::string_view what) const {
    std::string text = fmt::format("program @{}: {}", program_.name, what);
    if (launch_ >= 0) {
      const bool known = launch().kernel >= 0 && launch().kernel < count(program_.kernels);
      text += fmt::format(", in launch {} of {}", launch_, known ? kernel().name : "no kernel");
      if (!launch().info.ops.empty()) text += fmt::format(" ({})", launch().info.ops.back().to_string());
      if (const std::string at = launch().loc.to_string(); !at.empty()) text += " at " + at;
    }
    throw InternalError(fmt::format("{}  [{}]", text, label));
  }
  [[noreturn]] void fail(std::string_view label, int b, std::string_view what) const {
    const ProgramBuffer& info = buffer(b);
    fail(label, fmt::format("{} {}: {}[{}]: {}", name(info.kind), info.name, lathe::name(info.dtype),
                            info.elements.to_string(), what));
  }

  void check_buffer(int b) {
    const ProgramBuffer& info = buffer(b);
    if (info.slice.has_value() != (info.kind == BufferKind::slice))
      fail("program_slice", fmt::format("the {} {} is {} slice", name(info.kind), info.name,
                                        info.slice ? "part of another buffer, and no" : "part of no buffer, and a"));
    if (info.kind == BufferKind::constant && info.elements != Dim(static_cast<std::int64_t>(info.data.size())))
      fail("program_constant", b, fmt::format("it has {} elements", info.data.size()));
  }

  void check_slots() {
    std::set<int> taken;
    const auto check = [&](const std::vector<Program::Slot>& slots, BufferKind kind) {
      for (const Program::Slot& slot : slots) {
        if (slot.buffer < 0 || slot.buffer >= count(program_.buffers))
          fail("program_range", fmt::format("{} {} has the buffer {}", name(kind), slot.name, slot.buffer));
        const ProgramBuffer& info = buffer(slot.buffer);
        if (info.kind != kind || info.dtype != slot.dtype || info.elements != slot.shape.numel())
          fail("program_slot", slot.buffer, fmt::format("it is the {} {}", name(kind), slot.name));
        if (!taken.insert(slot.buffer).second)
          fail("program_slot", slot.buffer, fmt::format("the {} {} is another one too", name(kind), slot.name));
      }
    };
    check(program_.inputs, BufferKind::input);
    check(program_.states, BufferKind::state);
    check(program_.outputs, BufferKind::output);
  }

  void check_arguments() const {
    const Launch& l = launch();
    if (l.kernel < 0 || l.kernel >= count(program_.kernels))
      fail("program_range", fmt::format("there is no kernel {}", l.kernel));
    for (const int b : l.buffers)
      if (b < 0 || b >= count(program_.buffers)) fail("program_range", fmt::format("there is no buffer {}", b));
    if (count(l.buffers) != kernel().parameter_count() || l.dims.size() != kernel().dims.size())
      fail("program_arguments", fmt::format("{} buffers and {} dims for {} and {}", l.buffers.size(), l.dims.size(),
                                            kernel().parameter_count(), kernel().dims.size()));
    if (use().largest_code > count(l.checks))
      fail("program_arguments", fmt::format("{} messages for check {}", l.checks.size(), use().largest_code));
    for (const RowsRead& read : l.rows_read)
      if (read.parameter < 0 || read.parameter >= count(l.buffers))
        fail("program_arguments", fmt::format("rows of parameter {}, of {}", read.parameter, l.buffers.size()));
    std::map<int, std::size_t> seen;
    for (std::size_t p = 0; p < l.buffers.size(); ++p) {
      const kernel::BufferInfo& parameter = kernel().buffers[p];
      if (buffer(l.buffers[p]).dtype != parameter.dtype)
        fail("program_dtype", l.buffers[p], fmt::format("the parameter {} is {}", p, lathe::name(parameter.dtype)));
      check_slice(p);
      const auto [other, is_new] = seen.emplace(storage_of(program_, l.buffers[p]), p);
      if (!is_new && (parameter.noalias || kernel().buffers[other->second].noalias) &&
          (use().stored[p] || use().stored[other->second]))
        fail("program_alias", l.buffers[p], fmt::format("it is the parameters {} and {}", other->second, p));
    }
  }

  /// Checks that a launch may access a slice, and that its kernel needs no alignment that the slice does not have.
  void check_slice(std::size_t p) const {
    const int b = launch().buffers[p];
    if (!buffer(b).slice) return;
    const ProgramLoop& loop = program_.loops[buffer(b).slice->loop];
    if (fold_ || !loop.contains(launch_))
      fail("program_slice", b, fmt::format("a launch outside of the loop {} accesses it", loop.name));
    if (const int bytes = use().alignment[p]; !starts_at_multiples(program_, b, bytes))
      fail("program_alignment", b, fmt::format("the parameter {} must start at a multiple of {} bytes", p, bytes));
  }

  [[noreturn]] void fail(const Collective::Part& part, int b, std::string_view what) const {
    fail("program_collective", b,
         fmt::format("{} in the collective {} at {}", what, part.op.to_string(), part.loc.to_string()));
  }

  void check_collective(const Collective& collective) {
    const bool in_order = &collective == program_.collectives.data() || (&collective)[-1].start <= collective.start;
    if (!in_order || collective.start < 0 || collective.start > collective.done ||
        collective.done > count(program_.launches))
      fail("program_collective", fmt::format("a collective over {} goes from launch {} to {}", collective.axis,
                                             collective.start, collective.done));
    for (const int at : {collective.start, collective.done})
      if (const ProgramLoop* loop = loop_around(program_, at))
        fail("program_collective",
             fmt::format("a collective over {} is inside the loop {}", collective.axis, loop->name));
    const Dim ranks(collective.ranks);
    for (const Collective::Part& part : collective.parts) {
      for (const int b : {part.from, part.to})
        if (b < 0 || b >= count(program_.buffers)) fail("program_range", fmt::format("there is no buffer {}", b));
      for_buffers(collective, [&](int b, bool) {
        if (buffer(b).slice) fail(part, b, "it is a slice");
      });
      const Dim gathered =
          part.elements.unnamed() * (collective.kind == Collective::Kind::all_gather ? ranks : Dim(1));
      const Dim given =
          buffer(part.to).elements.unnamed() * (collective.kind == Collective::Kind::reduce_scatter ? ranks : Dim(1));
      const bool is_in_place = collective.kind == Collective::Kind::all_gather && part.from == part.to;
      if (!is_in_place && buffer(part.from).elements != part.elements) fail(part, part.from, "it has other elements");
      if (gathered != given) fail(part, part.to, "it has other elements");
      if (buffer(part.from).dtype != buffer(part.to).dtype) fail(part, part.to, "it has another dtype");
      if (buffer(part.to).kind == BufferKind::input || buffer(part.to).kind == BufferKind::constant)
        fail(part, part.to, "it is written");
      if (!part.fold) continue;
      if (buffer(part.received).elements != received_elements(part, collective.ranks))
        fail(part, part.received, "its number of elements differs from the received one");
      fold_ = &*part.fold;
      check_arguments();
      fold_ = nullptr;
    }
    for (int l = collective.start; l < collective.done; ++l) check_concurrent(collective, l);
  }

  /// Checks a launch that may overlap with the collective.
  void check_concurrent(const Collective& collective, int l) {
    launch_ = l;
    for (std::size_t p = 0; p < launch().buffers.size(); ++p)
      for (const Collective::Part& part : collective.parts) {
        const int b = storage_of(program_, launch().buffers[p]);
        const bool own = b == part.to || b == part.received || b == part.folded;
        if (own || (b == part.from && use().stored[p])) fail(part, b, "a concurrent launch accesses it");
      }
  }

  /// Completes collectives that end before launch l. Checks that collectives that start there have their inputs.
  void pass_collectives(int l) {
    for (const Collective& collective : program_.collectives)
      for (const Collective::Part& part : collective.parts) {
        if (collective.start == l && !written_.has_value(part.from)) fail(part, part.from, "nothing wrote it before");
        if (collective.done == l) written_.add(part.to);
      }
  }

  /// Returns the last launch of the region that starts at launch `first`.
  int end_of_region(int first) const {
    int last = first;
    const auto region = [&](int l) { return program_.launches[l].info.region; };
    const auto is_end = [&](int l) {
      return std::ranges::any_of(program_.loops, [&](const auto& loop) { return loop.first == l || loop.end == l; });
    };
    while (last + 1 < count(program_.launches) && region(last + 1) == region(first) && !is_end(last + 1)) ++last;
    return last;
  }

  void check_accesses() {
    for (std::size_t p = 0; p < launch().buffers.size(); ++p) check_access(p);
    for (std::size_t p = 0; p < launch().buffers.size(); ++p) {
      if (!use().stored[p]) continue;
      note_condition(launch().buffers[p]);
      written_.add(launch().buffers[p]);
    }
  }

  /// Notes that a buffer is written only for some sizes, until a launch writes it for the others.
  void note_condition(int b) {
    const std::optional<SizeCondition>& now = launch().condition;
    const auto before = one_sided_.find(b);
    const bool completes = now && before != one_sided_.end() && before->second.condition == now->negated();
    if (now && !completes) one_sided_.try_emplace(b, *now, written_.has_value(b));
    if (!now || completes) one_sided_.erase(b);
  }

  /// Whether the current launch may read a buffer that is written only for some sizes. For the others, it still has
  /// the earlier value, such as that of a sum in place.
  bool may_read(const OneSided& written) const {
    const std::optional<SizeCondition>& now = launch().condition;
    return now && (*now == written.condition || (*now == written.condition.negated() && written.had_value));
  }

  /// Checks that each buffer that the region's launches declare as fully written is written by one of them.
  void check_declared(int first, int last) {
    std::map<int, int> declared;  // by buffer: the last launch that declares it
    std::set<int> stored;
    for (launch_ = first; launch_ <= last; ++launch_)
      for (std::size_t p = 0; p < launch().buffers.size(); ++p) {
        const bool all = !launch().leaves_remainder(static_cast<int>(p));  // a partial write may be empty
        if (kernel().buffers[p].access != kernel::Access::read && all) declared[launch().buffers[p]] = launch_;
        if (use().stored[p]) stored.insert(launch().buffers[p]);
      }
    for (const auto& [b, at] : declared) {
      launch_ = at;
      if (!stored.contains(b) && !is_empty(buffer(b)))
        fail("program_unwritten", b, "it should be written, and is not");
    }
  }

  void check_access(std::size_t p) {
    const int b = launch().buffers[p];
    const BufferKind kind = buffer(storage_of(program_, b)).kind;
    const bool loads = use().loaded[p], stores = use().stored[p];
    if (kind == BufferKind::scratch) {
      int& owner = owner_[b];
      if (loads && !stores) fail("program_scratch", b, "it is read and not written");
      if (owner >= 0 && owner != launch_) fail("program_scratch", b, fmt::format("launch {} has it too", owner));
      owner = launch_;
      return;
    }
    if (stores && (kind == BufferKind::input || kind == BufferKind::constant))
      fail("program_constant", b, "it is written");
    if (const auto at = one_sided_.find(b); loads && at != one_sided_.end() && !may_read(at->second))
      fail("program_unwritten", b, "it is written only for some sizes, and read for others");
    if (written_.has_value(b)) return;
    if (loads && !stores) fail("program_unwritten", b, "it is read and nothing wrote it before");
    if (launch().leaves_remainder(static_cast<int>(p)))
      fail("program_unwritten", b, "a part is written and nothing wrote the rest before");
  }

  void check_results() const {
    for (const auto* slots : {&program_.outputs, &program_.states})
      for (const Program::Slot& slot : *slots)
        if (one_sided_.contains(slot.buffer))
          fail("program_unwritten", slot.buffer, "it is written only for some sizes");
    for (const Program::Slot& slot : program_.outputs)
      if (!written_.contains(slot.buffer)) fail("program_unwritten", slot.buffer, "nothing writes it");
    for (const Program::Slot& slot : program_.states)
      if (slot.is_updated && !written_.contains(slot.buffer))
        fail("program_unwritten", slot.buffer, "nothing writes its new value");
  }

  const Program& program_;
  std::vector<kernel::ParameterUse> uses_;  // by kernel
  WrittenBuffers written_;
  std::map<int, OneSided> one_sided_;  // by buffer
  std::vector<int> owner_;             // by buffer: for scratch, the launch that owns it
  int launch_ = -1;                    // the launch being checked
  const Launch* fold_ = nullptr;       // the reduction launch of a collective, checked instead of `launch_`
};

}  // namespace

void verify_program(const Program& program) { Verifier(program).run(); }

}  // namespace lathe
