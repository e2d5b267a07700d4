#include "ir/mesh/mesh.h"

#include <fmt/core.h>

#include <charconv>
#include <optional>
#include <set>

#include "ir/support/error.h"
#include "ir/support/visible.h"

namespace lathe::shard {

namespace {

/// Parses "a=1,b=2" as pairs; returns nothing if an entry has no separator or an empty side.
std::optional<std::vector<std::pair<std::string, std::string>>> pairs_of(std::string_view text, char separator) {
  std::vector<std::pair<std::string, std::string>> pairs;
  while (true) {
    const auto comma = text.find(',');
    const std::string_view entry = text.substr(0, comma);
    const auto at = entry.find(separator);
    if (at == std::string_view::npos || at == 0 || at + 1 == entry.size()) return std::nullopt;
    pairs.emplace_back(entry.substr(0, at), entry.substr(at + 1));
    if (comma == std::string_view::npos) return pairs;
    text.remove_prefix(comma + 1);
  }
}

std::optional<std::int64_t> number(const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

}  // namespace

Mesh::Mesh(std::vector<MeshAxis> axes) : axes_(std::move(axes)) {
  std::set<std::string_view> names;
  std::int64_t processes = 1;
  if (axes_.size() > most_axes)
    throw UserError(fmt::format("the mesh has {} axes", axes_.size()), "mesh_axis",
                    fmt::format("it may have {}", most_axes));
  for (const MeshAxis& axis : axes_) {
    if (!is_dim_name(axis.name) || axis.name.find_first_of("@.") != std::string::npos)
      throw UserError(fmt::format("'{}' cannot name a mesh axis", visible(axis.name)), "mesh_axis",
                      "a name is a letter or underscore followed by letters, digits or underscores");
    if (!names.insert(axis.name).second)
      throw UserError(fmt::format("the mesh has two axes named {}", axis.name), "mesh_axis",
                      "give each its own name");
    constexpr std::int64_t most = 1 << 20;
    if (axis.ranks < 1 || axis.ranks > most || processes > most / axis.ranks)
      throw UserError(fmt::format("the mesh axis {} has {} processes", axis.name, axis.ranks), "mesh_ranks",
                      fmt::format("an axis has 1 or more, a mesh at most {}", most));
    processes *= axis.ranks;
  }
}

Mesh Mesh::parse(std::string_view text) {
  const auto bad = [&] {
    return UserError(fmt::format("'{}' describes no mesh", visible(text)), "mesh_syntax",
                     "name the axes and their numbers of processes, as in data=4,model=2");
  };
  const auto pairs = pairs_of(text, '=');
  if (!pairs) throw bad();
  std::vector<MeshAxis> axes;
  for (const auto& [name, ranks] : *pairs) {
    const auto count = number(ranks);
    if (!count) throw bad();
    axes.push_back({name, *count});
  }
  return Mesh(std::move(axes));
}

int Mesh::find(std::string_view name) const {
  std::vector<std::string> known;
  for (int a = 0; a < axis_count(); ++a) {
    if (axes_[a].name == name) return a;
    known.push_back(axes_[a].name);
  }
  std::string list;
  for (const std::string& each : known) list += (list.empty() ? "" : ", ") + each;
  throw UserError(fmt::format("the mesh {} has no axis {}", to_string(), visible(name)), "mesh_axis",
                  known.empty() ? "it has no axes" : fmt::format("its axes are {}", list));
}

std::int64_t Mesh::size() const {
  std::int64_t size = 1;
  for (const MeshAxis& axis : axes_) size *= axis.ranks;
  return size;
}

std::int64_t Mesh::stride(int axis) const {
  std::int64_t stride = 1;
  for (int a = axis_count() - 1; a > axis; --a) stride *= (*this)[a].ranks;
  return stride;
}

std::int64_t Mesh::index(std::int64_t process, int axis) const {
  return process / stride(axis) % (*this)[axis].ranks;
}

std::vector<std::int64_t> Mesh::group(std::int64_t process, int axis) const {
  std::vector<std::int64_t> members;
  const std::int64_t first = process - index(process, axis) * stride(axis);
  for (std::int64_t i = 0; i < (*this)[axis].ranks; ++i) members.push_back(first + i * stride(axis));
  return members;
}

std::string Mesh::to_string() const {
  std::string text;
  for (const MeshAxis& axis : axes_) text += fmt::format("{}{}={}", text.empty() ? "" : ",", axis.name, axis.ranks);
  return text;
}

Split::Split(const Dim& named, std::string along) : dim(named.name()), axis(std::move(along)) {
  if (dim.empty())
    throw UserError(fmt::format("the dim {} cannot be split over {}: it has no name", named.to_string(), axis),
                    "split_unnamed",
                    fmt::format("dims are split by name: use Dim{{\"d_ff\", {}}}, or split one of its factors",
                                named.to_string()));
}

std::vector<Split> parse_splits(std::string_view text) {
  const auto pairs = pairs_of(text, ':');
  if (!pairs)
    throw UserError(fmt::format("'{}' describes no splits", visible(text)), "split_syntax",
                    "name dims and the mesh axes that they are split over, as in B:data,h:model");
  std::vector<Split> splits;
  for (const auto& [dim, axis] : *pairs) splits.push_back({dim, axis});
  return splits;
}

}  // namespace lathe::shard
