#include "lathe.cuh"

namespace lathe {

// %2 contract mlp.cpp:14
extern "C" __global__ void __launch_bounds__(128)
k0_product_contract_mlp_cpp_14(bf16* __restrict__ b0, const bf16* __restrict__ b1, const bf16* __restrict__ b2, u64* const status) {
  if (const i32 i0 = i32(blockIdx.x); i0 < 1) {
    __shared__ __align__(16) bf16 left[2560];
    __shared__ __align__(16) bf16 right[9216];
    {
      const i32 i1 = i32(threadIdx.x);
      const i32 v0 = i1 / 32;
      const i32 v1 = v0 / 4;
      const i32 v2 = v1 * 16;
      const i32 v3 = (v0 % 4) * 16;
      vec<f32, 8> r0 = broadcast<8>(0.0f);
      const i32 v4 = (i1 % 4) * 8;
      const i32 v5 = i1 / 4;
      const i32 v6 = (v5 * 40) + v4;
      const i32 v7 = (i1 % 8) * 8;
      const i32 v8 = i1 / 8;
      const i32 v9 = (v8 * 72) + v7;
      const i32 v10 = i1 + 128;
      const i32 v11 = (v10 % 8) * 8;
      const i32 v12 = v10 / 8;
      const i32 v13 = (v12 * 72) + v11;
      #pragma unroll
      for (i32 i2 = 0; i2 < 3; ++i2) {
        const i32 v14 = i2 * 32;
        if (v14 < 96) {
          if (i1 < 64) {
            async_copy(left, (i2 * 640) + v6, b1, (v5 * 96) + (v14 + v4));
          }
          async_copy(right, (i2 * 2304) + v9, b2, v7 + ((v14 + v8) * 64));
          async_copy(right, (i2 * 2304) + v13, b2, v11 + ((v14 + v12) * 64));
        }
        commit_copies();
      }
      #pragma unroll 1
      for (i32 i3 = 0; i3 < 96; i3 += 32) {
        wait_copies<2>();
        __syncthreads();
        const i32 v15 = i3 + 96;
        const i32 v16 = (v15 / 32) % 4;
        if (v15 < 96) {
          if (i1 < 64) {
            async_copy(left, (v16 * 640) + v6, b1, (v5 * 96) + (v15 + v4));
          }
          async_copy(right, (v16 * 2304) + v9, b2, v7 + ((v15 + v8) * 64));
          async_copy(right, (v16 * 2304) + v13, b2, v11 + ((v15 + v12) * 64));
        }
        commit_copies();
        const i32 v17 = (i3 / 32) % 4;
        const vec<f32, 8> v18 = r0;
        const vec<f32, 8> v19 = mma<16, 16>(matrix(left, (v17 * 640) + (v1 * 640), 40), transposed(right, (v17 * 2304) + v3, 72), v18);
        r0 = v19;
        const vec<f32, 8> v20 = r0;
        const vec<f32, 8> v21 = mma<16, 16>(matrix(left, (v17 * 640) + ((v1 * 640) + 16), 40), transposed(right, (v17 * 2304) + (v3 + 1152), 72), v20);
        r0 = v21;
      }
      const vec<f32, 8> v22 = r0;
      wait_copies<0>();
      __syncthreads();
      const i32 v23 = i1 / 32;
      const i32 v24 = v23 / 4;
      const i32 v25 = v24 * 16;
      const i32 v26 = i1 % 32;
      const i32 v27 = ((v24 * 1152) + ((v23 % 4) * 16)) + (((v26 / 4) * 72) + ((v26 % 4) * 2));
      const vec<f32, 2> v28 = shuffle<0, 1>(v22, v22);
      store_aligned(left, v27, cast<bf16>(v28));
      const vec<f32, 2> v29 = shuffle<2, 3>(v22, v22);
      store_aligned(left, v27 + 576, cast<bf16>(v29));
      const vec<f32, 2> v30 = shuffle<4, 5>(v22, v22);
      store_aligned(left, v27 + 8, cast<bf16>(v30));
      const vec<f32, 2> v31 = shuffle<6, 7>(v22, v22);
      store_aligned(left, v27 + 584, cast<bf16>(v31));
      __syncthreads();
      if (const i32 i4 = i1; i4 < 128) {
        if (const i32 i5 = 0; i5 < 1) {
          const i32 v32 = i4 + (i5 * 128);
          const i32 v33 = v32 / 8;
          const i32 v34 = (v32 % 8) * 8;
          const vec<bf16, 8> v35 = load_aligned<8>(left, (v33 * 72) + v34);
          const vec<f32, 8> v36 = cast<f32>(v35);
          store_aligned(b0, (v33 * 64) + v34, v35);
        }
      }
    }
  }
}

}  // namespace lathe
