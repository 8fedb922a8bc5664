#include "parsimony/training/loop/class_rows.h"

#include <ATen/ATen.h>

#include "parsimony/base/types.h"
#include "parsimony/configs/loss_spec.h"
#include "parsimony/training/errors.h"

namespace parsimony::training {

at::Tensor class_rows(const at::Tensor& outputs, const at::Tensor& labels) {
  const int64_t dims = labels.dim();
  if (outputs.dim() != dims + 1) return {};
  if (outputs.sizes().slice(0, dims) == labels.sizes()) return outputs.flatten(0, dims - 1);
  const bool behind =
      outputs.size(0) == labels.size(0) && outputs.sizes().slice(2) == labels.sizes().slice(1);
  return behind ? outputs.movedim(1, -1).flatten(0, dims - 1) : at::Tensor();
}

at::Tensor class_rows(const at::Tensor& outputs, const at::Tensor& labels, int64_t classes) {
  at::Tensor rows = class_rows(outputs, labels);
  if (rows.defined() && rows.size(1) >= classes) return rows;
  throw errors::does_not_fit("the outputs have shape " + to_string(outputs.sizes().vec()) +
                             ", the data has " + std::to_string(classes) +
                             " classes and labels of " + to_string(labels.sizes().vec()));
}

at::Tensor cross_entropy(const at::Tensor& rows, const at::Tensor& labels, double smoothing) {
  const at::Tensor sum = at::cross_entropy_loss(rows.to(at::kFloat), labels.flatten(), {},
                                                at::Reduction::Sum, kNoLabel, smoothing);
  return sum / labels.ne(kNoLabel).sum().clamp_min(1);
}

}  // namespace parsimony::training
