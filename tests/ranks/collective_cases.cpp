#include "tests/ranks/collective_cases.h"

#include <fmt/format.h>

#include "ir/tensor/text/parser.h"
#include "tests/ranks/support.h"
#include "tests/support/programs/once_store.h"

namespace lathe::test {

std::vector<CollectiveCase> collective_cases() {
  std::vector<CollectiveCase> cases;
  for (const DType dtype : {f64, f32, bf16, i64, i32}) {
    const auto add = [&](const std::string& op, std::vector<std::int64_t> sizes) {
      const std::string text = fmt::format("graph @g(input %x: {}[{}]) {{\n  %1 = {}\n  output \"y\" %1\n}}",
                                           name(dtype), fmt::join(sizes, ", "), op);
      cases.push_back({op, ir::parse_graph(text, "collective"), std::move(sizes), dtype});
    };
    for (const char* combine : {"sum", "max", "min"})
      for (const std::int64_t n : {1, 5, 6, 700})
        add(fmt::format("all_reduce %x {{axis=\"m\", ranks=3, combine=\"{}\"}}", combine), {n, 2});
    for (const int dim : {0, 1, 2})
      add(fmt::format("all_gather %x {{axis=\"m\", ranks=3, dim={}, outer=1}}", dim), {2, 4, 3});
    add("all_gather %x {axis=\"m\", ranks=3, dim=1, outer=2}", {2, 4, 3});
    for (const int dim : {0, 1, 2})
      add(fmt::format("reduce_scatter %x {{axis=\"m\", ranks=3, dim={}, outer=1}}", dim), {6, 12, 3});
    add("reduce_scatter %x {axis=\"m\", ranks=3, dim=1, outer=2}", {6, 12, 3});
    add("all_to_all %x {axis=\"m\", ranks=3, split_dim=1, concat_dim=0}", {2, 6});
    add("all_to_all %x {axis=\"m\", ranks=3, split_dim=0, concat_dim=2}", {6, 2, 3});
    // Chunks of several windows, of which the last rank has one less than the others.
    if (dtype != i32) {
      const std::int64_t several = dtype == bf16 ? 786'433 : 393'217;
      add("all_reduce %x {axis=\"m\", ranks=3, combine=\"sum\"}", {several, 1});
      add("reduce_scatter %x {axis=\"m\", ranks=3, dim=1, outer=1}", {2, several - 1});
    }
    for (const int offset : {1, -1, 2, 3})
      add(fmt::format("send_recv %x {{axis=\"m\", ranks=3, offset={}}}", offset), {5, 2});
  }
  return cases;
}

HostTensor operand_of(const CollectiveCase& collective, int rank) {
  HostTensor own(collective.dtype, collective.sizes);
  for (std::int64_t i = 0; i < own.numel(); ++i) {
    const std::int64_t number = (i * 7 + rank * 5) % 23 - 11;
    is_float(own.dtype()) ? own.set(i, static_cast<double>(number) / 8) : own.set_int(i, number);
  }
  return own;
}

HostTensor run_collective(const CollectiveCase& collective, const std::shared_ptr<Ranks>& ranks,
                          CompileOptions options) {
  options.threads = 1;
  static OnceStore kernels;  // ranks are threads of this process, or its only rank
  options.cache = &kernels;
  options.poison = true;
  options.ranks = ranks;
  Executable executable = compile(collective.graph, options);
  return executable.run({{"x", operand_of(collective, ranks->rank())}}).at("y");
}

}  // namespace lathe::test
