#include "parsimony/base/hash.h"

#include <openssl/crypto.h>
#include <openssl/evp.h>

#include <array>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"

namespace parsimony {

Sha256::Sha256() : context_(nullptr, &EVP_MD_CTX_free) {
  // Keeps libcrypto from freeing its state at exit while a thread may still be hashing a file.
  [[maybe_unused]] static const int once = OPENSSL_init_crypto(OPENSSL_INIT_NO_ATEXIT, nullptr);
  context_.reset(EVP_MD_CTX_new());
  if (!context_ || EVP_DigestInit_ex(context_.get(), EVP_sha256(), nullptr) != 1) {
    throw UnsupportedError("libcrypto offers no SHA-256");
  }
}

void Sha256::add(std::span<const std::byte> bytes) {
  EVP_DigestUpdate(context_.get(), bytes.data(), bytes.size());
}

std::string Sha256::hex() {
  constexpr std::string_view kDigits = "0123456789abcdef";
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  EVP_DigestFinal_ex(context_.get(), digest.data(), &length);
  std::string text;
  for (unsigned int i = 0; i < length; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

std::string sha256(const MappedFile& file) {
  constexpr size_t kChunk = size_t{4} << 20;
  Sha256 sha;
  for (size_t begin = 0; begin < file.bytes().size(); begin += kChunk) {
    const std::string_view chunk = file.bytes().substr(begin, kChunk);
    sha.add(std::as_bytes(std::span(chunk)));
    file.release(chunk);
  }
  return sha.hex();
}

std::string sha256(std::string_view bytes) {
  Sha256 sum;
  sum.add(std::as_bytes(std::span(bytes)));
  return sum.hex();
}

namespace {

constexpr uint32_t kReversedPolynomial = 0x82f63b78;

/// The checksum of each byte, from a sum of zero.
constexpr std::array<uint32_t, 256> kOfByte = [] {
  std::array<uint32_t, 256> sums{};
  for (uint32_t byte = 0; byte < sums.size(); ++byte) {
    uint32_t sum = byte;
    for (int bit = 0; bit < 8; ++bit) sum = (sum >> 1) ^ ((sum & 1) * kReversedPolynomial);
    sums[byte] = sum;
  }
  return sums;
}();

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  uint32_t sum = ~0U;
  for (const char byte : bytes)
    sum = (sum >> 8) ^ kOfByte[(sum ^ static_cast<uint8_t>(byte)) & 255];
  return ~sum;
}

}  // namespace parsimony
