#include "codegen/llvm/jit.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <map>

#include <fmt/core.h>
#include <llvm/ADT/StringExtras.h>
#include <llvm/Config/llvm-config.h>
#include <openssl/evp.h>

#include "codegen/llvm/compile_module.h"
#include "codegen/llvm/loader.h"
#include "ir/kernel/printer.h"
#include "ir/support/error.h"
#include "ir/support/share_jobs.h"

namespace lathe::codegen {

namespace {

/// The emitter's version: a digest of its sources if the build provides one. Otherwise increment the number with
/// every change of the generated code.
#ifdef LATHE_CODEGEN_DIGEST
constexpr std::string_view emitter_version = LATHE_CODEGEN_DIGEST;
#else
constexpr std::string_view emitter_version = "2";
#endif

std::string key_of(std::string_view canonical, const TargetCpu& target) {
  // OpenSSL's SHA-256 uses the CPU's SHA instructions, which makes lookups of compiled kernels 10% faster.
  std::string text =
      fmt::format("lathe emitter {}\nllvm {}\npasses {}\ncpu {}\nfeatures {}\nvector {}\n", emitter_version,
                  LLVM_VERSION_STRING, pipeline_name(), target.cpu, target.features, target.vector_bits);
  text += canonical;
  std::array<std::uint8_t, 32> digest;
  LATHE_ASSERT(EVP_Digest(text.data(), text.size(), digest.data(), nullptr, EVP_sha256(), nullptr) == 1);
  return llvm::toHex(digest, /*LowerCase=*/true);
}

/// A distinct kernel of a call.
struct Job {
  const kernel::Kernel* kernel = nullptr;
  std::string key;
  std::size_t size = 0;
  std::string object;
};

std::string symbol_of(const Job& job) { return "lathe_" + job.key; }

/// Compiles the jobs on several threads, largest kernel first.
void compile_all(std::vector<Job*> jobs, const JitOptions& options, ObjectStore* store) {
  std::stable_sort(jobs.begin(), jobs.end(), [](const Job* a, const Job* b) { return a->size > b->size; });
  // A second thread only pays off if it outweighs its start-up time.
  const int most = static_cast<int>((jobs.size() + 1) / 2);
  share_jobs(jobs.size(), std::min(options.threads, most), [&](const NextJob& next) {
    Compiler compiler(options.target);
    while (const auto i = next()) {
      Job& job = *jobs[*i];
      job.object = compiler.object(*job.kernel, symbol_of(job));
      if (store) store->put(job.key, job.object);
    }
  });
}

}  // namespace

Jit::Jit(JitOptions options, ObjectStore* store)
    : options_(std::move(options)), store_(store), runs_here_(options_.target.runs_here()) {}

namespace {

/// The distinct kernels of a call, and the job index of each given kernel.
struct Plan {
  std::vector<Job> jobs;
  std::vector<std::size_t> job_of;
};

Plan plan(std::span<const kernel::Kernel> kernels, const TargetCpu& target) {
  Plan result;
  std::map<std::string, std::size_t> known;
  for (const kernel::Kernel& kernel : kernels) {
    const std::string text = kernel::canonical_text(kernel);
    const std::string key = key_of(text, target);
    const auto [entry, is_new] = known.try_emplace(key, result.jobs.size());
    if (is_new) result.jobs.push_back({&kernel, key, text.size(), {}});
    result.job_of.push_back(entry->second);
  }
  return result;
}

struct Linked {
  std::shared_ptr<LoadedCode> code;
  std::vector<CompiledKernel> kernels;  // by job
};

Linked link(const std::vector<Job>& jobs) {
  std::vector<std::string> objects, names;
  for (const Job& job : jobs) {
    objects.push_back(job.object);
    names.push_back(symbol_of(job) + "_run");
    names.push_back(symbol_of(job) + "_extent");
  }
  Linked result{std::make_shared<LoadedCode>(objects), {}};
  const std::vector<void*> addresses = result.code->addresses(names);
  for (std::size_t i = 0; i < jobs.size(); ++i)
    result.kernels.push_back(
        {reinterpret_cast<KernelFn>(addresses[2 * i]), reinterpret_cast<ExtentFn>(addresses[2 * i + 1])});
  return result;
}

}  // namespace

CompiledKernels Jit::compile(std::span<const kernel::Kernel> kernels) const {
  const auto start = std::chrono::steady_clock::now();
  if (!runs_here_)
    throw UserError(fmt::format("code for {} does not run on this CPU", options_.target.cpu), "cpu_mismatch",
                    "compile for the host, or only print the code");
  Plan work = plan(kernels, options_.target);
  std::vector<Job*> missing, stored;
  for (Job& job : work.jobs) {
    std::optional<std::string> found = store_ ? store_->get(job.key) : std::nullopt;
    if (found) job.object = std::move(*found);
    (found ? stored : missing).push_back(&job);
  }
  compile_all(missing, options_, store_);
  Linked linked;
  try {
    linked = link(work.jobs);
  } catch (const InternalError&) {
    // A stored object does not link: compile it again.
    if (stored.empty()) throw;
    compile_all(stored, options_, store_);
    missing.insert(missing.end(), stored.begin(), stored.end());
    stored.clear();
    linked = link(work.jobs);
  }
  CompiledKernels result;
  for (const std::size_t job : work.job_of) result.kernels_.push_back(linked.kernels[job]);
  result.code_ = std::move(linked.code);
  result.stats_ = {.kernels = static_cast<int>(kernels.size()),
                   .distinct = static_cast<int>(work.jobs.size()),
                   .compiled = static_cast<int>(missing.size()),
                   .from_store = static_cast<int>(stored.size()),
                   .seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count()};
  return result;
}

std::string object_key(const kernel::Kernel& kernel, const TargetCpu& target) {
  return key_of(kernel::canonical_text(kernel), target);
}

std::string llvm_version() { return LLVM_VERSION_STRING; }

}  // namespace lathe::codegen
