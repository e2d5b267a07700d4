#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/gemm_case.h"

/// The same products by other libraries, where they are installed.
namespace lathe::bench {

class GemmPeer {
 public:
  virtual ~GemmPeer() = default;
  virtual std::string name() const = 0;
  virtual void run(const float* lhs, const float* rhs, float* result) = 0;
};

/// OpenBLAS is found when the program runs (`openblas`: its file, empty for the system's), and told to use its
/// AVX-512 kernels where it does not know the processor; oneDNN is linked if CMake found it. The pool shares a batch
/// of OpenBLAS products; both share a single product among their own threads, as many as the pool has.
std::vector<std::unique_ptr<GemmPeer>> gemm_peers(const GemmCase& problem, ThreadPool& threads,
                                                  const std::string& openblas);

/// Names, versions and kernels of the peers that were found, for the head of a table.
std::string describe_gemm_peers(const std::string& openblas);

}  // namespace lathe::bench
