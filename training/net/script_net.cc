// A TorchScript file as a TrainableModel, run by libtorch's interpreter.
#include <ATen/ATen.h>
#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/constants.h>
#include <torch/csrc/jit/ir/ir.h>
#include <torch/csrc/jit/serialization/import.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <sstream>
#include <string_view>
#include <unordered_set>
#include <utility>

#include "parsimony/api/prune.h"
#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/programs/exported/archive.h"
#include "parsimony/torch_io/reason.h"
#include "parsimony/torch_io/script/editor.h"
#include "parsimony/torch_io/script/read.h"
#include "parsimony/torch_io/script/run.h"
#include "parsimony/torch_io/script/script_file.h"
#include "parsimony/training/errors.h"
#include "parsimony/training/net/file_net_impl.h"

namespace parsimony::training {
namespace {

namespace jit = torch::jit;
using torch_io::ScriptEditor;
using torch_io::ScriptFile;
using torch_io::ScriptGraph;
using torch_io::ScriptModel;

/// The operand that selects training mode, by operator.
constexpr std::array<std::pair<std::string_view, size_t>, 5> kModal = {
    {{"aten::batch_norm", 5},
     {"aten::dropout", 1},
     {"aten::dropout_", 1},
     {"aten::feature_dropout", 1},
     {"aten::alpha_dropout", 1}}};

bool says_evaluation(const jit::Value& value) {
  const auto constant = jit::toIValue(&value);
  return constant && constant->isBool() && !constant->toBool();
}

bool follow_mode(jit::Graph& graph, jit::Block& block) {
  bool changed = false;
  for (jit::Node* node : block.nodes()) {
    for (jit::Block* inner : node->blocks()) changed |= follow_mode(graph, *inner);
    const std::string_view kind = node->kind().toQualString();
    const auto* modal = std::find_if(kModal.begin(), kModal.end(),
                                     [&](const auto& known) { return known.first == kind; });
    if (modal == kModal.end() || !says_evaluation(*node->input(modal->second))) continue;
    const jit::WithInsertPoint before(node);
    jit::Node* mode = graph.insertNode(graph.createGetAttr(graph.inputs().at(0), "training"));
    node->replaceInput(modal->second, mode->output());
    changed = true;
  }
  return changed;
}

/// A trace in evaluation mode contains that mode as a constant: BatchNorm keeps its statistics and
/// Dropout is inactive, regardless of `train()`. This makes them read the attribute `training` of
/// the calling module. Operators traced in training mode are not changed. Returns the names of the
/// changed modules, which are in evaluation mode.
std::vector<std::string> follow_mode(const jit::Module& module) {
  std::vector<std::string> names;
  std::set<const jit::Graph*> changed;  // modules of one class share graphs
  for (const auto& [name, part] : module.named_modules()) {
    if (!part.hasattr("training")) continue;
    bool concerned = false;
    for (const jit::Method& method : part.get_methods()) {
      jit::Graph& graph = *method.graph();
      if (follow_mode(graph, *graph.block())) changed.insert(&graph);
      concerned = concerned || changed.count(&graph) > 0;
    }
    if (concerned) names.push_back(name);
  }
  return names;
}

/// Returns a copy of its tensors, on the CPU and contiguous.
jit::Module on_cpu(const jit::Module& module) {
  const at::NoGradGuard no_grad;
  std::stringstream stream;
  module.save(stream);
  jit::Module copy = jit::load(stream, at::Device(at::kCPU));
  const auto plain = [](const at::Tensor& tensor) {
    at::Tensor(tensor).set_data(tensor.detach().contiguous());
  };
  for (const at::Tensor& tensor : copy.parameters()) plain(tensor);
  for (const at::Tensor& tensor : copy.buffers()) plain(tensor);
  return copy;
}

std::map<std::string, bool> modes_of(const jit::Module& module) {
  std::map<std::string, bool> modes;
  for (const auto& [name, part] : module.named_modules()) {
    if (part.hasattr("training")) modes[name] = part.is_training();
  }
  return modes;
}

template <typename List>
std::vector<NamedParameter> named(const List& list) {
  std::unordered_set<const c10::TensorImpl*> known;  // shared tensors are listed twice
  std::vector<NamedParameter> result;
  for (const auto& [name, tensor] : list) {
    if (known.insert(tensor.unsafeGetTensorImpl()).second) result.emplace_back(name, tensor);
  }
  return result;
}

/// Returns the interpreter's message, without the program's lines before it.
std::string reason(const std::exception& error) {
  std::string text = torch_io::reason_of(error);
  while (text.ends_with('\n')) text.pop_back();
  constexpr std::string_view kTrace = "The following operation failed in the TorchScript";
  constexpr std::string_view kMark = "RuntimeError: ";
  if (text.starts_with(kTrace)) {
    const size_t mark = text.rfind(kMark);
    text.erase(0, mark == std::string::npos ? text.rfind('\n') + 1 : mark + kMark.size());
  }
  text.resize(std::min(text.find('\n'), text.size()));
  return text;
}

class ScriptNet final : public TrainableModel {
 public:
  explicit ScriptNet(const std::string& path) : path_(path), module_("empty") {
    if (programs::is_exported(path)) {
      throw UnsupportedError(path,
                             ": torch.export programs are fixed in evaluation mode and cannot be "
                             "trained here; prune it, and train in Python or as TorchScript");
    }
    const ScriptFile file(path);
    module_ = file.module();
    extra_ = file.extra_files();
    modes_ = modes_of(module_);
    for (const std::string& name : follow_mode(module_)) modes_[name] = false;
    const auto trained = [](const NamedParameter& p) { return p.second.requires_grad(); };
    if (std::ranges::none_of(parameters(), trained)) throw errors::nothing_to_train(path);
  }

  at::Tensor forward(const at::Tensor& x) override {
    const torch_io::AsWritten guard;
    c10::IValue predictions;
    try {
      predictions = module_.forward({x});
    } catch (const std::exception& error) {  // libtorch has several kinds
      const std::string why = reason(error);
      blame_batch(path_, x, why, [this](const at::Tensor& some) { module_.forward({some}); });
      throw ModelError(path_ + ": " + why);
    }
    if (predictions.isTuple() && !predictions.toTupleRef().elements().empty()) {
      predictions = c10::IValue(predictions.toTupleRef().elements()[0]);
    }
    if (!predictions.isTensor()) {
      throw ModelError(path_, ": \"forward\" does not return a tensor first");
    }
    at::Tensor result = predictions.toTensor();
    if (result.dim() > 0 && result.size(0) == x.size(0)) return result;
    throw errors::fixed_batch(path_, x.size(0),
                              "its outputs have shape " + to_string(result.sizes().vec()));
  }

  std::vector<NamedParameter> parameters() override { return named(module_.named_parameters()); }
  std::vector<NamedParameter> buffers() override { return named(module_.named_buffers()); }
  void train(bool on) override { module_.train(on); }

  std::vector<ParameterGroup> groups(const at::Tensor& example, Granularity granularity) override {
    const std::vector<InputSpec> specs = {spec_of(example)};
    ScriptGraph script = torch_io::read_script(on_cpu(module_), specs);
    return parameter_groups(script.graph, specs, granularity, parameters());
  }

  PruneResult prune(const at::Tensor& example, const PruneRequest& request,
                    const PruneServices& services) override {
    const std::vector<InputSpec> specs = {spec_of(example)};
    ScriptModel model(on_cpu(module_), specs);
    PruneResult cut = prune_file(model, specs, request, services);
    module_ = model.small();
    return cut;
  }

  void restore(const Plan& plan) override {
    std::vector<InputSpec> specs;
    for (const std::string& spec : plan.inputs) specs.push_back(parse_input_spec(spec));
    const ScriptGraph script = torch_io::read_script(on_cpu(module_), specs);
    const Plan shapes = shapes_of(plan);
    if (shapes.empty()) return;
    ScriptEditor editor(script);
    apply_plan(shapes, script.graph, choose_probe(script.graph, specs), editor);
    module_ = editor.finish();
  }

  std::unique_ptr<TrainableModel> clone_architecture() const override { return script_net(path_); }

  /// Saves with parts in their original mode.
  void save(const std::string& path, const at::Tensor& /*example*/) override {
    jit::Module copy = on_cpu(module_);
    for (const auto& [name, part] : copy.named_modules()) {
      const auto mode = modes_.find(name);
      if (mode != modes_.end()) jit::Module(part).setattr("training", mode->second);
    }
    std::ostringstream stream;
    copy.save(stream, extra_);
    write_file(path, stream.view());
  }

 private:
  std::string path_;
  jit::Module module_;
  jit::ExtraFilesMap extra_;
  std::map<std::string, bool> modes_;  ///< original modes of the parts
};

}  // namespace

std::unique_ptr<TrainableModel> script_net(const std::string& path) {
  return std::make_unique<ScriptNet>(path);
}

}  // namespace parsimony::training
