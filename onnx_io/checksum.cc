#include <vector>

#include "parsimony/base/sha256.h"
#include "parsimony/onnx_io/checksum_impl.h"

namespace parsimony::onnx_io {

std::string sha256_of(const OpenFile& file, const std::string& path) {
  constexpr size_t kChunk = size_t{1} << 20;
  Sha256 sum;
  std::vector<std::byte> buffer(kChunk);
  int64_t offset = 0;
  while (const size_t got = read_at(file, path, offset, buffer)) {
    sum.add(std::span(buffer).first(got));
    offset += static_cast<int64_t>(got);
  }
  return sum.hex();
}

}  // namespace parsimony::onnx_io
