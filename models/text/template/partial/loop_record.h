#pragma once

#include <compare>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "models/text/template/partial/variables.h"
#include "models/text/template/values/list_view.h"

namespace lathe::jinja {

/// No iteration.
constexpr std::size_t never = static_cast<std::size_t>(-1);

/// Reads and writes of an attribute of a namespace by the iterations of a loop.
struct AttributeRecord {
  /// From `iteration` on, the value that the attribute has before the loop must be in [least, most].
  struct Bounds {
    std::size_t iteration;
    std::int64_t least, most;
  };
  // Of the value before the loop:
  std::size_t first_read = never;  ///< iteration that may depend on it in other ways than by `bounds`
  std::vector<Bounds> bounds = {};
  std::vector<std::pair<std::size_t, Value>> writes = {};  ///< iteration and value

  /// Returns the last value written before an iteration; null for none.
  const Value* before(std::size_t iteration) const;
  /// Returns the first iteration that may behave differently if `value` is the attribute's value before the loop.
  std::size_t first_change(const Value& value) const;
};

/// How the inputs of a render differ from those of the recorded render.
struct ListPart {
  std::size_t count;                      ///< number of leading items
  std::size_t replaced = ListView::none;  ///< index of the replaced item
  std::string flag = {};                  ///< name of a variable with a different value; empty for none
};

/// Results of the iterations of a loop over a list, and the inputs that each of them depends on.
struct LoopRecord {
  using Attribute = std::pair<std::string, std::string>;  ///< variable, attribute

  LoopRecord(Variables variables, const ListView& view)
      : entry(std::move(variables)), list(view), first_seen(view.total, never), last_seen(view.total, 0) {}

  Variables entry;
  ListView list;
  // At the start of each iteration and at the end of the last:
  std::vector<std::size_t> text_at = {};
  std::vector<std::uint64_t> work_at = {};
  /// For each iteration, the smallest length of a shorter list with which it and earlier iterations do the same.
  std::vector<std::size_t> needed = {};
  // Iterations by variable. `first_read` does not include reads of a single list item.
  std::map<std::string, std::size_t> first_read = {}, first_item_read = {};
  std::map<Attribute, AttributeRecord> attributes = {};
  std::vector<std::size_t> first_seen, last_seen;  ///< iteration in which an item of the source was read by its index
  std::size_t first_list_read = never, last_list_read = 0;  ///< iteration in which any item may have been read
  std::size_t given_up = never;                             ///< iteration that did something that cannot be recorded

  std::size_t iterations() const { return text_at.size() - 1; }
  /// Returns the number of leading iterations that do the same in a render with a part of the list. Sets `unchanged`
  /// to whether all variables except the list are as recorded.
  std::size_t common_iterations(const Variables& now, const ListView& view, const ListPart& part,
                                bool& unchanged) const;
  /// Returns the last iteration that may depend on an item of the source.
  std::size_t last_use(std::size_t item) const;
  /// Sets the attributes of the namespaces of `now` that the iterations from `from` up to `iteration` write.
  void write_attributes(const Variables& now, std::size_t from, std::size_t iteration) const;
  /// Returns whether the namespaces have the recorded attributes at the start of an iteration.
  bool has_attributes(const Variables& now, std::size_t iteration) const;

 private:
  // First iteration that may behave differently:
  std::size_t first_list_change(const ListPart& part) const;
  std::size_t first_variable_change(const Variables& now, bool& unchanged) const;
};

}  // namespace lathe::jinja
