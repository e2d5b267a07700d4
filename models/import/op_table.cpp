#include "models/import/op_table.h"

#include <fmt/core.h>

#include <algorithm>

#include "ir/support/error.h"

namespace lathe::importing {

void OpTable::add(std::string_view domain, std::span<const OpRecord> records) {
  for (const OpRecord& record : records) records_[{std::string(domain), std::string(record.name)}].push_back(&record);
}

void OpTable::add_aliases(std::string_view domain, std::span<const OpAlias> aliases) {
  for (const OpAlias& alias : aliases) {
    const auto found = records_.find({std::string(domain), std::string(alias.op)});
    if (found == records_.end()) throw InternalError(fmt::format("{} is an alias of no op", alias.name));
    std::vector<const OpRecord*>& names = records_[{std::string(domain), std::string(alias.name)}];
    for (const OpRecord* record : found->second) {
      OpRecord copy = *record;
      copy.name = alias.name;
      copy.alias_of = record->name;
      aliases_.push_back(std::make_shared<const OpRecord>(copy));
      names.push_back(aliases_.back().get());
    }
  }
}

const OpRecord* OpTable::find(std::string_view domain, std::string_view name, std::int64_t version) const {
  const auto found = records_.find(std::pair(std::string(domain), std::string(name)));
  if (found == records_.end()) return nullptr;
  for (const OpRecord* record : found->second)
    if (record->first_version <= version && version <= record->last_version) return record;
  return nullptr;
}

std::string OpTable::versions(std::string_view domain, std::string_view name) const {
  const auto found = records_.find(std::pair(std::string(domain), std::string(name)));
  if (found == records_.end()) return "";
  std::string text;
  for (const OpRecord* record : found->second)
    text += fmt::format("{}{} to {}", text.empty() ? "" : ", ", record->first_version, record->last_version);
  return text;
}

std::vector<std::string_view> words_of(std::string_view text) {
  std::vector<std::string_view> words;
  while (!text.empty()) {
    const std::size_t end = std::min(text.find(' '), text.size());
    if (end > 0) words.push_back(text.substr(0, end));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return words;
}

bool has_attribute(const OpRecord& record, std::string_view attribute) {
  const std::vector<std::string_view> attributes = words_of(record.attributes);
  return std::ranges::find(attributes, attribute) != attributes.end();
}

}  // namespace lathe::importing
