#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/build/integer_range.h"
#include "ir/kernel/intrinsics/record.h"
#include "ir/support/error.h"

/// A record is the only interface to a machine region, as for intrinsics. Its bodies are ordinary statements;
/// the record defines which threads run them.
namespace lathe::kernel {

/// The threads that run a body.
enum class RunBy : std::uint8_t {
  all,     ///< all threads that reach the region
  first,   ///< the first threads of the innermost thread loop; others may help, but do not access parameters
  others,  ///< threads outside an enclosing region's `first`; they read parameters only to copy to shared memory
};

struct RegionBodyTraits {
  std::string_view name{};  ///< printed before it
  RunBy run_by = RunBy::all;
};

struct MachineRegionTraits {
  std::string_view name;
  std::span<const RegionBodyTraits> bodies;
  std::size_t attributes = 0;
  std::string_view index{};  ///< name of the index in messages; empty: no index
};

/// The input of a region's rules: the region, with the record's number of attributes and bodies, and its context.
struct MachineRegionRules : PlaceRules {
  const MachineRegion& region;
};

/// The interface that a region's file implements: named attributes, the rule for its place (checked first), the rules
/// for its bodies (each failure has a label), text up to the first body and its parser, and interpretation for all
/// threads that reach it. `parse` takes what `text` puts after the name.
template <class Region>
concept MachineRegionOf =
    requires(const Region& region, const MachineRegion& in, const MachineRegionRules& rules, const MachineText& text,
             MachineReader& reader, MachineRun& run, std::span<Thread* const> threads) {
      { Region::of(in) } -> std::same_as<Region>;
      { region.text(text) } -> std::same_as<std::string>;
      { Region::parse(reader) } -> std::same_as<MachineRegion>;
      region.verify_place(rules);
      region.verify_bodies(rules);
      region.interpret(run, threads);
    };

struct MachineRegionRecord : MachineRegionTraits {
  void (*verify_place)(const MachineRegionRules& rules);
  void (*verify_bodies)(const MachineRegionRules& rules);
  std::string (*text)(const MachineRegion& region, const MachineText& text);
  MachineRegion (*parse)(MachineReader& in);  ///< without bodies
  void (*interpret)(const MachineRegion& region, MachineRun& run, std::span<Thread* const> threads);
  /// Returns the range of its index; null without an index.
  Range (*index_range)(const MachineRegion& region, const Kernel& kernel);
  /// Returns the number of threads that run RunBy::first bodies; null without such a body.
  int (*first_threads)(const MachineRegion& region);
};

/// Returns the record of a region. Fails to compile if the region lacks a part.
template <MachineRegionOf Region>
constexpr MachineRegionRecord machine_region_record(const MachineRegionTraits& traits) {
  MachineRegionRecord record{
      traits,
      [](const MachineRegionRules& rules) { Region::of(rules.region).verify_place(rules); },
      [](const MachineRegionRules& rules) { Region::of(rules.region).verify_bodies(rules); },
      [](const MachineRegion& region, const MachineText& text) { return Region::of(region).text(text); },
      [](MachineReader& in) { return Region::parse(in); },
      [](const MachineRegion& region, MachineRun& run, std::span<Thread* const> threads) {
        Region::of(region).interpret(run, threads);
      },
      nullptr,
      nullptr};
  constexpr bool has_range = requires(const Region& r, const Kernel& kernel) { r.index_range(kernel); };
  constexpr bool has_count = requires(const Region& r) { r.first_threads(); };
  if constexpr (has_range)
    record.index_range = [](const MachineRegion& region, const Kernel& kernel) {
      return Region::of(region).index_range(kernel);
    };
  if constexpr (has_count)
    record.first_threads = [](const MachineRegion& region) { return Region::of(region).first_threads(); };
  bool has_first = false;
  for (const RegionBodyTraits& body : traits.bodies) has_first = has_first || body.run_by == RunBy::first;
  if (traits.index.empty() == has_range || has_first != has_count)
    throw InternalError("a machine region that lacks a part");
  return record;
}

/// Returns the statement as a region of this record, or null.
const MachineRegion* region_of(const Statement& statement, const MachineRegionRecord& record);
/// Checks that attributes, bodies and index match the record (arity).
void verify_parts(const Kernel& kernel, const MachineRegion& region);

}  // namespace lathe::kernel
