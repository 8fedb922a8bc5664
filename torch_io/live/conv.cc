// Convolutions: in_channels, out_channels and groups.

#include <torch/nn/modules/conv.h>

#include "parsimony/torch_io/live/errors.h"
#include "parsimony/torch_io/live/layer_kind_impl.h"

namespace parsimony::torch_io::live {
namespace {

/// `weight` is [out, in / groups, ...], of a transposed convolution [in, out / groups, ...].
template <typename Conv>
void follow_conv(Conv& conv, const LayerEdit& edit) {
  auto& options = conv.options;
  const at::Tensor& weight = conv.weight;
  // Shapes do not tell the number of groups; which channels stayed does.
  std::optional<int64_t> groups = edit.integer("groups");
  if (!groups) groups = edit.integer("group");
  if (!groups) {
    groups = groups_left(edit.name_of("weight"), edit.journal->kept(weight, 0), options.groups());
  }
  if (weight.size(0) % *groups != 0) {
    throw errors::bad_attribute(
        edit.path, "groups",
        std::to_string(*groups) + " do not divide " + std::to_string(weight.size(0)) + " channels");
  }
  const int64_t joint = weight.size(0);
  const int64_t split = weight.size(1) * *groups;
  const int64_t out = options.transposed() ? split : joint;
  edit.require("bias", conv.bias, {out});
  options.in_channels(options.transposed() ? joint : split);
  options.out_channels(out);
  options.groups(*groups);
}

template <typename Conv>
LayerKind conv_kind(std::string_view name) {
  return layer_kind<Conv, follow_conv<Conv>>(name, {"groups", "group"});
}

}  // namespace

std::vector<LayerKind> conv_kinds() {
  using namespace torch::nn;
  return {conv_kind<Conv1dImpl>("Conv1d"),
          conv_kind<Conv2dImpl>("Conv2d"),
          conv_kind<Conv3dImpl>("Conv3d"),
          conv_kind<ConvTranspose1dImpl>("ConvTranspose1d"),
          conv_kind<ConvTranspose2dImpl>("ConvTranspose2d"),
          conv_kind<ConvTranspose3dImpl>("ConvTranspose3d")};
}

}  // namespace parsimony::torch_io::live
