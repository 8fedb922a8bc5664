// Losses between a network's outputs and what the data say they should be.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <functional>
#include <vector>

#include "parsimony/configs/recipe.h"
#include "parsimony/graph/graph.h"
#include "parsimony/training/statistics/batches.h"

namespace parsimony::training {

/// `outputs` as [m, classes] beside `labels` of m elements: of [n, classes], of [n, ..dims,
/// classes] or, as pixels have them, of [n, classes, ..dims], where labels are [n, ..dims].
/// Undefined where the shapes are none of these.
at::Tensor class_rows(const at::Tensor& outputs, const at::Tensor& labels);
/// The same. @throws ModelError where it would be undefined, or has fewer than `classes` columns
at::Tensor class_rows(const at::Tensor& outputs, const at::Tensor& labels, int64_t classes);

/// Mean cross-entropy, in nats, of `rows` [m, classes] with labels of m elements, over those that
/// are not kNoLabel; 0 without any.
at::Tensor cross_entropy(const at::Tensor& rows, const at::Tensor& labels, double smoothing = 0);

/// The sum, over the outputs that have targets, of weight · loss:
///
/// | loss            | output                  | target |
/// |-----------------|-------------------------|----------------------------------------------------|
/// | `cross_entropy` | scores of classes       | classes, one for each place; [n], [n, ..dims] | |
/// `bce`           | scores of events        | probabilities, of the output's shape               |
/// | `mse`, `l1`     | numbers                 | numbers, of the output's shape | | `huber` |
/// numbers                 | numbers; linear beyond `delta`                     | | `kl` | scores
/// of classes       | their distribution, of the output's shape          | | `ctc`           |
/// scores of classes: [n, t, classes], [t, n, classes] | classes [n, s]; negative ones behind the
/// end |
///
/// Classes lie along the second axis of outputs with four axes, else along the last; cross-entropy
/// finds them by the targets' shape. Outputs of a Softmax or Sigmoid are taken as probabilities,
/// others as logits. Each is the mean over all elements, places or samples.
/// @param given  by output: do the data have targets for it?
/// @throws ConfigError for an output that is not there, or without targets. The function throws
/// ModelError for targets that do not fit
/// @source Graves et al., Connectionist Temporal Classification, 2006 (ctc); Huber, 1964
Loss target_loss(const Graph& graph, const std::vector<LossTerm>& terms,
                 const std::vector<bool>& given);

}  // namespace parsimony::training
