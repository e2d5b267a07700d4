#include <catch2/catch.hpp>
#include <map>
#include <set>

#include "ir/support/error.h"
#include "ir/tensor/interpret/interpreter.h"
#include "models/export/onnx/nodes/export_table.h"
#include "tests/export/support/export_case.h"
#include "tests/support/tensors/distance.h"

using namespace lathe;
using namespace lathe::test;

namespace {

bool is_refused(const ir::Op& op) {
  const onnx::ExportRecord* const record = onnx::find_export(op);
  return record && !record->emit;
}

}  // namespace

TEST_CASE("ops: every op has a record, an expansion, or no complex numbers left") {
  const std::set<std::string_view> complex{"view_as_complex", "view_as_real"};
  for (const ir::Op* op : ir::all_ops()) {
    CAPTURE(op->name.value);
    const onnx::ExportRecord* const record = onnx::find_export(*op);
    if (record) {
      CHECK(!record->as.empty());
      CHECK((!record->fits || op->as<ir::Composite>()));
    } else {
      CHECK((op->as<ir::Composite>() || op->as<ir::Argument>() || complex.contains(op->name.value)));
    }
  }
}

TEST_CASE("ops: the samples of every op are exported, and imported with the same values") {
  std::map<std::string_view, int> exported_samples, refused_samples;
  for_each_export_sample([&](const ExportSample& sample) {
    for (const std::int64_t opset : {18, 23}) {
      CAPTURE(sample.description, opset);
      std::filesystem::path file;
      try {
        file = quickly_exported(sample.graph, opset);
      } catch (const UserError& error) {
        CAPTURE(error.what());
        CHECK(error.label() == (is_refused(*sample.op) ? "export_unsupported" : "export_size"));
        ++refused_samples[sample.op->name.value];
        continue;
      }
      CHECK_FALSE(is_refused(*sample.op));
      const importing::ImportedGraph imported = importing::import_graph(file);
      const HostTensor got = ir::interpret(imported.graph.finish(), sample.arguments).at("y");
      const HostTensor& wanted = sample.outputs.at("y");
      CAPTURE(got.to_string(), wanted.to_string());
      CHECK(ir::test::distance(got, wanted) <= (wanted.dtype() == f64 ? 1e-7 : wanted.dtype() == f32 ? 2e-6 : 8e-3));
      ++exported_samples[sample.op->name.value];
    }
  });
  for (const ir::Op* op : ir::all_ops()) {
    CAPTURE(op->name.value);
    if (!op->as<ir::Argument>())
      CHECK((is_refused(*op) ? refused_samples[op->name.value] : exported_samples[op->name.value]) > 0);
  }
}
