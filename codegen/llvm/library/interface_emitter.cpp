#include "codegen/llvm/library/interface_emitter.h"

#include <algorithm>

namespace lathe::codegen {

using llvm::Value;

namespace {

constexpr auto external = llvm::GlobalValue::ExternalLinkage;

}  // namespace

void InterfaceEmitter::emit() {
  emit_init();
  emit_workspace_bytes();
  for (const LibraryEntry& entry : library_.entries) {
    emit_check(entry);
    emit_run(entry);
  }
  emit_rest();
  emit_message();
  start_external("_describe", ptr(), {});
  b_.CreateRet(text(library_.describe, "description"));
  if (library_.states.empty()) return;
  llvm::Function* header = start_external("_file_header", ptr(), {ptr()});
  b_.CreateStore(number(static_cast<std::int64_t>(library_.file_header.size())), header->getArg(0));
  b_.CreateRet(text(library_.file_header, "file_header"));
}

llvm::Function* InterfaceEmitter::start_external(const std::string& suffix, llvm::Type* result,
                                                 llvm::ArrayRef<llvm::Type*> arguments) {
  return start(library_.prefix + suffix, result, arguments, external);
}

Value* InterfaceEmitter::level(Value* instance, llvm::BasicBlock* otherwise) {
  require(b_.CreateIsNotNull(instance), otherwise);
  Value* key = b_.CreateLoad(i32(), half_word(instance, InstanceLayout::key));
  require(b_.CreateICmpEQ(key, b_.getInt32(library_key(library_))), otherwise);
  Value* level = b_.CreateLoad(i32(), half_word(instance, InstanceLayout::level));
  const auto levels = static_cast<std::uint32_t>(library_.levels.size());
  require(b_.CreateICmpULT(level, b_.getInt32(levels)), otherwise);
  return b_.CreateZExt(level, i64());
}

void InterfaceEmitter::return_from_level(Value* level, llvm::function_ref<std::string(std::size_t)> symbol_of,
                                         llvm::ArrayRef<Value*> arguments) {
  std::vector<llvm::Type*> types;
  for (Value* const argument : arguments) types.push_back(argument->getType());
  auto* type = llvm::FunctionType::get(i32(), types, false);
  llvm::SwitchInst* choice = b_.CreateSwitch(level, returning(LibraryError::not_initialised));
  for (std::size_t l = 0; l < library_.levels.size(); ++l) {
    llvm::BasicBlock* here = block(library_.levels[l].name);
    choice->addCase(number(static_cast<std::int64_t>(l)), here);
    b_.SetInsertPoint(here);
    llvm::FunctionCallee callee = module_.getOrInsertFunction(symbol_of(l), type);
    llvm::cast<llvm::Function>(callee.getCallee())->setVisibility(llvm::GlobalValue::HiddenVisibility);
    b_.CreateRet(b_.CreateCall(callee, arguments));
  }
}

void InterfaceEmitter::emit_init() {
  std::vector<llvm::Function*> fill;
  for (std::size_t i = 0; i < library_.states.size(); ++i)
    fill.push_back(values_.function(library_.states[i], library_.initials[i]));
  llvm::Function* of_states = library_.states.empty() ? nullptr : checks_.of_states();
  std::vector<llvm::Type*> types{ptr()};
  for (llvm::Type* const type : machine_types()) types.push_back(type);
  const std::size_t dims_at = types.size();
  if (!library_.dims.empty()) types.push_back(ptr());
  const bool has_states = !library_.states.empty();
  if (has_states) types.insert(types.end(), {ptr(), i64()});
  llvm::Function* init = start(library_.init, i32(), types, external);
  Value* instance = init->getArg(0);
  require(b_.CreateIsNotNull(instance), returning(LibraryError::no_call));
  b_.CreateStore(b_.getInt32(0), half_word(instance, InstanceLayout::key));
  Value* level = choose_level(init);
  if (has_states) {
    Value *states = init->arg_end() - 2, *seed = init->arg_end() - 1;
    when(b_.CreateIsNotNull(states), [&] {
      Value* dims = states;
      if (!library_.dims.empty()) {
        dims = init->getArg(static_cast<unsigned>(dims_at));
        require(b_.CreateIsNotNull(dims), returning(LibraryError::no_call));
      }
      return_unless_none(b_.CreateCall(of_states, {dims, states}));
      bind_dims(dims);
      for (std::size_t i = 0; i < fill.size(); ++i)
        b_.CreateCall(fill[i], {load_pointer(states, static_cast<std::int64_t>(i)), size(library_.states[i].elements),
                                seed, b_.getInt64(library_.initials[i].stream), size(library_.initials[i].fan_in)});
    });
  }
  prepare(init, level);
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
  const bool has_workers = !library_.is_for_gpus();
  llvm::SmallVector<llvm::Type*> types{ptr()};
  if (has_workers) types.push_back(i32());
  llvm::Function* f = start_external("_workspace_bytes", i64(), types);
  llvm::BasicBlock* failed = block("failed");
  Value* of = level(f->getArg(0), failed);
  Value* workers = has_workers ? b_.CreateSExt(f->getArg(1), i64()) : number(1);
  b_.CreateRet(workspace_bytes(of, workers, library_.entries));
  b_.SetInsertPoint(failed);
  b_.CreateRet(number(-1));
}

void InterfaceEmitter::emit_check(const LibraryEntry& entry) {
  llvm::Function* arguments = checks_.of_call(entry);
  llvm::Function* check = start_external(entry.name + "_check", i32(), {ptr(), ptr()});
  Value* call = check->getArg(1);
  Value* of = level(check->getArg(0), returning(LibraryError::not_initialised));
  require(b_.CreateIsNotNull(call), returning(LibraryError::no_call));
  const CallLayout layout(library_, entry);
  Value* count = workers(entry, call);
  require(b_.CreateIsNotNull(load_pointer(call, layout.workspace)), returning(LibraryError::no_workspace));
  Value* needed = workspace_bytes(of, count, {&entry, 1});
  require(b_.CreateICmpUGE(load_word(call, layout.workspace_bytes()), needed), returning(entry.workspace_error));
  if (!library_.states.empty())
    require(b_.CreateIsNotNull(load_pointer(call, layout.states)), returning(LibraryError::no_states));
  b_.CreateRet(b_.CreateCall(arguments, {call}));
}

Value* InterfaceEmitter::other_message(Value*) {
  return text("the library has no error with this number", "unknown_error");
}

void InterfaceEmitter::emit_message() {
  llvm::Function* f = start_external("_message", ptr(), {i32()});
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
  Value* at = b_.CreateGEP(i32(), bytes(offsets, "message_offsets", llvm::Align(4)), b_.CreateZExt(number_of, i64()));
  b_.CreateRet(byte(bytes(all, "messages"), b_.CreateZExt(b_.CreateLoad(i32(), at), i64())));
  b_.SetInsertPoint(unknown);
  b_.CreateRet(other_message(number_of));
}

}  // namespace lathe::codegen
