/// Speed of the matmul schedules compared with OpenBLAS and oneDNN, which alternate in one run: medians, shares of
/// the FMA peak (or of the read bandwidth) probed in the same run, and geometric means.
///   bench_gemm [--threads N] [--only TEXT | --case "48x256x256x64 k r"] [--seconds S] [--cpu x86-64-v3]
///              [--copies N]  number of right operands, used in rotation
///              [--tile mr,nv,kc,mc,nc] [--lhs SOURCE] [--rhs SOURCE] [--dims] [--asm] [--no-peers] [--openblas FILE]
/// --dims: the number of tokens is symbolic when the matmul is compiled
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include <fmt/core.h>

#include "bench/gemm/gemm_case.h"
#include "bench/gemm/gemm_peers.h"
#include "bench/gemm/gemm_table.h"
#include "runtime/cpu/cpu_backend.h"
#include "runtime/host/peak.h"

namespace lathe::bench {
namespace {

using cpu::Source;
using Clock = std::chrono::steady_clock;

struct Options {
  int threads = 1, copies = 1;
  std::string only, own, lhs, rhs, openblas;
  double seconds = 0.4;
  std::vector<int> tile;
  codegen::TargetCpu target = codegen::TargetCpu::host();
  bool dims = false, assembly = false, peers = true;
};

/// Seconds of a call. For a single thread this is CPU time, which excludes other processes and the kernel's
/// throttling of real-time processes.
double seconds_of(bool alone, const std::function<void()>& body) {
  const auto now = [alone] {
    timespec t{};
    clock_gettime(alone ? CLOCK_THREAD_CPUTIME_ID : CLOCK_MONOTONIC, &t);
    return static_cast<double>(t.tv_sec) + 1e-9 * static_cast<double>(t.tv_nsec);
  };
  const double start = now();
  body();
  return now() - start;
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

/// The operands and the result of a case, filled with random numbers in [-1, 1].
struct Operands {
  explicit Operands(const GemmCase& c)
      : lhs(float_arena(c.batch * c.m * c.k)),
        rhs(float_arena(c.batch * c.n * c.k * c.copies)),
        result(float_arena(c.batch * c.m * c.n)),
        one(c.batch * c.n * c.k) {
    std::mt19937 random(7);
    std::uniform_real_distribution<float> uniform(-1, 1);
    for (std::int64_t i = 0; i < c.batch * c.m * c.k; ++i) floats(lhs)[i] = uniform(random);
    for (std::int64_t i = 0; i < one; ++i) floats(rhs)[i] = uniform(random);
    for (int copy = 1; copy < c.copies; ++copy) std::copy_n(floats(rhs), one, floats(rhs) + copy * one);
    std::fill_n(floats(result), c.batch * c.m * c.n, 0.0F);
  }
  const float* right(std::int64_t turn, int copies) const { return floats(rhs) + turn % copies * one; }

  Arena lhs, rhs, result;
  std::int64_t one;  ///< elements of one right operand
};

/// Returns the largest error over sampled results, relative to the sum of the terms' absolute values.
double worst_error(const GemmCase& c, const Operands& data) {
  const float *lhs = floats(data.lhs), *rhs = floats(data.rhs), *result = floats(data.result);
  std::mt19937_64 random(1);
  double worst = 0;
  for (int sample = 0; sample < 400; ++sample) {
    const auto pick = [&](std::int64_t size) {
      return static_cast<std::int64_t>(random() % static_cast<std::uint64_t>(size));
    };
    const std::int64_t batch = pick(c.batch), m = sample < 40 ? c.m - 1 : pick(c.m),
                       n = sample % 4 ? pick(c.n) : c.n - 1;
    double sum = 0, magnitude = 0;
    for (std::int64_t k = 0; k < c.k; ++k) {
      const double x = lhs[c.lhs == LaneAxis::k ? (batch * c.m + m) * c.k + k : (batch * c.k + k) * c.m + m];
      const double y = rhs[c.rhs == LaneAxis::k ? (batch * c.n + n) * c.k + k : (batch * c.k + k) * c.n + n];
      sum += x * y, magnitude += std::abs(x * y);
    }
    worst = std::max(worst, std::abs(sum - static_cast<double>(result[(batch * c.m + m) * c.n + n])) / magnitude);
  }
  return worst;
}

cpu::GemmPlan plan_of(const GemmCase& c, const Options& options) {
  cpu::GemmQuery query{.compute = f32,
                       .cpu = cpu_info(options.target),
                       .batch = c.batch,
                       .m = c.m,
                       .n = c.n,
                       .k = c.k,
                       .lhs_axis = c.lhs,
                       .rhs_axis = c.rhs,
                       .split_bf16 = cpu_info(options.target).tiles,
                       .epilogue_small = true};
  if (options.dims) (c.sums_tokens() ? query.k : query.m) = {};
  cpu::GemmPlan plan = cpu::plan_gemm(query);
  const std::map<std::string, Source> sources = {
      {"packed", Source::packed}, {"loaded", Source::loaded}, {"direct", Source::direct}};
  if (!options.lhs.empty()) plan.lhs = sources.at(options.lhs);
  if (!options.rhs.empty()) plan.rhs = sources.at(options.rhs);
  if (options.tile.size() == 5) {
    plan.tile.mr = options.tile[0], plan.tile.nv = options.tile[1], plan.tile.kc = options.tile[2];
    plan.tile.mc = options.tile[3], plan.tile.nc = options.tile[4];
  }
  return plan;
}

/// One implementation of the matmul.
struct Contender {
  std::string name;
  std::function<void(const float* rhs)> run;
  std::vector<double> times{};
  double seconds() const { return median(times); }
};

/// Runs the contenders in rotation until the time is up. Threads of peers spin after a call (OpenBLAS's for over 40
/// ms) and take CPU time from the next contender, so each round starts after a pause. The first call of a round is
/// not counted, because it wakes the threads and refills the caches.
void take_turns(const GemmCase& c, const Options& options, const Operands& data, std::vector<Contender>& all,
                const std::function<void()>& beside) {
  const int repeats = std::max({1, c.copies / 4, static_cast<int>(2e8 * options.threads / c.flops())});
  std::int64_t turn = 0;
  const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
  for (int rounds = 0; rounds < 3 || Clock::now() < end; ++rounds) {
    beside();
    for (Contender& one : all) {
      if (options.threads > 1) std::this_thread::sleep_for(std::chrono::milliseconds(100));
      if (options.threads > 1 || c.flops() < 4e9) one.run(data.right(turn++, c.copies));
      const double seconds = seconds_of(options.threads == 1, [&] {
        for (int i = 0; i < repeats; ++i) one.run(data.right(turn++, c.copies));
      });
      one.times.push_back(seconds / repeats);
    }
  }
}

/// The result of a case: shares of the peak, and peers' times relative to Lathe's.
struct Outcome {
  double share = 0, peer = 0, scaling = 0;
};

class Bench {
 public:
  explicit Bench(const Options& options)
      : options_(options), probe_(options.target), threads_(options.threads), single_(1) {
    bandwidth_ = measure_read_bandwidth(options.threads, bandwidth_probe_bytes(), 0.3).median;
    fmt::print("{} threads; {}; read bandwidth {:.1f} GB/s\n", options.threads,
               options.peers ? describe_gemm_peers(options.openblas) : "no peers", bandwidth_ / 1e9);
  }

  void group(const GemmGroup& group) {
    std::vector<Outcome> outcomes;
    for (const GemmCase& c : group.cases)
      if (options_.only.empty() || (group.name + " " + c.name).find(options_.only) != std::string::npos)
        outcomes.push_back(measure(c, group.reach));
    if (outcomes.empty()) return;
    double share = 1e9, peer = 1e9, product = 0, scaling = 1e9;
    for (const Outcome& o : outcomes) {
      share = std::min(share, o.share), peer = std::min(peer, o.peer), scaling = std::min(scaling, o.scaling);
      product += std::log(o.peer), all_ += std::log(o.peer), ++cases_;
    }
    fmt::print("== {}: {} products, at least {:.1f}%", group.name, outcomes.size(), 100 * share);
    if (group.reach > 0) fmt::print(" (to reach: {:.0f}%)", 100 * group.reach);
    if (options_.peers)
      fmt::print(", at least {:.2f}x the better peer, geometric mean {:.2f}x", peer,
                 std::exp(product / static_cast<double>(outcomes.size())));
    if (options_.threads > 1) fmt::print(", {} threads at least {:.2f}x one", options_.threads, scaling);
    fmt::print("\n\n");
  }

  void finish() const {
    if (options_.peers && cases_ > 0)
      fmt::print("all {} products: geometric mean {:.2f}x the better peer\n", cases_, std::exp(all_ / cases_));
  }

 private:
  Outcome measure(const GemmCase& c, double reach) {
    const cpu::GemmPlan plan = plan_of(c, options_);
    CompiledGemm gemm(c, plan, !options_.dims, options_.target);
    if (options_.assembly) fmt::print("{}\n", codegen::emit_assembly(gemm.kernels()[0], options_.target));
    const Operands data(c);
    const float* const lhs = floats(data.lhs);
    float* const result = floats(data.result);
    const auto run = [&](ThreadPool& threads, const float* rhs) {
      gemm.pack(threads, lhs, rhs), gemm.multiply(threads, lhs, rhs, result);
    };
    run(threads_, floats(data.rhs));
    const double error = worst_error(c, data);
    std::vector<Contender> all = {{"Lathe", [&](const float* rhs) { run(threads_, rhs); }},
                                  {"alone", [&](const float* rhs) { gemm.multiply(threads_, lhs, rhs, result); }}};
    if (options_.threads > 1) all.push_back({"one thread", [&](const float* rhs) { run(single_, rhs); }});
    const std::size_t own = all.size();
    std::vector<std::unique_ptr<GemmPeer>> peers;
    if (options_.peers) peers = gemm_peers(c, threads_, options_.openblas);
    for (const auto& peer : peers)
      all.push_back({peer->name(), [&](const float* rhs) { peer->run(lhs, rhs, result); }});
    std::vector<double> peaks;
    take_turns(c, options_, data, all,
               [&] { peaks.push_back(probe_.work() / seconds_of(true, [&] { probe_.run(); })); });
    return report(c, plan, all, own, median(peaks) * options_.threads, reach, error);
  }

  Outcome report(const GemmCase& c, const cpu::GemmPlan& plan, const std::vector<Contender>& all, std::size_t own,
                 double peak, double reach, double error) const {
    const bool streamed = c.copies > 1 && c.m == 1;
    const double bytes = 4 * static_cast<double>(c.n * c.k);
    const auto share = [&](const Contender& one) {
      return (streamed ? bytes / bandwidth_ : c.flops() / peak) / one.seconds();
    };
    const char* sources[] = {"packed", "loaded", "direct"};
    Outcome outcome{.share = share(all[0])};
    fmt::print("{:22} {:>4}x{:>4}x{:>5}x{:<4} {:6}/{:6} {:9.1f} us {:6.1f} GF/s {:5.1f}%{} alone {:5.1f}%", c.name,
               c.batch, c.m, c.n, c.k, sources[static_cast<int>(plan.lhs)], sources[static_cast<int>(plan.rhs)],
               all[0].seconds() * 1e6, c.flops() / all[0].seconds() / 1e9, 100 * outcome.share,
               outcome.share < reach ? "<" : " ", 100 * share(all[1]));
    double best = 1e9;
    for (std::size_t i = own; i < all.size(); ++i) {
      best = std::min(best, all[i].seconds() / all[0].seconds());
      fmt::print("  {} {:5.1f}%", all[i].name, 100 * share(all[i]));
    }
    if (all.size() > own) fmt::print("  {:5.2f}x{}", best, best < 1 ? "<" : " ");
    outcome.peer = best;
    if (options_.threads > 1) {
      outcome.scaling = all[2].seconds() / all[0].seconds();
      fmt::print("  scaling {:.2f}{}", outcome.scaling, reach > 0 && outcome.scaling < 1.85 ? "<" : " ");
    }
    fmt::print(" peak {:.0f} error {:.1e}{}\n", peak / 1e9, error, error > 1e-6 ? " WRONG" : "");
    std::fflush(stdout);
    return outcome;
  }

  Options options_;
  PeakProbe probe_;
  ThreadPool threads_, single_;
  double bandwidth_ = 0, all_ = 0;
  int cases_ = 0;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto value = [&]() -> std::string { return i + 1 < argc ? argv[++i] : ""; };
    const std::map<std::string, std::string*> texts = {{"--only", &options.only},
                                                       {"--case", &options.own},
                                                       {"--lhs", &options.lhs},
                                                       {"--rhs", &options.rhs},
                                                       {"--openblas", &options.openblas}};
    if (texts.count(flag))
      *texts.at(flag) = value();
    else if (flag == "--threads")
      options.threads = std::stoi(value());
    else if (flag == "--seconds")
      options.seconds = std::stod(value());
    else if (flag == "--cpu")
      options.target = codegen::TargetCpu::named(value());
    else if (flag == "--copies")
      options.copies = std::stoi(value());
    else if (flag == "--dims")
      options.dims = true;
    else if (flag == "--asm")
      options.assembly = true;
    else if (flag == "--no-peers")
      options.peers = false;
    else if (flag == "--tile") {
      const std::string text = value();
      for (std::size_t at = 0; at < text.size(); at = std::min(text.find(',', at), text.size() - 1) + 1)
        options.tile.push_back(std::stoi(text.substr(at)));
    } else {
      fmt::print(stderr, "unknown option {}\n", flag);
      std::exit(2);
    }
  }
  return options;
}

int run(int argc, char** argv) {
  const Options options = parse(argc, argv);
  Bench bench(options);
  if (!options.own.empty()) {
    GemmCase own = own_gemm_case(options.own);
    own.copies = options.copies;
    bench.group({"own", 0, {own}});
    return 0;
  }
  for (const GemmGroup& group : gemm_table()) bench.group(group);
  bench.finish();
  return 0;
}

}  // namespace
}  // namespace lathe::bench

int main(int argc, char** argv) { return lathe::bench::run(argc, argv); }
