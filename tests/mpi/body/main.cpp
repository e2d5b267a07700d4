#include <fmt/core.h>

#include <csignal>
#include <cstring>
#include <functional>
#include <map>
#include <string>

#include "ir/support/error.h"
#include "ir/tensor/text/parser.h"
#include "runtime/ranks/mpi/mpi_communicator.h"
#include "runtime/ranks/thread_communicator.h"
#include "tests/cuda/ranks/mock_ranks.h"
#include "tests/ranks/collective_cases.h"
#include "tests/ranks/support.h"

/// The test body that runs as one of several processes: mpi_body PLUGIN CASE. Rank 0 prints the results; errors go to
/// standard error.
namespace lathe::test {

namespace {

using Make = MakeCommunicator;

std::shared_ptr<Ranks> join(const Make& make, const std::string& mesh, double timeout = 60) {
  return std::make_shared<Ranks>(make, shard::Mesh::parse(mesh), RanksOptions{.timeout = timeout});
}

std::string bytes_of(const HostTensor& tensor) {
  return {reinterpret_cast<const char*>(tensor.data()), tensor.bytes()};
}

/// Compares each collective with the same one between threads.
void compare_collectives(const Make& make, const MachineOf& machine) {
  const auto ranks = join(make, "m=3");
  int same = 0;
  for (const CollectiveCase& collective : collective_cases()) {
    std::vector<std::string> expected(3);
    if (ranks->rank() == 0)
      run_ranks(3, [&](int rank, const Make& make_thread) {
        const auto thread = join(make_thread, "m=3");
        expected[static_cast<std::size_t>(rank)] = bytes_of(run_collective(collective, thread, machine(thread)));
      });
    const auto found = ranks->gather(bytes_of(run_collective(collective, ranks, machine(ranks))));
    if (ranks->rank() != 0) continue;
    if (found != expected) fmt::print("differs: {} of {}\n", collective.op, name(collective.dtype));
    same += found == expected ? 1 : 0;
  }
  if (ranks->rank() == 0) fmt::print("{} collectives are the same\n", same);
}

/// Compares training over MPI with training between threads.
void compare_steps(const Make& make, int count, const Division& division, const MachineOf& machine) {
  const ir::Graph step = small_step(f32);
  const auto ranks = join(make, division.mesh);
  const Trained many = train(step, count, division, ranks, 8, machine);
  if (ranks->rank() != 0) return;
  fmt::print("{}\n",
             same_bits(many, train_in_threads(step, count, division, 8, machine)) ? "the same bits" : "other bits");
}

const Division by_two_axes{"data=2,model=2", "B:data,h:model,d_ff:model,vocab:model", {.states = "data"}};

CompileOptions on_cpu(const std::shared_ptr<Ranks>&) { return {}; }

void collectives(const Make& make) { compare_collectives(make, on_cpu); }
void steps(const Make& make) { compare_steps(make, 5, by_two_axes, on_cpu); }

/// The same with a mock GPU per process and the NCCL mock between them. Streams run in different orders in different
/// processes.
void on_gpus(const Make& make, int count, const std::function<void(const Make&, const MachineOf&)>& compare) {
  MockRanks gpus(count);
  compare(make, [&](const std::shared_ptr<Ranks>& ranks) {
    gpus.gpu(ranks->rank()).driver().order =
        ranks->rank() % 2 == 0 ? MockDriver::Order::late : MockDriver::Order::early;
    return gpus.options(ranks);
  });
  if (const std::string faults = gpus.faults(); !faults.empty()) throw InternalError(faults);
}
void gpu_collectives(const Make& make) { on_gpus(make, 3, compare_collectives); }
void gpu_steps(const Make& make) {
  on_gpus(make, 4, [](const Make& its, const MachineOf& machine) { compare_steps(its, 2, by_two_axes, machine); });
}

/// Messages from 0 bytes to many chunks, among all ranks and within axes, several at a time.
void pieces(const Make& make) {
  const auto ranks = join(make, "a=2,b=2");
  std::string text;
  int same = 0;
  for (const std::size_t size : {0, 1, 6, 7, 8, 700, 9000}) {
    const auto own = [&](int rank) {
      return std::string(size, static_cast<char>('a' + rank)) + std::to_string(rank);
    };
    const auto found = ranks->gather(own(ranks->rank()));
    for (int r = 0; r < ranks->size(); ++r) same += found.at(static_cast<std::size_t>(r)) == own(r) ? 1 : 0;
    std::vector<std::string> of_a, of_b;
    const auto a =
        ranks->start("a", [&](Communicator& group) { of_a = gather_texts(group, own(ranks->rank()), 60); });
    const auto b =
        ranks->start("b", [&](Communicator& group) { of_b = gather_texts(group, own(ranks->rank()), 60); });
    ranks->wait(a);
    ranks->wait(b);
    const int x = ranks->rank() / 2, y = ranks->rank() % 2;
    for (int i = 0; i < 2; ++i) {
      same += of_a.at(static_cast<std::size_t>(i)) == own(2 * i + y) ? 1 : 0;
      same += of_b.at(static_cast<std::size_t>(i)) == own(2 * x + i) ? 1 : 0;
    }
  }
  for (const std::string& others : ranks->gather(std::to_string(same)))
    if (ranks->rank() == 0) fmt::print("{} of 56\n", others);
}

Executable lookup(const std::shared_ptr<Ranks>& ranks) {
  return compile(ir::parse_graph(lookup_text, "lookup"), {.threads = 1, .ranks = ranks});
}

void index(const Make& make) {
  const auto ranks = join(make, "m=2");
  (void)lookup(ranks).run(lookup_arguments(ranks->rank() == 1 ? 9 : 2));
}

/// A process whose logarithm is infinite.
void find_nan(const Make& make) {
  const auto ranks = join(make, "m=2");
  Executable executable = compile(ir::parse_graph(R"(graph @g(input %x: f32[1]) {
  %1 = log %x
  %2 = all_reduce %1 {axis="m", ranks=2, combine="sum"}
  output "y" %2
})",
                                                  "logs"),
                                  {.threads = 1, .find_nan = true, .ranks = ranks});
  (void)executable.run({{"x", HostTensor::from({1}, {ranks->rank() == 1 ? 0.0 : 1.0})}});
}

/// A process that stops before its run.
void stop(const Make& make) {
  const auto ranks = join(make, "m=2", 2);
  Executable executable = lookup(ranks);
  if (ranks->rank() == 1) std::raise(SIGSTOP);
  (void)executable.run(lookup_arguments(2));
}

/// A process that stops before joining the mesh.
void stop_early(const Make& make) {
  const auto stopping = [&] {
    auto group = make();
    if (group->rank() == 1) std::raise(SIGSTOP);
    return group;
  };
  const auto ranks = join(stopping, "m=2", 2);
}

void exit_early(const Make& make) {
  const auto ranks = join(make, "m=2");
  Executable executable = lookup(ranks);
  if (ranks->rank() == 1) std::_Exit(7);
  (void)executable.run(lookup_arguments(2));
}

void graphs(const Make& make) {
  const auto ranks = join(make, "m=2");
  const ir::Graph step = small_step(f32), other = ir::parse_graph(lookup_text, "lookup");
  (void)compile(ranks->rank() == 1 ? other : step, {.threads = 1, .ranks = ranks});
}

void cpus(const Make& make) {
  const auto ranks = join(make, "m=2");
  CompileOptions options{.threads = 1, .ranks = ranks};
  options.target = Target::named(ranks->rank() == 0 ? "x86-64-v2" : "x86-64-v3");
  (void)compile(ir::parse_graph(lookup_text, "lookup"), options);
}

void other_mesh(const Make& make) { (void)join(make, "data=3"); }

void once(const Make& make) {
  (void)join(make, "m=2");
  (void)join(make, "m=2");
}

/// Sends more bytes than an int can count, in one message and in a compiled all_gather. Run it by hand, since it
/// needs about 12 GB of memory in total: mpirun -n 2 mpi_body PLUGIN large
void large(const Make& make) {
  const auto ranks = join(make, "m=2");
  const std::size_t bytes = (std::size_t{1} << 31) + 5;
  {
    std::vector<std::byte> memory(bytes);
    const auto pattern = [](std::size_t i) { return static_cast<std::byte>(i * 2654435761U >> 24); };
    if (ranks->rank() == 0)
      for (std::size_t i = 0; i < bytes; ++i) memory[i] = pattern(i);
    const std::vector<Message> message{{1 - ranks->rank(), memory.data(), bytes}}, none;
    ranks->rank() == 0 ? ranks->exchange(message, none) : ranks->exchange(none, message);
    std::size_t same = 0;
    for (std::size_t i = 0; i < bytes; ++i) same += memory[i] == pattern(i) ? 1 : 0;
    if (ranks->rank() == 1 && same != bytes) throw InternalError(fmt::format("{} of {} bytes", same, bytes));
  }
  const std::int64_t own = (std::int64_t{1} << 28) + 3;  // floats: the gathered tensor has 2^31 + 24 bytes
  Executable gather = compile(ir::parse_graph(fmt::format(R"(graph @g(input %x: f32[{}]) {{
  %1 = all_gather %x {{axis="m", ranks=2, dim=0, outer=1}}
  output "y" %1
}})",
                                                          own),
                                              "large"),
                              {.threads = 1, .ranks = ranks});
  HostTensor x(f32, {own});
  for (std::int64_t i = 0; i < own; ++i) x.set(i, static_cast<double>((i + 7 * ranks->rank()) % 1000));
  const Tensors found = gather.run({{"x", x}});
  const HostTensor& y = found.at("y");
  std::int64_t wrong = y.numel() == 2 * own ? 0 : 1;
  for (std::int64_t i = 0; i < y.numel(); ++i)
    wrong += y.get(i) == static_cast<double>((i % own + 7 * (i / own)) % 1000) ? 0 : 1;
  if (wrong > 0) throw InternalError(fmt::format("{} elements are wrong", wrong));
  if (ranks->gather("").size() == 2 && ranks->rank() == 0) fmt::print("{} bytes went in one message\n", bytes);
}

int run(const std::string& plugin, const std::string& name) {
  const std::map<std::string, std::function<void(const Make&)>> cases{{"collectives", collectives},
                                                                      {"steps", steps},
                                                                      {"gpu_collectives", gpu_collectives},
                                                                      {"gpu_steps", gpu_steps},
                                                                      {"pieces", pieces},
                                                                      {"large", large},
                                                                      {"index", index},
                                                                      {"find_nan", find_nan},
                                                                      {"stop", stop},
                                                                      {"stop_early", stop_early},
                                                                      {"exit_early", exit_early},
                                                                      {"graphs", graphs},
                                                                      {"cpus", cpus},
                                                                      {"other_mesh", other_mesh},
                                                                      {"once", once}};
  MpiOptions options{.plugin = plugin};
  if (name == "pieces") options.most_bytes = 7;
  try {
    cases.at(name)(mpi_processes(options));
    return 0;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return 1;
  }
}

}  // namespace

}  // namespace lathe::test

int main(int argc, char** argv) { return argc == 3 ? lathe::test::run(argv[1], argv[2]) : 2; }
