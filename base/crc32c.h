// The checksum of records in event files.
#pragma once

#include <cstdint>
#include <string_view>

namespace parsimony {

/// CRC-32C, of polynomial 0x1edc6f41 (Castagnoli). @source RFC 3720, 12.1
uint32_t crc32c(std::string_view bytes);

}  // namespace parsimony
