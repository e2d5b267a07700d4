#include <algorithm>
#include <atomic>
#include <bit>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <iterator>
#include <limits>

#include "tests/cuda/shim/block.h"
#include "tests/cuda/shim/cuda_shim.h"

/// Barriers of a subset of threads ("mbarrier" in the PTX manual) and the matmul of a warpgroup. Its operands are in
/// the canonical layouts with the 128-byte swizzle, found through their descriptors; its sums are in fragments
/// ("Matrix fragments for wgmma.mma_async.m64nNk16").

extern "C" __attribute__((weak)) unsigned char __start_cuda_shared[], __stop_cuda_shared[];

namespace {

struct Barrier {
  std::uint16_t arrivals, missing;  // per phase
  std::int16_t chunks;              // 16-byte chunks that have not arrived
  std::uint16_t phase;
};
static_assert(sizeof(Barrier) == sizeof(unsigned long long));

using Word = std::atomic_ref<unsigned long long>;

unsigned long long& word(const void* at) { return *static_cast<unsigned long long*>(const_cast<void*>(at)); }

/// Poison is not a barrier: no thread continues.
bool is_over(const void* at, unsigned parity) {
  const auto barrier = std::bit_cast<Barrier>(Word(word(at)).load());
  return barrier.arrivals != 0xffff && (barrier.phase & 1) != parity;
}

/// Returns the position that orders the accesses before and after a phase. Consecutive phases have different
/// positions.
const void* place_of_phase(const void* barrier, unsigned phase) {
  return static_cast<const unsigned char*>(barrier) + (phase & 1);
}

struct Warpgroup;

struct Wgmma {
  float (*value)(unsigned short);
  float* sum;
  int lanes;  // half the number of columns
  unsigned long long a, b;
  const unsigned* held;
  bool a_transposed, b_transposed, starts;
  Warpgroup* group;
};

/// Accumulators of all threads, saved here until the last pending matmul completes. Unused without pending matmuls.
struct Kept {
  float* sums[shim_warpgroup_threads];
  float values[shim_warpgroup_threads][64];
  int products = 0;
};
struct Product {
  Wgmma wgmma;
  Kept* to;
  std::size_t group;
  unsigned held[shim_warpgroup_threads][4];  // the left operand, if it is in registers
};

/// A warpgroup's pending matmuls in order, and the number of committed groups. Nothing is allocated: ThreadSanitizer
/// would see one thread allocate memory and another one free it.
struct Warpgroup {
  Product products[64];
  Kept kept[8];
  std::size_t first = 0, last = 0, commits = 0;  // counted from the start of the block
  char positions[8][shim_warpgroup_threads];     // positions at which the reads of the latest groups are passed on,
                                                 // per thread

  Product& product(std::size_t number) { return products[number % std::size(products)]; }
  const void* position(std::size_t group) const {
    return &positions[group % std::size(positions)][shim_thread() % shim_warpgroup_threads];
  }
};

Warpgroup all_warpgroups[shim_resident_blocks][1024 / shim_warpgroup_threads];

Warpgroup& own_warpgroup() { return all_warpgroups[shim_slot()][shim_thread() / shim_warpgroup_threads]; }

unsigned field(unsigned long long descriptor, int bit) {
  return static_cast<unsigned>(descriptor >> bit & 0x3fff) * 16;
}

/// Whether a descriptor has the 128-byte swizzle and starts at a multiple of 1024, or within its first 128 bytes.
bool is_known(unsigned long long d) { return d >> 62 == 1 && (d >> 49 & 7) == 0 && field(d, 0) % 1024 < 128; }

/// Returns element (row, k) of an operand; null if it is outside shared memory.
const std::uint16_t* element(unsigned long long d, bool transposed, int row, int k) {
  const unsigned leading = field(d, 16), stride = field(d, 32);
  const unsigned r = static_cast<unsigned>(row), c = static_cast<unsigned>(k);
  unsigned at = field(d, 0) + (transposed ? r / 64 * leading + c / 8 * stride + c % 8 * 128 + r % 64 * 2
                                          : r / 8 * stride + r % 8 * 128 + c * 2);
  at ^= (at >> 7 & 7) << 4;
  if (at + 2 > static_cast<std::size_t>(__stop_cuda_shared - __start_cuda_shared)) return nullptr;
  return reinterpret_cast<const std::uint16_t*>(__start_cuda_shared + at);
}

bool read_rows(const Wgmma& w, unsigned long long d, bool transposed, int rows, float (*into)[16]) {
  for (int row = 0; row < rows; ++row)
    for (int k = 0; k < 16; ++k) {
      const std::uint16_t* at = element(d, transposed, row, k);
      if (!at) return false;
      into[row][k] = w.value(*at);
    }
  return true;
}

/// Reports the reads of a warp, divided among its threads: 16 rows of the left operand and all of the right one.
void tell_reads(const void* what) {
  const Wgmma& w = *static_cast<const Wgmma*>(what);
  const int warp = static_cast<int>(shim_thread() % shim_warpgroup_threads / shim_warp_threads);
  const int lane = static_cast<int>(shim_thread() % shim_warp_threads);
  for (int i = lane; !w.held && i < 16 * 16; i += 32)
    shim_reads(element(w.a, w.a_transposed, warp * 16 + i / 16, i % 16), 2);
  for (int i = lane; i < 2 * w.lanes * 16; i += 32) shim_reads(element(w.b, w.b_transposed, i / 16, i % 16), 2);
}

/// Returns the saved accumulators of the given threads. Poisons them unless a pending matmul already uses them.
Kept* keep(Warpgroup& group, void* const* lanes) {
  const auto sums_of = [&](std::size_t t) { return static_cast<const Wgmma*>(lanes[t])->sum; };
  const int count = static_cast<const Wgmma*>(lanes[0])->lanes;
  Kept* free = nullptr;
  for (Kept& kept : group.kept) {
    if (kept.products > 0 && kept.sums[0] == sums_of(0)) return &kept;
    if (kept.products == 0) free = &kept;
  }
  if (!free) return nullptr;
  for (std::size_t t = 0; t < shim_warpgroup_threads; ++t) {
    free->sums[t] = sums_of(t);
    for (int i = 0; i < count; ++i) {
      free->values[t][i] = free->sums[t][i];
      free->sums[t][i] = std::numeric_limits<float>::quiet_NaN();
    }
  }
  return free;
}

bool start(void* const* lanes) {
  const Wgmma& w = *static_cast<const Wgmma*>(lanes[0]);
  Warpgroup& group = *w.group;
  for (std::size_t t = 0; t < shim_warpgroup_threads; ++t)
    if (const auto& other = *static_cast<const Wgmma*>(lanes[t]); other.a != w.a || other.b != w.b) return false;
  Kept* const to = keep(group, lanes);
  if ((!w.held && !is_known(w.a)) || !is_known(w.b) || !to || group.last - group.first == std::size(group.products))
    return false;
  ++to->products;
  Product& product = group.product(group.last++);
  product.wgmma = w, product.to = to, product.group = group.commits;
  for (std::size_t t = 0; w.held && t < shim_warpgroup_threads; ++t)
    std::copy_n(static_cast<const Wgmma*>(lanes[t])->held, 4, product.held[t]);
  return true;
}

/// Register r of a thread holds two neighbours k: of row t / 4 of its warp, of the row 8 below, and the same two rows
/// for k from 8 on.
void read_held(const Product& product, float (*a)[16]) {
  for (int t = 0; t < 128; ++t)
    for (int i = 0; i < 8; ++i) {
      const int r = i / 2, row = t / 32 * 16 + r % 2 * 8 + t % 32 / 4, k = r / 2 * 8 + t % 4 * 2 + i % 2;
      a[row][k] = product.wgmma.value(static_cast<unsigned short>(product.held[t][r] >> 16 * (i % 2)));
    }
}

bool multiply(const Product& product) {
  const Wgmma& w = product.wgmma;
  Kept& to = *product.to;
  float a[64][16], b[128][16];
  if (w.held)
    read_held(product, a);
  else if (!read_rows(w, w.a, w.a_transposed, 64, a))
    return false;
  if (!read_rows(w, w.b, w.b_transposed, 2 * w.lanes, b)) return false;
  --to.products;
  for (int t = 0; t < 128; ++t)
    for (int i = 0; i < w.lanes; ++i) {
      const int row = t / 32 * 16 + i % 4 / 2 * 8 + t % 32 / 4, column = i / 4 * 8 + t % 4 * 2 + i % 2;
      float& sum = to.values[t][i];
      if (w.starts) sum = 0;
      for (int k = 0; k < 16; ++k) sum = fmaf(a[row][k], b[column][k], sum);
      if (to.products == 0) to.sums[t][i] = sum;
    }
  return true;
}

bool commit(void* const* lanes) {
  ++static_cast<Warpgroup*>(lanes[0])->commits;
  return true;
}

struct Wait {
  Warpgroup* group;
  std::size_t done;  // number of groups
};

/// Runs matmuls as late as possible, at the wait.
bool wait(void* const* lanes) {
  const auto [group, done] = *static_cast<const Wait*>(lanes[0]);
  for (; group->first != group->last && group->product(group->first).group < done; ++group->first)
    if (!multiply(group->product(group->first))) return false;
  return true;
}

}  // namespace

unsigned shim_shared_address(const void* p) {
  return static_cast<unsigned>(static_cast<const unsigned char*>(p) - __start_cuda_shared);
}

void shim_init_barrier(unsigned long long* barrier, unsigned arrivals) {
  shim_writes(barrier, sizeof *barrier);
  const Barrier fresh{static_cast<std::uint16_t>(arrivals), static_cast<std::uint16_t>(arrivals), 0, 0};
  Word(*barrier).store(std::bit_cast<unsigned long long>(fresh));
}

const void* shim_present_phase(const unsigned long long* barrier) {
  return place_of_phase(barrier, std::bit_cast<Barrier>(Word(word(barrier)).load()).phase);
}

namespace {

/// A phase ends when all threads and all bytes have arrived.
void count(unsigned long long* at, int arrivals, int chunks) {
  unsigned long long before = Word(*at).load(), after;
  bool ends;
  do {
    auto barrier = std::bit_cast<Barrier>(before);
    if (barrier.arrivals == 0xffff) return;
    barrier.missing = static_cast<std::uint16_t>(barrier.missing - arrivals);
    barrier.chunks = static_cast<std::int16_t>(barrier.chunks + chunks);
    ends = barrier.missing == 0 && barrier.chunks == 0;
    if (ends) barrier.missing = barrier.arrivals, ++barrier.phase;
    after = std::bit_cast<unsigned long long>(barrier);
  } while (!Word(*at).compare_exchange_weak(before, after));
  if (ends) shim_wake();
}

}  // namespace

void shim_count_arrival(unsigned long long* at) { count(at, 1, 0); }
void shim_count_bytes(unsigned long long* at, unsigned bytes) { count(at, 0, -static_cast<int>(bytes / 16)); }
void shim_expect_bytes(unsigned long long* barrier, unsigned bytes) {
  shim_reads(barrier, sizeof *barrier);
  count(barrier, 0, static_cast<int>(bytes / 16));
}

/// The phase cannot end before this thread has arrived.
void shim_arrive(unsigned long long* barrier) {
  shim_reads(barrier, sizeof *barrier);
  shim_pass_on(shim_present_phase(barrier));
  shim_count_arrival(barrier);
}

void shim_wait_barrier(const unsigned long long* barrier, unsigned parity) {
  shim_reads(barrier, sizeof *barrier);
  shim_wait_until(is_over, barrier, parity);
  shim_take_up(place_of_phase(barrier, parity));
}

void shim_start_products() {
  const auto start = [](Warpgroup& group) {
    group.first = group.last = group.commits = 0;
    for (Kept& kept : group.kept) kept.products = 0;
  };
#ifdef SHIM_OS_THREADS
  start(own_warpgroup());
#else
  for (Warpgroup& group : all_warpgroups[shim_slot()]) start(group);
#endif
}

void shim_wgmma(float (*value)(unsigned short bits), float* sum, int lanes, unsigned long long a,
                const unsigned* held, unsigned long long b, bool a_transposed, bool b_transposed, bool starts) {
  Wgmma own{value, sum, lanes, a, b, held, a_transposed, b_transposed, starts, &own_warpgroup()};
  if (shim_tells_accesses) shim_by_agent(tell_reads, &own);
  shim_meet(start, &own, shim_warpgroup_threads);
}

void shim_commit_wgmma() {
  Warpgroup& group = own_warpgroup();
  shim_pass_on_copies(group.position(group.commits));
  shim_meet(commit, &group, shim_warpgroup_threads);
}

void shim_wait_wgmma(int pending) {
  Warpgroup& group = own_warpgroup();
  const auto left = static_cast<std::size_t>(pending);
  Wait own{&group, group.commits > left ? group.commits - left : 0};
  // Groups that are still pending have other positions.
  for (std::size_t i = 0; i < own.done && i + left < std::size(group.positions); ++i)
    shim_take_up(group.position(own.done - 1 - i));
  shim_meet(wait, &own, shim_warpgroup_threads);
}
