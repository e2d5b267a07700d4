#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/tensor/binding.h"
#include "ir/tensor/graph.h"
#include "runtime/parameters/parameters.h"

namespace lathe {

/// The key and value caches of a model's graphs, as values in a store that grow with the sequences.
class CacheStates {
 public:
  /// Records the states of a graph that are key or value caches. Graphs over one store must declare the same ones.
  void learn(const ir::Graph& graph);
  bool known() const { return !states_.empty(); }

  /// Puts zeroed caches of the given sizes into the store unless the existing ones fit. `keep`: copies the existing
  /// rows.
  void fit(Parameters& store, const DimBindings& sizes, bool keep) const;
  /// Sets the caches in `to` to `count` copies of the single sequence in `from`.
  void repeat(const Parameters& from, Parameters& to, std::int64_t count) const;
  /// Copies the single sequence in `from` to row `row` of the caches in `to`. All other dims must be equal.
  void copy_sequence(const Parameters& from, Parameters& to, std::int64_t row) const;
  /// Removes the caches from a store.
  void erase(Parameters& store) const;
  /// Returns the size of the caches in the store, in bytes.
  std::int64_t bytes(const Parameters& store) const;

  /// Returns the capacity for at least `length` positions: 256, 1024, 4096, .., but at most `most` if `length` fits
  /// in that, and never less than `now`.
  static std::int64_t capacity(std::int64_t now, std::int64_t length, std::int64_t most);

 private:
  /// [B, kv, rows, d]
  struct State {
    std::string name;
    DType dtype;
    Shape shape;
  };
  std::vector<State> states_;
};

}  // namespace lathe
