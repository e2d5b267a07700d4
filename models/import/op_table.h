#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "models/import/op_call.h"

namespace lathe::importing {

/// Which operands an op only moves: each element of its result is an element of one of them. Such an op is computed
/// at import for dims too, by moving their numbers.
enum class Moves : std::uint8_t {
  none,
  first,  ///< operand 0
  all,
  branches  ///< operands 1 and 2
};

/// An op of a source format: the versions of its domain in which it has this meaning, and the functions that import
/// it. A change of meaning is another record.
struct OpRecord {
  std::string_view name;
  std::int64_t first_version, last_version;
  std::string_view attributes;  ///< that `build` reads, separated by spaces; others are refused
  /// Adds the op to the graph of the call. Returns its results.
  Results (*build)(const OpCall& call);
  Moves moves = Moves::none;
  /// Computes the result from dims at import; nothing if it depends on the sizes. Called if all operands are dims.
  std::optional<DimTensor> (*fold)(const OpCall& call) = nullptr;
  /// For formats with named arguments: those that are operands, in order, separated by spaces. A list of tensors is
  /// the last one.
  std::string_view operands = {};
  /// The name of the op that this one is another name of; empty for an op of its own.
  std::string_view alias_of = {};

  /// Returns the name of the op whatever it is called: torch.multiply is mul.
  std::string_view own_name() const { return alias_of.empty() ? name : alias_of; }
};

/// Another name of an op: the arguments are the same.
struct OpAlias {
  std::string_view name, op;
};

/// The ops that a format's importer knows, by domain and name.
class OpTable {
 public:
  /// The records of each op, by domain and name.
  using Records = std::map<std::pair<std::string, std::string>, std::vector<const OpRecord*>>;

  void add(std::string_view domain, std::span<const OpRecord> records);
  /// Adds copies of records under other names, so that tables and errors show the names that a file uses. The records
  /// must be in the table.
  void add_aliases(std::string_view domain, std::span<const OpAlias> aliases);
  /// Returns the record of an op in a version of its domain; null if there is none.
  const OpRecord* find(std::string_view domain, std::string_view name, std::int64_t version) const;
  /// Returns the versions in which an op is supported: "11 to 17, 18 to 27"; empty for an unknown op.
  std::string versions(std::string_view domain, std::string_view name) const;
  const Records& records() const { return records_; }

 private:
  Records records_;
  std::vector<std::shared_ptr<const OpRecord>> aliases_;  ///< the copies
};

/// Returns the words of a text, which are separated by spaces.
std::vector<std::string_view> words_of(std::string_view text);

/// Returns whether a record lists an attribute.
bool has_attribute(const OpRecord& record, std::string_view attribute);

/// Returns the results of an op: computed at import if its operands are known, built in the graph of the call
/// otherwise. Throws UserErrors of the op, at the node.
Results import_op(const OpRecord& record, const OpCall& call);

}  // namespace lathe::importing
