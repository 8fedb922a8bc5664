#include "parsimony/torch_io/export/export.h"

#include <memory>

#include "parsimony/base/errors.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/script/read.h"
#include "parsimony/torch_io/script/run.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony {
namespace {

/// `forward` returns something other than tensors.
UnsupportedError other_results(size_t tensors, size_t requested) {
  return UnsupportedError("\"forward\" returns ", requested, " values, of which ", tensors,
                          " are tensors; an ONNX model returns tensors only");
}

torch_io::TorchNetwork original_run(const torch::jit::Module& module, size_t results) {
  return [run = torch_io::script_run(module), results](const std::vector<at::Tensor>& inputs) {
    std::vector<at::Tensor> outputs = run(inputs);
    if (outputs.size() != results) throw other_results(outputs.size(), results);
    return outputs;
  };
}

}  // namespace

Exported export_onnx(const torch::jit::Module& module, const std::vector<InputSpec>& inputs,
                     const std::string& path, const ExportSettings& settings) {
  const torch_io::ScriptGraph script = torch_io::read_script(module, inputs);
  if (script.numbers > 0) {
    const size_t tensors = script.results.size();
    throw other_results(tensors, tensors + script.numbers);
  }
  const auto original = [&] {
    const size_t results = script.graph.outputs.size();
    return std::make_unique<torch_io::TorchNetwork>(original_run(module, results));
  };
  const auto written = [](const Graph& graph, const std::string& /*file*/) {
    return std::make_unique<torch_io::TorchNetwork>(torch_io::plain_run(graph));
  };
  ExportSettings named = settings;
  if (named.outputs.empty()) named.outputs = script.results;
  return write_onnx(script.graph, inputs, path, named, {original, written});
}

Exported export_onnx(torch::nn::Module& module, const torch_io::Forward& forward,
                     const std::vector<at::Tensor>& example, const std::string& path,
                     const ExportSettings& settings) {
  std::vector<InputSpec> inputs;
  for (const at::Tensor& tensor : example) {
    inputs.push_back({tensor.sizes().vec(), {}, torch_io::dtype_of(tensor.scalar_type())});
  }
  return export_onnx(torch_io::traced(module, forward, example), inputs, path, settings);
}

}  // namespace parsimony
