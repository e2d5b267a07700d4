#pragma once

#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "ir/kernel/verify/access_site.h"
#include "ir/kernel/verify/parameter_use.h"
#include "passes/lowering/program/program.h"

namespace lathe {

/// Holds what launches touch against the sizes of the buffers that they write. Whether every element is written, or
/// of a workspace with room to spare what is read, is asked of some elements, at one or two bindings of the unknown
/// sizes: the first and the last, some in between, and those that follow where a loop, or the loops inside one, end;
/// for what is left out begins where something ends. Where data decide what is written, or a search takes too long,
/// everything counts as written.
class AccessVerifier {
 public:
  /// `uses`: by kernel. Both must outlive it.
  AccessVerifier(const Program& program, std::span<const kernel::ParameterUse> uses);

  struct Fault {
    int buffer, launch;
    std::string what;
  };
  /// Of these launches, those of one region, which together write each buffer that they write: the first fault, if
  /// any.
  std::optional<Fault> find_fault(int first_launch, int last_launch);

 private:
  /// A parameter of a launch to which a buffer is bound.
  struct Binding {
    int launch, parameter;
  };
  struct Written {
    std::vector<Binding> by, read_by;  ///< read_by: of a workspace
    bool in_part = false;              ///< a launch leaves some of it as it was
  };
  using Key = std::vector<std::int64_t>;  ///< everything that an answer depends on

  std::optional<std::string> check(const ProgramBuffer& buffer, const Written& written, const DimBindings& sizes);
  Key key_of(const Written& written, std::int64_t elements, const DimBindings& sizes);
  const Launch& launch_of(const Binding& at) const { return program_.launches[static_cast<std::size_t>(at.launch)]; }
  const std::vector<kernel::AccessSite>& stores_of(const Binding& at);

  const Program& program_;
  std::span<const kernel::ParameterUse> uses_;
  std::vector<DimBindings> sizes_;
  std::map<std::pair<int, int>, std::vector<kernel::AccessSite>> stores_;  ///< by kernel and parameter
  std::set<Key> sound_;
};

}  // namespace lathe
