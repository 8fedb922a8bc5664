// Normalizations: num_features, num_channels and num_groups, normalized_shape.

#include <torch/nn/functional/instancenorm.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/normalization.h>

#include "parsimony/torch_io/live/errors.h"
#include "parsimony/torch_io/live/layer_kind_impl.h"

namespace parsimony::torch_io::live {
namespace {

template <typename Norm>
void follow_features(Norm& norm, const LayerEdit& edit) {
  const at::Tensor& any = norm.weight.defined() ? norm.weight : norm.running_mean;
  if (!any.defined()) return;
  const std::vector<int64_t> shape = {any.size(0)};
  edit.require("weight", norm.weight, shape);
  edit.require("bias", norm.bias, shape);
  edit.require("running_mean", norm.running_mean, shape);
  edit.require("running_var", norm.running_var, shape);
  norm.options.num_features(shape[0]);
}

template <typename Norm>
LayerKind feature_norm(std::string_view name) {
  return layer_kind<Norm, follow_features<Norm>>(name);
}

void follow_layer_norm(torch::nn::LayerNormImpl& norm, const LayerEdit& edit) {
  const auto wanted = edit.wanted.find("normalized_shape");
  if (wanted != edit.wanted.end()) norm.options.normalized_shape(wanted->second);
  if (!norm.weight.defined()) return;
  if (wanted == edit.wanted.end()) norm.options.normalized_shape(norm.weight.sizes().vec());
  edit.require("weight", norm.weight, norm.options.normalized_shape());
  edit.require("bias", norm.bias, norm.options.normalized_shape());
}

void follow_group_norm(torch::nn::GroupNormImpl& norm, const LayerEdit& edit) {
  const std::optional<int64_t> wanted = edit.integer("num_groups");
  if (!norm.weight.defined()) {  // the channels are nowhere
    if (wanted) norm.options.num_groups(*wanted);
    return;
  }
  const int64_t channels = norm.weight.size(0);
  edit.require("bias", norm.bias, {channels});
  const int64_t groups =
      wanted ? *wanted
             : groups_left(edit.name_of("weight"), edit.journal->kept(norm.weight, 0),
                           norm.options.num_groups());
  if (channels % groups != 0) {
    throw errors::bad_attribute(
        edit.path, "num_groups",
        std::to_string(groups) + " do not divide " + std::to_string(channels) + " channels");
  }
  norm.options.num_channels(channels).num_groups(groups);
}

}  // namespace

std::vector<LayerKind> norm_kinds() {
  using namespace torch::nn;
  return {feature_norm<BatchNorm1dImpl>("BatchNorm1d"),
          feature_norm<BatchNorm2dImpl>("BatchNorm2d"),
          feature_norm<BatchNorm3dImpl>("BatchNorm3d"),
          feature_norm<InstanceNorm1dImpl>("InstanceNorm1d"),
          feature_norm<InstanceNorm2dImpl>("InstanceNorm2d"),
          feature_norm<InstanceNorm3dImpl>("InstanceNorm3d"),
          layer_kind<LayerNormImpl, follow_layer_norm>("LayerNorm", {"normalized_shape"}),
          layer_kind<GroupNormImpl, follow_group_norm>("GroupNorm", {"num_groups"})};
}

}  // namespace parsimony::torch_io::live
