#include "runtime/ranks/whole_tensors.h"

#include <algorithm>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>

#include "ir/support/error.h"
#include "passes/shard/collective_values.h"
#include "runtime/files/sha256.h"
#include "runtime/parameters/lend.h"
#include "runtime/ranks/agreement.h"

namespace lathe {

namespace {

Message message(int peer, HostTensor& tensor) {
  return {peer, reinterpret_cast<std::byte*>(tensor.data()), tensor.bytes()};
}

std::string_view bytes_of(const HostTensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data()), tensor.bytes()};
}

/// Throws [mesh_disagree] on every rank if ranks with the same part of a tensor have different bits. Compares digests
/// of all tensors at once.
void require_same_copies(Ranks& ranks, std::span<const OwnPart> parts) {
  const shard::Mesh& mesh = ranks.mesh();
  const auto has_copies = [&](const OwnPart& part) {
    for (int a = 0; a < mesh.axis_count(); ++a)
      if (std::holds_alternative<shard::Whole>(part.placement[a]) && mesh[a].ranks > 1) return true;
    return false;
  };
  std::string own;
  for (const OwnPart& part : parts)
    if (has_copies(part)) own += sha256_hex(bytes_of(part.value));
  if (own.empty()) return;
  const std::vector<std::string> digests = ranks.gather(own);
  const std::size_t digits = sha256_hex("").size();
  std::size_t at = 0;
  for (const OwnPart& part : parts) {
    if (!has_copies(part)) continue;
    shard::require_same_copies(part.placement, mesh, part.name, [&](std::int64_t a, std::int64_t b) {
      return digests[a].substr(at, digits) == digests[b].substr(at, digits);
    });
    at += digits;
  }
}

/// Returns the whole tensor on rank 0, combined from one copy of each part.
std::optional<HostTensor> sent_to_first(Ranks& ranks, OwnPart own) {
  const shard::Mesh& mesh = ranks.mesh();
  const bool is_first = ranks.rank() == 0;
  std::vector<HostTensor> parts(static_cast<std::size_t>(is_first ? ranks.size() : 0));
  std::vector<Message> sends, receives;
  for (int r = 1; is_first && r < ranks.size(); ++r) {
    if (!shard::holds_first_copy(own.placement, mesh, r)) continue;
    HostTensor& part = parts[r];
    part = HostTensor(own.value.dtype(), own.value.shape());
    receives.push_back(message(r, part));
  }
  if (!is_first && shard::holds_first_copy(own.placement, mesh, ranks.rank())) sends.push_back(message(0, own.value));
  ranks.exchange(sends, receives);
  if (!is_first) return std::nullopt;
  if (receives.empty()) return std::move(own.value);
  parts[0] = std::move(own.value);
  return shard::join_parts(parts, own.placement, mesh, own.name);
}

}  // namespace

HostTensor own_part(const Ranks& ranks, HostTensor whole, const shard::Placement& placement,
                    const std::string& name) {
  return shard::part_of(std::move(whole), placement, ranks.mesh(), ranks.rank(), name);
}

HostTensor whole_of(Ranks& ranks, const HostTensor& own, const shard::Placement& placement, const std::string& name) {
  const OwnPart part{name, lend(own), placement};
  require_same_copies(ranks, {&part, 1});
  return shard::join_gathered(own, placement, ranks.mesh(), name, [&](const HostTensor& joined, int axis) {
    std::vector<HostTensor> parts;
    for (const std::string& bytes : ranks.gather(std::string(bytes_of(joined)), ranks.mesh()[axis].name)) {
      HostTensor& tensor = parts.emplace_back(joined.dtype(), joined.shape());
      if (!bytes.empty()) std::memcpy(tensor.data(), bytes.data(), std::min(bytes.size(), tensor.bytes()));
    }
    return parts;
  });
}

Tensors wholes_on_first(Ranks& ranks, std::vector<OwnPart> parts) {
  require_same_copies(ranks, parts);
  Tensors wholes;
  for (OwnPart& part : parts) {
    const std::string name = part.name;
    if (auto whole = sent_to_first(ranks, std::move(part))) wholes.emplace(name, std::move(*whole));
  }
  return wholes;
}

HostTensor part_from_first(Ranks& ranks, const HostTensor* whole, const shard::Placement& placement,
                           const std::string& name) {
  const bool is_first = ranks.rank() == 0;
  LATHE_ASSERT(is_first == (whole != nullptr));
  const bool all_have_the_whole = std::ranges::all_of(
      placement, [](const shard::AxisPlacement& axis) { return std::holds_alternative<shard::Whole>(axis); });
  std::vector<HostTensor> parts;
  nlohmann::json type;
  if (is_first) {
    for (int r = 0; r < (all_have_the_whole ? 1 : ranks.size()); ++r)
      parts.push_back(all_have_the_whole ? *whole : shard::part_of(lend(*whole), placement, ranks.mesh(), r, name));
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
