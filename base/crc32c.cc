#include "parsimony/base/crc32c.h"

#include <array>

namespace parsimony {
namespace {

constexpr uint32_t kReversedPolynomial = 0x82f63b78;

/// What each byte makes of a sum of zero.
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
