#include "parsimony/torch_io/live/module_editor.h"
#include "parsimony/torch_io/prune.h"

namespace parsimony {

void restore(torch::nn::Module& module, const std::string& plan_path) {
  restore(module, Plan::load(plan_path));
}

void restore(torch::nn::Module& module, const Plan& plan) {
  Plan shapes = plan;
  shapes.zeros.clear();
  shapes.updates.clear();
  torch_io::ModuleEditor editor(module);
  editor.apply(shapes);
  editor.keep();
}

}  // namespace parsimony
