#include <torch/nn/functional/instancenorm.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>

#include <algorithm>
#include <functional>

#include "parsimony/torch_io/errors.h"
#include "parsimony/torch_io/live/layer_kind_impl.h"

namespace parsimony::torch_io::live {

std::string LayerEdit::name_of(std::string_view tensor) const {
  return (path.empty() ? "" : path + ".") + std::string(tensor);
}

std::optional<int64_t> LayerEdit::integer(std::string_view attribute) const {
  const auto known = wanted.find(attribute);
  if (known == wanted.end()) return std::nullopt;
  if (known->second.size() != 1 || known->second.front() < 1) {
    throw errors::bad_attribute(path, attribute, "wanted one number above 0");
  }
  return known->second.front();
}

void LayerEdit::agrees(std::string_view attribute, int64_t found) const {
  const std::optional<int64_t> given = integer(attribute);
  if (!given || *given == found) return;
  throw ModelError(errors::of_module(path), attribute, " is to be ", *given,
                   ", but its tensors have ", found);
}

void LayerEdit::require(std::string_view tensor, const at::Tensor& value,
                        const std::vector<int64_t>& shape) const {
  if (!value.defined() || value.sizes() == at::IntArrayRef(shape)) return;
  throw ModelError("tensor ", in_quotes(name_of(tensor)), ": does not fit its layer: wanted ",
                   to_string(shape), ", found ", to_string(value.sizes().vec()));
}

std::vector<int64_t> count_in_parts(const AxisKeep& axis, int64_t parts) {
  std::vector<int64_t> counts(parts);
  const int64_t size = axis.size / parts;
  for (const int64_t index : axis.keep) ++counts[index / size];
  return counts;
}

namespace {

/// The number of groups of which channels are kept. @throws UnsupportedError if not equally many
int64_t groups_left(const std::string& tensor, const AxisKeep& axis, int64_t groups) {
  const std::vector<int64_t> counts = count_in_parts(axis, groups);
  std::vector<int64_t> left = counts;
  std::erase(left, 0);
  const bool even =
      std::adjacent_find(left.begin(), left.end(), std::not_equal_to<>()) == left.end();
  if (!even) throw errors::uneven_parts(tensor, "groups", counts);
  return std::ssize(left);
}

/// As many groups as `wanted`, else as the channels that are kept form.
/// @throws ModelError if the channels are not a multiple of them
int64_t groups_of(const LayerEdit& edit, std::string_view attribute, std::optional<int64_t> wanted,
                  const at::Tensor& weight, int64_t before) {
  const int64_t groups =
      wanted ? *wanted : groups_left(edit.name_of("weight"), edit.journal->kept(weight, 0), before);
  if (weight.size(0) % groups != 0) {
    throw errors::bad_attribute(
        edit.path, attribute,
        std::to_string(groups) + " do not divide " + std::to_string(weight.size(0)) + " channels");
  }
  return groups;
}

// Convolutions: in_channels, out_channels and groups.

/// `weight` is [out, in / groups, ...], of a transposed convolution [in, out / groups, ...].
template <typename Conv>
void follow_conv(Conv& conv, const LayerEdit& edit) {
  auto& options = conv.options;
  const at::Tensor& weight = conv.weight;
  // The number of groups follows from the kept channels, not from the shapes.
  std::optional<int64_t> wanted = edit.integer("groups");
  if (!wanted) wanted = edit.integer("group");
  const int64_t groups = groups_of(edit, "groups", wanted, weight, options.groups());
  const int64_t joint = weight.size(0);
  const int64_t split = weight.size(1) * groups;
  const int64_t out = options.transposed() ? split : joint;
  edit.require("bias", conv.bias, {out});
  options.in_channels(options.transposed() ? joint : split);
  options.out_channels(out);
  options.groups(groups);
}

template <typename Conv>
LayerKind conv_kind(std::string_view name) {
  return layer_kind<Conv, follow_conv<Conv>>(name, {"groups", "group"});
}

// Layers whose weight is a table: Linear, Bilinear, PReLU, Embedding, EmbeddingBag; and Unflatten,
// whose sizes are told.

void follow_linear(torch::nn::LinearImpl& layer, const LayerEdit& edit) {
  edit.require("bias", layer.bias, {layer.weight.size(0)});
  layer.options.out_features(layer.weight.size(0)).in_features(layer.weight.size(1));
}

void follow_bilinear(torch::nn::BilinearImpl& layer, const LayerEdit& edit) {
  edit.require("bias", layer.bias, {layer.weight.size(0)});
  layer.options.out_features(layer.weight.size(0))
      .in1_features(layer.weight.size(1))
      .in2_features(layer.weight.size(2));
}

void follow_prelu(torch::nn::PReLUImpl& layer, const LayerEdit&) {
  layer.options.num_parameters(layer.weight.size(0));
}

/// Its row moves up by the number of rows removed before it.
int64_t moved_padding(int64_t padding, const AxisKeep& rows, const LayerEdit& edit) {
  const auto found = std::find(rows.keep.begin(), rows.keep.end(), padding);
  if (found == rows.keep.end()) {
    throw errors::not_possible(edit.path, "an embedding", "the row of padding_idx must stay");
  }
  return found - rows.keep.begin();
}

template <typename Embedding>
void follow_embedding(Embedding& layer, const LayerEdit& edit) {
  auto& options = layer.options;
  if (options.padding_idx()) {
    const AxisKeep rows = edit.journal->kept(layer.weight, 0);
    options.padding_idx(moved_padding(*options.padding_idx(), rows, edit));
  }
  options.num_embeddings(layer.weight.size(0));
  options.embedding_dim(layer.weight.size(1));
  // A layer made of given weights keeps them, for `reset`, which makes a parameter of them: a clone
  // would share ours.
  if (options._weight().defined()) options._weight(layer.weight.detach());
}

void follow_unflatten(torch::nn::UnflattenImpl& layer, const LayerEdit& edit) {
  const auto sizes = edit.wanted.find("sizes");
  if (sizes != edit.wanted.end()) layer.options.sizes(sizes->second);
}

// Normalizations: num_features, num_channels and num_groups, normalized_shape.

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
      groups_of(edit, "num_groups", wanted, norm.weight, norm.options.num_groups());
  norm.options.num_channels(channels).num_groups(groups);
}

std::vector<LayerKind> all_kinds() {
  using namespace torch::nn;
  std::vector<LayerKind> all = {
      conv_kind<Conv1dImpl>("Conv1d"),
      conv_kind<Conv2dImpl>("Conv2d"),
      conv_kind<Conv3dImpl>("Conv3d"),
      conv_kind<ConvTranspose1dImpl>("ConvTranspose1d"),
      conv_kind<ConvTranspose2dImpl>("ConvTranspose2d"),
      conv_kind<ConvTranspose3dImpl>("ConvTranspose3d"),
      layer_kind<LinearImpl, follow_linear>("Linear"),
      layer_kind<BilinearImpl, follow_bilinear>("Bilinear"),
      layer_kind<PReLUImpl, follow_prelu>("PReLU"),
      layer_kind<EmbeddingImpl, follow_embedding<EmbeddingImpl>>("Embedding"),
      layer_kind<EmbeddingBagImpl, follow_embedding<EmbeddingBagImpl>>("EmbeddingBag"),
      layer_kind<UnflattenImpl, follow_unflatten>("Unflatten", {"sizes"}),
      feature_norm<BatchNorm1dImpl>("BatchNorm1d"),
      feature_norm<BatchNorm2dImpl>("BatchNorm2d"),
      feature_norm<BatchNorm3dImpl>("BatchNorm3d"),
      feature_norm<InstanceNorm1dImpl>("InstanceNorm1d"),
      feature_norm<InstanceNorm2dImpl>("InstanceNorm2d"),
      feature_norm<InstanceNorm3dImpl>("InstanceNorm3d"),
      layer_kind<LayerNormImpl, follow_layer_norm>("LayerNorm", {"normalized_shape"}),
      layer_kind<GroupNormImpl, follow_group_norm>("GroupNorm", {"num_groups"})};
  for (const auto& family : {recurrent_kinds(), attention_kinds()}) {
    all.insert(all.end(), family.begin(), family.end());
  }
  return all;
}

}  // namespace

const LayerKind* kind_of(const torch::nn::Module& layer) {
  static const std::vector<LayerKind> kinds = all_kinds();
  const auto found = std::find_if(kinds.begin(), kinds.end(),
                                  [&](const LayerKind& kind) { return kind.matches(layer); });
  return found == kinds.end() ? nullptr : &*found;
}

}  // namespace parsimony::torch_io::live
