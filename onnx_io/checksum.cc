#include <openssl/evp.h>

#include <array>
#include <memory>
#include <vector>

#include "parsimony/onnx_io/checksum_impl.h"
#include "parsimony/onnx_io/errors.h"

namespace parsimony::onnx_io {

std::string sha256_of(const OpenFile& file, const std::string& path) {
  constexpr size_t kChunk = size_t{1} << 20;
  constexpr std::string_view kDigits = "0123456789abcdef";
  const std::unique_ptr<EVP_MD_CTX, decltype(&EVP_MD_CTX_free)> context(EVP_MD_CTX_new(),
                                                                        &EVP_MD_CTX_free);
  bool good = context && EVP_DigestInit_ex(context.get(), EVP_sha256(), nullptr) == 1;
  std::vector<std::byte> buffer(kChunk);
  int64_t offset = 0;
  while (const size_t got = read_at(file, path, offset, buffer)) {
    good = good && EVP_DigestUpdate(context.get(), buffer.data(), got) == 1;
    offset += static_cast<int64_t>(got);
  }
  std::array<unsigned char, EVP_MAX_MD_SIZE> digest{};
  unsigned int length = 0;
  good = good && EVP_DigestFinal_ex(context.get(), digest.data(), &length) == 1;
  if (!good) throw errors::cannot_read(path, "libcrypto offers no SHA-256");
  std::string text;
  for (unsigned int i = 0; i < length; ++i) {
    text += kDigits[digest[i] >> 4];
    text += kDigits[digest[i] & 15];
  }
  return text;
}

}  // namespace parsimony::onnx_io
