#include "tools/predict/scaling_table.h"

#include <fmt/core.h>

#include <algorithm>

#include "passes/memory/memory_plan.h"
#include "passes/shard/rate_text.h"

namespace lathe::tools {

namespace {

std::string dims_text(const DimBindings& dims) {
  std::string text;
  for (const auto& [name, size] : dims) text += fmt::format("{}{}={}", text.empty() ? "" : ", ", name, size);
  return text;
}

}  // namespace

std::string scaling_table(const shard::Scaling& scaling, const shard::ScalingCurve& curve) {
  std::string text = to_string(scaling.rates);
  text += fmt::format("{} grows, and what is split over it; other axes and sizes stay: {}{}\n", scaling.growing,
                      scaling.mesh.to_string(), scaling.dims.empty() ? "" : " with " + dims_text(scaling.dims));
  std::size_t width = 4;
  for (const shard::ScalingPoint& point : curve.points) width = std::max(width, point.mesh.to_string().size());
  const auto line = [width](const auto& ranks, const std::string& mesh, const auto&... cells) {
    std::string cell_text;
    ((cell_text += fmt::format(" {:>11}", cells)), ...);
    return fmt::format("{:>6}  {:<{}}{}\n", ranks, mesh, width, cell_text);
  };
  text +=
      line("ranks", "mesh", "step", "products", "exchanges", "waiting", "efficiency", "sent", "scalars", "memory");
  for (const shard::ScalingPoint& point : curve.points) {
    const shard::StepTime& time = point.time;
    text += line(point.mesh.size(), point.mesh.to_string(), shard::seconds_text(time.step()),
                 shard::seconds_text(time.products), shard::seconds_text(time.exchanges),
                 shard::seconds_text(time.waiting), fmt::format("{:.1f}%", 100 * point.efficiency),
                 format_bytes(point.sent.tensors), format_bytes(point.sent.scalars), format_bytes(point.held));
    if (point.kept_whole == 0) continue;
    text.pop_back();
    text += fmt::format("  {} parameters stay whole: no dim divides\n", point.kept_whole);
  }
  if (!curve.stopped.empty()) text += "no further: " + curve.stopped + "\n";
  return text +
         "step = products + waiting, which is what no products hide of the exchanges; sent, scalars and memory are\n"
         "bytes of a process, memory without temporaries. Left out: element-wise ops, memory traffic, what a "
         "network\n"
         "shares, processes that wait for slower ones (docs/distributed.md).\n";
}

}  // namespace lathe::tools
