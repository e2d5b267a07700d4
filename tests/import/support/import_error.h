#pragma once

#include <filesystem>
#include <string>

#include "ir/support/error.h"
#include "models/import/import.h"
#include "tests/import/support/model_writer.h"

namespace lathe::test {

/// Returns the text of the UserError that the import of a file throws; "no error" if it throws none.
inline std::string import_error(const std::filesystem::path& file, const importing::ImportOptions& options = {}) {
  try {
    importing::import_graph(file, options);
  } catch (const UserError& error) {
    return error.what();
  }
  return "no error";
}
inline std::string import_error(const ModelWriter& model, const importing::ImportOptions& options = {}) {
  return import_error(model.write(), options);
}

}  // namespace lathe::test
