#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/build/integer_range.h"
#include "ir/kernel/machine/record.h"
#include "ir/support/error.h"

/// What all of Lathe knows of a machine region is its record, as of a machine operation. Its bodies are statements as
/// any others; the record says which threads run them.
namespace lathe::kernel {

/// Which threads run a body.
enum class RunBy : std::uint8_t {
  all,     ///< those that the region stands among
  first,   ///< of the innermost thread loop the first ones; others may help, but touch no parameter
  others,  ///< those that a region around leaves out, which read parameters only to copy them to shared memory
};

struct RegionBodyTraits {
  std::string_view name{};  ///< printed before it
  RunBy run_by = RunBy::all;
};

struct MachineRegionTraits {
  std::string_view name;
  std::span<const RegionBodyTraits> bodies;
  std::size_t attributes = 0;
  std::string_view index{};  ///< what its bodies count by, in messages; empty: nothing
};

/// What a region's rules look at: as many attributes and bodies as the record says, and where it stands.
struct MachineRegionRules : PlaceRules {
  const MachineRegion& region;
};

/// A region as its file defines it: its attributes by name, where it may stand, which is asked first, what its bodies
/// have to be like (each failure with a label), its text up to the first body, and what it does for all threads that
/// come to it.
template <class Region>
concept MachineRegionOf = requires(const Region& region, const MachineRegion& in, const MachineRegionRules& rules,
                                   const MachineText& text, MachineRun& run, std::span<Thread* const> threads) {
  { Region::of(in) } -> std::same_as<Region>;
  { region.text(text) } -> std::same_as<std::string>;
  region.verify_place(rules);
  region.verify_bodies(rules);
  region.interpret(run, threads);
};

struct MachineRegionRecord : MachineRegionTraits {
  void (*verify_place)(const MachineRegionRules& rules);
  void (*verify_bodies)(const MachineRegionRules& rules);
  std::string (*text)(const MachineRegion& region, const MachineText& text);
  void (*interpret)(const MachineRegion& region, MachineRun& run, std::span<Thread* const> threads);
  /// What its index may be; null where it has none.
  Range (*index_range)(const MachineRegion& region, const Kernel& kernel);
  /// How many threads run the bodies that the first ones run; null where it has no such body.
  int (*first_threads)(const MachineRegion& region);
};

/// The record of a region. It is no program where the region lacks a part.
template <MachineRegionOf Region>
constexpr MachineRegionRecord machine_region_record(const MachineRegionTraits& traits) {
  MachineRegionRecord record{
      traits,
      [](const MachineRegionRules& rules) { Region::of(rules.region).verify_place(rules); },
      [](const MachineRegionRules& rules) { Region::of(rules.region).verify_bodies(rules); },
      [](const MachineRegion& region, const MachineText& text) { return Region::of(region).text(text); },
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

/// A statement that is such a region; null for others.
const MachineRegion* region_of(const Statement& statement, const MachineRegionRecord& record);
/// As many attributes, bodies and indices as the record has (arity).
void verify_parts(const Kernel& kernel, const MachineRegion& region);

}  // namespace lathe::kernel
