// Data sets as files, written by the tests that read them.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "parsimony/data/dataset.h"
#include "tests/support/temporary_folder.h"

namespace parsimony::test {

/// Writes a file, and the folders that it lies in.
void write(const std::string& path, std::string_view bytes);

/// `bytes` as one gzip member.
std::string gzipped(std::string_view bytes);

/// So many bytes, all of them different from their neighbours.
std::string pattern(size_t count, uint64_t seed = 0);

/// The values of sample `index`, as characters.
std::string values_of(const Samples& samples, int64_t index);

/// What reading `spec` complains of, or "" if it does not. `Failure` is the exception's type.
template <typename Failure>
std::string failure_of(const std::string& spec, const DatasetOptions& options = {}) {
  try {
    read_dataset(spec, options);
  } catch (const Failure& error) {
    return error.what();
  }
  return {};
}

}  // namespace parsimony::test
