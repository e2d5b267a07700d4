#include "lathe.cuh"

namespace lathe {

// %2 contract mlp.cpp:14
extern "C" __global__ void __launch_bounds__(128)
k0_product_contract_mlp_cpp_14(bf16* __restrict__ b0, const bf16* __restrict__ b1, const bf16* __restrict__ b2, u64* const status) {
  if (const i64 i0 = i64(blockIdx.x); i0 < 1LL) {
    __shared__ __align__(16) bf16 left[2560];
    __shared__ __align__(16) bf16 right[9216];
    {
      const i64 i1 = i64(threadIdx.x);
      const i64 v0 = i1 / 32LL;
      const i64 v1 = v0 / 4LL;
      const i64 v2 = mul(v0 % 4LL, 16LL);
      vec<f32, 8> r0 = broadcast<8>(0.0f);
      const i64 v3 = mul(i1 % 4LL, 8LL);
      const i64 v4 = i1 / 4LL;
      const i64 v5 = add(mul(v4, 40LL), v3);
      const i64 v6 = mul(i1 % 8LL, 8LL);
      const i64 v7 = i1 / 8LL;
      const i64 v8 = add(mul(v7, 72LL), v6);
      const i64 v9 = add(i1, 128LL);
      const i64 v10 = mul(v9 % 8LL, 8LL);
      const i64 v11 = v9 / 8LL;
      const i64 v12 = add(mul(v11, 72LL), v10);
      #pragma unroll
      for (i64 i2 = 0LL; i2 < 3LL; ++i2) {
        const i64 v13 = mul(i2, 32LL);
        if (v13 < 96LL) {
          if (i1 < 64LL) {
            async_copy(left, add(mul(i2, 640LL), v5), b1, add(mul(v4, 96LL), add(v13, v3)));
          }
          async_copy(right, add(mul(i2, 2304LL), v8), b2, add(v6, mul(add(v13, v7), 64LL)));
          async_copy(right, add(mul(i2, 2304LL), v12), b2, add(v10, mul(add(v13, v11), 64LL)));
        }
        commit_copies();
      }
      for (i64 i3 = 0LL; i3 < 96LL; i3 += 32LL) {
        wait_copies<2>();
        __syncthreads();
        const i64 v14 = add(i3, 96LL);
        const i64 v15 = (v14 / 32LL) % 4LL;
        if (v14 < 96LL) {
          if (i1 < 64LL) {
            async_copy(left, add(mul(v15, 640LL), v5), b1, add(mul(v4, 96LL), add(v14, v3)));
          }
          async_copy(right, add(mul(v15, 2304LL), v8), b2, add(v6, mul(add(v14, v7), 64LL)));
          async_copy(right, add(mul(v15, 2304LL), v12), b2, add(v10, mul(add(v14, v11), 64LL)));
        }
        commit_copies();
        const i64 v16 = (i3 / 32LL) % 4LL;
        const vec<f32, 8> v17 = r0;
        const vec<f32, 8> v18 = mma<16, 16>(matrix(left, add(mul(v16, 640LL), mul(v1, 640LL)), 40LL), transposed(right, add(mul(v16, 2304LL), v2), 72LL), v17);
        r0 = v18;
        const vec<f32, 8> v19 = r0;
        const vec<f32, 8> v20 = mma<16, 16>(matrix(left, add(mul(v16, 640LL), add(mul(v1, 640LL), 16LL)), 40LL), transposed(right, add(mul(v16, 2304LL), add(v2, 1152LL)), 72LL), v19);
        r0 = v20;
      }
      const vec<f32, 8> v21 = r0;
      wait_copies<0>();
      __syncthreads();
      const i64 v22 = i1 % 32LL;
      const i64 v23 = add(add(mul(add(mul(v1, 16LL), v22 / 4LL), 72LL), v2), mul(v22 % 4LL, 2LL));
      const vec<f32, 2> v24 = shuffle<0, 1>(v21, v21);
      store_aligned(left, v23, cast<bf16>(v24));
      const vec<f32, 2> v25 = shuffle<2, 3>(v21, v21);
      store_aligned(left, add(v23, 576LL), cast<bf16>(v25));
      const vec<f32, 2> v26 = shuffle<4, 5>(v21, v21);
      store_aligned(left, add(v23, 8LL), cast<bf16>(v26));
      const vec<f32, 2> v27 = shuffle<6, 7>(v21, v21);
      store_aligned(left, add(v23, 584LL), cast<bf16>(v27));
      __syncthreads();
      for (i64 i4 = i1; i4 < 128LL; i4 += 128LL) {
        const i64 v28 = i4 / 8LL;
        const i64 v29 = mul(i4 % 8LL, 8LL);
        const vec<bf16, 8> v30 = load_aligned<8>(left, add(mul(v28, 72LL), v29));
        const vec<f32, 8> v31 = cast<f32>(v30);
        if ((v28 < 16LL) && (v29 < 64LL)) {
          store_aligned(b0, add(mul(v28, 64LL), v29), v30);
        }
      }
    }
  }
}

}  // namespace lathe
