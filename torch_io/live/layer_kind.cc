#include <torch/nn/functional/instancenorm.h>
#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/batchnorm.h>
#include <torch/nn/modules/conv.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/instancenorm.h>
#include <torch/nn/modules/linear.h>
#include <torch/nn/modules/normalization.h>
#include <torch/nn/modules/rnn.h>

#include <algorithm>
#include <array>
#include <functional>
#include <string>

#include "parsimony/torch_io/errors.h"
#include "parsimony/torch_io/live/edit_impl.h"

namespace parsimony::torch_io::live {

std::string LayerEdit::name_of(std::string_view tensor) const {
  return (path.empty() ? "" : path + ".") + std::string(tensor);
}

std::optional<int64_t> LayerEdit::integer(std::string_view attribute) const {
  const auto known = requested.find(attribute);
  if (known == requested.end()) return std::nullopt;
  if (known->second.size() != 1 || known->second.front() < 1) {
    throw errors::bad_attribute(path, attribute, "expected one positive number");
  }
  return known->second.front();
}

void LayerEdit::agrees(std::string_view attribute, int64_t found) const {
  const std::optional<int64_t> given = integer(attribute);
  if (!given || *given == found) return;
  throw ModelError(errors::of_module(path), attribute, " is set to ", *given,
                   ", but its tensors have ", found);
}

void LayerEdit::require(std::string_view tensor, const at::Tensor& value,
                        const std::vector<int64_t>& shape) const {
  if (!value.defined() || value.sizes() == at::IntArrayRef(shape)) return;
  throw ModelError("tensor ", in_quotes(name_of(tensor)), ": does not fit its layer: expected ",
                   to_string(shape), ", found ", to_string(value.sizes().vec()));
}

std::vector<int64_t> count_in_parts(const AxisKeep& axis, int64_t parts) {
  std::vector<int64_t> counts(parts);
  const int64_t size = axis.size / parts;
  for (const int64_t index : axis.keep) ++counts[index / size];
  return counts;
}

namespace {

/// Returns the number of groups with kept channels. @throws UnsupportedError if they differ in size
int64_t groups_left(const std::string& tensor, const AxisKeep& axis, int64_t groups) {
  const std::vector<int64_t> counts = count_in_parts(axis, groups);
  std::vector<int64_t> left = counts;
  std::erase(left, 0);
  const bool even =
      std::adjacent_find(left.begin(), left.end(), std::not_equal_to<>()) == left.end();
  if (!even) throw errors::uneven_parts(tensor, "groups", counts);
  return std::ssize(left);
}

/// Returns `requested` groups, else as many as the kept channels form.
/// @throws ModelError if the channels are not a multiple of them
int64_t groups_of(const LayerEdit& edit, std::string_view attribute,
                  std::optional<int64_t> requested, const at::Tensor& weight, int64_t before) {
  const int64_t groups =
      requested ? *requested
                : groups_left(edit.name_of("weight"), edit.journal->kept(weight, 0), before);
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
  std::optional<int64_t> requested = edit.integer("groups");
  if (!requested) requested = edit.integer("group");
  const int64_t groups = groups_of(edit, "groups", requested, weight, options.groups());
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

// Layers with a table as weight: Linear, Bilinear, PReLU, Embedding, EmbeddingBag; and Unflatten,
// whose sizes are set explicitly.

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

/// Moves the row up by the number of rows removed before it.
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
  // A layer made from existing weights keeps them for `reset`, which makes a parameter of them: a
  // clone would share ours.
  if (options._weight().defined()) options._weight(layer.weight.detach());
}

void follow_unflatten(torch::nn::UnflattenImpl& layer, const LayerEdit& edit) {
  const auto sizes = edit.requested.find("sizes");
  if (sizes != edit.requested.end()) layer.options.sizes(sizes->second);
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
  const auto requested = edit.requested.find("normalized_shape");
  if (requested != edit.requested.end()) norm.options.normalized_shape(requested->second);
  if (!norm.weight.defined()) return;
  if (requested == edit.requested.end()) norm.options.normalized_shape(norm.weight.sizes().vec());
  edit.require("weight", norm.weight, norm.options.normalized_shape());
  edit.require("bias", norm.bias, norm.options.normalized_shape());
}

void follow_group_norm(torch::nn::GroupNormImpl& norm, const LayerEdit& edit) {
  const std::optional<int64_t> requested = edit.integer("num_groups");
  if (!norm.weight.defined()) {  // no tensor has the channels
    if (requested) norm.options.num_groups(*requested);
    return;
  }
  const int64_t channels = norm.weight.size(0);
  edit.require("bias", norm.bias, {channels});
  const int64_t groups =
      groups_of(edit, "num_groups", requested, norm.weight, norm.options.num_groups());
  norm.options.num_channels(channels).num_groups(groups);
}

// Recurrent layers and cells: input_size, hidden_size, proj_size.

struct Sizes {
  int64_t gates = 1;
  int64_t input = 0;
  int64_t hidden = 0;
  int64_t projected = 0;   // 0: no projection
  int64_t directions = 1;  // of a stacked layer's input

  int64_t output() const { return projected > 0 ? projected : hidden; }
};

/// Returns the expected shape of a weight by its libtorch name: "weight_ih_l0_reverse".
std::vector<int64_t> shape_of(std::string_view name, const Sizes& sizes) {
  if (name.starts_with("bias")) return {sizes.gates * sizes.hidden};
  if (name.starts_with("weight_hh")) return {sizes.gates * sizes.hidden, sizes.output()};
  if (name.starts_with("weight_hr")) return {sizes.projected, sizes.hidden};
  const bool is_first =
      name == "weight_ih" || name == "weight_ih_l0" || name == "weight_ih_l0_reverse";
  return {sizes.gates * sizes.hidden, is_first ? sizes.input : sizes.directions * sizes.output()};
}

/// Checks that all weights have consistent sizes, and all gates keep the same number of units.
void check_weights(const torch::nn::Module& layer, const Sizes& sizes, const LayerEdit& edit) {
  for (const auto& p : layer.named_parameters(/*recurse=*/false)) {
    const std::string name = edit.name_of(p.key());
    if (p.value().sizes() != at::IntArrayRef(shape_of(p.key(), sizes))) {
      throw errors::not_possible(edit.path, "a recurrent layer",
                                 "all its layers and directions have one hidden_size; " + p.key() +
                                     " should be " + to_string(shape_of(p.key(), sizes)) +
                                     ", but is " + to_string(p.value().sizes().vec()));
    }
    if (p.key().starts_with("weight_hr")) continue;
    const auto units = count_in_parts(edit.journal->kept(p.value(), 0), sizes.gates);
    if (std::any_of(units.begin(), units.end(), [&](int64_t n) { return n != sizes.hidden; })) {
      throw errors::uneven_parts(name, "gates", units);
    }
  }
}

template <typename Layer, int64_t kGates>
void follow_recurrent(Layer& layer, const LayerEdit& edit) {
  const auto parameters = layer.named_parameters(/*recurse=*/false);
  Sizes sizes;
  sizes.gates = kGates;
  sizes.input = parameters["weight_ih_l0"].size(1);
  sizes.hidden = parameters["weight_ih_l0"].size(0) / kGates;
  sizes.directions = layer.options.bidirectional() ? 2 : 1;
  if (const at::Tensor* projection = parameters.find("weight_hr_l0")) {
    sizes.projected = projection->size(0);
  }
  check_weights(layer, sizes, edit);
  if (sizes.projected == sizes.hidden) {
    throw errors::not_possible(edit.path, "a recurrent layer",
                               "libtorch treats a projection to the same size as none; "
                               "both would be " +
                                   std::to_string(sizes.hidden));
  }
  edit.agrees("hidden_size", sizes.hidden);
  layer.options.input_size(sizes.input).hidden_size(sizes.hidden);
  layer.options_base.input_size(sizes.input).hidden_size(sizes.hidden);
  if constexpr (requires { layer.options.proj_size(); }) layer.options.proj_size(sizes.projected);
  layer.options_base.proj_size(sizes.projected);
  layer.flatten_parameters();  // back to one buffer for all, for cuDNN
}

template <typename Cell, int64_t kGates>
void follow_cell(Cell& cell, const LayerEdit& edit) {
  Sizes sizes;
  sizes.gates = kGates;
  sizes.input = cell.weight_ih.size(1);
  sizes.hidden = cell.weight_hh.size(1);
  check_weights(cell, sizes, edit);
  edit.agrees("hidden_size", sizes.hidden);
  cell.options.input_size(sizes.input).hidden_size(sizes.hidden);
  cell.options_base.input_size(sizes.input).hidden_size(sizes.hidden);
}

template <typename Layer, int64_t kGates>
LayerKind recurrent_kind(std::string_view name) {
  return layer_kind<Layer, follow_recurrent<Layer, kGates>>(name, {"hidden_size"});
}

template <typename Cell, int64_t kGates>
LayerKind cell_kind(std::string_view name) {
  return layer_kind<Cell, follow_cell<Cell, kGates>>(name, {"hidden_size"});
}

std::vector<LayerKind> recurrent_kinds() {
  using namespace torch::nn;
  return {recurrent_kind<LSTMImpl, 4>("LSTM"),  recurrent_kind<GRUImpl, 3>("GRU"),
          recurrent_kind<RNNImpl, 1>("RNN"),    cell_kind<LSTMCellImpl, 4>("LSTMCell"),
          cell_kind<GRUCellImpl, 3>("GRUCell"), cell_kind<RNNCellImpl, 1>("RNNCell")};
}

// MultiheadAttention: embed_dim, num_heads, kdim, vdim.
//
// Its forward requires inputs of embed_dim, takes embed_dim / num_heads as the size of a head, and
// scales scores by that size. Hence complete heads are removed, with as many inputs: heads *
// head_dim == embed_dim stays true. The outputs of out_proj may be of any width.

using Attention = torch::nn::MultiheadAttentionImpl;
using Rows = std::vector<int64_t>;

UnsupportedError refused(const LayerEdit& edit, std::string_view why) {
  return errors::not_possible(edit.path, "MultiheadAttention", why);
}

/// Returns the kept rows of the projections of queries, keys and values.
std::array<Rows, 3> projections(const Attention& layer, const LayerEdit& edit) {
  if (!layer._qkv_same_embed_dim) {
    return {edit.journal->kept(layer.q_proj_weight, 0).keep,
            edit.journal->kept(layer.k_proj_weight, 0).keep,
            edit.journal->kept(layer.v_proj_weight, 0).keep};
  }
  std::array<Rows, 3> rows;
  const int64_t size = layer.options.embed_dim();
  for (const int64_t row : edit.journal->kept(layer.in_proj_weight, 0).keep) {
    rows[row / size].push_back(row % size);
  }
  return rows;
}

/// Returns the number of kept heads. @throws UnsupportedError if one is kept partly
int64_t whole_heads(const Rows& rows, int64_t head_dim, const LayerEdit& edit) {
  const size_t size = head_dim;
  for (size_t i = 0; i < rows.size(); i += size) {
    const size_t last = i + size - 1;
    if (rows[i] % head_dim == 0 && last < rows.size() && rows[last] == rows[i] + head_dim - 1) {
      continue;
    }
    throw refused(
        edit, "heads can only be removed whole, since its forward scales by the head size; head " +
                  std::to_string(rows[i] / head_dim) + " would be kept partly");
  }
  return static_cast<int64_t>(rows.size()) / head_dim;
}

void require_biases(const Attention& layer, const LayerEdit& edit, int64_t width) {
  edit.require("in_proj_bias", layer.in_proj_bias, {3 * width});
  edit.require("bias_k", layer.bias_k, {1, 1, width});
  edit.require("bias_v", layer.bias_v, {1, 1, width});
}

void follow_attention(Attention& layer, const LayerEdit& edit) {
  const auto [queries, keys, values] = projections(layer, edit);
  if (queries != keys || queries != values) {
    throw refused(edit, "queries, keys and values must keep the same heads");
  }
  const int64_t heads = whole_heads(queries, layer.head_dim, edit);
  const int64_t width = heads * layer.head_dim;
  const bool same = layer._qkv_same_embed_dim;
  const int64_t embed = same ? layer.in_proj_weight.size(1) : layer.q_proj_weight.size(1);
  if (embed != width) {
    throw refused(edit, "its forward requires heads * head_dim inputs; found " +
                            std::to_string(embed) + " inputs, " + std::to_string(heads) +
                            " heads of " + std::to_string(layer.head_dim));
  }
  if (layer.out_proj->weight.size(1) != width) {
    throw refused(edit, "out_proj must read the heads' outputs; found " +
                            std::to_string(layer.out_proj->weight.size(1)) + " inputs, " +
                            std::to_string(width) + " values");
  }
  const int64_t kdim = same ? embed : layer.k_proj_weight.size(1);
  const int64_t vdim = same ? embed : layer.v_proj_weight.size(1);
  require_biases(layer, edit, width);
  edit.agrees("num_heads", heads);
  layer.options.embed_dim(embed).num_heads(heads).kdim(kdim).vdim(vdim);
}

std::vector<LayerKind> attention_kinds() {
  return {layer_kind<Attention, follow_attention>("MultiheadAttention", {"num_heads"})};
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
