#include <lathe/lathe.h>

#include <atomic>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <new>
#include <utility>
#include <vector>

using namespace lathe;

/// Number of memory allocations by the program and the library.
std::atomic<int> allocations = 0;
#ifndef __SANITIZE_ADDRESS__  // which has its own operator new
void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
[[gnu::noinline]] void operator delete(void* memory) noexcept { std::free(memory); }
[[gnu::noinline]] void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
#endif

/// Computes scores of rows in three classes: x [n, 4] -> [n, 3].
Tensor scores_of(const Graph& g) {
  const Dim n{"n"};
  return linear(g.input("x", f32, {n, 4}), g.parameter("w", f32, {3, 4}));
}

/// Represents a function of another library that returns an array with ownership.
dlpack::ManagedTensor* array_of_another_library() {
  return to_dlpack(HostTensor::from({2, 4}, {1, 2, 3, 4, 5, 6, 7, 8}));
}

void print(const char* what, const float* y) {
  std::printf("%s: %g %g %g, %g %g %g\n", what, y[0], y[1], y[2], y[3], y[4], y[5]);
}

int main() {
  Graph all{"scores"}, highest{"highest"};
  all.output("y", scores_of(all));
  highest.output("best", scores_of(highest).argmax(-1));

  Parameters weights({{"w", HostTensor::from({3, 4}, {1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 1, 1})}});
  weights.save("weights.safetensors");
  const Parameters mapped = Parameters::load("weights.safetensors");
  Executable scores = compile(all.finish(), {.parameters = mapped, .reserve = {{"n", 64}}});
  Executable best = compile(highest.finish(), {.parameters = mapped});
  std::fputs(to_string(mapped).c_str(), stdout);
  DiskCache cache("compiled");
  Executable cached = compile(highest.finish(), {.parameters = mapped, .cache = &cache});

  const std::vector<float> rows{1, 2, 3, 4, 5, 6, 7, 8};  // [2, 4]
  std::vector<float> y(2 * 3);
  const InputRefs inputs{{"x", {f32, {2, 4}, rows.data()}}};
  const OutputRefs outputs{{"y", {f32, {2, 3}, y.data()}}};
  scores.run(inputs, outputs);
  print("scores", y.data());

  const std::vector<float> columns{1, 5, 2, 6, 3, 7, 4, 8};  // the same numbers in column-major order
  std::vector<float> table(2 * 5);                           // the scores are in the last 3 of 5 columns
  scores.run(InputRefs{{"x", {f32, {2, 4}, columns.data(), {1, 2}}}},
             OutputRefs{{"y", {f32, {2, 3}, table.data() + 2, {5, 1}}}});
  std::printf("a row of the table: %g %g %g %g %g\n", table[0], table[1], table[2], table[3], table[4]);

  const int before = allocations;
  for (int i = 0; i < 3; ++i) scores.run(inputs, outputs);
  std::printf("allocations of 3 runs: %d\n", allocations - before);

  const HostTensor taken = from_dlpack(array_of_another_library());  // in place; freed with `taken`
  std::printf("best classes: %s\n", best.run({{"x", taken}}).at("best").to_string().c_str());

  dlpack::ManagedTensor* theirs = array_of_another_library();
  scores.run(InputRefs{{"x", view_of(theirs->array)}}, outputs);  // theirs stays theirs
  theirs->deleter(theirs);

  HostTensor result(f32, {2, 3});
  scores.run(inputs, OutputRefs{{"y", result}});
  dlpack::ManagedTensor* given = to_dlpack(std::move(result));  // the receiver calls given->deleter(given)
  print("given away", static_cast<const float*>(given->array.data));
  given->deleter(given);
  std::filesystem::remove("weights.safetensors");
  std::filesystem::remove_all("compiled");
}
