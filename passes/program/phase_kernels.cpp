#include "passes/program/phase_kernels.h"

#include <algorithm>

namespace lathe {

std::vector<bool> only_in_phases(const Program& program) {
  std::vector<bool> only(program.kernels.size(), false);
  for (const JoinedLaunches& joined : program.joined)
    for (int l = joined.first; l < joined.end; ++l) only[program.launches[l].kernel] = true;
  for (int l = 0; l < std::ssize(program.launches); ++l)
    if (std::ranges::none_of(program.joined, [&](const JoinedLaunches& joined) { return joined.contains(l); }))
      only[program.launches[l].kernel] = false;
  for (const Collective& collective : program.collectives)
    for (const Collective::Part& part : collective.parts)
      if (part.fold) only[part.fold->kernel] = false;
  return only;
}

}  // namespace lathe
