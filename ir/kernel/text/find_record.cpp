#include "ir/kernel/text/kernel_reader.h"

namespace lathe::kernel {

namespace {

/// Calls `visit` with each record of a kind; `records` is the member of IntrinsicFamily that has them.
template <class Records, class Visit>
void for_each_record(const IntrinsicFamily& also, Records IntrinsicFamily::* records, const Visit& visit) {
  for (const auto* record : also.*records) visit(*record);
  for (const IntrinsicFamily* family : intrinsic_families())
    for (const auto* record : family->*records) visit(*record);
}

}  // namespace

const IntrinsicRecord* KernelReader::operation(std::string_view name) const {
  const IntrinsicRecord* found = nullptr;
  for_each_record(also_, &IntrinsicFamily::operations, [&](const IntrinsicRecord& record) {
    if (record.name == name) found = &record;
  });
  return found;
}

const IntrinsicRegionRecord* KernelReader::region(std::string_view name) const {
  const IntrinsicRegionRecord* found = nullptr;
  for_each_record(also_, &IntrinsicFamily::regions, [&](const IntrinsicRegionRecord& record) {
    if (record.name == name) found = &record;
  });
  return found;
}

std::vector<std::string_view> KernelReader::operation_names() const {
  std::vector<std::string_view> names;
  for_each_record(also_, &IntrinsicFamily::operations,
                  [&](const IntrinsicRecord& record) { names.push_back(record.name); });
  return names;
}

std::vector<std::string_view> KernelReader::region_names() const {
  std::vector<std::string_view> names;
  for_each_record(also_, &IntrinsicFamily::regions,
                  [&](const IntrinsicRegionRecord& record) { names.push_back(record.name); });
  return names;
}

}  // namespace lathe::kernel
