#include "codegen/llvm/backend.h"

#include <llvm/ADT/SmallString.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/TargetSelect.h>
#include <llvm/Transforms/InstCombine/InstCombine.h>
#include <llvm/Transforms/Scalar/EarlyCSE.h>
#include <llvm/Transforms/Scalar/LICM.h>
#include <llvm/Transforms/Scalar/LoopPassManager.h>
#include <llvm/Transforms/Scalar/SROA.h>
#include <llvm/Transforms/Scalar/SeparateConstOffsetFromGEP.h>
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

/// Leaves passes of LLVM's code generation out that take a quarter of its time and give kernels nothing: once
/// constant offsets are apart, addresses in a loop are a register and a constant without the search for better ones,
/// and masks are made where masks are wanted.
class LeftOut final : public llvm::OptPassGate {
 public:
  bool isEnabled() const override { return true; }
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef) override {
    return pass != "Loop Strength Reduction" && pass != "X86 Domain Reassignment Pass";
  }
};

}  // namespace

std::string_view pipeline_version() {
  return "sroa,early-cse,instcombine,simplifycfg,licm,early-cse,separate-const-offset-from-gep,early-cse,licm;"
         "O2 without loop-reduce,x86-domain-reassignment;pic;strict-fp 1";
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
  static LeftOut left_out;
  context.setOptPassGate(left_out);
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
  const auto out_of_loops = [&passes] {
    passes.addPass(llvm::createFunctionToLoopPassAdaptor(llvm::LICMPass(llvm::LICMOptions()), /*UseMemorySSA=*/true));
  };
  passes.addPass(llvm::SROAPass(llvm::SROAOptions::ModifyCFG));
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::InstCombinePass());
  passes.addPass(llvm::SimplifyCFGPass());
  out_of_loops();
  passes.addPass(llvm::EarlyCSEPass());
  passes.addPass(llvm::SeparateConstOffsetFromGEPPass(/*LowerGEP=*/false));
  passes.addPass(llvm::EarlyCSEPass());
  out_of_loops();
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
