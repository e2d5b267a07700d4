#pragma once

#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "ir/support/object_store.h"
#include "passes/lowering/machine.h"
#include "runtime/library/library_plan.h"
#include "runtime/ranks/agreement.h"
#include "runtime/run/program_runner.h"

/// The interface between the compiler and the kinds of machines it compiles for. Nothing outside a backend's own
/// folder asks which kind a target is.
namespace lathe {

/// Options of Device::load().
struct LoadOptions {
  bool poison = false;       ///< CompileOptions::poison
  DimBindings reserve = {};  ///< CompileOptions::reserve
  const std::vector<bool>* skipped =
      nullptr;  ///< by launch: runs skip it; read at the start of each run; may be null
};

/// A program that is ready to run.
struct LoadedProgram {
  std::unique_ptr<ProgramRunner> runner;
  int compiled = 0, from_cache = 0;  ///< kernels
};

/// The highest rates of a device, for a report next to what a program reaches.
struct DeviceRates {
  double flops = 0;       ///< floating-point operations per second; a multiply-add of f32 counts as two
  double bytes = 0;       ///< bytes read from memory per second
  std::string unit = {};  ///< the unit that reaches `flops`: "AVX-512"
};

/// A device of one process: it compiles kernels and runs programs.
class Device {
 public:
  virtual ~Device() = default;

  /// Returns the machine to lower graphs for, with all features of this device.
  virtual Machine machine() const = 0;
  /// Compiles the kernels of a program and plans how it runs. The program and `skipped` must outlive the runner; the
  /// device need not.
  virtual LoadedProgram load(const Program& program, const LoadOptions& options) const = 0;

  /// Identifies the code of a kernel: equal keys mean equal code.
  virtual std::string code_key(const kernel::Kernel& kernel) const = 0;
  /// Identifies everything that times depend on, such as the processor and the number of threads: part of the keys
  /// of tuned tiles.
  virtual std::string tuning_key() const = 0;
  /// Returns the claim that ranks compare before they communicate: they must compile for equal devices.
  virtual Claim claim() const = 0;
  /// Returns whether load() plans the memory for LoadOptions::reserve.
  virtual bool plans_reserved_sizes() const = 0;

  /// Returns a description for users: "2 threads", or the name of a GPU.
  virtual std::string description() const = 0;
  /// Returns the measured or driver-reported rates.
  virtual DeviceRates rates() const = 0;
};

struct DeviceOptions {
  int threads = 1;            ///< threads that run kernels on a CPU
  int compiling_threads = 1;  ///< threads that compile
  bool own_threads = false;   ///< CompileOptions::own_threads
  ObjectStore* cache = nullptr;
  std::shared_ptr<Ranks> ranks = nullptr;  ///< the processes that run programs together; null: one process
};

/// One kind of machine. A target is a backend and a name that the backend resolves.
class Backend {
 public:
  virtual ~Backend() = default;

  /// "a CPU", "a GPU": in messages, and what ranks compare first.
  virtual std::string_view kind() const = 0;
  /// Returns whether a target's name, up to a comma or colon, is one of this backend's.
  virtual bool knows(std::string_view target) const = 0;
  /// The names it knows, for an error: "host, x86-64-v3".
  virtual std::string names() const = 0;
  /// Throws a UserError for a name that it knows with features or an architecture that it does not.
  virtual void check(std::string_view target) const = 0;

  /// The machine to lower graphs for where no device is needed, such as for a dump. A GPU without an architecture
  /// counts as the oldest that is supported.
  virtual Machine machine(std::string_view target) const = 0;
  /// Opens the device that programs for a target run on. With ranks it must be called by all of them. Throws
  /// UserErrors if this machine cannot run the target.
  virtual std::unique_ptr<Device> open(std::string_view target, const DeviceOptions& options) const = 0;
  /// Generates the code of a library whose targets are this backend's: its header, objects and archive. Throws
  /// UserError [library_target] if the backend emits no libraries.
  virtual EmittedLibrary emit(const LibraryPlan& plan) const;
  /// A backend whose device is chosen and whose libraries are opened now, from `folders` first: every open() uses
  /// them. Null if there is nothing to choose. With ranks it must be called by all of them.
  virtual std::shared_ptr<const Backend> bind(const std::shared_ptr<Ranks>& ranks,
                                              const std::vector<std::filesystem::path>& folders) const {
    static_cast<void>(ranks), static_cast<void>(folders);
    return nullptr;
  }
};

}  // namespace lathe
