#include "runtime/cuda/driver.h"

#include <catch2/catch.hpp>

#include <cstring>
#include <functional>
#include <numeric>

#include "ir/kernel/build/builder.h"
#include "ir/support/error.h"
#include "runtime/cuda/device.h"
#include "tests/cuda/device/mock_driver.h"
#include "tests/cuda/host/host_cuda.h"
#include "tests/cuda/host/kernels.h"
#include "tests/cuda/host/shim_maps.h"

using namespace lathe;
using cuda::DeviceMemory;
using cuda::LoadedKernel;
using cuda::Stream;
using test::MockDriver;

namespace {

const cuda::CompiledKernel row_sum_code{.symbol = "row_sum", .code = "a cubin", .resources = {}};

/// Computes row sums of a 3 x 100 matrix on a device: copy in, launch, copy out.
std::vector<float> row_sums(MockDriver& driver) {
  std::vector<float> x(300), sums(3);
  std::iota(x.begin(), x.end(), 0.0f);
  Stream stream(driver);
  const DeviceMemory in(driver, x.size() * sizeof(float)), out(driver, sums.size() * sizeof(float)),
      status(driver, 8);
  const LoadedKernel kernel(driver, test::row_sum_kernel(), gpu_info("sm_80"), row_sum_code);
  driver.copy_to_device(in.address(), x.data(), in.bytes(), stream.handle());
  driver.fill(status.address(), 0, 8, stream.handle());
  const cuda::Driver::Pointer buffers[] = {in.address(), out.address()};
  const std::int64_t dims[] = {3, 100};
  kernel.launch(buffers, dims, status.address(), stream);
  driver.copy_to_host(sums.data(), out.address(), out.bytes(), stream.handle());
  stream.synchronize();
  return sums;
}

}  // namespace

TEST_CASE("runs a kernel on a device: memory, stream, launch") {
  const kernel::Kernel kernel = test::row_sum_kernel();
  const auto host = test::HostCuda::build({&kernel, 1});
  if (!host) return;
  MockDriver driver;
  driver.on_launch = [&](const std::string& function, const cuda::Driver::Launch& launch) {
    CHECK(function == "row_sum");
    CHECK(launch.grid == std::array<std::int64_t, 3>{3, 1, 1});
    CHECK(launch.block == std::array<int, 3>{64, 1, 1});
    CHECK(launch.shared_bytes == 0);
    REQUIRE(launch.arguments.size() == 5);
    const auto word = [&](std::size_t i) { return *static_cast<const std::uint64_t*>(launch.arguments[i]); };
    const std::int64_t dims[] = {static_cast<std::int64_t>(word(2)), static_cast<std::int64_t>(word(3))};
    const kernel::BoundBuffer buffers[] = {{reinterpret_cast<void*>(word(0)), 300},
                                           {reinterpret_cast<void*>(word(1)), 3}};
    *reinterpret_cast<std::uint64_t*>(word(4)) = static_cast<std::uint64_t>(host->run(kernel, buffers, dims));
  };
  CHECK(row_sums(driver) == std::vector<float>{4950, 14950, 24950});
  CHECK(driver.alive() == 0);
}

TEST_CASE("a failed driver call leaks nothing") {
  MockDriver counting;
  row_sums(counting);
  CHECK(counting.calls > 8);
  for (int call = 0; call < counting.calls; ++call) {
    MockDriver driver;
    driver.fail_at = call;
    CAPTURE(call);
    CHECK_THROWS_WITH(row_sums(driver), Catch::Contains("CUDA_ERROR_ASKED_FOR"));
    CHECK(driver.alive() == 0);
  }
}

TEST_CASE("an out-of-memory error reports the requested bytes") {
  MockDriver driver;
  driver.memory_bytes = 1000;
  CHECK_THROWS_WITH(row_sums(driver), Catch::Contains("1200 bytes") && Catch::Contains("[out_of_memory]"));
  CHECK(driver.alive() == 0);
}

TEST_CASE("a failed launch names the kernel and its source line") {
  MockDriver driver;
  driver.on_launch = [](const std::string&, const cuda::Driver::Launch&) {
    cuda::throw_driver_error("cuLaunchKernel", 701, "CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES");
  };
  CHECK_THROWS_WITH(row_sums(driver), Catch::Contains("[launch]") && Catch::Contains("norm.cpp"));
  CHECK(driver.alive() == 0);
}

TEST_CASE("driver errors have labels") {
  const auto label = [](std::string_view call, int code) {
    try {
      cuda::throw_driver_error(call, code, "NAME");
    } catch (const UserError& error) {
      return error.label();
    }
  };
  CHECK(label("cuMemAlloc", 2) == "out_of_memory");
  CHECK(label("cuInit", 100) == "no_device");
  CHECK(label("cuStreamSynchronize", 700) == "device_lost");
  CHECK(label("cuStreamSynchronize", 719) == "device_lost");
  CHECK(label("cuLaunchKernel", 701) == "launch");
  CHECK(label("cuLaunchCooperativeKernel", 720) == "launch");
  CHECK(label("cuLaunchKernel", 1) == "launch");
  CHECK(label("cuMemcpyHtoDAsync", 1) == "driver");
}

TEST_CASE("memory and streams can be moved") {
  MockDriver driver;
  {
    DeviceMemory a(driver, 64), b(driver, 0);
    CHECK(b.address() == 0);
    DeviceMemory c(std::move(a));
    b = std::move(c);
    CHECK(b.bytes() == 64);
    Stream s(driver), t(std::move(s));
    CHECK(driver.alive() == 2);
  }
  CHECK(driver.alive() == 0);
}

TEST_CASE("kernels with much shared memory request it") {
  using namespace kernel;
  Builder b("large");
  Buffer out = b.buffer("out", f32, Access::write);
  const auto block = [&](Value) {
    Buffer shared = b.alloc(f32, 20000, Space::shared, "large");
    const auto thread = [&](Value t) {
      b.store(shared, t, b.constant(f32, 1));
      b.store(out, t, b.load(shared, t));
    };
    b.for_loop(0, 32, 1, thread, LoopKind::thread_x);
  };
  b.for_loop(0, 1, 1, block, LoopKind::block_x);
  MockDriver driver;
  driver.on_launch = [](const std::string&, const cuda::Driver::Launch& l) { CHECK(l.shared_bytes == 80000); };
  Stream stream(driver);
  const DeviceMemory memory(driver, 128), status(driver, 8);
  const LoadedKernel kernel(driver, b.finish(), gpu_info("sm_80"), {.symbol = "large", .code = "", .resources = {}});
  const cuda::Driver::Pointer buffers[] = {memory.address()};
  kernel.launch(buffers, {}, status.address(), stream);
}

TEST_CASE("a missing driver is an error with a remedy") {
  try {
    const int devices = cuda::load_driver()->device_count();
    CHECK(devices >= 0);
  } catch (const UserError& error) {
    CHECK((error.label() == "driver_missing" || error.label() == "no_device"));
    CHECK(std::string(error.what()).find("\n") != std::string::npos);
  }
}

TEST_CASE("the driver rejects tensor maps that TMA cannot copy") {
  const auto tensor = [] {
    return cuda::Driver::Tensor{
        .dtype = bf16, .address = 4096, .sizes = {200, 30}, .strides = {400}, .box = {64, 128}};
  };
  CHECK_NOTHROW(test::encode_shim_map(tensor()));
  const auto refused = [&](const std::function<void(cuda::Driver::Tensor&)>& change) {
    cuda::Driver::Tensor changed = tensor();
    change(changed);
    CHECK_THROWS_WITH(test::encode_shim_map(changed), Catch::Contains("cuTensorMapEncodeTiled"));
  };
  refused([](auto& t) { t.address += 8; });
  refused([](auto& t) { t.address = 0; });
  refused([](auto& t) { t.dtype = f32; });
  refused([](auto& t) { t.sizes[1] = 0; });
  refused([](auto& t) { t.sizes[0] = (std::uint64_t{1} << 32) + 1; });
  refused([](auto& t) { t.strides[0] = 408; });
  refused([](auto& t) { t.strides[0] = std::uint64_t{1} << 40; });
  refused([](auto& t) { t.strides[0] = 384; });  // less than a row of 200 elements
  refused([](auto& t) { t.box[1] = 257; });
  refused([](auto& t) { t.box[1] = 0; });
  refused([](auto& t) { t.box[0] = 128; });  // wider than the swizzle
  refused([](auto& t) { t.box[0] = 4; });
  refused([](auto& t) { t.strides.push_back(800); });
  refused([](auto& t) {  // not a multiple of the previous stride
    t.sizes.push_back(2), t.strides.push_back(400 * 30 + 16), t.box.push_back(1);
  });
}

TEST_CASE("a tensor map follows the dims, or is empty") {
  kernel::Builder b("copies");
  const kernel::Value rows = b.dim("rows"), stride = b.dim("stride");
  const kernel::Buffer x = b.buffer("x", bf16, kernel::Access::read);
  b.tensor_map(x, {.offset = 16, .dims = {{64, 1, 64}, {rows, stride, 8}}});
  const kernel::Kernel kernel = b.finish();
  const cuda::Driver::Pointer buffers[] = {4096};
  const auto made = [&](std::int64_t m) {
    const std::int64_t dims[] = {m, 72};
    return cuda::tensors_of(kernel, buffers, dims);
  };
  const auto tensors = made(5);
  REQUIRE(tensors.size() == 1);
  REQUIRE(tensors[0]);
  CHECK(tensors[0]->address == 4096 + 32);
  CHECK(tensors[0]->sizes == std::vector<std::uint64_t>{64, 5});
  CHECK(tensors[0]->strides == std::vector<std::uint64_t>{144});
  CHECK(tensors[0]->box == std::vector<std::uint32_t>{64, 8});
  CHECK_FALSE(made(0)[0]);
}
