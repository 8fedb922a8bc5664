// The fingerprint by which a plan knows its source file.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace parsimony {

/// SHA-256, fed in pieces.
class Sha256 {
 public:
  Sha256();  ///< @throws UnsupportedError if libcrypto offers no SHA-256
  ~Sha256();
  Sha256(const Sha256&) = delete;
  Sha256& operator=(const Sha256&) = delete;

  void add(std::span<const std::byte> bytes);
  /// Lower-case hexadecimal. Comes last.
  std::string hex();

 private:
  struct Context;
  std::unique_ptr<Context> context_;
};

/// Of bytes in memory, in lower-case hexadecimal.
std::string sha256(std::string_view bytes);

}  // namespace parsimony
