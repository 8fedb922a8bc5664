// ONNX Runtime as an engine: its library is loaded at run time, if there is one.
#pragma once

#include <memory>
#include <string>

#include "parsimony/engines/network.h"

namespace parsimony::runtime {

/// A loaded library, shared by its copies and by the networks it has opened.
///
///     OnnxRuntime engine = find_onnx_runtime();
///     auto net = engine.open("resnet.onnx", {.threads = 2});
///     net->bind(random_inputs(graph));
class OnnxRuntime {
 public:
  struct Options {
    int threads = 1;            ///< intra-op threads
    std::string provider = {};  ///< "cuda", "openvino:device_type=GPU,…"; empty, "cpu": none
    bool large = false;         ///< weights stay as they are in the file: slower, half the memory
  };

  /// Loads the library, version 1.5 or newer, and leaves it loaded.
  /// @param path a file, or a name that the loader knows, such as "libonnxruntime.so.1"
  /// @throws UnsupportedError if it cannot be loaded, is another library or too old
  explicit OnnxRuntime(const std::string& path);

  const std::string& path() const;     ///< of the file
  const std::string& version() const;  ///< "1.20.1"

  /// @throws UnsupportedError, listing the available ones, if the library has no such execution
  /// provider
  void check_provider(const std::string& provider) const;

  /// Opens an ONNX file with the library's default optimisations.
  /// @throws UnsupportedError, with the reason, if it rejects the model
  std::unique_ptr<Network> open(const std::string& path, const Options& options) const;
  /// Opens an ONNX model in memory, without external data, in the same way.
  std::unique_ptr<Network> open_bytes(std::string model, const Options& options) const;

 private:
  struct Library;
  std::shared_ptr<const Library> library_;
};

/// Sets ORT_DISABLE_TELEMETRY unless it is set: newer libraries, such as 1.30, otherwise record
/// their use in the home folder and send it to their vendor. Called before a library is loaded;
/// programs with threads that read the environment must call it before starting these.
void disable_telemetry();

/// Loads the library at `path`, else at PARSIMONY_ONNXRUNTIME, else the first usable one among
/// those known to the loader and that of tools/setup.sh.
/// @throws UnsupportedError that lists the locations tried
OnnxRuntime find_onnx_runtime(const std::string& path = {});

/// Loads a library of custom operators, with the entry point RegisterCustomOps. Every session
/// opened afterwards in this process knows its operators. Must not be called while another thread
/// opens a session.
/// @throws UnsupportedError if it cannot be loaded or has no such entry point
void add_kernel_library(const std::string& path);

/// Returns whether a library has been added.
bool has_kernel_libraries();

}  // namespace parsimony::runtime
