#pragma once

#include <string>
#include <vector>

#include "bench/gemm/gemm_case.h"

/// The matmuls that bench_gemm measures, by group.
namespace lathe::bench {

struct GemmGroup {
  std::string name;
  double reach;  ///< target share of the FMA peak (of the read bandwidth if operands are streamed); 0: none
  std::vector<GemmCase> cases;
};

std::vector<GemmGroup> gemm_table();

/// Parses "48x1024x384x1152 k r": [batch x] m x n x k and the lane axes (r: row).
GemmCase own_gemm_case(const std::string& text);

}  // namespace lathe::bench
