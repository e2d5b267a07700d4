#include "codegen/llvm/library/gpu/gpu_loader.h"

#include <fmt/core.h>

#include "codegen/llvm/library/gpu/driver_calls.h"
#include "codegen/llvm/library/module_code.h"

namespace lathe::codegen {

namespace {

/// A row of the table of kernels, in words.
enum class KernelRow : int { cubin, symbol, shared_bytes, cooperative_threads, words };

constexpr std::int64_t cubin_alignment = 64;
// Constants of cuda.h.
constexpr std::int64_t function_max_dynamic_shared = 8, attribute_processors = 16, attribute_cooperative = 95;

class Loader : public ModuleCode {
 public:
  using ModuleCode::ModuleCode;

  void emit(std::size_t level) {
    const std::vector<LibraryGpuKernel>& kernels = library_.levels[level].gpu->kernels;
    const auto count = static_cast<std::int64_t>(kernels.size());
    llvm::Function* load =
        start(loader_symbol(library_, level), i32(), {ptr()}, llvm::GlobalValue::ExternalLinkage, {"library"});
    load->setVisibility(llvm::GlobalValue::HiddenVisibility);
    if (kernels.empty()) {
      b_.CreateRet(success());
      return;
    }
    lay_out(kernels);
    Value* instance = load->getArg(0);
    functions_ = driver_functions(b_, instance);
    failure_ = b_.CreateAlloca(i32(), nullptr, "failure");
    failed_ = block("unload");
    llvm::AllocaInst* loaded = b_.CreateAlloca(i64(), nullptr, "loaded");
    for (llvm::AllocaInst*& at : numbers_) at = b_.CreateAlloca(i32(), nullptr, "number");
    b_.CreateStore(number(0), loaded);
    repeat(number(count), [&](Value* i) {
      Value *module = word(word(instance, GpuInstanceLayout::modules), i),
            *function = word(word(instance, GpuInstanceLayout::functions(static_cast<int>(count))), i);
      attempt(DriverFunction::load_module, {module, byte(cubins_, field(i, KernelRow::cubin))});
      b_.CreateStore(b_.CreateAdd(i, number(1)), loaded);
      attempt(DriverFunction::find_function,
              {function, b_.CreateLoad(ptr(), module), byte(symbols_, field(i, KernelRow::symbol))});
      Value* shared = field(i, KernelRow::shared_bytes);
      when(b_.CreateICmpNE(shared, number(0)), [&] {
        attempt(DriverFunction::set_function, {b_.CreateLoad(ptr(), function), number32(function_max_dynamic_shared),
                                               b_.CreateTrunc(shared, i32())});
      });
      Value* threads = field(i, KernelRow::cooperative_threads);
      when(b_.CreateICmpNE(threads, number(0)), [&] {
        Value* blocks = word(word(instance, GpuInstanceLayout::resident_blocks(static_cast<int>(count))), i);
        find_resident_blocks(b_.CreateLoad(ptr(), function), threads, shared, blocks);
      });
    });
    b_.CreateRet(success());
    b_.SetInsertPoint(failed_);
    repeat(b_.CreateLoad(i64(), loaded), [&](Value* i) {
      call_driver(b_, functions_, DriverFunction::unload_module,
                  {b_.CreateLoad(ptr(), word(word(instance, GpuInstanceLayout::modules), i))});
    });
    b_.CreateRet(b_.CreateLoad(i32(), failure_));
  }

 private:
  /// Emits a call of the driver. After an error, the function unloads what it has loaded and returns it.
  void attempt(DriverFunction which, llvm::ArrayRef<Value*> arguments) {
    Value* code = call_driver(b_, functions_, which, arguments);
    b_.CreateStore(code, failure_);
    require(b_.CreateICmpEQ(code, number32(0)), failed_);
  }

  /// Stores the number of blocks of a cooperative launch that can be resident. None is an error.
  void find_resident_blocks(Value* function, Value* threads, Value* shared, Value* blocks) {
    auto [device, is_cooperative, processors, of_each] = numbers_;
    const auto of = [&](llvm::AllocaInst* at) { return b_.CreateLoad(i32(), at); };
    attempt(DriverFunction::context_device, {device});
    attempt(DriverFunction::device_attribute, {is_cooperative, number32(attribute_cooperative), of(device)});
    attempt(DriverFunction::device_attribute, {processors, number32(attribute_processors), of(device)});
    attempt(DriverFunction::resident_blocks, {of_each, function, b_.CreateTrunc(threads, i32()), shared});
    Value* fit = b_.CreateZExt(b_.CreateMul(of(of_each), of(processors)), i64());
    b_.CreateStore(fit, blocks);
    b_.CreateStore(number32(static_cast<int>(LibraryError::no_cooperation)), failure_);
    Value* runs = b_.CreateICmpNE(of(is_cooperative), number32(0));
    require(b_.CreateAnd(runs, b_.CreateICmpNE(fit, number(0))), failed_);
  }

  Value* field(Value* i, KernelRow which) {
    Value* row = word(rows_, b_.CreateMul(i, number(static_cast<int>(KernelRow::words))));
    return load_word(row, static_cast<int>(which));
  }

  /// Writes the compiled kernels and their names one after the other, and the table with their places.
  void lay_out(const std::vector<LibraryGpuKernel>& kernels) {
    std::string cubins, symbols, rows;
    for (const LibraryGpuKernel& kernel : kernels) {
      cubins.resize((cubins.size() + cubin_alignment - 1) / cubin_alignment * cubin_alignment);
      const std::int64_t cooperative_threads = kernel.is_cooperative() ? kernel.threads[0] : 0;
      for (const std::int64_t value :
           {std::ssize(cubins), std::ssize(symbols), kernel.dynamic_shared_bytes, cooperative_threads})
        rows.append(reinterpret_cast<const char*>(&value), sizeof value);
      cubins += kernel.cubin;
      symbols += kernel.symbol + '\0';
    }
    cubins_ = bytes(cubins, "cubins", llvm::Align(cubin_alignment));
    symbols_ = bytes(symbols, "symbols");
    rows_ = bytes(rows, "kernels", llvm::Align(8));
  }

  Value* functions_ = nullptr;
  llvm::AllocaInst* failure_ = nullptr;
  std::array<llvm::AllocaInst*, 4> numbers_ = {};  // that the driver returns
  llvm::BasicBlock* failed_ = nullptr;
  llvm::Constant *cubins_ = nullptr, *symbols_ = nullptr, *rows_ = nullptr;
};

}  // namespace

std::string loader_symbol(const Library& library, std::size_t level) {
  return fmt::format("{}_load_{}", library.prefix, library.levels[level].name);
}

void emit_loader(llvm::Module& module, const Library& library, std::size_t level) {
  Loader(module, library).emit(level);
}

}  // namespace lathe::codegen
