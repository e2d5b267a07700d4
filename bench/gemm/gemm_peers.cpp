#include "bench/gemm/gemm_peers.h"

#include <dlfcn.h>
#include <fmt/core.h>

#include <cstdlib>
#include <type_traits>

#ifdef LATHE_ONEDNN
#include <dnnl.hpp>
#endif

namespace lathe::bench {

namespace {

/// Returns a function of a library loaded at run time; null if there is no such function.
template <class Function>
Function* function(void* library, const std::string& name) {
  return reinterpret_cast<Function*>(dlsym(library, name.c_str()));
}

/// The C interface of OpenBLAS with 32-bit sizes. The wheels prefix every name.
struct OpenBlas {
  enum : int { row_major = 101, plain = 111, transposed = 112 };

  explicit OpenBlas(const std::string& file) {
    if (__builtin_cpu_supports("avx512f")) ::setenv("OPENBLAS_CORETYPE", "SkylakeX", 1);
    void* const library = dlopen(file.empty() ? "libopenblas.so.0" : file.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (!library) return;
    const std::string prefix = function<char*()>(library, "scipy_openblas_get_corename") ? "scipy_" : "";
    gemm = function<std::remove_pointer_t<decltype(gemm)>>(library, prefix + "cblas_sgemm");
    gemv = function<std::remove_pointer_t<decltype(gemv)>>(library, prefix + "cblas_sgemv");
    set_threads = function<void(int)>(library, prefix + "openblas_set_num_threads");
    core = function<char*()>(library, prefix + "openblas_get_corename");
    config = function<char*()>(library, prefix + "openblas_get_config");
  }
  bool found() const { return gemm && gemv && set_threads && core && config; }

  void (*gemm)(int order, int trans_a, int trans_b, int m, int n, int k, float alpha, const float* a, int lda,
               const float* b, int ldb, float beta, float* c, int ldc) = nullptr;
  void (*gemv)(int order, int trans, int m, int n, float alpha, const float* a, int lda, const float* x, int incx,
               float beta, float* y, int incy) = nullptr;
  void (*set_threads)(int threads) = nullptr;
  char* (*core)() = nullptr;
  char* (*config)() = nullptr;
};

class OpenBlasGemm : public GemmPeer {
 public:
  OpenBlasGemm(const OpenBlas& blas, const GemmCase& c, ThreadPool& threads)
      : blas_(blas), c_(c), threads_(threads) {}
  std::string name() const override { return "OpenBLAS"; }

  void run(const float* lhs, const float* rhs, float* result) override {
    blas_.set_threads(c_.batch == 1 ? threads_.size() : 1);
    threads_.run(c_.batch, 1, [&](std::int64_t begin, std::int64_t end) {
      for (std::int64_t i = begin; i < end; ++i)
        one(lhs + i * c_.m * c_.k, rhs + i * c_.n * c_.k, result + i * c_.m * c_.n);
    });
  }

 private:
  void one(const float* lhs, const float* rhs, float* result) const {
    const auto m = static_cast<int>(c_.m), n = static_cast<int>(c_.n), k = static_cast<int>(c_.k);
    const bool left_k = c_.lhs == LaneAxis::k, right_k = c_.rhs == LaneAxis::k;
    if (m == 1)  // rows and columns of the stored matrix, in either layout
      return blas_.gemv(OpenBlas::row_major, right_k ? OpenBlas::plain : OpenBlas::transposed, right_k ? n : k,
                        right_k ? k : n, 1.0F, rhs, right_k ? k : n, lhs, 1, 0.0F, result, 1);
    blas_.gemm(OpenBlas::row_major, left_k ? OpenBlas::plain : OpenBlas::transposed,
               right_k ? OpenBlas::transposed : OpenBlas::plain, m, n, k, 1.0F, lhs, left_k ? k : m, rhs,
               right_k ? k : n, 0.0F, result, n);
  }

  const OpenBlas& blas_;
  GemmCase c_;
  ThreadPool& threads_;
};

#ifdef LATHE_ONEDNN
/// The matmul primitive on plain layouts. It reorders its operands in every call.
class OneDnnGemm : public GemmPeer {
 public:
  OneDnnGemm(const GemmCase& c, int threads)
      : lhs_(matrix(c.batch, c.m, c.k, c.lhs == LaneAxis::row)),
        rhs_(matrix(c.batch, c.k, c.n, c.rhs == LaneAxis::k)),
        result_(matrix(c.batch, c.m, c.n, false)) {
    if (auto* const set = function<void(int)>(RTLD_DEFAULT, "omp_set_num_threads")) set(threads);
    matmul_ = dnnl::matmul(dnnl::matmul::primitive_desc(engine_, lhs_, rhs_, result_));
  }
  std::string name() const override { return "oneDNN"; }

  void run(const float* lhs, const float* rhs, float* result) override {
    matmul_.execute(stream_, {{DNNL_ARG_SRC, memory(lhs_, lhs)},
                              {DNNL_ARG_WEIGHTS, memory(rhs_, rhs)},
                              {DNNL_ARG_DST, memory(result_, result)}});
    stream_.wait();
  }

 private:
  static dnnl::memory::desc matrix(std::int64_t batch, std::int64_t rows, std::int64_t columns, bool transposed) {
    dnnl::memory::dims sizes = {rows, columns}, strides = {transposed ? 1 : columns, transposed ? rows : 1};
    if (batch > 1) sizes.insert(sizes.begin(), batch), strides.insert(strides.begin(), rows * columns);
    return {sizes, dnnl::memory::data_type::f32, strides};
  }

  dnnl::memory memory(const dnnl::memory::desc& type, const float* data) const {
    return {type, engine_, const_cast<float*>(data)};
  }

  dnnl::engine engine_{dnnl::engine::kind::cpu, 0};
  dnnl::stream stream_{engine_};
  dnnl::memory::desc lhs_, rhs_, result_;
  dnnl::matmul matmul_;
};
#endif

const OpenBlas& open_blas(const std::string& file) {
  static const OpenBlas blas(file);
  return blas;
}

}  // namespace

std::vector<std::unique_ptr<GemmPeer>> gemm_peers(const GemmCase& problem, ThreadPool& threads,
                                                  const std::string& openblas) {
  std::vector<std::unique_ptr<GemmPeer>> peers;
  const OpenBlas& blas = open_blas(openblas);
  if (blas.found()) peers.push_back(std::make_unique<OpenBlasGemm>(blas, problem, threads));
#ifdef LATHE_ONEDNN
  peers.push_back(std::make_unique<OneDnnGemm>(problem, threads.size()));
#endif
  return peers;
}

std::string describe_gemm_peers(const std::string& openblas) {
  const OpenBlas& blas = open_blas(openblas);
  std::string text = blas.found() ? fmt::format("{} (kernels: {})", blas.config(), blas.core()) : "no OpenBLAS";
#ifdef LATHE_ONEDNN
  const dnnl_version_t& version = *dnnl_version();
  text += fmt::format("; oneDNN {}.{}.{}", version.major, version.minor, version.patch);
#else
  text += "; no oneDNN";
#endif
  return text;
}

}  // namespace lathe::bench
