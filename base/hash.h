// Hashes: SHA-256, the fingerprint by which a plan identifies its source file, and CRC-32C.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

struct evp_md_ctx_st;  // of libcrypto

namespace parsimony {

class MappedFile;

/// Incremental SHA-256.
class Sha256 {
 public:
  Sha256();  ///< @throws UnsupportedError if libcrypto offers no SHA-256
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void add(std::span<const std::byte> bytes);
  /// The digest in lower-case hexadecimal. Must be the last call.
  std::string hex();

 private:
  std::unique_ptr<evp_md_ctx_st, void (*)(evp_md_ctx_st*)> context_;
};

/// The digest of bytes in memory, in lower-case hexadecimal.
std::string sha256(std::string_view bytes);
/// The digest of a file, whose pages need not stay resident.
std::string sha256(const MappedFile& file);

/// CRC-32C, of polynomial 0x1edc6f41 (Castagnoli). @source RFC 3720, 12.1
uint32_t crc32c(std::string_view bytes);

}  // namespace parsimony
