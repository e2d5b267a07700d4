#include "passes/lowering/verify/verify_joined.h"

#include <fmt/core.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "ir/kernel/phases.h"
#include "ir/kernel/printer.h"

namespace lathe {

namespace {

class JoinedVerifier {
 public:
  explicit JoinedVerifier(const Program& program) : program_(program) {}

  std::optional<std::string> find_fault() {
    int free = 0;
    for (const JoinedLaunches& joined : program_.joined) {
      const int end = static_cast<int>(program_.launches.size());
      if (joined.first < free || joined.end <= joined.first || joined.end > end)
        return fmt::format("launches {} to {} are joined, of {}", joined.first, joined.end - 1, end);
      free = joined.end;
      if (!program_.collectives.empty()) return "launches of a program with collectives are joined";
      if (auto fault = fault_of(joined)) return fault;
    }
    return std::nullopt;
  }

 private:
  std::optional<std::string> fault_of(const JoinedLaunches& joined) {
    const Launch& all = joined.launch;
    if (all.kernel < 0 || all.kernel >= std::ssize(program_.kernels)) return "joined launches have no kernel";
    const kernel::Kernel& kernel = program_.kernels[all.kernel];
    if (std::ssize(all.buffers) != kernel.parameter_count() || all.dims.size() != kernel.dims.size())
      return fmt::format("{} buffers and {} dims are given to {}", all.buffers.size(), all.dims.size(), kernel.name);
    const std::vector<kernel::KernelPhase> phases = kernel::phases_of(kernel);
    if (std::ssize(phases) != joined.end - joined.first)
      return fmt::format("{} has {} phases for the launches {} to {}", kernel.name, phases.size(), joined.first,
                         joined.end - 1);
    return fault_of_phases(joined, phases);
  }

  /// Finds the launch of each phase. Late phases run after those of later launches, which must not depend on them.
  std::optional<std::string> fault_of_phases(const JoinedLaunches& joined,
                                             const std::vector<kernel::KernelPhase>& phases) {
    const std::string& name = program_.kernels[joined.launch.kernel].name;
    std::vector<int> runs(phases.size(), -1);  // by phase: the launch
    std::int64_t code = 0;
    for (int l = joined.first; l < joined.end; ++l) {
      const Launch& launch = program_.launches[l];
      if (!runs_once(l)) return fmt::format("launch {} is joined, and has a condition, a slice or a loop", l);
      std::size_t p = 0;
      while (p < phases.size() && (runs[p] >= 0 || !is_phase_of(joined.launch, phases[p], launch, code))) ++p;
      if (p == phases.size()) return fmt::format("no phase of {} is launch {}", name, l);
      runs[p] = l;
      for (std::size_t other = p + 1; other < phases.size(); ++other)
        if (runs[other] >= 0 && depend(phases[p], phases[other]))
          return fmt::format("launch {} is a phase of {} before launch {}", l, name, runs[other]);
      code += static_cast<std::int64_t>(launch.checks.size());
    }
    return std::nullopt;
  }

  bool is_phase_of(const Launch& joined, const kernel::KernelPhase& phase, const Launch& launch, std::int64_t code) {
    return phase.code == code && is_same_kernel(joined.kernel, phase.kernel, launch.kernel) &&
           has_same_arguments(joined, phase, launch);
  }

  static bool depend(const kernel::KernelPhase& a, const kernel::KernelPhase& b) {
    return std::ranges::any_of(a.buffers, [&](const kernel::IntrinsicBuffer& of_a) {
      return std::ranges::any_of(b.buffers, [&](const kernel::IntrinsicBuffer& of_b) {
        return of_a.id == of_b.id && (of_a.access != kernel::Access::read || of_b.access != kernel::Access::read);
      });
    });
  }

  bool runs_once(int l) const {
    const Launch& launch = program_.launches[l];
    return !launch.condition &&
           std::ranges::none_of(program_.loops, [&](const ProgramLoop& loop) { return loop.contains(l); }) &&
           std::ranges::none_of(launch.buffers, [&](int b) { return program_.buffers[b].slice.has_value(); });
  }

  bool is_same_kernel(int joined, int phase, int other) {
    if (!same_.contains({joined, phase, other}) &&
        kernel::print(*program_.kernels[joined].phase_kernels[phase]) == kernel::print(program_.kernels[other]))
      same_.insert({joined, phase, other});
    return same_.contains({joined, phase, other});
  }

  bool has_same_arguments(const Launch& joined, const kernel::KernelPhase& phase, const Launch& launch) const {
    const auto same_buffer = [&](const kernel::IntrinsicBuffer& given, int buffer) {
      return joined.buffers[given.id] == buffer;
    };
    const auto dims = phase.dims_given(
        program_.kernels[joined.kernel], [&](std::int64_t dim) { return joined.dims[static_cast<std::size_t>(dim)]; },
        [](std::int64_t number) { return Dim(number); });
    return std::ranges::equal(phase.buffers, launch.buffers, same_buffer) && std::ranges::equal(dims, launch.dims);
  }

  const Program& program_;
  std::set<std::tuple<int, int, int>> same_;  // kernels of phases and those of launches
};

}  // namespace

std::optional<std::string> find_joined_fault(const Program& program) { return JoinedVerifier(program).find_fault(); }

}  // namespace lathe
