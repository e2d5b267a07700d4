#include "tools/predict/scaling_table.h"

#include <fmt/core.h>

#include <algorithm>
#include <string_view>
#include <vector>

#include "passes/memory/memory_plan.h"
#include "passes/shard/predict/rate_text.h"

namespace lathe::tools {

namespace {

std::string dims_text(const DimBindings& dims) {
  std::string text;
  for (const auto& [name, size] : dims) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, size);
  return text;
}

constexpr std::string_view notes_of_products =
    "step = products + waiting, the time of collectives that products do not hide. sent, scalars and memory are\n"
    "bytes per process, memory without temporaries. Left out: element-wise ops, memory traffic, shared links,\n"
    "waiting for slower processes (docs/distributed.md).\n";
constexpr std::string_view notes_of_programs =
    "step = products + others + waiting. others: time of kernels for memory and launches, beyond their products.\n"
    "waiting: time of collectives that kernels do not hide. sent, scalars and memory are bytes per process, memory\n"
    "as planned, with temporaries. Left out: shared links, waiting for slower processes. Rates of GPUs are from\n"
    "data sheets and estimates: nothing has been measured on a GPU yet (docs/distributed.md).\n";

}  // namespace

std::string scaling_table(const shard::Scaling& scaling, const shard::ScalingCurve& curve) {
  std::string text = to_string(scaling.rates);
  text += fmt::format("axis {} grows, with the dims that are split over it; other axes and sizes are fixed: {}{}\n",
                      scaling.growing, scaling.mesh.to_string(),
                      scaling.dims.empty() ? "" : " with " + dims_text(scaling.dims));
  std::size_t width = 4;
  for (const shard::ScalingPoint& point : curve.points) width = std::max(width, point.mesh.to_string().size());
  const bool is_compiled = static_cast<bool>(scaling.compile);
  const auto line = [&](const auto& ranks, const std::string& mesh, std::vector<std::string> cells) {
    if (!is_compiled) cells.erase(cells.begin() + 2);  // no column for memory time
    std::string text_of_cells;
    for (const std::string& cell : cells) text_of_cells += fmt::format(" {:>11}", cell);
    return fmt::format("{:>6}  {:<{}}{}\n", ranks, mesh, width, text_of_cells);
  };
  text += line("ranks", "mesh",
               {"step", "products", "others", "collectives", "waiting", "efficiency", "sent", "scalars", "memory"});
  for (const shard::ScalingPoint& point : curve.points) {
    const shard::StepTime& time = point.time;
    text += line(point.mesh.size(), point.mesh.to_string(),
                 {shard::seconds_text(time.step()), shard::seconds_text(time.products),
                  shard::seconds_text(time.memory), shard::seconds_text(time.collectives),
                  shard::seconds_text(time.waiting), fmt::format("{:.1f}%", 100 * point.efficiency),
                  format_bytes(point.sent.tensors), format_bytes(point.sent.scalars), format_bytes(point.held)});
    if (point.kept_whole == 0) continue;
    text.pop_back();
    text += fmt::format("  {} parameters stay whole: no dim is divisible\n", point.kept_whole);
  }
  if (!curve.stopped.empty()) text += "stopped: " + curve.stopped + "\n";
  return text.append(is_compiled ? notes_of_programs : notes_of_products);
}

}  // namespace lathe::tools
