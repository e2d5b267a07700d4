#include "models/import/pt2/import_program.h"

#include <fmt/core.h>

#include "ir/support/error.h"
#include "models/import/pt2/check_program.h"
#include "models/import/pt2/ops/aten_ops.h"
#include "models/import/pt2/program_importer.h"

namespace lathe::pt2 {

namespace {

constexpr std::string_view format_file = "archive_format";

/// Returns the folder in the archive that has all other files: "model/".
std::string root_of(const ZipArchive& archive) {
  for (const std::string& name : archive.names())
    if (name == format_file || name.ends_with("/archive_format"))
      return name.substr(0, name.size() - format_file.size());
  for (const std::string& name : archive.names())
    if (name.ends_with("serialized_exported_program.json"))
      throw UserError(
          fmt::format("{} is a program of torch.export in an archive of an older torch", archive.name()),
          "import_unsupported",
          "its weights are stored by pickle, which Lathe does not read: export the model again with torch 2.9 "
          "or newer");
  throw UserError(fmt::format("{} has no file archive_format", archive.name()), "import_file",
                  "torch.export.save() writes it; files of torch.save() and TorchScript are not read");
}

void require_text(const ZipArchive& archive, const std::string& entry, std::string_view wanted) {
  if (const std::string_view text = archive.text(entry); text != wanted)
    throw UserError(fmt::format("{}: {} is '{}'", archive.name(), entry, text.substr(0, 64)), "import_unsupported",
                    fmt::format("Lathe reads archives with '{}'", wanted));
}

/// Returns the name of the only program in the archive.
std::string program_of(const ZipArchive& archive, const std::string& root) {
  const std::string folder = root + "models/", end = ".json";
  std::string found;
  for (const std::string& name : archive.names()) {
    if (!name.starts_with(folder) || !name.ends_with(end)) continue;
    const std::string program = name.substr(folder.size(), name.size() - folder.size() - end.size());
    if (!found.empty())
      throw UserError(fmt::format("{} has the programs '{}' and '{}'", archive.name(), found, program),
                      "import_unsupported", "save each program in a file of its own");
    found = program;
  }
  if (found.empty())
    throw UserError(fmt::format("{} has no program in {}", archive.name(), folder), "import_unsupported",
                    "files of AOTInductor have compiled code only; write the program by torch.export.save()");
  return found;
}

}  // namespace

importing::ImportedGraph import_program(const std::filesystem::path& file, const importing::ImportOptions& options) {
  const ZipArchive archive(file, program_archive_errors);
  const std::string root = root_of(archive);
  require_text(archive, root + std::string(format_file), "pt2");
  require_text(archive, root + "archive_version", "0");
  if (archive.contains(root + "byteorder")) require_text(archive, root + "byteorder", "little");
  const std::string name = program_of(archive, root), path = fmt::format("{}models/{}.json", root, name);
  const ExportedProgram program = read_program(archive.text(path), fmt::format("{}: {}", archive.name(), path));
  const importing::OpTable ops = aten_ops();
  const ProgramAccesses accesses = check_program(program, ops, archive.name());
  const ProgramTensors tensors(archive, root, name);
  return importing::with_input_dims(options.sizes, [&](importing::InputDims& input_dims) {
    return ProgramImporter(file, program, accesses, tensors, ops, options, input_dims).import();
  });
}

}  // namespace lathe::pt2
