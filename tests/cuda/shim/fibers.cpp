#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <random>
#include <utility>
#include <vector>

#include "tests/cuda/shim/block.h"
#include "tests/cuda/shim/launch.h"

/// All threads of a block are fibers of one OS thread, run in random order. If blocks wait for each other, a few of
/// them run in turns, in random order too, and all blocks of a resident grid.

ShimIndex threadIdx, blockIdx, blockDim, gridDim;

// The bounds of the section of __shared__ variables; the linker defines them if the section exists.
extern "C" __attribute__((weak)) unsigned char __start_cuda_shared[], __stop_cuda_shared[];

/// Saves the callee-saved registers on the current stack and the stack pointer in *from, and resumes at `to`.
extern "C" void shim_switch(void** from, void* to);
asm(R"(
.text
.globl shim_switch
.type shim_switch,@function
shim_switch:
  pushq %rbp
  pushq %rbx
  pushq %r12
  pushq %r13
  pushq %r14
  pushq %r15
  movq %rsp, (%rdi)
  movq %rsi, %rsp
  popq %r15
  popq %r14
  popq %r13
  popq %r12
  popq %rbx
  popq %rbp
  ret
.size shim_switch,.-shim_switch
)");

namespace {

constexpr std::size_t stack_bytes = 128 * 1024, most_dynamic_bytes = 1 << 18;

enum class State { at_barrier, in_warp, waiting, running, finished };

struct Fiber {
  void* position = nullptr;
  ShimIndex index = {};
  State state = State::finished;
  ShimCondition over = nullptr;  // condition of a waiting fiber
  const void* what = nullptr;
  unsigned number = 0;
  bool for_blocks = false;  // other blocks fulfil it
};

/// The threads of a warp or warpgroup that have reached the current collective.
struct Meeting {
  void* lanes[shim_warpgroup_threads] = {};
  ShimCollective act = nullptr;
  int arrived = 0;
};

/// The threads that have arrived in the current round of a named barrier.
struct NamedBarrier {
  unsigned arrived = 0, waiting = 0, threads = 0, rounds = 0;
};

struct Block {
  const ShimLaunch* launch = nullptr;
  ShimIndex index = {};
  std::size_t place = 0;  // among the blocks that run, and of its stacks
  std::size_t slot = 0;   // of its copies and matmuls; those of a resident grid share one, and wait only without any
  std::vector<Meeting> warps, warpgroups;
  std::array<NamedBarrier, shim_named_barriers> barriers;
  std::map<unsigned, NamedBarrier> parts;  // by first thread
  std::vector<unsigned char> memory;       // of a resident grid: dynamic and shared
  std::vector<Fiber> fibers;
  Fiber* current = nullptr;
  void* scheduler = nullptr;
  std::vector<unsigned char> shared;  // its shared memory, while another block runs
  bool moved = false;                 // since another block ran
};

Block*& running() {
  static Block* block = nullptr;
  return block;
}
Block& block() { return *running(); }

/// Returns the stacks of the block in a place.
std::vector<unsigned char*>& stacks(std::size_t place) {
  static std::map<std::size_t, std::vector<unsigned char*>> all;
  return all[place];
}

void give_way(State state) {
  Block& b = block();
  b.current->state = state;
  shim_switch(&b.current->position, b.scheduler);
}

/// Entry point of every fiber; never returns.
void enter() {
  block().launch->kernel(block().launch->arguments);
  give_way(State::finished);
}

/// Prepares a stack as shim_switch leaves it: six registers, then the return address, aligned as after a call.
void prepare(Fiber& fiber, unsigned char* stack) {
  auto* top = reinterpret_cast<std::uint64_t*>(stack + stack_bytes);
  *--top = 0;  // the return address of enter()
  *--top = reinterpret_cast<std::uint64_t>(&enter);
  top -= 6;
  std::fill_n(top, 6, 0);
  fiber.position = top;
  fiber.state = State::running;
}

void resume(Fiber& fiber) {
  Block& b = block();
  b.current = &fiber;
  threadIdx = fiber.index;
  shim_switch(&b.scheduler, fiber.position);
}

bool waits_for_blocks(const Fiber& fiber) { return fiber.state == State::waiting && fiber.for_blocks; }

/// Runs every thread until all have finished, none can proceed, or one waits for other blocks.
void run_threads(const std::vector<std::size_t>& order, std::mt19937_64& random) {
  std::vector<Fiber>& fibers = block().fibers;
  for (bool moved = true; moved;) {
    moved = false;
    for (const std::size_t i : order) {
      Fiber& fiber = fibers[i];
      if (fiber.state == State::waiting && fiber.over(fiber.what, fiber.number)) fiber.state = State::running;
      if (fiber.state != State::running) continue;
      resume(fiber);
      moved = block().moved = true;
    }
    if (!moved && shim_land_copies(random)) moved = block().moved = true;
    if (std::any_of(fibers.begin(), fibers.end(), waits_for_blocks)) return;
  }
}

void start_block(Block& b) {
  running() = &b;
  if (__start_cuda_shared) std::fill(__start_cuda_shared, __stop_cuda_shared, 0xff);
  const int* size = b.launch->block;
  for (int z = 0; z < size[2]; ++z)
    for (int y = 0; y < size[1]; ++y)
      for (int x = 0; x < size[0]; ++x)
        b.fibers.push_back({nullptr, {static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z)}});
  b.warps.assign(b.fibers.size() / shim_warp_threads + 1, {});
  b.warpgroups.assign(b.fibers.size() / shim_warpgroup_threads + 1, {});
  shim_start_copies(b.fibers.size());
  shim_start_products();
  if (b.launch->is_resident) b.memory.assign(most_dynamic_bytes, 0xff);
  std::vector<unsigned char*>& own = stacks(b.place);
  while (own.size() < b.fibers.size())
    own.push_back(static_cast<unsigned char*>(
        mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)));
  for (std::size_t i = 0; i < b.fibers.size(); ++i) prepare(b.fibers[i], own[i]);
}

enum class Progress { finished, waits, failed };

/// Runs the threads of the running block from barrier to barrier. Fails if some finish while others wait, or a warp
/// is incomplete.
Progress run_block(std::mt19937_64& random) {
  Block& b = block();
  blockIdx = b.index;
  std::vector<std::size_t> order(b.fibers.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (;;) {
    std::shuffle(order.begin(), order.end(), random);
    run_threads(order, random);
    const auto all = [&](State state) {
      return std::all_of(b.fibers.begin(), b.fibers.end(), [state](const Fiber& f) { return f.state == state; });
    };
    if (all(State::finished)) return Progress::finished;
    if (std::any_of(b.fibers.begin(), b.fibers.end(), waits_for_blocks)) return Progress::waits;
    if (!all(State::at_barrier)) return Progress::failed;
    for (Fiber& fiber : b.fibers) fiber.state = State::running;
  }
}

/// Makes a block the running one: exchanges the contents of shared memory. Blocks of a resident grid have their own.
void switch_to(Block& b) {
  if (running() == &b) return;
  if (b.launch->is_resident) {
    running() = &b;
    return;
  }
  if (running() && __start_cuda_shared) running()->shared.assign(__start_cuda_shared, __stop_cuda_shared);
  running() = &b;
  if (__start_cuda_shared) std::copy(b.shared.begin(), b.shared.end(), __start_cuda_shared);
}

/// The blocks of a launch that have started and not ended: one, a few once a block has waited for others, or all of a
/// resident grid.
class ResidentBlocks {
 public:
  ResidentBlocks(const ShimLaunch& launch, std::vector<ShimIndex> blocks, std::mt19937_64& random)
      : launch_(launch), blocks_(std::move(blocks)), random_(random) {
    running() = nullptr;
  }

  /// Returns 0, or 1 if a block fails or all of them wait for blocks that do not run.
  int run() {
    while (!blocks_.empty() || !resident_.empty()) {
      const std::size_t most = launch_.is_resident ? SIZE_MAX : in_turns_ ? shim_resident_blocks : 1;
      const bool none_moves =
          std::none_of(resident_.begin(), resident_.end(), [](const auto& b) { return b->moved; });
      if (resident_.size() < most && !blocks_.empty() && (launch_.is_resident || none_moves || random_() % 2 == 0)) {
        start();
      } else if (none_moves) {
        return 1;
      }
      const std::size_t i = resident_.size() == 1 ? 0 : random_() % resident_.size();
      switch_to(*resident_[i]);
      const Progress progress = advance();
      if (progress == Progress::failed) return 1;
      if (progress == Progress::finished) end(i);
    }
    return 0;
  }

 private:
  void start() {
    auto b = std::make_unique<Block>();
    b->launch = &launch_, b->index = blocks_.back(), b->moved = true;
    blocks_.pop_back();
    const auto taken = [&](std::size_t place) {
      return std::any_of(resident_.begin(), resident_.end(),
                         [place](const auto& other) { return other->place == place; });
    };
    while (taken(b->place)) ++b->place;
    b->slot = launch_.is_resident ? 0 : b->place;
    switch_to(*b);
    start_block(*b);
    resident_.push_back(std::move(b));
  }

  /// A block that has moved lets all others try again.
  Progress advance() {
    block().moved = false;
    const Progress progress = run_block(random_);
    if (progress == Progress::waits) in_turns_ = true;
    if (block().moved)
      for (const auto& b : resident_) b->moved = true;
    return progress;
  }

  void end(std::size_t i) {
    running() = nullptr;
    resident_.erase(resident_.begin() + static_cast<std::ptrdiff_t>(i));
    for (const auto& b : resident_) b->moved = true;
  }

  const ShimLaunch& launch_;
  std::vector<ShimIndex> blocks_;  // not started
  std::mt19937_64& random_;
  std::vector<std::unique_ptr<Block>> resident_;
  bool in_turns_ = false;
};

}  // namespace

void __syncthreads() { give_way(State::at_barrier); }

std::size_t shim_thread() { return static_cast<std::size_t>(block().current - block().fibers.data()); }

void shim_meet(ShimCollective act, void* own, std::size_t threads) {
  Block& b = block();
  const std::size_t first = shim_thread() / threads * threads;
  Meeting& meeting = (threads == shim_warp_threads ? b.warps : b.warpgroups)[first / threads];
  meeting.lanes[shim_thread() - first] = own;
  // A thread that enters another collective than the first one never leaves it.
  if (meeting.arrived == 0) meeting.act = act;
  if (meeting.act != act || ++meeting.arrived < static_cast<int>(threads)) return give_way(State::in_warp);
  meeting.arrived = 0;
  if (!act(meeting.lanes)) return give_way(State::in_warp);
  for (std::size_t lane = 0; lane < threads; ++lane) b.fibers[first + lane].state = State::running;
}

void shim_wait_until(ShimCondition over, const void* what, unsigned number) {
  Fiber& own = *block().current;
  own.over = over, own.what = what, own.number = number;
  if (!over(what, number)) give_way(State::waiting);
}

namespace {

void enter_barrier(NamedBarrier& own, unsigned threads, bool waits) {
  const unsigned round = own.rounds;
  if (own.arrived == 0) own.threads = threads;
  own.waiting += waits;
  if (own.threads != threads || (++own.arrived == threads && own.waiting == 0)) return give_way(State::in_warp);
  if (own.arrived == threads) own = {.rounds = round + 1};
  if (!waits) return;
  shim_wait_until(
      [](const void* all, unsigned before) { return static_cast<const NamedBarrier*>(all)->rounds != before; }, &own,
      round);
}

/// Waits for what another block does.
void wait_for_blocks(ShimCondition over, const void* what, unsigned number) {
  Fiber& own = *block().current;
  own.over = over, own.what = what, own.number = number, own.for_blocks = true;
  give_way(State::waiting);
  own.for_blocks = false;
}

}  // namespace

void shim_named_barrier(unsigned barrier, unsigned threads, bool waits) {
  enter_barrier(block().barriers.at(barrier), threads, waits);
}
void shim_part_barrier(unsigned first, unsigned threads) { enter_barrier(block().parts[first], threads, true); }

unsigned char* shim_dynamic_shared() { return block().memory.data(); }

void shim_prefetch(const void* line) { (void)*static_cast<const volatile unsigned char*>(line); }
unsigned shim_grid_word(const unsigned* word) { return *word; }
void shim_grid_arrive(unsigned* word, unsigned amount) { *word += amount; }
void shim_grid_wait(const unsigned* word, unsigned before) {
  wait_for_blocks([](const void* at, unsigned old) { return ((*static_cast<const unsigned*>(at) ^ old) >> 31) != 0; },
                  word, before);
}
void shim_await_written(ShimCondition over, const void* what) {
  if (!over(what, 0)) wait_for_blocks(over, what, 0);
}
void shim_wrote_awaited() {}

void __syncwarp() {
  shim_meet([](void* const*) { return true; }, nullptr);
}

std::size_t shim_slot() { return block().slot; }

void shim_wait_blocks(const int* passed, int rank) {
  wait_for_blocks(
      [](const void* what, unsigned number) { return *static_cast<const int*>(what) == static_cast<int>(number); },
      passed, static_cast<unsigned>(rank));
}
void shim_pass_block(int* passed) { ++*passed; }

int shim_run(const ShimLaunch& launch) {
  std::mt19937_64 random(launch.seed);
  const auto index = [](const auto* n) {
    return ShimIndex{static_cast<unsigned>(n[0]), static_cast<unsigned>(n[1]), static_cast<unsigned>(n[2])};
  };
  blockDim = index(launch.block), gridDim = index(launch.grid);
  std::vector<ShimIndex> blocks;
  for (long long z = 0; z < launch.grid[2]; ++z)
    for (long long y = 0; y < launch.grid[1]; ++y)
      for (long long x = 0; x < launch.grid[0]; ++x)
        blocks.push_back({static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z)});
  std::shuffle(blocks.begin(), blocks.end(), random);
  return ResidentBlocks(launch, std::move(blocks), random).run();
}
