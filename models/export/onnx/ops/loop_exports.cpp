#include "ir/ops/primitives/primitives.h"
#include "models/export/onnx/nodes/export_table.h"
#include "models/export/onnx/nodes/loop_exporter.h"

/// Loops, and recurrences as loops over one dim.
namespace lathe::onnx {

namespace {

Text loop(const OpExport& op) { return op.loops().result(op); }

/// h = a * h + b for each element along a dim, from h = 0.
Text recurrence(const OpExport& op) {
  ModelBuilder& to = op.model();
  const std::int64_t dim = op.axis("dim", op.rank());
  Shape rest;
  for (int i = 0; i < op.rank(); ++i)
    if (i != dim) rest.push_back(op.result().shape[i]);
  const ir::TensorType type = ir::TensorType::contiguous(op.dtype(), rest);
  const Text zero = op.full(rest, 0, op.dtype()), h = to.free_name("h"), a = to.free_name("a"), b = to.free_name("b");
  GraphProto body;
  body.name = "recurrence";
  for (const Text name : {h, a, b}) body.inputs.push_back(to.described(name, type));
  to.open_body();
  const Text next = to.add("Add", {to.add("Mul", {a, h}), b}), kept = to.free_name("output");
  to.add_named("Identity", {next}, kept);
  for (const Text name : {next, kept}) body.outputs.push_back(to.described(name, type));
  body.nodes = to.close_body();
  Attributes attributes{graph_attribute("body", std::move(body)), integer_attribute("num_scan_inputs", 2),
                        integers_attribute("scan_input_axes", {dim, dim}),
                        integers_attribute("scan_output_axes", {dim})};
  if (op.attr<bool>("reverse")) {
    attributes.push_back(integers_attribute("scan_input_directions", {1, 1}));
    attributes.push_back(integers_attribute("scan_output_directions", {1}));
  }
  return to.add_new("Scan", {zero, op[0], op[1]}, std::move(attributes), 2)[1];
}

}  // namespace

std::span<const ExportRecord> loop_exports() {
  static constexpr ExportRecord records[] = {
      {&ir::ops::loop, loop, "Scan"},
      {&ir::ops::linear_recurrence, recurrence, "Scan of Mul, Add"},
  };
  return records;
}

}  // namespace lathe::onnx
