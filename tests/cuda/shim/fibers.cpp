#include <sys/mman.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <map>
#include <random>
#include <vector>

#include "tests/cuda/shim/block.h"
#include "tests/cuda/shim/launch.h"

/// All threads of a block are fibers of one OS thread, run in random order. Blocks run one after the other; those of
/// a resident grid take turns at its barriers.

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
  std::vector<Meeting> warps, warpgroups;
  std::array<NamedBarrier, shim_named_barriers> barriers;
  std::map<unsigned, NamedBarrier> parts;  // by first thread
  std::vector<unsigned char> memory;       // dynamic and shared
  std::vector<Fiber> fibers;
  std::vector<unsigned char*> stacks;
  Fiber* current = nullptr;
  void* scheduler = nullptr;
  std::size_t resumed = 0;  // number of times that a thread continued
};

Block* running = nullptr;
Block& block() { return *running; }

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
  ++b.resumed;
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

void start_block(Block& b, const ShimLaunch& launch, ShimIndex index) {
  running = &b;
  b.launch = &launch;
  b.index = index;
  if (__start_cuda_shared) std::fill(__start_cuda_shared, __stop_cuda_shared, 0xff);
  const int* size = launch.block;
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
  b.parts.clear();
  if (launch.is_resident) b.memory.assign(most_dynamic_bytes, 0xff);
  while (b.stacks.size() < b.fibers.size())
    b.stacks.push_back(static_cast<unsigned char*>(
        mmap(nullptr, stack_bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0)));
  for (std::size_t i = 0; i < b.fibers.size(); ++i) prepare(b.fibers[i], b.stacks[i]);
}

bool has_flipped(const void* word, unsigned before) {
  return ((*static_cast<const unsigned*>(word) ^ before) >> 31) != 0;
}

enum class Progress { finished, waits_for_blocks, stuck };

/// Runs all threads from barrier to barrier, until they have finished or wait for other blocks. They are stuck if
/// some finish while others wait, or a warp is incomplete.
Progress advance_block(Block& b, std::mt19937_64& random) {
  running = &b;
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
    if (!all(State::at_barrier)) {
      const bool waits = std::any_of(b.fibers.begin(), b.fibers.end(), [](const Fiber& f) {
        return f.state == State::waiting && f.over == has_flipped;
      });
      return waits ? Progress::waits_for_blocks : Progress::stuck;
    }
    for (Fiber& fiber : b.fibers) fiber.state = State::running;
  }
}

/// Runs blocks that wait for each other, in random order. Returns 1 if none can continue.
int run_resident(const ShimLaunch& launch, const std::vector<ShimIndex>& indices, std::mt19937_64& random) {
  static std::vector<Block> blocks;
  if (blocks.size() < indices.size()) blocks.resize(indices.size());
  std::vector<Block*> left;
  for (std::size_t i = 0; i < indices.size(); ++i) {
    start_block(blocks[i], launch, indices[i]);
    left.push_back(&blocks[i]);
  }
  while (!left.empty()) {
    std::shuffle(left.begin(), left.end(), random);
    std::vector<Block*> waiting;
    bool moved = false;
    for (Block* b : left) {
      const std::size_t before = b->resumed;
      const Progress progress = advance_block(*b, random);
      if (progress == Progress::stuck) return 1;
      if (progress == Progress::waits_for_blocks) waiting.push_back(b);
      moved = moved || b->resumed != before;
    }
    if (!moved) return 1;
    left = waiting;
  }
  return 0;
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

}  // namespace

void shim_named_barrier(unsigned barrier, unsigned threads, bool waits) {
  enter_barrier(block().barriers.at(barrier), threads, waits);
}
void shim_part_barrier(unsigned first, unsigned threads) { enter_barrier(block().parts[first], threads, true); }

unsigned char* shim_dynamic_shared() { return block().memory.data(); }

void shim_prefetch(const void* line) { (void)*static_cast<const volatile unsigned char*>(line); }
unsigned shim_grid_word(const unsigned* word) { return *word; }
void shim_grid_arrive(unsigned* word, unsigned amount) { *word += amount; }
void shim_grid_wait(const unsigned* word, unsigned before) { shim_wait_until(has_flipped, word, before); }

void __syncwarp() {
  shim_meet([](void* const*) { return true; }, nullptr);
}

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
  if (launch.is_resident) return run_resident(launch, blocks, random);
  std::shuffle(blocks.begin(), blocks.end(), random);
  static Block one;
  for (const ShimIndex& own : blocks) {
    start_block(one, launch, own);
    if (advance_block(one, random) != Progress::finished) return 1;
  }
  return 0;
}
