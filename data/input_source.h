// Samples of one input of a network, read when they are needed.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "parsimony/engines/network.h"
#include "parsimony/graph/graph.h"

namespace parsimony {

class InputSource {
 public:
  virtual ~InputSource() = default;

  virtual int64_t samples() const = 0;
  /// [count, …], of the type in which they are kept. The bounds must hold.
  virtual TensorBytes rows(int64_t first, int64_t count) const = 0;
};

/// A folder of pictures, see ImageSpec; all below it, the same ones in the same order in each run.
/// @param input  what takes them: its shape says their size and layout where `spec` does not
/// @throws ConfigError if neither says the size, IoError, ModelError for damaged files
std::unique_ptr<InputSource> open_images(const std::string& folder, std::string_view spec,
                                         const Value& input);

/// A folder of WAV, FLAC and other files that libsndfile reads, or one of them: windows as long as
/// the last axis of the input, one after the other, float32 in -1..1, channels averaged.
/// @throws ConfigError if the length is open, IoError, ModelError for damaged files
std::unique_ptr<InputSource> open_audio(const std::string& path, const Value& input);

/// A file's bytes as numbers 0..255: windows as long as the last axis of the input, one after the
/// other. @throws ConfigError if the length is open, or the file is shorter; IoError
std::unique_ptr<InputSource> open_text(const std::string& path, const Value& input);

}  // namespace parsimony
