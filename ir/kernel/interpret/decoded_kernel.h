#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <unordered_map>
#include <vector>

#include "ir/kernel/interpret/lane_layout.h"
#include "ir/kernel/interpret/scalar_eval.h"
#include "ir/kernel/kernel.h"

/// A kernel as the interpreter executes it: each statement is decoded once, before the kernel runs.
namespace lathe::kernel {

struct DecodedStatement;
struct DecodedNested;
using DecodedBlock = std::vector<DecodedStatement>;

/// Computes all lanes of a statement without memory accesses; `lanes` is Thread::lanes.
using LaneFunction = void (*)(const DecodedStatement& statement, Scalar* lanes);

enum class DecodedKind : std::uint8_t {
  nothing,   // a prefetch
  compute,   // `function`; assignments of variables too
  load,      // out = buffer[a, stride b], masked by c
  store,     // buffer[a, stride b] = out, masked by c
  allocate,  // buffer
  barrier,
  check,      // condition a, Check::code
  branch,     // condition a, `nested`
  loop,       // index out, from a to b by c, `nested`
  intrinsic,  // `instruction`
  region,
};

/// The elements that the lanes of an access refer to: index + lane * stride, or the lane of the index.
enum class AccessPattern : std::uint8_t { contiguous, strided, by_lane };

/// A decoded statement. `out`, `a`, `b` and `c` are positions of first lanes (LaneLayout). It is as large as a cache
/// line.
struct DecodedStatement {
  DecodedKind kind = DecodedKind::nothing;
  AccessPattern pattern = AccessPattern::contiguous;
  bool masked : 1 = false;
  bool alone : 1 = true;  ///< each thread can execute it without the others
  /// The results of this and the adjacent statements with `alone` do not depend on the order in which threads execute
  /// them: no buffer that threads share is both read and written.
  bool in_any_order : 1 = false;
  std::uint16_t lanes = 1;          ///< of the result, or of the stored value
  std::uint16_t operand_lanes = 1;  ///< of operand a
  int alignment = 0;
  BufferId buffer = none;
  std::uint32_t out = 0, a = 0, b = 0, c = 0;
  LaneFunction function = nullptr;
  const Instruction* instruction = nullptr;
  const Statement* source = nullptr;
  const DecodedNested* nested = nullptr;  ///< of a branch or loop
};
static_assert(sizeof(DecodedStatement) <= 64);

/// Adjacent lanes of a thread.
struct LaneRange {
  std::size_t first = 0, count = 0;
};

/// The blocks of a loop or branch.
struct DecodedNested {
  const DecodedBlock *body = nullptr, *else_body = nullptr;
  LoopKind kind = LoopKind::serial;
  bool is_collective = false;  ///< a loop that contains a barrier or another collective statement
  std::size_t number = 0;      ///< among the kernel's loops and branches
  bool in_any_order = false;  ///< a loop whose iterations, on threads of their own, may execute its body in any order
  /// Values and variables of enclosing blocks that are defined before a thread loop.
  std::vector<LaneRange> inherited{};
};

/// All decoded statements of a kernel, which must outlive it.
class DecodedKernel {
 public:
  DecodedKernel(const Kernel& kernel, const LaneLayout& layout);
  DecodedKernel(const DecodedKernel&) = delete;
  DecodedKernel& operator=(const DecodedKernel&) = delete;

  const DecodedBlock& of(const Block& block) const { return *blocks_.at(&block); }
  std::size_t nested_count() const { return nested_.size(); }

 private:
  class BlockDecoder;
  std::deque<DecodedBlock> storage_;
  std::deque<DecodedNested> nested_;
  std::unordered_map<const Block*, const DecodedBlock*> blocks_;
};

/// Returns the statement that computes a value; its kind is `nothing` for constants, dims and loop indices.
DecodedStatement decode_value(const Kernel& kernel, const LaneLayout& layout, ValueId id);

}  // namespace lathe::kernel
