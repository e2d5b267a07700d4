#include "codegen/cuda/prelude/prelude.h"

#include "codegen/cuda/intrinsics/hooks.h"

namespace lathe::cuda {

namespace {

constexpr std::string_view head =
    R"cuda(// lathe.cuh: types and functions used by the kernels that Lathe emits. Compile with -fmad=false.
#pragma once

#define LATHE_FUNCTION __device__ __forceinline__

namespace lathe {
)cuda";

constexpr std::string_view tail = R"cuda(
}  // namespace lathe
)cuda";

}  // namespace

std::string prelude() {
  std::string text(head);
  for (const std::string_view part : {detail::prelude_types(), detail::prelude_arithmetic(), detail::prelude_math(),
                                      detail::prelude_f64_math(), detail::prelude_casts()})
    text += part;
  text += detail::prelude_vectors();
  text += detail::prelude_memory();
  for (const HookFamily& family : hook_families()) text += family.device_text;
  return text.append(tail);
}

}  // namespace lathe::cuda
