#include "codegen/llvm/llvm_backend.h"

#include <mutex>

#include <llvm/ADT/STLExtras.h>
#include <llvm/ADT/SmallString.h>
#include <llvm/IR/LegacyPassManager.h>
#include <llvm/IR/OptBisect.h>
#include <llvm/InitializePasses.h>
#include <llvm/MC/TargetRegistry.h>
#include <llvm/PassRegistry.h>
#include <llvm/Passes/PassBuilder.h>
#include <llvm/Support/CommandLine.h>
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
    LLVMInitializeX86AsmParser();  // of inline assembly in libraries
    llvm::PassRegistry& passes = *llvm::PassRegistry::getPassRegistry();
    llvm::initializePostRASchedulerPass(passes);
    return true;
  }();
  static_cast<void>(started);
}

/// While alive, code generation is set up without loop strength reduction and its preparation, which take a quarter
/// of the time. Constant offsets are already separated, so addresses in loops are a register plus a constant without
/// it. LLVM only has a process-wide flag for this, which is read when passes are set up.
class WithoutLoopStrengthReduction {
 public:
  WithoutLoopStrengthReduction() : lock_(mutex()), before_(flag().getValue()) { flag().setValue(true); }
  ~WithoutLoopStrengthReduction() { flag().setValue(before_); }
  WithoutLoopStrengthReduction(const WithoutLoopStrengthReduction&) = delete;
  WithoutLoopStrengthReduction& operator=(const WithoutLoopStrengthReduction&) = delete;

 private:
  static std::mutex& mutex() {
    static std::mutex one;
    return one;
  }
  static llvm::cl::opt<bool>& flag() {
    const auto& flags = llvm::cl::getRegisteredOptions();
    const auto found = flags.find("disable-lsr");
    if (found == flags.end()) throw InternalError("LLVM has no flag disable-lsr");
    return static_cast<llvm::cl::opt<bool>&>(*found->second);
  }

  std::lock_guard<std::mutex> lock_;
  bool before_;
};

/// Disables LLVM codegen passes that do not help these kernels. Masks are already computed in the right domain, and
/// out-of-order processors need no scheduling after register allocation.
class LeftOut final : public llvm::OptPassGate {
 public:
  LeftOut() {
    for (const llvm::StringRef argument : {"x86-domain-reassignment", "post-RA-sched"}) {
      const llvm::PassInfo* pass = llvm::PassRegistry::getPassRegistry()->getPassInfo(argument);
      if (!pass) throw InternalError("LLVM has no pass " + argument.str());
      names_.push_back(pass->getPassName());
    }
  }
  bool isEnabled() const override { return true; }
  bool shouldRunPass(llvm::StringRef pass, llvm::StringRef) override { return !llvm::is_contained(names_, pass); }

 private:
  std::vector<llvm::StringRef> names_;
};

}  // namespace

std::string_view pipeline_version() {
  return "sroa,early-cse,instcombine,simplifycfg,licm,early-cse,separate-const-offset-from-gep,early-cse,licm;"
         "O2 without loop-reduce,x86-domain-reassignment,post-RA-sched;pic;strict-fp 1";
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

/// LLVM's code generation for one output file type.
class Backend::Generator {
 public:
  Generator(llvm::TargetMachine& machine, llvm::CodeGenFileType kind) {
    const WithoutLoopStrengthReduction while_set_up;
    if (machine.addPassesToEmitFile(passes_, stream_, nullptr, kind, /*DisableVerify=*/true))
      throw InternalError("LLVM cannot emit this kind of file");
  }
  std::string run(llvm::Module& module) {
    bytes_.clear();
    passes_.run(module);
    return std::string(bytes_);
  }

 private:
  llvm::SmallString<0> bytes_;
  llvm::raw_svector_ostream stream_{bytes_};
  llvm::legacy::PassManager passes_;
};

Backend::~Backend() = default;

std::string Backend::object(llvm::Module& module) {
  // A generator is not reused after an exception.
  std::unique_ptr<Generator> generator = std::move(to_objects_);
  if (!generator) generator = std::make_unique<Generator>(*machine_, llvm::CodeGenFileType::ObjectFile);
  std::string bytes = generator->run(module);
  to_objects_ = std::move(generator);
  return bytes;
}

std::string Backend::assembly(llvm::Module& module) const {
  return Generator(*machine_, llvm::CodeGenFileType::AssemblyFile).run(module);
}

}  // namespace lathe::codegen
