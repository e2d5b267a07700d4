#include <algorithm>
#include <catch2/catch.hpp>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>

#include "ir/kernel/build/builder.h"
#include "ir/kernel/intrinsics/split_bf16.h"
#include "ir/kernel/verify/verifier.h"
#include "tests/support/graphs/round_trip.h"
#include "tests/support/texts/test_data.h"

using namespace lathe;
using namespace lathe::kernel;

namespace {

/// for i in 0..n @parallel { var v = x[i]; for j in 0..4 { v = v + x[j] }; y[i] = v }
Kernel valid() {
  Builder b("valid");
  Buffer x = b.buffer("x", f32, Access::read), y = b.buffer("y", f32, Access::write);
  Value n = b.dim("n");
  b.parallel_for(0, n, 1, [&](Value i) {
    Var v = b.var(b.load(x, i));
    b.for_loop(0, 4, 1, [&](Value j) { b.set(v, b.get(v) + b.load(x, j)); });
    b.store(y, i, b.get(v));
  });
  return test::round_trip(b.finish());
}

Loop& parallel(Kernel& k) { return std::get<Loop>(k.body[0].node); }
Loop& inner(Kernel& k) { return std::get<Loop>(parallel(k).body[2].node); }

/// Returns the instruction computed by the first Compute with this opcode.
Instruction& first(Kernel& k, Opcode op) {
  for (Instruction& in : k.values)
    if (in.op == op) return in;
  throw std::runtime_error("no such instruction");
}

void rejects(const std::string& label, const std::function<void(Kernel&)>& damage) {
  Kernel kernel = valid();
  verify(kernel);
  damage(kernel);
  INFO(label);
  CHECK_THROWS_WITH(verify(kernel), Catch::Contains("[" + label + "]") && Catch::Contains("kernel valid"));
}

ValueId add_value(Kernel& k, Instruction in) {
  k.values.push_back(std::move(in));
  return static_cast<ValueId>(k.values.size()) - 1;
}

ValueId integer(Kernel& k, std::int64_t n) {
  return add_value(k, {.op = Opcode::constant, .type = {i64, 1}, .integer = n});
}

}  // namespace

TEST_CASE("values must be defined before use, once, in scope") {
  rejects("dominance", [](Kernel& k) { std::swap(parallel(k).body[0], parallel(k).body[1]); });
  rejects("dominance", [](Kernel& k) {
    // A value of the inner loop is used after the loop.
    const ValueId inside = std::get<Compute>(inner(k).body[0].node).value;
    std::get<Store>(parallel(k).body[4].node).value = inside;
  });
  rejects("single_assignment",
          [](Kernel& k) { parallel(k).body.insert(parallel(k).body.begin(), parallel(k).body[0]); });
  rejects("single_assignment",
          [](Kernel& k) { parallel(k).body.insert(parallel(k).body.begin() + 1, parallel(k).body[1]); });
  rejects("value_range", [](Kernel& k) { std::get<Store>(parallel(k).body[4].node).value = 99; });
  rejects("placement",
          [](Kernel& k) { parallel(k).body.insert(parallel(k).body.begin(), {Compute{parallel(k).lo}}); });
  rejects("var_scope", [](Kernel& k) { k.body.insert(k.body.begin(), parallel(k).body[3]); });
}

TEST_CASE("types must match") {
  rejects("type", [](Kernel& k) { first(k, Opcode::load).type.scalar = f64; });
  rejects("type", [](Kernel& k) { first(k, Opcode::scalar).type = {f32, 2}; });
  rejects("lanes", [](Kernel& k) { first(k, Opcode::load).type.lanes = 3; });
  rejects("scalar_type", [](Kernel& k) { first(k, Opcode::scalar).scalar_op = ScalarOp::rem; });
  rejects("type", [](Kernel& k) {
    Instruction& in = first(k, Opcode::scalar);
    in = DotPairs{in.type, in.args[0], in.args[0], in.args[0]}.instruction();
  });
  rejects("arity", [](Kernel& k) { first(k, Opcode::scalar).args.pop_back(); });
  rejects("complex", [](Kernel& k) { k.buffers[0].dtype = c64; });
  rejects("constant_range", [](Kernel& k) { add_value(k, {.op = Opcode::constant, .type = {f32, 1}, .real = 0.1}); });
  rejects("alignment", [](Kernel& k) { first(k, Opcode::load).alignment = 12; });
  rejects("streams", [](Kernel& k) {
    Store& store = std::get<Store>(parallel(k).body[4].node);
    store.streams = true;
    store.kind = StoreKind::scatter;
  });
  rejects("storage_type", [](Kernel& k) {
    k.buffers[0].dtype = k.buffers[1].dtype = bf16;
    k.vars[0].type.scalar = bf16;
    for (Instruction& in : k.values)
      if (in.type.scalar == f32) in.type.scalar = bf16;
  });
}

TEST_CASE("buffer accesses must match the declarations") {
  rejects("access", [](Kernel& k) { k.buffers[1].access = Access::read; });
  rejects("access", [](Kernel& k) { k.buffers[0].access = Access::write; });
  rejects("buffer_range", [](Kernel& k) { first(k, Opcode::load).buffer = 7; });
  rejects("buffer_scope", [](Kernel& k) {
    k.buffers.push_back({.name = "late", .access = Access::read_write, .space = Space::stack, .count = 4});
    first(k, Opcode::load).buffer = 2;
  });
  rejects("prefetch_buffer", [](Kernel& k) {
    k.buffers.push_back({.name = "tmp", .access = Access::read_write, .space = Space::stack, .count = 4});
    parallel(k).body.push_back({Alloc{2}});
    parallel(k).body.push_back({Prefetch{2, integer(k, 0)}});
  });
  rejects("scratch_size", [](Kernel& k) {
    k.buffers.push_back({.name = "big", .access = Access::read_write, .space = Space::stack, .count = 1 << 17});
    parallel(k).body.insert(parallel(k).body.begin(), {Alloc{2}});
  });
}

TEST_CASE("loop rules are enforced") {
  rejects("parallel_last", [](Kernel& k) { k.body.push_back({Check{}}); });
  rejects("parallel_context", [](Kernel& k) { inner(k).kind = LoopKind::parallel; });
  rejects("parallel_bounds", [](Kernel& k) {
    Builder b("valid");
    Buffer x = b.buffer("x", i64, Access::read);
    Value n = b.load(x, 0);
    b.parallel_for(0, b.index(4), 1, [&](Value) { b.check(n < 3, 1); });
    k = test::round_trip(b.finish());
    std::get<Loop>(k.body[1].node).hi = n.id;
  });
  rejects("setup_store", [](Kernel& k) {
    const ValueId zero = integer(k, 0);
    const ValueId one = add_value(k, {.op = Opcode::constant, .type = {f32, 1}, .real = 1});
    k.body.insert(k.body.begin(), {Store{.buffer = 1, .index = zero, .value = one}});
  });
  rejects("loop_step", [](Kernel& k) { inner(k).step = integer(k, 0); });
  rejects("unroll_bounds", [](Kernel& k) {
    inner(k).kind = LoopKind::unroll;
    inner(k).hi = parallel(k).hi;
  });
  rejects("var_across_iterations", [](Kernel& k) { inner(k).kind = LoopKind::vector; });
  rejects("barrier_context", [](Kernel& k) { parallel(k).body.push_back({Barrier{}}); });
  rejects("loop_nesting", [](Kernel& k) {
    parallel(k).kind = LoopKind::thread_x;
    inner(k).kind = LoopKind::block_x;
  });
  rejects("shared_context", [](Kernel& k) {
    parallel(k).kind = LoopKind::thread_x;
    k.buffers.push_back({.name = "s", .access = Access::read_write, .space = Space::shared, .count = 4});
    parallel(k).body.insert(parallel(k).body.begin(), {Alloc{2}});
  });
  rejects("check_code", [](Kernel& k) {
    const ValueId yes = add_value(k, {.op = Opcode::constant, .type = {boolean, 1}, .integer = 1});
    parallel(k).body.push_back({Check{yes, 0}});
  });
}

TEST_CASE("rejects a barrier in a branch") {
  Builder b("branchy");
  b.buffer("x", f32, Access::read);
  Value n = b.dim("n");
  b.for_loop(0, 8, 1, [&](Value t) { b.if_(t < n, [&] { b.barrier(); }); }, LoopKind::thread_x);
  CHECK_THROWS_WITH(test::round_trip(b.finish()), Catch::Contains("[barrier_context]"));
}

namespace {

std::string read(const std::string& path) {
  std::ifstream file(lathe::test::source_path(path));
  REQUIRE(file.good());
  return std::string(std::istreambuf_iterator<char>(file), {});
}

/// Returns quoted words of lower-case letters and '_' in the position of a label: before ',' or ')'. Words of the
/// text that parsers expect are no labels.
std::set<std::string> labels(const std::string& source) {
  std::set<std::string> result;
  for (std::size_t open = source.find('"'); open != std::string::npos;) {
    const std::size_t close = source.find('"', open + 1);
    if (close == std::string::npos) break;
    const std::string word = source.substr(open + 1, close - open - 1);
    const bool lower = word.find_first_not_of("abcdefghijklmnopqrstuvwxyz_") == std::string::npos;
    const std::string_view before = std::string_view(source).substr(0, open);
    const bool parsed = before.ends_with(".expect(") || before.ends_with(".accept(") || before.ends_with(".words(");
    if (!word.empty() && lower && !parsed && close + 1 < source.size() &&
        (source[close + 1] == ',' || source[close + 1] == ')'))
      result.insert(word);
    open = source.find('"', close + 1);
  }
  for (const char* other : {"wrote", "read", "set", "values", "buffers", "variables", "attributes"})
    result.erase(other);
  return result;
}

}  // namespace

TEST_CASE("the reference lists every verifier and interpreter label and every intrinsic") {
  const std::string reference = read("docs/kernel-ir.md");
  std::vector<std::string> paths = {"ir/kernel/verify/verifier.cpp",
                                    "ir/kernel/verify/definitions.cpp",
                                    "ir/kernel/interpret/interpreter.cpp",
                                    "ir/kernel/interpret/interpreter_memory.cpp",
                                    "ir/kernel/interpret/interpreter_thread.cpp",
                                    "ir/kernel/verify/rules.cpp",
                                    "ir/kernel/verify/structure_rules.cpp",
                                    "ir/kernel/verify/sums_rules.cpp"};
  for (const auto& entry : std::filesystem::directory_iterator(lathe::test::source_path("ir/kernel/intrinsics")))
    if (entry.path().extension() == ".cpp")
      paths.push_back("ir/kernel/intrinsics/" + entry.path().filename().string());
  const char* const ends[] = {"`", " ", "."};  // operation names are next to their operands
  std::size_t found = 0;
  for (const std::string& path : paths)
    for (const std::string& label : labels(read(path))) {
      INFO(path << ": " << label);
      CHECK(std::any_of(std::begin(ends), std::end(ends),
                        [&](const char* end) { return reference.find("`" + label + end) != std::string::npos; }));
      ++found;
    }
  CHECK(found > 35);
}
