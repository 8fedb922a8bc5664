#include "parsimony/engines/machine/processor.h"

#include <algorithm>
#include <fstream>
#include <initializer_list>
#include <iterator>
#include <sstream>

namespace parsimony::machine {
namespace {

/// The value of the first line "KEY : VALUE".
std::string value_of(std::string_view text, std::string_view key) {
  std::istringstream lines{std::string(text)};
  for (std::string line; std::getline(lines, line);) {
    const size_t colon = line.find(':');
    if (colon == std::string::npos || !line.starts_with(key)) continue;
    if (line.find_first_not_of(" \t", key.size()) != colon) continue;
    const size_t begin = line.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? std::string() : line.substr(begin);
  }
  return {};
}

bool has_all(const Processor& processor, std::initializer_list<std::string_view> flags) {
  return std::all_of(flags.begin(), flags.end(),
                     [&](std::string_view flag) { return processor.has(flag); });
}

}  // namespace

std::string_view name_of(Vectors vectors) {
  switch (vectors) {
    case Vectors::kAvx512:
      return "AVX-512";
    case Vectors::kAvx2:
      return "AVX2";
    case Vectors::kAvx:
      return "AVX";
    case Vectors::kNone:
      break;
  }
  return "no AVX";
}

bool Processor::has(std::string_view flag) const {
  return std::binary_search(flags.begin(), flags.end(), flag);
}

Processor parse_processor(std::string_view cpuinfo) {
  Processor processor;
  processor.model = value_of(cpuinfo, "model name");
  std::istringstream words(value_of(cpuinfo, "flags"));
  processor.flags = {std::istream_iterator<std::string>(words), {}};
  std::sort(processor.flags.begin(), processor.flags.end());
  return processor;
}

Processor this_processor() {
  std::ifstream file("/proc/cpuinfo");
  std::string text;
  // One processor suffices; machines may have hundreds.
  for (std::string line; std::getline(file, line) && !line.empty();) text += line + "\n";
  return parse_processor(text);
}

Vectors vectors_of(const Processor& processor) {
  if (has_all(processor, {"avx512f", "avx512dq", "avx512cd", "avx512bw", "avx512vl"})) {
    return Vectors::kAvx512;
  }
  if (has_all(processor, {"avx2", "fma"})) return Vectors::kAvx2;
  return processor.has("avx") ? Vectors::kAvx : Vectors::kNone;
}

}  // namespace parsimony::machine
