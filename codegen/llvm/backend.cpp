#include "codegen/llvm/backend.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SimplifyCFG.h>

#include "ir/support/error.h"

namespace lathe::codegen {

namespace {

constexpr const char* triple = "x86_64-unknown-linux-gnu";

void start_llvm() {
  static const bool started = [] {
    LLVMInitializeX86TargetInfo();
    LLVMInitializeX86Target();
    LLVMInitializeX86TargetMC();
    LLVMInitializeX86AsmPrinter();
    return true;
  }();
  static_cast<void>(started);
}

}  // namespace

std::string_view pipeline_version() {
  return "sroa,early-cse,instcombine,simplifycfg,licm,early-cse;O2;pic;strict-fp 1";
}

Backend::Backend(const TargetCpu& target) {
  start_llvm();
  std::string error;
  const llvm::Target* found = llvm::TargetRegistry::lookupTarget(triple, error);
  if (!found) throw InternalError("LLVM: " + error);
  llvm::TargetOptions options;
  options.AllowFPOpFusion = llvm::FPOpFusion::Strict;
  machine_.reset(found->createTargetMachine(triple, target.cpu, target.features, options, llvm::Reloc::PIC_,
                                            llvm::CodeModel::Small, llvm::CodeGenOptLevel::Default));
  if (!machine_) throw InternalError("LLVM has no machine for " + target.cpu);
}

std::unique_ptr<llvm::Module> Backend::create_module(llvm::LLVMContext& context, const std::string& name) const {
  auto module = std::make_unique<llvm::Module>(name, context);
  module->setTargetTriple(triple);
  module->setDataLayout(machine_->createDataLayout());
  return module;
}

void Backend::optimise(llvm::Module& module) const {
  llvm::LoopAnalysisManager loops;
  llvm::FunctionAnalysisManager functions;
  llvm::CGSCCAnalysisManager graphs;
  llvm::ModuleAnalysisManager modules;
  llvm::PassBuilder builder(machine_.get());
  builder.registerModuleAnalyses(modules);
  builder.registerCGSCCAnalyses(graphs);
  builder.registerFunctionAnalyses(functions);
  builder.registerLoopAnalyses(loops);
  builder.crossRegisterProxies(loops, functions, graphs, modules);

  llvm::FunctionPassManager passes;
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  passes.addPass(llvm::EarlyCSEPass());
  for (llvm::Function& function : module)
    if (!function.isDeclaration()) passes.run(function, functions);
}

std::string Backend::generate(llvm::Module& module, llvm::CodeGenFileType kind) const {
  llvm::SmallString<0> bytes;
  llvm::raw_svector_ostream stream(bytes);
  llvm::legacy::PassManager passes;
  if (machine_->addPassesToEmitFile(passes, stream, nullptr, kind, /*DisableVerify=*/true))
    throw InternalError("LLVM cannot emit this kind of file");
  passes.run(module);
  return std::string(bytes);
}

std::string Backend::object(llvm::Module& module) const {
  return generate(module, llvm::CodeGenFileType::ObjectFile);
}

std::string Backend::assembly(llvm::Module& module) const {
  return generate(module, llvm::CodeGenFileType::AssemblyFile);
}

}  // namespace lathe::codegen
