#include "codegen/llvm/library/library_code.h"

#include <fmt/core.h>
#include <llvm/IR/Constants.h>
#include <llvm/IR/LLVMContext.h>
#include <llvm/IR/Verifier.h>
#include <llvm/Object/ArchiveWriter.h>
#include <llvm/Support/raw_ostream.h>

#include "codegen/llvm/emit/constant_data.h"
#include "codegen/llvm/emit/emitter.h"
#include "codegen/llvm/library/cpu/cpu_driver.h"
#include "codegen/llvm/library/cpu/cpu_interface.h"
#include "codegen/llvm/library/gpu/gpu_driver.h"
#include "codegen/llvm/library/gpu/gpu_interface.h"
#include "codegen/llvm/library/gpu/gpu_loader.h"
#include "codegen/llvm/llvm_backend.h"
#include "ir/kernel/verify/verifier.h"
#include "ir/support/error.h"

namespace lathe::codegen {

namespace {

void verify_library(const llvm::Module& module) {
  std::string problem;
  llvm::raw_string_ostream stream(problem);
  if (llvm::verifyModule(module, &stream)) throw InternalError("a library in LLVM: " + problem);
}

/// Adds a kernel whose functions only this module can call.
void add_kernel(llvm::Module& module, const kernel::Kernel& kernel, const TargetCpu& target,
                const std::string& symbol) {
  kernel::verify(kernel);
  emit_kernel(module, kernel, target, symbol);
  for (const char* const function : {"_run", "_extent"})
    module.getFunction(symbol + function)->setLinkage(llvm::GlobalValue::InternalLinkage);
}

/// Adds the drivers of a level, which may be without the kernels.
void emit_drivers(llvm::Module& module, const Library& library, std::size_t level) {
  library.is_for_gpus() ? emit_gpu_drivers(module, library, level) : emit_cpu_drivers(module, library, level);
}

void emit_kernels(llvm::Module& module, const Library& library, std::size_t level) {
  if (library.is_for_gpus()) return emit_loader(module, library, level);
  const std::vector<kernel::Kernel>& kernels = library.levels[level].kernels;
  for (std::size_t k = 0; k < kernels.size(); ++k)
    add_kernel(module, kernels[k], library.levels[level].target, kernel_symbol(library, level, static_cast<int>(k)));
}

}  // namespace

std::uint32_t library_key(const Library& library) {
  std::uint32_t hash = 2166136261u;  // FNV-1a, 32 bits
  for (const char c : library.init) hash = (hash ^ static_cast<unsigned char>(c)) * 16777619u;
  return hash | 1;
}

LibraryObject level_object(const Library& library, std::size_t level) {
  Backend backend(library.levels[level].target);
  llvm::LLVMContext context;
  context.setDiscardValueNames(true);
  const std::unique_ptr<llvm::Module> module = backend.create_module(context, library.prefix);
  emit_kernels(*module, library, level);
  emit_drivers(*module, library, level);
  verify_library(*module);
  backend.optimise(*module);
  return {fmt::format("{}_{}.o", library.prefix, library.levels[level].name), backend.object(*module)};
}

LibraryObject interface_object(const Library& library) {
  Backend backend({.cpu = "x86-64", .features = {}});
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::Module> module = backend.create_module(context, library.prefix);
  library.is_for_gpus() ? emit_gpu_interface(*module, library) : emit_cpu_interface(*module, library);
  verify_library(*module);
  backend.optimise(*module);
  return {library.prefix + ".o", backend.object(*module)};
}

LibraryObject weights_object(const Library& library) {
  constexpr std::uint64_t alignment = 64;
  Backend backend({.cpu = "x86-64", .features = {}});
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::Module> module = backend.create_module(context, library.prefix);
  auto* value =
      llvm::ConstantDataArray::getRaw(library.weights, library.weights.size(), llvm::Type::getInt8Ty(context));
  llvm::GlobalVariable* global = add_constant(*module, value);
  global->setName(library.prefix + "_weights");
  global->setLinkage(llvm::GlobalValue::ExternalLinkage);
  global->setVisibility(llvm::GlobalValue::HiddenVisibility);
  global->setAlignment(llvm::Align(alignment));
  return {library.prefix + "_weights.o", backend.object(*module)};
}

std::string driver_text(const Library& library, std::size_t level) {
  const Backend backend(library.levels[level].target);
  llvm::LLVMContext context;
  const std::unique_ptr<llvm::Module> module = backend.create_module(context, library.prefix);
  emit_drivers(*module, library, level);
  verify_library(*module);
  std::string text;
  llvm::raw_string_ostream stream(text);
  module->print(stream, nullptr);
  return text;
}

std::string archive_of(const std::vector<LibraryObject>& objects) {
  std::vector<llvm::NewArchiveMember> members;
  for (const LibraryObject& object : objects) members.emplace_back(llvm::MemoryBufferRef(object.bytes, object.name));
  auto archive = llvm::writeArchiveToBuffer(members, llvm::SymtabWritingMode::NormalSymtab,
                                            llvm::object::Archive::K_GNU, /*Deterministic=*/true, /*Thin=*/false);
  if (!archive) throw InternalError("LLVM: " + llvm::toString(archive.takeError()));
  return std::string((*archive)->getBufferStart(), (*archive)->getBufferSize());
}

}  // namespace lathe::codegen
