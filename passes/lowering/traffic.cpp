#include "passes/lowering/traffic.h"

#include <algorithm>
#include <optional>

namespace lathe {

namespace {

/// Number of points along the domain dims in `bits`.
Dim points_along(const ElementwiseProgram& program, std::uint64_t bits) {
  Dim points = 1;
  for (int d = 0; d < program.domain.rank(); ++d)
    if (bits >> d & 1) points = points * program.domain[d].unnamed();
  return points;
}

std::uint64_t dims_of(const Linear& form) {
  std::uint64_t bits = 0;
  for (std::size_t d = 0; d < form.coefficients.size(); ++d)
    if (!form.coefficients[d].is(0)) bits |= std::uint64_t{1} << d;
  return bits;
}

/// A dim of a load: its size, and the distance of adjacent elements.
struct StridedDim {
  Dim size, stride;
};

/// Takes the dims that continue a run of `size` elements at `stride`, and returns its size with them.
Dim taken_run(std::vector<StridedDim>& dims, const Dim& stride, Dim size) {
  for (;;) {
    const auto next = std::ranges::find(dims, stride * size, &StridedDim::stride);
    if (next == dims.end()) return size;
    size = size * next->size;
    dims.erase(next);
  }
}

/// Returns what a form reads, as rows at one distance; nothing if it is not that.
std::optional<RowsRead> rows_of(const ElementwiseProgram& program, const Linear& form) {
  std::vector<StridedDim> dims;
  for (int d = 0; d < program.domain.rank(); ++d)
    if (const Dim& stride = form.coefficients[d]; !stride.is(0) && !program.domain[d].is(1))
      dims.push_back({program.domain[d].unnamed(), stride});
  RowsRead read{.first = form.offset};
  read.count = taken_run(dims, 1, 1);
  for (std::size_t inner = 0; inner < dims.size(); ++inner) {
    std::vector<StridedDim> outer = dims;
    const StridedDim row = dims[inner];
    outer.erase(outer.begin() + static_cast<std::ptrdiff_t>(inner));
    read.stride = row.stride, read.rows = taken_run(outer, row.stride, row.size);
    if (outer.empty()) return read;
  }
  if (!dims.empty()) return std::nullopt;
  read.rows = 1;
  return read;
}

/// The smaller of two sizes if their difference has the same sign for all dims; otherwise `a`.
Dim smaller(const Dim& a, const Dim& b) {
  const Dim difference = a - b;
  const auto& terms = difference.terms();
  const bool larger = std::all_of(terms.begin(), terms.end(), [](const Dim::Term& t) { return t.coefficient >= 0; });
  return larger ? b : a;
}

}  // namespace

std::map<int, Dim> touched_elements(const std::vector<const ElementwiseProgram*>& programs,
                                    const LoweringContext& lowering) {
  struct Reads {
    std::vector<std::pair<const ElementwiseProgram*, const ElementwiseInstruction*>> seen;
    Dim elements = 0, size = 0;
  };
  std::map<int, Reads> reads;
  std::map<int, Dim> touched;
  const auto size = [&](ir::ValueId node) { return lowering.graph[node].type.shape.numel().unnamed(); };
  for (const ElementwiseProgram* program : programs) {
    for (int i = 0; i < program->size(); ++i) {
      const ElementwiseInstruction& code = (*program)[i];
      if (!code.buffer.valid()) continue;
      const bool gathers = code.kind == ElementwiseInstruction::Kind::gather,
                 sums = code.kind == ElementwiseInstruction::Kind::row_sum;
      Reads& read = reads[lowering.buffer_of(code.buffer)];
      read.size = size(code.buffer);
      const auto same = [&](const auto& other) {
        return other.first == program && other.second->kind == code.kind && other.second->form == code.form &&
               (!gathers || other.second->args == code.args);
      };
      if (std::any_of(read.seen.begin(), read.seen.end(), same)) continue;
      read.seen.emplace_back(program, &code);
      const std::uint64_t dims = gathers ? program->depends[i] : dims_of(code.form);
      read.elements = read.elements + (sums ? read.size : points_along(*program, dims));
    }
    for (const ElementwiseStore& store : program->stores) {
      const auto at = touched.try_emplace(lowering.buffer_of(store.node), 0).first;
      at->second = at->second + points_along(*program, dims_of(store.form));
    }
  }
  for (const auto& [buffer, read] : reads) {
    const auto at = touched.try_emplace(buffer, 0).first;
    at->second = at->second + smaller(read.elements, read.size);
  }
  return touched;
}

std::map<int, RowsRead> rows_read(const std::vector<const ElementwiseProgram*>& programs,
                                  const LoweringContext& lowering) {
  std::map<int, std::optional<RowsRead>> found;
  for (const ElementwiseProgram* program : programs)
    for (const ElementwiseInstruction& code : program->code) {
      if (!code.buffer.valid()) continue;
      const ir::Node& node = lowering.graph[code.buffer];
      std::optional<RowsRead> read;
      const bool is_cache = node.op->name.value == "state" || node.op->name.value == "update_rows";
      if (code.kind == ElementwiseInstruction::Kind::load && is_cache) read = rows_of(*program, code.form);
      if (read && read->count * read->rows == node.type.shape.numel().unnamed()) read.reset();
      const auto [at, is_new] = found.try_emplace(lowering.buffer_of(code.buffer), read);
      if (!is_new && at->second != read) at->second.reset();
    }
  std::map<int, RowsRead> rows;
  for (const auto& [buffer, read] : found)
    if (read) rows.emplace(buffer, *read);
  return rows;
}

Dim launch_bytes(const kernel::Kernel& kernel, const Launch& launch, const std::vector<ProgramBuffer>& buffers,
                 const std::map<int, Dim>& touched) {
  Dim bytes = 0;
  for (std::size_t i = 0; i < launch.buffers.size(); ++i) {
    const ProgramBuffer& buffer = buffers[launch.buffers[i]];
    const auto known = touched.find(launch.buffers[i]);
    const bool both = kernel.buffers[i].access == kernel::Access::read_write;
    const Dim elements = known != touched.end() ? known->second : buffer.elements.unnamed() * Dim(both ? 2 : 1);
    bytes = bytes + elements * Dim(static_cast<std::int64_t>(size_in_bytes(buffer.dtype)));
  }
  return bytes;
}

}  // namespace lathe
