#pragma once

#include <span>
#include <vector>

#include "models/text/tokenizer/encoding.h"
#include "models/text/tokenizer/model/pair_map.h"

namespace lathe::text {

/// A token of a word during merging, and its size in bytes.
struct Symbol {
  TokenId id = 0;
  std::uint32_t size = 0;
};

/// The merges of a BPE model: pairs of tokens with the resulting token and a rank.
class MergeTable {
 public:
  struct Merge {
    std::uint32_t rank = 0;
    TokenId id = 0;
  };

  void set(TokenId left, TokenId right, Merge merge) {
    merges_[PairMap<Merge>::key(unsigned_of(left), unsigned_of(right))] = merge;
  }
  const Merge* find(TokenId left, TokenId right) const { return merges_.find(unsigned_of(left), unsigned_of(right)); }

  /// Merges pairs until none is left: lowest rank first, leftmost first among equals. O(n log n) for n symbols.
  void apply(std::vector<Symbol>& symbols) const;

 private:
  static std::uint32_t unsigned_of(TokenId id) { return static_cast<std::uint32_t>(id); }
  void apply_to_few(std::vector<Symbol>& symbols) const;
  void apply_to_many(std::vector<Symbol>& symbols) const;

  PairMap<Merge> merges_;
};

}  // namespace lathe::text
