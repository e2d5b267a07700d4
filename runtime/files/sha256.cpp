#include "runtime/files/sha256.h"

#include <openssl/evp.h>

#include "ir/support/error.h"

namespace lathe {

struct Sha256::Context {
  struct Free {
    void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  };
  std::unique_ptr<EVP_MD_CTX, Free> evp{EVP_MD_CTX_new()};
};

Sha256::Sha256() : context_(std::make_unique<Context>()) {
  LATHE_ASSERT(context_->evp && EVP_DigestInit_ex(context_->evp.get(), EVP_sha256(), nullptr) == 1);
}
Sha256::~Sha256() = default;
Sha256::Sha256(Sha256&&) noexcept = default;
Sha256& Sha256::operator=(Sha256&&) noexcept = default;

void Sha256::update(std::span<const std::byte> bytes) {
  LATHE_ASSERT(EVP_DigestUpdate(context_->evp.get(), bytes.data(), bytes.size()) == 1);
}

void Sha256::update(std::string_view bytes) { update(std::as_bytes(std::span(bytes))); }

Sha256Digest Sha256::finish() {
  Sha256Digest digest;
  LATHE_ASSERT(EVP_DigestFinal_ex(context_->evp.get(), digest.data(), nullptr) == 1);
  return digest;
}

Sha256Digest sha256(std::string_view bytes) {
  Sha256 hash;
  hash.update(bytes);
  return hash.finish();
}

std::string to_hex(const Sha256Digest& digest) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : digest) {
    text += digits[byte >> 4];
    text += digits[byte & 15];
  }
  return text;
}

std::string sha256_hex(std::string_view bytes) { return to_hex(sha256(bytes)); }

}  // namespace lathe
