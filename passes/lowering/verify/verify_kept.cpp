#include "passes/lowering/verify/verify_kept.h"

#include <fmt/core.h>

#include <set>

#include "passes/program/kept_launches.h"
#include "passes/program/program_loops.h"

namespace lathe {

namespace {

bool is_kept(const Program& program, int buffer) { return program.buffers[buffer].kind == ProgramBuffer::Kind::kept; }

/// Returns the buffers that launches from `first` on write.
std::set<int> written_from(const Program& program, int first) {
  std::set<int> written;
  for (int l = first; l < static_cast<int>(program.launches.size()); ++l) {
    const Launch& launch = program.launches[l];
    for (std::size_t p = 0; p < launch.buffers.size(); ++p)
      if (program.kernels[launch.kernel].buffers[p].access != kernel::Access::read)
        written.insert(storage_of(program, launch.buffers[p]));
  }
  return written;
}

}  // namespace

std::optional<KeptFault> find_kept_fault(const Program& program) {
  std::set<int> parameters;
  for (const Program::Slot& slot : program.states)
    if (slot.is_parameter && !slot.is_updated) parameters.insert(slot.buffer);
  for (int b = 0; b < static_cast<int>(program.buffers.size()); ++b)
    if (is_kept(program, b) && !program.buffers[b].elements.value())
      return KeptFault{.buffer = b, .what = "its size is not known"};
  const int kept = kept_launches(program);
  const std::set<int> written = written_from(program, kept);
  for (const int b : written)
    if (is_kept(program, b)) return KeptFault{.buffer = b, .what = "a launch after other ones writes it"};
  for (int l = 0; l < kept; ++l)
    for (const int b : program.launches[l].buffers) {
      if (is_kept(program, b)) continue;
      if (!parameters.contains(b) || written.contains(b))
        return KeptFault{.launch = l,
                         .buffer = b,
                         .what = "a kept buffer depends on it, and it is no parameter, or it is written"};
    }
  for (const ProgramLoop& loop : program.loops)
    if (loop.first < kept) return KeptFault{.launch = loop.first, .what = "a loop repeats it"};
  return std::nullopt;
}

}  // namespace lathe
