#include "models/import/loss/attached_loss.h"

#include <fmt/core.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <utility>
#include <vector>

#include "frontend/ops/losses.h"
#include "frontend/ops/ops.h"
#include "ir/ops/primitives/primitives.h"
#include "ir/support/error.h"
#include "ir/support/location.h"

namespace lathe::importing {

namespace {

using Kind = AttachedLoss::Kind;

constexpr std::array<std::pair<std::string_view, Kind>, 5> kinds{
    {{"cross_entropy", Kind::cross_entropy},
     {"next_token", Kind::next_token},
     {"mse", Kind::mse},
     {"binary_cross_entropy", Kind::binary_cross_entropy},
     {"output", Kind::output}}};

std::vector<std::string_view> kind_names() {
  std::vector<std::string_view> names;
  for (const auto& [name, kind] : kinds) names.push_back(name);
  return names;
}

std::string name_of(Kind kind) {
  for (const auto& [name, other] : kinds)
    if (other == kind) return std::string(name);
  return "";
}

[[noreturn]] void fail(const std::string& message, const std::string& hint) {
  throw UserError(message, "import_loss", hint);
}

Tensor output_of(const ImportedGraph& imported, const AttachedLoss& loss) {
  const auto found = imported.outputs.find(loss.output);
  if (found != imported.outputs.end()) return found->second;
  std::vector<std::string> names;
  for (const auto& [name, tensor] : imported.outputs) names.push_back(name);
  fail(fmt::format("the graph has no output '{}' for the loss", loss.output),
       fmt::format("its outputs are {}", fmt::join(names, ", ")));
}

/// Returns the input, which is declared if the graph does not have it.
Tensor target_of(const ImportedGraph& imported, const AttachedLoss& loss, DType dtype, const Shape& shape) {
  if (const auto found = imported.graph.builder().find_argument(loss.target)) {
    if (const ir::Op* op = found->node().op; op != &ir::ops::input)
      fail(fmt::format("the target '{}' of the loss is a {} of the graph", loss.target, op->name.value),
           "give the name of an input, or a new name");
    return Tensor(*found);
  }
  return imported.graph.input(loss.target, dtype, shape);
}

/// Returns the shape without its last dim.
Shape rows_of(const Tensor& logits) {
  std::vector<Dim> dims;
  for (int i = 0; i + 1 < logits.rank(); ++i) dims.push_back(logits.shape()[i]);
  return Shape(dims);
}

}  // namespace

AttachedLoss parse_loss(std::string_view text) {
  const std::string hint = fmt::format(
      "write KIND:OUTPUT,TARGET, such as cross_entropy:logits,labels, or output:OUTPUT for an output that is the "
      "loss; the kinds are {}",
      fmt::join(kind_names(), ", "));
  const std::size_t colon = std::min(text.find(':'), text.size());
  const auto kind = std::ranges::find(kinds, text.substr(0, colon), &std::pair<std::string_view, Kind>::first);
  const std::string_view values = text.substr(std::min(colon + 1, text.size()));
  const std::size_t comma = std::min(values.find(','), values.size());
  const std::string_view target = values.substr(std::min(comma + 1, values.size()));
  const bool has_target = kind == kinds.end() || kind->second != Kind::output;
  if (comma == 0 || values.empty() || (has_target ? target.empty() : comma < values.size()) ||
      target.find(',') != std::string_view::npos)
    fail(fmt::format("'{}' is not a loss", text), hint);
  if (kind == kinds.end()) fail(fmt::format("there is no loss '{}'", text.substr(0, colon)), hint);
  return {kind->second, std::string(values.substr(0, comma)), std::string(target)};
}

Tensor attach_loss(const ImportedGraph& imported, const AttachedLoss& loss) {
  constexpr std::int64_t ignored = -100;
  const Tensor output = output_of(imported, loss);
  const std::string target = loss.target.empty() ? "" : "," + loss.target;
  const ir::GraphBuilder::At line(output.builder(),
                                  Location(fmt::format("loss {}:{}{}", name_of(loss.kind), loss.output, target), 0));
  const auto require = [&](bool fits, std::string_view needed) {
    if (!fits)
      fail(fmt::format("the output '{}' is {}{}, but {} needs {}", loss.output, name(output.dtype()),
                       output.shape().to_string(), name_of(loss.kind), needed),
           "choose another output or loss");
  };
  require(is_float(output.dtype()), "floats");
  switch (loss.kind) {
    case Kind::cross_entropy: {
      require(output.rank() >= 1, "logits [.., classes]");
      const Tensor targets = target_of(imported, loss, i64, rows_of(output));
      return cross_entropy(output, targets, is_float(targets.dtype()) ? std::nullopt : std::optional(ignored));
    }
    case Kind::next_token: {
      require(output.rank() == 3, "logits [B, T, classes]");
      const Tensor tokens = target_of(imported, loss, i64, rows_of(output));
      // The last position has no next token. Without a slice, the rows of the logits stay evenly spaced.
      const Tensor none = imported.graph.full({tokens.size(0), 1}, ignored, i64);
      return cross_entropy(output, concat({tokens.slice(1, 1, tokens.size(1)).to(i64), none}, 1), ignored);
    }
    case Kind::mse: return mse_loss(output, target_of(imported, loss, output.dtype(), output.shape()));
    case Kind::binary_cross_entropy:
      return binary_cross_entropy_with_logits(output, target_of(imported, loss, output.dtype(), output.shape()));
    case Kind::output: require(output.rank() == 0, "a number"); return output;
  }
  LATHE_ASSERT(false);
}

}  // namespace lathe::importing
