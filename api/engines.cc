#include "parsimony/api/engines.h"

#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "parsimony/api/errors.h"
#include "parsimony/api/reference.h"
#include "parsimony/api/torch_component.h"
#include "parsimony/masks/memory.h"
#include "parsimony/onnx_io/export/export.h"
#include "parsimony/onnx_io/graph_file.h"

namespace parsimony {
namespace {

/// A network that is opened on its first run, in the running thread.
class OpenedLater final : public Network {
 public:
  explicit OpenedLater(std::function<std::unique_ptr<Network>()> open) : open_(std::move(open)) {}

  std::vector<TensorList> run(const std::vector<TensorList>& inputs,
                              const RunOptions& options) override {
    return opened().run(inputs, options);
  }
  void bind(const TensorList& inputs) override { opened().bind(inputs); }
  void compute() override { opened().compute(); }
  TensorList outputs() override { return opened().outputs(); }

 private:
  Network& opened() { return network_ ? *network_ : *(network_ = open_()); }

  std::function<std::unique_ptr<Network>()> open_;
  std::unique_ptr<Network> network_;
};

/// The graph as an ONNX model: as it is if it was read from one, else exported for the sizes that
/// its inputs declare.
std::string model_of(const Graph& graph) {
  if (graph.format == "onnx") return onnx_io::to_onnx(graph);
  Graph own = graph;
  finish(own);  // it may be a part of another
  std::vector<InputSpec> inputs;
  for (const ValueId input : own.inputs) {
    const Value& value = own.value(input);
    inputs.push_back({.dims = value.declared.value_or(Shape()), .value = {}, .dtype = value.dtype});
  }
  return onnx_io::export_onnx(own, inputs);
}

class OnnxRuntimeEngine final : public Engine {
 public:
  OnnxRuntimeEngine(runtime::OnnxRuntime library, runtime::OnnxRuntime::Options options,
                    std::unique_ptr<Engine> fallback)
      : library_(std::move(library)), options_(std::move(options)), fallback_(std::move(fallback)) {
    library_.check_provider(options_.provider);
  }

  std::string name() const override { return "onnxruntime"; }
  std::string version() const override {
    return library_.version() + (options_.provider.empty() ? "" : " " + options_.provider);
  }
  std::string path() const override { return library_.path(); }
  Engine* fallback() override { return fallback_.get(); }

  std::unique_ptr<Network> open(const Graph& graph, const OpenOptions& options) override {
    const runtime::OnnxRuntime::Options how = options_for(graph);
    return options.file ? library_.open(options.file(), how)
                        : library_.open_bytes(model_of(graph), how);
  }

  std::unique_ptr<Network> open_masked(const Graph& graph, const Plan& /*plan*/,
                                       const OpenOptions& options) override {
    if (!options.file) {
      throw UnsupportedError(
          "ONNX Runtime runs only files, and the masked original is not in a file; libtorch can "
          "run it");
    }
    return std::make_unique<OpenedLater>([this, file = options.file(), how = options_for(graph)] {
      return library_.open(file, how);
    });
  }

 private:
  runtime::OnnxRuntime::Options options_for(const Graph& graph) const {
    runtime::OnnxRuntime::Options options = options_;
    options.large = too_large_to_copy(graph);
    return options;
  }

  runtime::OnnxRuntime library_;
  runtime::OnnxRuntime::Options options_;
  std::unique_ptr<Engine> fallback_;
};

}  // namespace

bool too_large_to_copy(const Graph& graph) {
  constexpr int64_t kLarge = int64_t{1} << 30;  // bytes
  return weight_bytes(graph) >= kLarge;
}

std::string name_of(const EngineChoice& choice) {
  constexpr const char* kTorch = "libtorch";
  constexpr const char* kOnnxRuntime = "onnxruntime";
  const bool has_provider = !choice.onnxruntime.provider.empty();
  if (choice.name == kTorch && has_provider) {
    throw ConfigError("--provider requires --engine onnxruntime");
  }
  if (choice.name == kTorch || choice.name == kOnnxRuntime) return choice.name;
  if (choice.name != "auto") {
    const std::vector<std::string> known = {"auto", kTorch, kOnnxRuntime};
    throw errors::unknown_engine(choice.name, known);
  }
  if (has_provider) return kOnnxRuntime;
  if (has_torch_component()) return kTorch;
  try {
    runtime::find_onnx_runtime(choice.onnxruntime.library);
    return kOnnxRuntime;
  } catch (const UnsupportedError&) {
    return kTorch;  // whose absence is reported when it is needed
  }
}

std::unique_ptr<Engine> engine_of(const EngineChoice& choice, std::optional<int> cores) {
  const bool torch = name_of(choice) == "libtorch";
  const bool either = choice.name == "auto" && torch && has_torch_component();
  if (torch && !either) return std::make_unique<LazyTorch>(cores);
  auto libtorch = either ? std::make_unique<LazyTorch>(cores) : nullptr;
  try {
    return onnx_runtime_engine(runtime::find_onnx_runtime(choice.onnxruntime.library),
                               {.provider = choice.onnxruntime.provider}, std::move(libtorch));
  } catch (const UnsupportedError&) {
    if (!either) throw;
    return std::make_unique<LazyTorch>(cores);
  }
}

std::unique_ptr<Engine> timed_engine_of(const EngineChoice& choice, int threads) {
  if (name_of(choice) == "libtorch") {
    return std::make_unique<LazyTorch>(threads, LazyTorch::For::kTimes);
  }
  return onnx_runtime_engine(runtime::find_onnx_runtime(choice.onnxruntime.library),
                             {.threads = threads, .provider = choice.onnxruntime.provider});
}

std::unique_ptr<Engine> onnx_runtime_engine(const runtime::OnnxRuntime& library,
                                            const runtime::OnnxRuntime::Options& options,
                                            std::unique_ptr<Engine> fallback) {
  return std::make_unique<OnnxRuntimeEngine>(library, options, std::move(fallback));
}

}  // namespace parsimony
