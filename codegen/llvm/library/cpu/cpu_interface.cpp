#include "codegen/llvm/library/cpu/cpu_interface.h"

#include "codegen/llvm/library/cpu/cpu_choice.h"
#include "codegen/llvm/library/cpu/cpu_driver.h"
#include "codegen/llvm/library/driver_emitter.h"
#include "codegen/llvm/library/interface_emitter.h"

namespace lathe::codegen {

namespace {

class CpuInterface final : public InterfaceEmitter {
 public:
  CpuInterface(llvm::Module& module, const Library& library)
      : InterfaceEmitter(module, library), choose_(emit_cpu_choice(module, library)) {}

 private:
  Value* choose_level(llvm::Function*) override {
    Value* level = b_.CreateCall(choose_);
    require(b_.CreateICmpSGE(level, number32(0)), returning(LibraryError::no_level));
    return level;
  }

  Value* workers(const LibraryEntry& entry, Value* call) override {
    llvm::AllocaInst* count = b_.CreateAlloca(i64(), nullptr, "workers");
    b_.CreateStore(number(1), count);
    Value* workers = load_pointer(call, CallLayout(library_, entry).workers());
    when(b_.CreateIsNotNull(workers), [&] {
      Value* given =
          b_.CreateSExt(b_.CreateLoad(i32(), word(workers, static_cast<int>(WorkersLayout::count))), i64());
      Value* is_valid =
          b_.CreateAnd(b_.CreateIsNotNull(load_pointer(workers, static_cast<int>(WorkersLayout::parallel_for))),
                       b_.CreateICmpSGE(given, number(1)));
      require(is_valid, returning(LibraryError::bad_workers));
      b_.CreateStore(given, count);
    });
    return b_.CreateLoad(i64(), count);
  }

  WorkspaceSize workspace_size(const LibraryProgram& program) const override { return cpu_workspace_size(program); }

  void emit_run(const LibraryEntry& entry) override {
    llvm::Function* run = start_external(entry.name + "_run", i32(), {ptr(), ptr()});
    Value *instance = run->getArg(0), *call = run->getArg(1);
    return_unless_none(b_.CreateCall(check_of(entry), {instance, call}));
    return_from_level(level(instance, returning(LibraryError::not_initialised)),
                      [&](std::size_t l) { return driver_symbol(library_, l, entry); }, {call});
  }

  llvm::Function* choose_;
};

}  // namespace

void emit_cpu_interface(llvm::Module& module, const Library& library) { CpuInterface(module, library).emit(); }

}  // namespace lathe::codegen
