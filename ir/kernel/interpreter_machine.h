#pragma once

#include <deque>
#include <memory>
#include <span>
#include <vector>

#include "ir/kernel/interpreter_memory.h"

/// The meaning of the operations that stand for one machine instruction of a GPU, thread by thread.
namespace lathe::kernel {

/// The asynchronous copies that one thread has started.
class CopyQueue {
 public:
  /// 16 bytes on their way: from now on what lies there is undefined, and nobody may touch it.
  void start(std::shared_ptr<Scratch> memory, const Target& to, std::int64_t first, std::vector<Scalar> values,
             const Actor& actor);
  void commit();
  /// Ends all groups but the latest `pending`: the values lie there, as if the thread had stored them now.
  void wait(int pending, const Actor& actor);

 private:
  struct Copy {
    std::shared_ptr<Scratch> memory;  // which may outlive its block
    Target to;
    std::int64_t first = 0;
    std::vector<Scalar> values;
  };
  std::vector<Copy> open_;
  std::deque<std::vector<Copy>> groups_;
};

/// What one thread knows. Lanes of value v stand at [offset(v), offset(v) + lanes).
struct Thread {
  std::vector<Scalar> values, vars;
  std::vector<std::shared_ptr<Scratch>> scratch;  // by buffer
  CopyQueue copies;
  std::int64_t position[3] = {0, 0, 0};

  std::int64_t id() const { return position[0] + 1024 * (position[1] + 1024 * position[2]); }
};

/// Where an operand of mma, or of tile_mma, lies.
struct TilePlace {
  Target buffer;
  std::int64_t first = 0, line = 0;
};

/// A tensor that boxes are copied of.
struct MappedTensor {
  Target from;
  std::int64_t offset = 0;
  std::vector<std::int64_t> sizes, strides;
};

/// The elements of a box, as they lie in panels. Throws for an offset or stride that is no multiple of 16 bytes.
std::vector<Scalar> read_box(const MappedTensor& tensor, const std::vector<int>& box,
                             const std::vector<std::int64_t>& at, const Actor& actor);

/// What thread `lane` of a warp gets of an mma: each of its sums plus 16 products, in order, each product and sum
/// rounded once, as fma. Throws for a first or line that is no multiple of 16 bytes.
void multiply_tiles(const Instruction& mma, const TilePlace& left, const TilePlace& right, int lane,
                    const Actor& actor, const Scalar* sums, Scalar* out);

/// A tile_mma over `depth`. Throws for a depth that is no multiple of 32.
void multiply_blocks(const TileMma& mma, const TilePlace& sums, const TilePlace& left, const TilePlace& right,
                     std::int64_t depth, const Actor& actor);

/// The rows of the left operand of a wgmma that thread number `thread` of a warpgroup has sums of: of a panel
/// (the place's line does not count), or of what the group's threads hold. Throws for a panel that is no multiple of
/// 1024 bytes.
std::vector<Scalar> left_of_panel(const Wgmma& mma, const TilePlace& left, int thread, const Actor& actor);
std::vector<Scalar> left_of_threads(const Wgmma& mma, std::span<const Scalar* const> held, int thread);
/// The same as multiply_tiles of wgmma for that thread, with these rows, added to its sums.
void multiply_panels(const Wgmma& mma, const std::vector<Scalar>& left, const TilePlace& right, int thread,
                     const Actor& actor, Scalar* sums);

}  // namespace lathe::kernel
