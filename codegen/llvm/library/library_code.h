#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "codegen/llvm/target_cpu.h"
#include "ir/kernel/kernel.h"
#include "ir/support/dtype.h"

/// A library of C functions, as data. The emitters in this folder generate its objects for x86-64: kernels, and the
/// functions that run them. All memory and all threads belong to the caller of the library. In a library for GPUs,
/// tensors and the workspace are device memory, and the functions launch kernels that were compiled before.
namespace lathe::codegen {

/// A size: a polynomial of the library's dims.
struct LibrarySize {
  /// A product of a coefficient and dims. A power is represented by repetition.
  struct Term {
    std::int64_t coefficient;
    std::vector<int> dims;
    auto operator<=>(const Term&) const = default;
  };
  std::vector<Term> terms;
  auto operator<=>(const LibrarySize&) const = default;
};

/// A tensor of the caller: the pointer number `slot` among the inputs, states or outputs.
struct LibraryTensor {
  enum class Role : std::uint8_t { input, state, output };
  Role role = Role::input;
  int slot = 0;
  std::string name;  ///< for IR
  LibrarySize elements;
  DType dtype = f32;
  std::int64_t alignment = 1;  ///< bytes
  bool is_written = false;
  int error = 0;  ///< its memory is missing; the next two: it is misaligned, it overlaps with other memory
};

/// Memory that launches access.
struct LibraryBuffer {
  enum class Kind : std::uint8_t {
    tensor,    ///< at `offset` bytes in LibraryEntry::tensors[number]
    constant,  ///< LibraryEntry::constants[number]
    arena,     ///< at `offset` bytes in the arena
    scratch,   ///< at `offset` bytes in the scratch memory of a worker
    embedded,  ///< at `offset` bytes in Library::weights
    slice,     ///< one iteration's part of another buffer
    unused,
  };
  Kind kind = Kind::unused;
  std::string name = {};  ///< for IR
  int number = 0;
  std::int64_t offset = 0;
  int of = -1, loop = -1;    ///< of a slice
  LibrarySize stride = {};   ///< of a slice: bytes between the parts of consecutive iterations
  bool is_reversed = false;  ///< of a slice: the iterations access the parts from the last to the first
};

struct LibraryLaunch {
  int kernel = 0;
  /// The kernel for slices that do not start at multiples of 16 bytes, and the slices that may not, with those that
  /// they are parts of. -1: all do.
  int unaligned_kernel = -1;
  std::vector<int> unaligned_slices = {};
  std::vector<int> buffers;          ///< in the order of the kernel's parameters
  std::vector<LibrarySize> dims;     ///< of the kernel
  std::vector<LibrarySize> written;  ///< elements that it writes, by buffer; all 0: the launch is skipped
  struct Condition {
    LibrarySize size;
    std::int64_t limit = 0;
    bool is_below = false;
  };
  std::optional<Condition> condition = {};  ///< SizeCondition: runs if size < limit, or if size >= limit
  LibrarySize work, bytes;                  ///< scalar operations per iteration; memory traffic
  std::vector<int> errors;                  ///< by check of the kernel
  bool has_phases = false;                  ///< its kernel has a barrier of the grid, in a second status word
  std::string comment;                      ///< its ops and source line, for IR
};

/// Launches [first, end) that run `trips` times.
struct LibraryLoop {
  int first = 0, end = 0;
  LibrarySize trips;  ///< at least 0: LibraryEntry::checks
  std::string name;
};

/// Launches [first, last] that may run concurrently.
struct LibraryGroup {
  int first = 0, last = 0;
  bool are_parts = false;  ///< they compute parts of one value, so that they run concurrently whatever their work
};

/// How the iterations of parallel loops are divided among workers.
struct LibraryTasks {
  std::int64_t byte_work = 0, least_chunk_work = 0, heavy_work = 0, light_chunks = 0, heavy_chunks = 0,
               together_work = 0;
};

/// The code of one graph for one CPU level.
struct LibraryProgram {
  std::vector<LibraryBuffer> buffers;
  std::vector<LibraryLaunch> launches;
  std::vector<LibraryLoop> loops;
  std::vector<LibraryGroup> groups;                 ///< all launches, in order
  std::vector<std::string> constants;               ///< their bytes
  std::int64_t arena_bytes = 0, scratch_bytes = 0;  ///< scratch: per worker
};

/// A relation between sizes that must hold.
struct LibraryCheck {
  LibrarySize left, right;
  bool is_equality = true;  ///< otherwise left <= right
  int error = 0;
};

/// A graph of the library.
struct LibraryEntry {
  std::string name;  ///< the part of symbols after the prefix: "_prompt"; empty for a library of one graph
  std::vector<LibraryTensor> tensors = {};
  int inputs = 0, outputs = 0;  ///< pointers in a call
  int workspace_error = 0;      ///< the workspace is too small
  std::vector<LibraryCheck> checks = {};
  std::vector<LibraryProgram> programs = {};  ///< by level
};

/// A dim of the library; calls give sizes in [0, most].
struct LibraryDim {
  std::string name;
  std::int64_t most = 0;
  int error = 0;  ///< out of range
};

/// The initial value of a state, as frontend/initial_values.h draws it.
struct LibraryInitial {
  enum class Kind : std::uint8_t { constant, normal, uniform, values, random_state };
  Kind kind = Kind::constant;
  double a = 0, b = 0;  ///< constant; mean and deviation; bounds
  /// Of `normal`, if its shape has late-bound dims: the deviation is b divided by the square root of this size.
  LibrarySize fan_in = {};
  std::uint64_t stream = 0;  ///< of random numbers
  std::string bytes = {};    ///< `values`; `constant`: of one element
};

/// A compiled kernel of a GPU.
struct LibraryGpuKernel {
  std::string symbol, cubin = {};
  std::array<int, 3> threads = {1, 1, 1};               ///< per block
  std::array<std::int64_t, 3> most_blocks = {1, 1, 1};  ///< per launch
  std::int64_t dynamic_shared_bytes = 0;                ///< per block
  bool has_long_indices = false;                        ///< they may exceed 32 bits
  /// Of a kernel of phases, whose blocks have to be resident: by kernel of its phases, the number of blocks that a
  /// block of the grid runs at a time. Empty for other kernels.
  std::vector<int> phase_blocks_at_once = {};
  bool is_cooperative() const { return !phase_blocks_at_once.empty(); }
};

/// The GPUs that a level runs on, and its kernels, in the order of LibraryLevel::kernels.
struct LibraryGpu {
  int capability = 80;    ///< 90 for 9.0
  bool is_exact = false;  ///< only this capability; otherwise also later ones of the same generation
  std::vector<LibraryGpuKernel> kernels = {};
};

/// A CPU level, or an architecture of GPUs: the kernels of all graphs, compiled for one target.
struct LibraryLevel {
  std::string name;  ///< as part of symbols: "x86_64_v3"
  TargetCpu target;  ///< of the code that runs on the host
  std::vector<kernel::Kernel> kernels = {};
  std::optional<LibraryGpu> gpu = {};  ///< kernels run on it; otherwise on the host
};

struct Library {
  std::string prefix;
  std::string init;         ///< symbol of the first function that programs call, with a digest of the interface
  std::string describe;     ///< JSON
  std::string file_header;  ///< of a file with the states
  LibraryTasks tasks;
  std::vector<LibraryDim> dims;
  std::vector<LibraryTensor> states;     ///< by slot
  std::vector<LibraryInitial> initials;  ///< by state
  std::vector<LibraryEntry> entries;
  std::vector<LibraryLevel> levels;   ///< a call uses the last one that the CPU, or the GPU, supports
  std::vector<std::string> messages;  ///< by error; 0 is success
  std::string weights;                ///< bytes of parameters that are part of the library

  bool is_for_gpus() const { return !levels.empty() && levels[0].gpu.has_value(); }
};

/// The errors that every library has, at these positions in Library::messages.
enum class LibraryError : int {
  none,
  no_level,         ///< the machine supports no level
  not_initialised,  ///< init was not called, or failed
  no_call,          ///< a null pointer instead of a call, dims or the library
  no_states,
  no_workspace,
  bad_workers,  ///< of CPUs: no function, or a negative number of workers
  cpu_count,
  no_driver = bad_workers,  ///< of GPUs: a null pointer instead of the driver's functions
  no_constants,             ///< memory for constants is missing or misaligned
  too_many_blocks,          ///< of threads, in a launch
  no_cooperation,           ///< the GPU has no cooperative launches, or no room for a block of one
  gpu_count
};

/// Returns the number that a library writes into its struct when it is initialised.
std::uint32_t library_key(const Library& library);

struct LibraryObject {
  std::string name;  ///< of the file: "gpt2_x86_64_v3.o"
  std::string bytes;
};
/// Returns the object of one level: kernels and drivers.
LibraryObject level_object(const Library& library, std::size_t level);
/// Same for the functions that the header declares.
LibraryObject interface_object(const Library& library);
/// Same for the parameters that are part of the library. Not to be called without any.
LibraryObject weights_object(const Library& library);
/// Returns the LLVM IR of the drivers of all graphs for one level, without the kernels.
std::string driver_text(const Library& library, std::size_t level);
/// Returns a static library with these members, the same bytes for the same objects.
std::string archive_of(const std::vector<LibraryObject>& objects);

}  // namespace lathe::codegen
