#pragma once

#include <memory>
#include <string>
#include <vector>

#include "bench/gemm/gemm_case.h"

/// The same matmuls by other libraries, if they are installed.
namespace lathe::bench {

class GemmPeer {
 public:
  virtual ~GemmPeer() = default;
  virtual std::string name() const = 0;
  virtual void run(const float* lhs, const float* rhs, float* result) = 0;
};

/// Returns the available peers. OpenBLAS is loaded at run time (`openblas`: its file, empty for the system's), and
/// set to its AVX-512 kernels if it does not know the CPU. oneDNN is linked if CMake found it. For OpenBLAS the pool
/// distributes a batch; a single matmul runs on the peer's own threads, as many as the pool has.
std::vector<std::unique_ptr<GemmPeer>> gemm_peers(const GemmCase& problem, ThreadPool& threads,
                                                  const std::string& openblas);

/// Returns names, versions and kernels of the peers, for the head of a table.
std::string describe_gemm_peers(const std::string& openblas);

}  // namespace lathe::bench
