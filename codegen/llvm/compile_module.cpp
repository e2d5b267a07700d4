#include "codegen/llvm/compile_module.h"

#include <cctype>

#include <fmt/core.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Support/raw_ostream.h>

#include "codegen/llvm/emit/emitter.h"
#include "codegen/llvm/jit.h"
#include "codegen/llvm/llvm_backend.h"
#include "codegen/llvm/sanitizer.h"
#include "ir/kernel/verify/verifier.h"
#include "ir/support/error.h"

namespace lathe::codegen {

namespace {

std::unique_ptr<llvm::Module> emit(llvm::LLVMContext& context, const Backend& backend, const kernel::Kernel& kernel,
                                   const TargetCpu& target, const std::string& symbol) {
  kernel::verify(kernel);
  std::unique_ptr<llvm::Module> module = backend.create_module(context, symbol);
  emit_kernel(*module, kernel, target, symbol);
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(*module, &stream)) throw InternalError("kernel " + kernel.name + " in LLVM: " + problem);
  return module;
}

/// Returns the ops that a kernel was generated from, as comments above its code.
std::string notes(const kernel::Kernel& kernel, std::string_view comment) {
  std::string text;
  for (const std::string& note : kernel.notes) text += fmt::format("{} {}\n", comment, note);
  return text;
}

std::string readable_symbol(const kernel::Kernel& kernel) {
  std::string symbol = kernel.name;
  for (char& c : symbol)
    if (!std::isalnum(static_cast<unsigned char>(c))) c = '_';
  return symbol;
}

}  // namespace

struct Compiler::State {
  explicit State(const TargetCpu& of) : target(of), backend(of) {}
  TargetCpu target;
  Backend backend;
};

Compiler::Compiler(const TargetCpu& target) : state_(std::make_unique<State>(target)) {}
Compiler::~Compiler() = default;

std::string Compiler::object(const kernel::Kernel& kernel, const std::string& symbol) {
  // A context never frees types and constants, so each kernel gets its own.
  llvm::LLVMContext context;
  context.setDiscardValueNames(true);
  const auto module = emit(context, state_->backend, kernel, state_->target, symbol);
  state_->backend.optimise(*module);
  instrument(*module);
  return state_->backend.object(*module);
}

std::string pipeline_name() { return fmt::format("{};sanitizer {}", pipeline_version(), sanitizer_name()); }

std::string emit_llvm_ir(const kernel::Kernel& kernel, const TargetCpu& target, bool optimized) {
  llvm::LLVMContext context;
  const Backend backend(target);
  const auto module = emit(context, backend, kernel, target, readable_symbol(kernel));
  if (optimized) backend.optimise(*module);
  std::string text = notes(kernel, ";");
  llvm::raw_string_ostream stream(text);
  module->print(stream, nullptr);
  return text;
}

std::string emit_assembly(const kernel::Kernel& kernel, const TargetCpu& target) {
  llvm::LLVMContext context;
  const Backend backend(target);
  const auto module = emit(context, backend, kernel, target, readable_symbol(kernel));
  backend.optimise(*module);
  return notes(kernel, "#") + backend.assembly(*module);
}

}  // namespace lathe::codegen
