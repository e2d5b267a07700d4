#include "codegen/llvm/library/gpu/gpu_loader.h"

#include <fmt/core.h>

#include "codegen/llvm/library/gpu/driver_calls.h"
#include "codegen/llvm/library/module_code.h"

namespace lathe::codegen {

namespace {

/// A row of the table of kernels, in words.
enum class KernelRow : int { cubin, symbol, shared_bytes, words };

constexpr std::int64_t cubin_alignment = 64;
constexpr std::int64_t function_max_dynamic_shared = 8;  // of cuda.h

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
    Value *instance = load->getArg(0), *functions = driver_functions(b_, instance);
    llvm::AllocaInst *loaded = b_.CreateAlloca(i64(), nullptr, "loaded"),
                     *failure = b_.CreateAlloca(i32(), nullptr, "failure");
    b_.CreateStore(number(0), loaded);
    llvm::BasicBlock* failed = block("unload");
    const auto attempt = [&](DriverFunction which, llvm::ArrayRef<Value*> arguments) {
      Value* code = call_driver(b_, functions, which, arguments);
      b_.CreateStore(code, failure);
      require(b_.CreateICmpEQ(code, number32(0)), failed);
    };
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
    });
    b_.CreateRet(success());
    b_.SetInsertPoint(failed);
    repeat(b_.CreateLoad(i64(), loaded), [&](Value* i) {
      call_driver(b_, functions, DriverFunction::unload_module,
                  {b_.CreateLoad(ptr(), word(word(instance, GpuInstanceLayout::modules), i))});
    });
    b_.CreateRet(b_.CreateLoad(i32(), failure));
  }

 private:
  Value* field(Value* i, KernelRow which) {
    Value* row = word(rows_, b_.CreateMul(i, number(static_cast<int>(KernelRow::words))));
    return load_word(row, static_cast<int>(which));
  }

  /// Writes the compiled kernels and their names one after the other, and the table with their places.
  void lay_out(const std::vector<LibraryGpuKernel>& kernels) {
    std::string cubins, symbols, rows;
    for (const LibraryGpuKernel& kernel : kernels) {
      cubins.resize((cubins.size() + cubin_alignment - 1) / cubin_alignment * cubin_alignment);
      for (const std::int64_t value : {std::ssize(cubins), std::ssize(symbols), kernel.dynamic_shared_bytes})
        rows.append(reinterpret_cast<const char*>(&value), sizeof value);
      cubins += kernel.cubin;
      symbols += kernel.symbol + '\0';
    }
    cubins_ = bytes(cubins, "cubins", llvm::Align(cubin_alignment));
    symbols_ = bytes(symbols, "symbols");
    rows_ = bytes(rows, "kernels", llvm::Align(8));
  }

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
