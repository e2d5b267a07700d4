#include "codegen/cuda/intrinsics/hooks.h"

namespace lathe::cuda {

namespace {

/// Pointers that phases use for their awaited parameters (KernelPhase::awaited), with the loads and stores of
/// lathe.cuh.
constexpr std::string_view awaited_device_text = R"cuda(
// ---- awaited elements: those whose bits are all set, a NaN, have not been written ----

template <int bytes>
struct WordOfBytes {
  using type = u32;
};
template <>
struct WordOfBytes<2> {
  using type = u16;
};
template <>
struct WordOfBytes<8> {
  using type = u64;
};
template <class T>
using WordOf = typename WordOfBytes<sizeof(T)>::type;

/// Loads and stores of words that other blocks store and load meanwhile: in L2, in any order.
template <class Word>
LATHE_FUNCTION Word peek(const void* p) {
#ifdef __CUDA_ARCH__
  Word word;
  if constexpr (sizeof(Word) == 2)
    asm volatile("ld.relaxed.gpu.global.u16 %0, [%1];" : "=h"(word) : "l"(p) : "memory");
  else if constexpr (sizeof(Word) == 4)
    asm volatile("ld.relaxed.gpu.global.u32 %0, [%1];" : "=r"(word) : "l"(p) : "memory");
  else
    asm volatile("ld.relaxed.gpu.global.u64 %0, [%1];" : "=l"(word) : "l"(p) : "memory");
  return word;
#else
  return __atomic_load_n(static_cast<const Word*>(p), __ATOMIC_RELAXED);
#endif
}
template <int words>
LATHE_FUNCTION vec<u32, words> peek_words(const void* p) {
  vec<u32, words> r;
#ifdef __CUDA_ARCH__
  if constexpr (words == 1)
    r.lane[0] = peek<u32>(p);
  else if constexpr (words == 2)
    asm volatile("ld.relaxed.gpu.global.v2.u32 {%0, %1}, [%2];"
                 : "=r"(r.lane[0]), "=r"(r.lane[1])
                 : "l"(p)
                 : "memory");
  else
#pragma unroll
    for (int i = 0; i < words; i += 4)
      asm volatile("ld.relaxed.gpu.global.v4.u32 {%0, %1, %2, %3}, [%4];"
                   : "=r"(r.lane[i]), "=r"(r.lane[i + 1]), "=r"(r.lane[i + 2]), "=r"(r.lane[i + 3])
                   : "l"(static_cast<const u32*>(p) + i)
                   : "memory");
#else
  for (int i = 0; i < words; ++i) r.lane[i] = peek<u32>(static_cast<const u32*>(p) + i);
#endif
  return r;
}
template <class Word>
LATHE_FUNCTION void poke(void* p, Word word) {
#ifdef __CUDA_ARCH__
  if constexpr (sizeof(Word) == 2)
    asm volatile("st.relaxed.gpu.global.u16 [%0], %1;" ::"l"(p), "h"(word) : "memory");
  else if constexpr (sizeof(Word) == 4)
    asm volatile("st.relaxed.gpu.global.u32 [%0], %1;" ::"l"(p), "r"(word) : "memory");
  else
    asm volatile("st.relaxed.gpu.global.u64 [%0], %1;" ::"l"(p), "l"(word) : "memory");
#else
  __atomic_store_n(static_cast<Word*>(p), word, __ATOMIC_RELAXED);
  shim_wrote_awaited();
#endif
}
template <int words>
LATHE_FUNCTION void poke_words(void* p, vec<u32, words> w) {
#ifdef __CUDA_ARCH__
  if constexpr (words == 1)
    poke(p, w.lane[0]);
  else if constexpr (words == 2)
    asm volatile("st.relaxed.gpu.global.v2.u32 [%0], {%1, %2};" ::"l"(p), "r"(w.lane[0]), "r"(w.lane[1]) : "memory");
  else
#pragma unroll
    for (int i = 0; i < words; i += 4)
      asm volatile("st.relaxed.gpu.global.v4.u32 [%0], {%1, %2, %3, %4};" ::"l"(static_cast<u32*>(p) + i),
                   "r"(w.lane[i]), "r"(w.lane[i + 1]), "r"(w.lane[i + 2]), "r"(w.lane[i + 3])
                   : "memory");
#else
  for (int i = 0; i < words; ++i) poke(static_cast<u32*>(p) + i, w.lane[i]);
#endif
}

template <class Word>
LATHE_FUNCTION bool is_absent(Word word) {
  return word == static_cast<Word>(~Word(0));
}
/// Whether an element of `bytes` bytes in the words is absent.
template <int bytes, int words>
LATHE_FUNCTION bool has_absent(vec<u32, words> w) {
  bool absent = false;
#pragma unroll
  for (int i = 0; i < words; ++i) {
    if constexpr (bytes == 2)
      absent = absent || is_absent(u16(w.lane[i])) || is_absent(u16(w.lane[i] >> 16));
    else if constexpr (bytes == 4)
      absent = absent || is_absent(w.lane[i]);
    else if (i % 2 == 0)
      absent = absent || is_absent(w.lane[i] & w.lane[i + 1]);
  }
  return absent;
}
/// Polls until done().
template <class Done>
LATHE_FUNCTION void await(const Done& done) {
#ifdef __CUDA_ARCH__
  while (!done()) {
  }
#else
  shim_await_written([](const void* is_done, u32) { return (*static_cast<const Done*>(is_done))(); }, &done);
#endif
}

LATHE_FUNCTION u16 word_of(bf16 x) { return x.bits; }
LATHE_FUNCTION u16 word_of(f16 x) { return x.bits; }
LATHE_FUNCTION u32 word_of(f32 x) { return u32(bits_of(x)); }
LATHE_FUNCTION u64 word_of(f64 x) { return u64(bits_of(x)); }
template <class T>
LATHE_FUNCTION T of_word(WordOf<T> word) {
  if constexpr (sizeof(T) == 2)
    return T{word};
  else if constexpr (sizeof(T) == 4)
    return from_bits(i32(word));
  else
    return from_bits(i64(word));
}
/// Returns the bits of an element, and those of another NaN for the one that means absent.
template <class T>
LATHE_FUNCTION WordOf<T> written_word(T x) {
  const WordOf<T> word = word_of(x);
  return is_absent(word) ? static_cast<WordOf<T>>(word >> 1) : word;
}

/// A pointer to elements whose loads wait until they are written, and whose stores end such waits.
template <class T>
struct Awaited {
  struct Element {
    T* at;
    LATHE_FUNCTION void operator=(T x) const { poke(at, written_word(x)); }
  };
  T* at;
  LATHE_FUNCTION Awaited(T* p) : at(p) {}
  LATHE_FUNCTION Element operator[](i64 i) const { return {at + i}; }
};
template <class T>
struct Awaited<const T> {
  const T* at;
  LATHE_FUNCTION Awaited(const T* p) : at(p) {}
  LATHE_FUNCTION T operator[](i64 i) const;
};

/// A load of awaited elements in two parts: look() loads their words, and settled() waits until they have been written.
/// Several loads overlap if all looks are before the first settled().
template <class T>
LATHE_FUNCTION WordOf<T> look(Awaited<const T> p, i64 at) {
  return peek<WordOf<T>>(p.at + at);
}
template <class T>
LATHE_FUNCTION T settled(Awaited<const T> p, i64 at, WordOf<T> word) {
  if (is_absent(word)) await([&] { return !is_absent(word = peek<WordOf<T>>(p.at + at)); });
  return of_word<T>(word);
}
template <class T>
LATHE_FUNCTION T Awaited<const T>::operator[](i64 i) const {
  return settled(*this, i, look(*this, i));
}

/// Loads the elements index(i) for which here(i).
template <int N, class T, class Here, class Index>
LATHE_FUNCTION vec<T, N> await_lanes(const T* p, const Here& here, const Index& index) {
  vec<WordOf<T>, N> words{};
  await([&] {
    bool all = true;
#pragma unroll
    for (int i = 0; i < N; ++i) {
      if (here(i)) words.lane[i] = peek<WordOf<T>>(p + index(i));
      all = all && !(here(i) && is_absent(words.lane[i]));
    }
    return all;
  });
  vec<T, N> r;
#pragma unroll
  for (int i = 0; i < N; ++i) r.lane[i] = of_word<T>(words.lane[i]);
  return r;
}
template <int N, class T>
LATHE_FUNCTION vec<u32, N * int(sizeof(T)) / 4> look_aligned(Awaited<const T> p, i64 at) {
  static_assert(N * sizeof(T) % 4 == 0);
  return peek_words<N * int(sizeof(T)) / 4>(p.at + at);
}
template <int N, class T>
LATHE_FUNCTION vec<T, N> settled_aligned(Awaited<const T> p, i64 at, vec<u32, N * int(sizeof(T)) / 4> words) {
  constexpr int bytes = sizeof(T);
  if (has_absent<bytes>(words)) await([&] { return !has_absent<bytes>(words = look_aligned<N>(p, at)); });
  vec<T, N> r;
#pragma unroll
  for (int i = 0; i < N; ++i) {
    if constexpr (bytes == 2)
      r.lane[i] = of_word<T>(u16(words.lane[i / 2] >> (16 * (i % 2))));
    else if constexpr (bytes == 4)
      r.lane[i] = of_word<T>(words.lane[i]);
    else
      r.lane[i] = of_word<T>(u64(words.lane[2 * i]) | u64(words.lane[2 * i + 1]) << 32);
  }
  return r;
}
template <class T, int N>
LATHE_FUNCTION vec<WordOf<T>, N> look_if(vec<bool, N> mask, Awaited<const T> p, i64 at) {
  vec<WordOf<T>, N> words{};
#pragma unroll
  for (int i = 0; i < N; ++i)
    if (mask.lane[i]) words.lane[i] = peek<WordOf<T>>(p.at + at + i);
  return words;
}
template <class T, int N>
LATHE_FUNCTION vec<T, N> settled_if(vec<bool, N> mask, Awaited<const T> p, i64 at, vec<WordOf<T>, N> words) {
  vec<T, N> r;
#pragma unroll
  for (int i = 0; i < N; ++i) r.lane[i] = mask.lane[i] ? settled(p, at + i, words.lane[i]) : T{};
  return r;
}
template <int N, class T>
LATHE_FUNCTION vec<T, N> load_aligned(Awaited<const T> p, i64 at) {
  return settled_aligned<N>(p, at, look_aligned<N>(p, at));
}
template <int N, class T>
LATHE_FUNCTION vec<T, N> load(Awaited<const T> p, i64 at) {
  return await_lanes<N>(p.at, [](int) { return true; }, [&](int i) { return at + i; });
}
template <int N, class T>
LATHE_FUNCTION vec<T, N> load_strided(Awaited<const T> p, i64 at, i64 stride) {
  return await_lanes<N>(p.at, [](int) { return true; }, [&](int i) { return at + i * stride; });
}
template <class T, class Index, int N>
LATHE_FUNCTION vec<T, N> gather(Awaited<const T> p, vec<Index, N> at) {
  return await_lanes<N>(p.at, [](int) { return true; }, [&](int i) { return i64(at.lane[i]); });
}
template <class T>
LATHE_FUNCTION T load_if(bool mask, Awaited<const T> p, i64 at) {
  return mask ? p[at] : T{};
}
template <class T, int N>
LATHE_FUNCTION vec<T, N> load_if(vec<bool, N> mask, Awaited<const T> p, i64 at) {
  return await_lanes<N>(p.at, [&](int i) { return mask.lane[i]; }, [&](int i) { return at + i; });
}
template <class T, int N>
LATHE_FUNCTION vec<T, N> load_aligned_if(vec<bool, N> mask, Awaited<const T> p, i64 at) {
  return mask.lane[0] ? load_aligned<N>(p, at) : vec<T, N>{};
}
template <class T, int N>
LATHE_FUNCTION vec<T, N> load_strided_if(vec<bool, N> mask, Awaited<const T> p, i64 at, i64 stride) {
  return await_lanes<N>(p.at, [&](int i) { return mask.lane[i]; }, [&](int i) { return at + i * stride; });
}
template <class T, class Index, int N>
LATHE_FUNCTION vec<T, N> gather_if(vec<bool, N> mask, Awaited<const T> p, vec<Index, N> at) {
  return await_lanes<N>(p.at, [&](int i) { return mask.lane[i]; }, [&](int i) { return i64(at.lane[i]); });
}

template <class T, int N>
LATHE_FUNCTION void store_aligned(Awaited<T> p, i64 at, vec<T, N> value) {
  constexpr int bytes = sizeof(T), count = N * bytes / 4;
  static_assert(N * bytes % 4 == 0);
  vec<u32, count> words{};
#pragma unroll
  for (int i = 0; i < N; ++i) {
    const WordOf<T> word = written_word(value.lane[i]);
    if constexpr (bytes == 2)
      words.lane[i / 2] |= u32(word) << (16 * (i % 2));
    else if constexpr (bytes == 4)
      words.lane[i] = word;
    else
      words.lane[2 * i] = u32(word), words.lane[2 * i + 1] = u32(word >> 32);
  }
  poke_words(p.at + at, words);
}
template <class T, int N>
LATHE_FUNCTION void store(Awaited<T> p, i64 at, vec<T, N> value) {
#pragma unroll
  for (int i = 0; i < N; ++i) p[at + i] = value.lane[i];
}
template <class T, int N>
LATHE_FUNCTION void store_strided(Awaited<T> p, i64 at, i64 stride, vec<T, N> value) {
#pragma unroll
  for (int i = 0; i < N; ++i) p[at + i * stride] = value.lane[i];
}
template <class T, class Index, int N>
LATHE_FUNCTION void scatter(Awaited<T> p, vec<Index, N> at, vec<T, N> value) {
#pragma unroll
  for (int i = 0; i < N; ++i) p[at.lane[i]] = value.lane[i];
}
template <class T>
LATHE_FUNCTION void store_if(bool mask, Awaited<T> p, i64 at, T value) {
  if (mask) p[at] = value;
}
template <class T, int N>
LATHE_FUNCTION void store_if(vec<bool, N> mask, Awaited<T> p, i64 at, vec<T, N> value) {
#pragma unroll
  for (int i = 0; i < N; ++i) store_if(mask.lane[i], p, at + i, value.lane[i]);
}
template <class T, int N>
LATHE_FUNCTION void store_strided_if(vec<bool, N> mask, Awaited<T> p, i64 at, i64 stride, vec<T, N> value) {
#pragma unroll
  for (int i = 0; i < N; ++i) store_if(mask.lane[i], p, at + i * stride, value.lane[i]);
}
template <class T, class Index, int N>
LATHE_FUNCTION void scatter_if(vec<bool, N> mask, Awaited<T> p, vec<Index, N> at, vec<T, N> value) {
#pragma unroll
  for (int i = 0; i < N; ++i) store_if(mask.lane[i], p, at.lane[i], value.lane[i]);
}
)cuda";

constexpr std::string_view awaited_words[] = {
    "Awaited",      "WordOf",     "WordOfBytes", "await",           "await_lanes", "has_absent",  "look",
    "look_aligned", "look_if",    "settled",     "settled_aligned", "settled_if",  "is_absent",   "of_word",
    "peek",         "peek_words", "poke",        "poke_words",      "word_of",     "written_word"};

}  // namespace

extern const HookFamily awaited_hooks;
/// No hooks: the functions of phases call its text.
constinit const HookFamily awaited_hooks{awaited_device_text, awaited_words, {}};

}  // namespace lathe::cuda
