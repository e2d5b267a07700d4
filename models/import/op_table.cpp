#include "models/import/op_table.h"

#include <fmt/core.h>

namespace lathe::importing {

void OpTable::add(std::string_view domain, std::span<const OpRecord> records) {
  for (const OpRecord& record : records) records_[{std::string(domain), std::string(record.name)}].push_back(&record);
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

bool has_attribute(const OpRecord& record, std::string_view attribute) {
  std::string_view rest = record.attributes;
  while (!rest.empty()) {
    const std::size_t end = std::min(rest.find(' '), rest.size());
    if (rest.substr(0, end) == attribute) return true;
    rest.remove_prefix(std::min(end + 1, rest.size()));
  }
  return false;
}

}  // namespace lathe::importing
