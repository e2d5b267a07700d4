// Einsum: the integer tables, and attention in [N, length, heads, head_dim] layout.
//
//   example_einsum [GOLDENS_FOLDER]

#include <fmt/core.h>

#include <numeric>

#include "examples/check_goldens.h"
#include "frontend/models/attentions.h"
#include "frontend/ops/ops.h"
#include "ir/tensor/explain/explain.h"

using namespace lathe;

namespace {

HostTensor counted(std::int64_t first) {
  std::vector<std::int64_t> values(16);
  std::iota(values.begin(), values.end(), first);
  return HostTensor::of({4, 4}, values);
}

/// Five equations on the matrices 1 .. 16 and 100 .. 115.
void print_tables() {
  Graph g{"tables"};
  const Dim n{"n"};
  const Tensor A = g.input("A", i64, {n, n}), B = g.input("B", i64, {n, n});
  for (const char* equation : {"ij,kj->ik", "ij,jk", "ij,jk->ik", "ij,kj->ikj", "ij,kl->ijkl"})
    g.output(equation, einsum(equation, {A, B}));
  Executable tables = compile(g.finish());
  for (const auto& [equation, value] : tables.run({{"A", counted(1)}, {"B", counted(100)}}))
    fmt::print("{:14} {}\n", equation, value.to_string(2));
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_example([&] {
    print_tables();
    Graph g{"einsum_attention"};
    models::einsum_attention(g);
    fmt::print("\n{}\n", ir::explain(g.ir()));
    return argc < 2 || examples::check_goldens(argv[1], {"einsum_table", "einsum_attention"});
  });
}
