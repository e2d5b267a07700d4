#include "codegen/llvm/library/module_code.h"

#include <llvm/IR/Constants.h>
#include <llvm/IR/IntrinsicsX86.h>

#include <algorithm>

#include "codegen/llvm/emit/constant_data.h"

namespace lathe::codegen {

llvm::Function* ModuleCode::start(const std::string& name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> arguments,
                                  llvm::GlobalValue::LinkageTypes linkage, std::initializer_list<const char*> names) {
  function_ = llvm::Function::Create(llvm::FunctionType::get(result, arguments, false), linkage, name, module_);
  function_->setDoesNotThrow();
  for (unsigned i = 0; const char* const argument : names) function_->getArg(i++)->setName(argument);
  b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", function_));
  return function_;
}

llvm::BasicBlock* ModuleCode::block(const std::string& name) {
  return llvm::BasicBlock::Create(module_.getContext(), name, function_);
}

llvm::BasicBlock* ModuleCode::returning(int which) {
  const llvm::IRBuilder<>::InsertPointGuard guard(b_);
  llvm::BasicBlock* failed = block("failed");
  b_.SetInsertPoint(failed);
  b_.CreateRet(error(which));
  return failed;
}

void ModuleCode::require(Value* condition, llvm::BasicBlock* other) {
  llvm::BasicBlock* next = block("next");
  b_.CreateCondBr(condition, next, other);
  b_.SetInsertPoint(next);
}

void ModuleCode::return_unless_none(Value* status) {
  llvm::BasicBlock *failed = block("failed"), *next = block("next");
  b_.CreateCondBr(b_.CreateICmpEQ(status, success()), next, failed);
  b_.SetInsertPoint(failed);
  b_.CreateRet(status);
  b_.SetInsertPoint(next);
}

void ModuleCode::when(Value* condition, llvm::function_ref<void()> then) {
  llvm::BasicBlock *body = block("then"), *next = block("next");
  b_.CreateCondBr(condition, body, next);
  b_.SetInsertPoint(body);
  then();
  b_.CreateBr(next);
  b_.SetInsertPoint(next);
}

void ModuleCode::repeat(Value* count, llvm::function_ref<void(Value* i)> body) {
  llvm::BasicBlock *before = b_.GetInsertBlock(), *head = block("loop"), *inside = block("body"),
                   *after = block("done");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  llvm::PHINode* i = b_.CreatePHI(i64(), 2, "i");
  i->addIncoming(number(0), before);
  b_.CreateCondBr(b_.CreateICmpSLT(i, count), inside, after);
  b_.SetInsertPoint(inside);
  body(i);
  i->addIncoming(b_.CreateAdd(i, number(1)), b_.GetInsertBlock());
  b_.CreateBr(head);
  b_.SetInsertPoint(after);
}

void ModuleCode::repeat_while(llvm::function_ref<Value*()> condition, llvm::function_ref<void()> body) {
  llvm::BasicBlock *head = block("while"), *inside = block("body"), *after = block("done");
  b_.CreateBr(head);
  b_.SetInsertPoint(head);
  Value* holds = condition();
  b_.CreateCondBr(holds, inside, after);
  b_.SetInsertPoint(inside);
  body();
  b_.CreateBr(head);
  b_.SetInsertPoint(after);
}

llvm::Value* ModuleCode::memory_of(const LibraryTensor& tensor, Value* call, const CallLayout& layout) {
  switch (tensor.role) {
    case LibraryTensor::Role::input: return load_pointer(call, layout.inputs + tensor.slot);
    case LibraryTensor::Role::output: return load_pointer(call, layout.outputs + tensor.slot);
    case LibraryTensor::Role::state: break;
  }
  return load_pointer(load_pointer(call, layout.states), tensor.slot);
}

void ModuleCode::bind_dims(Value* dims) {
  dims_.clear();
  sizes_.clear();
  for (std::size_t i = 0; i < library_.dims.size(); ++i) {
    dims_.push_back(load_word(dims, static_cast<std::int64_t>(i)));
    dims_.back()->setName(library_.dims[i].name);
  }
}

llvm::Value* ModuleCode::size(const LibrarySize& size) {
  Value*& sum = sizes_[size];
  if (sum) return sum;
  sum = number(0);
  for (const LibrarySize::Term& term : size.terms) {
    Value* product = number(term.coefficient);
    for (const int dim : term.dims) product = b_.CreateMul(product, dims_[dim]);
    sum = b_.CreateAdd(sum, product);
  }
  return sum;
}

llvm::Constant* ModuleCode::bytes(const std::string& data, const std::string& name, llvm::Align alignment) {
  llvm::GlobalVariable*& global = constants_[data];
  if (!global)
    global = add_constant(module_, llvm::ConstantDataArray::getRaw(data, data.size(), b_.getInt8Ty()), name);
  global->setAlignment(std::max(alignment, global->getAlign().valueOrOne()));
  return global;
}

void enter_float_environment(llvm::IRBuilder<>& b, llvm::Value* slot) {
  constexpr std::uint32_t ieee_default = 0x1f80;  // MXCSR after a reset
  b.CreateIntrinsic(llvm::Intrinsic::x86_sse_stmxcsr, {}, {slot});
  llvm::Value* const wanted = b.CreateConstGEP1_64(b.getInt32Ty(), slot, 1);
  b.CreateStore(b.getInt32(ieee_default), wanted);
  b.CreateIntrinsic(llvm::Intrinsic::x86_sse_ldmxcsr, {}, {wanted});
}

void leave_float_environment(llvm::IRBuilder<>& b, llvm::Value* slot) {
  b.CreateIntrinsic(llvm::Intrinsic::x86_sse_ldmxcsr, {}, {slot});
}

}  // namespace lathe::codegen
