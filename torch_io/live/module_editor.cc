#include "parsimony/torch_io/live/module_editor.h"

#include <algorithm>

#include "parsimony/torch_io/cut.h"
#include "parsimony/torch_io/errors.h"
#include "parsimony/torch_io/live/edit_impl.h"

namespace parsimony::torch_io {

struct ModuleEditor::State {
  struct Layer {
    const live::LayerKind* kind = nullptr;
    live::LayerEdit edit;
  };

  std::map<std::string, at::Tensor> tensors;
  std::map<torch::nn::Module*, Layer> layers;  // those of a known kind
  std::map<std::string, Layer*> by_path;       // one layer may have several
  live::Journal journal;
};

namespace {

bool any_touched(const torch::nn::Module& module, const live::Journal& journal) {
  const auto touched = [&](const at::Tensor& tensor) { return journal.touched(tensor); };
  const auto parameters = module.parameters();
  const auto buffers = module.buffers();
  return std::any_of(parameters.begin(), parameters.end(), touched) ||
         std::any_of(buffers.begin(), buffers.end(), touched);
}

}  // namespace

ModuleEditor::ModuleEditor(torch::nn::Module& module) : state_(std::make_unique<State>()) {
  for (const auto& p : module.named_parameters()) state_->tensors.emplace(p.key(), p.value());
  for (const auto& b : module.named_buffers()) state_->tensors.emplace(b.key(), b.value());
  module.apply([this](const std::string& path, torch::nn::Module& part) {
    const live::LayerKind* kind = live::kind_of(part);
    if (kind == nullptr) return;
    const auto layer =
        state_->layers.try_emplace(&part, State::Layer{kind, {path, &state_->journal, {}}}).first;
    state_->by_path.emplace(path, &layer->second);
  });
}

ModuleEditor::~ModuleEditor() { rollback(); }

const at::Tensor& ModuleEditor::tensor(const std::string& name) const {
  const auto found = state_->tensors.find(name);
  if (found != state_->tensors.end()) return found->second;
  std::vector<std::string> known;
  for (const auto& [other, value] : state_->tensors) known.push_back(other);
  throw ModelError("the module has no parameter or buffer ", in_quotes(name), ".",
                   did_you_mean(name, known));
}

void ModuleEditor::apply(const Plan& plan) {
  replay(plan, *this);
  for (ForwardConstant& constant : forward_constants_) {
    for (const PlanInteger& entry : plan.integers) {
      if (entry.node != constant.node || entry.input != constant.input) continue;
      if (entry.input < 0 && entry.what != constant.what) continue;
      constant.what = entry.what;
      constant.from = entry.from;
    }
  }
  commit();
}

void ModuleEditor::copy(const std::string& name, const std::string& of, const std::string&, int) {
  throw UnsupportedError("tensor ", in_quotes(of),
                         ": two layers share it but would keep different parts (", in_quotes(name),
                         "); shared parameters of a module cannot be separated: register one "
                         "for each layer");
}

void ModuleEditor::slice(const std::string& name, std::span<const AxisKeep> axes) {
  state_->journal.slice(name, tensor(name), axes);
}

void ModuleEditor::assign(const std::string& name, std::span<const std::byte> values) {
  state_->journal.assign(tensor(name), with_values(name, tensor(name), values));
}

void ModuleEditor::zero_smallest(const std::string& name, int64_t count) {
  state_->journal.assign(tensor(name), with_zeros(name, tensor(name), count));
}

void ModuleEditor::set_attribute(const std::string& node, const std::string& attribute,
                                 std::span<const int64_t> values) {
  const auto found = state_->by_path.find(node);
  if (found == state_->by_path.end()) {
    forward_constants_.push_back(
        {node, -1, attribute, std::nullopt, HostTensor::vector({values.begin(), values.end()})});
    return;
  }
  State::Layer& layer = *found->second;
  const auto& known = layer.kind->attributes;
  if (std::find(known.begin(), known.end(), attribute) == known.end()) {
    throw errors::bad_attribute(
        node, attribute,
        std::string(layer.kind->name) + " has no such attribute that can be changed");
  }
  layer.edit.requested[attribute].assign(values.begin(), values.end());
}

void ModuleEditor::set_input(const std::string& node, int input, const HostTensor& constant) {
  forward_constants_.push_back({node, input, "", std::nullopt, constant});
}

void ModuleEditor::commit() {
  state_->journal.undo_options();
  for (auto& [module, layer] : state_->layers) {
    if (layer.edit.requested.empty() && !any_touched(*module, state_->journal)) continue;
    state_->journal.remember(layer.kind->remember(*module));
    layer.kind->follow(*module, layer.edit);
  }
}

void ModuleEditor::keep() { state_->journal.forget(); }

void ModuleEditor::rollback() { state_->journal.undo(); }

}  // namespace parsimony::torch_io
