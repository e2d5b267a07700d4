#include "codegen/llvm/loader.h"

#include <cmath>
#include <cstring>

#include <llvm/ExecutionEngine/JITLink/JITLinkMemoryManager.h>
#include <llvm/ExecutionEngine/Orc/Core.h>
#include <llvm/ExecutionEngine/Orc/ExecutorProcessControl.h>
#include <llvm/ExecutionEngine/Orc/ObjectLinkingLayer.h>
#include <llvm/ExecutionEngine/Orc/TaskDispatch.h>
#include <llvm/Support/MemoryBuffer.h>

#include "codegen/llvm/sanitizer.h"
#include "ir/support/error.h"

namespace lathe::codegen {

namespace orc = llvm::orc;

namespace {

void check(llvm::Error error) {
  if (error) throw InternalError("LLVM: " + llvm::toString(std::move(error)));
}

template <class T>
T unwrap(llvm::Expected<T> value) {
  if (!value) check(value.takeError());
  return std::move(*value);
}

template <class F>
LibraryFunction function(const char* name, F* address) {
  return {name, reinterpret_cast<void*>(address)};
}

/// Returns the library functions that compiled kernels may call. LLVM emits fminf and fmaxf for comparisons and
/// selections of f16 scalars on CPUs without f16 arithmetic.
std::vector<LibraryFunction> library() {
  using Unary = double(double);
  using Binary = double(double, double);
  std::vector<LibraryFunction> result = {function<Unary>("exp", std::exp),
                                         function<Unary>("log", std::log),
                                         function<Unary>("tanh", std::tanh),
                                         function<Unary>("erf", std::erf),
                                         function<Unary>("sin", std::sin),
                                         function<Unary>("cos", std::cos),
                                         function<Binary>("pow", std::pow),
                                         function<double(double, double, double)>("fma", std::fma),
                                         function<float(float, float, float)>("fmaf", std::fma),
                                         function<float(float, float)>("fminf", std::fmin),
                                         function<float(float, float)>("fmaxf", std::fmax),
                                         function<Binary>("fmin", std::fmin),
                                         function<Binary>("fmax", std::fmax),
                                         function<void*(void*, const void*, std::size_t)>("memcpy", std::memcpy),
                                         function<void*(void*, const void*, std::size_t)>("memmove", std::memmove),
                                         function<void*(void*, int, std::size_t)>("memset", std::memset)};
  for (const LibraryFunction& checked : sanitizer_functions()) result.push_back(checked);
  return result;
}

}  // namespace

/// A minimal session: no platform, no process symbols, all work on the calling thread.
struct LoadedCode::Session {
  Session()
      : session(
            unwrap(orc::SelfExecutorProcessControl::Create(nullptr, std::make_unique<orc::InPlaceTaskDispatcher>()))),
        layer(session),
        dylib(session.createBareJITDylib("kernels")) {
    // A failing lookup returns the error, so nothing is printed to stderr.
    session.setErrorReporter([](llvm::Error error) { llvm::consumeError(std::move(error)); });
  }
  ~Session() { llvm::consumeError(session.endSession()); }

  orc::ExecutionSession session;
  orc::ObjectLinkingLayer layer;
  orc::JITDylib& dylib;
};

LoadedCode::LoadedCode(const std::vector<std::string>& objects) : session_(std::make_unique<Session>()) {
  orc::SymbolMap symbols;
  const auto flags = llvm::JITSymbolFlags::Exported | llvm::JITSymbolFlags::Callable;
  for (const LibraryFunction& f : library())
    symbols[session_->session.intern(f.name)] = {orc::ExecutorAddr::fromPtr(f.address), flags};
  check(session_->dylib.define(orc::absoluteSymbols(std::move(symbols))));
  for (const std::string& object : objects)
    check(session_->layer.add(session_->dylib, llvm::MemoryBuffer::getMemBufferCopy(object, "kernel")));
}

LoadedCode::~LoadedCode() = default;

std::vector<void*> LoadedCode::addresses(const std::vector<std::string>& names) {
  // Looks up one name at a time: objects requested together that call library functions are linked recursively, and a
  // few thousand overflow the stack.
  std::vector<void*> result;
  for (const std::string& name : names)
    result.push_back(unwrap(session_->session.lookup({&session_->dylib}, name)).getAddress().toPtr<void*>());
  return result;
}

}  // namespace lathe::codegen
