// Scores of classes and their labels, one row each: of samples, tokens or pixels.
#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>

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

}  // namespace parsimony::training
