#include <fmt/core.h>

#include <algorithm>
#include <map>

#include "runtime/trace/role.h"
#include "runtime/trace/trace.h"

namespace lathe {

namespace {

struct Line {
  Role role;
  Reached total;  // over all runs
  std::int64_t launches = 0;
};

std::vector<Line> lines_of(const Trace& trace) {
  std::map<Role, Line> by_role;
  for (const TracedRun& run : trace.runs)
    for (const LaunchTime& time : run.launches) {
      const Launch& launch = trace.program.launches[time.launch];
      Role role = role_of(trace.program, launch);
      Line& line = by_role[role];
      line.role = std::move(role);
      line.total.seconds += time.seconds;
      line.total.gflop += time.gflops;
      line.total.gigabytes += static_cast<double>(time.runs) * gigabytes_of(launch, trace.dims);
      line.launches += time.runs;
    }
  std::vector<Line> lines;
  for (auto& [role, line] : by_role) lines.push_back(std::move(line));
  std::stable_sort(lines.begin(), lines.end(),
                   [](const Line& a, const Line& b) { return a.total.seconds > b.total.seconds; });
  return lines;
}

std::string duration(double seconds) {
  return seconds >= 1e-3 ? fmt::format("{:.3f} ms", seconds * 1e3) : fmt::format("{:.1f} us", seconds * 1e6);
}

std::string rate(double value) { return value > 0 ? fmt::format("{:.1f}", value) : ""; }

std::string text_of(const Line& line, const Trace& trace, double all) {
  const double runs = static_cast<double>(trace.runs.size());
  const Reached& total = line.total;
  std::string what = line.role.what;
  if (!line.role.where.empty()) what += ", " + line.role.where;
  what += " (" + line.role.ops + ")";
  if (!line.role.source.empty()) what += " " + line.role.source;
  const bool arithmetic = total.bound_by_arithmetic(trace.machine);
  return fmt::format(
      "{:>10} {:>5.1f}% {:>5} {:>10} {:>8} {:>7}  {:>4.0f}% {:<6}  {}\n", duration(total.seconds / runs),
      100 * total.seconds / all, static_cast<std::int64_t>(static_cast<double>(line.launches) / runs),
      duration(total.seconds / static_cast<double>(line.launches)), rate(total.gflops()),
      rate(total.gigabytes_per_second()), 100 * total.share(trace.machine), arithmetic ? "FMA" : "memory", what);
}

}  // namespace

std::string top_table(const Trace& trace, int most) {
  const std::vector<Line> lines = lines_of(trace);
  Reached all;
  double wall = 0;
  for (const Line& line : lines) {
    all.seconds += line.total.seconds;
    all.gflop += line.total.gflop;
  }
  for (const TracedRun& run : trace.runs) wall += run.seconds;
  const double runs = static_cast<double>(std::max<std::size_t>(trace.runs.size(), 1));
  std::string text = fmt::format(
      "{} run{} of {} on average, {} in kernels: {:.3f} GFLOP in products and sums, {:.1f} GFLOP/s, {:.0f}% of FMA "
      "peak\n\n",
      trace.runs.size(), trace.runs.size() == 1 ? "" : "s", duration(wall / runs), duration(all.seconds / runs),
      all.gflop / runs, wall > 0 ? all.gflop / wall : 0,
      wall > 0 && trace.machine.flops > 0 ? 1e11 * all.gflop / wall / trace.machine.flops : 0);
  text += fmt::format("{:>10} {:>6} {:>5} {:>10} {:>8} {:>7}  {:<12}  what, where (ops) source\n", "a run", "share",
                      "times", "each", "GFLOP/s", "GB/s", "reaches of");
  const std::size_t shown = std::min(lines.size(), static_cast<std::size_t>(std::max(most, 0)));
  for (std::size_t i = 0; i < shown; ++i) text += text_of(lines[i], trace, std::max(all.seconds, 1e-12));
  if (shown < lines.size()) {
    double rest = 0;
    for (std::size_t i = shown; i < lines.size(); ++i) rest += lines[i].total.seconds;
    text += fmt::format("{:>10} {:>5.1f}%  in {} more\n", duration(rest / runs),
                        100 * rest / std::max(all.seconds, 1e-12), lines.size() - shown);
  }
  text += fmt::format(
      "\nA line adds up the same kernel of all layers (* in a name). \"reaches\": how near it comes to what bounds "
      "it,\n"
      "the FMA peak of {:.1f} GFLOP/s or the memory's {:.1f} GB/s, counting each byte once; over 100% means that "
      "the\n"
      "data was still in a cache.\n",
      trace.machine.flops * 1e-9, trace.machine.bytes * 1e-9);
  return text;
}

}  // namespace lathe
