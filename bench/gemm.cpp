/// Speed of the matrix-product schedules: GFLOP/s and share of the FMA peak, beside OpenBLAS in the same run.
///   bench_gemm [--threads N] [--only TEXT | --case "48x256x256x64 k r"] [--seconds S] [--tile mr,nv,kc,mc,nc] [--lhs
///   SOURCE] [--rhs SOURCE]
///              [--dims] [--asm] [--no-blas] [--quantile Q] [--cpu x86-64-v3]
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <fmt/core.h>

#include "bench/gemm_case.h"

#ifdef LATHE_OPENBLAS
#include <cblas.h>
#endif

namespace lathe::bench {
namespace {

using schedule::LaneAxis;
using schedule::Source;
using Clock = std::chrono::steady_clock;

struct Options {
  int threads = 1;
  std::string only, own, lhs, rhs;
  double seconds = 0.6, part = 0.5;
  std::vector<int> tile;
  codegen::TargetCpu target = codegen::TargetCpu::host();
  bool dims = false, assembly = false, blas = true;
};

std::vector<GemmCase> cases() {
  const LaneAxis k = LaneAxis::k, row = LaneAxis::row;
  std::vector<GemmCase> all = {
      {"square 1024 x W[k,n]", 1, 1024, 1024, 1024, k, row},
      {"square 1024 x W[n,k]", 1, 1024, 1024, 1024, k, k},
      {"square 2048 x W[n,k]", 1, 2048, 2048, 2048, k, k},
  };
  const std::int64_t tokens = 1024;
  const std::pair<std::int64_t, std::int64_t> layers[] = {
      {1152, 384}, {384, 384}, {1536, 384}, {384, 1536}, {65, 384}};
  for (const auto& [n, kk] : layers) all.push_back({fmt::format("y  {}x{}", n, kk), 1, tokens, n, kk, k, k});
  for (const auto& [n, kk] : layers) all.push_back({fmt::format("dX {}x{}", n, kk), 1, tokens, kk, n, k, row});
  for (const auto& [n, kk] : layers) all.push_back({fmt::format("dW {}x{}", n, kk), 1, n, kk, tokens, row, row});
  all.push_back({"attention q k'", 48, 256, 256, 64, k, k});
  all.push_back({"attention p v", 48, 256, 64, 256, k, row});
  all.push_back({"attention p' dy", 48, 256, 64, 256, row, row});
  all.push_back({"small q k'", 4, 256, 256, 64, k, k});
  all.push_back({"small p v", 4, 256, 64, 256, k, row});
  all.push_back({"small p' dy", 4, 256, 64, 256, row, row});
  all.push_back({"square 128 x48", 48, 128, 128, 128, k, row});
  all.push_back({"square 32 x384", 384, 32, 32, 32, k, row});
  for (const std::int64_t m : {1, 4, 8}) {
    all.push_back({fmt::format("decode M={} W[n,k]", m), 1, m, 1536, 384, k, k});
    all.push_back({fmt::format("decode M={} W[k,n]", m), 1, m, 1536, 384, k, row});
  }
  return all;
}

/// "1024x384x1152 k r": [batch x] m x n x k and the lane axes.
GemmCase own_case(const std::string& text) {
  GemmCase c{.name = "own", .batch = 1, .m = 1, .n = 1, .k = 1, .lhs = LaneAxis::k, .rhs = LaneAxis::k};
  std::vector<std::int64_t> sizes;
  for (std::size_t at = 0; at < text.size() && text[at] != ' ';) {
    std::size_t used = 0;
    sizes.push_back(std::stoll(text.substr(at), &used));
    at += used + (at + used < text.size() && text[at + used] == 'x' ? 1 : 0);
  }
  if (sizes.size() == 4) c.batch = sizes[0];
  if (sizes.size() >= 3) c.m = sizes[sizes.size() - 3], c.n = sizes[sizes.size() - 2], c.k = sizes[sizes.size() - 1];
  if (text.find(" r ") != std::string::npos) c.lhs = LaneAxis::row;
  if (text.back() == 'r') c.rhs = LaneAxis::row;
  return c;
}

#ifdef LATHE_OPENBLAS
void blas(const GemmCase& c, const float* lhs, const float* rhs, float* result, std::int64_t first,
          std::int64_t last) {
  const auto m = static_cast<int>(c.m), n = static_cast<int>(c.n), k = static_cast<int>(c.k);
  const bool left_k = c.lhs == LaneAxis::k, right_k = c.rhs == LaneAxis::k;
  for (std::int64_t i = first; i < last; ++i)
    cblas_sgemm(CblasRowMajor, left_k ? CblasNoTrans : CblasTrans, right_k ? CblasTrans : CblasNoTrans, m, n, k, 1.0F,
                lhs + i * c.m * c.k, left_k ? k : m, rhs + i * c.n * c.k, right_k ? k : n, 0.0F,
                result + i * c.m * c.n, n);
}

/// A batch is shared among the threads; a single product is OpenBLAS's to share.
void blas_all(Team& team, const GemmCase& c, const float* lhs, const float* rhs, float* result) {
  openblas_set_num_threads(c.batch == 1 ? team.threads() : 1);
  if (c.batch == 1) return blas(c, lhs, rhs, result, 0, 1);
  team.run(c.batch, [&](std::int64_t begin, std::int64_t end) { blas(c, lhs, rhs, result, begin, end); });
}
#endif

/// Seconds of a call: of this thread's processor time where it works alone, so that other processes do not count.
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

double quantile(std::vector<double> values, double part) {
  const auto at = static_cast<std::size_t>(part * static_cast<double>(values.size() - 1));
  std::nth_element(values.begin(), values.begin() + static_cast<std::ptrdiff_t>(at), values.end());
  return values[at];
}

/// The worst error over some results, relative to the sum of magnitudes.
double worst_error(const GemmCase& c, const float* lhs, const float* rhs, const float* result) {
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

schedule::GemmPlan plan_of(const GemmCase& c, const Options& options) {
  schedule::GemmPlan plan = schedule::plan_gemm({.compute = f32,
                                                 .vector_bits = options.target.vector_bits,
                                                 .batch = c.batch,
                                                 .m = c.m,
                                                 .n = c.n,
                                                 .k = c.k,
                                                 .lhs_axis = c.lhs,
                                                 .rhs_axis = c.rhs});
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

void measure(const GemmCase& c, const Options& options, Team& team, const PeakProbe& probe) {
  const schedule::GemmPlan plan = plan_of(c, options);
  CompiledGemm gemm(c, plan, !options.dims, options.target);
  if (options.assembly) fmt::print("{}\n", codegen::emit_assembly(gemm.kernels()[0], options.target));
  const auto lhs = huge_floats(c.batch * c.m * c.k), rhs = huge_floats(c.batch * c.n * c.k);
  const auto result = huge_floats(c.batch * c.m * c.n);
  std::mt19937 random(7);
  std::uniform_real_distribution<float> uniform(-1, 1);
  for (std::int64_t i = 0; i < c.batch * c.m * c.k; ++i) lhs.get()[i] = uniform(random);
  for (std::int64_t i = 0; i < c.batch * c.n * c.k; ++i) rhs.get()[i] = uniform(random);

  const auto pack = [&] { gemm.pack(team, lhs.get(), rhs.get()); };
  const auto multiply = [&] { gemm.multiply(team, lhs.get(), rhs.get(), result.get()); };
  pack(), multiply();
  const double error = worst_error(c, lhs.get(), rhs.get(), result.get());
  const bool alone = team.threads() == 1;
  std::vector<double> peaks, packs, products, totals, others;
  const auto end = Clock::now() + std::chrono::duration<double>(options.seconds);
  const int repeats = std::max(1, static_cast<int>(2e8 / c.flops()));
  while (Clock::now() < end || totals.size() < 3) {
    peaks.push_back(probe.work() / seconds_of(true, [&] { probe.run(); }));
    double packing = 0, product = 0, other = 0;
    for (int i = 0; i < repeats; ++i) packing += seconds_of(alone, pack), product += seconds_of(alone, multiply);
#ifdef LATHE_OPENBLAS
    for (int i = 0; options.blas && i < repeats; ++i)
      other += seconds_of(alone, [&] { blas_all(team, c, lhs.get(), rhs.get(), result.get()); });
#endif
    packs.push_back(packing / repeats), products.push_back(product / repeats);
    totals.push_back((packing + product) / repeats), others.push_back(other / repeats);
  }
  const auto median = [&](const std::vector<double>& times) { return quantile(times, options.part); };
  const double peak = quantile(peaks, 1 - options.part) * team.threads(), total = median(totals),
               product = median(products);
  const auto share = [&](double seconds) { return 100 * c.flops() / seconds / peak; };
  const char* sources[] = {"packed", "loaded", "direct"};
  fmt::print(
      "{:22} {:>4}x{:>4}x{:>4}x{:<4} {:6}/{:6} {:8.1f} us  pack {:4.1f}%  {:6.1f} GF/s  {:5.1f}%  alone {:5.1f}%",
      c.name, c.batch, c.m, c.n, c.k, sources[static_cast<int>(plan.lhs)], sources[static_cast<int>(plan.rhs)],
      total * 1e6, 100 * median(packs) / total, c.flops() / total / 1e9, share(total), share(product));
  if (median(others) > 0) fmt::print("  OpenBLAS {:5.1f}%", share(median(others)));
  fmt::print("  peak {:.0f}{}\n", peak / 1e9, error > 1e-6 ? fmt::format("  WRONG {:.1e}", error) : "");
  std::fflush(stdout);
}

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i < argc; ++i) {
    const std::string flag = argv[i];
    const auto value = [&]() -> std::string { return i + 1 < argc ? argv[++i] : ""; };
    if (flag == "--threads")
      options.threads = std::stoi(value());
    else if (flag == "--only")
      options.only = value();
    else if (flag == "--seconds")
      options.seconds = std::stod(value());
    else if (flag == "--quantile")
      options.part = std::stod(value());
    else if (flag == "--cpu")
      options.target = codegen::TargetCpu::named(value());
    else if (flag == "--case")
      options.own = value();
    else if (flag == "--lhs")
      options.lhs = value();
    else if (flag == "--rhs")
      options.rhs = value();
    else if (flag == "--dims")
      options.dims = true;
    else if (flag == "--asm")
      options.assembly = true;
    else if (flag == "--no-blas")
      options.blas = false;
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
  const PeakProbe probe(options.target);
  Team team(options.threads);
  std::vector<GemmCase> all = cases();
  if (!options.own.empty()) all = {own_case(options.own)};
  for (const GemmCase& c : all)
    if (options.only.empty() || c.name.find(options.only) != std::string::npos) measure(c, options, team, probe);
  return 0;
}

}  // namespace
}  // namespace lathe::bench

int main(int argc, char** argv) { return lathe::bench::run(argc, argv); }
