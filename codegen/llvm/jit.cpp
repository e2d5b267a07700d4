#include "codegen/llvm/jit.h"

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <map>
#include <mutex>
#include <thread>

#include <fmt/core.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Config/llvm-config.h>
#include <llvm/Support/SHA256.h>

#include "codegen/llvm/compile.h"
#include "codegen/llvm/loader.h"
#include "ir/kernel/printer.h"
#include "ir/support/error.h"

namespace lathe::codegen {

namespace {

/// Raised whenever the emitter gives other code for the same kernel.
constexpr int emitter_version = 1;

std::string key_of(std::string_view canonical, const TargetCpu& target) {
  llvm::SHA256 hash;
  hash.update(fmt::format("lathe emitter {}\nllvm {}\npasses {}\ncpu {}\nfeatures {}\nvector {}\n", emitter_version,
                          LLVM_VERSION_STRING, pipeline_name(), target.cpu, target.features, target.vector_bits));
  hash.update(llvm::StringRef(canonical.data(), canonical.size()));
  return llvm::toHex(hash.final(), /*LowerCase=*/true);
}

/// One of the different kernels of a call.
struct Job {
  const kernel::Kernel* kernel = nullptr;
  std::string key;
  std::size_t size = 0;
  std::string object;
};

std::string symbol_of(const Job& job) { return "lathe_" + job.key; }

/// Compiles the jobs on some threads, the longest first.
void compile_all(std::vector<Job*> jobs, const JitOptions& options, ObjectStore* store) {
  std::stable_sort(jobs.begin(), jobs.end(), [](const Job* a, const Job* b) { return a->size > b->size; });
  std::atomic<std::size_t> next = 0;
  std::mutex mutex;
  std::exception_ptr failure;
  const auto work = [&] {
    try {
      Compiler compiler(options.target);
      for (std::size_t i = next++; i < jobs.size(); i = next++) {
        jobs[i]->object = compiler.object(*jobs[i]->kernel, symbol_of(*jobs[i]));
        if (store) store->put(jobs[i]->key, jobs[i]->object);
      }
    } catch (...) {
      next = jobs.size();
      const std::lock_guard lock(mutex);
      if (!failure) failure = std::current_exception();
    }
  };
  // A second thread pays only beyond its start-up.
  const auto wanted = static_cast<std::size_t>(std::max(options.threads, 1));
  std::vector<std::thread> threads;
  for (std::size_t i = 1; i < std::min(wanted, (jobs.size() + 1) / 2); ++i) threads.emplace_back(work);
  work();
  for (std::thread& thread : threads) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace

Jit::Jit(JitOptions options, ObjectStore* store)
    : options_(std::move(options)), store_(store), runs_here_(options_.target.runs_here()) {}

CompiledKernels Jit::compile(std::span<const kernel::Kernel> kernels) const {
  const auto start = std::chrono::steady_clock::now();
  if (!runs_here_)
    throw UserError(fmt::format("code for {} does not run on this CPU", options_.target.cpu), "cpu_mismatch",
                    "compile for the host, or only print the code");
  std::vector<Job> jobs;
  std::vector<std::size_t> job_of;
  std::map<std::string, std::size_t> known;
  for (const kernel::Kernel& kernel : kernels) {
    const std::string text = kernel::canonical_text(kernel);
    const std::string key = key_of(text, options_.target);
    const auto [entry, is_new] = known.try_emplace(key, jobs.size());
    if (is_new) jobs.push_back({&kernel, key, text.size(), {}});
    job_of.push_back(entry->second);
  }
  CompiledKernels result;
  result.stats_ = {.kernels = static_cast<int>(kernels.size()), .distinct = static_cast<int>(jobs.size())};
  std::vector<Job*> missing;
  for (Job& job : jobs) {
    std::optional<std::string> stored = store_ ? store_->get(job.key) : std::nullopt;
    if (stored)
      job.object = std::move(*stored), ++result.stats_.from_store;
    else
      missing.push_back(&job);
  }
  result.stats_.compiled = static_cast<int>(missing.size());
  if (!missing.empty()) compile_all(missing, options_, store_);

  std::vector<std::string> objects, names;
  for (Job& job : jobs) {
    objects.push_back(std::move(job.object));
    names.push_back(symbol_of(job) + "_run");
    names.push_back(symbol_of(job) + "_extent");
  }
  auto code = std::make_shared<LoadedCode>(objects);
  const std::vector<void*> addresses = code->addresses(names);
  for (const std::size_t job : job_of)
    result.kernels_.push_back(
        {reinterpret_cast<KernelFn>(addresses[2 * job]), reinterpret_cast<ExtentFn>(addresses[2 * job + 1])});
  result.code_ = std::move(code);
  result.stats_.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  return result;
}

std::string object_key(const kernel::Kernel& kernel, const TargetCpu& target) {
  return key_of(kernel::canonical_text(kernel), target);
}

std::string llvm_version() { return LLVM_VERSION_STRING; }

}  // namespace lathe::codegen
