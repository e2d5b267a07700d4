#pragma once

#include <concepts>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "ir/kernel/build/integer_range.h"
#include "ir/kernel/intrinsics/record.h"
#include "ir/support/error.h"

/// A record is the only interface to an intrinsic region, as for intrinsics. Its bodies are ordinary statements;
/// the record defines which threads run them.
namespace lathe::kernel {

/// The threads that run a body.
enum class RunBy : std::uint8_t {
  all,     ///< all threads that reach the region
  first,   ///< the first threads of the innermost thread loop; others may help, but do not access parameters
  others,  ///< threads outside an enclosing region's `first`; they read parameters only to copy to shared memory
  last,    ///< the last threads of the innermost thread loop, outside an enclosing region's `first`
};

struct RegionBodyTraits {
  std::string_view name{};  ///< printed before it
  RunBy run_by = RunBy::all;
  /// Its threads may store operands of operations that add later (OfSums), in shared memory that no operation copies
  /// to. A barrier shows them to these operations.
  bool stores_operands = false;
};

struct IntrinsicRegionTraits {
  std::string_view name;
  std::span<const RegionBodyTraits> bodies;
  std::size_t attributes = 0;
  std::string_view index{};  ///< name of the index in messages; empty: no index
};

/// The input of a region's rules: the region, with the record's number of attributes and bodies, and its context.
struct IntrinsicRegionRules : PlaceRules {
  const IntrinsicRegion& region;
};

/// The interface that a region's file implements: named attributes, the rule for its place (checked first), the rules
/// for its bodies (each failure has a label), text up to the first body and its parser, and interpretation for all
/// threads that reach it. `parse` takes what `text` puts after the name.
template <class Region>
concept IntrinsicRegionOf = requires(const Region& region, const IntrinsicRegion& in,
                                     const IntrinsicRegionRules& rules, const IntrinsicText& text,
                                     IntrinsicReader& reader, IntrinsicRun& run, std::span<Thread* const> threads) {
  { Region::of(in) } -> std::same_as<Region>;
  { region.text(text) } -> std::same_as<std::string>;
  { Region::parse(reader) } -> std::same_as<IntrinsicRegion>;
  region.verify_place(rules);
  region.verify_bodies(rules);
  region.interpret(run, threads);
};

struct IntrinsicRegionRecord : IntrinsicRegionTraits {
  void (*verify_place)(const IntrinsicRegionRules& rules);
  void (*verify_bodies)(const IntrinsicRegionRules& rules);
  std::string (*text)(const IntrinsicRegion& region, const IntrinsicText& text);
  IntrinsicRegion (*parse)(IntrinsicReader& in);  ///< without bodies
  void (*interpret)(const IntrinsicRegion& region, IntrinsicRun& run, std::span<Thread* const> threads);
  /// Returns the range of its index; null without an index.
  Range (*index_range)(const IntrinsicRegion& region, const Kernel& kernel);
  /// Returns the number of threads that run RunBy::first bodies; null without such a body.
  int (*first_threads)(const IntrinsicRegion& region);
  /// Returns the number of threads that run RunBy::last bodies; null without such a body.
  int (*last_threads)(const IntrinsicRegion& region);
};

/// Returns the record of a region. Fails to compile if the region lacks a part.
template <IntrinsicRegionOf Region>
constexpr IntrinsicRegionRecord intrinsic_region_record(const IntrinsicRegionTraits& traits) {
  IntrinsicRegionRecord record{
      traits,
      [](const IntrinsicRegionRules& rules) { Region::of(rules.region).verify_place(rules); },
      [](const IntrinsicRegionRules& rules) { Region::of(rules.region).verify_bodies(rules); },
      [](const IntrinsicRegion& region, const IntrinsicText& text) { return Region::of(region).text(text); },
      [](IntrinsicReader& in) { return Region::parse(in); },
      [](const IntrinsicRegion& region, IntrinsicRun& run, std::span<Thread* const> threads) {
        Region::of(region).interpret(run, threads);
      },
      nullptr,
      nullptr,
      nullptr};
  constexpr bool has_range = requires(const Region& r, const Kernel& kernel) { r.index_range(kernel); };
  constexpr bool has_count = requires(const Region& r) { r.first_threads(); };
  constexpr bool has_last_count = requires(const Region& r) { r.last_threads(); };
  if constexpr (has_range)
    record.index_range = [](const IntrinsicRegion& region, const Kernel& kernel) {
      return Region::of(region).index_range(kernel);
    };
  if constexpr (has_count)
    record.first_threads = [](const IntrinsicRegion& region) { return Region::of(region).first_threads(); };
  if constexpr (has_last_count)
    record.last_threads = [](const IntrinsicRegion& region) { return Region::of(region).last_threads(); };
  bool has_first = false, has_last = false;
  for (const RegionBodyTraits& body : traits.bodies) {
    has_first = has_first || body.run_by == RunBy::first;
    has_last = has_last || body.run_by == RunBy::last;
  }
  if (traits.index.empty() == has_range || has_first != has_count || has_last != has_last_count)
    throw InternalError("an intrinsic region that lacks a part");
  return record;
}

/// Returns the statement as a region of this record, or null.
const IntrinsicRegion* region_of(const Statement& statement, const IntrinsicRegionRecord& record);
/// Returns whether the statement is, or contains, a region with a body for these threads.
bool leads_to(const Statement& statement, RunBy threads);
/// Checks that attributes, bodies and index match the record (arity).
void verify_parts(const Kernel& kernel, const IntrinsicRegion& region);

}  // namespace lathe::kernel
