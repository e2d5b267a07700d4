#include <array>
#include <fstream>

#include "ir/support/error.h"
#include "runtime/files/safetensors/safetensors.h"
#include "tests/robustness/support/batch.h"
#include "tests/robustness/support/folder.h"
#include "tests/robustness/support/mutate.h"

namespace lathe::robustness {

namespace {

/// Returns a file: the header's length, the header, and data.
std::string file_of(const std::string& header, const std::string& data) {
  std::string file;
  for (int i = 0; i < 8; ++i) file += static_cast<char>(static_cast<std::uint64_t>(header.size()) >> (8 * i));
  return file + header + data;
}

const std::string& header_of(std::size_t i) {
  static const std::array<std::string, 5> headers = {
      R"({"a":{"dtype":"F32","shape":[2,3],"data_offsets":[0,24]},"b":{"dtype":"I64","shape":[],"data_offsets":[24,32]}})",
      R"({"__metadata__":{"format":"pt","x":"\u00e4"},"w.0":{"dtype":"BF16","shape":[4,0],"data_offsets":[0,0]},)"
      R"("w.1":{"dtype":"BOOL","shape":[32],"data_offsets":[0,32]}})",
      R"({"c":{"dtype":"C64","shape":[2,2],"data_offsets":[0,32]}}      )",
      R"({"u":{"dtype":"U8","shape":[16],"data_offsets":[0,16]},"e":{"dtype":"F8_E4M3","shape":[4,4],"data_offsets":[16,32]}})",
      R"({})"};
  return headers[i % headers.size()];
}

std::string make_tensors(std::uint64_t seed) {
  Mutator mutator(seed);
  const std::size_t which = mutator.below(5);
  const std::string data(which == 4 ? 0 : 32, static_cast<char>(mutator.below(3)));
  // Half of them have a correct length, so that the reader gets to the header text.
  if (mutator.one_in(2)) return file_of(mutator.any_kind(header_of(which), header_of(mutator.below(5))), data);
  return mutator.bytes(file_of(header_of(which), data));
}

/// Checks that each tensor of a file that opens can be read or is rejected, and that what was read can be written and
/// read again.
Answer check(const Folder& folder, const std::string& bytes) {
  write_bytes(folder / "mutant.safetensors", bytes);
  const SafetensorsFile file = SafetensorsFile::open(folder / "mutant.safetensors");
  Tensors read;
  for (const std::string& name : file.names()) {
    if (!file.contains(name)) throw Wrong("a listed tensor is not found");
    try {
      static_cast<void>(file.info(name));
      const auto view = file.view(name);
      std::uint64_t sum = 0;
      for (const std::byte byte : view) sum += static_cast<std::uint64_t>(byte);
      HostTensor tensor = file.tensor(name);
      for (std::size_t i = 0; i < tensor.bytes(); ++i) sum -= static_cast<std::uint64_t>(tensor.data()[i]);
      if (sum != 0 || tensor.bytes() != view.size()) throw Wrong("the tensor and the view differ");
      read.emplace(name, std::move(tensor));
    } catch (const UserError&) {  // a dtype that Lathe does not support
    }
  }
  write_safetensors(folder / "again.safetensors", read, file.metadata());
  const SafetensorsFile again = SafetensorsFile::open(folder / "again.safetensors");
  if (again.metadata() != file.metadata() || again.names().size() != read.size())
    throw Wrong("the rewritten file has other contents");
  for (const auto& [name, tensor] : read)
    if (!again.tensor(name).same_bits(tensor)) throw Wrong("a tensor of the rewritten file has other bits");
  return Answer::taken;
}

}  // namespace

void attack_tensors(Report& report) {
  const Folder folder;
  try_mutants(report, 3000,
              {.make = make_tensors,
               .check = [&](std::uint64_t, const std::string& bytes) { return check(folder, bytes); },
               .ending = ".safetensors"});
}

}  // namespace lathe::robustness
