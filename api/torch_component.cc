#include "parsimony/api/torch_component.h"

#include <dlfcn.h>

#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/data/sample_source.h"

namespace parsimony {
namespace {

/// The component exists but cannot be used; `why` is the reason.
UnsupportedError bad_component(std::string_view path, std::string_view why) {
  return UnsupportedError("the libtorch component ", path, " cannot be used: ", why);
}

namespace fs = std::filesystem;

fs::path component_path() {
  const std::string given = environment("PARSIMONY_TORCH_COMPONENT");
  if (!given.empty()) return given;
  return installed_file("parsimony_torch.so");
}

void (*prepare_program)() = nullptr;

/// Spinning threads occupy cores that other threads need: when other programs run, a step with two
/// threads takes twice as long.
void let_openmp_sleep() {
  if (environment("OMP_WAIT_POLICY").empty() && environment("GOMP_SPINCOUNT").empty()) {
    setenv("OMP_WAIT_POLICY", "PASSIVE", 1);
  }
}

/// Sets up the environment for libtorch, while no other thread reads it.
void prepare() {
  static std::once_flag once;
  std::call_once(once, [] {
    if (prepare_program != nullptr) prepare_program();
    let_openmp_sleep();
  });
}

const TorchComponentEntry& entry_of(const std::string& path) {
  void* library = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) throw bad_component(path, dlerror());
  using Entry = const TorchComponentEntry*();
  auto* entry = reinterpret_cast<Entry*>(dlsym(library, kTorchComponentSymbol));
  if (entry == nullptr) throw bad_component(path, "it is not a component of parsimony");
  return *entry();
}

const TorchComponentEntry& load() {
  const std::string path = component_path().string();
  if (!fs::exists(path)) {
    throw UnsupportedError("this requires the libtorch component, which was not found at ", path,
                           "; install parsimony-torch, or build with -DPARSIMONY_TORCH=ON where "
                           "PyTorch is installed. Proofs of ONNX models also run in ONNX "
                           "Runtime, whose library --onnxruntime or PARSIMONY_ONNXRUNTIME names");
  }
  prepare();
  const TorchComponentEntry& entry = entry_of(path);
  if (std::string_view(entry.version) != PARSIMONY_VERSION) {
    throw bad_component(path, "it belongs to parsimony " + std::string(entry.version) +
                                  ", this is " PARSIMONY_VERSION "; reinstall both");
  }
  if (std::strcmp(entry.interface, torch_interface()) != 0) {
    throw bad_component(path, "it belongs to another build of parsimony " PARSIMONY_VERSION
                              "; build or install both together");
  }
  entry.component->count_samples_in(samples_read());
  if (!own_operators().empty()) entry.component->add_own_operators(own_operators());
  return entry;
}

}  // namespace

void before_libtorch(void (*prepare)()) { prepare_program = prepare; }

const TorchComponentEntry& torch_component_entry() {
  static const TorchComponentEntry& entry = load();
  return entry;
}

TorchComponent& torch_component() { return *torch_component_entry().component; }

std::jthread loading_torch_component() {
  if (!has_torch_component()) return {};
  prepare();
  return std::jthread([] {
    try {
      torch_component();
    } catch (const std::exception&) {  // the next call reports it
    }
  });
}

TorchComponent& LazyTorch::loaded() const {
  TorchComponent& component = torch_component();
  if (use_ == For::kTimes) {
    component.choose_threads(threads_);
  } else {
    component.use_cores(threads_);
  }
  return component;
}

bool has_torch_component() { return fs::exists(component_path()); }

namespace fs = std::filesystem;

fs::path installed_file(const std::string& name) {
  std::error_code error;
  const fs::path program = fs::read_symlink("/proc/self/exe", error);
  const fs::path beside =
      (program.parent_path() / PARSIMONY_COMPONENT_FROM_BIN / name).lexically_normal();
  const fs::path installed = fs::path(PARSIMONY_COMPONENT_FOLDER) / name;
  return !fs::exists(beside, error) && fs::exists(installed, error) ? installed : beside;
}

}  // namespace parsimony
