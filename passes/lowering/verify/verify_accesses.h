#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <tuple>
#include <vector>

#include "ir/kernel/verify/access_search.h"
#include "ir/kernel/verify/parameter_use.h"
#include "passes/program/program.h"

namespace lathe {

/// Compares what launches touch with the sizes of the buffers. Whether every element is written, or
/// of a workspace with room to spare what is read, is asked of some elements, at one or two bindings of the unknown
/// sizes: the first and the last, some in between, and those that follow where a loop, or the loops inside one, end;
/// for what is left out begins where something ends. Where data decide what is written, or a search takes too long,
/// everything counts as written. Every load, of inputs, states and constants too, is also searched for an element
/// outside of its buffer: where all its loops end, and by ranges, at the same bindings.
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
  using Key = std::vector<std::int64_t>;       ///< everything that an answer depends on
  using Checked = std::optional<std::string>;  ///< a fault

  std::optional<std::string> at_sizes(const std::function<Checked(const DimBindings&)>& check);
  Checked check_loads(const ProgramBuffer& buffer, const Binding& at, const DimBindings& sizes);
  Checked check_stores(const ProgramBuffer& buffer, const Written& written, const DimBindings& sizes);
  void add_to_key(Key& key, const Binding& at, kernel::AccessKind kind, const DimBindings& sizes);
  const Launch& launch_of(const Binding& at) const { return program_.launches[static_cast<std::size_t>(at.launch)]; }
  const std::vector<kernel::AccessSite>& sites_of(const Binding& at, kernel::AccessKind kind);
  std::vector<kernel::AccessSearch> searches(std::span<const Binding> bindings, kernel::AccessKind kind,
                                             const DimBindings& sizes);

  const Program& program_;
  std::span<const kernel::ParameterUse> uses_;
  std::vector<DimBindings> sizes_;
  /// By kernel, parameter and kind.
  std::map<std::tuple<int, int, kernel::AccessKind>, std::vector<kernel::AccessSite>> sites_;
  std::set<Key> inside_, whole_;  ///< loads, and stores, that were found sound
};

}  // namespace lathe
