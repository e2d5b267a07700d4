#include <linux/futex.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <limits>
#include <map>
#include <memory>
#include <thread>
#include <utility>
#include <vector>

#include "tests/cuda/shim/block.h"
#include "tests/cuda/shim/launch.h"

/// Every thread of a block is an OS thread, for ThreadSanitizer. This file is built without instrumentation and waits
/// without functions that ThreadSanitizer intercepts, so ThreadSanitizer knows only the ordering that is reported
/// here. Blocks run sequentially, but that does not order their accesses; those of a resident grid run at the same
/// time.

extern "C" {
void __tsan_destroy_fiber(void* fiber);
void __tsan_acquire(void* position);
void __tsan_release(void* position);
void __tsan_read_range(void* p, unsigned long bytes);
void __tsan_write_range(void* p, unsigned long bytes);
void* __tsan_create_fiber(unsigned flags);
void* __tsan_get_current_fiber();
void __tsan_switch_to_fiber(void* fiber, unsigned flags);
void AnnotateIgnoreReadsBegin(const char* file, int line);
void AnnotateIgnoreReadsEnd(const char* file, int line);
void AnnotateIgnoreWritesBegin(const char* file, int line);
void AnnotateIgnoreWritesEnd(const char* file, int line);
extern unsigned char __start_cuda_shared[], __stop_cuda_shared[];
}

// Shared memory consists of whole pages: the section starts on a page, and this variable ends it.
constexpr std::size_t page = 4096, most_dynamic_bytes = 1 << 18;
__attribute__((section("cuda_shared"), aligned(page))) unsigned char shim_last_page[page];

__thread ShimIndex threadIdx, blockIdx;
ShimIndex blockDim, gridDim;

namespace {

constexpr unsigned no_order = 1;  // a switch does not order accesses

__thread void* agent = nullptr;

/// While alive, ThreadSanitizer attributes this thread's actions to the agent that makes its copies. With flags 0,
/// everything that the thread did before happens before them.
class AsAgent {
 public:
  explicit AsAgent(unsigned flags) : own_(__tsan_get_current_fiber()) {
    if (!agent) agent = __tsan_create_fiber(0);
    __tsan_switch_to_fiber(agent, flags);
  }
  AsAgent(const AsAgent&) = delete;
  AsAgent& operator=(const AsAgent&) = delete;
  ~AsAgent() { __tsan_switch_to_fiber(own_, no_order); }

 private:
  void* own_;
};

}  // namespace

void shim_reads(const void* p, std::size_t bytes) {
  if (p) __tsan_read_range(const_cast<void*>(p), bytes);
}
void shim_writes(void* p, std::size_t bytes) { __tsan_write_range(p, bytes); }

namespace {

void pass_on(const void* position) { __tsan_release(const_cast<void*>(position)); }
void take_up(const void* position) { __tsan_acquire(const_cast<void*>(position)); }

std::size_t blocks_started = 0;
bool is_grid_resident = false;

/// Returns a position that other blocks do not have, in memory that is never accessed: a barrier orders the threads
/// of one block, and not the threads of the next block, which has the same barriers. Blocks of a resident grid have
/// their own.
const void* of_block(const void* position) {
  if (is_grid_resident) return position;
  constexpr std::size_t block_bytes = std::size_t{1} << 20, blocks = 256;
  static const auto* const first = static_cast<const unsigned char*>(
      mmap(nullptr, block_bytes * blocks, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  return first + blocks_started % blocks * block_bytes + reinterpret_cast<std::size_t>(position) % block_bytes;
}

}  // namespace

void shim_pass_on(const void* position) { pass_on(of_block(position)); }
void shim_take_up(const void* position) { take_up(of_block(position)); }

void shim_copies(void* to, const void* from, std::size_t bytes_to, std::size_t bytes_from) {
  const AsAgent agent(0);
  shim_reads(from, bytes_from);
  shim_writes(to, bytes_to);
}
void shim_by_agent(void (*tells)(const void*), const void* what) {
  const AsAgent agent(0);
  tells(what);
}
void shim_pass_on_copies(const void* position) {
  const AsAgent agent(no_order);
  shim_pass_on(position);
}

namespace {

[[noreturn]] void fail(const char* what) {
  std::fprintf(stderr, "%s\n", what);
  std::_Exit(2);
}

/// A number whose changes threads can wait for. (The wait of std::atomic spins with system calls first.)
class Counter {
 public:
  unsigned now() const { return value_.load(); }
  void wait_while(unsigned value) {
    while (value_.load() == value) syscall(SYS_futex, &value_, FUTEX_WAIT_PRIVATE, value, nullptr);
  }
  void advance() {
    value_.fetch_add(1);
    wake();
  }
  void set(unsigned value) {
    value_.store(value);
    wake();
  }

 private:
  void wake() { syscall(SYS_futex, &value_, FUTEX_WAKE_PRIVATE, std::numeric_limits<int>::max()); }

  std::atomic<unsigned> value_ = 0;
};

/// A number of threads that meet repeatedly; the last one to arrive acts for all.
class Meeting {
 public:
  explicit Meeting(std::size_t threads) : lanes_(threads), acts_(threads) {}

  /// For member `lane`; does not order accesses.
  void meet(std::size_t lane, ShimCollective act = nullptr, void* own = nullptr) {
    lanes_[lane] = own, acts_[lane] = act;
    const unsigned round = rounds_.now();
    if (arrived_.fetch_add(1) + 1 < lanes_.size()) return rounds_.wait_while(round);
    if (std::count(acts_.begin(), acts_.end(), act) != std::ssize(acts_)) fail("threads meet for different things");
    // The last thread acts for all members. ThreadSanitizer must not attribute these accesses to this thread.
    AnnotateIgnoreReadsBegin(__FILE__, __LINE__);
    AnnotateIgnoreWritesBegin(__FILE__, __LINE__);
    if (act && !act(lanes_.data())) fail("threads ask for what is not there");
    AnnotateIgnoreWritesEnd(__FILE__, __LINE__);
    AnnotateIgnoreReadsEnd(__FILE__, __LINE__);
    arrived_ = 0;
    rounds_.advance();
  }

  /// Orders everything that any member did before it before everything that any member does after it. Rounds
  /// alternate between two positions: no member passes on in the round after the next before all have taken up in
  /// this one.
  void synchronise(std::size_t lane) {
    const void* const position = &positions_[rounds_.now() % 2];
    shim_pass_on(position);
    meet(lane);
    shim_take_up(position);
  }

 private:
  std::vector<void*> lanes_;
  std::vector<ShimCollective> acts_;
  std::atomic<std::size_t> arrived_ = 0;
  Counter rounds_;
  char positions_[2] = {};
};

/// Rounds of threads of which some only arrive.
class NamedBarrier {
 public:
  void enter(std::size_t threads, bool waits) {
    const unsigned round = rounds_.now();
    waiting_ += waits;
    if (arrived_.fetch_add(1) + 1 == threads) {
      if (waiting_ == 0) fail("no thread waits at a barrier");
      arrived_ = 0, waiting_ = 0;
      return rounds_.advance();
    }
    if (waits) rounds_.wait_while(round);
  }
  /// For the next block: the last turn that was passed is not taken.
  void reset() { arrived_ = 0, waiting_ = 0; }

 private:
  std::atomic<std::size_t> arrived_ = 0, waiting_ = 0;
  Counter rounds_;
};

struct Block {
  ShimIndex index = {};
  std::size_t threads;
  Meeting whole{threads};
  std::vector<std::unique_ptr<Meeting>> warps, warpgroups;
  std::vector<std::unique_ptr<Meeting>> first;  // first of the warps, by warp index
  std::array<NamedBarrier, shim_named_barriers> barriers;
  std::map<std::pair<unsigned, unsigned>, Meeting> parts;  // by first thread and number of threads
  std::atomic<bool> parts_are_locked = false;
  std::vector<unsigned char> memory;  // dynamic and shared
  std::vector<std::size_t> numbers;   // thread indices for the workers
  bool orders_blocks = false;         // blocks wait for each other
  Counter wakes;

  explicit Block(std::size_t count) : threads(count), numbers(threads) {
    for (std::size_t i = 0; i < threads; ++i) numbers[i] = i;
    const auto meetings = [](auto& all, std::size_t several, auto size) {
      for (std::size_t i = 0; i < several; ++i) all.push_back(std::make_unique<Meeting>(size(i)));
    };
    meetings(warps, threads / shim_warp_threads, [](std::size_t) { return shim_warp_threads; });
    meetings(warpgroups, threads / shim_warpgroup_threads, [](std::size_t) { return shim_warpgroup_threads; });
    meetings(first, warps.size() + 1, [](std::size_t i) { return i * shim_warp_threads; });
  }

  /// The lock is one that ThreadSanitizer does not know: it orders nothing.
  Meeting& part(unsigned from, unsigned count) {
    while (parts_are_locked.exchange(true)) syscall(SYS_sched_yield);
    Meeting& found = parts.try_emplace({from, count}, count).first->second;
    parts_are_locked = false;
    return found;
  }
};

/// A launch and the blocks that run at the same time: all of a resident grid, or one.
struct Running {
  ShimLaunch launch;
  std::vector<std::unique_ptr<Block>> blocks{};
  std::size_t workers = 0;
  std::unique_ptr<Meeting> with_launcher{};

  Running(const ShimLaunch& l, std::size_t threads, std::size_t count)
      : launch(l), workers(threads * count), with_launcher(std::make_unique<Meeting>(workers + 1)) {
    for (std::size_t i = 0; i < count; ++i) blocks.push_back(std::make_unique<Block>(threads));
  }
};

Running* running = nullptr;
__thread Block* block = nullptr;
__thread std::size_t own_number;

/// Remaps shared memory, because ThreadSanitizer treats mapped memory as untouched, and poisons it.
void renew_shared_memory() {
  const auto bytes = static_cast<std::size_t>(__stop_cuda_shared - __start_cuda_shared);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED;
  if (bytes % page != 0 || mmap(__start_cuda_shared, bytes, PROT_READ | PROT_WRITE, flags, -1, 0) == MAP_FAILED)
    fail("shared memory is not whole pages");
  std::fill_n(__start_cuda_shared, bytes, 0xff);
  pass_on(running);
}

/// Runs one thread of the present block, or of one of a resident grid, ordered before the next launch.
void work_on_block(Running& now, std::size_t worker) {
  const std::size_t threads = now.workers / now.blocks.size();
  block = now.blocks[worker / threads].get();
  now.with_launcher->meet(worker);
  take_up(&now);
  own_number = block->numbers[worker % threads];
  blockIdx = block->index;
  shim_start_copies(block->threads);
  if (own_number % shim_warpgroup_threads == 0) shim_start_products();
  const auto n = static_cast<unsigned>(own_number);
  const auto x = static_cast<unsigned>(now.launch.block[0]), y = static_cast<unsigned>(now.launch.block[1]);
  threadIdx = {n % x, n / x % y, n / x / y};
  now.launch.kernel(now.launch.arguments);
  shim_land_own_copies();
  pass_on(&now.workers);
  now.with_launcher->meet(worker);
}

/// Runs one thread of every block of a launch. If blocks wait for each other, of the first one only: the accesses of
/// one OS thread in a block would happen before those of the next block, after its first barrier.
void work_on_launch(std::size_t worker) {
  Running& now = *running;  // the next launch may begin before the loop ends
  const long long* const grid = now.launch.grid;
  const long long turns = now.launch.is_resident ? 1 : grid[0] * grid[1] * grid[2];
  for (long long i = 0; i < turns && !now.blocks[0]->orders_blocks; ++i) work_on_block(now, worker);
}

/// Starts OS threads for one block.
void start_threads(Running& now) {
  const auto work = [&now](std::size_t worker) {
    work_on_block(now, worker);
    if (agent) __tsan_destroy_fiber(std::exchange(agent, nullptr));
  };
  for (std::size_t i = 0; i < now.workers; ++i) std::thread(work, i).detach();
}

constexpr unsigned most_threads = 2048;
Counter launches;  // launch number times most_threads, plus the number of workers of the latest launch

[[noreturn]] void work(std::size_t worker, unsigned seen) {
  for (;;) {
    launches.wait_while(seen);
    seen = launches.now();
    if (worker < seen % most_threads) work_on_launch(worker);
  }
}

/// OS threads are expensive to start, so launches share them.
void want_workers(std::size_t count) {
  static std::size_t workers = 0;
  for (; workers < count; ++workers) std::thread(work, workers, launches.now()).detach();
}

}  // namespace

std::size_t shim_thread() { return own_number; }

void shim_meet(ShimCollective act, void* own, std::size_t threads) {
  auto& meetings = threads == shim_warp_threads ? block->warps : block->warpgroups;
  meetings.at(own_number / threads)->meet(own_number % threads, act, own);
}

void __syncthreads() { block->whole.synchronise(own_number); }
void __syncwarp() { block->warps.at(own_number / shim_warp_threads)->synchronise(own_number % shim_warp_threads); }
/// Barrier 1 is that of the consumers, the first threads, and barriers from 8 on are those of one warpgroup: they
/// order accesses. The other ones are for turns of warpgroups, which order nothing that a kernel relies on:
/// ThreadSanitizer is not notified of them.
void shim_named_barrier(unsigned barrier, unsigned threads, bool waits) {
  if (barrier == 1) return block->first.at(threads / shim_warp_threads)->synchronise(own_number);
  if (barrier >= 8) return block->warpgroups.at(barrier - 8)->synchronise(own_number % shim_warpgroup_threads);
  block->barriers.at(barrier).enter(threads, waits);
}

void shim_wake() { block->wakes.advance(); }

void shim_wait_until(ShimCondition over, const void* what, unsigned number) {
  for (;;) {
    const unsigned wakes = block->wakes.now();
    if (over(what, number)) return;
    if (!shim_land_own_copies()) block->wakes.wait_while(wakes);
  }
}

void shim_part_barrier(unsigned first, unsigned threads) {
  block->part(first, threads).synchronise(own_number - first);
}
unsigned char* shim_dynamic_shared() { return block->memory.data(); }

namespace {
Counter grid_wakes;  // changes at each arrival at a grid barrier
}  // namespace

void shim_prefetch(const void*) {}  // orders nothing, and reads no value
unsigned shim_grid_word(const unsigned* word) {
  const unsigned value = std::atomic_ref(*const_cast<unsigned*>(word)).load();
  take_up(word);
  return value;
}
void shim_grid_arrive(unsigned* word, unsigned amount) {
  pass_on(word);
  std::atomic_ref(*word).fetch_add(amount);
  grid_wakes.advance();
}
void shim_grid_wait(const unsigned* word, unsigned before) {
  for (;;) {
    const unsigned wakes = grid_wakes.now();
    if (((shim_grid_word(word) ^ before) >> 31) != 0) return;
    grid_wakes.wait_while(wakes);
  }
}

/// The element itself is all that the waiting thread may use: ThreadSanitizer is not notified.
void shim_await_written(ShimCondition over, const void* what) {
  for (;;) {
    const unsigned wakes = grid_wakes.now();
    if (over(what, 0)) return;
    grid_wakes.wait_while(wakes);
  }
}
void shim_wrote_awaited() { grid_wakes.advance(); }

/// Blocks run one after the other, so a wait for an earlier one is over.
void shim_wait_blocks(const int* passed, int rank) {
  block->orders_blocks = true;
  if (__atomic_load_n(passed, __ATOMIC_RELAXED) != rank) fail("a block waits for one that has not started");
  take_up(passed);
}
void shim_pass_block(int* passed) {
  block->orders_blocks = true;
  pass_on(passed);
  __atomic_fetch_add(passed, 1, __ATOMIC_RELAXED);
}

int shim_run(const ShimLaunch& launch) {
  static std::vector<std::unique_ptr<Running>> all;  // threads may still be leaving the meetings of earlier blocks
  const auto index = [](const auto* n) {
    return ShimIndex{static_cast<unsigned>(n[0]), static_cast<unsigned>(n[1]), static_cast<unsigned>(n[2])};
  };
  blockDim = index(launch.block), gridDim = index(launch.grid);
  const auto blocks = static_cast<std::size_t>(launch.grid[0] * launch.grid[1] * launch.grid[2]);
  const std::size_t threads = std::size_t{blockDim.x} * blockDim.y * blockDim.z;
  Running& own = *all.emplace_back(std::make_unique<Running>(launch, threads, launch.is_resident ? blocks : 1));
  running = &own;
  is_grid_resident = launch.is_resident;
  std::mt19937_64 random(launch.seed);
  std::vector<long long> order(blocks);
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = static_cast<long long>(i);
  std::shuffle(order.begin(), order.end(), random);
  want_workers(own.workers);
  if (own.workers >= most_threads) fail("too many threads");
  launches.set((launches.now() / most_threads + 1) * most_threads + static_cast<unsigned>(own.workers));
  for (std::size_t first = 0; first < order.size(); first += own.blocks.size()) {
    for (std::size_t b = 0; b < own.blocks.size(); ++b) {
      Block& its = *own.blocks[b];
      const long long x = launch.grid[0], y = launch.grid[1], i = order[first + b];
      its.index = {static_cast<unsigned>(i % x), static_cast<unsigned>(i / x % y), static_cast<unsigned>(i / x / y)};
      std::shuffle(its.numbers.begin(), its.numbers.end(), random);
      if (launch.is_resident) its.memory.assign(most_dynamic_bytes, 0xff);
      for (NamedBarrier& barrier : its.barriers) barrier.reset();
    }
    ++blocks_started;
    renew_shared_memory();
    if (own.blocks[0]->orders_blocks) start_threads(own);
    own.with_launcher->meet(own.workers);
    own.with_launcher->meet(own.workers);
  }
  take_up(&own.workers);
  return 0;
}
