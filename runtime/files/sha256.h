#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "runtime/files/write/written_file.h"

namespace lathe {

/// Incremental SHA-256.
class Sha256 {
 public:
  Sha256();
  ~Sha256();
  Sha256(Sha256&&) noexcept;
  Sha256& operator=(Sha256&&) noexcept;

  void update(std::span<const std::byte> bytes);
  void update(std::string_view bytes);
  /// Returns the digest of all bytes. update() must not be called after it.
  Sha256Digest finish();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

Sha256Digest sha256(std::string_view bytes);
/// Returns 64 lower-case hexadecimal digits.
std::string to_hex(const Sha256Digest& digest);
std::string sha256_hex(std::string_view bytes);

}  // namespace lathe
