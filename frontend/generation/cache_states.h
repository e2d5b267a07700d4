#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "ir/tensor/binding.h"
#include "ir/tensor/graph.h"
#include "runtime/parameters/parameters.h"

namespace lathe {

/// The states of graphs that keep keys and values between runs, as values of a store that grow with the sequences.
class CacheStates {
 public:
  /// Takes the states of a graph that hold keys and values. Graphs over one store declare the same.
  void learn(const ir::Graph& graph);
  bool known() const { return !states_.empty(); }

  /// Gives the store values of zeros of these sizes, where it has none of them. `keep`: rows that it has stay.
  void fit(Parameters& store, const DimBindings& sizes, bool keep) const;
  /// Sets the values of `to` to `count` copies of the one sequence in `from`.
  void repeat(const Parameters& from, Parameters& to, std::int64_t count) const;
  /// Copies the only sequence of a store whose states have one into row `row` of the states of another store;
  /// other dims are equal.
  void copy_sequence(const Parameters& from, Parameters& to, std::int64_t row) const;
  /// Takes them out of a store.
  void erase(Parameters& store) const;
  /// What those that the store has take.
  std::int64_t bytes(const Parameters& store) const;

  /// Positions to have room for, `length` of them at least: 256, 1024, 4096, .., but no more than `most` where
  /// `length` is within that, and never less than `now`.
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
