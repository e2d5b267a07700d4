#include <fmt/core.h>
#include <fmt/ranges.h>

#include <vector>

#include "codegen/cuda/intrinsics/hooks.h"
#include "ir/kernel/intrinsics/gpu/copy_box.h"

namespace lathe::cuda {

namespace {

std::string copy_box_text(const kernel::Instruction& in, const KernelText& k) {
  const auto s = kernel::CopyBox::of(in);
  std::vector<std::string> at;
  for (const kernel::ValueId id : s.at) at.push_back(k.value(id));
  return fmt::format("copy_box<{}>(pipeline, {}, {}, {}, {})", k.kernel().maps[s.map].box_rows(), k.buffer(s.to),
                     k.value(s.to_index), k.map(s.map), fmt::join(at, ", "));
}

constexpr std::string_view box_device_text = R"cuda(
// ---- TMA copies of boxes of tensors into a stage of a pipeline ----

/// A TMA descriptor, encoded by cuTensorMapEncodeTiled.
struct alignas(64) TensorMap {
  u64 words[16];
};
/// Starts an asynchronous copy of a box of the tensor to shared memory. `coordinates` are the box's first element,
/// innermost dim first. The copied bytes count toward the barrier's transaction count.
template <class... At>
LATHE_FUNCTION void copy_tensor_box(void* to, const TensorMap& from, u64* barrier, At... coordinates) {
  const i32 at[] = {i32(coordinates)...};
#ifdef __CUDA_ARCH__
#define LATHE_COPY_BOX(rank, list, ...)                                                                      \
  asm volatile("cp.async.bulk.tensor." rank                                                                  \
               ".shared::cluster.global.tile.mbarrier::complete_tx::bytes [%0], [%1, {" list "}], [%2];" ::  \
                   "r"(shared_address(to)),                                                                  \
               "l"(&from), "r"(shared_address(barrier)), __VA_ARGS__                                         \
               : "memory")
  if constexpr (sizeof...(At) == 2) LATHE_COPY_BOX("2d", "%3, %4", "r"(at[0]), "r"(at[1]));
  if constexpr (sizeof...(At) == 3) LATHE_COPY_BOX("3d", "%3, %4, %5", "r"(at[0]), "r"(at[1]), "r"(at[2]));
  if constexpr (sizeof...(At) == 4)
    LATHE_COPY_BOX("4d", "%3, %4, %5, %6", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]));
  if constexpr (sizeof...(At) == 5)
    LATHE_COPY_BOX("5d", "%3, %4, %5, %6, %7", "r"(at[0]), "r"(at[1]), "r"(at[2]), "r"(at[3]), "r"(at[4]));
#undef LATHE_COPY_BOX
#else
  shim_copy_box(to, &from, barrier, at, sizeof...(At));
#endif
}
/// Copies a box of `rows` rows of 128 bytes; only the first producer thread issues the copy.
template <int rows, class Pipeline, class T, class... At>
LATHE_FUNCTION void copy_box(const Pipeline& pipeline, T* to, i64 first, const TensorMap& from, At... coordinates) {
  if (threadIdx.x != pipeline.first_producer) return;
  expect_bytes(pipeline.barriers + pipeline.at, rows * 128);
  copy_tensor_box(to + first, from, pipeline.barriers + pipeline.at, coordinates...);
}
)cuda";

constexpr std::string_view box_words[] = {"TensorMap", "copy_box"};
constexpr IntrinsicHook box_table[] = {{&kernel::copy_box_record, copy_box_text}};

}  // namespace

extern const HookFamily box_hooks;
constinit const HookFamily box_hooks{box_device_text, box_words, box_table};

}  // namespace lathe::cuda
