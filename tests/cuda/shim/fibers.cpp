#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <random>
#include <vector>

#include "tests/cuda/shim/block.h"
#include "tests/cuda/shim/launch.h"

/// All threads of a block are fibers of one OS thread, run in random order.

ShimIndex threadIdx, blockIdx;

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

constexpr std::size_t stack_bytes = 128 * 1024;

enum class State { at_barrier, in_warp, waiting, running, finished };

struct Fiber {
  void* position = nullptr;
  ShimIndex index = {};
  State state = State::finished;
  ShimCondition over = nullptr;  // condition of a waiting fiber
  const void* what = nullptr;
  unsigned number = 0;
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
  std::vector<Meeting> warps, warpgroups;
  std::array<NamedBarrier, shim_named_barriers> barriers;
  std::vector<Fiber> fibers;
  std::vector<unsigned char*> stacks;
  Fiber* current = nullptr;
  void* scheduler = nullptr;
};

Block& block() {
  static Block one;
  return one;
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

/// Runs every thread until all have finished or none can proceed.
void run_threads(const std::vector<std::size_t>& order, std::mt19937_64& random) {
  for (bool moved = true; moved;) {
    moved = false;
    for (const std::size_t i : order) {
      Fiber& fiber = block().fibers[i];
      if (fiber.state == State::waiting && fiber.over(fiber.what, fiber.number)) fiber.state = State::running;
      if (fiber.state != State::running) continue;
      resume(fiber);
      moved = true;
    }
    if (!moved) moved = shim_land_copies(random);
  }
}

/// Runs all threads from barrier to barrier. Returns 1 if some finish while others wait, or a warp is incomplete.
int run_block(std::mt19937_64& random) {
  Block& b = block();
  if (__start_cuda_shared) std::fill(__start_cuda_shared, __stop_cuda_shared, 0xff);
  const int* size = b.launch->block;
  b.fibers.clear();
  for (int z = 0; z < size[2]; ++z)
    for (int y = 0; y < size[1]; ++y)
      for (int x = 0; x < size[0]; ++x)
        b.fibers.push_back({nullptr, {static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z)}});
  b.warps.assign(b.fibers.size() / shim_warp_threads + 1, {});
  b.warpgroups.assign(b.fibers.size() / shim_warpgroup_threads + 1, {});
  shim_start_copies(b.fibers.size());
  shim_start_products();
  b.barriers = {};
  while (b.stacks.size() < b.fibers.size())
    b.stacks.push_back(static_cast<unsigned char*>(
        mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)));
  for (std::size_t i = 0; i < b.fibers.size(); ++i) prepare(b.fibers[i], b.stacks[i]);
  std::vector<std::size_t> order(b.fibers.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  for (;;) {
    std::shuffle(order.begin(), order.end(), random);
    run_threads(order, random);
    const auto all = [&](State state) {
      return std::all_of(b.fibers.begin(), b.fibers.end(), [state](const Fiber& f) { return f.state == state; });
    };
    if (all(State::finished)) return 0;
    if (!all(State::at_barrier)) return 1;
    for (Fiber& fiber : b.fibers) fiber.state = State::running;
  }
}

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

void shim_named_barrier(unsigned barrier, unsigned threads, bool waits) {
  NamedBarrier& own = block().barriers.at(barrier);
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

void __syncwarp() {
  shim_meet([](void* const*) { return true; }, nullptr);
}

int shim_run(const ShimLaunch& launch) {
  block().launch = &launch;
  std::mt19937_64 random(launch.seed);
  std::vector<ShimIndex> blocks;
  for (long long z = 0; z < launch.grid[2]; ++z)
    for (long long y = 0; y < launch.grid[1]; ++y)
      for (long long x = 0; x < launch.grid[0]; ++x)
        blocks.push_back({static_cast<unsigned>(x), static_cast<unsigned>(y), static_cast<unsigned>(z)});
  std::shuffle(blocks.begin(), blocks.end(), random);
  for (const ShimIndex& index : blocks) {
    blockIdx = index;
    if (run_block(random) != 0) return 1;
  }
  return 0;
}
