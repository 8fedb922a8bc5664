// Nested TorchScript modules with the tensors of a program.
#pragma once

#include <ATen/ATen.h>
#include <torch/csrc/jit/api/module.h>
#include <torch/csrc/jit/ir/ir.h>

#include <algorithm>
#include <map>
#include <memory>
#include <string>
#include <unordered_map>
#include <utility>

namespace parsimony::torch_io::exported {

namespace jit = torch::jit;

/// Nested modules with tensors under their paths, and a graph that reads them.
class Modules {
 public:
  explicit Modules(std::shared_ptr<jit::Graph> graph)
      : graph_(std::move(graph)),
        units_(std::make_shared<jit::CompilationUnit>()),
        root_(fresh()),
        self_(graph_->addInput("self")) {}

  void add(const std::string& path, const at::Tensor& tensor, bool is_parameter) {
    const auto [owner, name] = apart(path);
    jit::Module module = at(owner);
    if (module.hasattr(name)) return;
    const bool trains = is_parameter && at::isFloatingType(tensor.scalar_type());
    module.register_attribute(name, c10::TensorType::get(),
                              trains ? tensor.detach().set_requires_grad(true) : tensor,
                              is_parameter, !is_parameter);
  }

  /// Call after the last `add`.
  void finalize() { self_->setType(root_.type()); }

  /// Returns the value of the attribute, placed at the insertion point of its first read.
  jit::Value* read(const std::string& path) {
    const auto found = values_.find(path);
    if (found != values_.end()) return found->second;
    const auto [owner, name] = apart(path);
    return values_[path] = graph_->insertGetAttr(owner.empty() ? self_ : read(owner), name);
  }

  /// The module whose `forward` is the graph.
  jit::Module finish() {
    const auto drop_unread = [](const auto& value) {
      if (!value.second->hasUses()) value.second->node()->destroy();
    };
    std::for_each(values_.rbegin(), values_.rend(), drop_unread);  // parts before their owners
    auto* forward =
        units_->create_function(c10::QualifiedName(*root_.type()->name(), "forward"), graph_);
    root_.type()->addMethod(forward);
    return root_;
  }

 private:
  jit::Module fresh() {
    jit::Module module(c10::QualifiedName("__torch__.Program"), units_, /*shouldMangle=*/true);
    module.register_attribute("training", c10::BoolType::get(), false);
    return module;
  }

  /// Splits "layer1.0.weight" into "layer1.0" and "weight".
  static std::pair<std::string, std::string> apart(const std::string& path) {
    const size_t dot = path.rfind('.');
    if (dot == std::string::npos) return {"", path};
    return {path.substr(0, dot), path.substr(dot + 1)};
  }

  jit::Module at(const std::string& path) {
    if (path.empty()) return root_;
    const auto found = modules_.find(path);
    if (found != modules_.end()) return found->second;
    const auto [owner, name] = apart(path);
    jit::Module module = fresh();
    at(owner).register_module(name, module);
    return modules_.emplace(path, module).first->second;
  }

  std::shared_ptr<jit::Graph> graph_;
  std::shared_ptr<jit::CompilationUnit> units_;
  jit::Module root_;
  jit::Value* self_;
  std::unordered_map<std::string, jit::Module> modules_;
  std::map<std::string, jit::Value*> values_;
};

}  // namespace parsimony::torch_io::exported
