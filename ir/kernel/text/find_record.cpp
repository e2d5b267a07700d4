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

const MachineRecord* KernelReader::operation(std::string_view name) const {
  const MachineRecord* found = nullptr;
  for_each_record(also_, &IntrinsicFamily::operations, [&](const MachineRecord& record) {
    if (record.name == name) found = &record;
  });
  return found;
}

const MachineRegionRecord* KernelReader::region(std::string_view name) const {
  const MachineRegionRecord* found = nullptr;
  for_each_record(also_, &IntrinsicFamily::regions, [&](const MachineRegionRecord& record) {
    if (record.name == name) found = &record;
  });
  return found;
}

std::vector<std::string_view> KernelReader::operation_names() const {
  std::vector<std::string_view> names;
  for_each_record(also_, &IntrinsicFamily::operations,
                  [&](const MachineRecord& record) { names.push_back(record.name); });
  return names;
}

std::vector<std::string_view> KernelReader::region_names() const {
  std::vector<std::string_view> names;
  for_each_record(also_, &IntrinsicFamily::regions,
                  [&](const MachineRegionRecord& record) { names.push_back(record.name); });
  return names;
}

}  // namespace lathe::kernel
