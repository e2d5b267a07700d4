#include "codegen/cuda/nvrtc.h"

#include <catch2/catch.hpp>

#include "codegen/cuda/emitter.h"
#include "codegen/cuda/resources.h"
#include "ir/support/error.h"
#include "runtime/cuda/kernel_cache.h"
#include "tests/cuda/compile/local_nvrtc.h"
#include "tests/cuda/host/kernels.h"
#include "tests/support/programs/memory_store.h"

using namespace lathe;
using cuda::Arch;
using cuda::Output;
using test::local_nvrtc;

TEST_CASE("architecture names are exact") {
  CHECK(Arch::named("sm_90a") == Arch{90, "a"});
  CHECK(Arch::named("sm_100a").virtual_name() == "compute_100a");
  CHECK(Arch::named("sm_80").name() == "sm_80");
  for (const char* wrong : {"", "sm_", "sm90", "sm_90b", "sm_75", "h100", "sm_-90", "sm_99999999999", "sm_90a "})
    CHECK_THROWS_WITH(Arch::named(wrong), Catch::Contains("[unknown_arch]"));
}

TEST_CASE("NVRTC is searched for in given folders, by the linker, and in CUDA folders") {
  const auto names = cuda::nvrtc_candidates({"/opt/cuda"});
  CHECK(names.front() == "/opt/cuda/libnvrtc.so.13");
  const auto holds = [&](const char* name) { return std::find(names.begin(), names.end(), name) != names.end(); };
  CHECK(holds("/opt/cuda/lib64/libnvrtc.so.12"));
  CHECK(holds("libnvrtc.so.13"));
  CHECK(holds("libnvrtc.so.12"));
  CHECK(holds("/usr/local/cuda/lib64/libnvrtc.so"));
}

TEST_CASE("the resource report of ptxas") {
  const std::string log =
      "ptxas info    : 0 bytes gmem\n"
      "ptxas info    : Compiling entry function 'other' for 'sm_90a'\n"
      "ptxas info    : Used 8 registers\n"
      "ptxas info    : Compiling entry function 'k' for 'sm_90a'\n"
      "ptxas info    : Function properties for k\n"
      "    40 bytes stack frame, 24 bytes spill stores, 32 bytes spill loads\n"
      "ptxas info    : Used 255 registers, used 1 barriers, 40 bytes cumulative stack size, 1024 bytes smem\n";
  const cuda::Resources r = cuda::parse_resources(log, "k");
  CHECK(r.registers == 255);
  CHECK(r.spill_bytes == 56);
  CHECK(r.stack_bytes == 40);
  CHECK(r.shared_bytes == 1024);
  CHECK(r.barriers == 1);
  CHECK(r.to_string() == "255 registers, 1024 bytes of shared memory, 40 bytes of stack, 56 bytes spilled");
  CHECK(cuda::parse_resources(log, "other").registers == 8);
  CHECK_THROWS_WITH(cuda::parse_resources(log, "third"), Catch::Contains("[resource_report]"));
}

TEST_CASE("kernels compile to PTX and cubin for every architecture") {
  const auto nvrtc = local_nvrtc();
  if (!nvrtc) return;
  const kernel::Kernel kernels[] = {test::scale_kernel(), test::reverse_kernel(), test::row_sum_kernel(),
                                    test::turn_kernel()};
  for (const char* name : {"sm_80", "sm_90a", "sm_100a"}) {
    INFO(name);
    for (const auto& k : cuda::compile_kernels(*nvrtc, kernels, Arch::named(name), Output::cubin, nullptr)) {
      INFO(k.symbol << ": " << k.resources.to_string());
      CHECK(k.code.substr(0, 4) == "\177ELF");
      CHECK(k.resources.spill_bytes == 0);
      CHECK(k.resources.stack_bytes == 0);
      CHECK(k.resources.registers <= 40);
    }
  }
  const auto ptx = cuda::compile_kernels(*nvrtc, kernels, Arch::named("sm_90a"), Output::ptx, nullptr);
  CHECK(ptx[0].code.find(".target sm_90a") != std::string::npos);
  CHECK(ptx[0].code.find("ld.global.nc.v4.f32") != std::string::npos);
  CHECK(ptx[0].code.find("st.global.v4.f32") != std::string::npos);
  CHECK(ptx[1].code.find("bar.sync") != std::string::npos);
  CHECK(ptx[3].code.find("shfl.sync.idx.b32") != std::string::npos);
}

TEST_CASE("compiled code is stored, and a damaged entry is recompiled") {
  const auto nvrtc = local_nvrtc();
  if (!nvrtc) return;
  test::MemoryStore store;
  kernel::Kernel kernel = test::scale_kernel();
  const Arch arch = Arch::named("sm_90a");
  const auto compile = [&] { return cuda::compile_kernels(*nvrtc, {&kernel, 1}, arch, Output::cubin, &store)[0]; };
  const auto first = compile();
  CHECK_FALSE(first.from_store);
  kernel.notes = {"%9 mul elsewhere.cpp:77"};
  const auto second = compile();
  CHECK(second.from_store);
  CHECK(second.code == first.code);
  CHECK(second.resources.registers == first.resources.registers);
  const std::string key = cuda::code_key(kernel, *nvrtc, arch, Output::cubin);
  CHECK(key != cuda::code_key(kernel, *nvrtc, Arch::named("sm_80"), Output::cubin));
  CHECK(key != cuda::code_key(kernel, *nvrtc, arch, Output::ptx));
  for (const char* damaged : {"", "x", "12", "99999\nshort", "-1\nx"}) {
    store.put(key, damaged);
    CHECK_FALSE(compile().from_store);
    CHECK(compile().code == first.code);
  }
}

TEST_CASE("rejects an architecture that NVRTC does not support") {
  const auto nvrtc = local_nvrtc();
  if (!nvrtc) return;
  CHECK_THROWS_WITH(nvrtc->compile("", "x.cu", Arch{999, ""}, Output::ptx), Catch::Contains("[unknown_arch]"));
  CHECK_THROWS_AS(nvrtc->compile("not C++", "x.cu", Arch{90, "a"}, Output::ptx), InternalError);
}
