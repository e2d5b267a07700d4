#include "codegen/llvm/emit/emitter.h"

#include <llvm/IR/Function.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "codegen/llvm/emit/statement_emitter.h"

namespace lathe::codegen {

using kernel::BufferInfo;
using kernel::Kernel;
using llvm::Value;

namespace {

/// Emits the functions of a kernel.
class Emitter {
 public:
  Emitter(llvm::Module& module, const Kernel& kernel, const TargetCpu& target, std::string symbol)
      : module_(module),
        kernel_(kernel),
        target_(target),
        symbol_(std::move(symbol)),
        b_(module.getContext()),
        statements_(kernel, target, b_) {}

  void run() {
    emit_body();
    emit_entry();
    emit_extent();
  }

 private:
  llvm::Function* create(const std::string& name, llvm::Type* result, llvm::ArrayRef<llvm::Type*> args,
                         bool external) {
    const auto linkage = external ? llvm::Function::ExternalLinkage : llvm::Function::InternalLinkage;
    auto* function =
        llvm::Function::Create(llvm::FunctionType::get(result, args, false), linkage, symbol_ + name, module_);
    function->setDoesNotThrow();
    function->addFnAttr("target-cpu", target_.cpu);
    function->addFnAttr("target-features", target_.features);
    // Without these, LLVM splits 512-bit vectors on some CPUs.
    function->addFnAttr("prefer-vector-width", std::to_string(target_.vector_bits));
    function->addFnAttr("min-legal-vector-width", std::to_string(target_.vector_bits));
    b_.SetInsertPoint(llvm::BasicBlock::Create(module_.getContext(), "entry", function));
    return function;
  }

  /// Emits the kernel as a function of plain arguments, so that each pointer can be noalias: (buffers..., dims...,
  /// begin, end, status).
  void emit_body() {
    const int buffers = kernel_.parameter_count();
    std::vector<llvm::Type*> types(static_cast<std::size_t>(buffers), b_.getPtrTy());
    types.insert(types.end(), kernel_.dims.size() + 2, b_.getInt64Ty());
    types.push_back(b_.getPtrTy());
    body_ = create("_body", b_.getVoidTy(), types, false);
    // Inlining into the entry would lose noalias.
    body_->addFnAttr(llvm::Attribute::NoInline);
    StatementEmitter::Arguments arguments;
    for (int i = 0; i < buffers; ++i) {
      llvm::Argument* argument = body_->getArg(static_cast<unsigned>(i));
      const BufferInfo& buffer = kernel_.buffers[i];
      argument->setName(buffer.name);
      argument->addAttr(llvm::Attribute::NoCapture);
      if (buffer.noalias) argument->addAttr(llvm::Attribute::NoAlias);
      if (buffer.noalias && buffer.access == kernel::Access::read) argument->addAttr(llvm::Attribute::ReadOnly);
      arguments.buffers.push_back(argument);
    }
    auto* next = body_->arg_begin() + buffers;
    for (const std::string& dim : kernel_.dims) {
      next->setName(dim);
      arguments.dims.push_back(&*next++);
    }
    arguments.begin = &*next++;
    arguments.end = &*next++;
    arguments.status = &*next;
    arguments.begin->setName("begin");
    arguments.end->setName("end");
    arguments.status->setName("status");
    statements_.start(body_, arguments);
    const std::vector<const IntrinsicHook*> hooks = hooks_of(kernel_, target_);
    for (const IntrinsicHook* hook : hooks)
      if (hook->enter) hook->enter(b_);
    if (kernel_.parallel_loop()) {
      statements_.block(kernel_.body);
    } else {
      statements_.when(b_.CreateICmpSLT(arguments.begin, arguments.end), [&] { statements_.block(kernel_.body); });
    }
    for (const IntrinsicHook* hook : hooks)
      if (hook->leave) hook->leave(b_);
    // Non-temporal stores are weakly ordered, so fence before returning.
    if (statements_.streams()) b_.CreateIntrinsic(llvm::Intrinsic::x86_sse_sfence, {}, {});
    b_.CreateRetVoid();
  }

  Value* element(Value* array, llvm::Type* type, std::size_t index) {
    return b_.CreateLoad(type, b_.CreateConstGEP1_64(type, array, index));
  }

  /// Emits void run(ptr buffers, ptr dims, i64 begin, i64 end, ptr status), which unpacks its arguments and calls the
  /// body.
  void emit_entry() {
    llvm::Type* ptr = b_.getPtrTy();
    llvm::Function* run = create("_run", b_.getVoidTy(), {ptr, ptr, b_.getInt64Ty(), b_.getInt64Ty(), ptr}, true);
    std::vector<Value*> args;
    for (int i = 0; i < kernel_.parameter_count(); ++i)
      args.push_back(element(run->getArg(0), ptr, static_cast<std::size_t>(i)));
    for (std::size_t i = 0; i < kernel_.dims.size(); ++i) args.push_back(element(run->getArg(1), b_.getInt64Ty(), i));
    for (unsigned i = 2; i < 5; ++i) args.push_back(run->getArg(i));
    b_.CreateCall(body_, args);
    b_.CreateRetVoid();
  }

  /// Emits i64 extent(ptr dims): the trip count of the parallel loop, computed from the dims.
  void emit_extent() {
    llvm::Function* function = create("_extent", b_.getInt64Ty(), {b_.getPtrTy()}, true);
    const kernel::Loop* loop = kernel_.parallel_loop();
    if (!loop) {
      b_.CreateRet(b_.getInt64(1));
      return;
    }
    StatementEmitter::Arguments arguments;
    for (std::size_t i = 0; i < kernel_.dims.size(); ++i)
      arguments.dims.push_back(element(function->getArg(0), b_.getInt64Ty(), i));
    statements_.start(function, std::move(arguments));
    b_.CreateRet(statements_.trip_count(*loop));
  }

  llvm::Module& module_;
  const Kernel& kernel_;
  const TargetCpu& target_;
  std::string symbol_;
  llvm::IRBuilder<> b_;
  StatementEmitter statements_;
  llvm::Function* body_ = nullptr;
};

}  // namespace

void emit_kernel(llvm::Module& module, const Kernel& kernel, const TargetCpu& target, const std::string& symbol) {
  Emitter(module, kernel, target, symbol).run();
}

}  // namespace lathe::codegen
