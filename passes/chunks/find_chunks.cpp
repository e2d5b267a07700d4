#include <fmt/core.h>

#include <algorithm>
#include <optional>

#include "ir/tensor/op/op.h"
#include "passes/chunks/chunk_rows.h"

namespace lathe {

using namespace ir;

namespace {

constexpr std::int64_t most_chunks = 32;  // per product; each chunk makes the program longer

std::int64_t quotient_up(std::int64_t a, std::int64_t b) { return a / b + (a % b != 0 ? 1 : 0); }

/// A product's result as rows and columns.
struct Matrix {
  int columns;            ///< dim of the result
  std::vector<int> rows;  ///< dims, outermost first
};

/// Returns the ways to view a product's result as a matrix; the one with the last columns comes first.
std::vector<Matrix> matrices(const Node& product) {
  const ContractionRoles roles = product.op->as<Contraction>()->roles(product);
  if (!roles.batch().empty()) return {};  // there is no table that all rows share
  const auto dims = [&](const std::string& labels) {
    std::vector<int> found;
    for (const char label : labels) found.push_back(static_cast<int>(roles.out.find(label)));
    return found;
  };
  const std::vector<int> left = dims(roles.lhs_free()), right = dims(roles.rhs_free());
  if (left.empty() || right.empty()) return {};
  const auto size = [&](int d) { return product.type.shape[d].value().value_or(0); };
  const auto largest = [&](std::vector<int> of) {
    std::stable_sort(of.begin(), of.end(), [&](int a, int b) { return size(a) < size(b); });
    return of.back();
  };
  std::vector<Matrix> found = {{largest(right), left}, {largest(left), right}};
  if (found[1].columns > found[0].columns) std::swap(found[0], found[1]);
  return found;
}

/// A cut along one dim.
struct Cut {
  int dim;
  std::int64_t chunks, largest;  ///< `largest`: rows of the largest chunk
};

class ChunkSearch {
 public:
  ChunkSearch(const Graph& graph, const RowChunks& options, bool all) : graph_(graph), options_(options), all_(all) {}

  std::vector<ChunkedRegion> run() {
    for (const ValueId id : all_values(graph_))
      if (graph_[id].op->as<Contraction>() && (all_ || is_large(id))) look_at(id);
    return std::move(found_);
  }

 private:
  bool is_large(ValueId id) const {
    const TensorType& type = graph_[id].type;
    const auto elements = type.shape.numel().value();
    return elements && *elements * size_of(type) >= std::max<std::int64_t>(options_.least_saved, 1);
  }

  void look_at(ValueId id) {
    const TensorType& type = graph_[id].type;
    if (!readers_) readers_.emplace(graph_);
    std::optional<ChunkedRegion> first;
    for (const Matrix& matrix : matrices(graph_[id]))
      for (const Cut& cut : cuts(type.shape, matrix)) {
        ChunkedRegion found{row_region(graph_, *readers_, id, cut.dim, matrix.columns), cut.dim, cut.chunks};
        if (found.region.holds()) {
          judge(found, cut, matrix);
          return keep(std::move(found));
        }
        if (!first) first = std::move(found);
      }
    if (first && is_large(id)) keep(std::move(*first));
  }

  static std::int64_t size_of(const TensorType& type) { return static_cast<std::int64_t>(size_in_bytes(type.dtype)); }

  /// Returns the dims along which rows can be cut, smallest chunks first. Among dims with small chunks, the outermost
  /// comes first, because its rows are contiguous.
  std::vector<Cut> cuts(const Shape& shape, const Matrix& matrix) const {
    Dim rows(1);
    for (const int d : matrix.rows) rows = rows * shape[d].unnamed();
    std::vector<Cut> found;
    for (const int d : matrix.rows) {
      const std::int64_t size = shape[d].value().value_or(0), all = rows.value().value_or(0);
      if (size == 0 || all == 0) {
        found.push_back({d, 0, 0});
        continue;
      }
      const std::int64_t least = std::max(quotient_up(options_.least_rows, all / size), std::int64_t{1}),
                         chunks = std::clamp<std::int64_t>(size / least, 1, most_chunks);
      found.push_back({d, chunks, quotient_up(size, chunks) * (all / size)});
    }
    const auto rank = [&](const Cut& cut) { return cut.largest / 2 < options_.least_rows ? 0 : cut.largest; };
    std::stable_sort(found.begin(), found.end(), [&](const Cut& a, const Cut& b) { return rank(a) < rank(b); });
    return found;
  }

  /// Checks whether a region is worth cutting.
  void judge(ChunkedRegion& found, const Cut& cut, const Matrix& matrix) const {
    const TensorType& type = graph_[found.region.product].type;
    RowRegion& region = found.region;
    region.at = region.product;
    const auto shares = [&](const ChunkedRegion& other) {
      return std::any_of(region.members.begin(), region.members.end(),
                         [&](const auto& member) { return other.region.members.contains(member.first); }) &&
             other.region.holds();
    };
    const auto elements = type.shape.numel().value();
    if (!elements) {
      region.reason = fmt::format("not all sizes of {} are known", type.to_string());
    } else if (cut.chunks < 2) {
      const std::int64_t columns = type.shape[matrix.columns].value().value_or(1);
      region.reason = fmt::format("{} rows are fewer than two chunks of {}",
                                  *elements / std::max<std::int64_t>(columns, 1), options_.least_rows);
    } else if (const auto saved = saved_bytes(type, cut); saved < options_.least_saved) {
      region.reason = fmt::format("chunks would save {} bytes, and {} are the least", saved, options_.least_saved);
    } else if (std::any_of(found_.begin(), found_.end(), shares)) {
      region.reason = "it belongs to another product's chunks";
    }
  }

  static std::int64_t saved_bytes(const TensorType& type, const Cut& cut) {
    const std::int64_t size = type.shape[cut.dim].value().value_or(1), largest = quotient_up(size, cut.chunks);
    return type.shape.numel().value().value_or(0) / size * (size - largest) * size_of(type);
  }

  void keep(ChunkedRegion found) {
    if (!found.region.holds()) found.chunks = 1;
    found_.push_back(std::move(found));
  }

  const Graph& graph_;
  std::optional<Readers> readers_;  // created when a product needs them
  const RowChunks& options_;
  const bool all_;
  std::vector<ChunkedRegion> found_;
};

}  // namespace

std::vector<ChunkedRegion> find_row_chunks(const Graph& graph, const RowChunks& options, bool all) {
  if (!options.on) return {};
  return ChunkSearch(graph, options, all).run();
}

}  // namespace lathe
