// Layers whose weight is a table: Linear, Bilinear, PReLU, Embedding, EmbeddingBag; and Unflatten,
// whose sizes are told.

#include <torch/nn/modules/activation.h>
#include <torch/nn/modules/embedding.h>
#include <torch/nn/modules/linear.h>

#include <algorithm>

#include "parsimony/torch_io/live/errors.h"
#include "parsimony/torch_io/live/layer_kind_impl.h"

namespace parsimony::torch_io::live {
namespace {

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

/// Its row moves up by the rows that went before it.
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

}  // namespace

std::vector<LayerKind> linear_kinds() {
  using namespace torch::nn;
  return {layer_kind<LinearImpl, follow_linear>("Linear"),
          layer_kind<BilinearImpl, follow_bilinear>("Bilinear"),
          layer_kind<PReLUImpl, follow_prelu>("PReLU"),
          layer_kind<EmbeddingImpl, follow_embedding<EmbeddingImpl>>("Embedding"),
          layer_kind<EmbeddingBagImpl, follow_embedding<EmbeddingBagImpl>>("EmbeddingBag"),
          layer_kind<UnflattenImpl, follow_unflatten>("Unflatten", {"sizes"})};
}

}  // namespace parsimony::torch_io::live
