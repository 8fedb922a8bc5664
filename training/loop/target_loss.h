// Losses between a network's outputs and the targets in the data.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "parsimony/configs/recipe.h"
#include "parsimony/graph/graph.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {

/// Returns `outputs` as [m, classes] for `labels` of m elements: from [n, classes], [n, ..dims,
/// classes] or, for pixels, [n, classes, ..dims], where labels are [n, ..dims]. Undefined for other
/// shapes.
at::Tensor class_rows(const at::Tensor& outputs, const at::Tensor& labels);
/// Like above. @throws ModelError if it would be undefined, or has fewer than `classes` columns
at::Tensor class_rows(const at::Tensor& outputs, const at::Tensor& labels, int64_t classes);

/// Returns the mean cross-entropy, in nats, of `rows` [m, classes] with labels of m elements,
/// ignoring kNoLabel; 0 if there are no others.
at::Tensor cross_entropy(const at::Tensor& rows, const at::Tensor& labels, double smoothing = 0);

/// Returns the sum, over the outputs that have targets, of weight · loss:
///
/// | loss            | output                        | target                                    |
/// |-----------------|-------------------------------|-------------------------------------------|
/// | `cross_entropy` | scores of classes             | classes, one per place; [n], [n, ..dims]  |
/// | `bce`           | scores of events              | probabilities, of the output's shape      |
/// | `mse`, `l1`     | numbers                       | numbers, of the output's shape            |
/// | `huber`         | numbers                       | numbers; linear beyond `delta`            |
/// | `kl`            | scores of classes             | their distribution, of the output's shape |
/// | `ctc`           | scores [n, t, c] or [t, n, c] | classes [n, s], padded with negative ones |
///
/// Classes are along the second axis of outputs with four axes, else along the last; cross-entropy
/// finds them by the targets' shape. Outputs of a Softmax or Sigmoid are taken as probabilities,
/// others as logits. Each loss is the mean over all elements, places or samples.
/// @param given  by output: whether the data has targets for it
/// @throws ConfigError for an output that does not exist or has no targets. The returned function
/// throws ModelError for targets that do not fit
/// @source Graves et al., Connectionist Temporal Classification, 2006 (ctc); Huber, 1964
Loss target_loss(const Graph& graph, const std::vector<LossTerm>& terms,
                 const std::vector<bool>& given);

}  // namespace parsimony::training
