#include "tests/data/data_files.h"

#include <zlib.h>

#include <filesystem>

#include "parsimony/base/files.h"
#include "parsimony/base/random.h"

namespace parsimony::test {

void write(const std::string& path, std::string_view bytes) {
  std::filesystem::create_directories(std::filesystem::path(path).parent_path());
  write_file(path, bytes);
}

std::string gzipped(std::string_view bytes) {
  z_stream stream{};
  deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, 16 + MAX_WBITS, 8, Z_DEFAULT_STRATEGY);
  std::string input(bytes);
  std::string packed(deflateBound(&stream, input.size()), '\0');
  stream.next_in = reinterpret_cast<Bytef*>(input.data());
  stream.avail_in = static_cast<uInt>(input.size());
  stream.next_out = reinterpret_cast<Bytef*>(packed.data());
  stream.avail_out = static_cast<uInt>(packed.size());
  deflate(&stream, Z_FINISH);
  packed.resize(stream.total_out);
  deflateEnd(&stream);
  return packed;
}

std::string pattern(size_t count, uint64_t seed) {
  std::string bytes(count, '\0');
  Random random(seed);
  for (char& byte : bytes) byte = static_cast<char>(random.below(256));
  return bytes;
}

std::string values_of(const Samples& samples, int64_t index) {
  const size_t stride = samples.stride();
  const auto* begin = reinterpret_cast<const char*>(samples.values.data());
  return {begin + static_cast<size_t>(index) * stride, stride};
}

}  // namespace parsimony::test
