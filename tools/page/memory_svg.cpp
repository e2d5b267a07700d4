#include "tools/page/memory_svg.h"

#include <fmt/core.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <vector>

#include "tools/page/svg_text.h"

namespace lathe::tools {

namespace {

using Block = MemoryPlan::Block;

constexpr double svg_width = 1200, svg_height = 760, plot_left = 96, plot_right = 24, plot_top = 92,
                 plot_bottom = 118;
constexpr double plot_width = svg_width - plot_left - plot_right, plot_height = svg_height - plot_top - plot_bottom;
constexpr double strip_height = 14;

/// Returns the op of a buffer that is named like "%12 softmax weights".
std::string op_of(const ProgramBuffer& buffer) {
  if (buffer.kind == ProgramBuffer::Kind::scratch) return "scratch";
  const std::string& name = buffer.name;
  if (!name.starts_with('%')) return "workspace";
  const auto first = name.find(' ');
  if (first == name.npos) return "value";
  return name.substr(first + 1, name.find(' ', first + 1) - first - 1);
}

/// Returns 1, 2, 4 .. 512 times a power of 1024, so that about `count` ticks reach `most`.
std::int64_t byte_tick(std::int64_t most, int count) {
  std::int64_t tick = 1;
  while (tick * count < most) tick *= 2;
  return tick;
}

class Picture {
 public:
  Picture(const Program& program, const MemoryPlan& plan)
      : program_(program), plan_(plan), live_(std::max<std::size_t>(program.launches.size(), 1), 0) {
    for (const Block& block : plan.blocks)
      for (int launch = block.first; launch <= std::min(block.last, last_launch()); ++launch)
        live_[static_cast<std::size_t>(launch)] += block.bytes;
    std::map<std::string, std::int64_t> bytes;
    for (const Block& block : plan.blocks)
      bytes[op_of(buffer(block))] += block.bytes * (block.last - block.first + 1);
    for (const auto& [op, weight] : bytes) ops_.emplace_back(op, weight);
    std::ranges::stable_sort(ops_, std::greater(), &std::pair<std::string, std::int64_t>::second);
  }

  std::string text() const {
    std::string svg = fmt::format(
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {0} {1}\" width=\"{0}\" height=\"{1}\" "
        "font-family=\"sans-serif\" font-size=\"12\">\n<rect width=\"{0}\" height=\"{1}\" fill=\"#fff\"/>\n",
        svg_width, svg_height);
    svg += heading() + legend() + grid();
    for (const Block& block : plan_.blocks) svg += rectangle(block);
    return svg + live_line() + peak() + strip() + "</svg>\n";
  }

 private:
  int last_launch() const { return static_cast<int>(live_.size()) - 1; }
  const ProgramBuffer& buffer(const Block& block) const {
    return program_.buffers[static_cast<std::size_t>(block.buffer)];
  }
  double top_bytes() const { return std::max<double>(1, static_cast<double>(plan_.arena_bytes)); }
  double x(double launch) const { return plot_left + plot_width * launch / static_cast<double>(live_.size()); }
  double y(double bytes) const { return plot_top + plot_height * (1 - bytes / top_bytes()); }

  /// The ops with the most bytes have distinct colors, all others are gray.
  std::string color(const std::string& op) const {
    static constexpr const char* colors[] = {"#8ecae6", "#ffb703", "#95d5b2", "#f4a6c0", "#cdb4db",
                                             "#ffd6a5", "#a3b8ff", "#d4c27d", "#90dbd1", "#e5989b"};
    for (std::size_t i = 0; i < std::min(std::size(colors), ops_.size()); ++i)
      if (ops_[i].first == op) return colors[i];
    return "#ced4da";
  }

  std::string heading() const {
    std::string line = fmt::format("arena {}, at least {} needed, arguments and results {}{}; {} launches",
                                   format_bytes(plan_.arena_bytes), format_bytes(plan_.lower_bound),
                                   format_bytes(plan_.argument_bytes), kept_text(plan_), program_.launches.size());
    return fmt::format(
        "<text x=\"{0}\" y=\"26\" font-size=\"17\" font-weight=\"bold\">Memory plan of @{1}</text>\n"
        "<text x=\"{0}\" y=\"46\" fill=\"#555\">{2}</text>\n",
        plot_left, escaped(program_.name), escaped(line));
  }

  std::string legend() const {
    std::string text;
    double at = plot_left;
    for (std::size_t i = 0; i < std::min<std::size_t>(ops_.size(), 10); ++i) {
      const std::string& op = ops_[i].first;
      const double width = 7.2 * static_cast<double>(op.size()) + 32;
      if (at + width > svg_width - plot_right) break;
      text += fmt::format(
          "<rect x=\"{:.0f}\" y=\"58\" width=\"12\" height=\"12\" fill=\"{}\" stroke=\"#0003\"/>"
          "<text x=\"{:.0f}\" y=\"68\">{}</text>\n",
          at, color(op), at + 17, escaped(op));
      at += width;
    }
    return text;
  }

  std::string grid() const {
    std::string text;
    const std::int64_t tick = byte_tick(std::max<std::int64_t>(1, plan_.arena_bytes), 6);
    for (std::int64_t bytes = 0; bytes <= plan_.arena_bytes; bytes += tick) {
      const double at = y(static_cast<double>(bytes));
      text += fmt::format(
          "<line x1=\"{}\" x2=\"{}\" y1=\"{:.1f}\" y2=\"{:.1f}\" stroke=\"#ddd\"/>"
          "<text x=\"{}\" y=\"{:.1f}\" text-anchor=\"end\" fill=\"#555\">{}</text>\n",
          plot_left, svg_width - plot_right, at, at, plot_left - 8, at + 4, format_bytes(bytes));
    }
    const auto launches = static_cast<std::int64_t>(live_.size());
    std::int64_t step = 1;
    for (int i = 0; step * 12 < launches; ++i)
      step = step / (i % 3 == 2 ? 4 : 1) * (i % 3 == 2 ? 10 : 2);  // 1, 2, 4, 10 ..
    const double below = plot_top + plot_height + strip_height + 20;
    for (std::int64_t launch = 0; launch < launches; launch += step)
      text += fmt::format("<text x=\"{:.1f}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">{}</text>\n",
                          x(static_cast<double>(launch) + 0.5), below, launch);
    return text + fmt::format("<text x=\"{}\" y=\"{}\" text-anchor=\"middle\" fill=\"#555\">launch</text>\n",
                              plot_left + plot_width / 2, below + 20);
  }

  std::string rectangle(const Block& block) const {
    const ProgramBuffer& value = buffer(block);
    const double left = x(block.first), width = x(block.last + 1) - left;
    const double top = y(static_cast<double>(block.offset + block.bytes)),
                 height = plot_height * static_cast<double>(block.bytes) / top_bytes();
    const std::string launches = block.first == block.last
                                     ? fmt::format("launch {}", block.first)
                                     : fmt::format("launches {} to {}", block.first, block.last);
    const std::string loc = value.loc.known() ? "\n" + value.loc.to_string() : "";
    std::string text = fmt::format(
        "<g><rect x=\"{:.2f}\" y=\"{:.2f}\" width=\"{:.2f}\" height=\"{:.2f}\" fill=\"{}\" stroke=\"#0005\" "
        "stroke-width=\"0.5\"/><title>{}\n{} at {}, {}{}</title>",
        left, top, width, height, color(op_of(value)), escaped(value.name), format_bytes(block.bytes),
        format_bytes(block.offset), launches, escaped(loc));
    if (const auto fits = static_cast<std::size_t>(std::max(0.0, (width - 6) / 6.2)); height > 14 && fits >= 4)
      text += fmt::format(
          "<text x=\"{:.2f}\" y=\"{:.2f}\" font-size=\"11\" text-anchor=\"middle\" pointer-events=\"none\">{}</text>",
          left + width / 2, top + height / 2 + 4, escaped(value.name.substr(0, fits)));
    return text + "</g>\n";
  }

  /// The bytes that are live at each launch: the distance to the top of the blocks is lost between them.
  std::string live_line() const {
    std::string points;
    for (std::size_t i = 0; i < live_.size(); ++i) {
      const double at = y(static_cast<double>(live_[i]));
      points += fmt::format("{:.2f},{:.2f} {:.2f},{:.2f} ", x(static_cast<double>(i)), at,
                            x(static_cast<double>(i + 1)), at);
    }
    return fmt::format(
        "<polyline points=\"{}\" fill=\"none\" stroke=\"#1d3557\" stroke-width=\"1.2\" stroke-dasharray=\"4 3\" "
        "pointer-events=\"none\"/>\n",
        points);
  }

  std::string peak() const {
    if (plan_.peak_launch < 0 || plan_.peak_launch > last_launch()) return "";
    const double left = x(plan_.peak_launch), width = std::max(1.5, x(plan_.peak_launch + 1) - left);
    const bool is_right = left > svg_width / 2;
    return fmt::format(
        "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"#e63946\" fill-opacity=\"0.18\" "
        "stroke=\"#e63946\" pointer-events=\"none\"/>\n"
        "<text x=\"{:.2f}\" y=\"{}\" text-anchor=\"{}\" fill=\"#c1121f\" font-weight=\"bold\">peak: {} in launch "
        "{}</text>\n",
        left, plot_top, width, plot_height, is_right ? left + width : left, plot_top - 7, is_right ? "end" : "start",
        format_bytes(plan_.lower_bound), plan_.peak_launch);
  }

  /// One box per launch, colored by the line of its last op: of the forward pass or an update, or of a gradient. A
  /// frame around the launches of each loop.
  std::string strip() const {
    std::string text;
    const double top = plot_top + plot_height + 4;
    for (std::size_t i = 0; i < program_.launches.size(); ++i) {
      const Launch& launch = program_.launches[i];
      const char* fill = launch.loc.gradient() ? "#e07a5f" : launch.info.kind ? "#5fa8d3" : "#adb5bd";
      std::string names;
      for (const std::string& name : launch.names()) names += (names.empty() ? "" : ", ") + name;
      text += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"{}\"><title>launch {}: {}, {} "
          "live\n{}\n{}</title></rect>\n",
          x(static_cast<double>(i)), top, x(static_cast<double>(i) + 1) - x(static_cast<double>(i)), strip_height,
          fill, i, words(launch.info.role), format_bytes(live_[i]), escaped(names), escaped(launch.loc.to_string()));
    }
    for (const ProgramLoop& loop : program_.loops)
      text += fmt::format(
          "<rect x=\"{:.2f}\" y=\"{}\" width=\"{:.2f}\" height=\"{}\" fill=\"none\" stroke=\"#6a4c93\" "
          "stroke-width=\"2\" pointer-events=\"stroke\"><title>loop {}: launches {} to {}, {} "
          "times\n{}</title></rect>\n",
          x(loop.first), top, x(loop.end) - x(loop.first), strip_height, escaped(loop.name), loop.first, loop.end - 1,
          escaped(loop.trips.to_string()), escaped(loop.loc.to_string()));
    const double below = top + strip_height + 52;
    const auto entry = [&](double at, const char* fill, const char* word) {
      return fmt::format(
          "<rect x=\"{}\" y=\"{}\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{}\" y=\"{}\">{}</text>\n", at,
          below - 10, fill, at + 17, below, word);
    };
    return text + entry(plot_left, "#5fa8d3", "forward or update") + entry(plot_left + 150, "#e07a5f", "gradient") +
           entry(plot_left + 240, "#adb5bd", "copy of a state") +
           fmt::format(
               "<line x1=\"{0}\" x2=\"{1}\" y1=\"{2}\" y2=\"{2}\" stroke=\"#1d3557\" stroke-dasharray=\"4 "
               "3\"/><text x=\"{3}\" y=\"{4}\">bytes that are live</text>\n",
               plot_left + 380, plot_left + 410, below - 4, plot_left + 417, below);
  }

  const Program& program_;
  const MemoryPlan& plan_;
  std::vector<std::int64_t> live_;                         ///< bytes by launch
  std::vector<std::pair<std::string, std::int64_t>> ops_;  ///< by bytes * launches, largest first
};

}  // namespace

std::string memory_svg(const Program& program, const MemoryPlan& plan) { return Picture(program, plan).text(); }

}  // namespace lathe::tools
