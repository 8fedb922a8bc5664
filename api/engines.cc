#include "parsimony/api/engines.h"

#include <string>
#include <utility>
#include <vector>

#include "parsimony/api/errors.h"
#include "parsimony/api/reference.h"
#include "parsimony/api/torch_component.h"
#include "parsimony/engines/machine/cores.h"
#include "parsimony/onnx_io/graph_file.h"

namespace parsimony {
namespace {

class OnnxRuntimeEngine final : public Engine {
 public:
  OnnxRuntimeEngine(runtime::OnnxRuntime library, int threads)
      : library_(std::move(library)), options_{.threads = threads} {}

  std::string name() const override { return "onnxruntime"; }
  std::string version() const override { return library_.version(); }
  std::string path() const override { return library_.path(); }

  std::unique_ptr<Network> open(const Graph& graph, const OpenOptions& options) override {
    return options.file ? library_.open(options.file(), options_)
                        : library_.open_bytes(onnx_io::to_onnx(graph), options_);
  }

  std::unique_ptr<Network> open_masked(const Graph& graph, const Plan& plan,
                                       const OpenOptions& options) override {
    if (!zeros_suffice(plan) || !options.file) throw errors::not_maskable();
    return open(graph, options);
  }

 private:
  runtime::OnnxRuntime library_;
  runtime::OnnxRuntime::Options options_;
};

}  // namespace

std::string name_of(const EngineChoice& choice) {
  constexpr const char* kTorch = "libtorch";
  constexpr const char* kOnnxRuntime = "onnxruntime";
  if (choice.name == kTorch || choice.name == kOnnxRuntime) return choice.name;
  if (choice.name != "auto") {
    const std::vector<std::string> known = {"auto", kTorch, kOnnxRuntime};
    throw errors::unknown_engine(choice.name, known);
  }
  if (has_torch_component()) return kTorch;
  try {
    runtime::find_onnx_runtime(choice.onnxruntime);
    return kOnnxRuntime;
  } catch (const UnsupportedError&) {
    return kTorch;  // whose absence is reported when it is needed
  }
}

std::unique_ptr<Engine> engine_of(const EngineChoice& choice, std::optional<int> threads) {
  if (name_of(choice) == "libtorch") return std::make_unique<LazyTorch>(threads);
  return onnx_runtime_engine(runtime::find_onnx_runtime(choice.onnxruntime),
                             threads.value_or(machine::these_cores().usable()));
}

std::unique_ptr<Engine> onnx_runtime_engine(const runtime::OnnxRuntime& library, int threads) {
  return std::make_unique<OnnxRuntimeEngine>(library, threads);
}

}  // namespace parsimony
