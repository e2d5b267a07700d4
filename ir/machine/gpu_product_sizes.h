#pragma once

#include <cstdint>

namespace lathe {

/// What blocks of products on a GPU go through at a time, and from where on something pays; the same for all entries,
/// not measured on each.
struct GpuProductSizes {
  int plain_side = 16;   ///< threads along each side of a block without tensor cores: 256 in all
  int plain_depth = 16;  ///< of k in shared memory, without tensor cores
  int mma_depth = 32;    ///< of k, in a stage of products by mma
  int mma_stages = 4;    ///< of them in shared memory: one is multiplied, the others are on their way
  int wgmma_stages = 6;  ///< of products by wgmma, at most
  int attention_stages = 4, least_attention_stages = 2;  ///< of attentions by wgmma, at most and at least
  int attention_steps = 64;  ///< of what products of attentions by mma sum over that are copied at once, at most
  std::int64_t attention_slot_bytes = 5 << 10;  ///< of them, at most: a block of heads of 64 has eight slots
  int band_rows = 8;  ///< of tiles that blocks, one after the other, go through column by column: L2 keeps them
  std::int64_t copied_rows = 128;  ///< more, that read an operand, make up for storing it as it is copied
  std::int64_t unpadded_depth = 256, padded_rows = 64;  ///< more k, and as many rows, make up for padding an odd k
  std::int64_t padded_columns_rows = 512;               ///< as many rows make up for padding odd columns of a result
  int few_rows = 8;                ///< of a result, at most, that threads sum which read the other operand as it lies
  int few_rows_threads = 1024;     ///< that they are to a multiprocessor, where the sums are long enough
  std::int64_t late_size = 16384;  ///< what a size counts as, in products without tensor cores, that is bound late
  std::int64_t late_tensor_size = 32768;  ///< the same by tensor cores
  std::int64_t least_split = 1024;        ///< of what is summed over in f32, in a split
  double small_tile_time = 1.3;           ///< of tiles of 64 x 64 in f32 for their work: they load twice as much
  bool operator==(const GpuProductSizes&) const = default;
};

}  // namespace lathe
