#pragma once

#include <string_view>

/// The files of include/lathe/aot, embedded by embed.cmake.
namespace lathe::tools {

extern const std::string_view embedded_lathe_pool_h, embedded_lathe_memory_h, embedded_lathe_safetensors_h,
    embedded_lathe_cuda_h, embedded_lathe_call_hpp;

}  // namespace lathe::tools
