#include <algorithm>
#include <cmath>
#include <cstdint>
#include <deque>
#include <vector>

#include "tests/cuda/shim/block.h"
#include "tests/cuda/shim/cuda_shim.h"
#include "tests/cuda/shim/tensor_map.h"

/// The tensor core instructions with the lane layouts of the PTX manual ("Matrix fragments for mma.m16n8k16",
/// "ldmatrix"), and asynchronous copies.

namespace {

struct Copy {
  void* to;
  const void* from;
  int bytes;
};

/// The copies of one thread: those not in a group yet, groups, and those that a barrier waits for, by the thread's
/// arrival or by the bytes of a box.
struct Copies {
  struct Landing {
    std::vector<Copy> copies;
    unsigned long long* barrier;
    unsigned bytes = 0;
  };
  std::vector<Copy> open;
  std::deque<std::vector<Copy>> groups;
  std::deque<Landing> landings;
  std::size_t commits = 0;
  char positions[8] = {};  // positions at which the latest groups are passed on

  const void* position(std::size_t group) const { return &positions[group % std::size(positions)]; }
  bool are_none() const { return open.empty() && commits == 0 && landings.empty(); }
};

/// Copies byte by byte: ThreadSanitizer would attribute a memcpy to the calling thread.
void land(const std::vector<Copy>& copies) {
  for (const Copy& copy : copies) {
    auto* const to = static_cast<unsigned char*>(copy.to);
    for (int i = 0; i < 16; ++i) to[i] = i < copy.bytes ? static_cast<const unsigned char*>(copy.from)[i] : 0;
  }
}

void land(const Copies::Landing& landing) {
  land(landing.copies);
  if (landing.bytes == 0) return shim_count_arrival(landing.barrier);
  shim_count_bytes(landing.barrier, landing.bytes);
}

/// Returns those of the running block.
std::vector<Copies>& all_copies() {
  static std::vector<Copies> copies[shim_resident_blocks];
  return copies[shim_slot()];
}

#ifdef SHIM_OS_THREADS
Copies& own_copies() {
  thread_local Copies copies;
  return copies;
}
#else
Copies& own_copies() { return all_copies()[shim_thread()]; }
#endif

std::uint16_t half(unsigned word, int which) { return static_cast<std::uint16_t>(word >> (16 * which)); }

struct LoadMatrix {
  const std::uint16_t* row;
  unsigned* parts;
};

/// Part p: thread 8 p + r points at row r. Thread t gets elements 2 (t % 4) and 2 (t % 4) + 1 of row t / 4;
/// transposed, it gets element t / 4 of the two rows with these numbers.
template <bool transposed>
bool load_matrix(void* const* lanes) {
  const auto of = [&](int lane) { return static_cast<const LoadMatrix*>(lanes[lane]); };
  for (int lane = 0; lane < 32; ++lane)
    for (int p = 0; p < 4; ++p) {
      const int pair = lane % 4 * 2, other = lane / 4;
      const auto element = [&](int i) -> unsigned {
        return transposed ? of(8 * p + pair + i)->row[other] : of(8 * p + other)->row[pair + i];
      };
      of(lane)->parts[p] = element(0) | element(1) << 16;
    }
  return true;
}

struct Multiply {
  float (*value)(unsigned short);
  float* sum;
  const unsigned* a;
  unsigned b[2];
};

/// Groups of four threads, g = t / 4, hold rows (A, C) or columns (B) g; thread t % 4 of a group holds pairs.
bool multiply(void* const* lanes) {
  const auto of = [&](int group, int member) { return static_cast<const Multiply*>(lanes[group * 4 + member]); };
  const auto value = of(0, 0)->value;
  float a[16][16], b[16][8];
  for (int g = 0; g < 8; ++g)
    for (int k = 0; k < 16; ++k) {
      const Multiply* holder = of(g, k % 8 / 2);
      a[g][k] = value(half(holder->a[k / 8 * 2], k % 2));
      a[g + 8][k] = value(half(holder->a[k / 8 * 2 + 1], k % 2));
      b[k][g] = value(half(holder->b[k / 8], k % 2));
    }
  for (int row = 0; row < 16; ++row)
    for (int column = 0; column < 8; ++column) {
      float& sum = of(row % 8, column / 2)->sum[row / 8 * 2 + column % 2];
      for (int k = 0; k < 16; ++k) sum = fmaf(a[row][k], b[k][column], sum);
    }
  return true;
}

struct FromLane {
  void* value;
  int bytes, lane;
};

bool from_lane(void* const* lanes) {
  unsigned char before[32][8];
  const auto of = [&](int lane) { return static_cast<const FromLane*>(lanes[lane]); };
  for (int lane = 0; lane < 32; ++lane) std::memcpy(before[lane], of(lane)->value, of(lane)->bytes);
  for (int lane = 0; lane < 32; ++lane) std::memcpy(of(lane)->value, before[of(lane)->lane % 32], of(lane)->bytes);
  return true;
}

}  // namespace

#ifdef SHIM_OS_THREADS
void shim_start_copies(std::size_t) { own_copies() = {}; }
#else
void shim_start_copies(std::size_t threads) {
  std::vector<Copies>& all = all_copies();
  all.resize(threads);
  // Most kernels copy nothing, and have many blocks.
  for (Copies& copies : all)
    if (!copies.are_none()) copies = {};
}
#endif

void shim_cp_async(void* to, const void* from, int bytes) {
  shim_copies(to, from, 16, static_cast<std::size_t>(bytes));
  for (int i = 0; i < 16; ++i) static_cast<unsigned char*>(to)[i] = 0xff;
  own_copies().open.push_back({to, from, bytes});
}

void shim_commit_copies() {
  Copies& own = own_copies();
  own.groups.push_back(std::move(own.open));
  own.open.clear();
  shim_pass_on_copies(own.position(own.commits++));
}

void shim_wait_copies(int pending) {
  Copies& own = own_copies();
  for (auto& groups = own.groups; groups.size() > static_cast<std::size_t>(pending); groups.pop_front()) {
    shim_take_up(own.position(own.commits - groups.size()));
    land(groups.front());
  }
}

/// Performs a box copy as 16-byte copies: chunk p of a row, from coordinate at[0] + 8 p on, goes to chunk p ^ (row %
/// 8) of the destination address. An invalid copy never arrives.
void shim_copy_box(void* to, const void* words, unsigned long long* barrier, const int* at, unsigned long rank) {
  const ShimTensorMap& map = *static_cast<const ShimTensorMap*>(words);
  if (map.made != ShimTensorMap::is_made || map.rank != rank || shim_shared_address(to) % 1024 != 0) return;
  Copies::Landing landing{{}, barrier, 0};
  unsigned rows = 1;
  for (unsigned d = 1; d < rank; ++d) rows *= map.box[d];
  for (unsigned row = 0; row < rows; ++row) {
    unsigned long long from = map.address;
    bool inside = true;
    for (unsigned d = 1, rest = row; d < rank; rest /= map.box[d++]) {
      const long long position = at[d] + static_cast<long long>(rest % map.box[d]);
      inside = inside && position >= 0 && static_cast<unsigned long long>(position) < map.sizes[d];
      from += static_cast<unsigned long long>(position) * map.strides[d - 1];
    }
    for (int p = 0; p < map.box[0] / 8; ++p) {
      const long long first = at[0] + 8LL * p, left = static_cast<long long>(map.sizes[0]) - first;
      const int bytes = inside && first >= 0 ? static_cast<int>(std::clamp(left, 0LL, 8LL)) * 2 : 0;
      auto* const chunk = static_cast<unsigned char*>(to) + row * 128 + (static_cast<unsigned>(p) ^ row % 8) * 16;
      landing.copies.push_back(
          {chunk, reinterpret_cast<const void*>(from + static_cast<unsigned long long>(first) * 2), bytes});
    }
  }
  for (const Copy& copy : landing.copies) {
    shim_copies(copy.to, copy.from, 16, static_cast<std::size_t>(copy.bytes));
    for (int i = 0; i < 16; ++i) static_cast<unsigned char*>(copy.to)[i] = 0xff;
  }
  landing.bytes = rows * 128;
  own_copies().landings.push_back(std::move(landing));
  shim_reads(barrier, sizeof *barrier);
  shim_pass_on_copies(shim_present_phase(barrier));
}

void shim_arrive_with_copies(unsigned long long* barrier) {
  Copies& own = own_copies();
  own.landings.push_back({std::move(own.open), barrier});
  own.open.clear();
  shim_reads(barrier, sizeof *barrier);
  shim_pass_on_copies(shim_present_phase(barrier));
}

/// As late as possible: called only when no thread can run otherwise. Copies of one thread complete in order.
bool shim_land_copies(std::mt19937_64& random) {
  std::vector<Copies*> waiting;
  for (Copies& copies : all_copies())
    if (!copies.landings.empty()) waiting.push_back(&copies);
  std::shuffle(waiting.begin(), waiting.end(), random);
  for (std::size_t i = 0; i < (waiting.size() + 1) / 2; ++i) {
    auto& landings = waiting[i]->landings;
    land(landings.front());
    landings.pop_front();
  }
  return !waiting.empty();
}

#ifdef SHIM_OS_THREADS
bool shim_land_own_copies() {
  auto& landings = own_copies().landings;
  const bool some = !landings.empty();
  for (; !landings.empty(); landings.pop_front()) land(landings.front());
  return some;
}
#endif

void shim_ldmatrix(bool transposed, const void* row, unsigned* parts) {
  shim_reads(row, 16);
  LoadMatrix own{static_cast<const std::uint16_t*>(row), parts};
  shim_meet(transposed ? load_matrix<true> : load_matrix<false>, &own);
}

void shim_mma(float (*value)(unsigned short bits), float* sum, const unsigned* a, unsigned b_low, unsigned b_high) {
  Multiply own{value, sum, a, {b_low, b_high}};
  shim_meet(multiply, &own);
}

void shim_from_lane(void* value, int bytes, int lane) {
  FromLane own{value, bytes, lane};
  shim_meet(from_lane, &own);
}
