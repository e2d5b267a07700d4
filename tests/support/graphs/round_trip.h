#pragma once

#include "ir/kernel/printer.h"
#include "ir/kernel/text/parser.h"
#include "ir/kernel/verify/verifier.h"

namespace lathe::test {

/// Returns the kernel parsed from its own text. Throws InternalError if the parsed kernel prints differently or does
/// not verify.
inline kernel::Kernel round_trip(const kernel::Kernel& from, const kernel::IntrinsicFamily& also = {}) {
  const std::string text = kernel::print(from);
  kernel::Kernel parsed = kernel::parse_kernel(text, from.name, also);
  if (const std::string again = kernel::print(parsed); again != text)
    throw InternalError("prints differently after parsing:\n" + text + again);
  if (kernel::canonical_text(parsed) != kernel::canonical_text(from))
    throw InternalError("has another canonical text after parsing:\n" + text);
  kernel::verify(parsed);
  return parsed;
}

}  // namespace lathe::test
