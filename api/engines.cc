#include "parsimony/api/engines.h"

#include <utility>

#include "parsimony/api/errors.h"
#include "parsimony/api/reference.h"
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
    if (mixes(plan) || !options.file) throw errors::not_maskable();
    return open(graph, options);
  }

 private:
  runtime::OnnxRuntime library_;
  runtime::OnnxRuntime::Options options_;
};

}  // namespace

std::unique_ptr<Engine> onnx_runtime_engine(const runtime::OnnxRuntime& library, int threads) {
  return std::make_unique<OnnxRuntimeEngine>(library, threads);
}

}  // namespace parsimony
