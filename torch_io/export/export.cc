#include "parsimony/torch_io/export/export.h"

#include <algorithm>

#include "parsimony/api/reference.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/onnx_io/export/export.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/torch_io/script/read.h"
#include "parsimony/torch_io/script/run.h"
#include "parsimony/torch_io/tensor.h"

namespace parsimony {
namespace {

/// "x float32[batch, 3, 224, 224]"
std::string signature(const Value& value) {
  std::string dims;
  for (size_t d = 0; value.declared && d < value.declared->size(); ++d) {
    const bool named = d < value.symbols.size() && !value.symbols[d].empty();
    const int64_t size = (*value.declared)[d];
    dims += (d > 0 ? ", " : "") + (named      ? value.symbols[d]
                                   : size < 0 ? "?"
                                              : std::to_string(size));
  }
  return value.name + " " + std::string(name_of(value.dtype)) + "[" + dims + "]";
}

/// Returns the specs of arguments that are also inputs of the file.
std::vector<InputSpec> without_values(const std::vector<InputSpec>& specs) {
  std::vector<InputSpec> rest;
  std::copy_if(specs.begin(), specs.end(), std::back_inserter(rest),
               [](const InputSpec& spec) { return !spec.value; });
  return rest;
}

/// `forward` returns something other than tensors.
UnsupportedError other_results(size_t tensors, size_t requested) {
  return UnsupportedError("\"forward\" returns ", requested, " values, of which ", tensors,
                          " are tensors; an ONNX model returns tensors only");
}

/// Runs the module on the file's inputs, with fixed numbers inserted between them.
torch_io::TorchNetwork original_run(const torch::jit::Module& module,
                                    const std::vector<InputSpec>& specs, size_t results) {
  return
      [run = torch_io::script_run(module), specs, results](const std::vector<at::Tensor>& inputs) {
        std::vector<at::Tensor> all;
        auto next = inputs.begin();
        for (const InputSpec& spec : specs) {
          const auto type = is_floating(spec.dtype) ? at::kFloat : at::kLong;
          all.push_back(spec.value ? at::scalar_tensor(*spec.value, type) : (next++)->clone());
        }
        std::vector<at::Tensor> outputs = run(all);
        if (outputs.size() != results) {
          throw other_results(outputs.size(), results);
        }
        return outputs;
      };
}

/// Compares `graph`, run by our executor, with `module`, run by libtorch.
Proof prove(const Graph& graph, const torch::jit::Module& module,
            const std::vector<InputSpec>& inputs, const ProofOptions& options) {
  torch_io::TorchNetwork original = original_run(module, inputs, graph.outputs.size());
  const Reference reference(graph, {.inputs = without_values(inputs)}, {}, original, options);
  torch_io::TorchNetwork written = torch_io::plain_run(graph);
  Proof proof = reference.compare(written);
  reference.widen_tolerance(proof, original);
  return proof;
}

/// Takes the larger differences of both.
void add(Proof& proof, const Proof& other) {
  proof.inputs += other.inputs;
  for (size_t i = 0; i < proof.outputs.size(); ++i) {
    OutputDifference& output = proof.outputs[i];
    const OutputDifference& second = other.outputs[i];
    const bool worse = second.difference * output.tolerance > output.difference * second.tolerance;
    if (worse) output = second;
  }
}

void describe(const Graph& graph, const std::vector<InputSpec>& specs, const Graph& source,
              Exported& exported) {
  exported.opset = onnx_io::kExportOpset;
  exported.nodes = std::ssize(graph.nodes);
  for (const ValueId input : graph.inputs) exported.inputs.push_back(signature(graph.value(input)));
  for (const ValueId output : graph.outputs) {
    exported.outputs.push_back(signature(graph.value(output)));
  }
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!specs[i].value) continue;
    const std::string text = to_text(specs[i]);  // ":int64=16000"
    exported.notes.push_back("input \"" + source.value(source.inputs[i]).name + "\" is fixed at " +
                             text.substr(text.find('=') + 1) + " and is not an input of the file");
  }
}

}  // namespace

Exported export_onnx(const torch::jit::Module& module, const std::vector<InputSpec>& inputs,
                     const std::string& path, const TorchExportOptions& options) {
  const torch_io::ScriptGraph script = torch_io::read_script(module, inputs);
  if (script.numbers > 0) {
    const size_t tensors = script.results.size();
    throw other_results(tensors, tensors + script.numbers);
  }
  const onnx_io::ExportOptions writing{
      .dynamic_batch = options.dynamic_batch,
      .fold_batchnorm = options.fold_batchnorm,
      .outputs = options.outputs.empty() ? script.results : options.outputs};
  NewFile file(path);
  Exported exported;
  {
    const std::string bytes = onnx_io::export_onnx(script.graph, inputs, writing);
    exported.bytes = std::ssize(bytes);
    file.write(bytes);
  }
  const onnx_io::ModelFile made(file.temporary());
  const Graph graph = onnx_io::to_graph(made);
  describe(graph, inputs, script.graph, exported);
  exported.proof = prove(graph, module, inputs, options.proof);
  if (options.dynamic_batch) {
    add(exported.proof, prove(graph, module, onnx_io::with_other_batch(inputs), options.proof));
  }
  if (!exported.proof.holds()) {
    throw VerificationError("the ONNX model does not compute what the module does: ",
                            to_text(*exported.proof.worst()), "; nothing was written");
  }
  file.commit();
  return exported;
}

Exported export_onnx(torch::nn::Module& module, const torch_io::Forward& forward,
                     const std::vector<at::Tensor>& example, const std::string& path,
                     const TorchExportOptions& options) {
  std::vector<InputSpec> inputs;
  for (const at::Tensor& tensor : example) {
    inputs.push_back({tensor.sizes().vec(), {}, torch_io::dtype_of(tensor.scalar_type())});
  }
  return export_onnx(torch_io::traced(module, forward, example), inputs, path, options);
}

}  // namespace parsimony
