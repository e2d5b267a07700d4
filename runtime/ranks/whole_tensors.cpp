#include "runtime/ranks/whole_tensors.h"

#include <fmt/core.h>

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>

#include "ir/support/error.h"
#include "passes/shard/exchange_values.h"
#include "runtime/files/sha256.h"
#include "runtime/ranks/agreement.h"

namespace lathe {

namespace {

Message message(int peer, HostTensor& tensor) {
  return {peer, reinterpret_cast<std::byte*>(tensor.data()), tensor.bytes()};
}

std::string_view bytes_of(const HostTensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data()), tensor.bytes()};
}

/// [mesh_disagree], on every rank, where ranks along an axis over which the tensor is not split hold other bits: they
/// compare digests.
void require_copies_agree(Ranks& ranks, const HostTensor& own, const shard::Placement& placement,
                          const std::string& name) {
  const shard::Mesh& mesh = ranks.mesh();
  std::vector<std::string> digests;
  for (int a = 0; a < mesh.axis_count(); ++a) {
    if (!std::holds_alternative<shard::Whole>(placement[static_cast<std::size_t>(a)]) || mesh[a].ranks == 1) continue;
    if (digests.empty()) digests = ranks.gather(sha256_hex(bytes_of(own)));
    for (std::int64_t p = 0; p < mesh.size(); ++p)
      if (digests.at(static_cast<std::size_t>(p)) != digests[static_cast<std::size_t>(mesh.group(p, a).front())])
        throw UserError(fmt::format("processes along {} hold different values of {}", mesh[a].name, name),
                        "mesh_disagree", "the graph of every process must be the same");
  }
}

}  // namespace

HostTensor own_part(const Ranks& ranks, const HostTensor& whole, const shard::Placement& placement,
                    const std::string& name) {
  return shard::part_of(whole, placement, ranks.mesh(), ranks.rank(), name);
}

bool is_whole(const shard::Placement& placement) {
  return std::ranges::all_of(
      placement, [](const shard::AxisPlacement& axis) { return std::holds_alternative<shard::Whole>(axis); });
}

HostTensor whole_of(Ranks& ranks, const HostTensor& own, const shard::Placement& placement, const std::string& name) {
  if (is_whole(placement)) return own;
  require_copies_agree(ranks, own, placement, name);
  return shard::join_gathered(own, placement, ranks.mesh(), name, [&](const HostTensor& part, int axis) {
    std::vector<HostTensor> parts;
    for (const std::string& bytes : ranks.gather(std::string(bytes_of(part)), ranks.mesh()[axis].name)) {
      HostTensor& tensor = parts.emplace_back(part.dtype(), part.shape());
      std::memcpy(tensor.data(), bytes.data(), std::min(bytes.size(), tensor.bytes()));
    }
    return parts;
  });
}

std::optional<HostTensor> whole_on_first(Ranks& ranks, const HostTensor& own, const shard::Placement& placement,
                                         const std::string& name) {
  const bool is_first = ranks.rank() == 0;
  if (is_whole(placement)) return is_first ? std::optional(own) : std::nullopt;
  std::vector<HostTensor> parts;
  std::vector<Message> sends, receives;
  HostTensor sent = is_first ? HostTensor() : own;
  if (is_first) {
    for (int r = 0; r < ranks.size(); ++r) parts.push_back(r == 0 ? own : HostTensor(own.dtype(), own.shape()));
    for (int r = 1; r < ranks.size(); ++r) receives.push_back(message(r, parts[static_cast<std::size_t>(r)]));
  } else {
    sends.push_back(message(0, sent));
  }
  ranks.exchange(sends, receives);
  if (!is_first) return std::nullopt;
  return shard::join_parts(std::move(parts), placement, ranks.mesh(), name);
}

HostTensor part_from_first(Ranks& ranks, const HostTensor* whole, const shard::Placement& placement,
                           const std::string& name) {
  const bool is_first = ranks.rank() == 0;
  LATHE_ASSERT(is_first == (whole != nullptr));
  std::vector<HostTensor> parts;
  nlohmann::json type;
  if (is_first) {
    for (int r = 0; r < (is_whole(placement) ? 1 : ranks.size()); ++r)
      parts.push_back(shard::part_of(*whole, placement, ranks.mesh(), r, name));
    type = {{"dtype", lathe::name(parts[0].dtype())}, {"shape", parts[0].shape()}};
  }
  type = nlohmann::json::parse(text_of_first(ranks, type.dump()));
  std::vector<Message> sends, receives;
  if (is_first) {
    for (int r = 1; r < ranks.size(); ++r)
      sends.push_back(message(r, parts[parts.size() == 1 ? 0 : static_cast<std::size_t>(r)]));
  } else {
    parts.emplace_back(*parse_dtype(type.at("dtype").get<std::string>()),
                       type.at("shape").get<std::vector<std::int64_t>>());
    receives.push_back(message(0, parts[0]));
  }
  ranks.exchange(sends, receives);
  return std::move(parts[0]);
}

}  // namespace lathe
