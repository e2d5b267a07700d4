#pragma once

#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/dim.h"
#include "ir/tensor/mesh/mesh_axis.h"

namespace lathe::shard {

using ir::MeshAxis;

/// Processes in a grid with named axes, the last of which counts fastest: in data=4,model=2 process 5 stands at
/// data=2, model=1.
class Mesh {
 public:
  static constexpr std::size_t most_axes = 16;

  Mesh() = default;
  /// Throws UserError [mesh_axis] for a name that is no word or stands twice and for too many axes, [mesh_ranks] for
  /// an axis without processes.
  Mesh(std::vector<MeshAxis> axes);  // NOLINT(google-explicit-constructor)
  /// Mesh{{"data", 4}, {"model", 2}}.
  Mesh(std::initializer_list<MeshAxis> axes) : Mesh(std::vector<MeshAxis>(axes)) {}
  /// "data=4,model=2". Throws UserError [mesh_syntax] as well.
  static Mesh parse(std::string_view text);

  const std::vector<MeshAxis>& axes() const { return axes_; }
  int axis_count() const { return static_cast<int>(axes_.size()); }
  const MeshAxis& operator[](int axis) const { return axes_[static_cast<std::size_t>(axis)]; }
  /// The position of the axis of that name. Throws UserError [mesh_axis] where there is none.
  int find(std::string_view name) const;
  /// The number of processes.
  std::int64_t size() const;
  /// Where a process stands along an axis.
  std::int64_t index(std::int64_t process, int axis) const;
  /// The processes that differ from `process` along the axis alone, in the order of their positions, itself included.
  std::vector<std::int64_t> group(std::int64_t process, int axis) const;
  std::string to_string() const;

 private:
  std::int64_t stride(int axis) const;
  std::vector<MeshAxis> axes_;
};

/// "The dims of this name are split over that axis."
struct Split {
  std::string dim, axis;

  Split(std::string name, std::string along) : dim(std::move(name)), axis(std::move(along)) {}
  /// The dims of its name: {B, "data"}. Throws UserError [split_unnamed] for a dim without one.
  Split(const Dim& named, std::string along);
};
/// "B:data,h:model". Throws UserError [split_syntax].
std::vector<Split> parse_splits(std::string_view text);

}  // namespace lathe::shard
