#include <fmt/core.h>
#include <xmmintrin.h>

#include <catch2/catch.hpp>
#include <random>

#include "tests/runtime/compiled/check_compiled.h"
#include "tests/support/library/library_runner.h"
#include "tests/support/tensors/compare_tensors.h"

/// Calls of libraries: checks, messages, and the state of the caller that they keep.
using namespace lathe;
using namespace lathe::test;
using Catch::Matchers::Contains;

namespace {

constexpr std::string_view lookup_text =
    R"(graph @lookup(input %ids: i64[n], parameter %table: f32[5, 4], state %sum: f32[4]) {
  %1 = gather %table, %ids {dim=0}
  %2 = sum %1 {dims=[0]}
  %3 = add %sum, %2
  output "rows" %1
  update %sum <- %3
})";

LibraryRunner lookup() {
  return LibraryRunner({{"", parse(lookup_text)}},
                       {.prefix = "lookup", .targets = {"x86-64-v2"}, .most = {{"n", 8}}});
}

/// A call of the library as its caller's memory.
struct Call {
  explicit Call(LibraryRunner& library) : library_(library) {
    library.init({{"n", 3}}, 1);
    workspace.resize(4096);
    const auto bytes = reinterpret_cast<std::int64_t (*)(const void*, std::int32_t)>(
        library.address("_workspace_bytes"))(instance, 1);
    CHECK(bytes == -1);  // not initialised
  }
  std::int64_t initialise() {
    std::int64_t dims[] = {3};
    return reinterpret_cast<std::int32_t (*)(void*, void*, void*, std::uint64_t)>(library_.init_address())(
        instance, dims, states, 1);
  }
  std::string check() {
    std::vector<std::int64_t> words{
        n, word(ids_at), word(states_at), word(rows_at), word(workspace_at), workspace_bytes, word(workers)};
    const auto error = reinterpret_cast<std::int32_t (*)(void*, void*)>(library_.address("_run"))(
        no_library ? nullptr : instance, no_call ? nullptr : words.data());
    return reinterpret_cast<const char* (*)(std::int32_t)>(library_.address("_message"))(error);
  }
  static std::int64_t word(const void* pointer) { return reinterpret_cast<std::intptr_t>(pointer); }

  LibraryRunner& library_;
  std::int32_t instance[2] = {};
  std::int64_t n = 3, ids[8] = {0, 4, 2};
  float table[20] = {}, sum[4] = {}, rows[32] = {};
  std::vector<char> workspace;
  void* states[2] = {table, sum};
  void *ids_at = ids, *states_at = states, *rows_at = rows, *workspace_at = nullptr, *workers = nullptr;
  std::int64_t workspace_bytes = 4096;
  bool no_library = false, no_call = false;
};

}  // namespace

TEST_CASE("library: every fault of a call has a message", "[library]") {
  LibraryRunner library = lookup();
  Call call(library);
  call.workspace_at = call.workspace.data();
  CHECK_THAT(call.check(), Contains("call lookup_init first"));
  REQUIRE(call.initialise() == 0);
  CHECK(call.check() == "no error");
  const auto with = [&](auto& member, auto value) {
    const auto before = std::exchange(member, value);
    const std::string message = call.check();
    member = before;
    return message;
  };
  CHECK_THAT(with(call.n, 9), Contains("the dim n must be from 0 to 8"));
  CHECK_THAT(with(call.n, -1), Contains("the dim n must be from 0 to 8"));
  CHECK_THAT(with(call.no_library, true), Contains("call lookup_init first"));
  CHECK_THAT(with(call.no_call, true), Contains("is null"));
  CHECK_THAT(with(call.ids_at, nullptr), Contains("the input ids: i64[n] is null"));
  CHECK_THAT(with(call.ids_at, reinterpret_cast<char*>(call.ids) + 4),
             Contains("the input ids: i64[n] must be aligned to 8"));
  CHECK_THAT(with(call.states_at, nullptr), Contains("the pointer to the states is null"));
  CHECK_THAT(with(call.states[1], nullptr), Contains("the state sum: f32[4] is null"));
  CHECK_THAT(with(call.rows_at, call.table + 2),
             Contains("the output rows: f32[n, 4] overlaps with other memory of the call"));
  CHECK_THAT(with(call.rows_at, call.workspace.data() + 64), Contains("overlaps"));
  CHECK_THAT(with(call.workspace_at, nullptr), Contains("the pointer to the workspace is null"));
  CHECK_THAT(with(call.workspace_bytes, 10), Contains("too small") && Contains("lookup_workspace_bytes"));
  Workers none{nullptr, nullptr, 2};
  CHECK_THAT(with(call.workers, &none), Contains("workers need a function"));
  // The message of a check at run time has the op and its line.
  CHECK_THAT(with(call.ids[1], 5), Contains("test:3: %3 gather: an index is not in [0, 5)"));
  CHECK(call.check() == "no error");
  call.n = 0;
  call.ids_at = nullptr;  // memory without elements may be anywhere
  CHECK(call.check() == "no error");
}

TEST_CASE("library: random bad calls end with an error or run", "[library]") {
  LibraryRunner library = lookup();
  Call call(library);
  call.workspace_at = call.workspace.data();
  REQUIRE(call.initialise() == 0);
  // Every pointer has room for what a call with its sizes accesses.
  constexpr std::size_t room = 8192;
  std::vector<char> memory(8 * room);
  const auto place = [&](std::size_t i) { return static_cast<void*>(memory.data() + i * room); };
  call.ids_at = place(0), call.states[0] = place(1), call.states[1] = place(2), call.rows_at = place(3);
  call.workspace_at = place(4);
  void* const pointers[] = {nullptr,  place(0), place(1), place(2),          place(3),
                            place(4), place(5), place(6), memory.data() + 1, memory.data() + 12};
  const std::int64_t numbers[] = {-9, -1, 0, 1, 3, 8, 9, std::int64_t{1} << 40, INT64_MIN, INT64_MAX};
  std::mt19937 random(7);
  const auto pick = [&](const auto& from) { return from[random() % std::size(from)]; };
  int passed = 0;
  for (int i = 0; i < 20000; ++i) {
    Call bad = call;
    for (void** const at : {&bad.ids_at, &bad.rows_at, &bad.workspace_at, &bad.states[0], &bad.states[1]})
      if (random() % 4 == 0) *at = pick(pointers);
    bad.states_at = random() % 8 == 0 ? nullptr : static_cast<void*>(bad.states);
    if (random() % 4 == 0) bad.n = pick(numbers);
    if (random() % 8 == 0) bad.workspace_bytes = static_cast<std::int64_t>(random() % 200);
    passed += bad.check() == "no error";
  }
  CHECK(passed > 100);
  CHECK(passed < 19000);
}

TEST_CASE("library: an overlap is found if a written tensor shares memory with another one", "[library]") {
  std::string text = "graph @many(";
  for (int i = 0; i < 9; ++i) text += fmt::format("{}input %x{}: f32[n]", i == 0 ? "" : ", ", i);
  text += ") {\n";
  for (int i = 0; i < 3; ++i) text += fmt::format("  %{0} = add %x{1}, %x{2}\n", i + 1, 3 * i, 3 * i + 1);
  for (int i = 0; i < 3; ++i) text += fmt::format("  output \"y{0}\" %{1}\n", i, i + 1);
  LibraryRunner library({{"", parse(text + "}")}}, {.prefix = "many", .targets = {"x86-64-v2"}, .most = {{"n", 8}}});
  std::int32_t instance[2] = {};
  REQUIRE(reinterpret_cast<std::int32_t (*)(void*)>(library.init_address())(instance) == 0);
  const auto run = reinterpret_cast<std::int32_t (*)(void*, void*)>(library.address("_run"));
  const auto message = reinterpret_cast<const char* (*)(std::int32_t)>(library.address("_message"));
  constexpr std::size_t tensors = 12, inputs = 9;
  constexpr std::int64_t workspace_bytes = 4096;
  std::vector<float> memory(600), workspace(workspace_bytes / sizeof(float));
  std::mt19937 random(11);
  int apart = 0;
  for (int i = 0; i < 5000; ++i) {
    const std::size_t n = random() % 9;
    std::vector<std::size_t> at(tensors);
    for (std::size_t& start : at) start = random() % (memory.size() - n);
    std::vector<std::int64_t> call{static_cast<std::int64_t>(n)};
    for (const std::size_t start : at) call.push_back(Call::word(memory.data() + start));
    for (const std::int64_t word : {Call::word(workspace.data()), workspace_bytes, std::int64_t{0}})
      call.push_back(word);
    // The first output that shares memory is named.
    std::string expected = "no error";
    for (std::size_t a = tensors; a-- > inputs;)
      for (std::size_t b = 0; b < tensors; ++b)
        if (a != b && at[a] < at[b] + n && at[b] < at[a] + n)
          expected = fmt::format("the output y{}: f32[n] overlaps with other memory of the call", a - inputs);
    INFO("n = " << n << ", call " << i);
    CHECK_THAT(message(run(instance, call.data())), Catch::Matchers::StartsWith(expected));
    apart += expected == "no error";
  }
  CHECK(apart > 500);
  CHECK(apart < 4500);
}

TEST_CASE("library: the floating-point state of the caller is restored, and does not change results", "[library]") {
  LibraryRunner library({{"", parse(R"(graph @tiny(input %x: f32[n]) {
  %1 = mul %x, %x
  %2 = exp %1
  output "y" %2
})")}},
                        {.prefix = "tiny", .targets = {"x86-64-v3"}, .most = {{"n", 64}}});
  HostTensor x(f32, {64});
  for (std::int64_t i = 0; i < 64; ++i) x.set(i, 1e-20 * static_cast<double>(i) + 0.1 * static_cast<double>(i % 5));
  const Tensors plain = library.run("tiny", {{"x", x}}, {{"n", 64}});
  constexpr unsigned flush_and_truncate = 0x8040 | 0x1f80 | 0x6000;
  const unsigned before = _mm_getcsr();
  _mm_setcsr(flush_and_truncate);
  const Tensors changed = library.run("tiny", {{"x", x}}, {{"n", 64}}, 2);
  const unsigned after = _mm_getcsr();
  _mm_setcsr(before);
  CHECK((after & 0xffc0) == (flush_and_truncate & 0xffc0));
  CHECK(same_bits(plain.at("y"), changed.at("y")));
}
