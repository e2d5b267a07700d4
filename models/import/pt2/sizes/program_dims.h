#pragma once

#include <map>
#include <set>
#include <string>

#include "ir/support/shape.h"
#include "models/import/ops/sizes/input_dims.h"
#include "models/import/pt2/program/exported_program.h"

namespace lathe::pt2 {

/// The dims of a program. The files of torch.export have symbols such as s77 for the sizes that vary. A symbol that
/// is the size of an input is called "<input>_<dim>", for the first such input; others keep their names.
class ProgramDims {
 public:
  ProgramDims(const ExportedProgram& program, importing::InputDims& input_dims);

  /// Returns a size of the file; nothing if it is no polynomial of sizes of inputs.
  std::optional<Dim> dim(const SizeText& size) const;
  /// Returns the shape of a user input. Throws UserError [import_size] for a size that is no polynomial of symbols.
  Shape input_shape(const std::string& input, const TensorMeta& meta, const std::string& file) const;
  /// Returns the dims of the symbols by name.
  const std::map<std::string, Dim, std::less<>>& symbols() const { return symbols_; }

 private:
  void add_symbol(const std::string& symbol, std::string name);

  importing::InputDims& input_dims_;
  std::map<std::string, Dim, std::less<>> symbols_;
  std::set<std::string> taken_;
};

}  // namespace lathe::pt2
