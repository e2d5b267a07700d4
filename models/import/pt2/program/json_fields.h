#pragma once

#include <cstdint>
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace lathe::pt2 {

/// A value in a JSON file with its place, for checked reads. Errors are UserErrors [import_file]:
/// "model.pt2: models/model.json: graph.nodes[3].target is a number, not a text".
class JsonFields {
 public:
  JsonFields(const nlohmann::json& json, std::string place) : json_(json), place_(std::move(place)) {}

  const std::string& place() const { return place_; }
  bool is_null() const { return json_.is_null(); }
  /// Throws for a key that is not known, or if the value is no object.
  void require_known(std::initializer_list<std::string_view> keys) const;
  bool has(std::string_view key) const;
  /// Returns a member that must be there.
  JsonFields at(std::string_view key) const;
  /// Returns all members, by key.
  std::vector<std::pair<std::string, JsonFields>> members() const;
  /// Returns the elements of a list.
  std::vector<JsonFields> elements() const;
  /// Returns the only member of an object of the format, which is the kind of a union.
  std::pair<std::string, JsonFields> kind() const;

  std::string text() const;
  std::int64_t integer() const;
  /// Infinities and NaN are texts in the format.
  double real() const;
  bool boolean() const;

  [[noreturn]] void fail(std::string_view text) const;

 private:
  [[noreturn]] void wrong_kind(std::string_view wanted) const;
  const nlohmann::json& json_;
  std::string place_;
};

}  // namespace lathe::pt2
