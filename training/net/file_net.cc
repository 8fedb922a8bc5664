#include <ATen/core/grad_mode.h>

#include <exception>
#include <utility>

#include "parsimony/base/errors.h"
#include "parsimony/base/files.h"
#include "parsimony/torch_io/network.h"
#include "parsimony/training/errors.h"
#include "parsimony/training/net/file_net_impl.h"
#include "parsimony/training/net/trainable_model.h"

namespace parsimony::training {
namespace {

bool takes(const at::Tensor& x, const std::function<void(const at::Tensor&)>& run) {
  const at::NoGradGuard no_grad;
  try {
    run(x);
    return true;
  } catch (const std::exception&) {  // libtorch has several kinds
    return false;
  }
}

}  // namespace

void blame_batch(const std::string& path, const at::Tensor& x, const std::string& why,
                 const std::function<void(const at::Tensor&)>& run) {
  if (x.size(0) < 2 || !takes(x.narrow(0, 0, 1), run) || takes(x.narrow(0, 0, 2), run)) return;
  throw errors::fixed_batch(path, x.size(0), why);
}

PruneResult prune_file(EditableModel& model, std::vector<InputSpec> inputs,
                       const PruneRequest& request, const PruneServices& services) {
  PruneRequest own = request;
  own.inputs = std::move(inputs);
  own.require_numbers = true;
  torch_io::TorchEngine engine;
  PruneServices served = services;
  served.engine = &engine;
  return prune_model(model, own, served);
}

Plan shapes_of(const Plan& plan) {
  Plan shapes = plan;
  shapes.zeros.clear();
  shapes.updates.clear();
  return shapes;
}

std::function<std::unique_ptr<TrainableModel>()> file_net(const std::string& path,
                                                          const FileNetOptions& options) {
  return [path, options] {
    if (!is_zip(path)) return onnx_net(path, options);
    if (options.batch_norm) throw errors::norms_need_onnx(path);
    return script_net(path);
  };
}

}  // namespace parsimony::training
