#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/dim.h"
#include "ir/tensor/mesh/mesh_axis.h"

namespace lathe::shard {

using ir::MeshAxis;

/// Processes in a grid with named axes; the last axis varies fastest. In data=4,model=2, process 5 is at data=2,
/// model=1.
class Mesh {
 public:
  static constexpr std::size_t most_axes = 16;

  Mesh() = default;
  /// Throws UserError [mesh_axis] for an invalid or duplicate name and for too many axes, [mesh_ranks] for an axis
  /// without processes or a mesh with too many.
  Mesh(std::vector<MeshAxis> axes);  // NOLINT(google-explicit-constructor)
  /// Mesh{{"data", 4}, {"model", 2}}.
  Mesh(std::initializer_list<MeshAxis> axes) : Mesh(std::vector<MeshAxis>(axes)) {}
  /// Parses "data=4,model=2". Also throws UserError [mesh_syntax].
  static Mesh parse(std::string_view text);

  const std::vector<MeshAxis>& axes() const { return axes_; }
  int axis_count() const { return static_cast<int>(axes_.size()); }
  const MeshAxis& operator[](int axis) const { return axes_[axis]; }
  /// Returns the position of the axis with that name. Throws UserError [mesh_axis] if there is none.
  int find(std::string_view name) const;
  /// Returns the number of processes.
  std::int64_t size() const;
  /// Returns the position of a process along an axis.
  std::int64_t index(std::int64_t process, int axis) const;
  /// Returns the processes that differ from `process` only along the axis, itself included, in the order of their
  /// positions.
  std::vector<std::int64_t> group(std::int64_t process, int axis) const;
  std::string to_string() const;

 private:
  std::int64_t stride(int axis) const;
  std::vector<MeshAxis> axes_;
};

/// Splits the dims of a name over an axis.
struct Split {
  std::string dim, axis;

  Split(std::string name, std::string along) : dim(std::move(name)), axis(std::move(along)) {}
  /// Splits the dims with the name of `named`: {B, "data"}. Throws UserError [split_unnamed] for a dim without a
  /// name.
  Split(const Dim& named, std::string along);
};
/// Parses "B:data,h:model". Throws UserError [split_syntax].
std::vector<Split> parse_splits(std::string_view text);

}  // namespace lathe::shard
