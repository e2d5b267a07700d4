#include "codegen/cuda/emitter.h"

#include <catch2/catch.hpp>

#include "codegen/cuda/mapping.h"
#include "codegen/llvm/jit.h"
#include "ir/kernel/build/builder.h"
#include "ir/kernel/intrinsics/split_bf16.h"
#include "ir/support/error.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/cuda/host/kernels.h"
#include "tests/support/programs/first_threads.h"

using namespace lathe;
using namespace lathe::kernel;
using test::reverse_kernel;
using test::row_sum_kernel;
using test::scale_kernel;

namespace {

bool holds(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

/// Returns a kernel of one block of `threads` threads.
template <class Body>
Kernel one_block(const std::string& name, int threads, const Body& body) {
  Builder b(name);
  b.for_loop(
      0, 1, 1, [&](Value) { b.for_loop(0, threads, 1, [&](Value t) { body(b, t); }, LoopKind::thread_x); },
      LoopKind::block_x);
  return b.finish();
}

}  // namespace

TEST_CASE("a point-wise kernel prints as CUDA C++, with 16-byte accesses") {
  CHECK(cuda::emit(scale_kernel(), gpu_info("sm_80")) == R"(#include "lathe.cuh"

namespace lathe {

// %3 mul mlp.cpp:14
extern "C" __global__ void __launch_bounds__(32)
scale(const f32* __restrict__ x, f32* __restrict__ y, const i64 n, u64* const status) {
  if (const i32 i0 = i32(blockIdx.x) * 128; i0 < i32(n)) {
    {
      const i32 i1 = i32(threadIdx.x) * 4;
      const i32 v0 = i0 + i1;
      if ((v0 + 4) <= i32(n)) {
        const vec<f32, 4> v1 = load_aligned<4>(x, v0);
        store_aligned(y, v0, v1 * broadcast<4>(2.0f));
      } else {
        const vec<bool, 4> v2 = ramp<4>(0, 1) < broadcast<4>(cast<i32>(max(min(i32(n) - v0, 4), 0)));
        const vec<f32, 4> v3 = load_if(v2, x, v0);
        store_if(v2, y, v0, v3 * broadcast<4>(2.0f));
      }
    }
  }
}

}  // namespace lathe
)");
}

TEST_CASE("a vector with a uniform mask is loaded 16 bytes at a time") {
  const auto text = [](int apart) {
    const Kernel kernel = one_block("either", 32, [apart](Builder& b, Value t) {
      const Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
      b.store(y, t * 4, b.load(x, t * apart, 4, t < b.dim("n")));
    });
    return cuda::emit(kernel, gpu_info("sm_80"));
  };
  CHECK(holds(text(4), "load_aligned_if(broadcast<4>(i1 < i32(n)), x, i1 * 4)"));
  CHECK(holds(text(3), "load_if(broadcast<4>(i1 < i32(n)), x, i1 * 3)"));
}

TEST_CASE("a prefetch prints as CUDA C++") {
  const Kernel kernel = one_block("ahead", 32, [](Builder& b, Value t) {
    const Buffer x = b.buffer("x", f32, Access::read_write);
    b.prefetch(x, t * 32);
    b.store(x, t, b.load(x, t) + 1);
  });
  CHECK(holds(cuda::emit(kernel, gpu_info("sm_80")), "prefetch(x, i1 * 32);"));
}

TEST_CASE("shared memory and barriers print as CUDA C++") {
  CHECK(cuda::emit(reverse_kernel(), gpu_info("sm_80")) == R"(#include "lathe.cuh"

namespace lathe {

extern "C" __global__ void __launch_bounds__(32)
reverse(const f32* __restrict__ x, f32* __restrict__ y, const i64 blocks, u64* const status) {
  if (const i32 i0 = i32(blockIdx.x); i0 < i32(blocks)) {
    __shared__ __align__(16) f32 piece[32];
    {
      const i32 i1 = i32(threadIdx.x);
      const f32 v0 = x[(i0 * 32) + i1];
      piece[i1] = v0;
      __syncthreads();
      const f32 v1 = piece[31 - i1];
      y[(i0 * 32) + i1] = v1;
    }
  }
}

}  // namespace lathe
)");
}

TEST_CASE("loop indices are numbered and do not collide with type names") {
  constexpr int loops = 70;
  const Kernel kernel = one_block("many", 32, [](Builder& b, Value t) {
    const Buffer x = b.buffer("j8", f32, Access::read_write);
    for (int i = 0; i < loops; ++i) {
      const auto add = [&](Value n) { b.store(x, t * 3 + n, b.load(x, t * 3 + n) + b.cast(n, f32)); };
      b.for_loop(0, 3, 1, add);
    }
  });
  const std::string text = cuda::emit(kernel, gpu_info("sm_80"));
  INFO(text);
  for (const char* part : {"f32* __restrict__ j8_2", "j8_2[", " i7 = 0;", " j8 = 0;", " i9 = 0;", " i31 = 0;",
                           " j32 = 0;", " j64 = 0;", " i65 = 0;", " i71 = 0;"})
    CHECK(holds(text, part));
  for (const char* part : {" i8 = ", " i32 = ", " i64 = ", " j9 = "}) CHECK_FALSE(holds(text, part));
  const auto host = test::HostCuda::build({&kernel, 1});
  if (!host) return;
  std::vector<float> x(96, 1.0F);
  const BoundBuffer buffers[] = {{x.data(), 96}};
  host->run(kernel, buffers, {});
  for (std::size_t i = 0; i < x.size(); ++i) CHECK(x[i] == 1.0F + loops * static_cast<float>(i % 3));
}

TEST_CASE("consumer names and notes cannot break the CUDA text") {
  const Kernel kernel = [] {
    Builder b("2 softmax-step::int");
    b.note("%1 \"odd\nname\" c:\\m.cpp:1\\");
    Buffer x = b.buffer("float", f32, Access::write), y = b.buffer("v3", f32, Access::read);
    Value n = b.dim("exp");
    b.for_loop(
        0, n, 1,
        [&](Value t) { b.for_loop(0, 1, 1, [&](Value) { b.store(x, t, b.load(y, t)); }, LoopKind::thread_x); },
        LoopKind::block_x);
    return b.finish();
  }();
  const std::string text = cuda::emit(kernel, gpu_info("sm_80"));
  CHECK(holds(text, "// %1 \"odd name\" c:/m.cpp:1/\n"));
  CHECK(holds(text, "k2_softmax_step_int(f32* __restrict__ float_2, const f32* __restrict__ v3_2, const i64 exp_2,"));
  CHECK(cuda::symbol_of(kernel) == "k2_softmax_step_int");
}

TEST_CASE("large shared memory is allocated at launch, in multiples of 16 bytes") {
  Builder b("large");
  Buffer out = b.buffer("out", f32, Access::write);
  const auto block = [&](Value) {
    Buffer first = b.alloc(i32, 3, Space::shared, "first"), second = b.alloc(f32, 16384, Space::shared, "second");
    const auto thread = [&](Value t) {
      b.store(first, 0, b.constant_int(i32, 1));
      b.store(second, t, b.constant(f32, 1));
      b.store(out, t, b.load(second, t));
    };
    b.for_loop(0, 1, 1, thread, LoopKind::thread_x);
  };
  b.for_loop(0, 1, 1, block, LoopKind::block_x);
  const Kernel kernel = b.finish();
  CHECK(cuda::mapping_of(kernel, gpu_info("sm_80")).shared_bytes == 16 + 65536);
  const std::string text = cuda::emit(kernel, gpu_info("sm_80"));
  CHECK(holds(text, "extern __shared__ __align__(16) unsigned char shared_memory[];"));
  CHECK(holds(text, "f32* const second = reinterpret_cast<f32*>(shared_memory + 16);"));
}

TEST_CASE("constants keep every bit") {
  const double inf = std::numeric_limits<double>::infinity();
  const Kernel kernel = one_block("constants", 1, [&](Builder& b, Value t) {
    Buffer x = b.buffer("x", f32, Access::write), h = b.buffer("h", bf16, Access::write);
    Buffer w = b.buffer("w", f64, Access::write), n = b.buffer("n", i64, Access::write);
    int at = 0;
    for (const double v : {0.1, -0.0, 1e30, inf, -inf, std::nan("")}) b.store(x, t + at++, b.constant(f32, v));
    b.store(w, t, b.constant(f64, 0.1));
    b.store(h, t, b.constant(bf16, 1.5));
    b.store(n, t, b.index(INT64_MIN));
  });
  const std::string text = cuda::emit(kernel, gpu_info("sm_80"));
  for (const char* part :
       {"= 0.1f;", "= -0.0f;", "= 1e+30f;", "= from_bits(0x7f800000);", "= -from_bits(0x7f800000);",
        "= from_bits(0x7fc00000);", "= 0.1;", "= bf16{0x3fc0};", "= (-9223372036854775807LL - 1);"}) {
    INFO(part << " in\n" << text);
    CHECK(holds(text, part));
  }
}

TEST_CASE("accesses are wide only if the index is a known multiple") {
  Builder b("rows");
  Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
  Value rows = b.dim("rows"), cols = b.dim("cols");
  const auto row = [&](Value r) {
    const auto thread = [&](Value c) { b.store(y, r * cols + c, b.load(x, r * 768 + c, 4)); };
    b.for_loop(0, 128, 4, thread, LoopKind::thread_x);
  };
  b.for_loop(0, rows, 1, row, LoopKind::block_x);
  const std::string text = cuda::emit(b.finish(), gpu_info("sm_80"));
  CHECK(holds(text, "load_aligned<4>(x, "));
  CHECK(holds(text, "store(y, "));
}

TEST_CASE("the thread block and shared memory and grid of a kernel") {
  const Kernel sum = row_sum_kernel();
  const cuda::Mapping mapping = cuda::mapping_of(sum, gpu_info("sm_80"));
  CHECK(mapping.threads == std::array<int, 3>{64, 1, 1});
  CHECK(mapping.shared_bytes == 256);
  const std::int64_t dims[] = {7, 1000};
  CHECK(cuda::grid_of(sum, gpu_info("sm_80"), dims) == std::array<std::int64_t, 3>{7, 1, 1});
  const std::int64_t none[] = {0, 1000};
  CHECK(cuda::grid_of(sum, gpu_info("sm_80"), none) == std::array<std::int64_t, 3>{1, 1, 1});
  const std::int64_t many[] = {std::int64_t{1} << 40, 1};
  CHECK_THROWS_WITH(cuda::grid_of(sum, gpu_info("sm_80"), many), Catch::Contains("[grid_size]"));
  const std::int64_t n[] = {129};
  CHECK(cuda::grid_of(scale_kernel(), gpu_info("sm_80"), n) == std::array<std::int64_t, 3>{2, 1, 1});
}

TEST_CASE("CUDA text, block sizes and grids respect the limits of the GPU entry") {
  const auto with = [](const auto& change) {
    GpuInfo gpu = gpu_info("sm_80");
    change(gpu);
    return gpu;
  };
  const Kernel sum = row_sum_kernel();
  const GpuInfo few_threads = with([](GpuInfo& gpu) { gpu.most_block_threads = 63; });
  CHECK_THROWS_WITH(cuda::emit(sum, few_threads), Catch::Contains("up to 63") && Catch::Contains("[thread_bounds]"));
  const GpuInfo few_blocks = with([](GpuInfo& gpu) { gpu.most_blocks[0] = 6; });
  const std::int64_t dims[] = {7, 1000};
  CHECK_THROWS_WITH(cuda::grid_of(sum, few_blocks, dims), Catch::Contains("[grid_size]"));
  const GpuInfo no_static = with([](GpuInfo& gpu) { gpu.static_shared_bytes = 255; });
  CHECK(holds(cuda::emit(sum, no_static), "extern __shared__"));
  CHECK_FALSE(holds(cuda::emit(sum, gpu_info("sm_80")), "extern __shared__"));
}

TEST_CASE("kernels that are not GPU kernels are rejected with the label of the rule") {
  const auto refusal = [](const auto& build) {
    Builder b("k");
    Buffer x = b.buffer("x", f32, Access::read_write);
    build(b, x);
    const Kernel kernel = b.finish();
    try {
      cuda::mapping_of(kernel, gpu_info("sm_80"));
    } catch (const InternalError& error) {
      return std::string(error.what());
    }
    return std::string("accepted");
  };
  const auto zero = [](Builder& b) { return b.constant(f32, 0); };
  using Catch::Contains;
  CHECK_THAT(
      refusal([&](Builder& b, Buffer x) { b.parallel_for(0, 8, 1, [&](Value i) { b.store(x, i, zero(b)); }); }),
      Contains("[mapped]"));
  CHECK_THAT(refusal([&](Builder& b, Buffer x) {
               Value n = b.dim("n");
               b.for_loop(0, n, 1, [&](Value t) { b.store(x, t, zero(b)); }, LoopKind::thread_x);
             }),
             Contains("[thread_bounds]"));
  CHECK_THAT(refusal([&](Builder& b, Buffer x) {
               const auto inner = [&](Value t) { b.store(x, t, zero(b)); };
               b.for_loop(
                   0, 64, 1, [&](Value) { b.for_loop(0, 64, 1, inner, LoopKind::thread_y); }, LoopKind::thread_x);
             }),
             Contains("[thread_bounds]"));
  CHECK_THAT(refusal([&](Builder& b, Buffer x) {
               b.for_loop(0, 8, 1, [&](Value i) { b.store(x, i, zero(b)); }, LoopKind::block_x);
             }),
             Contains("[thread_store]"));
  CHECK_THAT(refusal([&](Builder& b, Buffer x) {
               b.for_loop(0, 64, 1, [&](Value t) { b.store(x, t, zero(b)); }, LoopKind::thread_x);
               b.for_loop(0, 32, 1, [&](Value) { b.barrier(); }, LoopKind::thread_x);
             }),
             Contains("[barrier_threads]"));
  CHECK_THAT(refusal([&](Builder& b, Buffer) {
               Buffer own = b.alloc(f32, 4);
               b.for_loop(0, 4, 1, [&](Value t) { b.store(own, t, zero(b)); }, LoopKind::thread_x);
             }),
             Contains("[scratch_offset]"));
}

TEST_CASE("an intrinsic region without a back-end hook is rejected by name") {
  const Kernel kernel = one_block("first", 32, [](Builder& b, Value) {
    b.region(test::first_threads_record, {3}, {[&](Value) { b.barrier(); }});
  });
  CHECK_THROWS_WITH(
      cuda::emit(kernel, gpu_info("sm_80")),
      Catch::Contains("kernel first: first_threads in a kernel for the GPU") && Catch::Contains("[machine_hook]"));
  CHECK_THROWS_WITH(codegen::emit_llvm_ir(kernel, codegen::TargetCpu::host()),
                    Catch::Contains("kernel first: a first_threads in a kernel for the CPU"));
}

TEST_CASE("a CPU intrinsic is rejected by name") {
  const Kernel kernel = one_block("terms", 32, [](Builder& b, Value) {
    const Value x = b.constant(f32, 1, 16);
    split_bf16(b, x, x, 0);
  });
  CHECK_THROWS_WITH(
      cuda::emit(kernel, gpu_info("sm_80")),
      Catch::Contains("kernel terms: split_bf16 in a kernel for the GPU") && Catch::Contains("[machine_hook]"));
}
