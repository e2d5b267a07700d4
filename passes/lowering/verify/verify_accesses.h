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

/// Compares the accesses of launches with the sizes of the buffers, at one or two bindings of the unknown dims.
///
/// Stores: checks that sampled elements are written: the first and the last, some in between, and those just after
/// the end of a loop or loop nest, because gaps start where something ends. For a workspace with spare room, checks
/// sampled elements that are read. An element counts as written if stores depend on data or if the search exceeds its
/// budget.
///
/// Loads, including those of inputs, states and constants: searches for an out-of-bounds element at the ends of all
/// loops and by ranges.
class AccessVerifier {
 public:
  /// `uses` is indexed by kernel. Both arguments must outlive this object.
  AccessVerifier(const Program& program, std::span<const kernel::ParameterUse> uses);

  struct Fault {
    int buffer, launch;
    std::string what;
  };
  /// Returns the first fault, if any, in the launches of one region. Together they must write all of each buffer that
  /// they write.
  std::optional<Fault> find_fault(int first_launch, int last_launch);

 private:
  /// A parameter of a launch to which a buffer is bound.
  struct Binding {
    int launch, parameter;
  };
  struct Written {
    std::vector<Binding> by, read_by;  ///< read_by: only for a workspace
    bool in_part = false;              ///< a launch preserves some of it
  };
  using Key = std::vector<std::int64_t>;       ///< everything that the result of a check depends on
  using Checked = std::optional<std::string>;  ///< a description of the fault, if any

  std::optional<std::string> at_sizes(const std::function<Checked(const DimBindings&)>& check);
  Checked check_loads(const ProgramBuffer& buffer, const Binding& at, const DimBindings& sizes);
  Checked check_stores(const ProgramBuffer& buffer, const Written& written, const DimBindings& sizes);
  void add_to_key(Key& key, const Binding& at, kernel::AccessKind kind, const DimBindings& sizes);
  const Launch& launch_of(const Binding& at) const { return program_.launches[at.launch]; }
  const std::vector<kernel::AccessSite>& sites_of(const Binding& at, kernel::AccessKind kind);
  std::vector<kernel::AccessSearch> searches(std::span<const Binding> bindings, kernel::AccessKind kind,
                                             const DimBindings& sizes);

  const Program& program_;
  std::span<const kernel::ParameterUse> uses_;
  std::vector<DimBindings> sizes_;
  /// by kernel, parameter and kind
  std::map<std::tuple<int, int, kernel::AccessKind>, std::vector<kernel::AccessSite>> sites_;
  std::set<Key> inside_, whole_;  ///< loads and stores that passed
};

}  // namespace lathe
