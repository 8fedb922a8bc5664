#include <filesystem>
#include <vector>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/engines/onnx_runtime.h"

namespace parsimony::runtime {
namespace {

/// `tried` lists each location and why it failed.
UnsupportedError not_found(std::span<const std::string> tried) {
  std::string text =
      "ONNX Runtime was not found; pass --onnxruntime PATH, set PARSIMONY_ONNXRUNTIME to its "
      "libonnxruntime.so, or run tools/setup.sh";
  for (const std::string& place : tried) text += "\n  " + place;
  return UnsupportedError(text);
}

namespace fs = std::filesystem;

/// Returns libraries in the Python environment of tools/setup.sh:
/// lib/pythonN/site-packages/onnxruntime/capi/.
std::vector<std::string> installed() {
  const fs::path lib = cache_folder() / "python/lib";
  std::vector<std::string> found;
  std::error_code error;
  for (const auto& python : fs::directory_iterator(lib, error)) {
    const fs::path capi = python.path() / "site-packages/onnxruntime/capi";
    for (const auto& entry : fs::directory_iterator(capi, error)) {
      const std::string name = entry.path().filename().string();
      if (name.starts_with("libonnxruntime.so")) found.push_back(entry.path().string());
    }
  }
  if (found.empty()) found.push_back(lib.string());
  return found;
}

}  // namespace

OnnxRuntime find_onnx_runtime(const std::string& path) {
  const std::string expected = path.empty() ? environment("PARSIMONY_ONNXRUNTIME") : path;
  if (!expected.empty()) return OnnxRuntime(expected);
  std::vector<std::string> places = {"libonnxruntime.so", "libonnxruntime.so.1"};
  for (std::string& place : installed()) places.push_back(std::move(place));
  std::vector<std::string> tried;
  for (const std::string& place : places) {
    try {
      return OnnxRuntime(place);
    } catch (const UnsupportedError& error) {
      tried.emplace_back(error.what());
    }
  }
  throw not_found(tried);
}

}  // namespace parsimony::runtime
