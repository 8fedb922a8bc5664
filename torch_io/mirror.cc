#include "parsimony/torch_io/mirror.h"

#include <ATen/core/grad_mode.h>
#include <torch/csrc/jit/frontend/tracer.h>

#include <memory>
#include <string>

#include "parsimony/base/errors.h"
#include "parsimony/torch_io/guards.h"
#include "parsimony/torch_io/reason.h"

namespace parsimony::torch_io {
namespace {

namespace jit = torch::jit;

using Unit = std::shared_ptr<jit::CompilationUnit>;

jit::Module mirror(const torch::nn::Module& module, const std::string& name, const Unit& unit) {
  jit::Module result(c10::QualifiedName(name), unit, /*shouldMangle=*/true);
  for (const auto& p : module.named_parameters(false)) {
    result.register_parameter(p.key(), p.value(), false);
  }
  for (const auto& b : module.named_buffers(false)) result.register_buffer(b.key(), b.value());
  for (const auto& c : module.named_children()) {
    result.register_module(c.key(), mirror(*c.value(), name + "._" + c.key(), unit));
  }
  result.register_attribute("training", c10::BoolType::get(), module.is_training());
  return result;
}

}  // namespace

jit::Module traced(torch::nn::Module& module, const Forward& forward,
                   const std::vector<at::Tensor>& example) {
  const Evaluating evaluating(module);
  const at::NoGradGuard no_grad;
  jit::Module self = mirror(module, "__torch__.Module", std::make_shared<jit::CompilationUnit>());
  jit::Stack inputs(example.begin(), example.end());
  std::vector<std::string> names;
  for (size_t i = 0; i < example.size(); ++i) names.push_back("input" + std::to_string(i));
  const auto run = [&](jit::Stack stack) -> jit::Stack {
    std::vector<at::Tensor> tensors;
    for (const c10::IValue& value : stack) tensors.push_back(value.toTensor());
    return {forward(tensors)};
  };
  const auto no_names = [](const at::Tensor&) { return std::string(); };
  try {
    const auto state =
        jit::tracer::trace(std::move(inputs), run, no_names, true, false, &self, names).first;
    self.type()->addMethod(self._ivalue()->compilation_unit()->create_function(
        c10::QualifiedName(*self.type()->name(), "forward"), state->graph));
  } catch (const std::exception& error) {
    throw ModelError("the module does not run on the example: " + reason_of(error));
  }
  return self;
}

}  // namespace parsimony::torch_io
