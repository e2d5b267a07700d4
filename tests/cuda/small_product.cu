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
      const i64 v2 = mul(v1, 16LL);
      const i64 v3 = mul(v0 % 4LL, 16LL);
      vec<f32, 8> r0 = broadcast<8>(0.0f);
      const i64 v4 = mul(i1 % 4LL, 8LL);
      const i64 v5 = i1 / 4LL;
      const i64 v6 = add(mul(v5, 40LL), v4);
      const i64 v7 = mul(i1 % 8LL, 8LL);
      const i64 v8 = i1 / 8LL;
      const i64 v9 = add(mul(v8, 72LL), v7);
      const i64 v10 = add(i1, 128LL);
      const i64 v11 = mul(v10 % 8LL, 8LL);
      const i64 v12 = v10 / 8LL;
      const i64 v13 = add(mul(v12, 72LL), v11);
      #pragma unroll
      for (i64 i2 = 0LL; i2 < 3LL; ++i2) {
        const i64 v14 = mul(i2, 32LL);
        if (v14 < 96LL) {
          if (i1 < 64LL) {
            async_copy(left, add(mul(i2, 640LL), v6), b1, add(mul(v5, 96LL), add(v14, v4)));
          }
          async_copy(right, add(mul(i2, 2304LL), v9), b2, add(v7, mul(add(v14, v8), 64LL)));
          async_copy(right, add(mul(i2, 2304LL), v13), b2, add(v11, mul(add(v14, v12), 64LL)));
        }
        commit_copies();
      }
      #pragma unroll 1
      for (i64 i3 = 0LL; i3 < 96LL; i3 += 32LL) {
        wait_copies<2>();
        __syncthreads();
        const i64 v15 = add(i3, 96LL);
        const i64 v16 = (v15 / 32LL) % 4LL;
        if (v15 < 96LL) {
          if (i1 < 64LL) {
            async_copy(left, add(mul(v16, 640LL), v6), b1, add(mul(v5, 96LL), add(v15, v4)));
          }
          async_copy(right, add(mul(v16, 2304LL), v9), b2, add(v7, mul(add(v15, v8), 64LL)));
          async_copy(right, add(mul(v16, 2304LL), v13), b2, add(v11, mul(add(v15, v12), 64LL)));
        }
        commit_copies();
        const i64 v17 = (i3 / 32LL) % 4LL;
        const vec<f32, 8> v18 = r0;
        const vec<f32, 8> v19 = mma<16, 16>(matrix(left, add(mul(v17, 640LL), mul(v1, 640LL)), 40LL), transposed(right, add(mul(v17, 2304LL), v3), 72LL), v18);
        r0 = v19;
        const vec<f32, 8> v20 = r0;
        const vec<f32, 8> v21 = mma<16, 16>(matrix(left, add(mul(v17, 640LL), add(mul(v1, 640LL), 16LL)), 40LL), transposed(right, add(mul(v17, 2304LL), add(v3, 1152LL)), 72LL), v20);
        r0 = v21;
      }
      const vec<f32, 8> v22 = r0;
      wait_copies<0>();
      __syncthreads();
      const i64 v23 = i1 / 32LL;
      const i64 v24 = v23 / 4LL;
      const i64 v25 = mul(v24, 16LL);
      const i64 v26 = i1 % 32LL;
      const i64 v27 = add(add(mul(v24, 1152LL), mul(v23 % 4LL, 16LL)), add(mul(v26 / 4LL, 72LL), mul(v26 % 4LL, 2LL)));
      const vec<f32, 2> v28 = shuffle<0, 1>(v22, v22);
      store_aligned(left, v27, cast<bf16>(v28));
      const vec<f32, 2> v29 = shuffle<2, 3>(v22, v22);
      store_aligned(left, add(v27, 576LL), cast<bf16>(v29));
      const vec<f32, 2> v30 = shuffle<4, 5>(v22, v22);
      store_aligned(left, add(v27, 8LL), cast<bf16>(v30));
      const vec<f32, 2> v31 = shuffle<6, 7>(v22, v22);
      store_aligned(left, add(v27, 584LL), cast<bf16>(v31));
      __syncthreads();
      for (i64 i4 = i1; i4 < 128LL; i4 += 128LL) {
        const i64 v32 = i4 / 8LL;
        const i64 v33 = mul(i4 % 8LL, 8LL);
        const vec<bf16, 8> v34 = load_aligned<8>(left, add(mul(v32, 72LL), v33));
        const vec<f32, 8> v35 = cast<f32>(v34);
        if ((v32 < 16LL) && (v33 < 64LL)) {
          store_aligned(b0, add(mul(v32, 64LL), v33), v34);
        }
      }
    }
  }
}

}  // namespace lathe
