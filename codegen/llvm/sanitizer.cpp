#include "codegen/llvm/sanitizer.h"

#include <cstdint>
#include <cstring>

#include <dlfcn.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/InstIterator.h>
#include <llvm/IR/IntrinsicInst.h>
#include <llvm/IR/IntrinsicsX86.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Transforms/Instrumentation/AddressSanitizer.h>
#include <llvm/Transforms/Instrumentation/ThreadSanitizer.h>

#include "ir/kernel/kernel.h"
#include "ir/support/error.h"

#if defined(__has_feature)
#if __has_feature(address_sanitizer)
#define LATHE_ADDRESS_SANITIZER
#elif __has_feature(thread_sanitizer)
#define LATHE_THREAD_SANITIZER
#endif
#endif
#if defined(__SANITIZE_ADDRESS__)
#define LATHE_ADDRESS_SANITIZER
#elif defined(__SANITIZE_THREAD__)
#define LATHE_THREAD_SANITIZER
#endif

namespace lathe::codegen {

namespace {

using Touch = void (*)(void*, std::size_t);

#if defined(LATHE_ADDRESS_SANITIZER)
constexpr const char* ranges[] = {"__asan_loadN", "__asan_storeN"};
#else
[[maybe_unused]] constexpr const char* ranges[] = {"__tsan_read_range", "__tsan_write_range"};
#endif

[[maybe_unused]] Touch touch(bool writes) {
  static const auto read = reinterpret_cast<Touch>(dlsym(RTLD_DEFAULT, ranges[0]));
  static const auto write = reinterpret_cast<Touch>(dlsym(RTLD_DEFAULT, ranges[1]));
  LATHE_ASSERT(read && write);
  return writes ? write : read;
}

/// Reports adjacent lanes whose bit is set in `mask`.
[[maybe_unused]] void touch_masked(char* at, std::uint64_t mask, std::uint64_t size, bool writes) {
  for (; mask; mask >>= 1, at += size)
    if (mask & 1) touch(writes)(at, size);
}

/// Reports lanes at arbitrary addresses.
[[maybe_unused]] void touch_lanes(char* const* lanes, std::uint64_t mask, std::uint64_t size, bool writes) {
  for (; mask; mask >>= 1, ++lanes)
    if (mask & 1) touch(writes)(*lanes, size);
}

constexpr int tile_rows = 16;

/// Reports the rows of a tile register, `stride` bytes apart.
[[maybe_unused]] void touch_rows(char* at, std::int64_t stride, bool writes) {
  for (int row = 0; row < tile_rows; ++row) touch(writes)(at + row * stride, 64);
}

[[maybe_unused]] constexpr const char *masked_name = "lathe_touch_masked", *lanes_name = "lathe_touch_lanes",
                                      *rows_name = "lathe_touch_rows";

[[maybe_unused]] void call(llvm::IRBuilder<>& b, llvm::Module& module, const char* name,
                           llvm::ArrayRef<llvm::Value*> arguments) {
  llvm::SmallVector<llvm::Type*, 4> types;
  for (llvm::Value* argument : arguments) types.push_back(argument->getType());
  b.CreateCall(module.getOrInsertFunction(name, llvm::FunctionType::get(b.getVoidTy(), types, false)), arguments);
}

[[maybe_unused]] std::vector<llvm::Instruction*> instructions_of(llvm::Function& function) {
  std::vector<llvm::Instruction*> all;
  for (llvm::Instruction& instruction : llvm::instructions(function)) all.push_back(&instruction);
  return all;
}

/// Reports loads and stores of tile registers, which neither sanitizer's pass handles.
[[maybe_unused]] void report_tiles(llvm::Module& module) {
  llvm::IRBuilder<> b(module.getContext());
  for (llvm::Function& function : module)
    for (llvm::Instruction* instruction : instructions_of(function)) {
      const auto* access = llvm::dyn_cast<llvm::IntrinsicInst>(instruction);
      if (!access) continue;
      const bool writes = access->getIntrinsicID() == llvm::Intrinsic::x86_tilestored64;
      if (!writes && access->getIntrinsicID() != llvm::Intrinsic::x86_tileloadd64) continue;
      b.SetInsertPoint(instruction);
      call(b, module, rows_name, {access->getArgOperand(1), access->getArgOperand(2), b.getInt1(writes)});
    }
}

/// Reports to TSan the accesses that its own pass skips.
class WideAccesses {
 public:
  explicit WideAccesses(llvm::Module& module) : module_(module), b_(module.getContext()) {}

  void visit(llvm::Instruction& instruction) {
    b_.SetInsertPoint(&instruction);
    if (auto* load = llvm::dyn_cast<llvm::LoadInst>(&instruction))
      plain(load->getPointerOperand(), load->getType(), false);
    else if (auto* store = llvm::dyn_cast<llvm::StoreInst>(&instruction))
      plain(store->getPointerOperand(), store->getValueOperand()->getType(), true);
    else if (auto* call = llvm::dyn_cast<llvm::IntrinsicInst>(&instruction))
      masked(*call);
  }

 private:
  std::uint64_t bytes(llvm::Type* type) { return module_.getDataLayout().getTypeStoreSize(type); }

  void plain(llvm::Value* at, llvm::Type* type, bool writes) {
    if (bytes(type) <= 16 && llvm::isPowerOf2_64(bytes(type))) return;
    call(b_, module_, ranges[writes], {at, b_.getInt64(bytes(type))});
  }

  void masked(llvm::IntrinsicInst& instruction) {
    switch (instruction.getIntrinsicID()) {
      case llvm::Intrinsic::masked_load:
      case llvm::Intrinsic::masked_gather:
        return lanes(instruction.getArgOperand(0), instruction.getArgOperand(2), instruction.getType(), false);
      case llvm::Intrinsic::masked_store:
      case llvm::Intrinsic::masked_scatter:
        return lanes(instruction.getArgOperand(1), instruction.getArgOperand(3),
                     instruction.getArgOperand(0)->getType(), true);
      default: return;
    }
  }

  void lanes(llvm::Value* at, llvm::Value* mask, llvm::Type* type, bool writes) {
    const unsigned count = llvm::cast<llvm::FixedVectorType>(type)->getNumElements();
    LATHE_ASSERT(count <= 64);
    llvm::Value* bits = b_.CreateZExt(b_.CreateBitCast(mask, b_.getIntNTy(count)), b_.getInt64Ty());
    const bool anywhere = at->getType()->isVectorTy();
    if (anywhere) {
      llvm::Function& function = *b_.GetInsertBlock()->getParent();
      llvm::IRBuilder<> entry(&function.getEntryBlock(), function.getEntryBlock().begin());
      llvm::Value* addresses = entry.CreateAlloca(at->getType());
      b_.CreateStore(at, addresses);
      at = addresses;
    }
    call(b_, module_, anywhere ? lanes_name : masked_name,
         {at, bits, b_.getInt64(bytes(type->getScalarType())), b_.getInt1(writes)});
  }

  llvm::Module& module_;
  llvm::IRBuilder<> b_;
};

[[maybe_unused]] llvm::ModulePassManager address_passes(llvm::Module& module) {
  for (llvm::Function& function : module) function.addFnAttr(llvm::Attribute::SanitizeAddress);
  llvm::AddressSanitizerOptions options;
  options.UseAfterReturn = llvm::AsanDetectStackUseAfterReturnMode::Never;
  options.InstrumentationWithCallsThreshold = 0;  // calls compile faster than inline checks
  llvm::ModulePassManager passes;
  passes.addPass(llvm::AddressSanitizerPass(options, true, true, llvm::AsanDtorKind::None, llvm::AsanCtorKind::None));
  return passes;
}

[[maybe_unused]] llvm::ModulePassManager thread_passes(llvm::Module& module) {
  for (llvm::Function& function : module) {
    function.addFnAttr(llvm::Attribute::SanitizeThread);
    WideAccesses wide(module);
    for (llvm::Instruction* instruction : instructions_of(function)) wide.visit(*instruction);
  }
  llvm::ModulePassManager passes;
  passes.addPass(llvm::createModuleToFunctionPassAdaptor(llvm::ThreadSanitizerPass()));
  return passes;
}

[[maybe_unused]] void run(llvm::ModulePassManager passes, llvm::Module& module) {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder;
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);
  passes.run(module, modules);
}

}  // namespace

#if defined(LATHE_ADDRESS_SANITIZER)

std::string_view sanitizer_name() { return "address"; }

void instrument(llvm::Module& module) {
  report_tiles(module);
  run(address_passes(module), module);
}

std::vector<LibraryFunction> sanitizer_functions() {
  std::vector<LibraryFunction> result = {{rows_name, reinterpret_cast<void*>(&touch_rows)}};
  for (const char* name : {"__asan_load1",
                           "__asan_load2",
                           "__asan_load4",
                           "__asan_load8",
                           "__asan_load16",
                           "__asan_loadN",
                           "__asan_store1",
                           "__asan_store2",
                           "__asan_store4",
                           "__asan_store8",
                           "__asan_store16",
                           "__asan_storeN",
                           "__asan_memcpy",
                           "__asan_memmove",
                           "__asan_memset",
                           "__asan_handle_no_return",
                           "__asan_set_shadow_00",
                           "__asan_set_shadow_f1",
                           "__asan_set_shadow_f2",
                           "__asan_set_shadow_f3",
                           "__asan_set_shadow_f8",
                           "__asan_shadow_memory_dynamic_address",
                           "__asan_option_detect_stack_use_after_return"})
    if (void* address = dlsym(RTLD_DEFAULT, name)) result.push_back({name, address});
  return result;
}

#elif defined(LATHE_THREAD_SANITIZER)

std::string_view sanitizer_name() { return "thread"; }

void instrument(llvm::Module& module) {
  report_tiles(module);
  run(thread_passes(module), module);
}

std::vector<LibraryFunction> sanitizer_functions() {
  std::vector<LibraryFunction> result = {{masked_name, reinterpret_cast<void*>(&touch_masked)},
                                         {lanes_name, reinterpret_cast<void*>(&touch_lanes)},
                                         {rows_name, reinterpret_cast<void*>(&touch_rows)},
                                         // Calls of the C library are intercepted.
                                         {"__tsan_memcpy", reinterpret_cast<void*>(&std::memcpy)},
                                         {"__tsan_memmove", reinterpret_cast<void*>(&std::memmove)},
                                         {"__tsan_memset", reinterpret_cast<void*>(&std::memset)}};
  for (const char* name : {"__tsan_func_entry",
                           "__tsan_func_exit",
                           "__tsan_read1",
                           "__tsan_read2",
                           "__tsan_read4",
                           "__tsan_read8",
                           "__tsan_read16",
                           "__tsan_write1",
                           "__tsan_write2",
                           "__tsan_write4",
                           "__tsan_write8",
                           "__tsan_write16",
                           "__tsan_unaligned_read2",
                           "__tsan_unaligned_read4",
                           "__tsan_unaligned_read8",
                           "__tsan_unaligned_read16",
                           "__tsan_unaligned_write2",
                           "__tsan_unaligned_write4",
                           "__tsan_unaligned_write8",
                           "__tsan_unaligned_write16",
                           ranges[0],
                           ranges[1]})
    if (void* address = dlsym(RTLD_DEFAULT, name)) result.push_back({name, address});
  return result;
}

#else

std::string_view sanitizer_name() { return ""; }
void instrument(llvm::Module&) {}
std::vector<LibraryFunction> sanitizer_functions() { return {}; }

#endif

}  // namespace lathe::codegen
