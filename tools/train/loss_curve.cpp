#include "tools/train/loss_curve.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>

#include "tools/page/svg_text.h"

namespace lathe::tools {

namespace {

constexpr double width = 860, height = 480, left = 64, right = 24, top = 48, bottom = 56;

struct Axes {
  double steps = 1, low = 0, high = 1;
  double x(double step) const { return left + (width - left - right) * step / steps; }
  double y(double loss) const {
    return top + (height - top - bottom) * (high - std::clamp(loss, low, high)) / (high - low);
  }
};

/// Returns 1, 2 or 5 times a power of ten, so that about `count` ticks fit into `range`.
double tick_distance(double range, int count) {
  const double rough = range / count, power = std::pow(10.0, std::floor(std::log10(rough)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= rough) return factor * power;
  return 10 * power;
}

Axes fit(const std::vector<LossPoint>& training, const std::vector<LossPoint>& validation) {
  Axes axes;
  double low = INFINITY, high = -INFINITY;
  for (const auto* curve : {&training, &validation})
    for (const LossPoint& p : *curve) {
      if (!std::isfinite(p.loss)) continue;
      axes.steps = std::max(axes.steps, static_cast<double>(p.step));
      low = std::min(low, p.loss);
      high = std::max(high, p.loss);
    }
  if (!(low < high)) return axes;
  const double tick = tick_distance(high - low, 6);
  axes.low = std::floor(low / tick) * tick;
  axes.high = std::ceil(high / tick) * tick;
  return axes;
}

std::string polyline(const Axes& axes, const std::vector<LossPoint>& points, const char* style) {
  std::string path;
  for (const LossPoint& p : points)
    if (std::isfinite(p.loss))
      path += fmt::format("{:.1f},{:.1f} ", axes.x(static_cast<double>(p.step)), axes.y(p.loss));
  return fmt::format("<polyline fill=\"none\" {} points=\"{}\"/>\n", style, path);
}

std::vector<LossPoint> running_mean(const std::vector<LossPoint>& points) {
  constexpr double keep = 0.95;
  std::vector<LossPoint> smooth;
  double sum = 0, weight = 0;
  for (const LossPoint& p : points) {
    sum = keep * sum + (1 - keep) * p.loss;
    weight = keep * weight + (1 - keep);
    smooth.push_back({p.step, sum / weight});
  }
  return smooth;
}

std::string ticks(const Axes& axes) {
  std::string text;
  const double dy = tick_distance(axes.high - axes.low, 6), dx = tick_distance(axes.steps, 6);
  for (double v = axes.low; v <= axes.high + dy / 2; v += dy)
    text += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#e3e6ea\"/>"
        "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5:.3g}</text>\n",
        left, width - right, axes.y(v), left - 8, axes.y(v) + 4, v);
  for (double s = 0; s <= axes.steps + dx / 100; s += dx)
    text += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{:.0f}</text>\n", axes.x(s),
                        height - bottom + 20, s);
  return text;
}

std::string legend(bool validation) {
  std::string text = fmt::format(
      "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\" stroke=\"#1f6feb\" stroke-width=\"2.5\"/>"
      "<text x=\"{3}\" y=\"{4}\">training (running mean)</text>\n",
      width - 250, width - 226, top + 12, width - 218, top + 16);
  if (validation)
    text += fmt::format(
        "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\" stroke=\"#d1480b\" stroke-width=\"2.5\"/>"
        "<text x=\"{3}\" y=\"{4}\">validation</text>\n",
        width - 250, width - 226, top + 32, width - 218, top + 36);
  return text;
}

}  // namespace

std::string loss_curve_svg(const std::string& title, const std::vector<LossPoint>& training,
                           const std::vector<LossPoint>& validation, std::string_view unit) {
  const Axes axes = fit(training, validation);
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"13\" fill=\"#33383f\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<text x=\"{2}\" y=\"28\" font-size=\"16\" font-weight=\"bold\">{3}</text>\n",
      width, height, left, escaped(title));
  svg += ticks(axes);
  svg += fmt::format("<text x=\"{:.0f}\" y=\"{}\" text-anchor=\"middle\">step</text>\n", (left + width - right) / 2,
                     height - 14);
  svg += fmt::format(
      "<text transform=\"translate(18 {:.0f}) rotate(-90)\" text-anchor=\"middle\">loss, nats per {}</text>\n",
      (top + height - bottom) / 2, unit);
  svg += polyline(axes, training, "stroke=\"#1f6feb\" stroke-opacity=\"0.22\"");
  svg += polyline(axes, running_mean(training), "stroke=\"#1f6feb\" stroke-width=\"2.5\"");
  svg += polyline(axes, validation, "stroke=\"#d1480b\" stroke-width=\"2.5\"");
  for (const LossPoint& p : validation)
    svg += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"#d1480b\"/>\n",
                       axes.x(static_cast<double>(p.step)), axes.y(p.loss));
  return svg + legend(!validation.empty()) + "</svg>\n";
}

}  // namespace lathe::tools
