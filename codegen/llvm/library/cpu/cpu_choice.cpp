#include "codegen/llvm/library/cpu/cpu_choice.h"

#include <llvm/IR/InlineAsm.h>

#include "codegen/llvm/library/cpu/cpu_check.h"
#include "codegen/llvm/library/module_code.h"
#include "ir/support/error.h"

namespace lathe::codegen {

namespace {

class CpuChoice : public ModuleCode {
 public:
  using ModuleCode::ModuleCode;

  llvm::Function* emit() {
    llvm::Function* choose =
        start(library_.prefix + "_choose_level", b_.getInt32Ty(), {}, llvm::GlobalValue::InternalLinkage);
    read_cpuid();
    for (std::size_t level = library_.levels.size(); level-- > 0;) try_level(level);
    b_.CreateRet(b_.getInt32(static_cast<std::uint32_t>(-1)));
    return choose;
  }

 private:
  /// Returns eax, ebx, ecx and edx.
  Value* cpuid(std::uint32_t leaf, std::uint32_t subleaf) {
    llvm::Type* word = b_.getInt32Ty();
    auto* results = llvm::StructType::get(word, word, word, word);
    auto* code = llvm::InlineAsm::get(llvm::FunctionType::get(results, {word, word}, false), "cpuid",
                                      "={ax},={bx},={cx},={dx},{ax},{cx},~{dirflag},~{fpsr},~{flags}", true);
    return b_.CreateCall(code, {b_.getInt32(leaf), b_.getInt32(subleaf)});
  }
  Value* extended_control() {
    llvm::Type* word = b_.getInt32Ty();
    auto* code = llvm::InlineAsm::get(llvm::FunctionType::get(llvm::StructType::get(word, word), {word}, false),
                                      "xgetbv", "={ax},={dx},{cx},~{dirflag},~{fpsr},~{flags}", true);
    return b_.CreateExtractValue(b_.CreateCall(code, {b_.getInt32(0)}), 0);
  }
  Value* has(Value* word, std::uint32_t mask) {
    return b_.CreateICmpEQ(b_.CreateAnd(word, b_.getInt32(mask)), b_.getInt32(mask));
  }

  /// Reads every leaf that a level needs. A leaf that the CPU does not have counts as 0.
  void read_cpuid() {
    Value* last = b_.CreateExtractValue(cpuid(0, 0), 0);
    Value* last_extended = b_.CreateExtractValue(cpuid(0x80000000, 0), 0);
    auto* none = llvm::Constant::getNullValue(cpuid(1, 0)->getType());
    const auto read = [&](std::uint32_t leaf, std::uint32_t subleaf, Value* exists) {
      leaves_.push_back({leaf, subleaf, b_.CreateSelect(exists, cpuid(leaf, subleaf), none)});
    };
    read(1, 0, b_.getTrue());
    read(7, 0, b_.CreateICmpUGE(last, b_.getInt32(7)));
    Value* subleaves = b_.CreateExtractValue(leaves_.back().results, 0);
    read(7, 1, b_.CreateICmpUGE(subleaves, b_.getInt32(1)));
    read(0x80000001, 0, b_.CreateICmpUGE(last_extended, b_.getInt32(0x80000001)));
  }

  Value* result(const CpuidBits& bits) {
    for (const Leaf& leaf : leaves_)
      if (leaf.leaf == bits.leaf && leaf.subleaf == bits.subleaf)
        return b_.CreateExtractValue(leaf.results, static_cast<unsigned>(bits.result));
    throw InternalError("a leaf of CPUID that is not read");
  }

  /// Emits a return of the level if it is supported.
  void try_level(std::size_t level) {
    const TargetCpu& target = library_.levels[level].target;
    llvm::BasicBlock* lower = block("lower_level");
    for (const CpuidBits& bits : needs_of(target)) require(has(result(bits), bits.mask), lower);
    if (const std::uint32_t registers = saved_registers_of(target)) {
      constexpr std::uint32_t has_xgetbv = 1u << 27;  // OSXSAVE: the system uses XSAVE, and programs may read XCR0
      require(has(result({1, 0, 2, has_xgetbv}), has_xgetbv), lower);
      require(has(extended_control(), registers), lower);
    }
    if (target.has("amx-tile")) require(tiles_permitted(), lower);
    b_.CreateRet(b_.getInt32(static_cast<std::uint32_t>(level)));
    b_.SetInsertPoint(lower);
  }

  /// Calls the system as codegen/llvm/amx_permission.cpp does, without the C library.
  Value* tiles_permitted() {
    constexpr std::int64_t arch_prctl = 158, request_permission = 0x1023, tile_data = 18;
    auto* code =
        llvm::InlineAsm::get(llvm::FunctionType::get(i64(), {i64(), i64(), i64()}, false), "syscall",
                             "={ax},{ax},{di},{si},~{cx},~{r11},~{memory},~{dirflag},~{fpsr},~{flags}", true);
    return b_.CreateICmpEQ(b_.CreateCall(code, {number(arch_prctl), number(request_permission), number(tile_data)}),
                           number(0));
  }

  struct Leaf {
    std::uint32_t leaf, subleaf;
    Value* results;
  };
  std::vector<Leaf> leaves_;
};

}  // namespace

llvm::Function* emit_cpu_choice(llvm::Module& module, const Library& library) {
  return CpuChoice(module, library).emit();
}

}  // namespace lathe::codegen
