#include "tools/pretrained/ignored_keys.h"

#include <fmt/core.h>

#include "models/pretrained/families.h"
#include "models/pretrained/lora/adapted_model.h"
#include "tools/streams.h"

namespace lathe::tools {

void note_ignored_keys(const std::filesystem::path& folder, const std::filesystem::path& adapter) {
  for (const std::string& note : pretrained::unread_key_notes(pretrained::find_adapted(folder, adapter).model))
    print_error(fmt::format("note: {}\n", note));
}

}  // namespace lathe::tools
