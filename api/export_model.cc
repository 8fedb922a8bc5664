#include "parsimony/api/export_model.h"

#include <algorithm>
#include <utility>

#include "parsimony/api/engines.h"
#include "parsimony/api/reference.h"
#include "parsimony/api/torch_component.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/engines/random_inputs.h"
#include "parsimony/onnx_io/export/export.h"
#include "parsimony/onnx_io/model_file.h"
#include "parsimony/onnx_io/reader.h"
#include "parsimony/programs/exported/model.h"

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

/// Runs a network on the inputs of its ONNX file, which lacks the numbers among its own.
class WithNumbers final : public Network {
 public:
  WithNumbers(std::unique_ptr<Network> network, const Graph& source,
              const std::vector<InputSpec>& specs)
      : network_(std::move(network)),
        inputs_(runtime::random_inputs(source, {.specs = specs})),
        specs_(specs) {}

  std::vector<TensorList> run(const std::vector<TensorList>& inputs,
                              const RunOptions& options) override {
    std::vector<TensorList> all;
    for (const TensorList& each : inputs) all.push_back(with_numbers(each));
    return network_->run(all, options);
  }
  void bind(const TensorList& inputs) override { network_->bind(with_numbers(inputs)); }
  void compute() override { network_->compute(); }
  TensorList outputs() override { return network_->outputs(); }

 private:
  TensorList with_numbers(const TensorList& given) const {
    TensorList all = inputs_;
    auto next = given.begin();
    for (size_t i = 0; i < all.size(); ++i) {
      if (!specs_[i].value) all[i] = *next++;
    }
    return all;
  }

  std::unique_ptr<Network> network_;
  TensorList inputs_;
  std::vector<InputSpec> specs_;
};

/// Returns the specs of arguments that are also inputs of the file.
std::vector<InputSpec> without_values(const std::vector<InputSpec>& specs) {
  std::vector<InputSpec> rest;
  std::copy_if(specs.begin(), specs.end(), std::back_inserter(rest),
               [](const InputSpec& spec) { return !spec.value; });
  return rest;
}

Proof prove(const Graph& graph, Network& original, Network& written,
            const std::vector<InputSpec>& inputs, const ProofOptions& options) {
  const Reference reference(graph, {.inputs = without_values(inputs)}, {}, original, options);
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

/// Exports a program of torch.export.
Exported export_program(const ExportJob& job, const std::vector<InputSpec>& specs) {
  programs::ExportedModel program(job.model, specs);
  const bool has_torch = has_torch_component();
  const std::unique_ptr<Engine> libtorch =
      has_torch ? engine_of({.name = "libtorch"}, job.cores) : nullptr;
  const std::unique_ptr<Engine> engine = engine_of({}, job.cores);
  const auto original = [&] { return libtorch ? program.open(*libtorch) : nullptr; };
  const auto written = [&](const Graph& graph, const std::string& file) {
    return engine->open(graph, {.file = [file] { return file; }});
  };
  return write_onnx(program.graph(), program.sizes(), job.output, job.settings,
                    {original, written});
}

}  // namespace

Exported write_onnx(const Graph& source, const std::vector<InputSpec>& inputs,
                    const std::string& path, const ExportSettings& settings,
                    const ExportSides& sides) {
  NewFile file(path);
  Exported exported;
  {
    const std::string bytes = onnx_io::export_onnx(source, inputs,
                                                   {.dynamic_batch = settings.dynamic_batch,
                                                    .fold_batchnorm = settings.fold_batchnorm,
                                                    .outputs = settings.outputs});
    exported.bytes = std::ssize(bytes);
    file.write(bytes);
  }
  const onnx_io::ModelFile made(file.temporary());
  const Graph graph = onnx_io::to_graph(made);
  describe(graph, inputs, source, exported);
  std::unique_ptr<Network> original = sides.original ? sides.original() : nullptr;
  if (original) {
    WithNumbers whole(std::move(original), source, inputs);
    const std::unique_ptr<Network> written = sides.written(graph, file.temporary());
    exported.proof = prove(graph, whole, *written, inputs, settings.proof);
    if (settings.dynamic_batch) {
      add(exported.proof,
          prove(graph, whole, *written, onnx_io::with_other_batch(inputs), settings.proof));
    }
    if (!exported.proof.holds()) {
      throw VerificationError("the ONNX model does not compute what the network does: ",
                              to_text(*exported.proof.worst()), "; nothing was written");
    }
  } else {
    exported.notes.push_back(
        "not verified: nothing here runs the program itself; PyTorch does, and libtorch where the "
        "command has it");
  }
  file.commit();
  return exported;
}

Exported export_model(const ExportJob& job) {
  std::vector<InputSpec> specs;
  for (const std::string& spec : job.inputs) specs.push_back(parse_input_spec(spec));
  if (programs::is_exported(job.model)) return export_program(job, specs);
  TorchComponent& libtorch = torch_component();
  libtorch.use_cores(job.cores);
  return libtorch.export_script(job.model, specs, job.output, job.settings);
}

}  // namespace parsimony
