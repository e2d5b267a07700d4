#pragma once

#include <cstdint>
#include <unordered_map>
#include <vector>

#include "ir/kernel/interpret/interpreter_memory.h"

namespace lathe::kernel {

/// A record per element of shared memory, for the checks of a running region.
template <class Element>
class SharedElements {
 public:
  Element& at(const Target& target, std::int64_t index) {
    if (target.scratch != latest_scratch_) {
      latest_ = &elements_[latest_scratch_ = target.scratch];
      latest_->resize(static_cast<std::size_t>(target.count));
    }
    return (*latest_)[static_cast<std::size_t>(index)];
  }

 private:
  std::unordered_map<const Scratch*, std::vector<Element>> elements_;
  // Cache of the lookup in elements_ for the scratch accessed last.
  const Scratch* latest_scratch_ = nullptr;
  std::vector<Element>* latest_ = nullptr;
};

/// The elements of shared memory that the consumers of a running pipeline give to its last threads. Checks that the
/// last threads read only elements that the warpgroup they finish for gave last, and that no other thread accesses
/// those elements.
class HandedElements {
 public:
  /// The steps of a turn: all consumers give, in groups of `threads`, then each group's elements are finished.
  void give(std::int64_t threads) { ++turn_, phase_ = Phase::giving, group_threads_ = threads; }
  void finish(std::int64_t group) { group_ = group, phase_ = Phase::finishing; }
  void end() { phase_ = Phase::outside; }

  /// Return whether the access needs no barrier. Throw [hand_over] or [race].
  bool note_read(const Target& from, std::int64_t index, const Actor& actor);
  bool note_write(const Target& to, std::int64_t index, const Actor& actor);

 private:
  enum class Phase : std::uint8_t { outside, giving, finishing };
  struct Element {
    std::int64_t turn = -1;   // that gave it last
    std::int64_t giver = -1;  // thread
  };

  SharedElements<Element> elements_;
  Phase phase_ = Phase::outside;
  std::int64_t turn_ = -1, group_ = 0, group_threads_ = warpgroup_threads;
};

}  // namespace lathe::kernel
