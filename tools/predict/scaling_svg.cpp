#include "tools/predict/scaling_svg.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <sstream>
#include <vector>

#include "passes/memory/memory_plan.h"
#include "passes/shard/predict/rate_text.h"
#include "tools/page/svg_text.h"

namespace lathe::tools {

namespace {

using shard::ScalingPoint;

constexpr double page_width = 860, page_height = 780, page_left = 92, page_right = 28, panel_height = 168,
                 panel_distance = 224;
constexpr double first_panel = 96;

/// One curve in a panel.
struct Curve {
  std::string name;
  const char* color;
  std::function<double(const ScalingPoint&)> value;
};

struct Panel {
  std::string title;
  std::vector<Curve> curves;
  std::function<std::string(double)> label;  ///< label of a tick
  double most = 0;                           ///< top of the panel; 0: the maximum of the curves
};

/// Returns 1, 2, 4, .. times a power of `base`, so that `count` ticks reach `most`. Ticks of bytes are round numbers.
double tick_distance(double most, int count, double base) {
  const double power = std::pow(base, std::floor(std::log(most / count) / std::log(base)));
  for (double factor = 1; factor < base; factor *= 2)
    if (factor * power * count >= most) return factor * power;
  return base * power;
}

class Drawing {
 public:
  explicit Drawing(const std::vector<ScalingPoint>& points) : points_(points) {
    for (const ScalingPoint& point : points) most_ranks_ = std::max(most_ranks_, std::log2(point.mesh.size()));
  }

  std::string panel(const Panel& panel, int number, double base) const {
    const double top = first_panel + panel_distance * number;
    double most = panel.most;
    for (const Curve& curve : panel.curves)
      for (const ScalingPoint& point : points_) most = panel.most > 0 ? most : std::max(most, curve.value(point));
    if (!(most > 0)) most = 1;
    const double tick = panel.most > 0 ? most / 4 : tick_distance(most, 4, base);
    const double high = std::ceil(most / tick - 1e-9) * tick;
    std::string text = fmt::format("<text x=\"{}\" y=\"{}\" font-weight=\"bold\">{}</text>\n", page_left, top - 12,
                                   escaped(panel.title));
    text += grid(top, tick, high, panel.label);
    double x = page_width - page_right;
    for (auto curve = panel.curves.rbegin(); curve != panel.curves.rend(); ++curve) {
      x -= 8.0 * static_cast<double>(curve->name.size()) + 16;
      text += fmt::format(
          "<rect x=\"{:.0f}\" y=\"{}\" width=\"14\" height=\"4\" fill=\"{}\"/><text x=\"{:.0f}\" "
          "y=\"{}\">{}</text>\n",
          x, top - 18, curve->color, x + 19, top - 12, escaped(curve->name));
      x -= 14;
      text += line(*curve, top, high);
    }
    return text;
  }

 private:
  double x(const ScalingPoint& point) const {
    return page_left +
           (page_width - page_left - page_right) * std::log2(point.mesh.size()) / std::max(1.0, most_ranks_);
  }

  std::string grid(double top, double tick, double high, const std::function<std::string(double)>& label) const {
    std::string text;
    for (double v = 0; v <= high + tick / 2; v += tick) {
      const double y = top + panel_height * (1 - v / high);
      text += fmt::format(
          "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2:.1f}\" y2=\"{2:.1f}\" stroke=\"#e3e6ea\"/>"
          "<text x=\"{3}\" y=\"{4:.1f}\" text-anchor=\"end\">{5}</text>\n",
          page_left, page_width - page_right, y, page_left - 8, y + 4, label(v));
    }
    for (const ScalingPoint& point : points_)
      text += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\">{}</text>\n", x(point),
                          top + panel_height + 18, point.mesh.size());
    return text;
  }

  std::string line(const Curve& curve, double top, double high) const {
    std::string path, dots;
    for (const ScalingPoint& point : points_) {
      const double y = top + panel_height * (1 - curve.value(point) / high);
      path += fmt::format("{:.1f},{:.1f} ", x(point), y);
      dots += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"3\" fill=\"{}\"/>", x(point), y, curve.color);
    }
    return fmt::format("<polyline fill=\"none\" stroke=\"{}\" stroke-width=\"2\" points=\"{}\"/>{}\n", curve.color,
                       path, dots);
  }

  const std::vector<ScalingPoint>& points_;
  double most_ranks_ = 0;
};

std::vector<Panel> panels(bool is_compiled) {
  const auto bytes = [](double v) { return format_bytes(static_cast<std::int64_t>(v)); };
  return {{"Time of a step",
           {{"step", "#1f6feb", [](const ScalingPoint& p) { return p.time.step(); }},
            {"products", "#2da44e", [](const ScalingPoint& p) { return p.time.products; }},
            {"collectives", "#d1480b", [](const ScalingPoint& p) { return p.time.collectives; }}},
           [](double v) { return shard::seconds_text(v); }},
          {"Efficiency",
           {{"share of the peak of all processes", "#1f6feb", [](const ScalingPoint& p) { return p.efficiency; }}},
           [](double v) { return fmt::format("{:.0f}%", 100 * v); },
           1},
          {"Bytes per process",
           {{"sent", "#d1480b", [](const ScalingPoint& p) { return static_cast<double>(p.sent.tensors); }},
            {is_compiled ? "planned memory" : "memory without temporaries", "#1f6feb",
             [](const ScalingPoint& p) { return static_cast<double>(p.held); }}},
           bytes}};
}

/// Breaks a text into lines that fit the page.
std::vector<std::string> broken(const std::string& text) {
  constexpr std::size_t most = 130;
  std::vector<std::string> lines{""};
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    if (lines.back().size() + word.size() > most) lines.emplace_back();
    lines.back() += (lines.back().empty() ? "" : " ") + word;
  }
  return lines;
}

}  // namespace

std::string scaling_svg(const std::string& title, const shard::Scaling& scaling, const shard::ScalingCurve& curve) {
  std::string svg = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
      "font-family=\"sans-serif\" font-size=\"12\" fill=\"#33383f\">\n"
      "<rect width=\"{0}\" height=\"{1}\" fill=\"white\"/>\n"
      "<text x=\"24\" y=\"28\" font-size=\"16\" font-weight=\"bold\">{2}</text>\n",
      page_width, page_height, escaped(title));
  double y = 46;
  for (const std::string& line : broken(to_string(scaling.rates))) {
    svg += fmt::format("<text x=\"24\" y=\"{}\">{}</text>\n", y, escaped(line));
    y += 15;
  }
  const Drawing drawing(curve.points);
  const std::vector<Panel> all = panels(static_cast<bool>(scaling.compile));
  for (int i = 0; i < static_cast<int>(all.size()); ++i) svg += drawing.panel(all[i], i, i == 2 ? 1024 : 10);
  return svg +
         fmt::format("<text x=\"{:.0f}\" y=\"{}\" text-anchor=\"middle\">processes (axis {} grows)</text>\n",
                     (page_left + page_width - page_right) / 2, page_height - 20, escaped(scaling.growing)) +
         "</svg>\n";
}

}  // namespace lathe::tools
