#include "models/import/pt2/sizes/program_dims.h"

#include <fmt/core.h>

#include <cctype>

#include "ir/support/error.h"
#include "models/import/pt2/sizes/size_expression.h"

namespace lathe::pt2 {

ProgramDims::ProgramDims(const ExportedProgram& program, importing::InputDims& input_dims) : input_dims_(input_dims) {
  for (const InputSpec& input : program.inputs) {
    if (input.kind != InputSpec::Kind::user) continue;
    const auto found = program.graph.tensors.find(input.value.text);
    if (found == program.graph.tensors.end()) continue;
    for (std::size_t i = 0; i < found->second.sizes.size(); ++i)
      if (const auto* text = std::get_if<std::string>(&found->second.sizes[i]))
        if (const auto symbol = symbol_of(*text)) add_symbol(*symbol, fmt::format("{}_{}", input.value.text, i));
  }
  // Symbols that are only in expressions, such as the size 2 * s5.
  for (const auto& [symbol, range] : program.ranges) add_symbol(symbol, symbol);
}

void ProgramDims::add_symbol(const std::string& symbol, std::string name) {
  if (symbols_.contains(symbol)) return;
  for (char& c : name)
    if (std::isalnum(static_cast<unsigned char>(c)) == 0 || static_cast<unsigned char>(c) >= 0x80) c = '_';
  if (!is_dim_name(name)) name = "dim_" + name;
  const std::string base = name;
  for (int i = 2; !taken_.insert(name).second; ++i) name = fmt::format("{}_{}", base, i);
  symbols_.emplace(symbol, input_dims_.apply(Dim(name)));
}

std::optional<Dim> ProgramDims::dim(const SizeText& size) const {
  if (const auto* number = std::get_if<std::int64_t>(&size)) return Dim(*number);
  return parse_size(std::get<std::string>(size), [&](std::string_view symbol) -> std::optional<Dim> {
    const auto found = symbols_.find(symbol);
    return found == symbols_.end() ? std::nullopt : std::optional(found->second);
  });
}

Shape ProgramDims::input_shape(const std::string& input, const TensorMeta& meta, const std::string& file) const {
  std::vector<Dim> sizes;
  for (std::size_t i = 0; i < meta.sizes.size(); ++i) {
    const std::optional<Dim> size = dim(meta.sizes[i]);
    if (!size)
      throw UserError(
          fmt::format("{}: dim {} of the input '{}' is {}", file, i, input, std::get<std::string>(meta.sizes[i])),
          "import_size", "sizes of inputs are numbers and polynomials of symbols");
    if (size->value() && *size->value() < 0)
      throw UserError(fmt::format("{}: dim {} of the input '{}' is {}", file, i, input, *size->value()),
                      "import_file");
    sizes.push_back(*size);
  }
  return Shape(std::move(sizes));
}

}  // namespace lathe::pt2
