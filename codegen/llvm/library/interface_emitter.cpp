#include "codegen/llvm/library/interface_emitter.h"

#include <fmt/core.h>

#include <algorithm>

#include "codegen/llvm/library/argument_checks.h"
#include "codegen/llvm/library/cpu_choice.h"
#include "codegen/llvm/library/driver_emitter.h"
#include "codegen/llvm/library/initial_value_emitter.h"

namespace lathe::codegen {

using llvm::Value;

namespace {

constexpr auto external = llvm::GlobalValue::ExternalLinkage;

/// Emits the functions of one library.
class InterfaceEmitter : public ModuleCode {
 public:
  InterfaceEmitter(llvm::Module& module, const Library& library)
      : ModuleCode(module, library), checks_(module, library), values_(module, library) {}

  void emit() {
    emit_init(emit_cpu_choice(module_, library_));
    emit_workspace_bytes();
    for (const LibraryEntry& entry : library_.entries) {
      emit_check(entry);
      emit_run(entry);
    }
    emit_message();
    start(library_.prefix + "_describe", ptr(), {}, external);
    b_.CreateRet(text(library_.describe, "description"));
    if (library_.states.empty()) return;
    llvm::Function* header = start(library_.prefix + "_file_header", ptr(), {ptr()}, external);
    b_.CreateStore(number(static_cast<std::int64_t>(library_.file_header.size())), header->getArg(0));
    b_.CreateRet(text(library_.file_header, "file_header"));
  }

 private:
  Value* half_word(Value* base, InstanceLayout which) {
    return b_.CreateConstGEP1_64(b_.getInt32Ty(), base, static_cast<std::uint64_t>(which));
  }
  void return_unless_none(Value* status);
  Value* level(Value* instance, llvm::BasicBlock* otherwise);
  Value* workspace_bytes(Value* level, Value* workers, std::span<const LibraryEntry> entries);
  void emit_init(llvm::Function* choose);
  void emit_workspace_bytes();
  void emit_check(const LibraryEntry& entry);
  void emit_run(const LibraryEntry& entry);
  void emit_message();

  ArgumentChecks checks_;
  InitialValueEmitter values_;
  std::vector<llvm::Function*> check_;
};

void InterfaceEmitter::return_unless_none(Value* status) {
  llvm::BasicBlock *failed = block("failed"), *next = block("next");
  b_.CreateCondBr(b_.CreateICmpEQ(status, success()), next, failed);
  b_.SetInsertPoint(failed);
  b_.CreateRet(status);
  b_.SetInsertPoint(next);
}

/// Returns the level of an initialised library: 0 is the lowest.
Value* InterfaceEmitter::level(Value* instance, llvm::BasicBlock* otherwise) {
  require(b_.CreateIsNotNull(instance), otherwise);
  Value* key = b_.CreateLoad(b_.getInt32Ty(), half_word(instance, InstanceLayout::key));
  require(b_.CreateICmpEQ(key, b_.getInt32(library_key(library_))), otherwise);
  Value* level = b_.CreateLoad(b_.getInt32Ty(), half_word(instance, InstanceLayout::level));
  const auto levels = static_cast<std::uint32_t>(library_.levels.size());
  require(b_.CreateICmpULT(level, b_.getInt32(levels)), otherwise);
  return b_.CreateZExt(level, i64());
}

void InterfaceEmitter::emit_init(llvm::Function* choose) {
  std::vector<llvm::Function*> fill;
  for (std::size_t i = 0; i < library_.states.size(); ++i)
    fill.push_back(values_.function(library_.states[i], library_.initials[i]));
  std::vector<llvm::Type*> types{ptr()};
  if (!library_.dims.empty()) types.push_back(ptr());
  const bool has_states = !library_.states.empty();
  if (has_states) types.insert(types.end(), {ptr(), i64()});
  llvm::Function* init = start(library_.init, b_.getInt32Ty(), types, external);
  Value* instance = init->getArg(0);
  require(b_.CreateIsNotNull(instance), returning(LibraryError::no_call));
  b_.CreateStore(b_.getInt32(0), half_word(instance, InstanceLayout::key));
  Value* level = b_.CreateCall(choose);
  require(b_.CreateICmpSGE(level, b_.getInt32(0)), returning(LibraryError::old_cpu));
  if (has_states) {
    Value *states = init->arg_end() - 2, *seed = init->arg_end() - 1;
    when(b_.CreateIsNotNull(states), [&] {
      Value* dims = states;
      if (!library_.dims.empty()) {
        dims = init->getArg(1);
        require(b_.CreateIsNotNull(dims), returning(LibraryError::no_call));
      }
      return_unless_none(b_.CreateCall(checks_.of_states(), {dims, states}));
      bind_dims(dims);
      for (std::size_t i = 0; i < fill.size(); ++i)
        b_.CreateCall(fill[i], {load_pointer(states, static_cast<std::int64_t>(i)), size(library_.states[i].elements),
                                seed, b_.getInt64(library_.initials[i].stream), size(library_.initials[i].fan_in)});
    });
  }
  b_.CreateStore(level, half_word(instance, InstanceLayout::level));
  b_.CreateStore(b_.getInt32(library_key(library_)), half_word(instance, InstanceLayout::key));
  b_.CreateRet(success());
}

/// Returns the bytes of workspace on a level, with a number of workers: the most that a call of one of the entries
/// needs.
Value* InterfaceEmitter::workspace_bytes(Value* level, Value* workers, std::span<const LibraryEntry> entries) {
  std::string table;
  const auto add = [&](std::int64_t value) { table.append(reinterpret_cast<const char*>(&value), sizeof value); };
  for (std::size_t l = 0; l < library_.levels.size(); ++l) {
    WorkspaceSize most;
    for (const LibraryEntry& entry : entries) {
      const WorkspaceSize size = workspace_size(entry.programs[l]);
      most = {std::max(most.fixed, size.fixed), std::max(most.per_worker, size.per_worker)};
    }
    add(most.fixed);
    add(most.per_worker);
  }
  Value* row = word(bytes(table, "workspaces", llvm::Align(8)), b_.CreateMul(level, number(2)));
  return b_.CreateAdd(load_word(row, 0), b_.CreateMul(at_least(workers, 1), load_word(row, 1)));
}

void InterfaceEmitter::emit_workspace_bytes() {
  llvm::Function* f = start(library_.prefix + "_workspace_bytes", i64(), {ptr(), b_.getInt32Ty()}, external);
  llvm::BasicBlock* failed = block("failed");
  Value* of = level(f->getArg(0), failed);
  b_.CreateRet(workspace_bytes(of, b_.CreateSExt(f->getArg(1), i64()), library_.entries));
  b_.SetInsertPoint(failed);
  b_.CreateRet(number(-1));
}

void InterfaceEmitter::emit_check(const LibraryEntry& entry) {
  llvm::Function* arguments = checks_.of_call(entry);
  llvm::Function* check = start(library_.prefix + entry.name + "_check", b_.getInt32Ty(), {ptr(), ptr()}, external);
  Value* call = check->getArg(1);
  Value* of = level(check->getArg(0), returning(LibraryError::not_initialised));
  require(b_.CreateIsNotNull(call), returning(LibraryError::no_call));
  const CallLayout layout(library_, entry);
  llvm::AllocaInst* count = b_.CreateAlloca(i64(), nullptr, "workers");
  b_.CreateStore(number(1), count);
  Value* workers = load_pointer(call, layout.workers());
  when(b_.CreateIsNotNull(workers), [&] {
    Value* given =
        b_.CreateSExt(b_.CreateLoad(b_.getInt32Ty(), word(workers, static_cast<int>(WorkersLayout::count))), i64());
    Value* is_valid =
        b_.CreateAnd(b_.CreateIsNotNull(load_pointer(workers, static_cast<int>(WorkersLayout::parallel_for))),
                     b_.CreateICmpSGE(given, number(1)));
    require(is_valid, returning(LibraryError::bad_workers));
    b_.CreateStore(given, count);
  });
  require(b_.CreateIsNotNull(load_pointer(call, layout.workspace)), returning(LibraryError::no_workspace));
  Value* needed = workspace_bytes(of, b_.CreateLoad(i64(), count), {&entry, 1});
  require(b_.CreateICmpUGE(load_word(call, layout.workspace_bytes()), needed), returning(entry.workspace_error));
  if (!library_.states.empty())
    require(b_.CreateIsNotNull(load_pointer(call, layout.states)), returning(LibraryError::no_states));
  b_.CreateRet(b_.CreateCall(arguments, {call}));
  check_.push_back(check);
}

void InterfaceEmitter::emit_run(const LibraryEntry& entry) {
  llvm::Function* run = start(library_.prefix + entry.name + "_run", b_.getInt32Ty(), {ptr(), ptr()}, external);
  Value* call = run->getArg(1);
  return_unless_none(b_.CreateCall(check_.back(), {run->getArg(0), call}));
  llvm::BasicBlock* none = returning(LibraryError::not_initialised);
  Value* of = level(run->getArg(0), none);
  llvm::SwitchInst* choice = b_.CreateSwitch(of, none);
  for (std::size_t l = 0; l < library_.levels.size(); ++l) {
    llvm::BasicBlock* driven = block(library_.levels[l].name);
    choice->addCase(number(static_cast<std::int64_t>(l)), driven);
    b_.SetInsertPoint(driven);
    auto* type = llvm::FunctionType::get(b_.getInt32Ty(), {ptr()}, false);
    llvm::FunctionCallee driver = module_.getOrInsertFunction(driver_symbol(library_, l, entry), type);
    llvm::cast<llvm::Function>(driver.getCallee())->setVisibility(llvm::GlobalValue::HiddenVisibility);
    b_.CreateRet(b_.CreateCall(driver, {call}));
  }
}

void InterfaceEmitter::emit_message() {
  llvm::Function* f = start(library_.prefix + "_message", ptr(), {b_.getInt32Ty()}, external);
  // One text with an offset per message: a table of pointers would need relocations.
  std::string all, offsets;
  for (const std::string& message : library_.messages) {
    const auto offset = static_cast<std::uint32_t>(all.size());
    offsets.append(reinterpret_cast<const char*>(&offset), sizeof offset);
    all += message + '\0';
  }
  const auto count = static_cast<std::uint32_t>(library_.messages.size());
  Value* number_of = f->getArg(0);
  llvm::BasicBlock* unknown = block("unknown");
  require(b_.CreateICmpULT(number_of, b_.getInt32(count)), unknown);
  Value* at = b_.CreateGEP(b_.getInt32Ty(), bytes(offsets, "message_offsets", llvm::Align(4)),
                           b_.CreateZExt(number_of, i64()));
  b_.CreateRet(byte(bytes(all, "messages"), b_.CreateZExt(b_.CreateLoad(b_.getInt32Ty(), at), i64())));
  b_.SetInsertPoint(unknown);
  b_.CreateRet(text("the library has no error with this number", "unknown_error"));
}

}  // namespace

void emit_interface(llvm::Module& module, const Library& library) { InterfaceEmitter(module, library).emit(); }

}  // namespace lathe::codegen
