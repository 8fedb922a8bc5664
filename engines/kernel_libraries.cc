#include <dlfcn.h>

#include <filesystem>
#include <vector>

#include "parsimony/engines/errors.h"
#include "parsimony/engines/kernel_libraries_impl.h"
#include "parsimony/engines/onnx_runtime.h"

namespace parsimony::runtime {
namespace {

/// What ONNX Runtime's own loader looks up.
/// @source https://onnxruntime.ai/docs/reference/operators/add-custom-op.html
constexpr const char* kRegister = "RegisterCustomOps";

std::vector<KernelLibrary>& loaded() {
  static std::vector<KernelLibrary> libraries;
  return libraries;
}

/// A file beside us needs no "./".
std::string for_loader(const std::string& path) {
  std::error_code error;
  return std::filesystem::exists(path, error) ? std::filesystem::absolute(path).string() : path;
}

}  // namespace

void add_kernel_library(const std::string& path) {
  void* handle = dlopen(for_loader(path).c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) throw errors::no_kernel_library(path, dlerror());
  void* symbol = dlsym(handle, kRegister);
  if (symbol == nullptr) throw errors::without_kernels(path, kRegister);
  loaded().push_back({path, reinterpret_cast<decltype(KernelLibrary::add_to)>(symbol)});
}

bool has_kernel_libraries() { return !loaded().empty(); }

std::span<const KernelLibrary> kernel_libraries() { return loaded(); }

}  // namespace parsimony::runtime
