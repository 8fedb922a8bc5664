// ONNX Runtime as an engine: its library is loaded while the program runs, where there is one.
#pragma once

#include <memory>
#include <string>

#include "parsimony/engines/network.h"

namespace parsimony::runtime {

/// A loaded library. Copies share it; what it has opened keeps it.
///
///     OnnxRuntime engine = find_onnx_runtime();
///     auto net = engine.open("resnet.onnx", {.threads = 2});
///     net->bind(random_inputs(graph));
class OnnxRuntime {
 public:
  struct Options {
    int threads = 1;  ///< that work on one operator
  };

  /// Loads the library, version 1.5 or newer, and leaves it loaded.
  /// @param path a file, or a name that the loader knows, such as "libonnxruntime.so.1"
  /// @throws UnsupportedError if it cannot be loaded, is another library or too old
  explicit OnnxRuntime(const std::string& path);

  const std::string& path() const;     ///< of the file
  const std::string& version() const;  ///< "1.20.1"

  /// Opens an ONNX file, with the optimisations that the library makes by default.
  /// @throws UnsupportedError, saying why, if it does not take the model
  std::unique_ptr<Network> open(const std::string& path, const Options& options) const;
  /// The same for a model in memory, without external data.
  std::unique_ptr<Network> open_bytes(std::string model, const Options& options) const;

 private:
  struct Library;
  std::shared_ptr<const Library> library_;
};

/// The library at `path`; without, at PARSIMONY_ONNXRUNTIME; without that, the first that can be
/// used of those that the loader knows and the one that tools/ort/install.sh installs.
/// @throws UnsupportedError saying where it was looked for
OnnxRuntime find_onnx_runtime(const std::string& path = {});

}  // namespace parsimony::runtime
