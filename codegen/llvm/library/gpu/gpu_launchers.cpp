#include "codegen/llvm/library/gpu/gpu_launchers.h"

#include <fmt/core.h>

#include <set>

#include "codegen/llvm/emit/statement_emitter.h"
#include "codegen/llvm/library/gpu/driver_calls.h"
#include "codegen/llvm/library/module_code.h"
#include "ir/kernel/phases.h"
#include "ir/kernel/verify/structure_rules.h"

namespace lathe::codegen {

using kernel::LoopKind;

namespace {

// Constants of cuda.h.
constexpr std::int64_t map_of_f16 = 6, map_of_bf16 = 9, map_not_interleaved = 0, map_swizzle_128 = 3,
                       map_promotes_128 = 2, map_fills_zeros = 0;
/// Of a CUtensorMap.
constexpr std::int64_t map_words = 16, map_alignment = 64;

class Launchers : public ModuleCode {
 public:
  Launchers(llvm::Module& module, const Library& library, std::size_t level)
      : ModuleCode(module, library), level_(level) {}

  void emit(int number_of) {
    kernel_ = &library_.levels[level_].kernels[number_of];
    code_ = &library_.levels[level_].gpu->kernels[number_of];
    launcher_ = start(launcher_symbol(library_, level_, number_of), i32(), {ptr(), ptr(), ptr()},
                      llvm::GlobalValue::InternalLinkage, {"library", "stream", "values"});
    const auto parameters = static_cast<std::int64_t>(kernel_->parameter_count()),
               dims = static_cast<std::int64_t>(kernel_->dims.size()),
               maps = static_cast<std::int64_t>(kernel_->maps.size()), words = parameters + dims + 1;
    llvm::AllocaInst* arguments = b_.CreateAlloca(ptr(), number(words + maps), "arguments");
    llvm::AllocaInst* map_memory =
        b_.CreateAlloca(i64(), number(std::max<std::int64_t>(1, maps) * map_words), "maps");
    map_memory->setAlignment(llvm::Align(map_alignment));
    StatementEmitter::Arguments bound;
    for (std::int64_t d = 0; d < dims; ++d) {
      bound.dims.push_back(load_word(launcher_->getArg(2), parameters + d));
      bound.dims.back()->setName(kernel_->dims[d]);
    }
    StatementEmitter sizes(*kernel_, library_.levels[level_].target, b_);
    const std::vector<Value*> given = bound.dims;
    sizes.start(launcher_, std::move(bound));
    const std::array<Value*, 3> grid =
        code_->is_cooperative() ? resident_blocks(number_of, given) : checked(blocks(*kernel_, sizes));
    for (std::int64_t i = 0; i < words; ++i) b_.CreateStore(word(launcher_->getArg(2), i), word(arguments, i));
    for (std::int64_t m = 0; m < maps; ++m) {
      Value* map = word(map_memory, m * map_words);
      b_.CreateStore(map, word(arguments, words + m));
      encode(sizes, kernel_->maps[m], map);
    }
    launch(number_of, grid, arguments);
  }

 private:
  /// Returns the number of blocks along each axis: the iterations of the longest loop over it.
  std::array<Value*, 3> blocks(const kernel::Kernel& kernel, StatementEmitter& sizes) {
    std::array<Value*, 3> grid = {number(1), number(1), number(1)};
    kernel::for_each_statement(kernel.body, [&](const kernel::Statement& s) {
      const auto* loop = std::get_if<kernel::Loop>(&s.node);
      if (!loop || loop->kind < LoopKind::block_x || loop->kind > LoopKind::block_z) return;
      Value*& longest = grid[static_cast<std::size_t>(loop->kind) - static_cast<std::size_t>(LoopKind::block_x)];
      longest = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, longest, sizes.trip_count(*loop));
    });
    return grid;
  }

  /// Returns the number of blocks of a kernel of phases: those that its phases can use and that can be resident.
  std::array<Value*, 3> resident_blocks(int number_of, const std::vector<Value*>& given) {
    Value* most = number(1);
    std::set<std::pair<int, std::vector<Value*>>> known;
    for (const kernel::KernelPhase& phase : kernel::phases_of(*kernel_)) {
      const kernel::Kernel& run = *kernel_->phase_kernels[phase.kernel];
      StatementEmitter::Arguments bound{.dims = phase.dims_given(
                                            *kernel_, [&](std::int64_t dim) { return given[dim]; },
                                            [&](std::int64_t n) -> Value* { return number(n); })};
      if (!known.emplace(phase.kernel, bound.dims).second) continue;
      StatementEmitter sizes(run, library_.levels[level_].target, b_);
      sizes.start(launcher_, std::move(bound));
      const std::array<Value*, 3> grid = blocks(run, sizes);
      const int at_once = code_->phase_blocks_at_once[phase.kernel];
      Value* all = b_.CreateMul(b_.CreateMul(grid[0], grid[1]), grid[2]);
      Value* each = b_.CreateSDiv(b_.CreateAdd(all, number(at_once - 1)), number(at_once));
      most = b_.CreateBinaryIntrinsic(llvm::Intrinsic::smax, most, each);
    }
    const auto kernels = static_cast<int>(library_.levels[level_].kernels.size());
    Value* fit = load_word(launcher_->getArg(0), GpuInstanceLayout::resident_blocks(kernels) + number_of);
    return {b_.CreateBinaryIntrinsic(llvm::Intrinsic::smin, most, fit), number(1), number(1)};
  }

  /// Returns the blocks of a launch. The launcher returns an error if there are more than the GPU allows.
  std::array<Value*, 3> checked(const std::array<Value*, 3>& grid) {
    Value* fits = b_.getTrue();
    for (std::size_t axis = 0; axis < grid.size(); ++axis)
      fits = b_.CreateAnd(fits, b_.CreateICmpSLE(grid[axis], number(code_->most_blocks[axis])));
    require(fits, returning(LibraryError::too_many_blocks));
    return grid;
  }

  /// Emits an array of numbers, such as sizes and strides.
  Value* array(llvm::Type* type, const std::vector<Value*>& values, const char* name) {
    llvm::IRBuilder<> first(&launcher_->getEntryBlock(), launcher_->getEntryBlock().begin());
    llvm::AllocaInst* memory = first.CreateAlloca(type, number(static_cast<std::int64_t>(values.size())), name);
    for (std::size_t i = 0; i < values.size(); ++i) b_.CreateStore(values[i], b_.CreateConstGEP1_64(type, memory, i));
    return memory;
  }

  /// Encodes a tensor map. One without elements stays zeros, because nothing is copied from it.
  void encode(StatementEmitter& sizes, const kernel::TensorMap& map, Value* to) {
    const DType dtype = kernel_->buffers[map.from].dtype;
    const auto bytes_of = [&](Value* elements) {
      return b_.CreateMul(elements, number(static_cast<std::int64_t>(size_in_bytes(dtype))));
    };
    std::vector<Value*> extents, strides, boxes, steps;
    Value* has_elements = b_.getTrue();
    for (const kernel::ValueId id : map.sizes) {
      extents.push_back(sizes.of_dims(id));
      has_elements = b_.CreateAnd(has_elements, b_.CreateICmpNE(extents.back(), number(0)));
    }
    for (const kernel::ValueId id : map.strides) strides.push_back(bytes_of(sizes.of_dims(id)));
    for (const int box : map.box) {
      boxes.push_back(number32(box));
      steps.push_back(number32(1));
    }
    Value* start = b_.CreateAdd(load_word(launcher_->getArg(2), map.from), bytes_of(sizes.of_dims(map.offset)));
    b_.CreateMemSet(to, b_.getInt8(0), map_words * 8, llvm::MaybeAlign(map_alignment));
    when(has_elements, [&] {
      return_unless_none(call_driver(
          b_, driver_functions(b_, launcher_->getArg(0)), DriverFunction::encode,
          {to, number32(dtype == DType::bf16 ? map_of_bf16 : map_of_f16), number32(std::ssize(extents)),
           b_.CreateIntToPtr(start, ptr()), array(i64(), extents, "sizes"), array(i64(), strides, "strides"),
           array(i32(), boxes, "box"), array(i32(), steps, "steps"), number32(map_not_interleaved),
           number32(map_swizzle_128), number32(map_promotes_128), number32(map_fills_zeros)}));
    });
  }

  void launch(int number_of, const std::array<Value*, 3>& grid, Value* arguments) {
    Value* library = launcher_->getArg(0);
    const auto kernels = static_cast<int>(library_.levels[level_].kernels.size());
    std::vector<Value*> call{load_pointer(library, GpuInstanceLayout::functions(kernels) + number_of)};
    for (Value* const count : grid) call.push_back(b_.CreateTrunc(count, i32()));
    for (const int count : code_->threads) call.push_back(number32(count));
    call.insert(call.end(), {number32(code_->dynamic_shared_bytes), launcher_->getArg(1), arguments});
    if (!code_->is_cooperative()) call.push_back(llvm::ConstantPointerNull::get(b_.getPtrTy()));
    const auto which = code_->is_cooperative() ? DriverFunction::launch_cooperative : DriverFunction::launch;
    b_.CreateRet(call_driver(b_, driver_functions(b_, library), which, call));
  }

  std::size_t level_;
  const kernel::Kernel* kernel_ = nullptr;
  const LibraryGpuKernel* code_ = nullptr;
  llvm::Function* launcher_ = nullptr;
};

}  // namespace

std::string launcher_symbol(const Library& library, std::size_t level, int kernel) {
  return fmt::format("{}_{}_launch{}_{}", library.prefix, library.levels[level].name, kernel,
                     library.levels[level].gpu->kernels[kernel].symbol);
}

void emit_launchers(llvm::Module& module, const Library& library, std::size_t level) {
  Launchers launchers(module, library, level);
  for (std::size_t k = 0; k < library.levels[level].kernels.size(); ++k) launchers.emit(static_cast<int>(k));
}

}  // namespace lathe::codegen
